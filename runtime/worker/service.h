// What the three workers share: the conversation on descriptor 3, flags, text that is safe to send.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/sandbox/channel.h"
#include "solstice/v1/worker.pb.h"

namespace solstice::worker {

inline constexpr int kChannelFd = 3;

struct Answer {
  v1::internal::WorkerReply reply;
  std::vector<base::UniqueFd> descriptors;
  bool last = false;  // the worker ends after sending it
};

using Handler = std::function<StatusOr<Answer>(const v1::internal::WorkerRequest& request,
                                               std::vector<base::UniqueFd> descriptors)>;

// Sends `hello`, then answers requests, echoing their headers, until the other end goes away (0) or an answer is the
// last one (0). A Status of the handler becomes a WorkerError. A malformed request ends the worker (1).
int Serve(sandbox::Channel& channel, v1::internal::Hello hello, const Handler& handler);

// Keeps this process's memory from others of its uid, and its uid's signals from killing it by a broken pipe.
void HardenProcess();

// Values of "--name=value" in order. INVALID_ARGUMENT for arguments of another form, from argv[2] on.
class Flags {
 public:
  static StatusOr<Flags> Parse(int argc, char** argv);
  std::string Get(std::string_view name) const;  // the last one, "" if there is none
  std::vector<std::string> All(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, std::string>> values_;
};

// Replaces what is not UTF-8 in every string field, nested ones too: protobuf would refuse to parse it at the other
// end.
void MakeUtf8(google::protobuf::Message* message);
std::string ToUtf8(std::string_view text);

}  // namespace solstice::worker
