#include <algorithm>

#include "runtime/base/crypto.h"
#include "runtime/base/strings.h"
#include "runtime/worker/service.h"
#include "runtime/worker/worker.h"

namespace solstice::worker {
namespace {

using base::StrCat;
using v1::internal::WorkerReply;
using v1::internal::WorkerRequest;

// What a worker may say, by what it was asked: a parsed message can take many times its size in the server's memory.
constexpr int64_t kMaxReplyBytes = 1 << 20;
constexpr int64_t kMaxPreparedBytes = 16 << 20;
constexpr int64_t kMaxProgramBytes = sandbox::Channel::kMaxMessageBytes;

int64_t ReplyLimit(const WorkerRequest& request) {
  if (request.has_compile()) return kMaxProgramBytes;
  return request.has_prepare() ? kMaxPreparedBytes : kMaxReplyBytes;
}
constexpr size_t kStderrTail = 2048;
constexpr auto kDeathTimeout = std::chrono::seconds(2);

// How a worker ended, for a person.
std::string Obituary(sandbox::Process& process) {
  std::string text = "it closed its channel";
  auto code = process.Wait(kDeathTimeout);
  if (code.ok()) {
    text = *code > 128 ? StrCat("it was killed by signal ", *code - 128) : StrCat("it ended with exit code ", *code);
  }
  std::string said = process.Stderr();
  std::string_view tail = base::Trim(said);
  if (tail.size() > kStderrTail) tail.remove_prefix(tail.size() - kStderrTail);
  if (!tail.empty()) text += StrCat(" and said: ", ToUtf8(tail));
  return text;
}

}  // namespace

StatusOr<std::unique_ptr<Client>> Client::Start(sandbox::Spawner& spawner, const sandbox::JailSpec& spec,
                                                std::chrono::nanoseconds timeout) {
  std::unique_ptr<Client> client(new Client);
  SOLSTICE_ASSIGN_OR_RETURN(client->process_, spawner.Spawn(spec));
  client->channel_ = std::make_unique<sandbox::Channel>(client->process_->TakeChannel());
  client->name_ = spec.name;
  WorkerReply greeting;
  Status status = client->channel_->Receive(&greeting, nullptr, timeout, kMaxReplyBytes);
  if (absl::IsUnavailable(status)) {
    return base::Unavailable(StrCat("the ", spec.name, " worker did not start: ", Obituary(*client->process_)));
  }
  if (!status.ok()) return base::Annotate(status, StrCat("the ", spec.name, " worker did not start"));
  if (!greeting.has_hello() || greeting.header().version() != kProtocolVersion) {
    return base::FailedPrecondition(StrCat("the ", spec.name, " worker speaks protocol ", greeting.header().version(),
                                           ", this server ", kProtocolVersion),
                                    "install solstice-worker and solsticed of the same version");
  }
  client->hello_ = std::move(*greeting.mutable_hello());
  return client;
}

Client::~Client() = default;

StatusOr<WorkerReply> Client::Call(WorkerRequest request, const std::vector<int>& descriptors,
                                   std::vector<base::UniqueFd>* reply_descriptors, std::chrono::nanoseconds timeout) {
  return Converse(std::move(request), descriptors, reply_descriptors, timeout, nullptr);
}

StatusOr<WorkerReply> Client::CallGo(WorkerRequest request, BatchClock& clock, std::chrono::nanoseconds timeout,
                                     double* batch_us) {
  clock.Reset();
  return Converse(std::move(request), {clock.fd()}, nullptr, timeout,
                  [&] { *batch_us = clock.Time(timeout, [&] { return channel_->Readable(); }); });
}

StatusOr<WorkerReply> Client::Converse(WorkerRequest request, const std::vector<int>& descriptors,
                                       std::vector<base::UniqueFd>* reply_descriptors, std::chrono::nanoseconds timeout,
                                       const std::function<void()>& meanwhile) {
  if (broken_) return base::Unavailable(StrCat("the ", name_, " worker is of no more use after an earlier failure"));
  v1::internal::Header* header = request.mutable_header();
  header->set_version(kProtocolVersion);
  header->set_sequence(++sequence_);
  header->set_nonce(base::RandomU64());
  // Whatever goes wrong from here on leaves an answer that nobody waits for.
  broken_ = true;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  Status status = channel_->Send(request, descriptors);
  WorkerReply reply;
  if (status.ok()) {
    if (meanwhile) meanwhile();
    const std::chrono::nanoseconds left = deadline - std::chrono::steady_clock::now();
    status = channel_->Receive(&reply, reply_descriptors, std::max(left, std::chrono::nanoseconds(0)),
                               ReplyLimit(request));
  }
  if (absl::IsUnavailable(status)) {
    return base::Unavailable(StrCat("the ", name_, " worker died: ", Obituary(*process_)));
  }
  if (absl::IsDeadlineExceeded(status)) {
    return base::DeadlineExceeded(StrCat("the ", name_, " worker did not answer in time"));
  }
  const v1::internal::Header& got = reply.header();
  bool echoed = got.version() == header->version() && got.sequence() == header->sequence() &&
                got.nonce() == header->nonce() && got.evaluation() == header->evaluation() &&
                got.attempt() == header->attempt();
  if (!status.ok() || !echoed || reply.has_hello() || reply.body_case() == WorkerReply::BODY_NOT_SET) {
    // It may be in a submission's hands: nothing it says counts any more.
    process_->Kill();
    if (reply_descriptors != nullptr) reply_descriptors->clear();
    return base::Unavailable(
        StrCat("the ", name_, " worker broke the protocol and was killed: ",
               status.ok() ? "its answer does not belong to the request" : base::MessageOf(status)));
  }
  broken_ = false;
  if (!reply.has_error()) return reply;
  auto code = static_cast<absl::StatusCode>(reply.error().code());
  bool known = reply.error().code() > 0 && reply.error().code() <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return base::MakeStatus(known ? code : absl::StatusCode::kUnknown,
                          StrCat(name_, " worker: ", reply.error().message()));
}

StatusOr<v1::HostProbe> ProbeHost(sandbox::Spawner& spawner, const Installation& installation,
                                  std::chrono::nanoseconds timeout) {
  SOLSTICE_ASSIGN_OR_RETURN(std::unique_ptr<sandbox::Process> process, spawner.Spawn(ProbeProcess(installation)));
  sandbox::Channel channel(process->TakeChannel());
  WorkerReply reply;
  Status status = channel.Receive(&reply, nullptr, timeout, kMaxReplyBytes);
  if (absl::IsUnavailable(status)) {
    return base::Unavailable(StrCat("the host's probe died: ", Obituary(*process)));
  }
  if (absl::IsDeadlineExceeded(status)) {
    return base::DeadlineExceeded("the host's probe did not answer in time",
                                  "the NVIDIA driver may hang: try nvidia-smi, and look at the kernel's log");
  }
  if (!status.ok()) return base::Annotate(status, "the host's probe");
  if (!reply.has_probe() || reply.header().version() != kProtocolVersion) {
    return base::FailedPrecondition("solstice-worker does not probe as this server asks",
                                    "install solstice-worker and solsticed of the same version");
  }
  return std::move(*reply.mutable_probe());
}

void Client::Kill() { process_->Kill(); }

pid_t Client::pid() const { return process_->pid(); }

bool Client::alive() { return !broken_ && !process_->Wait(std::chrono::nanoseconds(0)).ok(); }

}  // namespace solstice::worker
