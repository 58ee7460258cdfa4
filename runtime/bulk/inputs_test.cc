// The kernels' inputs are the host's, bit for bit.
#include "runtime/bulk/bulk_test_support.h"
#include "runtime/core/dtype.h"

namespace solstice::bulk {
namespace {

constexpr v1::DType kAllTypes[] = {
    v1::FLOAT64, v1::FLOAT32, v1::FLOAT16, v1::BFLOAT16, v1::FLOAT8_E4M3FN, v1::FLOAT8_E5M2, v1::FLOAT4_E2M1FN_X2,
    v1::INT64,   v1::INT32,   v1::INT16,   v1::INT8,     v1::UINT8,         v1::BOOL};
using Shape = std::vector<int64_t>;

class InputsTest : public BulkTest {
 protected:
  // Between guards of its own, `shift` bytes off alignment.
  void Expect(const std::string& name, v1::DType dtype, const Shape& shape, int variant, int64_t shift = 0) {
    const v1::Tensor tensor = MakeTensor(name, dtype);
    const generate::Seeds seeds = {0x1234567890abcdefull + static_cast<uint64_t>(variant), 77};
    ExpectSource(tensor, RandomSource(), shape, seeds, variant, shift);
  }

  void ExpectSource(const v1::Tensor& tensor, const v1::InputSource& source, const Shape& shape,
                    const generate::Seeds& seeds, int variant, int64_t shift) {
    auto wanted = generate::GenerateInput(tensor, source, shape, 3, seeds, variant);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    const std::string before(32, '\x5a'), after(32, '\xa5');
    const device::Address address = Put(before + std::string(wanted->size(), '\x11') + after, shift);
    ASSERT_TRUE(kernels_->MakeInput(tensor, source, shape, 3, seeds, variant, address + 32).ok());
    EXPECT_OK(kernels_->Finish());
    const std::string found = Get(address, static_cast<int64_t>(wanted->size()) + 64);
    EXPECT_TRUE(found == before + *wanted + after)
        << tensor.name() << " " << core::DTypeName(tensor.dtype()) << " of " << wanted->size() << " bytes, variant "
        << variant << ", shifted by " << shift;
    buffers_.clear();
  }
};

TEST_F(InputsTest, EveryDistributionOfEveryFloatingType) {
  for (v1::DType dtype : {v1::FLOAT64, v1::FLOAT32, v1::FLOAT16, v1::BFLOAT16}) {
    for (const char* name : {"x", "norm_weight", "norm_bias", "attention_mask", "mask", "cos", "sin", "variance", "A",
                             "attn_weights", "weight"}) {
      for (int variant = 0; variant < 3; ++variant) {
        Expect(name, dtype, {1}, variant);
        Expect(name, dtype, {3, 7, 7}, variant);
        Expect(name, dtype, {33, 33}, variant, variant);  // more than a block of threads and not aligned
      }
      Expect(name, dtype, {0, 4}, 0);
    }
  }
}

TEST_F(InputsTest, EveryOtherType) {
  for (v1::DType dtype : kAllTypes) {
    for (int variant = 0; variant < 2; ++variant) {
      for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{7}, Shape{9, 31}, Shape{67, 71}}) {
        Expect("x", dtype, shape, variant);
        Expect("x", dtype, shape, variant, 5);
      }
    }
    Expect("block_ids", dtype, {100}, 2);  // integers: from the structure's seed
  }
}

// More work than threads, so that they stride.
TEST_F(InputsTest, LargerThanTheGrid) {
  Expect("x", v1::BFLOAT16, {2200003}, 0);
  Expect("x", v1::BOOL, {132 * 8 * 256 * 32 + 77}, 0);
  Expect("x", v1::INT8, {132 * 8 * 256 * 16 + 77}, 0);
}

TEST_F(InputsTest, SoftmaxRowsOfEveryLength) {
  for (int64_t length : {1, 2, 31, 32, 33, 64, 1000}) {
    for (v1::DType dtype : {v1::FLOAT64, v1::FLOAT32, v1::FLOAT16, v1::BFLOAT16}) {
      Expect("routing_weights", dtype, {5, length}, 0);
    }
  }
}

// Coins that all fell alike are mended: about one in 2^(n - 1) seeds.
TEST_F(InputsTest, CoinsOfBothKinds) {
  int mended = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    for (int64_t count : {1, 2, 3, 4}) {
      const v1::Tensor tensor = MakeTensor("keep", v1::BOOL);
      ExpectSource(tensor, RandomSource(), {count}, {seed, 0}, 0, 0);
      auto content = generate::GenerateInput(tensor, RandomSource(), {count}, 3, {seed, 0}, 0);
      ASSERT_TRUE(content.ok());
      EXPECT_EQ(count > 1 && content->find('\0') == std::string::npos, false);
      mended += count == 2 && (*content)[0] != (*content)[1];
    }
  }
  EXPECT_EQ(mended, 40) << "half of them by the repair";
}

TEST_F(InputsTest, ScalarsOfEveryType) {
  for (v1::DType dtype : kAllTypes) {
    v1::InputSource source;
    source.mutable_scalar()->set_integer(1);
    for (int64_t shift : {0, 1, 6, 8}) {
      for (int64_t count : {0, 1, 2, 5, 333}) {
        ExpectSource(MakeTensor("s", dtype), source, {count}, {}, 0, shift);
      }
    }
  }
  v1::InputSource source;
  source.mutable_scalar()->set_number(0.1);  // bytes that differ
  ExpectSource(MakeTensor("s", v1::FLOAT64), source, {17}, {}, 0, 3);
  ExpectSource(MakeTensor("s", v1::BFLOAT16), source, {17}, {}, 0, 3);
}

TEST_F(InputsTest, RefusesAtOnceWhatItCannotMake) {
  v1::InputSource custom;
  custom.set_custom(true);
  v1::InputSource too_large;
  too_large.mutable_scalar()->set_integer(300);
  const device::Address address = Put(std::string(64, 'x'));
  for (Bulk* bulk : {kernels_.get(), host_.get()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(bulk->MakeInput(MakeTensor("x", v1::FLOAT32), custom, {4}, 0, {}, 0, address)));
    EXPECT_TRUE(absl::IsInvalidArgument(bulk->MakeInput(MakeTensor("x", v1::INT8), too_large, {4}, 0, {}, 0, address)));
    EXPECT_TRUE(
        absl::IsInvalidArgument(bulk->MakeInput(MakeTensor("x", v1::INT8), RandomSource(), {-1}, 0, {}, 0, address)));
    EXPECT_OK(bulk->Finish());
  }
  EXPECT_EQ(Get(address, 64), std::string(64, 'x'));
}

TEST_F(InputsTest, TheHostMakesTheSame) {
  const v1::Tensor tensor = MakeTensor("x", v1::FLOAT16);
  auto wanted = generate::GenerateInput(tensor, RandomSource(), {50}, 1, {5, 6}, 2);
  ASSERT_TRUE(wanted.ok());
  const device::Address address = Put(std::string(100, '\0'));
  EXPECT_OK(host_->MakeInput(tensor, RandomSource(), {50}, 1, {5, 6}, 2, address));
  EXPECT_OK(host_->Finish());
  EXPECT_EQ(Get(address, 100), *wanted);
}

}  // namespace
}  // namespace solstice::bulk
