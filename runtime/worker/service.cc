#include "runtime/worker/service.h"

#include <signal.h>
#include <sys/prctl.h>

#include <cstdio>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "runtime/base/strings.h"
#include "runtime/worker/worker.h"

namespace solstice::worker {
namespace {

using base::StrCat;
using google::protobuf::FieldDescriptor;
using v1::internal::WorkerReply;
using v1::internal::WorkerRequest;

constexpr auto kForever = std::chrono::hours(24 * 365);

int Give(std::string_view role, const Status& status) {
  std::fprintf(stderr, "%.*s: %s\n", static_cast<int>(role.size()), role.data(), base::MessageOf(status).c_str());
  return 1;
}

Answer ErrorAnswer(const Status& status) {
  Answer answer;
  answer.reply.mutable_error()->set_code(static_cast<int>(status.code()));
  answer.reply.mutable_error()->set_message(base::MessageOf(status));
  return answer;
}

}  // namespace

int Serve(sandbox::Channel& channel, v1::internal::Hello hello, const Handler& handler) {
  WorkerReply greeting;
  greeting.mutable_header()->set_version(kProtocolVersion);
  *greeting.mutable_hello() = std::move(hello);
  MakeUtf8(&greeting);
  if (Status status = channel.Send(greeting); !status.ok()) return Give("hello", status);
  while (true) {
    WorkerRequest request;
    std::vector<base::UniqueFd> descriptors;
    Status status = channel.Receive(&request, &descriptors, kForever);
    if (absl::IsUnavailable(status)) return 0;
    if (absl::IsDeadlineExceeded(status)) continue;
    if (!status.ok()) return Give("request", status);
    StatusOr<Answer> handled = base::InvalidArgument(
        StrCat("worker protocol version ", request.header().version(), ", this worker speaks ", kProtocolVersion));
    if (request.header().version() == kProtocolVersion) handled = handler(request, std::move(descriptors));
    Answer answer = handled.ok() ? *std::move(handled) : ErrorAnswer(handled.status());
    *answer.reply.mutable_header() = request.header();
    MakeUtf8(&answer.reply);
    std::vector<int> borrowed;
    for (const base::UniqueFd& fd : answer.descriptors) borrowed.push_back(fd.get());
    status = channel.Send(answer.reply, borrowed);
    if (absl::IsUnavailable(status)) return 0;
    if (!status.ok()) return Give("reply", status);
    if (answer.last) return 0;
  }
}

void HardenProcess() {
#if !defined(__SANITIZE_ADDRESS__)  // whose leak check traces the process
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
  ::signal(SIGPIPE, SIG_IGN);
}

StatusOr<Flags> Flags::Parse(int argc, char** argv) {
  Flags flags;
  for (int i = 2; i < argc; ++i) {
    std::string_view argument = argv[i];
    size_t equals = argument.find('=');
    if (argument.substr(0, 2) != "--" || equals == std::string_view::npos) {
      return base::InvalidArgument(StrCat("unknown argument ", base::Quote(argument)));
    }
    flags.values_.emplace_back(argument.substr(2, equals - 2), argument.substr(equals + 1));
  }
  return flags;
}

std::string Flags::Get(std::string_view name) const {
  std::string value;
  for (const auto& entry : values_) {
    if (entry.first == name) value = entry.second;
  }
  return value;
}

std::vector<std::string> Flags::All(std::string_view name) const {
  std::vector<std::string> found;
  for (const auto& entry : values_) {
    if (entry.first == name) found.push_back(entry.second);
  }
  return found;
}

std::string ToUtf8(std::string_view text) {
  if (base::IsValidUtf8(text)) return std::string(text);
  std::string out;
  while (!text.empty()) {
    size_t good = 1;
    // A sequence has at most four bytes: the shortest valid one at this place, or a replacement.
    while (good <= 4 && good <= text.size() && !base::IsValidUtf8(text.substr(0, good))) ++good;
    if (good <= 4 && good <= text.size()) {
      out.append(text.substr(0, good));
      text.remove_prefix(good);
    } else {
      out.push_back('?');
      text.remove_prefix(1);
    }
  }
  return out;
}

void MakeUtf8(google::protobuf::Message* message) {
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    bool repeated = field->is_repeated();
    int count = repeated ? reflection.FieldSize(*message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        MakeUtf8(repeated ? reflection.MutableRepeatedMessage(message, field, i)
                          : reflection.MutableMessage(message, field));
      } else if (field->type() == FieldDescriptor::TYPE_STRING) {
        std::string text =
            repeated ? reflection.GetRepeatedString(*message, field, i) : reflection.GetString(*message, field);
        if (base::IsValidUtf8(text)) continue;
        if (repeated) {
          reflection.SetRepeatedString(message, field, i, ToUtf8(text));
        } else {
          reflection.SetString(message, field, ToUtf8(text));
        }
      }
    }
  }
}

}  // namespace solstice::worker
