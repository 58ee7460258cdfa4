// Fillings, damage, fingerprints, and the program itself.
#include "runtime/bulk/bulk_test_support.h"

namespace solstice::bulk {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(KernelProgramTest, ComputesExactly) {
  const v1::internal::Program& program = TestProgram();
  EXPECT_THAT(program.ptx(), Not(HasSubstr("fma.")));
  EXPECT_THAT(program.ptx(), Not(HasSubstr(".approx")));
  EXPECT_THAT(program.ptx(), Not(HasSubstr(".ftz")));
  for (const char* exact : {"div.rn.f32", "div.rn.f64", "sqrt.rn.f32", "sqrt.rn.f64", "mul.rn.f64"}) {
    EXPECT_THAT(program.ptx(), HasSubstr(exact));
  }
  EXPECT_EQ(program.device_state_size(), 0);
}

TEST(KernelProgramTest, HasItsEntriesAndSpillsNothing) {
  const auto source = KernelSource("sm_90a");
  ASSERT_EQ(TestProgram().kernels_size(), source.name_expressions_size());
  for (int i = 0; i < source.name_expressions_size(); ++i) {
    const v1::Kernel& kernel = TestProgram().kernels(i);
    EXPECT_EQ(kernel.name(), source.name_expressions(i));
    EXPECT_EQ(kernel.spill_store_bytes() + kernel.spill_load_bytes(), 0) << kernel.name();
    EXPECT_LE(kernel.registers(), 128) << kernel.name();
  }
}

class ContentTest : public BulkTest {
 protected:
  std::string Random(uint64_t seed, uint64_t stream, int64_t bytes) {
    std::string content(static_cast<size_t>(bytes), '\0');
    generate::FillRandom(seed, stream, content.data(), bytes);
    return content;
  }

  Damage Check(Bulk* bulk, device::Address address, int64_t bytes) {
    Damage damage = {-1, -1, -1};
    EXPECT_OK(bulk->CheckRandom(9, 4, address, bytes, &damage));
    EXPECT_OK(bulk->Finish());
    return damage;
  }

  Fingerprint Take(Bulk* bulk, uint64_t key, device::Address address, int64_t bytes) {
    Fingerprint fingerprint = {1, 1};
    EXPECT_OK(bulk->TakeFingerprint(key, address, bytes, &fingerprint));
    EXPECT_OK(bulk->Finish());
    return fingerprint;
  }
};

TEST_F(ContentTest, FillsAnywhere) {
  for (int64_t shift = 0; shift < 18; ++shift) {
    for (int64_t bytes : {0, 1, 2, 15, 16, 17, 31, 33, 100, 8195}) {
      const std::string around(40, '#');
      const device::Address address = Put(around + std::string(static_cast<size_t>(bytes), '-') + around, shift);
      EXPECT_OK(kernels_->FillRandom(9, 4, address + 40, bytes));
      EXPECT_OK(kernels_->Finish());
      EXPECT_EQ(Get(address, bytes + 80), around + Random(9, 4, bytes) + around) << shift << " " << bytes;
      buffers_.clear();
    }
  }
}

TEST_F(ContentTest, FillsMoreThanTheGrid) {
  const int64_t bytes = 132 * 8 * 256 * 16 + 12345;
  const device::Address address = Put(std::string(static_cast<size_t>(bytes), '\0'), 3);
  EXPECT_OK(kernels_->FillRandom(9, 4, address, bytes));
  EXPECT_OK(kernels_->Finish());
  EXPECT_TRUE(Get(address, bytes) == Random(9, 4, bytes));
  EXPECT_EQ(Check(kernels_.get(), address, bytes).bytes, 0);
  EXPECT_EQ(Take(kernels_.get(), 3, address, bytes), Take(host_.get(), 3, address, bytes));
}

TEST_F(ContentTest, FindsDamageAnywhere) {
  for (Bulk* bulk : {kernels_.get(), host_.get()}) {
    for (int64_t shift : {0, 1, 7, 15}) {
      for (int64_t bytes : {1, 5, 16, 17, 40, 300, 4099}) {
        const std::string whole = Random(9, 4, bytes);
        // Bytes around it are nobody's business.
        const device::Address address = Put("xx" + whole + "yy", shift) + 2;
        EXPECT_EQ(Check(bulk, address, bytes).bytes, 0);
        for (const auto& [first, last] : {std::pair<int64_t, int64_t>{0, 0},
                                          {bytes - 1, bytes - 1},
                                          {0, bytes - 1},
                                          {bytes / 2, bytes / 2},
                                          {bytes / 3, bytes - 1}}) {
          std::string damaged = whole;
          damaged[first] ^= 1;
          if (last != first) damaged[last] ^= static_cast<char>(0x80);
          Write(address, damaged);
          const Damage damage = Check(bulk, address, bytes);
          EXPECT_EQ(damage.bytes, first == last ? 1 : 2) << shift << " " << bytes;
          EXPECT_EQ(damage.first, first) << shift << " " << bytes;
          EXPECT_EQ(damage.last, last) << shift << " " << bytes;
        }
        buffers_.clear();
      }
    }
    const device::Address address = Put(std::string(5000, '\0'));
    const Damage all = Check(bulk, address, 5000);
    const std::string wanted = Random(9, 4, 5000);
    EXPECT_EQ(all.bytes, 5000 - std::count(wanted.begin(), wanted.end(), '\0'));
    EXPECT_EQ(Check(bulk, address, 0).bytes, 0);
  }
}

TEST_F(ContentTest, FingerprintsOfHostAndDeviceAreEqual) {
  for (int64_t shift : {0, 4, 9}) {
    for (int64_t bytes : {0, 1, 15, 16, 17, 511, 512, 513, 4096, 4100, 70001}) {
      const device::Address address = Put(Random(1, 2, bytes), shift);
      EXPECT_EQ(Take(kernels_.get(), 42, address, bytes), Take(host_.get(), 42, address, bytes)) << bytes;
      buffers_.clear();
    }
  }
}

TEST_F(ContentTest, FingerprintsTellContentOrderAndKey) {
  std::string content = Random(1, 2, 2048);
  const device::Address address = Put(content);
  const Fingerprint whole = Take(kernels_.get(), 42, address, 2048);
  EXPECT_EQ(Take(kernels_.get(), 42, address, 2048), whole);
  const Fingerprint other_key = Take(kernels_.get(), 43, address, 2048);
  EXPECT_NE(other_key[0], whole[0]);
  EXPECT_NE(other_key[1], whole[1]);
  for (size_t at : {0u, 1u, 1000u, 2047u}) {
    content[at] ^= 1;
    Write(address, content);
    const Fingerprint changed = Take(kernels_.get(), 42, address, 2048);
    EXPECT_NE(changed[0], whole[0]) << at;
    EXPECT_NE(changed[1], whole[1]) << at;
    content[at] ^= 1;
  }
  for (size_t distance : {1u, 4u, 8u, 16u, 512u}) {  // bytes, words, pairs, chunks, steps
    std::string swapped = content;
    std::swap_ranges(swapped.begin(), swapped.begin() + 1, swapped.begin() + distance);
    ASSERT_NE(swapped, content);
    Write(address, swapped);
    const Fingerprint changed = Take(kernels_.get(), 42, address, 2048);
    EXPECT_NE(changed[0], whole[0]) << distance;
    EXPECT_NE(changed[1], whole[1]) << distance;
  }
}

TEST_F(ContentTest, ManyOperationsAtOnce) {
  constexpr int kMany = 1100;  // more than one buffer of results
  const device::Address address = Put(std::string(64 * kMany, '\0'));
  std::vector<Damage> clean(kMany), damaged(kMany);
  std::vector<Fingerprint> fingerprints(kMany);
  for (int i = 0; i < kMany; ++i) {
    const device::Address own = address + 64 * static_cast<device::Address>(i);
    EXPECT_OK(kernels_->FillRandom(1, static_cast<uint64_t>(i), own, 64));
    EXPECT_OK(kernels_->CheckRandom(1, static_cast<uint64_t>(i), own, 64, &clean[i]));
    EXPECT_OK(kernels_->CheckRandom(2, static_cast<uint64_t>(i), own, 64, &damaged[i]));
    EXPECT_OK(kernels_->TakeFingerprint(5, own, 64, &fingerprints[i]));
  }
  EXPECT_OK(kernels_->Finish());
  for (int i = 0; i < kMany; ++i) {
    EXPECT_EQ(clean[i].bytes, 0);
    EXPECT_GT(damaged[i].bytes, 50);
    EXPECT_EQ(fingerprints[i], Take(host_.get(), 5, address + 64 * static_cast<device::Address>(i), 64));
  }
  // The places of the last batch are cleared for the next.
  EXPECT_EQ(Check(kernels_.get(), Put(Random(9, 4, 64)), 64).bytes, 0);
}

TEST_F(ContentTest, AFaultOfTheKernelsIsAStatus) {
  const device::Address address = Put(std::string(64, '\0'));
  EXPECT_OK(kernels_->FillRandom(1, 2, address, int64_t{1} << 22));  // beyond the mapping
  const Status status = kernels_->Finish();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_FALSE(kernels_->FillRandom(1, 2, address, -1).ok());
  EXPECT_FALSE(host_->FillRandom(1, 2, address, -1).ok());
}

TEST_F(ContentTest, ClearingReadsAndWritesNothing) {
  const std::string content = Random(1, 1, 4000);
  const device::Address address = Put(content);
  v1::DeviceProperties properties = device_->properties();
  EXPECT_EQ(ClearLaunch(address, 4000, properties).dynamic_shared_bytes, properties.max_shared_bytes());
  properties.set_sm_count(2);
  properties.set_max_shared_bytes(4096);
  EXPECT_OK(device_->EnqueueLaunch(*module_, ClearLaunch(address, 4000, properties)));
  auto outcome = device_->Synchronize({});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->kind(), v1::internal::RunOutcome::OK) << outcome->reason();
  EXPECT_EQ(Get(address, 4000), content);
  // It does read: behind the mapping that is a fault.
  EXPECT_OK(device_->EnqueueLaunch(*module_, ClearLaunch(address, int64_t{1} << 22, properties)));
  outcome = device_->Synchronize({});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->kind(), v1::internal::RunOutcome::FAULT);
}

TEST_F(ContentTest, StandInWritesWholeChunksOfItsRangesAndNothingElse) {
  const std::string content = Random(1, 1, 4000);
  const device::Address address = Put(content);
  std::vector<Written> ranges = {{address + 16, 1600}, {address + 2003, 100}, {address + 3000, 7}};
  EXPECT_OK(device_->EnqueueLaunch(*module_, StandInLaunch(ranges, device_->properties())));
  auto outcome = device_->Synchronize({});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->kind(), v1::internal::RunOutcome::OK) << outcome->reason();
  std::string expected = content;
  std::fill_n(expected.begin() + 16, 1600, '\0');
  // The mapping starts at a multiple of sixteen: from 2016 to 2096, and no whole chunk of the last.
  ASSERT_EQ(address % 16, 0u);
  std::fill_n(expected.begin() + 2016, 80, '\0');
  EXPECT_EQ(Get(address, 4000), expected);

  // Without ranges it does nothing; more than it takes are left out.
  EXPECT_OK(device_->EnqueueLaunch(*module_, StandInLaunch({}, device_->properties())));
  ranges.clear();
  for (device::Address i = 0; i < 80; ++i) ranges.push_back({address + 32 * i, 16});
  EXPECT_OK(device_->EnqueueLaunch(*module_, StandInLaunch(ranges, device_->properties())));
  outcome = device_->Synchronize({});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->kind(), v1::internal::RunOutcome::OK) << outcome->reason();
  for (size_t i = 0; i < 64; ++i) std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(32 * i), 16, '\0');
  EXPECT_EQ(Get(address, 4000), expected);
}

}  // namespace
}  // namespace solstice::bulk
