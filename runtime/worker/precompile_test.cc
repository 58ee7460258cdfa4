// Compiler zygotes with precompiled headers: real NVRTC in a real jail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/strings.h"
#include "runtime/compile/compile.h"
#include "runtime/worker/test_installation.h"
#include "runtime/worker/worker.h"

namespace solstice::worker {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using v1::internal::Program;
using v1::internal::ProgramSource;
using v1::internal::WorkerReply;
using v1::internal::WorkerRequest;

constexpr char kHeaders[] = "#include <cooperative_groups.h>\n#include <mma.h>\n#include <cuda/std/type_traits>\n";
constexpr char kBody[] =
    "extern \"C\" __global__ void k(int* y) {\n"
    "  auto block = cooperative_groups::this_thread_block();\n"
    "  static_assert(cuda::std::is_same<int, int>::value);\n"
    "  block.sync();\n  y[block.thread_rank()] = __LINE__;\n}\n";

ProgramSource Source(const std::string& text) {
  ProgramSource source;
  v1::SourceFile* file = source.add_sources();
  file->set_path("kernel.cu");
  file->set_content(text);
  source.set_arch("sm_90a");
  source.set_keep_all_entries(true);
  return source;
}

class PrecompileTest : public InstallationTest {
 protected:
  std::unique_ptr<Client> Start(StatusOr<sandbox::JailSpec> spec) {
    EXPECT_TRUE(spec.ok()) << spec.status();
    auto client = Client::Start(*spawner_, *spec, seconds(120));
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  static StatusOr<WorkerReply> Precompile(Client& client, const ProgramSource& headers) {
    WorkerRequest request;
    *request.mutable_precompile_headers()->mutable_headers() = headers;
    return client.Call(std::move(request), {}, nullptr, seconds(300));
  }
  static StatusOr<WorkerReply> Compile(Client& client, const ProgramSource& source, double time_s = 120) {
    WorkerRequest request;
    *request.mutable_compile()->mutable_source() = source;
    request.mutable_compile()->mutable_limits()->set_time_s(time_s);
    return client.Call(std::move(request), {}, nullptr, seconds(300));
  }
  static Program Compiled(Client& client, const ProgramSource& source, double time_s = 120) {
    auto reply = Compile(client, source, time_s);
    EXPECT_TRUE(reply.ok()) << reply.status();
    Program program = reply.ok() ? reply->program() : Program();
    program.clear_milliseconds();
    return program;
  }
};

TEST_F(PrecompileTest, LaterCompilesUseItAndAreTheSame) {
  auto plain = Start(CompilerJail(installation_, 0));
  auto precompiled = Start(HeaderCompilerJail(installation_, 1));
  ASSERT_TRUE(plain != nullptr && precompiled != nullptr);
  ProgramSource source = Source(std::string(kHeaders) + kBody);
  auto made = Precompile(*precompiled, compile::SharedHeaders(source));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(made->loaded());
  Program expected = Compiled(*plain, source);
  ASSERT_EQ(expected.verdict(), v1::PASSED) << expected.reason() << expected.log();
  for (int i = 0; i < 3; ++i) {
    Program program = Compiled(*precompiled, source);
    EXPECT_TRUE(program.precompiled_headers());
    program.clear_precompiled_headers();
    EXPECT_EQ(program.ptx(), expected.ptx());
    EXPECT_EQ(program.SerializeAsString(), expected.SerializeAsString());
  }
  // Others are served plainly.
  Program other = Compiled(*precompiled, Source("extern \"C\" __global__ void k(int* y) { y[0] = 1; }\n"));
  EXPECT_EQ(other.verdict(), v1::PASSED);
  EXPECT_FALSE(other.precompiled_headers());
}

TEST_F(PrecompileTest, ACompileThatDiesLeavesItUsable) {
  auto client = Start(HeaderCompilerJail(installation_, 1));
  ASSERT_NE(client, nullptr);
  ProgramSource source = Source(std::string(kHeaders) + kBody);
  ASSERT_TRUE(Precompile(*client, compile::SharedHeaders(source)).ok());
  // Grows for a minute.
  constexpr char kTree[] =
      "template <int D, int I> struct Tree { static constexpr int v = Tree<D - 1, 2 * I>::v + Tree<D - 1, 2 * I + "
      "1>::v; };\ntemplate <int I> struct Tree<0, I> { static constexpr int v = I; };\n"
      "__global__ void k(int* y) { *y = Tree<20, 0>::v; }\n";
  ProgramSource tree = Source(std::string(kHeaders) + kTree);
  for (double time_s : {0.3, 120.0, 120.0}) {
    auto reply = Compile(*client, tree, time_s);
    if (time_s < 1) {
      ASSERT_TRUE(reply.ok()) << reply.status();
      EXPECT_THAT(reply->program().reason(), HasSubstr("time limit"));
    } else {
      // It needs more memory than there is room for.
      EXPECT_EQ(reply.status().code(), absl::StatusCode::kAborted) << reply.status();
    }
    Program program = Compiled(*client, source);
    EXPECT_EQ(program.verdict(), v1::PASSED);
    EXPECT_TRUE(program.precompiled_headers());
  }
}

TEST_F(PrecompileTest, OnlyBeforeAnythingElseAndOnlyWhereThereIsRoom) {
  ProgramSource source = Source(std::string(kHeaders) + kBody);
  ProgramSource headers = compile::SharedHeaders(source);
  auto plain = Start(CompilerJail(installation_, 0));
  ASSERT_NE(plain, nullptr);
  EXPECT_EQ(Precompile(*plain, headers).status().code(), absl::StatusCode::kFailedPrecondition);
  auto used = Start(HeaderCompilerJail(installation_, 1));
  ASSERT_NE(used, nullptr);
  Compiled(*used, Source("extern \"C\" __global__ void k(int* y) { y[0] = 1; }\n"));
  EXPECT_EQ(Precompile(*used, headers).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(PrecompileTest, NothingOfASubmissionIsPrecompiled) {
  auto client = Start(HeaderCompilerJail(installation_, 1));
  ASSERT_NE(client, nullptr);
  ProgramSource source = Source(std::string(kHeaders) + kBody);
  ProgramSource headers = compile::SharedHeaders(source);
  headers.mutable_sources(0)->set_content(std::string(kHeaders) + kBody);
  EXPECT_EQ(Precompile(*client, headers).status().code(), absl::StatusCode::kInvalidArgument);
  // It serves on, plainly.
  Program program = Compiled(*client, source);
  EXPECT_EQ(program.verdict(), v1::PASSED);
  EXPECT_FALSE(program.precompiled_headers());
}

}  // namespace
}  // namespace solstice::worker
