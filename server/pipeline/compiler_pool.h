// Compiler zygotes and the compile cache. Sources that begin with costly headers go to a zygote that has precompiled
// just these, once there is one (docs/compilation.md). Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/sandbox/spawner.h"
#include "runtime/worker/worker.h"
#include "server/pipeline/header_compilers.h"
#include "server/store/store.h"
#include "solstice/v1/worker.pb.h"

namespace solstice::pipeline {

class CompilerPool {
 public:
  struct Compiled {
    v1::internal::Program program;
    bool cached = false;
  };

  // Starts `size` zygotes. FAILED_PRECONDITION with the compiler's words when one cannot start.
  static StatusOr<std::unique_ptr<CompilerPool>> Start(sandbox::Spawner* spawner, worker::Installation installation,
                                                       store::Store* store, int size, double timeout_s);
  ~CompilerPool();

  // From the cache of `tenant`, or by a zygote. One compile at a time a key: others with the same key wait for it. A
  // zygote that dies is replaced and the job tried once more; then UNAVAILABLE. CANCELLED after Kill(owner).
  StatusOr<Compiled> Compile(const std::string& tenant, const std::string& owner,
                             const v1::internal::ProgramSource& source);
  // Kills the zygote that works for `owner`, if any.
  void Kill(const std::string& owner);
  void Shutdown();

  const v1::Toolchain& toolchain() const { return toolchain_; }

 private:
  struct Slot {
    int index = 0;
    std::unique_ptr<worker::Client> client;
    worker::Client* borrowed = nullptr;  // works in its stead: of `headers_`
    bool busy = false;
    std::string owner;
    bool killed = false;
  };

  CompilerPool() = default;
  Status StartSlot(Slot* slot);
  StatusOr<Slot*> Acquire(const std::string& owner);
  void Release(Slot* slot);
  StatusOr<v1::internal::Program> RunJob(Slot* slot, const v1::internal::ProgramSource& source);
  StatusOr<v1::internal::Program> RunPlainJob(Slot* slot, const v1::internal::ProgramSource& source);
  // NOT_FOUND: no zygote has these headers; ABORTED: to be compiled without.
  StatusOr<v1::internal::Program> RunHeaderJob(Slot* slot, const v1::internal::ProgramSource& source,
                                               const v1::internal::ProgramSource& headers);
  StatusOr<v1::internal::Program> CallCompiler(worker::Client& client, const v1::internal::ProgramSource& source);
  StatusOr<Compiled> CompileUncached(const std::string& key, const std::string& owner,
                                     const v1::internal::ProgramSource& source);

  sandbox::Spawner* spawner_ = nullptr;
  worker::Installation installation_;
  store::Store* store_ = nullptr;
  double timeout_s_ = 0;
  v1::Toolchain toolchain_;
  std::unique_ptr<HeaderCompilers> headers_;

  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<std::unique_ptr<Slot>> slots_ SOLSTICE_GUARDED_BY(mutex_);
  std::set<std::string> in_flight_ SOLSTICE_GUARDED_BY(mutex_);
  bool shut_down_ SOLSTICE_GUARDED_BY(mutex_) = false;
};

}  // namespace solstice::pipeline
