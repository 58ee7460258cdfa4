#include "runtime/worker/devices.h"

#include <charconv>

#include "runtime/base/strings.h"
#include "runtime/device/emulator/emulator.h"

namespace solstice::worker {

StatusOr<std::unique_ptr<device::Device>> OpenDevice(v1::DeviceKind kind, int ordinal) {
  if (kind == v1::EMULATOR && ordinal == 0) return device::MakeEmulator();
  return base::FailedPrecondition(base::StrCat("this build has no device ", v1::DeviceKind_Name(kind), " ", ordinal),
                                  "use the emulator");
}

StatusOr<std::unique_ptr<device::Device>> OpenDevice(int argc, char** argv) {
  SOLSTICE_ASSIGN_OR_RETURN(Flags flags, Flags::Parse(argc, argv));
  std::string name = flags.Get("device"), number = flags.Get("ordinal");
  int ordinal = 0;
  auto parsed = std::from_chars(number.data(), number.data() + number.size(), ordinal);
  if (parsed.ec != std::errc() || parsed.ptr != number.data() + number.size()) {
    return base::InvalidArgument(base::StrCat("--ordinal=", base::Quote(number)));
  }
  for (v1::DeviceKind kind : {v1::EMULATOR, v1::CUDA}) {
    if (name == DeviceFlag(kind)) return OpenDevice(kind, ordinal);
  }
  return base::InvalidArgument(base::StrCat("--device=", base::Quote(name)));
}

std::string DeviceFlag(v1::DeviceKind kind) { return base::Lower(v1::DeviceKind_Name(kind)); }

}  // namespace solstice::worker
