// Compares the ten kernels of kernels.h as nvcc and as Solstice compile them: the same output bytes, and how long each
// takes. Needs a GPU; run.sh builds the cubins and this program, which needs cuda.h and nothing else.
//
//   compare FOLDER     with FOLDER/NAME.nvcc.cubin and FOLDER/NAME.solstice.cubin
//
// A sample is a batch of launches between two events, a few milliseconds long. Samples alternate (nvcc, solstice, nvcc
// loaded a second time), so that a drift of the clock meets all alike; the second copy of nvcc's cubin shows what a
// difference of nothing looks like. Ends with 1 if outputs differ or anything fails; latencies decide nothing.

#include <cuda.h>
#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "kernels.h"

namespace nvcc_compare {
namespace {

constexpr int kSamples = 60;
constexpr int kWarmUps = 5;
constexpr float kSampleMs = 3.0f;
constexpr int kMaxLaunches = 400;
constexpr unsigned char kPoison = 0xA5;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "compare: %s\n", what.c_str());
  std::exit(1);
}

// The driver's functions that are used here, each under the versioned name that cuda.h gives it.
#define NVCC_COMPARE_TEXT_(name) #name
#define NVCC_COMPARE_TEXT(name) NVCC_COMPARE_TEXT_(name)
#define NVCC_COMPARE_DECLARE(member, name) decltype(&::name) member = Load<decltype(&::name)>(NVCC_COMPARE_TEXT(name))

class Driver {
 public:
  static void* Library() {
    static void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) Die("no libcuda.so.1: a GPU and its driver are needed");
    return library;
  }

  template <class Function>
  static Function Load(const char* name) {
    void* found = dlsym(Library(), name);
    if (found == nullptr) Die(std::string("the driver has no ") + name);
    return reinterpret_cast<Function>(found);
  }

  void Check(CUresult result, const std::string& what) const {
    if (result == CUDA_SUCCESS) return;
    const char* text = nullptr;
    error_string(result, &text);
    Die(what + ": " + (text != nullptr ? text : "unknown error"));
  }

  NVCC_COMPARE_DECLARE(init, cuInit);
  NVCC_COMPARE_DECLARE(device_get, cuDeviceGet);
  NVCC_COMPARE_DECLARE(device_name, cuDeviceGetName);
  NVCC_COMPARE_DECLARE(context_retain, cuDevicePrimaryCtxRetain);
  NVCC_COMPARE_DECLARE(context_set, cuCtxSetCurrent);
  NVCC_COMPARE_DECLARE(error_string, cuGetErrorString);
  NVCC_COMPARE_DECLARE(module_load, cuModuleLoadData);
  NVCC_COMPARE_DECLARE(module_unload, cuModuleUnload);
  NVCC_COMPARE_DECLARE(module_function, cuModuleGetFunction);
  NVCC_COMPARE_DECLARE(function_attribute, cuFuncGetAttribute);
  NVCC_COMPARE_DECLARE(allocate, cuMemAlloc);
  NVCC_COMPARE_DECLARE(release, cuMemFree);
  NVCC_COMPARE_DECLARE(copy_in, cuMemcpyHtoD);
  NVCC_COMPARE_DECLARE(copy_out, cuMemcpyDtoH);
  NVCC_COMPARE_DECLARE(fill, cuMemsetD8);
  NVCC_COMPARE_DECLARE(launch, cuLaunchKernel);
  NVCC_COMPARE_DECLARE(synchronize, cuCtxSynchronize);
  NVCC_COMPARE_DECLARE(event_create, cuEventCreate);
  NVCC_COMPARE_DECLARE(event_record, cuEventRecord);
  NVCC_COMPARE_DECLARE(event_synchronize, cuEventSynchronize);
  NVCC_COMPARE_DECLARE(event_elapsed, cuEventElapsedTime);
};

std::vector<char> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (bytes.empty()) Die("cannot read " + path);
  return bytes;
}

// A kernel's machine code, from the cubin's section .text.NAME.
std::string CodeOf(const std::vector<char>& cubin, const std::string& name) {
  Elf64_Ehdr header;
  if (cubin.size() < sizeof(header)) return "";
  std::memcpy(&header, cubin.data(), sizeof(header));
  const auto section = [&](size_t i) {
    Elf64_Shdr found = {};
    const size_t at = header.e_shoff + i * sizeof(found);
    if (at + sizeof(found) <= cubin.size()) std::memcpy(&found, cubin.data() + at, sizeof(found));
    return found;
  };
  const size_t names = section(header.e_shstrndx).sh_offset;
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr found = section(i);
    if (names + found.sh_name >= cubin.size() || found.sh_offset + found.sh_size > cubin.size()) continue;
    if (".text." + name == cubin.data() + names + found.sh_name) {
      return std::string(cubin.data() + found.sh_offset, found.sh_size);
    }
  }
  return "";
}

std::vector<unsigned char> Content(const Argument& argument) {
  std::vector<unsigned char> bytes(argument.bytes);
  std::mt19937 random(static_cast<unsigned>(argument.bytes) * 31u + static_cast<unsigned>(argument.fill));
  const auto uniform = [&] { return static_cast<float>(random() >> 8) / static_cast<float>(1 << 23) - 1.0f; };
  for (size_t at = 0; at < bytes.size(); at += 4) {
    uint32_t word = random();
    if (argument.fill == Fill::kF32) {
      const float value = uniform();
      std::memcpy(&word, &value, 4);
    } else if (argument.fill == Fill::kPositions) {
      word = static_cast<uint32_t>(at / 4);
    } else if (argument.fill == Fill::kBf16) {
      uint32_t halves[2];
      for (uint32_t& half : halves) {
        const float value = uniform();
        std::memcpy(&half, &value, 4);
      }
      word = (halves[0] >> 16) | (halves[1] & 0xFFFF0000u);
    } else if (argument.fill == Fill::kF16) {
      // A sign, an exponent from 2^-8 to 2^-1 and any mantissa.
      word = (word & 0x83FF83FFu) | (7 + word / 1024 % 8) << 10 | (7 + word / 67108864 % 8) << 26;
    }
    std::memcpy(&bytes[at], &word, std::min<size_t>(4, bytes.size() - at));
  }
  return bytes;
}

// One kernel's buffers, and its two programs, one of them loaded twice.
class Case {
 public:
  Case(const Driver& driver, const Kernel& kernel, const std::string& folder) : driver_(driver), kernel_(kernel) {
    const std::string stem = folder + "/" + kernel.name;
    const std::vector<char> nvcc = ReadFile(stem + ".nvcc.cubin"), solstice = ReadFile(stem + ".solstice.cubin");
    code_[0] = CodeOf(nvcc, kernel.name);
    code_[1] = CodeOf(solstice, kernel.name);
    for (int i = 0; i < 3; ++i) {
      const std::vector<char>& cubin = i == 1 ? solstice : nvcc;
      driver_.Check(driver_.module_load(&modules_[i], cubin.data()), std::string("load ") + kernel.name);
      driver_.Check(driver_.module_function(&functions_[i], modules_[i], kernel.name),
                    std::string("find ") + kernel.name);
    }
    values_.resize(kernel.arguments.size());
    for (size_t i = 0; i < values_.size(); ++i) Prepare(kernel.arguments[i], &values_[i]);
    for (CUevent& event : events_) driver_.Check(driver_.event_create(&event, CU_EVENT_DEFAULT), "event");
  }
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  ~Case() {
    for (CUdeviceptr buffer : buffers_) driver_.release(buffer);
    for (CUmodule module : modules_) driver_.module_unload(module);
  }

  bool SameOutput() {
    const std::vector<unsigned char> first = Run(0);
    return !first.empty() && first == Run(1);
  }

  // Prints the kernel's line of the table.
  void Measure() {
    const int launches = std::clamp(static_cast<int>(kSampleMs * 10 / Sample(0, 10)) + 1, 10, kMaxLaunches);
    for (int i = 0; i < kWarmUps; ++i) {
      for (int program = 0; program < 3; ++program) Sample(program, launches);
    }
    std::vector<double> us[3];
    for (int i = 0; i < kSamples; ++i) {
      for (int program = 0; program < 3; ++program) {
        us[program].push_back(Sample(program, launches) * 1000.0 / launches);
      }
    }
    const double nvcc = Median(us[0]), solstice = Median(us[1]), again = Median(us[2]);
    std::printf("| %s | %.3f | %.3f | %.4f%s | %.4f | %d / %d | %s |\n", kernel_.name, nvcc, solstice, solstice / nvcc,
                std::fabs(solstice / nvcc - 1) > 0.02 ? " *" : "", again / nvcc, Registers(0), Registers(1),
                CodeDifference().c_str());
    std::fflush(stdout);
  }

 private:
  union Value {
    CUdeviceptr pointer;
    int integer;
    float real;
  };

  void Prepare(const Argument& argument, Value* value) {
    if (argument.kind == Argument::kInt) value->integer = static_cast<int>(argument.value);
    if (argument.kind == Argument::kFloat) value->real = static_cast<float>(argument.value);
    if (argument.kind == Argument::kBuffer) {
      driver_.Check(driver_.allocate(&value->pointer, argument.bytes), "allocate");
      buffers_.push_back(value->pointer);
      if (argument.fill == Fill::kOutput) return;
      const std::vector<unsigned char> content = Content(argument);
      driver_.Check(driver_.copy_in(value->pointer, content.data(), content.size()), "copy in");
    }
  }

  void Launch(int program) {
    std::vector<void*> parameters;
    for (Value& value : values_) parameters.push_back(&value);
    driver_.Check(
        driver_.launch(functions_[program], kernel_.grid[0], kernel_.grid[1], kernel_.grid[2], kernel_.block[0],
                       kernel_.block[1], kernel_.block[2], 0, nullptr, parameters.data(), nullptr),
        std::string("launch ") + kernel_.name);
  }

  // What every output holds after one launch. Empty if a launch left one untouched.
  std::vector<unsigned char> Run(int program) {
    std::vector<unsigned char> all;
    for (size_t i = 0; i < values_.size(); ++i) {
      const Argument& argument = kernel_.arguments[i];
      if (argument.kind != Argument::kBuffer || argument.fill != Fill::kOutput) continue;
      driver_.Check(driver_.fill(values_[i].pointer, kPoison, argument.bytes), "poison");
    }
    Launch(program);
    driver_.Check(driver_.synchronize(), std::string("run ") + kernel_.name);
    for (size_t i = 0; i < values_.size(); ++i) {
      const Argument& argument = kernel_.arguments[i];
      if (argument.kind != Argument::kBuffer || argument.fill != Fill::kOutput) continue;
      std::vector<unsigned char> bytes(argument.bytes);
      driver_.Check(driver_.copy_out(bytes.data(), values_[i].pointer, bytes.size()), "copy out");
      if (std::count(bytes.begin(), bytes.end(), kPoison) == static_cast<std::ptrdiff_t>(bytes.size())) return {};
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    return all;
  }

  // Milliseconds that so many launches take.
  float Sample(int program, int launches) {
    driver_.Check(driver_.event_record(events_[0], nullptr), "event");
    for (int i = 0; i < launches; ++i) Launch(program);
    driver_.Check(driver_.event_record(events_[1], nullptr), "event");
    driver_.Check(driver_.event_synchronize(events_[1]), std::string("time ") + kernel_.name);
    float ms = 0;
    driver_.Check(driver_.event_elapsed(&ms, events_[0], events_[1]), "event");
    return ms;
  }

  static double Median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return (values[values.size() / 2] + values[(values.size() - 1) / 2]) / 2;
  }

  int Registers(int program) const {
    int value = 0;
    driver_.Check(driver_.function_attribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, functions_[program]), "registers");
    return value;
  }

  std::string CodeDifference() const {
    if (code_[0].empty() || code_[1].empty()) return "no code found";
    if (code_[0] == code_[1]) return "same";
    return std::to_string(code_[0].size()) + " / " + std::to_string(code_[1].size());
  }

  const Driver& driver_;
  const Kernel& kernel_;
  std::string code_[2];
  CUmodule modules_[3] = {};
  CUfunction functions_[3] = {};
  CUevent events_[2] = {};
  std::vector<Value> values_;
  std::vector<CUdeviceptr> buffers_;
};

int Main(const std::string& folder) {
  const Driver driver;
  driver.Check(driver.init(0), "cuInit");
  CUdevice device = 0;
  CUcontext context = nullptr;
  driver.Check(driver.device_get(&device, 0), "device 0");
  driver.Check(driver.context_retain(&context, device), "context");
  driver.Check(driver.context_set(context), "context");
  char name[128] = {};
  driver.Check(driver.device_name(name, sizeof(name) - 1, device), "device name");
  std::printf("%s; median of %d samples; * more than 2 %% apart\n\n", name, kSamples);
  std::printf(
      "| kernel | nvcc us | solstice us | ratio | nvcc again | registers | code bytes "
      "|\n|---|---|---|---|---|---|---|\n");
  int differing = 0;
  const std::vector<Kernel> kernels = Kernels();
  for (const Kernel& kernel : kernels) {
    Case test(driver, kernel, folder);
    if (!test.SameOutput()) {
      std::printf("| %s | outputs differ or were not written |\n", kernel.name);
      ++differing;
    }
    test.Measure();
  }
  std::printf("\n%zu kernels, %d with other output\n", kernels.size(), differing);
  return differing == 0 ? 0 : 1;
}

}  // namespace
}  // namespace nvcc_compare

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: compare FOLDER\n");
    return 2;
  }
  return nvcc_compare::Main(argv[1]);
}
