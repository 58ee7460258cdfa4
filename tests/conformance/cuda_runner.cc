// A GPU's part of the runner. A fault spoils a process's context for good: a child process runs the cases and leaves
// the answers in memory that it shares with this one, which starts another child for what is left.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "runtime/base/strings.h"
#include "runtime/device/cuda/cuda_device.h"
#include "tests/conformance/runner.h"

namespace solstice::conformance {
namespace {

using base::StrCat;

constexpr size_t kCasesPerModule = 24;
constexpr int kMostChildren = 40;
constexpr size_t kTextBytes = 240;

enum class State : uint32_t { kPending, kRunning, kDone, kNotExecuted };

// Of one case, in shared memory.
struct Slot {
  State state;
  char why_not[kTextBytes];
};

struct Batch {
  Module module;
  std::vector<size_t> cases;
  std::string cubin;
  std::string why_not;
};

void SetText(char* to, const std::string& text) {
  const size_t bytes = std::min(text.size(), kTextBytes - 1);
  std::memcpy(to, text.data(), bytes);
  to[bytes] = '\0';
}

std::vector<Batch> MakeBatches(const std::vector<Case>& cases, size_t per_module) {
  std::vector<Batch> batches;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (batches.empty() || batches.back().cases.size() >= per_module || batches.back().module.arch != cases[i].arch) {
      batches.push_back({{cases[i].arch, ModuleHeader(cases[i].arch), {}}, {}, "", ""});
    }
    Batch& batch = batches.back();
    batch.module.ptx += cases[i].ptx;
    batch.module.entries.push_back(cases[i].entry);
    batch.cases.push_back(i);
  }
  return batches;
}

void AssembleAll(Assembler& assembler, std::vector<Batch>& batches) {
  std::atomic<size_t> next = 0;
  std::vector<std::thread> threads;
  const unsigned count = std::max(1u, std::thread::hardware_concurrency());
  for (unsigned t = 0; t < count; ++t) {
    threads.emplace_back([&] {
      for (size_t i = next++; i < batches.size(); i = next++) {
        auto cubin = assembler.Assemble(batches[i].module);
        if (cubin.ok()) {
          batches[i].cubin = *std::move(cubin);
        } else {
          batches[i].why_not = base::MessageOf(cubin.status());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Modules that assemble; a case that does not is in one alone.
std::vector<Batch> AssembledBatches(const std::vector<Case>& cases, Assembler& assembler) {
  std::vector<Batch> batches = MakeBatches(cases, kCasesPerModule), result;
  AssembleAll(assembler, batches);
  std::vector<Batch> single;
  for (Batch& batch : batches) {
    if (batch.why_not.empty()) {
      result.push_back(std::move(batch));
      continue;
    }
    for (const size_t i : batch.cases) {
      single.push_back({{cases[i].arch, ModuleHeader(cases[i].arch) + cases[i].ptx, {cases[i].entry}}, {i}, "", ""});
    }
  }
  AssembleAll(assembler, single);
  for (Batch& batch : single) result.push_back(std::move(batch));
  return result;
}

// In the child. The name of the device goes to `name`.
Status RunPending(const std::vector<Case>& cases, const std::vector<Batch>& batches, int ordinal, Slot* slots,
                  const std::vector<size_t>& offsets, uint8_t* bytes, char* name) {
  device::CudaOptions options;
  options.ordinal = ordinal;
  SOLSTICE_ASSIGN_OR_RETURN(auto bench, Bench::Make([&] { return device::MakeCuda(options); }));
  SetText(name, bench->device().properties().name());
  const std::string arch = bench->device().properties().arch();
  for (const Batch& batch : batches) {
    std::string why_not = batch.why_not;
    std::unique_ptr<device::Module> module;
    if (why_not.empty() && batch.module.arch != arch) {
      why_not = StrCat("it needs ", batch.module.arch, ", the device is ", arch);
    }
    for (const size_t i : batch.cases) {
      if (slots[i].state != State::kPending) continue;
      if (why_not.empty() && module == nullptr) {
        SOLSTICE_ASSIGN_OR_RETURN(module, LoadModule(bench->device(), batch.module, batch.cubin, &why_not));
      }
      if (!why_not.empty()) {
        SetText(slots[i].why_not, why_not);
        slots[i].state = State::kNotExecuted;
        continue;
      }
      slots[i].state = State::kRunning;
      std::vector<uint8_t> answer(cases[i].AnswerBytes());
      SOLSTICE_ASSIGN_OR_RETURN(std::string refused,
                                bench->Launch(*module, cases[i].entry, cases[i].tuples, cases[i].input, &answer));
      std::memcpy(bytes + offsets[i], answer.data(), answer.size());
      SetText(slots[i].why_not, refused);
      slots[i].state = refused.empty() ? State::kDone : State::kNotExecuted;
    }
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::vector<Answer>> RunOnCuda(const std::vector<Case>& cases, int ordinal, std::string* device) {
  SOLSTICE_ASSIGN_OR_RETURN(auto assembler, OpenAssembler());
  const std::vector<Batch> batches = AssembledBatches(cases, *assembler);
  std::vector<size_t> offsets;
  size_t top = 0;
  for (const Case& c : cases) {
    offsets.push_back(top);
    top += c.AnswerBytes();
  }
  // What went wrong, the device's name, a slot a case, the answers.
  const size_t mapped = 2 * kTextBytes + cases.size() * sizeof(Slot) + top;
  void* memory = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return base::FromErrno(errno, "shared memory for answers");
  char* const error = static_cast<char*>(memory);
  char* const name = error + kTextBytes;
  Slot* const slots = reinterpret_cast<Slot*>(name + kTextBytes);
  uint8_t* const bytes = reinterpret_cast<uint8_t*>(slots + cases.size());
  Status failed;
  for (int child = 0; child < kMostChildren; ++child) {
    const pid_t pid = ::fork();
    if (pid < 0) {
      failed = base::FromErrno(errno, "fork");
      break;
    }
    if (pid == 0) {
      const Status status = RunPending(cases, batches, ordinal, slots, offsets, bytes, name);
      if (!status.ok()) SetText(error, base::MessageOf(status));
      ::_exit(status.ok() ? 0 : 1);
    }
    int how = 0;
    ::waitpid(pid, &how, 0);
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0) break;
    bool progress = false;
    for (size_t i = 0; i < cases.size(); ++i) {
      if (slots[i].state != State::kRunning) continue;
      SetText(slots[i].why_not, StrCat("the device failed: ", error));
      slots[i].state = State::kNotExecuted;
      progress = true;
    }
    if (!progress) {
      failed = base::Internal(StrCat("the device cannot be used: ", error));
      break;
    }
  }
  std::vector<Answer> answers(cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    if (slots[i].state == State::kDone) {
      answers[i].bytes.assign(bytes + offsets[i], bytes + offsets[i] + cases[i].AnswerBytes());
    } else {
      answers[i].why_not = slots[i].why_not[0] != '\0' ? slots[i].why_not : "too many cases failed before it";
    }
  }
  *device = name;
  ::munmap(memory, mapped);
  if (!failed.ok()) return failed;
  return answers;
}

}  // namespace solstice::conformance
