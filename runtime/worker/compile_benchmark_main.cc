// Times the compile stage as a server sees it: from request to cubin, each compile in its own child of a jailed zygote.
// One line a source: plain; with the making of its precompiled header; with that header. Usage:
//   solstice-compile-benchmark [repeats] [more.cu ...]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/compile/compile.h"
#include "runtime/worker/worker.h"

namespace solstice::worker {
namespace {

constexpr std::chrono::seconds kTimeout(600);
constexpr int64_t kMaxSourceBytes = 1 << 20;

struct Source {
  std::string name, text;
};

const Source kSources[] = {
    {"plain kernel", "extern \"C\" __global__ void k(float* y) { y[threadIdx.x] += 1.0f; }\n"},
    {"cuda_bf16.h",
     "#include <cuda_bf16.h>\n"
     "extern \"C\" __global__ void k(__nv_bfloat16* y) { y[threadIdx.x] = __float2bfloat16(1.0f); }\n"},
    {"mma.h",
     "#include <mma.h>\n"
     "extern \"C\" __global__ void k(float* c) {\n"
     "  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> f;\n"
     "  nvcuda::wmma::fill_fragment(f, 1.0f);\n"
     "  nvcuda::wmma::store_matrix_sync(c, f, 16, nvcuda::wmma::mem_row_major);\n}\n"},
    {"cooperative_groups.h",
     "#include <cooperative_groups.h>\n"
     "extern \"C\" __global__ void k(int* y) { auto b = cooperative_groups::this_thread_block(); b.sync();\n"
     "  y[b.thread_rank()] = 1; }\n"},
    {"cuda/std/type_traits, array",
     "#include <cuda/std/type_traits>\n#include <cuda/std/array>\n"
     "extern \"C\" __global__ void k(int* y) { cuda::std::array<int, 4> a = {1, 2, 3, 4}; y[0] = a[threadIdx.x % 4]; "
     "}\n"},
    {"cooperative_groups.h, mma.h, cuda/std",
     "#include <cooperative_groups.h>\n#include <mma.h>\n#include <cuda/std/atomic>\n#include <cuda/std/type_traits>\n"
     "extern \"C\" __global__ void k(float* c, int* count) {\n"
     "  auto warp = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());\n"
     "  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> f;\n"
     "  nvcuda::wmma::fill_fragment(f, 1.0f);\n"
     "  nvcuda::wmma::store_matrix_sync(c, f, 16, nvcuda::wmma::mem_row_major);\n"
     "  if (warp.thread_rank() == 0) cuda::std::atomic_ref<int>(*count).fetch_add(1);\n}\n"},
    {"cooperative_groups/reduce.h",
     "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\n"
     "extern \"C\" __global__ void k(float* y) { auto w = cooperative_groups::tiled_partition<32>(\n"
     "  cooperative_groups::this_thread_block()); float s = cooperative_groups::reduce(w, y[threadIdx.x],\n"
     "  cooperative_groups::plus<float>()); if (w.thread_rank() == 0) y[0] = s; }\n"},
    {"cub/block/block_reduce.cuh",
     "#include <cub/block/block_reduce.cuh>\n"
     "extern \"C\" __global__ void k(float* y) { using Reduce = cub::BlockReduce<float, 128>;\n"
     "  __shared__ typename Reduce::TempStorage s; float r = Reduce(s).Sum(y[threadIdx.x]);\n"
     "  if (threadIdx.x == 0) y[0] = r; }\n"},
};

v1::internal::ProgramSource SourceOf(const std::string& text) {
  v1::internal::ProgramSource source;
  v1::SourceFile* file = source.add_sources();
  file->set_path("kernel.cu");
  file->set_content(text);
  source.set_arch("sm_90a");
  source.set_keep_all_entries(true);
  return source;
}

StatusOr<double> CompileOnce(Client& client, const v1::internal::ProgramSource& source, bool precompiled) {
  base::Stopwatch watch;
  v1::internal::WorkerRequest request;
  *request.mutable_compile()->mutable_source() = source;
  SOLSTICE_ASSIGN_OR_RETURN(auto reply, client.Call(std::move(request), {}, nullptr, kTimeout));
  const v1::internal::Program& program = reply.program();
  if (program.verdict() != v1::PASSED) return base::Internal(base::StrCat(program.reason(), "\n", program.log()));
  if (program.precompiled_headers() != precompiled) return base::Internal("not compiled as it should be");
  return watch.milliseconds();
}

StatusOr<std::string> Median(Client& client, const v1::internal::ProgramSource& source, bool precompiled, int repeats) {
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    SOLSTICE_ASSIGN_OR_RETURN(double time, CompileOnce(client, source, precompiled));
    times.push_back(time);
  }
  std::sort(times.begin(), times.end());
  char text[64];
  std::snprintf(text, sizeof text, "%6.0f (%.0f-%.0f)", times[times.size() / 2], times.front(), times.back());
  return std::string(text);
}

Status Measure(sandbox::Spawner& spawner, const Installation& installation, const Source& measured, int repeats) {
  v1::internal::ProgramSource source = SourceOf(measured.text);
  SOLSTICE_ASSIGN_OR_RETURN(auto plain_jail, CompilerJail(installation, 0));
  SOLSTICE_ASSIGN_OR_RETURN(auto plain_client, Client::Start(spawner, plain_jail, kTimeout));
  SOLSTICE_ASSIGN_OR_RETURN(std::string plain, Median(*plain_client, source, false, repeats));
  v1::internal::ProgramSource headers = compile::SharedHeaders(source);
  if (headers.sources().empty()) {
    std::printf("%-40s %20s %10s %20s\n", measured.name.c_str(), plain.c_str(), "-", "-");
    return absl::OkStatus();
  }
  SOLSTICE_ASSIGN_OR_RETURN(auto jail, HeaderCompilerJail(installation, 1));
  base::Stopwatch watch;
  SOLSTICE_ASSIGN_OR_RETURN(auto client, Client::Start(spawner, jail, kTimeout));
  v1::internal::WorkerRequest request;
  *request.mutable_precompile_headers()->mutable_headers() = headers;
  SOLSTICE_RETURN_IF_ERROR(client->Call(std::move(request), {}, nullptr, kTimeout).status());
  SOLSTICE_RETURN_IF_ERROR(CompileOnce(*client, source, true).status());
  double first = watch.milliseconds();
  SOLSTICE_ASSIGN_OR_RETURN(std::string later, Median(*client, source, true, repeats));
  std::printf("%-40s %20s %10.0f %20s\n", measured.name.c_str(), plain.c_str(), first, later.c_str());
  return absl::OkStatus();
}

Status Main(int argc, char** argv) {
  int repeats = argc > 1 ? std::clamp(std::atoi(argv[1]), 1, 100) : 5;
  std::vector<Source> sources(std::begin(kSources), std::end(kSources));
  for (int i = 2; i < argc; ++i) {
    SOLSTICE_ASSIGN_OR_RETURN(std::string text, base::ReadFile(argv[i], kMaxSourceBytes));
    sources.push_back({argv[i], std::move(text)});
  }
  SOLSTICE_ASSIGN_OR_RETURN(Installation installation, FindInstallation());
  SOLSTICE_ASSIGN_OR_RETURN(auto spawner, sandbox::Spawner::Create({}));
  std::printf("request to cubin, ms: median (least-most) of %d, %u processors\n", repeats,
              std::thread::hardware_concurrency());
  std::printf("%-40s %20s %10s %20s\n", "source", "plain", "making it", "precompiled");
  for (const Source& source : sources) {
    SOLSTICE_RETURN_IF_ERROR(Measure(*spawner, installation, source, repeats));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace solstice::worker

int main(int argc, char** argv) {
  solstice::Status status = solstice::worker::Main(argc, argv);
  if (!status.ok()) std::fprintf(stderr, "%s\n", solstice::base::MessageOf(status).c_str());
  return status.ok() ? 0 : 1;
}
