// Messages with descriptors between a server and a worker over one SOCK_SEQPACKET pair. A message over 60 KiB travels
// in a sealed memfd beside a short one, transparently. Not thread-safe: one thread sends and receives at an end.
#pragma once

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "google/protobuf/message_lite.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace solstice::sandbox {

class Channel {
 public:
  static constexpr int64_t kMaxMessageBytes = 256 << 20;
  static constexpr int kMaxDescriptors = 250;

  explicit Channel(base::UniqueFd socket) : socket_(std::move(socket)) {}
  static StatusOr<std::pair<base::UniqueFd, base::UniqueFd>> MakePair();

  // Borrows `descriptors`. UNAVAILABLE: the other end is gone; DEADLINE_EXCEEDED: it did not read for 30 s.
  Status Send(const google::protobuf::MessageLite& message, const std::vector<int>& descriptors = {});
  // DEADLINE_EXCEEDED after `timeout`; UNAVAILABLE when the other end is gone; INVALID_ARGUMENT for a malformed packet,
  // RESOURCE_EXHAUSTED for one of more than `max_bytes`: the conversation cannot go on after either. The other end may
  // be hostile: sizes are checked before memory is taken, and descriptors that came with a refused packet are closed.
  // `descriptors` is replaced; nullptr refuses any.
  Status Receive(google::protobuf::MessageLite* message, std::vector<base::UniqueFd>* descriptors,
                 std::chrono::nanoseconds timeout, int64_t max_bytes = kMaxMessageBytes);

  // Whether there is something to receive, or the other end is gone.
  bool Readable() const;

  int fd() const { return socket_.get(); }
  void Close() { socket_.Reset(); }

 private:
  base::UniqueFd socket_;
};

}  // namespace solstice::sandbox
