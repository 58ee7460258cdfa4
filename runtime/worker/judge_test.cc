// Judge and runner against each other in one process, each with an emulator of its own.
#include "runtime/worker/judge.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "runtime/base/strings.h"
#include "runtime/device/emulator/emulator.h"
#include "runtime/worker/devices.h"
#include "runtime/worker/runner.h"
#include "runtime/worker/worker_test_support.h"

namespace solstice::worker {
namespace {

using base::StrCat;
using testing::HasSubstr;
using v1::internal::Prepared;
using v1::internal::RunOutcome;
using v1::internal::Verified;
using v1::internal::WorkerRequest;

// The emulator under another kind, so that the judge keeps its mappings as it keeps a GPU's.
class Kept : public device::Device {
 public:
  Kept() : device_(device::MakeEmulator()), properties_(device_->properties()) { properties_.set_kind(v1::CUDA); }
  const v1::DeviceProperties& properties() const override { return properties_; }
  int64_t granularity() const override { return device_->granularity(); }
  StatusOr<std::unique_ptr<device::Buffer>> Allocate(int64_t bytes, const device::Extent& extent) override {
    return device_->Allocate(bytes, extent);
  }
  StatusOr<std::unique_ptr<device::Buffer>> Import(base::UniqueFd handle, int64_t bytes, device::Access access,
                                                   const device::Extent& extent) override {
    return device_->Import(std::move(handle), bytes, access, extent);
  }
  Status CopyIn(device::Address destination, std::span<const uint8_t> source) override {
    return device_->CopyIn(destination, source);
  }
  Status CopyOut(std::span<uint8_t> destination, device::Address source) override {
    return device_->CopyOut(destination, source);
  }
  StatusOr<std::unique_ptr<device::Module>> Load(const v1::internal::LoadProgram& program,
                                                 RunOutcome* outcome) override {
    return device_->Load(program, outcome);
  }
  Status EnqueueLaunch(const device::Module& module, const device::LaunchParameters& launch) override {
    return device_->EnqueueLaunch(module, launch);
  }
  Status EnqueueMemset(device::Address destination, uint8_t value, int64_t bytes) override {
    return device_->EnqueueMemset(destination, value, bytes);
  }
  StatusOr<RunOutcome> Synchronize(const device::RunLimits& limits) override { return device_->Synchronize(limits); }
  std::vector<v1::Timer> Timers(std::string* note) override { return device_->Timers(note); }
  int64_t BatchCapacity() const override { return device_->BatchCapacity(); }
  Status BeginBatch(v1::Timer timer) override { return device_->BeginBatch(timer); }
  Status StartIteration() override { return device_->StartIteration(); }
  Status EndIteration() override { return device_->EndIteration(); }
  StatusOr<std::vector<device::Span>> TakeSpans() override { return device_->TakeSpans(); }

 private:
  std::unique_ptr<device::Device> device_;
  v1::DeviceProperties properties_;
};

class JudgeTest : public testing::Test {
 protected:
  void SetUp() override {
    auto judge = Judge::Create([]() -> StatusOr<std::unique_ptr<device::Device>> { return device::MakeEmulator(); });
    ASSERT_TRUE(judge.ok()) << judge.status();
    judge_ = *std::move(judge);
    runner_ = std::make_unique<Runner>(device::MakeEmulator());
  }

  Answer LoadReference(const std::string& ptx) {
    WorkerRequest request;
    *request.mutable_load() = ProgramOf(ptx);
    auto answer = judge_->Handle(request);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return *std::move(answer);
  }
  Prepared Prepare(const v1::internal::Prepare& prepare) {
    WorkerRequest request;
    *request.mutable_prepare() = prepare;
    auto answer = judge_->Handle(request);
    EXPECT_TRUE(answer.ok()) << answer.status();
    if (!answer.ok()) return {};
    descriptors_ = std::move(answer->descriptors);
    return answer->reply.prepared();
  }
  // Loads and runs as the runner would; descriptors are duplicated, as they are when they travel.
  RunOutcome Run(const std::string& ptx, const Prepared& prepared) {
    WorkerRequest request;
    *request.mutable_load() = ProgramOf(ptx);
    auto loaded = runner_->Handle(request, {});
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    request.Clear();
    FillRun(prepared, request.mutable_run());
    request.mutable_run()->clear_described();
    std::vector<base::UniqueFd> copies;
    for (int i = 0; i < prepared.described_size(); ++i) {
      bool used = false;
      for (const auto& buffer : prepared.slots(0).buffers()) used = used || buffer.handle() == prepared.described(i);
      if (!used || !sent_.insert(prepared.described(i)).second) continue;
      request.mutable_run()->add_described(prepared.described(i));
      copies.emplace_back(fcntl(descriptors_[static_cast<size_t>(i)].get(), F_DUPFD_CLOEXEC, 0));
    }
    auto answer = runner_->Handle(request, std::move(copies));
    EXPECT_TRUE(answer.ok()) << answer.status();
    if (!answer.ok()) return {};
    EXPECT_EQ(answer->last, answer->reply.outcome().kind() != RunOutcome::OK);
    return answer->reply.outcome();
  }
  Verified Verify() {
    WorkerRequest request;
    request.mutable_verify();
    auto answer = judge_->Handle(request);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->reply.verified() : Verified();
  }
  // Flips a byte of buffer `index` at `at` from its tensor's start, behind everyone's back.
  void Damage(const Prepared& prepared, int index, int64_t at) {
    off_t place = prepared.slots(0).buffers(index).offset() + at;
    char byte;
    ASSERT_EQ(pread(descriptors_[static_cast<size_t>(index)].get(), &byte, 1, place), 1);
    byte = static_cast<char>(byte ^ 1);
    ASSERT_EQ(pwrite(descriptors_[static_cast<size_t>(index)].get(), &byte, 1, place), 1);
  }

  std::unique_ptr<Judge> judge_;
  std::unique_ptr<Runner> runner_;
  std::vector<base::UniqueFd> descriptors_;
  std::set<int64_t> sent_;  // handles that the runner has
};

TEST_F(JudgeTest, RightAnswerPasses) {
  LoadReference(AffinePtx());
  for (int variant = 0; variant < 3; ++variant) {
    v1::internal::Prepare prepare = AffinePrepare(1000);
    prepare.set_variant(variant);
    Prepared prepared = Prepare(prepare);
    ASSERT_EQ(prepared.verdict(), v1::VERDICT_UNSPECIFIED) << prepared.reason();
    ASSERT_EQ(prepared.plan().buffers_size(), 2);
    ASSERT_EQ(descriptors_.size(), 2u);
    EXPECT_EQ(prepared.plan().buffers(0).bytes(), 4000);
    ASSERT_EQ(prepared.slots_size(), 1);
    EXPECT_GE(prepared.slots(0).buffers(0).offset(), 256);
    RunOutcome outcome = Run(AffinePtx(), prepared);
    ASSERT_EQ(outcome.kind(), RunOutcome::OK) << outcome.DebugString();
    Verified verified = Verify();
    EXPECT_EQ(verified.verdict(), v1::PASSED) << verified.DebugString();
    ASSERT_EQ(verified.outputs_size(), 1);
    EXPECT_EQ(verified.outputs(0).name(), "y");
    EXPECT_EQ(verified.outputs(0).matched_ratio(), 1);
  }
}

TEST_F(JudgeTest, WrongAnswerFails) {
  LoadReference(AffinePtx());
  Prepared prepared = Prepare(AffinePrepare(1000));
  ASSERT_EQ(Run(AffinePtx("0f40400000"), prepared).kind(), RunOutcome::OK);
  Verified verified = Verify();
  EXPECT_EQ(verified.verdict(), v1::INCORRECT_NUMERICAL) << verified.reason();
}

TEST_F(JudgeTest, NothingWrittenFails) {
  LoadReference(AffinePtx());
  Prepare(AffinePrepare(1000));
  EXPECT_EQ(Verify().verdict(), v1::INCORRECT_NUMERICAL) << "outputs are poisoned";
}

TEST_F(JudgeTest, LastAnswerIsNotLeftInTheOutput) {
  LoadReference(AffinePtx());
  Prepared prepared = Prepare(AffinePrepare(1000));
  Run(AffinePtx(), prepared);
  EXPECT_EQ(Verify().verdict(), v1::PASSED);
  Prepare(AffinePrepare(1000));
  EXPECT_EQ(Verify().verdict(), v1::INCORRECT_NUMERICAL);
}

TEST_F(JudgeTest, DamagedGuardsAreRuntimeErrors) {
  LoadReference(AffinePtx());
  for (int64_t at : {int64_t{-1}, int64_t{-256}, int64_t{4000}}) {
    Prepared prepared = Prepare(AffinePrepare(1000));
    Run(AffinePtx(), prepared);
    Damage(prepared, 1, at);
    Verified verified = Verify();
    EXPECT_EQ(verified.verdict(), v1::RUNTIME_ERROR);
    EXPECT_THAT(verified.reason(), HasSubstr("guard damaged: 1 byte"));
    EXPECT_THAT(verified.reason(), HasSubstr("output 'y'"));
  }
}

TEST_F(JudgeTest, DamageOutweighsWrongNumbers) {
  LoadReference(AffinePtx());
  Prepared prepared = Prepare(AffinePrepare(1000));
  Damage(prepared, 1, 4000);
  EXPECT_EQ(Verify().verdict(), v1::RUNTIME_ERROR);
}

TEST_F(JudgeTest, InputsAreExportedReadOnly) {
  LoadReference(AffinePtx());
  Prepared prepared = Prepare(AffinePrepare(1000));
  char byte = 0;
  EXPECT_LT(pwrite(descriptors_[0].get(), &byte, 1, prepared.slots(0).buffers(0).offset()), 0);
}

TEST_F(JudgeTest, WritesByKernelsFault) {
  LoadReference(AffinePtx());
  const struct {
    const char* instruction;
    v1::internal::Fault::Kind kind;
  } cases[] = {{"  st.global.f32 [%rd6], %f2;\n", v1::internal::Fault::READ_ONLY_WRITE},
               {"  st.global.f32 [%rd4+4000], %f2;\n", v1::internal::Fault::OUT_OF_BOUNDS},
               {"  st.global.f32 [%rd4+-4], %f2;\n", v1::internal::Fault::OUT_OF_BOUNDS}};
  for (const auto& bad : cases) {
    runner_ = std::make_unique<Runner>(device::MakeEmulator());
    Prepared prepared = Prepare(AffinePrepare(1000));
    RunOutcome outcome = Run(AffinePtx("0f40000000", bad.instruction), prepared);
    EXPECT_EQ(outcome.kind(), RunOutcome::FAULT) << bad.instruction;
    EXPECT_EQ(outcome.fault().kind(), bad.kind) << outcome.DebugString();
    EXPECT_THAT(outcome.fault().message(), HasSubstr("(launched at "));
  }
}

TEST_F(JudgeTest, PlanThatDoesNotBindIsAVerdict) {
  LoadReference(AffinePtx());
  Prepared prepared = Prepare(AffinePrepare(1000, "launch affine grid=(1) block=(128) args=(x, y)"));
  EXPECT_EQ(prepared.verdict(), v1::INVALID_SUBMISSION) << prepared.reason();
  EXPECT_FALSE(prepared.reason().empty());
  EXPECT_TRUE(descriptors_.empty());
  WorkerRequest request;
  request.mutable_verify();
  EXPECT_EQ(judge_->Handle(request).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(JudgeTest, FailingReferenceIsItsFault) {
  LoadReference(AffinePtx("0f40000000", "  st.global.f32 [%rd6], %f2;\n"));
  Prepared prepared = Prepare(AffinePrepare(1000));
  EXPECT_EQ(prepared.verdict(), v1::INVALID_REFERENCE);
  EXPECT_THAT(prepared.reason(), HasSubstr("reference failed"));
  // The judge goes on with a device that is not spoilt, without being told the reference again.
  prepared = Prepare(AffinePrepare(1000));
  EXPECT_EQ(prepared.verdict(), v1::INVALID_REFERENCE);
  LoadReference(AffinePtx());
  EXPECT_EQ(Prepare(AffinePrepare(1000)).verdict(), v1::VERDICT_UNSPECIFIED);
}

TEST_F(JudgeTest, EndlessReferenceIsItsFault) {
  LoadReference(AffinePtx("0f40000000", "$L_again: bra $L_again;\n"));
  v1::internal::Prepare prepare = AffinePrepare(1000);
  prepare.set_timeout_s(0.2);
  Prepared prepared = Prepare(prepare);
  EXPECT_EQ(prepared.verdict(), v1::INVALID_REFERENCE) << prepared.reason();
}

TEST_F(JudgeTest, EmptyTensorsAreLegal) {
  LoadReference(AffinePtx());
  Prepared prepared = Prepare(AffinePrepare(0));
  ASSERT_EQ(prepared.verdict(), v1::VERDICT_UNSPECIFIED) << prepared.reason();
  EXPECT_EQ(prepared.plan().operations_size(), 0) << "a grid of zero is left out";
  EXPECT_EQ(Run(AffinePtx(), prepared).kind(), RunOutcome::OK);
  EXPECT_EQ(Verify().verdict(), v1::PASSED);
}

TEST_F(JudgeTest, ReleaseDropsTheBuffers) {
  LoadReference(AffinePtx());
  Prepare(AffinePrepare(1000));
  WorkerRequest request;
  request.mutable_verify()->set_release(true);
  EXPECT_TRUE(judge_->Handle(request).ok());
  request.mutable_verify()->set_release(false);
  EXPECT_FALSE(judge_->Handle(request).ok());
}

TEST_F(JudgeTest, MisuseIsAStatus) {
  WorkerRequest request;
  *request.mutable_prepare() = AffinePrepare(10);
  EXPECT_EQ(judge_->Handle(request).status().code(), absl::StatusCode::kFailedPrecondition) << "no reference";
  request.mutable_run();
  EXPECT_EQ(judge_->Handle(request).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(JudgeTest, RunnerChecksWhatItIsSent) {
  LoadReference(AffinePtx());
  Prepared prepared = Prepare(AffinePrepare(1000));
  WorkerRequest request;
  FillRun(prepared, request.mutable_run());
  EXPECT_EQ(runner_->Handle(request, {}).status().code(), absl::StatusCode::kInvalidArgument) << "no descriptors";
  auto copies = [this] {
    std::vector<base::UniqueFd> made;
    for (const base::UniqueFd& fd : descriptors_) made.emplace_back(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
    return made;
  };
  EXPECT_EQ(runner_->Handle(request, copies()).status().code(), absl::StatusCode::kFailedPrecondition) << "not loaded";
  // What one refused request has mapped must not hide what the next one is refused for.
  auto handle = [this](const WorkerRequest& asked, std::vector<base::UniqueFd> fds) {
    runner_ = std::make_unique<Runner>(device::MakeEmulator());
    WorkerRequest load;
    *load.mutable_load() = ProgramOf(AffinePtx());
    EXPECT_TRUE(runner_->Handle(load, {}).ok());
    return runner_->Handle(asked, std::move(fds)).status();
  };
  for (int64_t offset : {int64_t{-256}, int64_t{1}, int64_t{1} << 40}) {
    request.mutable_run()->mutable_slot()->mutable_buffers(1)->set_offset(offset);
    EXPECT_EQ(handle(request, copies()).code(), absl::StatusCode::kInvalidArgument) << offset;
  }
  FillRun(prepared, request.mutable_run());
  // Claims more memory than the descriptor has.
  request.mutable_run()->mutable_slot()->mutable_buffers(1)->set_mapped_bytes(int64_t{1} << 30);
  EXPECT_FALSE(handle(request, copies()).ok());
  // A pipe instead of memory.
  FillRun(prepared, request.mutable_run());
  auto wrong = copies();
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  close(pipe_fds[1]);
  wrong[0] = base::UniqueFd(pipe_fds[0]);
  EXPECT_FALSE(handle(request, std::move(wrong)).ok());
  EXPECT_TRUE(handle(request, copies()).ok());
  EXPECT_EQ(runner_->Handle(request, copies()).status().code(), absl::StatusCode::kInvalidArgument) << "mapped already";
  request.mutable_compile();
  EXPECT_EQ(runner_->Handle(request, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(JudgeTest, RunnerKeepsWhatItHasUntilItIsTold) {
  LoadReference(AffinePtx());
  Prepared prepared = Prepare(AffinePrepare(1000));
  ASSERT_EQ(Run(AffinePtx(), prepared).kind(), RunOutcome::OK);
  WorkerRequest request;
  FillRun(prepared, request.mutable_run());
  request.mutable_run()->clear_described();
  auto again = runner_->Handle(request, {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->reply.outcome().kind(), RunOutcome::OK);
  // Mapped read-only, it does not become an output.
  request.mutable_run()->mutable_plan()->mutable_buffers(0)->set_role(v1::internal::OUTPUT);
  request.mutable_run()->mutable_slot()->mutable_buffers(0)->set_role(v1::internal::OUTPUT);
  EXPECT_EQ(runner_->Handle(request, {}).status().code(), absl::StatusCode::kInvalidArgument);
  FillRun(prepared, request.mutable_run());
  request.mutable_run()->clear_described();
  request.mutable_run()->add_forget(prepared.slots(0).buffers(1).handle());
  EXPECT_EQ(runner_->Handle(request, {}).status().code(), absl::StatusCode::kInvalidArgument) << "forgotten";
}

TEST_F(JudgeTest, SlotsHaveContentOfTheirOwnAndAreCheckedEach) {
  LoadReference(AffinePtx());
  v1::internal::Prepare prepare = AffinePrepare(1000);
  prepare.set_slots(4);
  prepare.set_defer_reference(true);
  Prepared prepared = Prepare(prepare);
  ASSERT_EQ(prepared.slots_size(), 4);
  ASSERT_EQ(descriptors_.size(), 8u);
  std::set<std::string> contents;
  for (int slot = 0; slot < 4; ++slot) {
    const auto& input = prepared.slots(slot).buffers(0);
    std::string content(static_cast<size_t>(input.bytes()), '\0');
    ASSERT_EQ(pread(descriptors_[static_cast<size_t>(2 * slot)].get(), content.data(), content.size(), input.offset()),
              input.bytes());
    contents.insert(content);
  }
  EXPECT_EQ(contents.size(), 4u);
  auto run_slot = [&](int slot, const std::string& ptx) {
    Prepared one = prepared;
    one.clear_slots();
    *one.add_slots() = prepared.slots(slot);
    return Run(ptx, one).kind();
  };
  for (int slot = 0; slot < 4; ++slot) ASSERT_EQ(run_slot(slot, AffinePtx()), RunOutcome::OK);
  WorkerRequest request;
  request.mutable_verify()->add_compare(3);
  request.mutable_verify()->add_compare(1);
  auto verified = judge_->Handle(request);
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_EQ(verified->reply.verified().verdict(), v1::PASSED) << verified->reply.verified().reason();
  // One slot left as it was prepared, though it is not among those compared.
  prepared = Prepare(prepare);
  for (int slot = 0; slot < 3; ++slot) ASSERT_EQ(run_slot(slot, AffinePtx()), RunOutcome::OK);
  request.mutable_verify()->clear_compare();
  request.mutable_verify()->add_compare(0);
  verified = judge_->Handle(request);
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_EQ(verified->reply.verified().verdict(), v1::REWARD_HACK);
  EXPECT_THAT(verified->reply.verified().reason(), HasSubstr("unwritten"));
  // A wrong answer in one that is compared.
  prepared = Prepare(prepare);
  for (int slot = 0; slot < 4; ++slot) {
    ASSERT_EQ(run_slot(slot, AffinePtx(slot == 2 ? "0f40400000" : "0f40000000")), RunOutcome::OK);
  }
  request.mutable_verify()->set_compare(0, 2);
  verified = judge_->Handle(request);
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_EQ(verified->reply.verified().verdict(), v1::INCORRECT_NUMERICAL);
}

TEST_F(JudgeTest, ShortMemoryMakesFewerSlots) {
  auto judge = Judge::Create([]() -> StatusOr<std::unique_ptr<device::Device>> {
    device::EmulatorOptions options;
    options.memory_bytes = 10 * (64 << 10);  // mappings of 64 KiB
    return device::MakeEmulator(options);
  });
  ASSERT_TRUE(judge.ok()) << judge.status();
  judge_ = *std::move(judge);
  LoadReference(AffinePtx());
  v1::internal::Prepare prepare = AffinePrepare(1000);
  prepare.set_slots(16);
  prepare.set_defer_reference(true);
  Prepared prepared = Prepare(prepare);
  EXPECT_EQ(prepared.verdict(), v1::VERDICT_UNSPECIFIED) << prepared.reason();
  EXPECT_GE(prepared.slots_size(), 1);
  EXPECT_LE(prepared.slots_size(), 5);
  // Where not even one fits, it is a verdict.
  prepared = Prepare(AffinePrepare(1 << 20));
  EXPECT_EQ(prepared.verdict(), v1::RESOURCE_EXCEEDED) << prepared.reason();
}

TEST_F(JudgeTest, RunnerDeadline) {
  LoadReference(AffinePtx());
  Prepared prepared = Prepare(AffinePrepare(1000));
  WorkerRequest request;
  *request.mutable_load() = ProgramOf(AffinePtx("0f40000000", "$L_again: bra $L_again;\n"));
  ASSERT_TRUE(runner_->Handle(request, {}).ok());
  FillRun(prepared, request.mutable_run());
  request.mutable_run()->set_timeout_s(0.2);
  auto answer = runner_->Handle(request, std::move(descriptors_));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->reply.outcome().kind(), RunOutcome::TIMEOUT);
  EXPECT_TRUE(answer->last);
}

// Mapping and place of every buffer.
std::vector<std::pair<int64_t, int64_t>> Places(const Prepared& prepared) {
  std::vector<std::pair<int64_t, int64_t>> places;
  for (const auto& buffer : prepared.slots(0).buffers()) places.emplace_back(buffer.handle(), buffer.offset());
  return places;
}

TEST_F(JudgeTest, TheSamePlacesComeAgainWhereAsked) {
  auto judge = Judge::Create([]() -> StatusOr<std::unique_ptr<device::Device>> { return std::make_unique<Kept>(); });
  ASSERT_TRUE(judge.ok()) << judge.status();
  judge_ = *std::move(judge);
  LoadReference(AffinePtx());
  v1::internal::Prepare prepare = AffinePrepare(1000);
  prepare.set_defer_reference(true);  // nothing runs: the emulator knows a mapping by its first tensor
  std::set<std::vector<std::pair<int64_t, int64_t>>> seen;
  for (int variant = 0; variant < 12; ++variant) {
    prepare.set_variant(variant);
    Prepared prepared = Prepare(prepare);
    ASSERT_EQ(prepared.slots_size(), 1) << prepared.reason();
    seen.insert(Places(prepared));
  }
  EXPECT_GT(seen.size(), 3u) << "secret places otherwise";
  const auto before = Places(Prepare(prepare));
  prepare.set_same_places(true);
  prepare.set_variant(20);
  Prepared again = Prepare(prepare);
  EXPECT_EQ(Places(again), before);
  EXPECT_EQ(again.described_size(), 0) << "the server has these descriptors";
  // Another size goes elsewhere, without a word.
  v1::internal::Prepare larger = AffinePrepare(5000000);
  larger.set_defer_reference(true);
  larger.set_same_places(true);
  Prepared elsewhere = Prepare(larger);
  ASSERT_EQ(elsewhere.slots_size(), 1) << elsewhere.reason();
  EXPECT_NE(Places(elsewhere), before);
}

}  // namespace
}  // namespace solstice::worker
