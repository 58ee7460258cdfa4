#include "tests/conformance/fuzz.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "runtime/base/strings.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/emulator/emulator.h"
#include "runtime/device/emulator/random_text.h"

namespace solstice::conformance {
namespace {

using base::StrCat;
using device::Dice;

// A thread's registers in its input and its answer: six of 64 bits, six of 32, six of 16, and four predicates as a
// word.
constexpr int kLong = 0, kWord = 48, kHalf = 72, kPredicates = 84, kStride = 96;
constexpr size_t kKernelsPerModule = 16;
constexpr int kMostDifferences = 10;

// Valid forms only, whose results the manual defines to the bit: no approximate function, no division by zero, and
// always a rounding, so that an assembler may not fuse.
const std::vector<std::string>& Instructions() {
  static const std::vector<std::string> kInstructions = {
      "{add|sub|mul.lo|mul.hi|min|max}.{u16|s16} @h, @h, @h;",
      "{add|sub|mul.lo|mul.hi|min|max}.{u32|s32} @r, @r, @r;",
      "{add|sub|mul.lo|mul.hi|min|max}.{u64|s64} @q, @q, @q;",
      "{add|sub}.sat.s32 @r, @r, @r;",
      "{mad.lo|mad.hi|sad}.{u32|s32} @r, @r, @r, @r;",
      "mad.lo.u16 @h, @h, @h, @h;",
      "mad.lo.u64 @q, @q, @q, @q;",
      "mul24.{lo|hi}.{u32|s32} @r, @r, @r;",
      "mad24.{lo|hi}.{u32|s32} @r, @r, @r, @r;",
      "mul.wide.{u32|s32} @q, @r, @r;",
      "add.cc.u32 @r, @r, @r;\n  addc.cc.u32 @r, @r, @r;\n  addc.u32 @r, @r, @r;",
      "sub.cc.u32 @r, @r, @r;\n  subc.u32 @r, @r, @r;",
      "mad.lo.cc.u32 @r, @r, @r, @r;\n  madc.hi.u32 @r, @r, @r, @r;",
      "or.b32 %r5, @r, 1;\n  {div|rem}.u32 @r, @r, %r5;",
      "or.b64 %q5, @q, 1;\n  {div|rem}.u64 @q, @q, %q5;",
      "{abs|neg}.s32 @r, @r;",
      "{abs|neg}.s64 @q, @q;",
      "{and|or|xor}.b32 @r, @r, @r;",
      "{and|or|xor}.b64 @q, @q, @q;",
      "{not|cnot|brev|popc|clz}.b32 @r, @r;",
      "{popc|clz}.b64 @r, @q;",
      "bfind{|.shiftamt}.{u32|s32} @r, @r;",
      "bfe.{u32|s32} @r, @r, @r, @r;",
      "bfe.{u64|s64} @q, @q, @r, @r;",
      "bfi.b32 @r, @r, @r, @r, @r;",
      "bfi.b64 @q, @q, @q, @r, @r;",
      "shf.{l|r}.{wrap|clamp}.b32 @r, @r, @r, @r;",
      "{shl.b32|shr.u32|shr.s32} @r, @r, @r;",
      "{shl.b64|shr.u64|shr.s64} @q, @q, @r;",
      "{shl.b16|shr.u16|shr.s16} @h, @h, @r;",
      "prmt.b32{|.f4e|.b4e|.rc8|.ecl|.ecr|.rc16} @r, @r, @r, @r;",
      "lop3.b32 @r, @r, @r, @r, {23|128|150|202|232|255};",
      "dp4a.{u32|s32}.{u32|s32} @r, @r, @r, @r;",
      "{add|sub|mul}.{rn|rz|rm|rp}{|.ftz}{|.sat}.f32 @r, @r, @r;",
      "fma.{rn|rz|rm|rp}{|.ftz}{|.sat}.f32 @r, @r, @r, @r;",
      "div.{rn|rz|rm|rp}{|.ftz}.f32 @r, @r, @r;",
      "{rcp|sqrt}.{rn|rz|rm|rp}{|.ftz}.f32 @r, @r;",
      "{min|max}{|.ftz}{|.NaN}.f32 @r, @r, @r;",
      "{abs|neg}{|.ftz}.f32 @r, @r;",
      "copysign.f32 @r, @r, @r;",
      "{add|sub|mul}.{rn|rz|rm|rp}.f64 @q, @q, @q;",
      "fma.{rn|rz|rm|rp}.f64 @q, @q, @q, @q;",
      "{div.rn|div.rz|min|max}.f64 @q, @q, @q;",
      "{add|sub|mul}.rn.{f16|bf16} @h, @h, @h;",
      "{add|sub|mul}.rn.{f16x2|bf16x2} @r, @r, @r;",
      "fma.rn{|.relu}.{f16|bf16} @h, @h, @h, @h;",
      "fma.rn.{f16x2|bf16x2} @r, @r, @r, @r;",
      "{min|max}{|.NaN}.{f16|bf16} @h, @h, @h;",
      "{min|max}{|.NaN}.{f16x2|bf16x2} @r, @r, @r;",
      "cvt.{u16.u32|s16.s32} @h, @r;",
      "cvt.{u32.u16|s32.s16} @r, @h;",
      "cvt{|.sat}.{u32|s32}.{u64|s64} @r, @q;",
      "cvt.{u64|s64}.{u32|s32} @q, @r;",
      "cvt.{rni|rzi|rmi|rpi}{|.ftz}.{u32|s32}.f32 @r, @r;",
      "cvt.{rni|rzi|rmi|rpi}.{u64|s64}.f64 @q, @q;",
      "cvt.{rn|rz|rm|rp}.f32.{u32|s32} @r, @r;",
      "cvt.{rn|rz|rm|rp}.f32.{u64|s64|f64} @r, @q;",
      "cvt.{rn|rz|rm|rp}.f64.{u64|s64} @q, @q;",
      "cvt.f64.f32 @q, @r;",
      "cvt.{rn|rz}.{f16|bf16}.f32 @h, @r;",
      "cvt.f32.{f16|bf16} @r, @h;",
      "cvt.{rn|rz}.{f16x2|bf16x2}.f32 @r, @r, @r;",
      "cvt.rn.satfinite.{e4m3x2|e5m2x2}.f32 @h, @r, @r;",
      "cvt.rn.f16x2.{e4m3x2|e5m2x2} @r, @h;",
      "setp.{eq|ne|lt|le|gt|ge|equ|ltu|num|nan}{|.ftz}.f32 @p, @r, @r;",
      "setp.{eq|lt|ge}.{u32|s32} @p, @r, @r;",
      "setp.{ne|gt}{.and|.or|.xor}.s64 @p, @q, @q, @p;",
      "set.{eq|lt}.{u32|f32}.{s32|f32} @r, @r, @r;",
      "selp.b32 @r, @r, @r, @p;",
      "selp.b64 @q, @q, @q, @p;",
      "slct.b32.{s32|f32} @r, @r, @r, @r;",
      "testp.{finite|number|normal|subnormal}.f32 @p, @r;",
      "mov.b64 {@q, {@r, @r}|{%r0, %r1}, @q};",
      "mov.b32 {@r, {@h, @h}|{%h0, %h1}, @r};",
      "{and|or|xor}.pred @p, @p, @p;",
  };
  return kInstructions;
}

std::string ModuleText(const std::vector<RandomKernel>& kernels) {
  std::string text = ModuleHeader("sm_90a");
  for (const RandomKernel& kernel : kernels) text += kernel.Ptx();
  return text;
}

// The answers of kernels that are loaded as one module.
StatusOr<std::vector<std::vector<uint8_t>>> RunOn(const Side& side, const std::vector<RandomKernel>& kernels,
                                                  const std::string& cubin) {
  Module module{"sm_90a", ModuleText(kernels), {}};
  for (const RandomKernel& kernel : kernels) module.entries.push_back(kernel.entry);
  if (side.rewrite) module.ptx = side.rewrite(module.ptx);
  std::string image = cubin, why_not;
  if (side.assembler != nullptr && image.empty()) {
    SOLSTICE_ASSIGN_OR_RETURN(image, side.assembler->Assemble(module));
  }
  SOLSTICE_ASSIGN_OR_RETURN(auto loaded, LoadModule(side.bench->device(), module, image, &why_not));
  if (loaded == nullptr) return base::Internal(why_not);
  std::vector<std::vector<uint8_t>> answers;
  for (const RandomKernel& kernel : kernels) {
    answers.emplace_back(static_cast<size_t>(kFuzzThreads) * kStride);
    SOLSTICE_ASSIGN_OR_RETURN(why_not,
                              side.bench->Launch(*loaded, kernel.entry, kFuzzThreads, kernel.input, &answers.back()));
    if (!why_not.empty()) return base::Internal(StrCat(why_not, "\n", kernel.Ptx()));
  }
  return answers;
}

std::string DescribeDifference(const std::vector<uint8_t>& one, const std::vector<uint8_t>& other) {
  const auto at = static_cast<int>(std::mismatch(one.begin(), one.end(), other.begin()).first - one.begin());
  const int thread = at / kStride, offset = at % kStride;
  const char kind = offset < kWord ? 'q' : offset < kHalf ? 'r' : offset < kPredicates ? 'h' : 'p';
  const int bytes = kind == 'q' ? 8 : kind == 'h' ? 2 : 4;
  const int base = kind == 'q' ? kLong : kind == 'r' ? kWord : kind == 'h' ? kHalf : kPredicates;
  const int index = (offset - base) / bytes;
  uint64_t x = 0, y = 0;
  std::memcpy(&x, one.data() + thread * kStride + base + index * bytes, static_cast<size_t>(bytes));
  std::memcpy(&y, other.data() + thread * kStride + base + index * bytes, static_cast<size_t>(bytes));
  char text[120];
  std::snprintf(text, sizeof text, "thread %d, %%%c%d: 0x%llx and 0x%llx", thread, kind, index,
                static_cast<unsigned long long>(x), static_cast<unsigned long long>(y));
  return text;
}

std::string DescribeInput(const RandomKernel& kernel, int thread) {
  std::string text;
  const uint8_t* at = kernel.input.data() + thread * kStride;
  const auto add = [&](char kind, int offset, int bytes) {
    for (int i = 0; i < 6; ++i) {
      uint64_t value = 0;
      std::memcpy(&value, at + offset + i * bytes, static_cast<size_t>(bytes));
      char word[48];
      std::snprintf(word, sizeof word, " %%%c%d=0x%llx", kind, i, static_cast<unsigned long long>(value));
      text += word;
    }
  };
  add('q', kLong, 8);
  add('r', kWord, 4);
  add('h', kHalf, 2);
  return text;
}

// Cubins of the batches, made in parallel; empty ones without an assembler.
StatusOr<std::vector<std::string>> AssembleBatches(Assembler* assembler,
                                                   const std::vector<std::vector<RandomKernel>>& batches) {
  std::vector<std::string> cubins(batches.size());
  if (assembler == nullptr) return cubins;
  std::vector<Status> failures(batches.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < batches.size(); ++i) {
    threads.emplace_back([&, i] {
      auto cubin = assembler->Assemble({"sm_90a", ModuleText(batches[i]), {}});
      if (cubin.ok()) {
        cubins[i] = *std::move(cubin);
      } else {
        failures[i] = cubin.status();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& failure : failures) SOLSTICE_RETURN_IF_ERROR(failure);
  return cubins;
}

// min and max of a register with itself: the assembler drops them, and with them what they make of a NaN.
bool IsDropped(const std::string& line) {
  if (line.compare(0, 3, "min") != 0 && line.compare(0, 3, "max") != 0) return false;
  const size_t last = line.rfind(", "), first = line.rfind(' ', last - 1);
  return line.compare(first + 1, last - first - 1, line, last + 2, line.rfind(';') - last - 2) == 0;
}

std::string RandomLine(Dice& dice) {
  std::string line;
  do {
    line = device::ExpandTemplate(dice.From(Instructions()), dice);
  } while (IsDropped(line));
  return line;
}

}  // namespace

std::string RandomKernel::Ptx() const {
  std::string text =
      StrCat(".visible .entry ", entry,
             "(.param .u64 in, .param .u64 out, .param .u64 scratch, .param .align 16 .b8 extra[32])\n{\n"
             "  .reg .pred %p<4>;\n  .reg .b16 %h<6>;\n  .reg .b32 %r<6>, %thread, %bit;\n"
             "  .reg .b64 %q<6>, %at, %step;\n  mov.u32 %thread, %tid.x;\n  mul.wide.u32 %step, %thread, ",
             kStride, ";\n  ld.param.u64 %at, [in];\n  add.s64 %at, %at, %step;\n");
  const auto all = [&](const char* format, char kind, int offset, int bytes) {
    for (int i = 0; i < 6; ++i) {
      char line[96];
      std::snprintf(line, sizeof line, format, bytes * 8, kind, i, offset + i * bytes);
      text += line;
    }
  };
  const char* const kLoad = "  ld.global.b%d %%%c%d, [%%at+%d];\n";
  all(kLoad, 'q', kLong, 8);
  all(kLoad, 'r', kWord, 4);
  all(kLoad, 'h', kHalf, 2);
  text +=
      "  setp.lt.u32 %p0, %thread, 32;\n  setp.lt.s32 %p1, %r0, 0;\n  setp.lt.s32 %p2, %r1, %r2;\n"
      "  setp.eq.u32 %p3, %thread, %thread;\n";
  for (const std::string& line : lines) text += StrCat("  ", line, "\n");
  text += "  ld.param.u64 %at, [out];\n  add.s64 %at, %at, %step;\n";
  const auto stores = [&](char kind, int offset, int bytes) {
    for (int i = 0; i < 6; ++i) {
      text += StrCat("  st.global.b", bytes * 8, " [%at+", offset + i * bytes, "], %", std::string(1, kind), i, ";\n");
    }
  };
  stores('q', kLong, 8);
  stores('r', kWord, 4);
  stores('h', kHalf, 2);
  text += "  mov.b32 %thread, 0;\n";
  for (int i = 0; i < 4; ++i)
    text += StrCat("  selp.b32 %bit, ", 1 << i, ", 0, %p", i, ";\n  or.b32 %thread, %thread, %bit;\n");
  return text + StrCat("  st.global.b32 [%at+", kPredicates, "], %thread;\n  ret;\n}\n");
}

RandomKernel MakeRandomKernel(uint64_t seed) {
  Dice dice(seed);
  RandomKernel kernel;
  kernel.entry = StrCat("random_", seed);
  for (size_t i = 4 + dice.Below(28); i > 0; --i) {
    kernel.lines.push_back(RandomLine(dice));
  }
  kernel.input.resize(static_cast<size_t>(kFuzzThreads) * kStride);
  for (size_t at = 0; at < kernel.input.size(); at += 4) {
    const uint64_t value = dice.Chance(50) ? dice.Edge() : dice.Word();
    std::memcpy(kernel.input.data() + at, &value, 4);
  }
  return kernel;
}

StatusOr<bool> Disagree(const RandomKernel& kernel, const Side& one, const Side& other, std::string* seen) {
  SOLSTICE_ASSIGN_OR_RETURN(const auto first, RunOn(one, {kernel}, ""));
  SOLSTICE_ASSIGN_OR_RETURN(const auto second, RunOn(other, {kernel}, ""));
  if (first == second) return false;
  *seen = DescribeDifference(first[0], second[0]);
  return true;
}

StatusOr<RandomKernel> Minimise(RandomKernel kernel, const Side& one, const Side& other) {
  for (size_t i = kernel.lines.size(); i-- > 0;) {
    RandomKernel shorter = kernel;
    shorter.lines.erase(shorter.lines.begin() + static_cast<ptrdiff_t>(i));
    std::string seen;
    SOLSTICE_ASSIGN_OR_RETURN(const bool different, Disagree(shorter, one, other, &seen));
    if (different) kernel = std::move(shorter);
  }
  return kernel;
}

StatusOr<int> Fuzz(int ordinal, double seconds, uint64_t seed) {
  using DeviceOr = StatusOr<std::unique_ptr<device::Device>>;
  std::unique_ptr<Assembler> assembler;
  if (ordinal >= 0) {
    SOLSTICE_ASSIGN_OR_RETURN(assembler, OpenAssembler());
  }
  SOLSTICE_ASSIGN_OR_RETURN(auto mine, Bench::Make([ordinal]() -> DeviceOr {
                              if (ordinal < 0) return device::MakeEmulator();
                              device::CudaOptions options;
                              options.ordinal = ordinal;
                              return device::MakeCuda(options);
                            }));
  SOLSTICE_ASSIGN_OR_RETURN(auto theirs, Bench::Make([ordinal]() -> DeviceOr {
                              device::EmulatorOptions options;
                              options.baseline_isa = ordinal < 0;
                              return device::MakeEmulator(options);
                            }));
  const Side one{mine.get(), assembler.get()}, other{theirs.get()};
  const size_t parallel = assembler == nullptr ? 1 : std::max(1u, std::thread::hardware_concurrency());
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  uint64_t next = seed * 1'000'000'007u;
  int64_t kernels = 0;
  int differences = 0;
  while (std::chrono::steady_clock::now() < end && differences < kMostDifferences) {
    std::vector<std::vector<RandomKernel>> batches(parallel);
    for (auto& batch : batches) {
      for (size_t i = 0; i < kKernelsPerModule; ++i) batch.push_back(MakeRandomKernel(next++));
    }
    SOLSTICE_ASSIGN_OR_RETURN(const auto cubins, AssembleBatches(assembler.get(), batches));
    for (size_t b = 0; b < batches.size() && differences < kMostDifferences; ++b) {
      SOLSTICE_ASSIGN_OR_RETURN(const auto first, RunOn(one, batches[b], cubins[b]));
      SOLSTICE_ASSIGN_OR_RETURN(const auto second, RunOn(other, batches[b], ""));
      for (size_t i = 0; i < first.size(); ++i) {
        ++kernels;
        if (first[i] == second[i]) continue;
        ++differences;
        SOLSTICE_ASSIGN_OR_RETURN(const RandomKernel least, Minimise(batches[b][i], one, other));
        std::string seen;
        SOLSTICE_ASSIGN_OR_RETURN(const bool again, Disagree(least, one, other, &seen));
        const std::string place =
            again ? seen : "not again when it ran alone: " + DescribeDifference(first[i], second[i]);
        std::printf("DIFFERENT: %s\n", place.c_str());
        for (const std::string& line : least.lines) std::printf("  %s\n", line.c_str());
        const size_t thread = place.find("thread ");
        std::printf("  from%s\n", DescribeInput(least, std::atoi(place.c_str() + thread + 7)).c_str());
      }
    }
  }
  std::printf("%lld random kernels on %s and %s: %d differences\n", static_cast<long long>(kernels),
              mine->device().properties().name().c_str(), ordinal < 0 ? "its baseline build" : "the emulator",
              differences);
  return differences > 0 ? 1 : 0;
}

}  // namespace solstice::conformance
