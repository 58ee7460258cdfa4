// The compiler zygote: opens the libraries once, then forks a child for every submission.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "runtime/base/strings.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/nvjitlink/nvjitlink_linker.h"
#include "runtime/compile/nvrtc/nvrtc_frontend.h"
#include "runtime/worker/compile_child.h"
#include "runtime/worker/service.h"
#include "runtime/worker/worker.h"

namespace solstice::worker {
namespace {

constexpr uid_t kJailUid = 65534;

StatusOr<std::unique_ptr<compile::Compiler>> OpenCompiler(int argc, char** argv) {
  SOLSTICE_ASSIGN_OR_RETURN(Flags flags, Flags::Parse(argc, argv));
  // NVRTC opens its built-ins by a bare name; loaded already, they are found wherever they lie.
  for (const std::string& library : flags.All("preload")) {
    if (::dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
      return base::FailedPrecondition(base::StrCat("cannot load ", library, ": ", ::dlerror()));
    }
  }
  SOLSTICE_ASSIGN_OR_RETURN(auto frontend, compile::OpenNvrtc(flags.Get("nvrtc")));
  SOLSTICE_ASSIGN_OR_RETURN(auto linker, compile::OpenNvJitLink(flags.Get("nvjitlink")));
  compile::CompilerConfig config;
  config.include_paths = flags.All("include");
  config.headers_digest = flags.Get("headers-digest");
  return std::make_unique<compile::Compiler>(std::move(frontend), std::move(linker), std::move(config));
}

// Ends whatever a compile left running, so that it cannot meet the next tenant's. Only in a process namespace of our
// own: the parent is its init and nobody else has this uid there.
void EndLeftovers() {
  if (::getppid() == 1 && ::getuid() == kJailUid) ::kill(-1, SIGKILL);
}

StatusOr<Answer> HandleCompile(compile::Compiler& compiler, const v1::internal::CompileJob& job, int channel_fd) {
  v1::internal::CompileLimits limits = EffectiveLimits(job.limits());
  auto program = CompileInChild([&] { return compiler.Compile(job.source(), limits); }, limits, channel_fd);
  EndLeftovers();
  SOLSTICE_RETURN_IF_ERROR(program.status());
  Answer answer;
  *answer.reply.mutable_program() = *std::move(program);
  v1::internal::Program* reply = answer.reply.mutable_program();
  if (reply->arch().empty()) reply->set_arch(job.source().arch());
  if (!reply->has_toolchain()) *reply->mutable_toolchain() = compiler.toolchain();
  return answer;
}

}  // namespace

int CompileMain(int argc, char** argv) {
  HardenProcess();
  auto compiler = OpenCompiler(argc, argv);
  if (!compiler.ok()) {
    std::fprintf(stderr, "compiler: %s\n", base::MessageOf(compiler.status()).c_str());
    return 1;
  }
  sandbox::Channel channel{base::UniqueFd(kChannelFd)};
  v1::internal::Hello hello;
  hello.set_pid(::getpid());
  *hello.mutable_toolchain() = (*compiler)->toolchain();
  int code =
      Serve(channel, std::move(hello), [&](const v1::internal::WorkerRequest& request, auto) -> StatusOr<Answer> {
        if (!request.has_compile()) return base::InvalidArgument("the compiler only compiles");
        return HandleCompile(**compiler, request.compile(), channel.fd());
      });
  // Not exit(): the compiler's own threads and handlers have nothing left to do.
  ::_exit(code);
}

}  // namespace solstice::worker
