#include <unistd.h>

#include <cstdio>

#include "runtime/worker/devices.h"
#include "runtime/worker/judge.h"
#include "runtime/worker/worker.h"

namespace solstice::worker {

int JudgeMain(int argc, char** argv) {
  HardenProcess();
  auto judge = Judge::Create([argc, argv] { return OpenDevice(argc, argv, DeviceUse::kJudge); });
  if (!judge.ok()) {
    std::fprintf(stderr, "judge: %s\n", base::MessageOf(judge.status()).c_str());
    return 1;
  }
  sandbox::Channel channel{base::UniqueFd(kChannelFd)};
  v1::internal::Hello hello;
  hello.set_pid(::getpid());
  *hello.mutable_device() = (*judge)->device().properties();
  DescribeDevice((*judge)->device(), &hello);
  int code = Serve(channel, std::move(hello),
                   [&judge](const auto& request, std::vector<base::UniqueFd>) { return (*judge)->Handle(request); });
  // Not exit(): a spoilt device may not come down in an orderly way.
  ::_exit(code);
}

}  // namespace solstice::worker
