#include <unistd.h>

#include <cstdio>

#include "runtime/device/cuda/probe.h"
#include "runtime/worker/service.h"
#include "runtime/worker/worker.h"

namespace solstice::worker {

int ProbeMain(int argc, char** argv) {
  HardenProcess();
  auto flags = Flags::Parse(argc, argv);
  if (!flags.ok()) {
    std::fprintf(stderr, "probe: %s\n", base::MessageOf(flags.status()).c_str());
    return 1;
  }
  device::cuda::ProbeOptions options;
  options.cupti_library = flags->Get("cupti");
  options.owner = ::getppid();
  v1::internal::WorkerReply reply;
  reply.mutable_header()->set_version(kProtocolVersion);
  *reply.mutable_probe() = device::cuda::ProbeHost(options);
  MakeUtf8(&reply);
  sandbox::Channel channel{base::UniqueFd(kChannelFd)};
  Status sent = channel.Send(reply);
  if (!sent.ok()) std::fprintf(stderr, "probe: %s\n", base::MessageOf(sent).c_str());
  std::fflush(stderr);
  // Not exit(): a driver that does not work may not come down in an orderly way either.
  ::_exit(sent.ok() ? 0 : 1);
}

}  // namespace solstice::worker
