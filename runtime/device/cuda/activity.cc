#include "runtime/device/cuda/activity.h"

#include <cupti.h>
#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <thread>

#include "runtime/base/mutex.h"
#include "runtime/base/strings.h"

namespace solstice::device::cuda {
namespace {

using base::StrCat;

constexpr size_t kBufferBytes = 1 << 20;  // some 7000 records
constexpr int kOldestCupti = 18;          // CUDA 12.0: the kernel record as it is read here
constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMSET,
                                         CUPTI_ACTIVITY_KIND_MEMCPY};

struct Api {
  decltype(&::cuptiGetVersion) version;
  decltype(&::cuptiGetResultString) result_string;
  decltype(&::cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&::cuptiActivityEnable) enable;
  decltype(&::cuptiActivityDisable) disable;
  decltype(&::cuptiActivityFlushAll) flush;
  decltype(&::cuptiActivityGetNextRecord) next_record;
};

struct Record {
  uint32_t correlation = 0;  // counts the process's calls of the driver
  Span span;
};

// CUPTI's callbacks have no argument of ours, and come on a thread of its own.
struct Collected {
  Api api;
  base::Mutex mutex;
  std::vector<Record> records SOLSTICE_GUARDED_BY(mutex);
};
Collected* collected = nullptr;

void CUPTIAPI GiveBuffer(uint8_t** buffer, size_t* bytes, size_t* most_records) {
  *bytes = kBufferBytes;
  *buffer = static_cast<uint8_t*>(::aligned_alloc(16, kBufferBytes));
  *most_records = 0;
}

void CUPTIAPI TakeBuffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  CUpti_Activity* record = nullptr;
  base::MutexLock lock(collected->mutex);
  auto add = [](const auto* typed) SOLSTICE_REQUIRES(collected->mutex) {
    collected->records.push_back(
        {typed->correlationId, {static_cast<int64_t>(typed->start), static_cast<int64_t>(typed->end)}});
  };
  while (collected->api.next_record(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        add(reinterpret_cast<const CUpti_ActivityKernel9*>(record));
        break;
      case CUPTI_ACTIVITY_KIND_MEMSET:
        add(reinterpret_cast<const CUpti_ActivityMemset4*>(record));
        break;
      case CUPTI_ACTIVITY_KIND_MEMCPY:
        add(reinterpret_cast<const CUpti_ActivityMemcpy5*>(record));
        break;
      default:
        break;
    }
  }
  ::free(buffer);
}

Status Failed(const Api& api, const char* what, CUptiResult result) {
  const char* words = nullptr;
  if (api.result_string(result, &words) != CUPTI_SUCCESS || words == nullptr) words = "an unknown error";
  return base::FailedPrecondition(StrCat("CUPTI: ", what, ": ", words),
                                  "another profiler may hold this process; latencies by events still work");
}

class CuptiActivity : public Activity {
 public:
  explicit CuptiActivity(const Api& api) : api_(api) {}

  Status Start() override {
    {
      base::MutexLock lock(collected->mutex);
      collected->records.clear();
    }
    for (CUpti_ActivityKind kind : kKinds) {
      CUptiResult result = api_.enable(kind);
      if (result != CUPTI_SUCCESS) return Failed(api_, "enable", result);
    }
    return absl::OkStatus();
  }

  StatusOr<std::vector<Span>> Stop(int64_t expected) override {
    // Records reach their buffer a moment after the stream is idle.
    for (int tries = 0; tries < 20; ++tries) {
      CUptiResult result = api_.flush(0);
      if (result != CUPTI_SUCCESS) return Failed(api_, "flush", result);
      base::MutexLock lock(collected->mutex);
      if (static_cast<int64_t>(collected->records.size()) >= expected) break;
      std::this_thread::yield();
    }
    for (CUpti_ActivityKind kind : kKinds) {
      CUptiResult result = api_.disable(kind);
      if (result != CUPTI_SUCCESS) return Failed(api_, "disable", result);
    }
    std::vector<Record> records;
    {
      base::MutexLock lock(collected->mutex);
      records.swap(collected->records);
    }
    if (static_cast<int64_t>(records.size()) != expected) {
      return base::DataLoss(StrCat("CUPTI gave ", records.size(), " records for ", expected, " operations"));
    }
    std::sort(records.begin(), records.end(),
              [](const Record& a, const Record& b) { return a.correlation < b.correlation; });
    std::vector<Span> spans;
    spans.reserve(records.size());
    for (const Record& record : records) {
      if (record.span.start_ns <= 0 || record.span.end_ns < record.span.start_ns) {
        return base::DataLoss("CUPTI gave a record without times");
      }
      spans.push_back(record.span);
    }
    return spans;
  }

 private:
  const Api api_;
};

}  // namespace

StatusOr<std::unique_ptr<Activity>> Activity::Open(const std::string& library) {
  if (collected != nullptr) return std::unique_ptr<Activity>(new CuptiActivity(collected->api));
  if (library.empty()) {
    return base::FailedPrecondition("CUPTI was not found", "install the CUDA toolkit with CUPTI (libcupti.so)");
  }
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return base::FailedPrecondition(StrCat("CUPTI cannot be loaded: ", why == nullptr ? library : why),
                                    "install the CUDA toolkit with CUPTI (libcupti.so)");
  }
  Api api;
  const std::pair<const char*, void**> symbols[] = {
      {"cuptiGetVersion", reinterpret_cast<void**>(&api.version)},
      {"cuptiGetResultString", reinterpret_cast<void**>(&api.result_string)},
      {"cuptiActivityRegisterCallbacks", reinterpret_cast<void**>(&api.register_callbacks)},
      {"cuptiActivityEnable", reinterpret_cast<void**>(&api.enable)},
      {"cuptiActivityDisable", reinterpret_cast<void**>(&api.disable)},
      {"cuptiActivityFlushAll", reinterpret_cast<void**>(&api.flush)},
      {"cuptiActivityGetNextRecord", reinterpret_cast<void**>(&api.next_record)},
  };
  for (const auto& [name, pointer] : symbols) {
    *pointer = ::dlsym(handle, name);
    if (*pointer == nullptr) return base::FailedPrecondition(StrCat(library, " has no ", name));
  }
  uint32_t version = 0;
  if (api.version(&version) != CUPTI_SUCCESS || version < kOldestCupti) {
    return base::FailedPrecondition(
        StrCat(library, " is too old (API version ", version, ", needed ", kOldestCupti, ")"),
        "install a newer CUDA toolkit");
  }
  collected = new Collected{api, {}, {}};
  CUptiResult result = api.register_callbacks(GiveBuffer, TakeBuffer);
  if (result != CUPTI_SUCCESS) return Failed(api, "register", result);
  return std::unique_ptr<Activity>(new CuptiActivity(api));
}

}  // namespace solstice::device::cuda
