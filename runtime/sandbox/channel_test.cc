#include "runtime/sandbox/channel.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "runtime/base/file.h"
#include "solstice/v1/worker.pb.h"

namespace solstice::sandbox {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using v1::internal::WorkerRequest;

// What a hostile peer can put together: the same layout as the channel's frame.
struct RawFrame {
  uint32_t magic = 0x31434C53;
  uint32_t kind = 0;
  uint64_t bytes = 0;
};

int OpenDescriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

class ChannelTest : public testing::Test {
 protected:
  void SetUp() override {
    auto pair = Channel::MakePair();
    ASSERT_TRUE(pair.ok());
    channel_ = std::make_unique<Channel>(std::move(pair->first));
    peer_ = std::move(pair->second);
  }

  // Sends raw bytes and descriptors as a peer that does not use Channel.
  void SendRaw(const std::string& bytes, const std::vector<int>& descriptors = {}) {
    iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
    msghdr header = {};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    std::vector<char> control(CMSG_SPACE(descriptors.size() * sizeof(int)), '\0');
    if (!descriptors.empty()) {
      header.msg_control = control.data();
      header.msg_controllen = control.size();
      cmsghdr* rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
      std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size() * sizeof(int));
    }
    ASSERT_EQ(sendmsg(peer_.get(), &header, MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size())) << strerror(errno);
  }

  static std::string Framed(RawFrame frame, const std::string& content) {
    return std::string(reinterpret_cast<const char*>(&frame), sizeof frame) + content;
  }

  absl::StatusCode ReceiveCode(int64_t max_bytes = Channel::kMaxMessageBytes) {
    WorkerRequest message;
    std::vector<base::UniqueFd> descriptors;
    Status status = channel_->Receive(&message, &descriptors, seconds(5), max_bytes);
    EXPECT_TRUE(status.ok() || descriptors.empty());
    return status.code();
  }

  std::unique_ptr<Channel> channel_;
  base::UniqueFd peer_;
};

TEST_F(ChannelTest, SmallLargeAndDescriptors) {
  Channel other(std::move(peer_));
  for (size_t size : {size_t{0}, size_t{100}, size_t{61430}, size_t{61500}, size_t{5} << 20}) {
    WorkerRequest request;
    request.mutable_header()->set_sequence(7);
    request.mutable_load()->set_ptx(std::string(size, 'p'));
    base::UniqueFd file(memfd_create("x", 0));
    ASSERT_EQ(write(file.get(), "hello", 5), 5);
    ASSERT_TRUE(channel_->Send(request, {file.get(), 0}).ok());
    WorkerRequest received;
    std::vector<base::UniqueFd> descriptors;
    ASSERT_TRUE(other.Receive(&received, &descriptors, seconds(5)).ok());
    EXPECT_EQ(received.load().ptx().size(), size);
    ASSERT_EQ(descriptors.size(), 2u);
    EXPECT_EQ(*base::ReadMemfd(descriptors[0].get(), 100), "hello");
    EXPECT_NE(fcntl(descriptors[0].get(), F_GETFD) & FD_CLOEXEC, 0);
  }
}

TEST_F(ChannelTest, AsManyDescriptorsAsAllowedBesideALargeMessage) {
  Channel other(std::move(peer_));
  WorkerRequest request;
  request.mutable_load()->set_ptx(std::string(100000, 'p'));
  ASSERT_TRUE(channel_->Send(request, std::vector<int>(Channel::kMaxDescriptors, 0)).ok());
  std::vector<base::UniqueFd> descriptors;
  ASSERT_TRUE(other.Receive(&request, &descriptors, seconds(5)).ok());
  EXPECT_EQ(descriptors.size(), static_cast<size_t>(Channel::kMaxDescriptors));
  EXPECT_EQ(channel_->Send(request, std::vector<int>(Channel::kMaxDescriptors + 1, 0)).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ChannelTest, TooLargeToSend) {
  WorkerRequest request;
  request.mutable_load()->set_ptx(std::string(Channel::kMaxMessageBytes, 'p'));
  EXPECT_EQ(channel_->Send(request).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(ChannelTest, TimeoutAndPeerDeath) {
  WorkerRequest message;
  EXPECT_EQ(channel_->Receive(&message, nullptr, milliseconds(1)).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(channel_->Receive(&message, nullptr, milliseconds(-5)).code(), absl::StatusCode::kDeadlineExceeded);
  std::thread killer([this] { peer_.Reset(); });
  EXPECT_EQ(channel_->Receive(&message, nullptr, std::chrono::nanoseconds::max()).code(),
            absl::StatusCode::kUnavailable);
  killer.join();
  EXPECT_EQ(channel_->Send(message).code(), absl::StatusCode::kUnavailable);
}

TEST_F(ChannelTest, PacketsBeforePeerDeathAreStillRead) {
  SendRaw(Framed({}, ""));
  peer_.Reset();
  EXPECT_EQ(ReceiveCode(), absl::StatusCode::kOk);
  EXPECT_EQ(ReceiveCode(), absl::StatusCode::kUnavailable);
}

TEST_F(ChannelTest, MalformedPacketsAreRefusedAndLeakNothing) {
  int before = OpenDescriptors();
  const std::vector<int> some(5, 0);
  RawFrame wrong_magic;
  wrong_magic.magic = 1;
  RawFrame wrong_kind;
  wrong_kind.kind = 2;
  RawFrame wrong_size;
  wrong_size.bytes = 5;
  RawFrame one_byte;
  one_byte.bytes = 1;
  RawFrame memfd_with_text;
  memfd_with_text.kind = 1;
  memfd_with_text.bytes = 3;
  for (const std::string& packet :
       {std::string("x"), std::string(15, 'x'), Framed(wrong_magic, ""), Framed(wrong_kind, ""),
        Framed(wrong_size, "abc"), Framed(one_byte, "\xFF"), Framed(memfd_with_text, "abc")}) {
    SendRaw(packet, some);
    EXPECT_EQ(ReceiveCode(), absl::StatusCode::kInvalidArgument);
  }
  SendRaw(std::string(100000, 'x'), some);
  EXPECT_EQ(ReceiveCode(), absl::StatusCode::kInvalidArgument) << "longer than any packet";
  SendRaw(Framed({}, ""), std::vector<int>(252, 0));
  EXPECT_EQ(ReceiveCode(), absl::StatusCode::kInvalidArgument) << "more descriptors than fit";
  SendRaw(Framed({}, ""), std::vector<int>(251, 0));
  EXPECT_EQ(ReceiveCode(), absl::StatusCode::kInvalidArgument) << "one descriptor too many";
  SendRaw(Framed({}, ""), some);
  WorkerRequest message;
  EXPECT_EQ(channel_->Receive(&message, nullptr, seconds(5)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(ChannelTest, DeepNestingIsRefused) {
  // Header, an unknown field holding groups 100 deep.
  std::string deep(100, '\x7B');  // field 15, start group
  RawFrame frame;
  deep += std::string(100, '\x7C');
  frame.bytes = deep.size();
  SendRaw(Framed(frame, deep));
  EXPECT_EQ(ReceiveCode(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ChannelTest, HostilePayloadFiles) {
  int before = OpenDescriptors();
  {
    RawFrame frame;
    frame.kind = 1;
    frame.bytes = 100;
    SendRaw(Framed(frame, ""));
    EXPECT_EQ(ReceiveCode(), absl::StatusCode::kInvalidArgument) << "no payload";
    SendRaw(Framed(frame, ""), {0});
    EXPECT_EQ(ReceiveCode(), absl::StatusCode::kInvalidArgument) << "not a memory file";
    base::UniqueFd unsealed(memfd_create("x", MFD_ALLOW_SEALING));
    ASSERT_EQ(ftruncate(unsealed.get(), 100), 0);
    SendRaw(Framed(frame, ""), {unsealed.get()});
    EXPECT_EQ(ReceiveCode(), absl::StatusCode::kInvalidArgument) << "still writable";
    ASSERT_EQ(fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    SendRaw(Framed(frame, ""), {unsealed.get()});
    EXPECT_EQ(ReceiveCode(), absl::StatusCode::kInvalidArgument) << "still writable";
    auto sealed = base::SealedMemfd("x", std::string(99, '\0'));
    ASSERT_TRUE(sealed.ok());
    SendRaw(Framed(frame, ""), {sealed->get()});
    EXPECT_EQ(ReceiveCode(), absl::StatusCode::kInvalidArgument) << "size differs";
    frame.bytes = uint64_t{1} << 62;
    SendRaw(Framed(frame, ""), {sealed->get()});
    EXPECT_EQ(ReceiveCode(), absl::StatusCode::kResourceExhausted);
    frame.bytes = 99;
    SendRaw(Framed(frame, ""), {sealed->get()});
    EXPECT_EQ(ReceiveCode(98), absl::StatusCode::kResourceExhausted) << "the caller's own limit";
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(ChannelTest, FloodOfDescriptorsWithoutRoomIsRefused) {
  // The kernel cuts the list where this process may open no more files; the packet must not pass as complete.
  rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old_limit), 0);
  SendRaw(Framed({}, ""), std::vector<int>(40, 0));
  rlimit low = old_limit;
  low.rlim_cur = static_cast<rlim_t>(OpenDescriptors() + 5);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  WorkerRequest message;
  std::vector<base::UniqueFd> descriptors;
  Status status = channel_->Receive(&message, &descriptors, seconds(5));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &old_limit), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace solstice::sandbox
