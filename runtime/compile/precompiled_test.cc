// Programs made with a precompiled header are those made without; where they would not be, it is not used.
#include "runtime/compile/precompiled.h"

#include <filesystem>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/compile/test_compiler.h"

namespace solstice::compile {
namespace {

using ::testing::HasSubstr;

constexpr char kHeaders[] =
    "#include <cooperative_groups.h>\n#include <mma.h>\n#include <cuda/std/atomic>\n#include <cuda/std/type_traits>\n";

constexpr char kBody[] = R"(
namespace cg = cooperative_groups;
namespace { __device__ int counter; __device__ __noinline__ float Helper(float x) { return x * 3 + __LINE__; } }
static __constant__ float table[4] = {1, 2, 3, 4};
template <int N> __global__ void t(float* c) {
  __shared__ float s[N];
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  s[threadIdx.x % N] = c[threadIdx.x];
  block.sync();
  static_assert(cuda::std::is_same<float, float>::value);
  auto add = [](float a, float b) { return a + b; };
  c[threadIdx.x] = add(Helper(s[(N - threadIdx.x) % N]), table[threadIdx.x % 4]);
  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> f;
  nvcuda::wmma::fill_fragment(f, float(N));
  nvcuda::wmma::store_matrix_sync(c, f, 16, nvcuda::wmma::mem_row_major);
  if (warp.thread_rank() == 0) cuda::std::atomic_ref<int>(counter).fetch_add(1);
  if (c[0] < 0) printf("%s %d\n", __FILE__, __LINE__);
}
extern "C" __global__ void k(uint32_t* p) { int unused; p[threadIdx.x] = sqrtf(p[0]) / 3.0f; }
)";

// One compiler a set of headers and options, each with a file of its own.
class PrecompiledTest : public testing::Test {
 protected:
  static Compiler* With(const v1::internal::ProgramSource& headers) {
    static auto* made = new std::map<std::string, std::unique_ptr<Compiler>>;
    std::unique_ptr<Compiler>& compiler = (*made)[headers.SerializeAsString()];
    if (compiler != nullptr) return compiler.get();
    StatusOr<Toolkit> toolkit = FindToolkit();
    EXPECT_TRUE(toolkit.ok()) << toolkit.status();
    auto frontend = OpenNvrtc(toolkit->nvrtc);
    auto linker = OpenNvJitLink(toolkit->nvjitlink);
    compiler = std::make_unique<Compiler>(*std::move(frontend), *std::move(linker),
                                          CompilerConfig{TestIncludePaths(), "sha256:test"});
    std::string path = base::StrCat(testing::TempDir(), "/headers_", ::getpid(), "_", made->size(), ".pch");
    Status status = compiler->Precompile(headers, path);
    EXPECT_TRUE(status.ok()) << status;
    std::error_code error;
    EXPECT_GT(std::filesystem::file_size(path, error), 1 << 20);
    files().push_back(path);
    return compiler.get();
  }
  static std::vector<std::string>& files() {
    static auto* list = new std::vector<std::string>;
    return *list;
  }
  static void TearDownTestSuite() {
    for (const std::string& file : files()) std::filesystem::remove(file);
  }

  static v1::internal::Program Make(Compiler* compiler, const TestRequest& request) {
    auto program = compiler->Compile(MakeSource(request), request.limits);
    EXPECT_TRUE(program.ok()) << program.status();
    program->clear_milliseconds();
    return *program;
  }

  // Compiles both ways and expects one result; says whether the header was used.
  static bool Compare(const TestRequest& request, v1::Verdict verdict = v1::PASSED, bool own_headers = true) {
    TestRequest base = request;
    if (!own_headers) base.text = kHeaders;
    v1::internal::Program with = Make(With(SharedHeaders(MakeSource(base))), request);
    v1::internal::Program without = Make(TestCompiler(), request);
    EXPECT_EQ(without.verdict(), verdict) << without.reason() << "\n" << without.log();
    EXPECT_FALSE(without.precompiled_headers());
    bool used = with.precompiled_headers();
    with.clear_precompiled_headers();
    EXPECT_EQ(with.ptx(), without.ptx());
    EXPECT_EQ(with.log(), without.log());
    EXPECT_EQ(with.SerializeAsString(), without.SerializeAsString());
    return used;
  }

  static TestRequest Request(const std::string& body) {
    TestRequest request;
    request.text = kHeaders + body;
    return request;
  }
};

TEST_F(PrecompiledTest, SameProgramWarningsAndLines) {
  TestRequest request = Request(kBody);
  request.names = {"t<4>", "t<8>", "k"};
  EXPECT_TRUE(Compare(request));
  v1::internal::Program program = Make(With(SharedHeaders(MakeSource(request))), request);
  EXPECT_THAT(program.log(), HasSubstr("kernel.cu(24): warning"));
  EXPECT_THAT(program.ptx(), HasSubstr("kernel.cu\""));
  // Compiled with them, another path is as good.
  request.path = "src/other.cu";
  EXPECT_TRUE(Compare(request));
}

TEST_F(PrecompiledTest, SameProgramForEachOption) {
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"-std=c++20"}, {"--use_fast_math", "-restrict", "-maxrregcount=64"}}) {
    TestRequest request = Request(kBody);
    request.names = {"t<16>", "k"};
    request.options = options;
    EXPECT_TRUE(Compare(request)) << options[0];
    // Not with a header of other options.
    request.options.push_back("-ftz=true");
    EXPECT_FALSE(Make(With(SharedHeaders(MakeSource(Request(kBody)))), request).precompiled_headers());
  }
}

TEST_F(PrecompiledTest, SameWordsForWrongSources) {
  for (const char* body :
       {"__global__ void k() { y = 1; }\n", "\n\n#error no\n", "__global__ void k() {\n", "#include <nothing.h>\n",
        "__global__ void k() { cooperative_groups::tiled_partition<33>(1); }\n",
        "__global__ void k(int* p) { cuda::std::atomic_ref<int[3]> a(p); }\n", "int host();\n",
        "template <int N> __global__ void t() { static_assert(N > 4, \"PCH\"); }\n"
        "template __global__ void t<2>();\n"}) {
    SCOPED_TRACE(body);
    Compare(Request(body), v1::COMPILE_ERROR);
  }
  TestRequest request = Request(kBody);
  request.names = {"missing"};
  EXPECT_TRUE(Compare(request, v1::COMPILE_ERROR));
}

TEST_F(PrecompiledTest, OtherSpellingsOfTheSameHeadersUseIt) {
  TestRequest request;
  request.text = base::StrCat("// A comment\n\n  #  include <cooperative_groups.h>   // groups\n",
                              "#include <mma.h>\n/* two\nlines */\n#include <cuda/std/atomic>\n",
                              "#include <cuda/std/type_traits>\n#include <cuda_bf16.h>\n#include <mma.h>\n", kBody);
  request.names = {"t<4>", "k"};
  EXPECT_TRUE(Compare(request));
  request.text.insert(0, "\xEF\xBB\xBF");
  EXPECT_TRUE(Compare(request));
}

TEST_F(PrecompiledTest, DefinesFollow) {
  TestRequest request = Request("extern \"C\" __global__ void k(float* p) { p[0] = SCALE + WIDTH EMPTY; }\n");
  request.options = {"-DSCALE=3.5f", "-DEMPTY="};
  request.defines = {"WIDTH=0x10"};
  EXPECT_TRUE(Compare(request));
}

TEST_F(PrecompiledTest, DefinesThatTheHeadersCouldSeeDoNot) {
  // A macro of the toolkit, a name put together by pasting, a word of the headers, one that the pack's header holds.
  for (const char* define : {"CUDA_NO_HALF", "CCCL_DISABLE_X", "thread_block_tile=x", "INT8_MAX=3"}) {
    TestRequest request = Request("extern \"C\" __global__ void k(float* p) { p[0] = 1; }\n");
    request.defines = {define};
    EXPECT_FALSE(Make(With(SharedHeaders(MakeSource(Request("")))), request).precompiled_headers()) << define;
  }
  // The compiler warns of a second definition in other words.
  TestRequest request = Request("#define SCALE 4\nextern \"C\" __global__ void k(float* p) { p[0] = SCALE; }\n");
  request.defines = {"SCALE=3"};
  EXPECT_FALSE(Compare(request));
}

TEST_F(PrecompiledTest, MacrosBeforeTheHeadersKeepTheirMeaning) {
  TestRequest request = Request("extern \"C\" __global__ void k(int* p) { groups::this_thread_block().sync(); }\n");
  request.text.insert(0, "#define cooperative_groups groups\n");
  EXPECT_FALSE(Compare(request, v1::PASSED, false));
}

TEST_F(PrecompiledTest, FilesOfTheSubmission) {
  TestRequest request = Request("#include \"inc/tile.h\"\nextern \"C\" __global__ void k(int* p) { p[0] = Tile(); }\n");
  request.files = {{"inc/tile.h", "#include <cooperative_groups.h>\n__device__ int Tile() { return __LINE__; }\n"}};
  EXPECT_TRUE(Compare(request));
  // One that the toolkit's headers would include in place of their own.
  request.files.emplace_back("cuda/std/__atomic/order.h", "#error mine\n");
  v1::internal::Program program = Make(With(SharedHeaders(MakeSource(Request("")))), request);
  EXPECT_FALSE(program.precompiled_headers());
}

TEST_F(PrecompiledTest, PlainSourcesAndOtherTargetsDoNot) {
  TestRequest request;
  request.text = kAffine;
  EXPECT_FALSE(Compare(request, v1::PASSED, false));
  request = Request(kBody);
  request.names = {"k"};
  request.arch = "sm_100a";
  EXPECT_FALSE(Make(With(SharedHeaders(MakeSource(Request("")))), request).precompiled_headers());
}

TEST_F(PrecompiledTest, EveryTarget) {
  for (const char* arch : {"sm_90a", "sm_100a", "sm_100f", "sm_103a", "sm_103f"}) {
    TestRequest request;
    request.text =
        "#include <cuda/ptx>\n__global__ void k(int* y) { cuda::ptx::fence(cuda::ptx::sem_sc, cuda::ptx::scope_gpu);\n"
        "y[0] = __CUDA_ARCH__; }\n";
    request.arch = arch;
    EXPECT_TRUE(Compare(request)) << arch;
  }
}

TEST_F(PrecompiledTest, HeavySources) {
  struct Case {
    const char *headers, *body;
  };
  for (const Case& c : {
           Case{"#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cuda_fp8.h>\n#include "
                "<cooperative_groups.h>\n"
                "#include <cooperative_groups/reduce.h>\n#include <cuda/std/array>\n",
                "__global__ void k(float* y) { auto w = cooperative_groups::tiled_partition<32>(\n"
                "cooperative_groups::this_thread_block()); cuda::std::array<float, 2> a = {1, 2};\n"
                "y[0] = cooperative_groups::reduce(w, y[threadIdx.x], cooperative_groups::plus<float>()) + a[1]; }\n"},
           Case{"#include <cub/block/block_reduce.cuh>\n",
                "__global__ void k(float* y) { using R = cub::BlockReduce<float, 128>;\n"
                "__shared__ typename R::TempStorage s; float r = R(s).Sum(y[threadIdx.x]); if (!threadIdx.x) *y = r; "
                "}\n"},
           Case{"#include <curand_kernel.h>\n",
                "__global__ void k(float* y) { curandStatePhilox4_32_10_t s; curand_init(1, threadIdx.x, 0, &s);\n"
                "y[threadIdx.x] = curand_uniform(&s); }\n"},
           Case{"#include <cuda/barrier>\n#include <cuda/ptx>\n",
                "__global__ void k(int* y) { __shared__ cuda::barrier<cuda::thread_scope_block> b;\n"
                "if (!threadIdx.x) init(&b, blockDim.x); __syncthreads(); b.arrive_and_wait(); y[0] = 1; }\n"},
       }) {
    SCOPED_TRACE(c.headers);
    TestRequest request;
    request.text = base::StrCat(c.headers, c.body);
    EXPECT_TRUE(Compare(request));
  }
}

TEST_F(PrecompiledTest, OnlyHeadersAreTaken) {
  Compiler* compiler = With(SharedHeaders(MakeSource(Request(""))));
  auto headers = SharedHeaders(MakeSource(Request("")));
  EXPECT_EQ(compiler->Precompile(headers, "/dev/null").code(), absl::StatusCode::kFailedPrecondition) << "once";

  StatusOr<Toolkit> toolkit = FindToolkit();
  Compiler fresh(*OpenNvrtc(toolkit->nvrtc), *OpenNvJitLink(toolkit->nvjitlink), {TestIncludePaths(), "sha256:test"});
  std::string path = base::StrCat(testing::TempDir(), "/refused_", ::getpid(), ".pch");
  auto with_code = headers;
  with_code.mutable_sources(0)->set_content(kHeaders + std::string("int x;\n"));
  EXPECT_EQ(fresh.Precompile(with_code, path).code(), absl::StatusCode::kInvalidArgument);
  auto with_define = headers;
  with_define.add_options("-DX=1");
  EXPECT_EQ(fresh.Precompile(with_define, path).code(), absl::StatusCode::kInvalidArgument);
  auto with_two = headers;
  *with_two.add_sources() = headers.sources(0);
  EXPECT_EQ(fresh.Precompile(with_two, path).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(path));
  auto missing = headers;
  missing.mutable_sources(0)->set_content("#include <cuda/there_is_none>\n");
  EXPECT_EQ(fresh.Precompile(missing, path).code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace solstice::compile
