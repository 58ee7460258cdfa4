// mma.sync against plain loops in long double or integers.
#include "runtime/device/emulator/emulator_matrix_test_support.h"

namespace solstice::device {
namespace {

void Check(const Form& f, uint32_t lanes = 0xffffffffu) {
  SCOPED_TRACE(f.Name());
  std::mt19937_64 random(7);
  const Shares s(f);
  const std::vector<uint64_t> in = RandomWords(s, random);
  const int threads = 32 - __builtin_clz(lanes);
  const std::vector<uint64_t> out = RunMatrix(MatrixKernel(f.Name(), s.d, s.a, s.b, s.c), in, s.d.registers(), threads);
  if (::testing::Test::HasFailure()) return;

  const int products = f.IsQuadPairs() ? 4 : 1;
  const auto product_of = [&](int lane) { return products == 4 ? lane % 16 / 4 : 0; };
  std::vector<long double> a(products * f.m * f.k), b(products * f.k * f.n), c(products * f.m * f.n);
  for (int lane = 0; lane < threads; ++lane) {
    const int p = product_of(lane);
    for (int i = 0; i < s.a.elements; ++i) {
      const Place at = PlaceOfA(f, lane, i);
      a[(p * f.m + at.row) * f.k + at.column] = ValueOf(f.a, BitsAt(in, 0, s.a, lane, i));
    }
    for (int i = 0; i < s.b.elements; ++i) {
      const Place at = PlaceOfB(f, lane, i);
      b[(p * f.k + at.row) * f.n + at.column] = ValueOf(f.b, BitsAt(in, s.a.registers(), s.b, lane, i));
    }
    for (int i = 0; i < s.c.elements; ++i) {
      const Place at = PlaceOfC(f, f.c, lane, i);
      c[(p * f.m + at.row) * f.n + at.column] =
          ValueOf(f.c, BitsAt(in, s.a.registers() + s.b.registers(), s.c, lane, i));
    }
  }
  const bool saturate = f.kind == ".satfinite", both = f.suffix == ".and.popc";
  for (int lane = 0; lane < threads; ++lane) {
    const int p = product_of(lane);
    for (int i = 0; i < s.d.elements; ++i) {
      const Place at = PlaceOfC(f, f.d, lane, i);
      long double sum = c[(p * f.m + at.row) * f.n + at.column];
      for (int l = 0; l < f.k; ++l) {
        const long double x = a[(p * f.m + at.row) * f.k + l], y = b[(p * f.k + l) * f.n + at.column];
        if (f.a == "f64") {
          sum = std::fma(static_cast<double>(x), static_cast<double>(y), static_cast<double>(sum));
        } else if (f.a == "b1") {
          sum += both ? (x != 0 && y != 0) : x != y;
        } else {
          sum += x * y;
        }
      }
      const long double got = ValueOf(f.d, BitsAt(out, 0, s.d, lane, i));
      long double want = sum;
      if (f.d == "s32") {
        want = saturate ? std::min<long double>(std::max<long double>(sum, INT32_MIN), INT32_MAX)
                        : static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(sum)));
      } else {
        want = Rounded(f.d, sum);
      }
      ASSERT_EQ(static_cast<double>(got), static_cast<double>(want)) << "lane " << lane << " element " << i;
    }
  }
}

TEST(Matrix, MmaFloat16) {
  for (const std::string layout : {".row.row", ".row.col", ".col.row", ".col.col"}) {
    Check({8, 8, 4, "f32", "f16", "f16", "f32", "", "", layout});
    Check({8, 8, 4, "f32", "f16", "f16", "f16", "", "", layout});
    Check({8, 8, 4, "f16", "f16", "f16", "f16", "", "", layout});
  }
  for (const int k : {8, 16}) {
    Check({16, 8, k, "f32", "f16", "f16", "f32", "", ""});
    Check({16, 8, k, "f16", "f16", "f16", "f16", "", ""});
    Check({16, 8, k, "f32", "bf16", "bf16", "f32", "", ""});
  }
}

TEST(Matrix, MmaWideFloats) {
  for (const int k : {4, 8}) Check({16, 8, k, "f32", "tf32", "tf32", "f32", "", ""});
  Check({8, 8, 4, "f64", "f64", "f64", "f64", "", ""});
  for (const int k : {4, 8, 16}) Check({16, 8, k, "f64", "f64", "f64", "f64", "", ""});
}

TEST(Matrix, MmaIntegers) {
  for (const std::string a : {"s8", "u8"}) {
    for (const std::string b : {"s8", "u8"}) {
      for (const std::string satfinite : {"", ".satfinite"}) {
        Check({8, 8, 16, "s32", a, b, "s32", satfinite, ""});
        for (const int k : {16, 32}) Check({16, 8, k, "s32", a, b, "s32", satfinite, ""});
        const std::string a4 = a.substr(0, 1) + "4", b4 = b.substr(0, 1) + "4";
        Check({8, 8, 32, "s32", a4, b4, "s32", satfinite, ""});
        for (const int k : {32, 64}) Check({16, 8, k, "s32", a4, b4, "s32", satfinite, ""});
      }
    }
  }
  for (const std::string op : {".xor.popc", ".and.popc"}) {
    Check({8, 8, 128, "s32", "b1", "b1", "s32", "", op});
    for (const int k : {128, 256}) Check({16, 8, k, "s32", "b1", "b1", "s32", "", op});
  }
}

TEST(Matrix, MmaNarrowFloats) {
  for (const std::string d : {"f32", "f16"}) {
    for (const std::string a : {"e4m3", "e5m2"}) {
      for (const std::string b : {"e4m3", "e5m2"}) {
        for (const int k : {16, 32}) Check({16, 8, k, d, a, b, d, "", ""});
      }
    }
    for (const std::string a : {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"}) {
      for (const std::string b : {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"}) {
        Check({16, 8, 32, d, a, b, d, ".kind::f8f6f4", ""});
      }
    }
  }
}

// Lanes that do not exist hold zeros.
TEST(Matrix, PartialWarps) {
  Check({16, 8, 16, "f32", "f16", "f16", "f32", "", ""}, 0x000fffffu);
  Check({16, 8, 8, "f64", "f64", "f64", "f64", "", ""}, 0x1u);
  Check({16, 8, 32, "s32", "s8", "u8", "s32", "", ""}, 0x00ffffffu);
}

}  // namespace
}  // namespace solstice::device
