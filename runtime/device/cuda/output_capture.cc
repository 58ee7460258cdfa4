#include "runtime/device/cuda/output_capture.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "runtime/base/strings.h"

namespace solstice::device::cuda {

StatusOr<std::unique_ptr<OutputCapture>> OutputCapture::Start() {
  std::unique_ptr<OutputCapture> capture(new OutputCapture);
  capture->file_ = base::UniqueFd(::memfd_create("device-output", MFD_CLOEXEC));
  if (!capture->file_.valid()) return base::FromErrno(errno, "memfd for device output");
  std::fflush(nullptr);
  capture->saved_out_ = base::UniqueFd(::dup(STDOUT_FILENO));
  capture->saved_err_ = base::UniqueFd(::dup(STDERR_FILENO));
  if (::dup2(capture->file_.get(), STDOUT_FILENO) < 0 || ::dup2(capture->file_.get(), STDERR_FILENO) < 0) {
    return base::FromErrno(errno, "redirecting device output");
  }
  return capture;
}

OutputCapture::~OutputCapture() {
  std::fflush(nullptr);
  if (saved_out_.valid()) ::dup2(saved_out_.get(), STDOUT_FILENO);
  if (saved_err_.valid()) ::dup2(saved_err_.get(), STDERR_FILENO);
}

std::string OutputCapture::Take(size_t most_bytes) {
  std::fflush(nullptr);
  std::string text(most_bytes, '\0');
  ssize_t got = ::pread(file_.get(), text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  // The descriptors share one offset: both start again at the beginning.
  if (::ftruncate(file_.get(), 0) == 0) ::lseek(file_.get(), 0, SEEK_SET);
  return base::IsValidUtf8(text) ? text : std::string(base::Quote(text, text.size() * 4));
}

}  // namespace solstice::device::cuda
