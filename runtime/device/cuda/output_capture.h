// What device code prints: the driver writes it to the process's standard output (printf) and error (assert). While an
// OutputCapture lives, both lead into a file of its own. One a process; for a runner, which prints nothing itself.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace solstice::device::cuda {

class OutputCapture {
 public:
  static StatusOr<std::unique_ptr<OutputCapture>> Start();
  ~OutputCapture();
  // What was printed since the last call, at most `most_bytes` of it, as valid UTF-8.
  std::string Take(size_t most_bytes);

 private:
  OutputCapture() = default;
  base::UniqueFd file_, saved_out_, saved_err_;
};

}  // namespace solstice::device::cuda
