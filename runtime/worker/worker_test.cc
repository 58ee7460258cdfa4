// Real processes in real jails: the compiler zygote with NVRTC, the judge, the runner on the emulator.
#include "runtime/worker/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <set>
#include <thread>

#include "runtime/base/clock.h"
#include "runtime/base/strings.h"
#include "runtime/bulk/bulk.h"
#include "runtime/compile/compile.h"
#include "runtime/worker/test_installation.h"
#include "runtime/worker/worker_test_support.h"

namespace solstice::worker {
namespace {

using base::StrCat;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;
using v1::internal::RunOutcome;
using v1::internal::WorkerReply;
using v1::internal::WorkerRequest;

constexpr char kSource[] = R"(
extern "C" __global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i] + 1.0f;
}
)";

class WorkerTest : public InstallationTest {
 protected:
  std::unique_ptr<Client> Start(StatusOr<sandbox::JailSpec> spec) {
    EXPECT_TRUE(spec.ok()) << spec.status();
    if (!spec.ok()) return nullptr;
    base::Stopwatch watch;
    auto client = Client::Start(*spawner_, *spec, seconds(120));
    RecordProperty(spec->name + "_start_ms", static_cast<int>(watch.milliseconds()));
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  std::unique_ptr<Client> Compiler() { return Start(CompilerJail(installation_, 0)); }
  std::unique_ptr<Client> Judge() { return Start(JudgeProcess(installation_, DeviceId{})); }
  std::unique_ptr<Client> Runner() { return Start(RunnerJail(installation_, DeviceId{}, {}, 0)); }

  static WorkerRequest CompileRequest(const std::string& text, double time_s = 120) {
    WorkerRequest request;
    v1::internal::CompileJob* job = request.mutable_compile();
    v1::SourceFile* file = job->mutable_source()->add_sources();
    file->set_path("kernel.cu");
    file->set_content(text);
    job->mutable_source()->add_name_expressions("affine");
    job->mutable_source()->set_arch("sm_90a");
    job->mutable_limits()->set_time_s(time_s);
    return request;
  }
  static v1::internal::Program Compile(Client& compiler, const std::string& text, double time_s = 120) {
    auto reply = compiler.Call(CompileRequest(text, time_s), {}, nullptr, seconds(300));
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? reply->program() : v1::internal::Program();
  }
  static v1::internal::LoadProgram Loadable(const v1::internal::Program& program) {
    v1::internal::LoadProgram load;
    load.set_ptx(program.ptx());
    load.set_cubin(program.cubin());
    *load.mutable_kernels() = program.kernels();
    return load;
  }
  static WorkerReply Load(Client& client, const v1::internal::LoadProgram& program) {
    WorkerRequest request;
    *request.mutable_load() = program;
    auto reply = client.Call(request, {}, nullptr, seconds(120));
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *reply : WorkerReply();
  }
  static StatusOr<WorkerReply> Run(Client& runner, const v1::internal::Prepared& prepared,
                                   const std::vector<base::UniqueFd>& descriptors, double timeout_s) {
    WorkerRequest request;
    FillRun(prepared, request.mutable_run());
    request.mutable_run()->set_timeout_s(timeout_s);
    std::vector<int> borrowed;
    for (const base::UniqueFd& fd : descriptors) borrowed.push_back(fd.get());
    return runner.Call(request, borrowed, nullptr, seconds(300));
  }
};

TEST_F(WorkerTest, CompileJudgeRun) {
  auto compiler = Compiler();
  ASSERT_NE(compiler, nullptr);
  EXPECT_FALSE(compiler->hello().toolchain().nvrtc().empty());
  v1::internal::Program program = Compile(*compiler, kSource);
  ASSERT_EQ(program.verdict(), v1::PASSED) << program.reason() << program.log();
  ASSERT_EQ(program.kernels_size(), 1);
  base::Stopwatch compile_watch;
  Compile(*compiler, kSource);
  RecordProperty("compile_ms", static_cast<int>(compile_watch.milliseconds()));

  auto judge = Judge();
  auto runner = Runner();
  ASSERT_TRUE(judge != nullptr && runner != nullptr);
  EXPECT_EQ(judge->hello().device().kind(), v1::EMULATOR);
  EXPECT_EQ(runner->hello().device().arch(), "sm_90a");
  EXPECT_TRUE(Load(*judge, Loadable(program)).loaded());
  EXPECT_TRUE(Load(*runner, Loadable(program)).loaded());
  for (int variant = 0; variant < 3; ++variant) {
    WorkerRequest request;
    *request.mutable_prepare() = AffinePrepare(4096);
    *request.mutable_prepare()->mutable_kernels() = program.kernels();
    request.mutable_prepare()->set_variant(variant);
    std::vector<base::UniqueFd> descriptors;
    base::Stopwatch prepare_watch;
    auto prepared = judge->Call(request, {}, &descriptors, seconds(300));
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    ASSERT_EQ(prepared->prepared().verdict(), v1::VERDICT_UNSPECIFIED) << prepared->prepared().reason();
    RecordProperty(StrCat("prepare_us_", variant), static_cast<int>(prepare_watch.milliseconds() * 1e3));
    base::Stopwatch run_watch;
    auto outcome = Run(*runner, prepared->prepared(), descriptors, 60);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_EQ(outcome->outcome().kind(), RunOutcome::OK) << outcome->DebugString();
    RecordProperty(StrCat("run_us_", variant), static_cast<int>(run_watch.milliseconds() * 1e3));
    request.Clear();
    request.mutable_verify();
    base::Stopwatch verify_watch;
    auto verified = judge->Call(request, {}, nullptr, seconds(300));
    ASSERT_TRUE(verified.ok()) << verified.status();
    EXPECT_EQ(verified->verified().verdict(), v1::PASSED) << verified->DebugString();
    RecordProperty(StrCat("verify_us_", variant), static_cast<int>(verify_watch.milliseconds() * 1e3));
  }
}

// The emulator has no latencies; what a timed batch does is the same there.
TEST_F(WorkerTest, TimedBatchRunsEverySlotAndAnswersInThreeSteps) {
  auto compiler = Compiler();
  auto judge = Judge();
  auto runner = Runner();
  ASSERT_TRUE(compiler != nullptr && judge != nullptr && runner != nullptr);
  v1::internal::Program program = Compile(*compiler, kSource);
  ASSERT_EQ(program.verdict(), v1::PASSED) << program.log();
  WorkerRequest request;
  *request.mutable_compile()->mutable_source() = bulk::KernelSource("sm_90a");
  request.mutable_compile()->mutable_limits()->set_time_s(120);
  auto trusted = compiler->Call(request, {}, nullptr, seconds(300));
  ASSERT_TRUE(trusted.ok()) << trusted.status();
  ASSERT_EQ(trusted->program().verdict(), v1::PASSED) << trusted->program().log();
  v1::internal::LoadProgram own = Loadable(trusted->program());
  own.set_program(kTrustedKernels);
  EXPECT_TRUE(Load(*runner, own).loaded());
  EXPECT_TRUE(Load(*runner, Loadable(program)).loaded());
  EXPECT_TRUE(Load(*judge, Loadable(program)).loaded());

  request.Clear();
  *request.mutable_prepare() = AffinePrepare(4096);
  *request.mutable_prepare()->mutable_kernels() = program.kernels();
  request.mutable_prepare()->set_slots(3);
  request.mutable_prepare()->set_defer_reference(true);
  std::vector<base::UniqueFd> descriptors, clear_descriptor;
  auto prepared = judge->Call(request, {}, &descriptors, seconds(300));
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  ASSERT_EQ(prepared->prepared().slots_size(), 3) << prepared->prepared().reason();
  request.Clear();
  request.mutable_clear_buffer();
  auto clear = judge->Call(request, {}, &clear_descriptor, seconds(300));
  ASSERT_TRUE(clear.ok()) << clear.status();
  EXPECT_GE(clear->clear_buffer().buffer().bytes(), 2 * judge->hello().device().l2_bytes());

  request.Clear();
  auto* batch = request.mutable_batch();
  *batch->mutable_plan() = prepared->prepared().plan();
  *batch->mutable_slots() = prepared->prepared().slots();
  *batch->mutable_described() = prepared->prepared().described();
  *batch->mutable_clear() = clear->clear_buffer().buffer();
  batch->mutable_clear()->set_bytes(1 << 16);  // the emulator takes its time
  batch->add_described(clear->clear_buffer().buffer().handle());
  batch->set_decoys(2);
  batch->set_timer(v1::TIMER_ACTIVITY);
  std::vector<int> borrowed;
  for (const base::UniqueFd& fd : descriptors) borrowed.push_back(fd.get());
  borrowed.push_back(clear_descriptor.at(0).get());
  EXPECT_EQ(runner->Call(request, borrowed, nullptr, seconds(300)).status().code(),
            absl::StatusCode::kFailedPrecondition)
      << "a timer that does not work here";
  batch->set_timer(v1::TIMER_NONE);
  batch->clear_described();
  auto armed = runner->Call(request, {}, nullptr, seconds(300));
  ASSERT_TRUE(armed.ok()) << armed.status();
  EXPECT_TRUE(armed->armed());
  request.Clear();
  request.mutable_collect();
  EXPECT_EQ(runner->Call(request, {}, nullptr, seconds(300)).status().code(), absl::StatusCode::kFailedPrecondition);
  request.mutable_go();
  EXPECT_EQ(runner->Call(request, {}, nullptr, seconds(300)).status().code(), absl::StatusCode::kInvalidArgument)
      << "without the clock's page";
  auto clock = BatchClock::Create();
  ASSERT_TRUE(clock.ok()) << clock.status();
  double batch_us = 0;
  base::Stopwatch watch;
  auto went = runner->CallGo(request, **clock, seconds(300), &batch_us);
  ASSERT_TRUE(went.ok()) << went.status();
  EXPECT_GT(batch_us, 0);
  EXPECT_LE(batch_us, watch.milliseconds() * 1e3);
  EXPECT_EQ(went->outcome().kind(), RunOutcome::OK) << went->outcome().reason();
  request.mutable_collect();
  auto times = runner->Call(request, {}, nullptr, seconds(300));
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(times->times().latency_ns_size(), 0);

  request.mutable_verify()->add_compare(0);
  request.mutable_verify()->add_compare(2);
  auto verified = judge->Call(request, {}, nullptr, seconds(300));
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_EQ(verified->verified().verdict(), v1::PASSED) << verified->verified().reason();
  ASSERT_EQ(verified->verified().outputs_size(), 1);
  EXPECT_EQ(verified->verified().outputs(0).matched_ratio(), 1);
}

TEST_F(WorkerTest, CompileErrorsKeepTheZygote) {
  auto compiler = Compiler();
  ASSERT_NE(compiler, nullptr);
  v1::internal::Program program = Compile(*compiler, "extern \"C\" __global__ void affine() { nonsense }");
  EXPECT_EQ(program.verdict(), v1::COMPILE_ERROR);
  EXPECT_THAT(program.log(), HasSubstr("nonsense"));
  EXPECT_EQ(Compile(*compiler, kSource).verdict(), v1::PASSED);
}

TEST_F(WorkerTest, EndlessTemplatesReachTheDeadline) {
  auto compiler = Compiler();
  ASSERT_NE(compiler, nullptr);
  const std::string bomb = StrCat(R"(
template <int depth, int path> struct Tree {
  static constexpr int value = Tree<depth - 1, 2 * path>::value + Tree<depth - 1, 2 * path + 1>::value;
};
template <int path> struct Tree<0, path> { static constexpr int value = path; };
__device__ int sink = Tree<22, 1>::value;
)",
                                  kSource);
  v1::internal::Program program = Compile(*compiler, bomb, 2);
  EXPECT_EQ(program.verdict(), v1::COMPILE_ERROR);
  EXPECT_THAT(program.reason(), testing::AnyOf(HasSubstr("compile time limit"), HasSubstr("compile memory limit")));
  EXPECT_EQ(Compile(*compiler, kSource).verdict(), v1::PASSED) << "the zygote serves the next one";
}

TEST_F(WorkerTest, SourcesSeeNothingOutside) {
  auto compiler = Compiler();
  ASSERT_NE(compiler, nullptr);
  for (const char* path : {"/etc/passwd", "/proc/self/environ", "/proc/1/cmdline", "/etc/hostname", "/dev/null"}) {
    v1::internal::Program program = Compile(*compiler, StrCat("#include \"", path, "\"\n", kSource));
    EXPECT_EQ(program.verdict(), v1::COMPILE_ERROR) << path;
    EXPECT_THAT(program.log(), Not(HasSubstr("root:"))) << path;
  }
  // Neither do they learn whether a file exists.
  v1::internal::Program program =
      Compile(*compiler, StrCat("#if __has_include(\"/etc/passwd\")\n#error seen\n#endif\n", kSource));
  EXPECT_EQ(program.verdict(), v1::PASSED) << program.log();
}

TEST_F(WorkerTest, HeadersOfToolkitAndPack) {
  auto compiler = Compiler();
  ASSERT_NE(compiler, nullptr);
  v1::internal::Program program =
      Compile(*compiler,
              StrCat("#include <cuda_fp16.h>\n#include <cstdint>\n#include <cub/block/block_reduce.cuh>\n", kSource));
  EXPECT_EQ(program.verdict(), v1::PASSED) << program.reason() << program.log();
}

TEST_F(WorkerTest, KilledZygoteIsUnavailable) {
  auto compiler = Compiler();
  ASSERT_NE(compiler, nullptr);
  EXPECT_TRUE(compiler->alive());
  compiler->Kill();
  auto reply = compiler->Call(CompileRequest(kSource), {}, nullptr, seconds(60));
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(base::MessageOf(reply.status()), HasSubstr("killed by signal 9"));
  EXPECT_FALSE(compiler->alive());
}

class RunTest : public WorkerTest {
 protected:
  void SetUp() override {
    WorkerTest::SetUp();
    judge_ = Judge();
    runner_ = Runner();
    ASSERT_TRUE(judge_ != nullptr && runner_ != nullptr);
    ASSERT_TRUE(Load(*judge_, ProgramOf(AffinePtx())).loaded());
    WorkerRequest request;
    *request.mutable_prepare() = AffinePrepare(1000);
    auto prepared = judge_->Call(request, {}, &descriptors_, seconds(120));
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    prepared_ = prepared->prepared();
  }
  std::unique_ptr<Client> judge_, runner_;
  std::vector<base::UniqueFd> descriptors_;
  v1::internal::Prepared prepared_;
};

TEST_F(RunTest, EndlessKernelEndsAtItsDeadlineAndTheRunnerWithIt) {
  ASSERT_TRUE(Load(*runner_, ProgramOf(AffinePtx("0f40000000", "$L_again: bra $L_again;\n"))).loaded());
  auto reply = Run(*runner_, prepared_, descriptors_, 0.3);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->outcome().kind(), RunOutcome::TIMEOUT);
  // The runner has spoken its last word.
  auto next = Run(*runner_, prepared_, descriptors_, 0.3);
  EXPECT_EQ(next.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(runner_->alive());
}

TEST_F(RunTest, RunnerKilledWhileItRuns) {
  ASSERT_TRUE(Load(*runner_, ProgramOf(AffinePtx("0f40000000", "$L_again: bra $L_again;\n"))).loaded());
  std::thread killer([this] {
    std::this_thread::sleep_for(milliseconds(100));
    runner_->Kill();
  });
  auto reply = Run(*runner_, prepared_, descriptors_, 100);
  killer.join();
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(base::MessageOf(reply.status()), HasSubstr("runner worker died: it was killed by signal 9"));
  // What it was doing harms nobody: a fresh one on the same buffers succeeds.
  auto fresh = Runner();
  ASSERT_NE(fresh, nullptr);
  ASSERT_TRUE(Load(*fresh, ProgramOf(AffinePtx())).loaded());
  auto outcome = Run(*fresh, prepared_, descriptors_, 60);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->outcome().kind(), RunOutcome::OK);
  WorkerRequest request;
  request.mutable_verify();
  auto verified = judge_->Call(request, {}, nullptr, seconds(120));
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_EQ(verified->verified().verdict(), v1::PASSED);
}

TEST_F(RunTest, FaultIsAnOutcome) {
  ASSERT_TRUE(Load(*runner_, ProgramOf(AffinePtx("0f40000000", "  st.global.f32 [%rd4+400000], %f2;\n"))).loaded());
  auto reply = Run(*runner_, prepared_, descriptors_, 60);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->outcome().kind(), RunOutcome::FAULT);
  EXPECT_EQ(reply->outcome().fault().kind(), v1::internal::Fault::OUT_OF_BOUNDS);
}

TEST_F(RunTest, WrongRequestsAreErrorsNotDeaths) {
  WorkerRequest request;
  request.mutable_verify();
  EXPECT_EQ(runner_->Call(request, {}, nullptr, seconds(60)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(runner_->alive());
  EXPECT_EQ(Run(*runner_, prepared_, {}, 1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(runner_->alive());
}

TEST_F(WorkerTest, WorkerThatCannotStartSaysWhy) {
  auto spec = RunnerJail(installation_, DeviceId{}, {}, 0);
  ASSERT_TRUE(spec.ok());
  spec->argv = {spec->argv[0], "run", "--device=toaster", "--ordinal=0"};
  auto client = Client::Start(*spawner_, *spec, seconds(60));
  EXPECT_EQ(client.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(base::MessageOf(client.status()), HasSubstr("toaster"));
}

TEST_F(WorkerTest, GpuRunnersGetTheirDriverAndTheirOwnNodes) {
  v1::internal::Hello judge;
  judge.add_device_libraries("/bin/sh");  // some file that is there
  judge.add_device_libraries("/no/such/libcuda.so.1");
  judge.add_device_nodes("/dev/null");
  DeviceId gpu{v1::CUDA, 3, "GPU-1234"};
  auto spec = RunnerJail(installation_, gpu, judge, 0);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_THAT(spec->argv, testing::Contains("--gpu=GPU-1234"));
  EXPECT_THAT(spec->argv, testing::Contains("--driver=/no/such/libcuda.so.1"));
  EXPECT_THAT(spec->devices, testing::ElementsAre("/dev/null"));
  EXPECT_TRUE(spec->proc);
  EXPECT_EQ(spec->limits.address_space_bytes, 0);
  std::set<std::string> mounted;
  for (const sandbox::Mount& mount : spec->mounts) mounted.insert(mount.destination);
  EXPECT_EQ(mounted.count("/bin/sh"), 1u);
  EXPECT_EQ(mounted.count("/no/such/libcuda.so.1"), 0u) << "a mount needs a source";
}

TEST_F(WorkerTest, GpuThatIsNotThereSaysSo) {
  auto client = Client::Start(*spawner_, *JudgeProcess(installation_, {v1::CUDA, 0, "GPU-none"}), seconds(60));
  EXPECT_EQ(client.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(base::MessageOf(client.status()), testing::AnyOf(HasSubstr("CUDA driver"), HasSubstr("cuda:0")));
}

TEST_F(WorkerTest, SlotsOfCompilersAndRunnersDiffer) {
  std::set<int> slots;
  for (int i = 0; i < 3; ++i) {
    slots.insert(CompilerJail(installation_, i)->slot);
    slots.insert(RunnerJail(installation_, DeviceId{}, {}, i)->slot);
  }
  EXPECT_EQ(slots.size(), 6u);
}

TEST(FindInstallationTest, HeaderPackFromTheEnvironment) {
  // This program lies beside no worker: the words must say which file is missing.
  auto found = FindInstallation();
  EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(base::MessageOf(found.status()), HasSubstr("solstice-worker"));
}

}  // namespace
}  // namespace solstice::worker
