// Launches a kernel of a cubin again and again, for a profiler to measure: what it does is plain, and no part of
// Solstice is in it. Needs cuda.h to build and the driver to run.
//
//   launch_cubin run CUBIN KERNEL GRID BLOCK REPEATS CLEAR_CUBIN ARGUMENT...
//   launch_cubin copy BYTES
//
// An ARGUMENT is buffer:BYTES, f32:VALUE, i32:VALUE or i64:VALUE; a buffer is filled with bfloat16 numbers between 1
// and 2. Before each launch kernel `read_all` of CLEAR_CUBIN reads twice the size of the L2 cache, so that nothing of
// the launch before is left in it. `copy` prints how fast the device copies BYTES from one buffer to another.

#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <list>
#include <string>
#include <vector>

namespace {

constexpr int kCopies = 41;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "launch_cubin: %s\n", what.c_str());
  std::exit(1);
}

void* Library() {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) Die("no libcuda.so.1: a GPU and its driver are needed");
  return library;
}

template <class Function>
Function* Find(Function*, const char* name) {
  void* found = dlsym(Library(), name);
  if (found == nullptr) Die(std::string("the driver has no ") + name);
  return reinterpret_cast<Function*>(found);
}

void Check(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS) Die(std::string(call) + " gave error " + std::to_string(result));
}

// Calls a driver function under the versioned name that cuda.h gives it.
#define LAUNCH_CUBIN_TEXT_(name) #name
#define LAUNCH_CUBIN_TEXT(name) LAUNCH_CUBIN_TEXT_(name)
#define CALL(function, ...) \
  Check(Find(static_cast<decltype(&::function)>(nullptr), LAUNCH_CUBIN_TEXT(function))(__VA_ARGS__), #function)

CUdevice Open() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CALL(cuInit, 0);
  CALL(cuDeviceGet, &device, 0);
  CALL(cuDevicePrimaryCtxRetain, &context, device);
  CALL(cuCtxSetCurrent, context);
  return device;
}

CUfunction LoadKernel(const std::string& path, const std::string& kernel) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> cubin((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (cubin.empty()) Die("cannot read " + path);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CALL(cuModuleLoadData, &module, cubin.data());
  CALL(cuModuleGetFunction, &function, module, kernel.c_str());
  return function;
}

CUdeviceptr NewBuffer(size_t bytes) {
  CUdeviceptr buffer = 0;
  CALL(cuMemAlloc, &buffer, std::max<size_t>(bytes, 256));
  std::vector<uint16_t> content((bytes + 1) / 2);
  uint32_t state = 1;
  for (uint16_t& half : content) {
    state = state * 1664525u + 1013904223u;
    half = static_cast<uint16_t>(0x3F80u | (state >> 25));
  }
  if (bytes > 0) CALL(cuMemcpyHtoD, buffer, content.data(), bytes);
  return buffer;
}

// One kernel parameter: eight bytes are room for each kind.
uint64_t ParseArgument(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) Die("argument " + text + ": KIND:VALUE is needed");
  const std::string kind = text.substr(0, colon), value = text.substr(colon + 1);
  uint64_t bits = 0;
  if (kind == "buffer") {
    bits = NewBuffer(std::stoull(value));
  } else if (kind == "f32") {
    const float number = std::stof(value);
    std::memcpy(&bits, &number, sizeof number);
  } else if (kind == "i32") {
    const int32_t number = static_cast<int32_t>(std::stol(value));
    std::memcpy(&bits, &number, sizeof number);
  } else if (kind == "i64") {
    bits = static_cast<uint64_t>(std::stoll(value));
  } else {
    Die("argument " + text + ": unknown kind");
  }
  return bits;
}

struct Clear {
  CUfunction function = nullptr;
  CUdeviceptr buffer = 0, sink = 0;
  long long vectors = 0;

  void Launch() {
    void* arguments[] = {&buffer, &vectors, &sink};
    CALL(cuLaunchKernel, function, 264, 1, 1, 1024, 1, 1, 0, nullptr, arguments, nullptr);
  }
};

int Run(const std::vector<std::string>& words) {
  if (words.size() < 6) Die("run CUBIN KERNEL GRID BLOCK REPEATS CLEAR_CUBIN ARGUMENT...");
  const CUdevice device = Open();
  const CUfunction kernel = LoadKernel(words[0], words[1]);
  const auto grid = static_cast<unsigned>(std::stoul(words[2])), block = static_cast<unsigned>(std::stoul(words[3]));
  const int repeats = std::stoi(words[4]);
  int l2_bytes = 0;
  CALL(cuDeviceGetAttribute, &l2_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device);
  Clear clear;
  clear.function = LoadKernel(words[5], "read_all");
  clear.vectors = 2LL * l2_bytes / 16;
  clear.buffer = NewBuffer(static_cast<size_t>(clear.vectors) * 16);
  clear.sink = NewBuffer(256);

  std::list<uint64_t> values;
  std::vector<void*> arguments;
  for (size_t i = 6; i < words.size(); ++i) arguments.push_back(&values.emplace_back(ParseArgument(words[i])));
  for (int i = 0; i < repeats; ++i) {
    clear.Launch();
    CALL(cuLaunchKernel, kernel, grid, 1, 1, block, 1, 1, 0, nullptr, arguments.data(), nullptr);
  }
  CALL(cuCtxSynchronize);
  std::printf("launched %d times\n", repeats);
  return 0;
}

int Copy(const std::vector<std::string>& words) {
  if (words.size() != 1) Die("copy BYTES");
  Open();
  const size_t bytes = std::stoull(words[0]);
  const CUdeviceptr from = NewBuffer(bytes), to = NewBuffer(bytes);
  CUevent start = nullptr, end = nullptr;
  CALL(cuEventCreate, &start, CU_EVENT_DEFAULT);
  CALL(cuEventCreate, &end, CU_EVENT_DEFAULT);
  std::vector<float> ms(kCopies);
  for (float& one : ms) {
    CALL(cuEventRecord, start, nullptr);
    CALL(cuMemcpyDtoDAsync, to, from, bytes, nullptr);
    CALL(cuEventRecord, end, nullptr);
    CALL(cuEventSynchronize, end);
    CALL(cuEventElapsedTime, &one, start, end);
  }
  std::sort(ms.begin(), ms.end());
  const double median_us = ms[kCopies / 2] * 1e3;
  std::printf("%.3f us %.1f GB/s\n", median_us, 2.0 * static_cast<double>(bytes) / median_us * 1e-3);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 2), argv + argc);
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "run") return Run(words);
  if (command == "copy") return Copy(words);
  Die("commands: run, copy");
}
