// Memory: faults and their words, spaces, buffers shared with other processes.
#include <fcntl.h>
#include <sys/mman.h>

#include "runtime/device/emulator/emulator_test_support.h"

namespace solstice::device {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// y[i] = 2 x[i] + 1 without a check of the size.
const char kAffine[] = R"(
.visible .entry affine(.param .u64 px, .param .u64 py)
{
  .reg .b32 %r<8>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<8>;
  .loc 1 7 3
  ld.param.u64 %rd1, [px];
  ld.param.u64 %rd2, [py];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  mul.wide.s32 %rd3, %r4, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f1, [%rd4];
  .loc 1 8 3
  fma.rn.f32 %f2, %f1, 0f40000000, 0f3F800000;
  st.global.f32 [%rd5], %f2;
  ret;
}
.file 1 "/src/kernel.cu"
)";

std::vector<float> Ramp(size_t n) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i);
  return values;
}

TEST(Memory, ReadsAndWritesAcrossBlocks) {
  Machine machine(Wrap(kAffine));
  const Address x = machine.Buffer(Ramp(512)), y = machine.Buffer(std::vector<float>(512));
  const RunOutcome outcome = machine.Run("affine", 4, 128, {Argument(x), Argument(y)});
  ASSERT_EQ(outcome.kind(), RunOutcome::OK) << outcome.reason();
  const auto result = machine.Read<float>(y, 512);
  for (size_t i = 0; i < 512; ++i) ASSERT_EQ(result[i], 2.0f * static_cast<float>(i) + 1.0f) << i;
  EXPECT_EQ(outcome.instructions(), 512 * 13);
}

TEST(Memory, OverrunNamesTheNearestBuffer) {
  Machine machine(Wrap(kAffine));
  const Address x = machine.Buffer(Ramp(512), "x"), y = machine.Buffer(std::vector<float>(257), "y");
  const RunOutcome outcome = machine.Run("affine", 2, 256, {Argument(x), Argument(y)});
  ASSERT_EQ(outcome.kind(), RunOutcome::FAULT);
  EXPECT_EQ(outcome.fault().kind(), Fault::OUT_OF_BOUNDS);
  EXPECT_EQ(outcome.fault().kernel(), "affine");
  EXPECT_EQ(outcome.fault().file(), "kernel.cu");
  EXPECT_EQ(outcome.fault().line(), 8);
  EXPECT_EQ(outcome.fault().address(), y + 1028);
  EXPECT_THAT(outcome.fault().block(), testing::ElementsAre(1, 0, 0));
  EXPECT_THAT(outcome.fault().thread(), testing::ElementsAre(1, 0, 0));
  EXPECT_THAT(outcome.reason(), AllOf(HasSubstr("kernel.cu:8"), HasSubstr("writes 4 bytes"),
                                      HasSubstr("just past the end of output 'y' (1028 bytes)")));
}

TEST(Memory, DistanceAndNullPointer) {
  Machine machine(Wrap(kAffine));
  const Address x = machine.Buffer(Ramp(32), "x"), y = machine.Buffer(Ramp(32), "y");
  RunOutcome outcome = machine.Run("affine", 1, 32, {Argument(x), Argument(Address{y + 132})});
  EXPECT_THAT(outcome.reason(), HasSubstr("4 bytes past the end of output 'y' (128 bytes)"));
  outcome = machine.Run("affine", 1, 32, {Argument(x), Argument(Address{y - 8})});
  EXPECT_THAT(outcome.reason(), HasSubstr("8 bytes before the start of output 'y'"));
  outcome = machine.Run("affine", 1, 32, {Argument(Address{0}), Argument(y)});
  EXPECT_THAT(outcome.reason(), HasSubstr("a null pointer"));
}

TEST(Memory, MisalignedVector) {
  Machine machine(Wrap(R"(
.visible .entry k(.param .u64 p)
{
  .reg .f32 %f<4>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rd1];
  ret;
}
)"));
  const Address x = machine.Buffer(Ramp(32));
  EXPECT_EQ(machine.Run("k", 1, 1, {Argument(x)}).kind(), RunOutcome::OK);
  const RunOutcome outcome = machine.Run("k", 1, 1, {Argument(Address{x + 4})});
  EXPECT_EQ(outcome.fault().kind(), Fault::MISALIGNED);
  EXPECT_THAT(outcome.reason(), HasSubstr("not a multiple of 16"));
}

TEST(Memory, ReadOnlyImportRefusesWritesAndMappings) {
  auto owner = MakeEmulator();
  auto buffer = owner->Allocate(kPage, Extent{"x", 0, 128, "input"});
  ASSERT_TRUE(buffer.ok());
  auto handle = (*buffer)->Export(Access::kReadOnly);
  ASSERT_TRUE(handle.ok()) << handle.status().ToString();
  // Neither directly nor through its own /proc may the receiver get a writable mapping.
  EXPECT_EQ(mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, handle->get(), 0), MAP_FAILED);
  const int again = open(base::StrCat("/proc/self/fd/", handle->get()).c_str(), O_RDWR);
  if (again >= 0) {
    EXPECT_EQ(mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0), MAP_FAILED);
    close(again);
  }
  // The owner still writes.
  const std::vector<float> ramp = Ramp(32);
  ASSERT_TRUE(owner->CopyIn((*buffer)->address(), {reinterpret_cast<const uint8_t*>(ramp.data()), 128}).ok());

  Machine machine(Wrap(kAffine));
  auto imported = machine.device().Import(std::move(*handle), kPage, Access::kReadOnly, Extent{"x", 0, 128, "input"});
  ASSERT_TRUE(imported.ok()) << imported.status().ToString();
  const Address x = (*imported)->address(), y = machine.Buffer(std::vector<float>(32));
  ASSERT_EQ(machine.Run("affine", 1, 32, {Argument(x), Argument(y)}).kind(), RunOutcome::OK);
  EXPECT_EQ(machine.Read<float>(y, 32)[31], 63.0f);
  const RunOutcome outcome = machine.Run("affine", 1, 32, {Argument(y), Argument(x)});
  EXPECT_EQ(outcome.fault().kind(), Fault::READ_ONLY_WRITE);
  EXPECT_THAT(outcome.reason(), HasSubstr("input 'x', which is read-only"));
  EXPECT_EQ(machine.device().CopyIn(x, {reinterpret_cast<const uint8_t*>(ramp.data()), 128}).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(Memory, ImportChecksTheDescriptor) {
  auto device = MakeEmulator();
  EXPECT_EQ(device->Import(base::UniqueFd(open("/dev/null", O_RDWR)), kPage, Access::kReadWrite, {}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  base::UniqueFd unsealed(memfd_create("t", MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), kPage), 0);
  EXPECT_EQ(device->Import(std::move(unsealed), kPage, Access::kReadWrite, {}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  auto buffer = device->Allocate(kPage, Extent{"x", 0, 4});
  ASSERT_TRUE(buffer.ok());
  auto handle = (*buffer)->Export(Access::kReadWrite);
  ASSERT_TRUE(handle.ok());
  EXPECT_EQ(device->Import(std::move(*handle), 2 * kPage, Access::kReadWrite, {}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(Memory, LimitsAndBadSizes) {
  EmulatorOptions options;
  options.memory_bytes = 2 * kPage;
  auto device = MakeEmulator(options);
  EXPECT_EQ(device->Allocate(100, {}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(device->Allocate(kPage, Extent{"x", kPage - 4, 8}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(device->Allocate(4 * kPage, {}).status().code(), absl::StatusCode::kResourceExhausted);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(device->Allocate(2 * kPage, {}).ok());  // each is given back
  uint8_t byte = 0;
  EXPECT_EQ(device->CopyOut({&byte, 1}, 12345).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Memory, SlackIsForTheHostOnly) {
  Machine machine(Wrap(kAffine));
  auto buffer = machine.device().Allocate(kPage, Extent{"y", 256, 128});
  ASSERT_TRUE(buffer.ok());
  const std::vector<uint8_t> canary(kPage, 0x5a);
  EXPECT_TRUE(machine.device().CopyIn((*buffer)->address(), canary).ok());
  const Address x = machine.Buffer(Ramp(64));
  const Address y = (*buffer)->address() + 256;
  EXPECT_EQ(machine.Run("affine", 1, 32, {Argument(x), Argument(y)}).kind(), RunOutcome::OK);
  EXPECT_EQ(machine.Run("affine", 1, 64, {Argument(x), Argument(y)}).fault().kind(), Fault::OUT_OF_BOUNDS);
}

TEST(Memory, SharedBoundsNameBothSizes) {
  Machine machine(Wrap(R"(
.extern .shared .align 16 .b8 dynamic[];
.visible .entry k(.param .u32 offset)
{
  .reg .b32 %r<4>;
  .shared .align 4 .b8 fixed[64];
  ld.param.u32 %r1, [offset];
  mov.u32 %r2, fixed;
  add.s32 %r2, %r2, %r1;
  st.shared.u32 [%r2], %r1;
  mov.u32 %r3, dynamic;
  ld.shared.u32 %r1, [%r3];
  ret;
}
)"));
  EXPECT_EQ(machine.Run("k", 1, 32, {Argument(uint32_t{60})}, 16).kind(), RunOutcome::OK);
  EXPECT_EQ(machine.Run("k", 1, 32, {Argument(uint32_t{76})}, 16).kind(), RunOutcome::OK);
  const RunOutcome outcome = machine.Run("k", 1, 32, {Argument(uint32_t{80})}, 16);
  EXPECT_EQ(outcome.fault().kind(), Fault::OUT_OF_BOUNDS);
  EXPECT_THAT(outcome.reason(), HasSubstr("80 bytes (64 static, 16 dynamic)"));
}

TEST(Memory, GenericAddressesReachEverySpace) {
  Machine machine(Wrap(R"(
.global .align 4 .u32 counter = 5;
.const .align 4 .u32 table[2] = {7, 9};
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<4>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<12>;
  .shared .align 4 .u32 s;
  .local .align 4 .b8 depot[16];
  ld.param.u64 %rd1, [out];
  mov.u64 %rd2, s;
  cvta.shared.u64 %rd3, %rd2;
  st.u32 [%rd3], 11;
  ld.shared.u32 %r1, [s];
  mov.u64 %rd4, depot;
  cvta.local.u64 %rd5, %rd4;
  st.u32 [%rd5+4], 13;
  ld.local.u32 %r2, [depot+4];
  mov.u64 %rd6, counter;
  cvta.global.u64 %rd7, %rd6;
  ld.u32 %r3, [%rd7];
  mov.u64 %rd8, table;
  ld.const.u32 %r4, [%rd8+4];
  isspacep.shared %p1, %rd3;
  isspacep.local %p2, %rd5;
  isspacep.global %p3, %rd7;
  selp.u32 %r5, 1, 0, %p1;
  selp.u32 %r6, 1, 0, %p2;
  selp.u32 %r7, 1, 0, %p3;
  st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};
  st.global.v2.u32 [%rd1+16], {%r5, %r6};
  st.global.u32 [%rd1+24], %r7;
  ret;
}
)"));
  const Address out = machine.Buffer(std::vector<uint32_t>(8));
  const RunOutcome outcome = machine.Run("k", 1, 1, {Argument(out)});
  ASSERT_EQ(outcome.kind(), RunOutcome::OK) << outcome.reason();
  EXPECT_EQ(machine.Read<uint32_t>(out, 7), (std::vector<uint32_t>{11, 13, 5, 9, 1, 1, 1}));
}

}  // namespace
}  // namespace solstice::device
