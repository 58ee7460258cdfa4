// The stage with real libraries: what compiles, what each option changes, and what a wrong submission is told.
#include <sys/types.h>

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/compile/test_compiler.h"

#if defined(__SANITIZE_ADDRESS__)
// nvJitLink itself loses memory when the assembler refuses a program; each compile's process ends soon after.
extern "C" const char* __lsan_default_suppressions() { return "leak:libnvJitLink\n"; }
#endif

namespace solstice::compile {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kMath[] =
    "extern \"C\" __global__ void k(const float* x, float* y) {\n"
    "  int i = threadIdx.x; float a = x[i], b = y[i];\n"
    "  y[i] = a / b + sqrtf(a) * b;\n}\n";

std::string Ptx(const std::string& text, std::vector<std::string> options = {}) {
  v1::internal::Program program = CompileTest(text, std::move(options));
  EXPECT_EQ(program.verdict(), v1::PASSED) << program.reason() << "\n" << program.log();
  return program.ptx();
}

TEST(Compiler, FillsTheProgram) {
  v1::internal::Program program = CompileTest(kAffine);
  ASSERT_EQ(program.verdict(), v1::PASSED) << program.reason() << program.log();
  EXPECT_EQ(program.format_version(), kProgramFormat);
  EXPECT_EQ(program.arch(), "sm_90a");
  EXPECT_THAT(program.ptx(), HasSubstr(".entry k("));
  EXPECT_EQ(program.ptx().find('\0'), std::string::npos);
  EXPECT_EQ(program.cubin().substr(0, 4),
            "\x7f"
            "ELF");
  ASSERT_EQ(program.kernels_size(), 1);
  const v1::Kernel& kernel = program.kernels(0);
  EXPECT_EQ(kernel.name(), "k");
  EXPECT_EQ(kernel.name_expression(), "");
  ASSERT_EQ(kernel.parameters_size(), 3);
  EXPECT_EQ(kernel.parameters(2).bytes(), 8);
  EXPECT_GT(kernel.registers(), 3);
  EXPECT_LT(kernel.registers(), 64);
  EXPECT_EQ(kernel.local_bytes(), 0);
  EXPECT_EQ(kernel.static_shared_bytes(), 0);
  EXPECT_EQ(program.device_state_size(), 0);
  EXPECT_EQ(program.log(), "");
  EXPECT_THAT(program.toolchain().nvrtc(), HasSubstr("."));
  EXPECT_EQ(program.toolchain().headers_digest(), "sha256:test");
  EXPECT_GT(program.milliseconds(), 0);
  // The working folder of the compile leaves no trace.
  EXPECT_THAT(program.ptx(), HasSubstr(".file\t1 \"kernel.cu\""));
}

TEST(Compiler, IsDeterministic) {
  std::string text = "namespace { __global__ void hidden(float* y) { y[0] = 1; } }\n" + kAffine;
  v1::internal::Program first = CompileTest(text, {}, {"k", "hidden"}), second = CompileTest(text, {}, {"k", "hidden"});
  EXPECT_EQ(first.ptx(), second.ptx());
  EXPECT_EQ(first.cubin(), second.cubin());
}

TEST(Compiler, ReadsResourcesFromTheCubin) {
  v1::internal::Program program = CompileTest(
      "__constant__ float table[64] = {1};\n"
      "extern \"C\" __global__ void shared(float* y) { __shared__ float s[100]; s[threadIdx.x] = y[0]; "
      "__syncthreads(); y[1] = s[5] + table[threadIdx.x]; }\n"
      "extern \"C\" __global__ void __launch_bounds__(256) stack(float* y, int n) { float a[64]; for (int i = 0; i < "
      "n; ++i) a[y[i] > 0 ? i : 0] = y[i]; y[0] = a[n] + a[n + 1]; }\n");
  ASSERT_EQ(program.verdict(), v1::PASSED) << program.reason();
  ASSERT_EQ(program.kernels_size(), 2);
  for (const v1::Kernel& kernel : program.kernels()) {
    EXPECT_GE(kernel.constant_bytes(), 256);
    if (kernel.name() == "shared") {
      EXPECT_EQ(kernel.static_shared_bytes(), 400);
    }
    if (kernel.name() == "stack") {
      EXPECT_GE(kernel.local_bytes(), 256);
      EXPECT_EQ(kernel.max_threads(), 256);
    }
  }
}

TEST(Compiler, MaxRegCountSpills) {
  std::string text =
      "extern \"C\" __global__ void k(float* y) { float a[60];\n#pragma unroll\n for (int i = 0; i < 60; ++i) a[i] = "
      "y[i * 32];\n"
      " __syncthreads(); float s = 0;\n#pragma unroll\n for (int i = 0; i < 60; ++i) { s = s * a[i] + a[59 - i]; }\n"
      "#pragma unroll\n for (int i = 0; i < 60; ++i) y[i] = a[i] * s; }\n";
  v1::internal::Program free = CompileTest(text), tight = CompileTest(text, {"-maxrregcount=24"});
  ASSERT_EQ(free.verdict(), v1::PASSED);
  ASSERT_EQ(tight.verdict(), v1::PASSED);
  EXPECT_GT(free.kernels(0).registers(), 40);
  EXPECT_LE(tight.kernels(0).registers(), 24);
  EXPECT_EQ(free.kernels(0).spill_store_bytes(), 0);
  EXPECT_GT(tight.kernels(0).spill_store_bytes(), 0);
  EXPECT_GT(tight.kernels(0).spill_load_bytes(), 0);
  EXPECT_GE(tight.kernels(0).local_bytes(), 4);
  EXPECT_EQ(free.ptx(), tight.ptx());
}

TEST(Options, EachReachesThePtx) {
  std::string plain = Ptx(kMath);
  EXPECT_THAT(plain, AllOf(HasSubstr("div.rn.f32"), HasSubstr("sqrt.rn.f32"), HasSubstr("fma.rn.f32"),
                           Not(HasSubstr(".ftz.f32"))));
  std::string fast = Ptx(kMath, {"--use_fast_math"});
  EXPECT_THAT(fast,
              AllOf(HasSubstr("div.approx.ftz.f32"), HasSubstr("sqrt.approx.ftz.f32"), HasSubstr("fma.rn.ftz.f32")));
  EXPECT_THAT(fast, Not(HasSubstr("div.rn")));
  EXPECT_THAT(Ptx(kMath, {"-ftz=true"}),
              AllOf(HasSubstr("div.rn.ftz.f32"), HasSubstr("fma.rn.ftz.f32"), HasSubstr("sqrt.rn.ftz.f32")));
  EXPECT_THAT(Ptx(kMath, {"-prec-div=false"}), AllOf(HasSubstr("div.full.f32"), HasSubstr("sqrt.rn.f32")));
  EXPECT_THAT(Ptx(kMath, {"-prec-sqrt=false"}), AllOf(HasSubstr("sqrt.approx.f32"), HasSubstr("div.rn.f32")));
  std::string fused = "extern \"C\" __global__ void k(float* y) { y[0] = y[1] * y[2] + y[3]; }\n";
  EXPECT_THAT(Ptx(fused), HasSubstr("fma.rn.f32"));
  EXPECT_THAT(Ptx(fused, {"-fmad=false"}),
              AllOf(Not(HasSubstr("fma.rn")), HasSubstr("mul.rn.f32"), HasSubstr("add.rn.f32")));
  // Explicit switches win over the fast-math family in the front end and in the link.
  EXPECT_THAT(Ptx(kMath, {"--use_fast_math", "-ftz=false"}), Not(HasSubstr(".ftz")));
}

TEST(Options, StandardsMacrosAndTheRest) {
  std::string concepts =
      "template <class T> concept Small = sizeof(T) <= 4;\ntemplate <Small T> __device__ T f(T a) { return a; "
      "}\nextern \"C\" __global__ void k(int* y) { y[0] = f(1); }\n";
  EXPECT_EQ(CompileTest(concepts, {"-std=c++20"}).verdict(), v1::PASSED);
  EXPECT_EQ(CompileTest(concepts, {"-std=c++17"}).verdict(), v1::COMPILE_ERROR);
  EXPECT_EQ(CompileTest(concepts).verdict(), v1::COMPILE_ERROR);
  std::string macro =
      "#if !defined(NDEBUG) || TILE != 64\n#error macro\n#endif\nextern \"C\" __global__ void k(TYPE* y) { "
      "static_assert(sizeof(TYPE) == 8); y[0] = 1; }\n";
  TestRequest request;
  request.text = macro;
  request.options = {"-DTILE=64", "-DNDEBUG"};
  request.defines = {"TYPE=double"};
  EXPECT_EQ(CompileTest(request).verdict(), v1::PASSED);
  request.defines = {"TILE=64"};
  EXPECT_EQ(CompileTest(request).verdict(), v1::INVALID_SUBMISSION);
  // No effect on this release was found for these two; they must at least be taken.
  EXPECT_EQ(CompileTest(kAffine, {"-restrict", "--extra-device-vectorization"}).verdict(), v1::PASSED);
}

TEST(Options, CheckedAgainInTheJail) {
  v1::internal::Program program = CompileTest(kAffine, {"-I/"});
  EXPECT_EQ(program.verdict(), v1::INVALID_SUBMISSION);
  EXPECT_THAT(program.reason(), HasSubstr("-I/"));
  TestRequest request;
  request.text = kAffine;
  request.arch = "sm_90";
  EXPECT_EQ(CompileTest(request).verdict(), v1::INVALID_SUBMISSION);
  request.arch = "sm_90a";
  request.names = {"k\n#include \"/etc/hostname\""};
  EXPECT_EQ(CompileTest(request).verdict(), v1::INVALID_SUBMISSION);
  request.names = {"k); } void f() { (0"};
  EXPECT_EQ(CompileTest(request).verdict(), v1::INVALID_SUBMISSION);
}

constexpr char kTemplate[] =
    "namespace user { namespace ops {\ntemplate <typename T, int VEC, bool BIAS>\n"
    "__global__ void affine(const T* x, T* y, long long n) { if (threadIdx.x < n) y[0] = T(2) * x[0] + VEC; }\n}}\n";

TEST(NameExpressions, AreInstantiatedAndReported) {
  v1::internal::Program program =
      CompileTest(std::string(kTemplate) + kAffine, {}, {"user::ops::affine<float, 4, true>", "k"});
  ASSERT_EQ(program.verdict(), v1::PASSED) << program.reason();
  ASSERT_EQ(program.kernels_size(), 2);
  EXPECT_EQ(program.kernels(0).name_expression(), "user::ops::affine<float, 4, true>");
  EXPECT_THAT(program.kernels(0).name(), StartsWith("_ZN4user3ops6affineIfLi4ELb1EE"));
  EXPECT_GT(program.kernels(0).registers(), 0);
  EXPECT_EQ(program.kernels(1).name(), "k");
  EXPECT_EQ(program.kernels(1).name_expression(), "");
}

TEST(NameExpressions, MissingOnesAreNamed) {
  v1::internal::Program bad = CompileTest(kTemplate, {}, {"user::ops::affine<double4x4, 4, true>"});
  EXPECT_EQ(bad.verdict(), v1::COMPILE_ERROR);
  EXPECT_THAT(bad.reason(), AllOf(HasSubstr("user::ops::affine<double4x4, 4, true>"), HasSubstr("double4x4")));
  v1::internal::Program missing = CompileTest(std::string(kTemplate) + kAffine, {}, {"affine"});
  EXPECT_EQ(missing.verdict(), v1::COMPILE_ERROR);
  EXPECT_THAT(missing.reason(),
              AllOf(StartsWith("entry not found: affine; the program has: k"), HasSubstr("user::ops::affine<...>")));
  v1::internal::Program half = CompileTest(kTemplate, {}, {"user::ops::affine"});
  EXPECT_EQ(half.verdict(), v1::COMPILE_ERROR);
  EXPECT_THAT(half.reason(), HasSubstr("user::ops::affine"));
  v1::internal::Program helper = CompileTest("__device__ int helper() { return 1; }\n" + kAffine, {}, {"helper"});
  EXPECT_EQ(helper.verdict(), v1::COMPILE_ERROR);
  EXPECT_THAT(helper.reason(), HasSubstr("helper"));
  v1::internal::Program variable = CompileTest("__device__ int counter;\n" + kAffine, {}, {"&counter"});
  EXPECT_EQ(variable.verdict(), v1::COMPILE_ERROR);
  EXPECT_THAT(variable.reason(), AllOf(HasSubstr("entry not found"), HasSubstr("k")));
  // An ordinary error comes before the names that depend on it.
  v1::internal::Program both = CompileTest("int x = y;\n" + kAffine, {}, {"nope"});
  EXPECT_THAT(both.reason(), StartsWith("kernel.cu:1: identifier \"y\" is undefined"));
}

TEST(Entries, SourceWithoutKernels) {
  v1::internal::Program none = CompileTest("__device__ int f() { return 1; }\n");
  EXPECT_EQ(none.verdict(), v1::COMPILE_ERROR);
  EXPECT_THAT(none.reason(), HasSubstr("no kernels"));
  v1::internal::Program templates = CompileTest(kTemplate);
  EXPECT_THAT(templates.mend(), HasSubstr("user::ops::affine<...>"));
}

TEST(Sources, OtherFilesAreFoundFromWhereTheyStand) {
  TestRequest request;
  request.path = "src/kernel.cu";
  request.text =
      "#include \"../lib/a.cuh\"\n#include \"lib/b.cuh\"\n#include <lib/c.cuh>\nextern \"C\" __global__ void k(int* y) "
      "{ y[0] = A + B + C + D; }\n";
  request.files = {{"lib/a.cuh", "#pragma once\n#include \"d.cuh\"\n#define A 1\n"},
                   {"lib/b.cuh", "\xEF\xBB\xBF#define B 2\n"},
                   {"lib/c.cuh", "#include \"sub/../d.cuh\"\n#define C 3\n"},
                   {"lib/d.cuh", "#ifndef D\n#define D 4\n#endif\n"}};
  v1::internal::Program program = CompileTest(request);
  EXPECT_EQ(program.verdict(), v1::PASSED) << program.reason();
  request.files[3].second = "\n#error inner\n";
  program = CompileTest(request);
  EXPECT_THAT(program.reason(), StartsWith("lib/d.cuh:2: "));
  request.files[3].second = "void f() { k<<<1, 1>>>(); }\n";
  program = CompileTest(request);
  EXPECT_THAT(program.reason(), StartsWith("lib/d.cuh:1: "));
  // A file that nothing includes may hold host code.
  request.text = kAffine;
  EXPECT_EQ(CompileTest(request).verdict(), v1::PASSED);
}

TEST(Sources, LineNumbersAndMarksAreTheUsers) {
  v1::internal::Program program = CompileTest("\xEF\xBB\xBF\nuint32_t ok;\nint x = $;\n");
  EXPECT_THAT(program.reason(), StartsWith("kernel.cu:3: "));
  v1::internal::Program spoof =
      CompileTest("#line 1 \"/opt/service/secret_config.h\"\n#error spoofed location\n" + kAffine);
  EXPECT_EQ(spoof.verdict(), v1::COMPILE_ERROR);
  EXPECT_THAT(spoof.reason(), HasSubstr("spoofed location"));
}

TEST(HostCode, HeadersGetTheDeviceAlternative) {
  for (const char* header :
       {"vector", "iostream", "torch/extension.h", "string", "map", "memory", "thread", "ATen/ATen.h"}) {
    v1::internal::Program program = CompileTest(base::StrCat("\n#include <", header, ">\n") + kAffine);
    EXPECT_EQ(program.verdict(), v1::COMPILE_ERROR) << header;
    EXPECT_THAT(program.reason(),
                AllOf(StartsWith("kernel.cu:2: "), HasSubstr("host-only headers do not exist in this runtime compiler"),
                      HasSubstr("cuda/std/array"), HasSubstr("cuda/std/span")))
        << header;
    EXPECT_THAT(program.mend(), HasSubstr("//@ launch")) << header;
  }
  v1::internal::Program own = CompileTest("#include \"tile.cuh\"\n" + kAffine);
  EXPECT_THAT(own.reason(), AllOf(HasSubstr("tile.cuh"), HasSubstr("cannot find")));
  EXPECT_EQ(CompileTest("#ifndef __CUDACC_RTC__\n#include <vector>\n#endif\n" + kAffine).verdict(), v1::PASSED);
}

TEST(HostCode, LaunchesPointToThePlan) {
  v1::internal::Program program = CompileTest("#include <cuda_runtime.h>\n__global__ void k_impl" + kAffineBody +
                                              "extern \"C\" void run(const float* x, float* y, long long n, "
                                              "cudaStream_t s) { k_impl<<<(n + 255) / 256, 256, 0, s>>>(x, y, n); }\n");
  EXPECT_EQ(program.verdict(), v1::COMPILE_ERROR);
  EXPECT_THAT(program.reason(), AllOf(StartsWith("kernel.cu:6: "), HasSubstr("<<<>>>"), HasSubstr("launch plan")));
  EXPECT_THAT(program.mend(), AllOf(HasSubstr("//@ launch"), HasSubstr("docs/launch-plans.md")));
  v1::internal::Program hidden = CompileTest(
      "#define GO(f) f<<<1, 1>>>\n__global__ void a(int* y) { y[0] = 1; }\nextern \"C\" __global__ void k(int* y) { "
      "GO(a)(y); }\n");
  EXPECT_EQ(hidden.verdict(), v1::COMPILE_ERROR);
  EXPECT_THAT(hidden.reason(), HasSubstr("<<<>>>"));
}

TEST(LinkErrors, NameTargetSizeAndPlace) {
  std::string wgmma =
      "extern \"C\" __global__ void __launch_bounds__(128) k(float* y) {\n  asm volatile(\"wgmma.fence.sync.aligned;\" "
      "::: \"memory\");\n  y[0] = 1;\n}\n";
  TestRequest request;
  request.text = wgmma;
  EXPECT_EQ(CompileTest(request).verdict(), v1::PASSED);
  for (const char* arch : {"sm_100a", "sm_100f", "sm_103a"}) {
    request.arch = arch;
    v1::internal::Program program = CompileTest(request);
    EXPECT_EQ(program.verdict(), v1::COMPILE_ERROR);
    EXPECT_THAT(program.reason(), AllOf(HasSubstr("wgmma"), HasSubstr(arch), StartsWith("kernel.cu:2: ")));
  }
  request.arch = "sm_103f";
  request.text = kAffine;
  EXPECT_EQ(CompileTest(request).verdict(), v1::PASSED);

  v1::internal::Program big = CompileTest(
      "extern \"C\" __global__ void k(int* y) { __shared__ int s[100000]; s[threadIdx.x] = y[0]; __syncthreads(); y[0] "
      "= s[7]; }\n");
  EXPECT_EQ(big.verdict(), v1::COMPILE_ERROR);
  EXPECT_THAT(big.reason(), AllOf(HasSubstr("400000 bytes"), HasSubstr("232448"), HasSubstr("kernel k")));
  EXPECT_THAT(big.mend(), HasSubstr("extern __shared__"));

  v1::internal::Program undefined = CompileTest(
      "extern \"C\" __device__ int missing(int);\nextern \"C\" __global__ void k(int* y) { y[0] = missing(3); }\n");
  EXPECT_EQ(undefined.verdict(), v1::COMPILE_ERROR);
  EXPECT_THAT(undefined.reason(), HasSubstr("missing"));
  v1::internal::Program wrong =
      CompileTest("extern \"C\" __global__ void k(int* y) {\n\n  asm volatile(\"foo.bar;\");\n}\n");
  EXPECT_THAT(wrong.reason(), StartsWith("kernel.cu:3: "));
  EXPECT_THAT(wrong.log(), HasSubstr("foo"));
}

TEST(DeviceState, IsReported) {
  v1::internal::Program program = CompileTest(
      "__device__ int counter;\nextern \"C\" __global__ void k(int* y) {\n  y[0] = atomicAdd(&counter, 1);\n}\n");
  ASSERT_EQ(program.verdict(), v1::PASSED) << program.reason();
  ASSERT_EQ(program.device_state_size(), 1);
  EXPECT_EQ(program.device_state(0).variable(), "counter");
  EXPECT_EQ(program.device_state(0).line(), 3);
}

TEST(Log, IsCutAndErrorsStayWhole) {
  std::string text = "extern \"C\" __global__ void k(float* y) {\n";
  for (int i = 0; i < 5000; ++i) text += base::StrCat("  int unused_", i, " = ", i, ";\n");
  text += "  y[0] = 1;\n}\n";
  v1::internal::Program warnings = CompileTest(text);
  EXPECT_EQ(warnings.verdict(), v1::PASSED) << warnings.reason();
  EXPECT_LE(static_cast<int64_t>(warnings.log().size()), kDefaultLogBytes);
  EXPECT_GT(warnings.log_bytes(), 500000);
  EXPECT_GT(warnings.log_dropped_bytes(), 400000);
  EXPECT_THAT(warnings.log(), AllOf(HasSubstr("unused_0"), HasSubstr("bytes dropped")));

  std::string deep =
      "template <class T, class U> struct A { typedef A<A<T, U>, A<U, T>> n; static __device__ int f() { return n::q; "
      "} };\n"
      "extern \"C\" __global__ void k(float* y) { y[0] = A<int, float>::n::n::n::n::n::n::n::n::n::n::f(); }\n";
  v1::internal::Program error = CompileTest(deep);
  EXPECT_EQ(error.verdict(), v1::COMPILE_ERROR);
  EXPECT_THAT(error.log(), AllOf(StartsWith("kernel.cu(1): error: class"), HasSubstr("1 error detected")));
  EXPECT_LE(error.reason().size(), 400u);
  TestRequest request;
  request.text = deep;
  request.limits.set_log_bytes(2000);
  v1::internal::Program cut = CompileTest(request);
  EXPECT_LE(cut.log().size(), 2000u);
  EXPECT_GT(cut.log_dropped_bytes(), 50000);
}

TEST(Limits, CubinAndStoppedCompilers) {
  TestRequest request;
  request.text = kAffine;
  request.limits.set_cubin_bytes(1000);
  v1::internal::Program program = CompileTest(request);
  EXPECT_EQ(program.verdict(), v1::RESOURCE_EXCEEDED);
  EXPECT_THAT(program.reason(), HasSubstr("1000"));
  EXPECT_EQ(program.cubin(), "");
  v1::internal::CompileLimits limits;
  limits.set_time_s(2.5);
  limits.set_memory_bytes(int64_t{4} << 30);
  EXPECT_EQ(TimeLimitProgram(MakeSource(request), limits).verdict(), v1::COMPILE_ERROR);
  EXPECT_THAT(TimeLimitProgram(MakeSource(request), limits).reason(),
              StartsWith("compile time limit: not finished after 2.5 s"));
  EXPECT_EQ(MemoryLimitProgram(MakeSource(request), limits).verdict(), v1::COMPILE_ERROR);
  EXPECT_THAT(MemoryLimitProgram(MakeSource(request), limits).reason(), HasSubstr("4096 MiB"));
}

TEST(Libraries, OpenQuietly) {
  ASSERT_NE(TestCompiler(), nullptr);
  std::ifstream maps("/proc/self/maps");
  std::string all((std::istreambuf_iterator<char>(maps)), std::istreambuf_iterator<char>());
  EXPECT_THAT(all, Not(HasSubstr("libcuda.so")));
  size_t threads = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) threads += entry.exists();
  EXPECT_EQ(threads, 1u);
  auto missing = OpenNvrtc("/nowhere/libnvrtc.so.13");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(OpenNvJitLink("/nowhere/libnvJitLink.so.13").status().code(), absl::StatusCode::kFailedPrecondition);
  auto toolkit = FindToolkit();
  ASSERT_TRUE(toolkit.ok());
  EXPECT_EQ(OpenNvrtc(toolkit->nvjitlink).status().code(), absl::StatusCode::kFailedPrecondition);
}

// Stands for libraries that cannot be made to fail at will.
class FakeFrontend : public Frontend {
 public:
  FakeFrontend(std::string version, Output output) : version_(std::move(version)), output_(std::move(output)) {}
  std::string version() const override { return version_; }
  StatusOr<Output> Compile(const Input&) override { return output_; }

 private:
  std::string version_;
  Output output_;
};

TEST(Versions, MustAgree) {
  auto toolkit = FindToolkit();
  ASSERT_TRUE(toolkit.ok());
  auto linker = OpenNvJitLink(toolkit->nvjitlink);
  ASSERT_TRUE(linker.ok());
  std::string release = (*linker)->version();
  Compiler mixed(std::make_unique<FakeFrontend>("11.8.1", Frontend::Output()), *std::move(linker),
                 {TestIncludePaths(), "d"});
  EXPECT_EQ(mixed.status().code(), absl::StatusCode::kFailedPrecondition);
  TestRequest request;
  request.text = kAffine;
  auto program = mixed.Compile(MakeSource(request), {});
  EXPECT_EQ(program.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::MessageOf(program.status()),
              AllOf(HasSubstr("NVRTC 11.8.1"), HasSubstr("nvJitLink " + release), HasSubstr("headers ")));

  auto frontend = OpenNvrtc(toolkit->nvrtc);
  linker = OpenNvJitLink(toolkit->nvjitlink);
  Compiler without(*std::move(frontend), *std::move(linker), {{"/nowhere"}, "d"});
  EXPECT_THAT(base::MessageOf(without.status()), HasSubstr("headers not found"));
}

TEST(Versions, ExhaustedFrontEnd) {
  auto toolkit = FindToolkit();
  ASSERT_TRUE(toolkit.ok());
  auto linker = OpenNvJitLink(toolkit->nvjitlink);
  ASSERT_TRUE(linker.ok());
  Frontend::Output output;
  output.exhausted = true;
  output.log = "out of memory";
  std::string version = (*linker)->version();
  Compiler compiler(std::make_unique<FakeFrontend>(version, output), *std::move(linker), {TestIncludePaths(), "d"});
  TestRequest request;
  request.text = kAffine;
  auto program = compiler.Compile(MakeSource(request), {});
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->verdict(), v1::COMPILE_ERROR);
}

TEST(Toolkit, EnvironmentDecides) {
  const char* before = getenv("SOLSTICE_CUDA_HOME");
  std::string kept = before == nullptr ? "" : before;
  setenv("SOLSTICE_CUDA_HOME", "/nowhere", 1);
  auto toolkit = FindToolkit();
  EXPECT_EQ(toolkit.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(base::MessageOf(toolkit.status()), HasSubstr("/nowhere"));
  EXPECT_THAT(base::MendOf(toolkit.status()), HasSubstr("SOLSTICE_CUDA_HOME"));
  if (before == nullptr)
    unsetenv("SOLSTICE_CUDA_HOME");
  else
    setenv("SOLSTICE_CUDA_HOME", kept.c_str(), 1);
}

// Jails refuse mounts with "..", and a build tree's own toolkit is found through some.
TEST(Toolkit, PathsArePlain) {
  const char* before = getenv("SOLSTICE_CUDA_HOME");
  std::string kept = before == nullptr ? "" : before;
  auto plain = FindToolkit();
  ASSERT_TRUE(plain.ok()) << plain.status();
  setenv("SOLSTICE_CUDA_HOME", (plain->root + "/lib/..").c_str(), 1);
  auto odd = FindToolkit();
  if (before == nullptr)
    unsetenv("SOLSTICE_CUDA_HOME");
  else
    setenv("SOLSTICE_CUDA_HOME", kept.c_str(), 1);
  ASSERT_TRUE(odd.ok()) << odd.status();
  EXPECT_EQ(odd->nvrtc, plain->nvrtc);
  EXPECT_EQ(odd->include, plain->include);
}

TEST(HeaderTreeDigest, SeesNamesAndContents) {
  std::string root = ::testing::TempDir() + "/headers." + std::to_string(getpid());
  std::filesystem::create_directories(root + "/a/sub");
  auto write = [&](const std::string& name, const std::string& text) { std::ofstream(root + "/a/" + name) << text; };
  write("x.h", "1");
  write("sub/y.h", "2");
  auto digest = [&](std::vector<std::string> folders) {
    auto value = HeaderTreeDigest(folders);
    EXPECT_TRUE(value.ok()) << value.status();
    return value.ok() ? *value : std::string();
  };
  std::string first = digest({root + "/a"});
  EXPECT_EQ(first, digest({root + "/a"}));
  write("x.h", "3");
  std::string second = digest({root + "/a"});
  EXPECT_NE(first, second);
  std::filesystem::rename(root + "/a/x.h", root + "/a/z.h");
  EXPECT_NE(second, digest({root + "/a"}));
  EXPECT_NE(digest({root + "/a", root + "/a/sub"}), digest({root + "/a"}));
  EXPECT_FALSE(HeaderTreeDigest({root + "/nowhere"}).ok());
  std::filesystem::create_directory_symlink(root + "/a", root + "/a/loop");
  EXPECT_FALSE(HeaderTreeDigest({root + "/a"}).ok());
  std::filesystem::remove_all(root);
  EXPECT_TRUE(HeaderTreeDigest(TestIncludePaths()).ok());
}

}  // namespace
}  // namespace solstice::compile
