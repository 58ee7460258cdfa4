#include "runtime/sandbox/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "google/protobuf/io/coded_stream.h"
#include "runtime/base/file.h"
#include "runtime/base/strings.h"

namespace solstice::sandbox {
namespace {

using base::StrCat;
using SteadyClock = std::chrono::steady_clock;

// Every packet begins with it. `bytes` is the size of the serialized message, which follows or lies in the first
// descriptor.
struct Frame {
  uint32_t magic;
  uint32_t kind;
  uint64_t bytes;
};
constexpr uint32_t kMagic = 0x31434C53;  // "SLC1"
constexpr uint32_t kInline = 0, kMemfd = 1;
constexpr int64_t kMaxInlineBytes = 60 << 10;
constexpr int kMaxPacketDescriptors = Channel::kMaxDescriptors + 1;
constexpr auto kSendTimeout = std::chrono::seconds(30);
constexpr int kMaxNesting = 64;

// Waits for `events`; DEADLINE_EXCEEDED, or OK with the events that came.
StatusOr<int> PollUntil(int fd, int events, SteadyClock::time_point deadline) {
  while (true) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now()).count();
    pollfd entry = {fd, static_cast<short>(events), 0};
    int ready = ::poll(&entry, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30)));
    if (ready > 0) return entry.revents;
    if (ready == 0 && left <= 0) return base::DeadlineExceeded("channel: no answer in time");
    if (ready < 0 && errno != EINTR) return base::FromErrno(errno, "poll");
  }
}

SteadyClock::time_point DeadlineAfter(std::chrono::nanoseconds timeout) {
  // Clamped so that the sum cannot overflow.
  return SteadyClock::now() +
         std::clamp<std::chrono::nanoseconds>(timeout, std::chrono::nanoseconds(0), std::chrono::hours(24 * 365));
}

Status Gone() { return base::Unavailable("channel: the other end is gone"); }

// Takes every descriptor out of the control data, so that none leaks whatever is wrong with the packet.
std::vector<base::UniqueFd> TakeDescriptors(msghdr& header, bool* foreign) {
  std::vector<base::UniqueFd> taken;
  *foreign = false;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      *foreign = true;
      continue;
    }
    size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      taken.emplace_back(fd);
    }
  }
  return taken;
}

Status Parse(const char* data, int64_t bytes, google::protobuf::MessageLite* message) {
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(data), static_cast<int>(bytes));
  stream.SetRecursionLimit(kMaxNesting);
  if (!message->ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    return base::InvalidArgument("channel: the packet does not hold the expected message");
  }
  return absl::OkStatus();
}

// The payload must be sealed: otherwise the sender could shrink or rewrite it under us.
StatusOr<std::string> ReadPayload(int fd, int64_t declared_bytes) {
  int seals = ::fcntl(fd, F_GET_SEALS);
  constexpr int kNeeded = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
  if (seals < 0 || (seals & kNeeded) != kNeeded) {
    return base::InvalidArgument("channel: the payload descriptor is not a sealed memory file");
  }
  struct stat info;
  if (::fstat(fd, &info) != 0) return base::FromErrno(errno, "fstat");
  if (info.st_size != declared_bytes) {
    return base::InvalidArgument(
        StrCat("channel: the payload has ", info.st_size, " bytes, the packet says ", declared_bytes));
  }
  return base::ReadMemfd(fd, declared_bytes);
}

}  // namespace

StatusOr<std::pair<base::UniqueFd, base::UniqueFd>> Channel::MakePair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) return base::FromErrno(errno, "socketpair");
  return std::make_pair(base::UniqueFd(fds[0]), base::UniqueFd(fds[1]));
}

Status Channel::Send(const google::protobuf::MessageLite& message, const std::vector<int>& descriptors) {
  if (static_cast<int64_t>(descriptors.size()) > kMaxDescriptors) {
    return base::InvalidArgument(
        StrCat("channel: ", descriptors.size(), " descriptors, at most ", kMaxDescriptors, " travel with a message"));
  }
  size_t bytes = message.ByteSizeLong();
  if (bytes > static_cast<size_t>(kMaxMessageBytes)) {
    return base::ResourceExhausted(
        StrCat("channel: the message has ", bytes, " bytes, the limit is ", kMaxMessageBytes));
  }
  std::string content;
  if (!message.SerializeToString(&content)) return base::Internal("channel: the message cannot be serialized");

  Frame frame = {kMagic, kInline, content.size()};
  std::vector<int> travelling;
  base::UniqueFd payload;
  if (static_cast<int64_t>(content.size()) > kMaxInlineBytes) {
    SOLSTICE_ASSIGN_OR_RETURN(payload, base::SealedMemfd("solstice-message", content));
    frame.kind = kMemfd;
    travelling.push_back(payload.get());
  }
  travelling.insert(travelling.end(), descriptors.begin(), descriptors.end());

  iovec parts[2] = {{&frame, sizeof frame}, {content.data(), content.size()}};
  msghdr header = {};
  header.msg_iov = parts;
  header.msg_iovlen = frame.kind == kInline ? 2 : 1;
  std::vector<char> control(CMSG_SPACE(travelling.size() * sizeof(int)), '\0');
  if (!travelling.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(travelling.size() * sizeof(int));
    std::memcpy(CMSG_DATA(rights), travelling.data(), travelling.size() * sizeof(int));
  }
  auto deadline = DeadlineAfter(kSendTimeout);
  while (true) {
    if (::sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return absl::OkStatus();
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN) return Gone();
    if (errno != EAGAIN) return base::FromErrno(errno, "sendmsg");
    SOLSTICE_ASSIGN_OR_RETURN(int ready, PollUntil(socket_.get(), POLLOUT, deadline));
    if ((ready & (POLLHUP | POLLERR)) != 0 && (ready & POLLOUT) == 0) return Gone();
  }
}

Status Channel::Receive(google::protobuf::MessageLite* message, std::vector<base::UniqueFd>* descriptors,
                        std::chrono::nanoseconds timeout, int64_t max_bytes) {
  if (descriptors != nullptr) descriptors->clear();
  auto deadline = DeadlineAfter(timeout);
  Frame frame = {};
  std::vector<char> content(kMaxInlineBytes);
  std::array<char, CMSG_SPACE(kMaxPacketDescriptors * sizeof(int))> control;
  iovec parts[2] = {{&frame, sizeof frame}, {content.data(), content.size()}};
  msghdr header = {};
  ssize_t received = -1;
  while (received < 0) {
    auto ready = PollUntil(socket_.get(), POLLIN, deadline);
    if (!ready.ok()) return ready.status();
    header = {};
    header.msg_iov = parts;
    header.msg_iovlen = 2;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    received = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (received >= 0 || errno == EINTR || errno == EAGAIN) continue;
    if (errno == ECONNRESET || errno == ENOTCONN || errno == EPIPE) return Gone();
    return base::FromErrno(errno, "recvmsg");
  }
  bool foreign = false;
  std::vector<base::UniqueFd> taken = TakeDescriptors(header, &foreign);
  // An empty packet and the end of the conversation look the same; either way nothing more is to be expected.
  if (received == 0) return Gone();
  if ((header.msg_flags & MSG_TRUNC) != 0) return base::InvalidArgument("channel: the packet is too long");
  if ((header.msg_flags & MSG_CTRUNC) != 0 || foreign) {
    return base::InvalidArgument("channel: the packet's control data is cut off or of an unknown kind");
  }
  if (received < static_cast<ssize_t>(sizeof frame) || frame.magic != kMagic || frame.kind > kMemfd) {
    return base::InvalidArgument("channel: the packet has no valid frame");
  }
  int64_t inline_bytes = received - static_cast<ssize_t>(sizeof frame);
  size_t payloads = frame.kind == kMemfd ? 1 : 0;
  if (frame.kind == kInline ? frame.bytes != static_cast<uint64_t>(inline_bytes) : inline_bytes != 0) {
    return base::InvalidArgument("channel: the packet's size does not match its frame");
  }
  if (frame.bytes > static_cast<uint64_t>(std::min(max_bytes, kMaxMessageBytes))) {
    return base::ResourceExhausted(StrCat("channel: the message has ", frame.bytes, " bytes, the limit is ",
                                          std::min(max_bytes, kMaxMessageBytes)));
  }
  if (taken.size() < payloads || taken.size() - payloads > static_cast<size_t>(kMaxDescriptors)) {
    return base::InvalidArgument(StrCat("channel: ", taken.size(), " descriptors came with the packet"));
  }
  if (frame.kind == kMemfd) {
    SOLSTICE_ASSIGN_OR_RETURN(std::string payload, ReadPayload(taken.front().get(), static_cast<int64_t>(frame.bytes)));
    SOLSTICE_RETURN_IF_ERROR(Parse(payload.data(), static_cast<int64_t>(payload.size()), message));
    taken.erase(taken.begin());
  } else {
    SOLSTICE_RETURN_IF_ERROR(Parse(content.data(), inline_bytes, message));
  }
  if (descriptors == nullptr && !taken.empty()) {
    return base::InvalidArgument("channel: descriptors came with a message that carries none");
  }
  if (descriptors != nullptr) *descriptors = std::move(taken);
  return absl::OkStatus();
}

bool Channel::Readable() const {
  pollfd entry = {socket_.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

}  // namespace solstice::sandbox
