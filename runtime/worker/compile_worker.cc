// The compiler zygote: opens the libraries once, then forks a child for every submission.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "runtime/base/strings.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/nvjitlink/nvjitlink_linker.h"
#include "runtime/compile/nvrtc/nvrtc_frontend.h"
#include "runtime/worker/compile_child.h"
#include "runtime/worker/header_file.h"
#include "runtime/worker/service.h"
#include "runtime/worker/worker.h"

namespace solstice::worker {
namespace {

constexpr uid_t kJailUid = 65534;

StatusOr<std::unique_ptr<compile::Compiler>> OpenCompiler(const Flags& flags) {
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

// With a precompiled header NVRTC keeps its memory in a file, which /tmp must have room for. What needs more is
// compiled elsewhere.
constexpr int64_t kHeapFileBytes = 256 << 20;

// One zygote. Its own memory never holds anything of a submission but requests: what reads them is a child.
class CompileService {
 public:
  // `headers_file`: where its precompiled header goes; empty: it makes none.
  CompileService(compile::Compiler& compiler, std::string headers_file, int channel_fd)
      : compiler_(compiler), headers_file_(std::move(headers_file)), channel_fd_(channel_fd) {}

  StatusOr<Answer> Handle(const v1::internal::WorkerRequest& request) {
    bool first = !std::exchange(used_, true);
    if (request.has_compile()) return Compile(request.compile());
    if (!request.has_precompile_headers()) return base::InvalidArgument("the compiler only compiles");
    if (!first || headers_file_.empty()) {
      return base::FailedPrecondition("headers are precompiled by a compiler started for it, before anything else");
    }
    SOLSTICE_RETURN_IF_ERROR(compiler_.Precompile(request.precompile_headers().headers(), headers_file_));
    SOLSTICE_ASSIGN_OR_RETURN(header_, HeaderFile::Freeze(headers_file_));
    Answer answer;
    answer.reply.set_loaded(true);
    return answer;
  }

 private:
  StatusOr<Answer> Compile(const v1::internal::CompileJob& job) {
    v1::internal::CompileLimits limits = EffectiveLimits(job.limits());
    CheckHeader();
    auto program = CompileInChild([&] { return compiler_.Compile(job.source(), limits); }, limits, channel_fd_,
                                  header_ == nullptr ? 0 : kHeapFileBytes);
    EndLeftovers();
    CheckHeader();
    SOLSTICE_RETURN_IF_ERROR(program.status());
    Answer answer;
    *answer.reply.mutable_program() = *std::move(program);
    v1::internal::Program* reply = answer.reply.mutable_program();
    if (reply->arch().empty()) reply->set_arch(job.source().arch());
    if (!reply->has_toolchain()) *reply->mutable_toolchain() = compiler_.toolchain();
    return answer;
  }

  // A zygote whose header may be another's work serves nobody.
  void CheckHeader() const {
    if (header_ == nullptr) return;
    Status status = header_->Tidy();
    if (status.ok()) return;
    std::fprintf(stderr, "compiler: %s\n", base::MessageOf(status).c_str());
    ::_exit(1);
  }

  compile::Compiler& compiler_;
  const std::string headers_file_;
  const int channel_fd_;
  std::unique_ptr<HeaderFile> header_;
  bool used_ = false;
};

}  // namespace

int CompileMain(int argc, char** argv) {
  HardenProcess();
  auto flags = Flags::Parse(argc, argv);
  auto compiler = flags.ok() ? OpenCompiler(*flags) : flags.status();
  if (!compiler.ok()) {
    std::fprintf(stderr, "compiler: %s\n", base::MessageOf(compiler.status()).c_str());
    return 1;
  }
  sandbox::Channel channel{base::UniqueFd(kChannelFd)};
  v1::internal::Hello hello;
  hello.set_pid(::getpid());
  *hello.mutable_toolchain() = (*compiler)->toolchain();
  CompileService service(**compiler, flags->Get("headers-file"), channel.fd());
  int code = Serve(channel, std::move(hello),
                   [&](const v1::internal::WorkerRequest& request, auto) { return service.Handle(request); });
  // Not exit(): the compiler's own threads and handlers have nothing left to do.
  ::_exit(code);
}

}  // namespace solstice::worker
