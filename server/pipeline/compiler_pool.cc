#include "server/pipeline/compiler_pool.h"

#include <spdlog/spdlog.h>

#include "runtime/base/crypto.h"
#include "runtime/base/strings.h"
#include "runtime/compile/compile.h"

namespace solstice::pipeline {
namespace {

constexpr int64_t kCompileMemoryBytes = int64_t{4} << 30;
constexpr int64_t kCubinBytes = 32 << 20;
constexpr int64_t kLogBytes = 64 << 10;
constexpr std::chrono::seconds kStartTimeout(30);
// What a zygote gets beyond the compile limit before it counts as hung.
constexpr double kGraceS = 10;

std::string CacheKey(const std::string& tenant, const std::string& program_key) {
  return base::StrCat("compile/1/", tenant, "/", program_key);
}

// A stored program with its checksum; empty when it is damaged or of another format.
std::string Seal(const std::string& bytes) { return base::Sha256(bytes) + bytes; }
std::string Unseal(const std::string& value) {
  if (value.size() < 32) return {};
  std::string bytes = value.substr(32);
  return base::Sha256(bytes) == value.substr(0, 32) ? bytes : std::string();
}

}  // namespace

StatusOr<std::unique_ptr<CompilerPool>> CompilerPool::Start(sandbox::Spawner* spawner,
                                                            worker::Installation installation, store::Store* store,
                                                            int size, double timeout_s) {
  std::unique_ptr<CompilerPool> pool(new CompilerPool);
  pool->spawner_ = spawner;
  pool->installation_ = std::move(installation);
  pool->store_ = store;
  pool->timeout_s_ = timeout_s;
  for (int i = 0; i < size; ++i) {
    auto slot = std::make_unique<Slot>();
    slot->index = i;
    // The first proves that the compiler works; the rest start when they are needed.
    if (i == 0) {
      SOLSTICE_RETURN_IF_ERROR(pool->StartSlot(slot.get()));
      pool->toolchain_ = slot->client->hello().toolchain();
    }
    base::MutexLock lock(pool->mutex_);
    pool->slots_.push_back(std::move(slot));
  }
  pool->headers_ = std::make_unique<HeaderCompilers>(spawner, pool->installation_, size);
  return pool;
}

CompilerPool::~CompilerPool() { Shutdown(); }

Status CompilerPool::StartSlot(Slot* slot) {
  // A failed start must leave no client behind that Kill() might reach.
  SOLSTICE_ASSIGN_OR_RETURN(auto spec, worker::CompilerJail(installation_, slot->index));
  SOLSTICE_ASSIGN_OR_RETURN(auto client, worker::Client::Start(*spawner_, spec, kStartTimeout));
  base::MutexLock lock(mutex_);
  if (shut_down_) return base::Cancelled("shutting down");
  slot->client = std::move(client);
  return absl::OkStatus();
}

StatusOr<CompilerPool::Slot*> CompilerPool::Acquire(const std::string& owner) {
  base::MutexLock lock(mutex_);
  while (true) {
    if (shut_down_) return base::Cancelled("shutting down");
    Slot* best = nullptr;
    for (auto& slot : slots_) {
      if (slot->busy) continue;
      if (best == nullptr || (best->client == nullptr && slot->client != nullptr)) best = slot.get();
    }
    if (best != nullptr) {
      best->busy = true;
      best->owner = owner;
      best->killed = false;
      return best;
    }
    changed_.Wait(mutex_);
  }
}

void CompilerPool::Release(Slot* slot) {
  base::MutexLock lock(mutex_);
  slot->busy = false;
  slot->owner.clear();
  if (slot->killed) slot->client.reset();
  changed_.NotifyAll();
}

StatusOr<v1::internal::Program> CompilerPool::CallCompiler(worker::Client& client,
                                                           const v1::internal::ProgramSource& source) {
  v1::internal::WorkerRequest request;
  auto* job = request.mutable_compile();
  *job->mutable_source() = source;
  job->mutable_limits()->set_time_s(timeout_s_);
  job->mutable_limits()->set_memory_bytes(kCompileMemoryBytes);
  job->mutable_limits()->set_cubin_bytes(kCubinBytes);
  job->mutable_limits()->set_log_bytes(kLogBytes);
  auto timeout =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(timeout_s_ + kGraceS));
  SOLSTICE_ASSIGN_OR_RETURN(auto reply, client.Call(std::move(request), {}, nullptr, timeout));
  if (!reply.has_program()) return base::Internal("the compiler answered with something else than a program");
  return std::move(*reply.mutable_program());
}

StatusOr<v1::internal::Program> CompilerPool::RunPlainJob(Slot* slot, const v1::internal::ProgramSource& source) {
  bool need_start = false;
  {
    base::MutexLock lock(mutex_);
    need_start = slot->client == nullptr || !slot->client->alive();
  }
  if (need_start) SOLSTICE_RETURN_IF_ERROR(StartSlot(slot));
  auto program = CallCompiler(*slot->client, source);
  if (!program.ok()) {
    base::MutexLock lock(mutex_);
    slot->client.reset();
    if (slot->killed) return base::Cancelled("the evaluation was cancelled");
  }
  return program;
}

StatusOr<v1::internal::Program> CompilerPool::RunHeaderJob(Slot* slot, const v1::internal::ProgramSource& source,
                                                           const v1::internal::ProgramSource& headers) {
  worker::Client* client = headers_->Acquire(headers);
  if (client == nullptr) return base::NotFound("");
  bool go_on = false;
  {
    base::MutexLock lock(mutex_);
    go_on = !slot->killed && !shut_down_;
    if (go_on) slot->borrowed = client;
  }
  StatusOr<v1::internal::Program> program = base::Cancelled("the evaluation was cancelled");
  bool usable = true;
  if (go_on) {
    program = CallCompiler(*client, source);
    base::MutexLock lock(mutex_);
    slot->borrowed = nullptr;
    usable = (program.ok() || absl::IsAborted(program.status())) && !slot->killed;
    if (!program.ok() && slot->killed) program = base::Cancelled("the evaluation was cancelled");
  }
  headers_->Release(client, usable);
  return program;
}

StatusOr<v1::internal::Program> CompilerPool::RunJob(Slot* slot, const v1::internal::ProgramSource& source) {
  v1::internal::ProgramSource headers = compile::SharedHeaders(source);
  if (headers.sources().empty()) return RunPlainJob(slot, source);
  auto program = RunHeaderJob(slot, source, headers);
  if (program.ok() || absl::IsCancelled(program.status())) return program;
  if (!absl::IsNotFound(program.status()) && !absl::IsAborted(program.status())) {
    spdlog::warn("a compiler with precompiled headers failed: {}", base::MessageOf(program.status()));
  }
  // The first of a kind waits for nothing: the header is made after it, for those that follow.
  program = RunPlainJob(slot, source);
  if (program.ok()) headers_->Request(headers);
  return program;
}

StatusOr<CompilerPool::Compiled> CompilerPool::CompileUncached(const std::string& key, const std::string& owner,
                                                               const v1::internal::ProgramSource& source) {
  SOLSTICE_ASSIGN_OR_RETURN(Slot * slot, Acquire(owner));
  auto program = RunJob(slot, source);
  if (!program.ok() && !absl::IsCancelled(program.status())) {
    spdlog::warn("compiler {} failed, trying once more: {}", slot->index, base::MessageOf(program.status()));
    program = RunJob(slot, source);
  }
  Release(slot);
  if (!program.ok()) return program.status();
  Compiled compiled{*std::move(program), false};
  // Limits depend on the machine's load: only what compiled is kept.
  if (compiled.program.verdict() == v1::PASSED) {
    store::Batch batch;
    batch.Put(key, Seal(compiled.program.SerializeAsString()));
    Status stored = store_->Write(batch, store::Durability::kBuffered);
    if (!stored.ok()) spdlog::warn("compile cache: {}", base::MessageOf(stored));
  }
  return compiled;
}

StatusOr<CompilerPool::Compiled> CompilerPool::Compile(const std::string& tenant, const std::string& owner,
                                                       const v1::internal::ProgramSource& source) {
  const std::string key = CacheKey(tenant, compile::ProgramKey(source, toolchain_));
  {
    base::MutexLock lock(mutex_);
    while (in_flight_.count(key) > 0 && !shut_down_) changed_.Wait(mutex_);
    if (shut_down_) return base::Cancelled("shutting down");
    in_flight_.insert(key);
  }
  StatusOr<Compiled> result = base::NotFound("");
  if (auto value = store_->Get(key); value.ok()) {
    Compiled compiled;
    std::string bytes = Unseal(*value);
    if (!bytes.empty() && compiled.program.ParseFromString(bytes) &&
        compiled.program.format_version() == compile::kProgramFormat) {
      compiled.cached = true;
      result = std::move(compiled);
    } else {
      spdlog::warn("compile cache: entry {} is damaged, compiling again", key);
    }
  }
  if (!result.ok()) result = CompileUncached(key, owner, source);
  base::MutexLock lock(mutex_);
  in_flight_.erase(key);
  changed_.NotifyAll();
  return result;
}

void CompilerPool::Kill(const std::string& owner) {
  base::MutexLock lock(mutex_);
  for (auto& slot : slots_) {
    if (slot->busy && slot->owner == owner) {
      slot->killed = true;
      worker::Client* working = slot->borrowed != nullptr ? slot->borrowed : slot->client.get();
      if (working != nullptr) working->Kill();
    }
  }
}

void CompilerPool::Shutdown() {
  base::MutexLock lock(mutex_);
  shut_down_ = true;
  if (headers_ != nullptr) headers_->Shutdown();
  for (auto& slot : slots_) {
    if (slot->borrowed != nullptr) slot->borrowed->Kill();
    if (slot->client != nullptr) slot->client->Kill();
  }
  changed_.NotifyAll();
}

}  // namespace solstice::pipeline
