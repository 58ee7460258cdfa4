// ldmatrix, stmatrix, movmatrix, wmma.load and wmma.store.
#include "runtime/device/emulator/emulator_test_support.h"

namespace solstice::device {
namespace {

using ::testing::HasSubstr;

// A kernel of one warp with 4096 bytes of shared memory that hold `in`, which is copied back to `in` at the end. %r0 is
// the lane, %r1 the 32-bit shared address, %q1 the generic one; %r8 to %r11 are each lane's words of `out`.
std::string MoveKernel(const std::string& body) {
  return Wrap(R"(
.visible .entry k(.param .u64 in, .param .u64 out)
{
  .reg .pred %p<4>;
  .reg .b32 %r<40>;
  .reg .f32 %f<8>;
  .reg .f64 %d<8>;
  .reg .b64 %q<16>;
  .shared .align 128 .b8 bytes[4096];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, bytes;
  cvt.u64.u32 %q1, %r1;
  cvta.shared.u64 %q1, %q1;
  ld.param.u64 %q2, [in];
  ld.param.u64 %q3, [out];
  mul.wide.u32 %q4, %r0, 16;
  add.s64 %q5, %q3, %q4;
  shl.b32 %r2, %r0, 2;
COPY:
  cvt.u64.u32 %q6, %r2;
  add.s64 %q7, %q2, %q6;
  ld.global.u32 %r3, [%q7];
  add.s32 %r4, %r1, %r2;
  st.shared.u32 [%r4], %r3;
  add.s32 %r2, %r2, 128;
  setp.lt.u32 %p1, %r2, 4096;
  @%p1 bra COPY;
  bar.warp.sync 0xffffffff;
  ld.global.v4.u32 {%r8, %r9, %r10, %r11}, [%q5];
)" + body + R"(
  bar.warp.sync 0xffffffff;
  st.global.v4.u32 [%q5], {%r8, %r9, %r10, %r11};
  shl.b32 %r2, %r0, 2;
BACK:
  cvt.u64.u32 %q6, %r2;
  add.s64 %q7, %q2, %q6;
  add.s32 %r4, %r1, %r2;
  ld.shared.u32 %r3, [%r4];
  st.global.u32 [%q7], %r3;
  add.s32 %r2, %r2, 128;
  setp.lt.u32 %p1, %r2, 4096;
  @%p1 bra BACK;
  ret;
}
)");
}

struct Moved {
  std::vector<uint16_t> shared = std::vector<uint16_t>(2048);
  std::vector<uint16_t> words = std::vector<uint16_t>(256);  // [lane][register][half]
  RunOutcome outcome;

  uint16_t Half(int lane, int r, int half) const { return words[lane * 8 + r * 2 + half]; }
};

Moved Move(const std::string& body, int threads = 32) {
  Moved moved;
  for (size_t i = 0; i < moved.shared.size(); ++i) moved.shared[i] = static_cast<uint16_t>(i * 3 + 1);
  for (size_t i = 0; i < moved.words.size(); ++i) moved.words[i] = static_cast<uint16_t>(0x8000 + i);
  Machine machine(MoveKernel(body));
  const Address in = machine.Buffer(moved.shared), out = machine.Buffer(moved.words);
  moved.outcome = machine.Run("k", 1, threads, {Argument(in), Argument(out)});
  moved.shared = machine.Read<uint16_t>(in, moved.shared.size());
  moved.words = machine.Read<uint16_t>(out, moved.words.size());
  return moved;
}

// Lane l names row l, 80 bytes apart.
constexpr char kRow[] = "mad.lo.u32 %r20, %r0, 80, %r1;\n cvt.u64.u32 %q8, %r0;\n mad.lo.u64 %q8, %q8, 80, %q1;\n";

TEST(MatrixMove, LoadMatrix) {
  for (const bool transposed : {false, true}) {
    for (const bool generic : {false, true}) {
      for (const int count : {1, 2, 4}) {
        const std::string registers = count == 1 ? "{%r8}" : count == 2 ? "{%r8, %r9}" : "{%r8, %r9, %r10, %r11}";
        const Moved moved =
            Move(base::StrCat(kRow, "ldmatrix.sync.aligned.m8n8.x", count, transposed ? ".trans" : "",
                              generic ? ".b16 " : ".shared.b16 ", registers, generic ? ", [%q8+16];" : ", [%r20+16];"));
        ASSERT_EQ(moved.outcome.kind(), RunOutcome::OK) << moved.outcome.reason();
        for (int lane = 0; lane < 32; ++lane) {
          for (int r = 0; r < 4; ++r) {
            for (int half = 0; half < 2; ++half) {
              const int i = lane / 4, j = lane % 4 * 2 + half;
              const int row = transposed ? j : i, column = transposed ? i : j;
              const int want = r < count ? ((8 * r + row) * 40 + 8 + column) * 3 + 1 : 0x8000 + lane * 8 + r * 2 + half;
              ASSERT_EQ(moved.Half(lane, r, half), static_cast<uint16_t>(want)) << count << " lane " << lane;
            }
          }
        }
      }
    }
  }
}

TEST(MatrixMove, StoreMatrix) {
  for (const bool transposed : {false, true}) {
    for (const int count : {1, 2, 4}) {
      const std::string registers = count == 1 ? "{%r8}" : count == 2 ? "{%r8, %r9}" : "{%r8, %r9, %r10, %r11}";
      const Moved moved = Move(base::StrCat(kRow, "stmatrix.sync.aligned.m8n8.x", count, transposed ? ".trans" : "",
                                            ".shared.b16 [%r20], ", registers, ";"));
      ASSERT_EQ(moved.outcome.kind(), RunOutcome::OK) << moved.outcome.reason();
      for (int at = 0; at < 2048; ++at) {
        const int row = at / 40 % 8, matrix = at / 320, column = at % 40;
        int want = at * 3 + 1;
        if (matrix < count && column < 8) {
          const int i = transposed ? column : row, j = transposed ? row : column;
          want = 0x8000 + (i * 4 + j / 2) * 8 + matrix * 2 + j % 2;
        }
        ASSERT_EQ(moved.shared[at], static_cast<uint16_t>(want)) << count << " at " << at;
      }
    }
  }
}

TEST(MatrixMove, MoveMatrix) {
  const Moved moved = Move("movmatrix.sync.aligned.m8n8.trans.b16 %r9, %r8;");
  ASSERT_EQ(moved.outcome.kind(), RunOutcome::OK) << moved.outcome.reason();
  for (int lane = 0; lane < 32; ++lane) {
    for (int half = 0; half < 2; ++half) {
      const int row = lane % 4 * 2 + half, column = lane / 4;
      ASSERT_EQ(moved.Half(lane, 1, half), 0x8000 + (row * 4 + column / 2) * 8 + column % 2);
    }
  }
}

TEST(MatrixMove, FaultsAtTheLaneThatGaveTheAddress) {
  const std::string load = "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r8, %r9}, [%r20];";
  auto at_lane = [](int lane, const std::string& change) {
    return base::StrCat(kRow, "setp.eq.u32 %p2, %r0, ", lane, ";\n@%p2 ", change, "\n");
  };
  Moved moved = Move(at_lane(11, "add.s32 %r20, %r20, 8;") + load);
  EXPECT_EQ(moved.outcome.fault().kind(), Fault::MISALIGNED) << moved.outcome.reason();
  EXPECT_EQ(moved.outcome.fault().thread(0), 11);
  EXPECT_THAT(moved.outcome.reason(), HasSubstr("not a multiple of 16"));
  moved = Move(at_lane(15, "mov.u32 %r20, 4096;") + load);
  EXPECT_EQ(moved.outcome.fault().kind(), Fault::OUT_OF_BOUNDS) << moved.outcome.reason();
  EXPECT_EQ(moved.outcome.fault().thread(0), 15);
  moved = Move(at_lane(3, "mov.u32 %r20, 0xfffffff0;") + "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r20], {%r8};");
  EXPECT_EQ(moved.outcome.fault().kind(), Fault::OUT_OF_BOUNDS) << moved.outcome.reason();
  EXPECT_EQ(moved.outcome.fault().thread(0), 3);
  // The addresses of other lanes do not count.
  moved = Move(at_lane(16, "mov.u32 %r20, 4096;") + load);
  EXPECT_EQ(moved.outcome.kind(), RunOutcome::OK) << moved.outcome.reason();
}

TEST(MatrixMove, RowsOfMissingLanesAreZero) {
  // Four lanes copy the first 16 of every 128 bytes to shared memory.
  const std::string row = "mad.lo.u32 %r20, %r0, 128, %r1;\n";
  const Moved moved = Move(row + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r8}, [%r20];", 4);
  ASSERT_EQ(moved.outcome.kind(), RunOutcome::OK) << moved.outcome.reason();
  EXPECT_EQ(moved.Half(3, 0, 1), 7 * 3 + 1);  // row 0, column 7
  const Moved turned = Move(row + "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r8}, [%r20];", 4);
  ASSERT_EQ(turned.outcome.kind(), RunOutcome::OK) << turned.outcome.reason();
  EXPECT_EQ(turned.Half(1, 0, 1), 3 * 64 * 3 + 1);  // row 3, column 0
  EXPECT_EQ(turned.Half(2, 0, 0), 0);               // row 4, which nobody gave
}

struct FragmentForm {
  std::string shape, type;
  int rows, columns, bytes, registers;
};

// What is loaded by rows and stored by columns is the transpose, in any shape, type and space.
TEST(MatrixMove, WmmaAccumulatorsRoundTrip) {
  for (const FragmentForm& f :
       {FragmentForm{"m16n16k16", "f32", 16, 16, 4, 8}, FragmentForm{"m16n16k16", "f16", 16, 16, 2, 4},
        FragmentForm{"m16n16k16", "s32", 16, 16, 4, 8}, FragmentForm{"m8n32k16", "f32", 8, 32, 4, 8},
        FragmentForm{"m8n32k16", "f16", 8, 32, 2, 4}, FragmentForm{"m32n8k16", "f32", 32, 8, 4, 8},
        FragmentForm{"m32n8k16", "f16", 32, 8, 2, 4}, FragmentForm{"m16n16k8", "f32", 16, 16, 4, 8},
        FragmentForm{"m8n8k4", "f64", 8, 8, 8, 2}}) {
    SCOPED_TRACE(f.shape + f.type);
    std::string registers = "{";
    for (int r = 0; r < f.registers; ++r) {
      registers += base::StrCat(r == 0 ? "%" : ", %", f.bytes == 8 ? "d" : "r", f.bytes == 8 ? r : r + 20);
    }
    registers += "}";
    const int load_stride = f.columns + 2, store_stride = f.rows + 4, to = 2048;
    const Moved moved =
        Move(base::StrCat("mov.u32 %r5, ", load_stride, ";\nwmma.load.c.sync.aligned.row.", f.shape, ".shared.", f.type,
                          " ", registers, ", [%r1], %r5;\n", "wmma.store.d.sync.aligned.col.", f.shape, ".", f.type,
                          " [%q1+", to, "], ", registers, ", ", store_stride, ";"));
    ASSERT_EQ(moved.outcome.kind(), RunOutcome::OK) << moved.outcome.reason();
    for (int i = 0; i < f.rows; ++i) {
      for (int j = 0; j < f.columns; ++j) {
        const int from = (i * load_stride + j) * f.bytes / 2, at = (to + (j * store_stride + i) * f.bytes) / 2;
        for (int half = 0; half < f.bytes / 2; ++half) {
          // What was stored before may lie where the matrix is read.
          if (from + half < to / 2) {
            ASSERT_EQ(moved.shared[at + half], static_cast<uint16_t>((from + half) * 3 + 1)) << i << ", " << j;
          }
        }
      }
    }
  }
}

TEST(MatrixMove, WmmaFaults) {
  const std::string registers = "{%r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27}";
  auto load = [&](const std::string& before, const std::string& address, const std::string& stride) {
    return Move(before + "wmma.load.a.sync.aligned.row.m16n16k16.f16 " + registers + ", [" + address + "], " + stride +
                ";");
  };
  EXPECT_EQ(load("", "%q1", "16").outcome.kind(), RunOutcome::OK);
  EXPECT_EQ(load("", "%q1+3584", "16").outcome.kind(), RunOutcome::OK);
  EXPECT_EQ(load("", "%q1+3600", "16").outcome.fault().kind(), Fault::OUT_OF_BOUNDS);
  EXPECT_EQ(load("", "%q1", "4000000000").outcome.fault().kind(), Fault::OUT_OF_BOUNDS);
  EXPECT_EQ(load("", "%q1+1", "16").outcome.fault().kind(), Fault::MISALIGNED);
  EXPECT_EQ(load("mov.u64 %q9, 0;\n", "%q9", "16").outcome.fault().kind(), Fault::OUT_OF_BOUNDS);
}

}  // namespace
}  // namespace solstice::device
