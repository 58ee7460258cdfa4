// The tables for plain x86-64 and for AVX2 hold the same operations and give the same bits.
#include <random>
#include <set>

#include "gtest/gtest.h"
#include "runtime/device/emulator/alu.h"
#include "runtime/device/emulator/emulator_test_support.h"
#include "runtime/device/emulator/launch.h"

namespace solstice::device {
namespace {

constexpr uint32_t kSlotBytes = 256;  // of one register: 32 lanes of at most 64 bits
constexpr uint32_t kSlots = 12;       // d d' a b c e and room for lists

bool HaveAvx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
}

struct alignas(64) Registers {
  uint8_t bytes[kSlotBytes * kSlots];
};

uint64_t RandomWord(std::mt19937_64& random, int style) {
  static constexpr uint64_t kSpecial[] = {0,
                                          1,
                                          0x80000000,
                                          0x7fffffff,
                                          0xffffffff,
                                          0x7f800000,
                                          0xff800000,
                                          0x7fc00001,
                                          0x00000001'00000001,
                                          0x80000000'00000000,
                                          0x7fffffff'ffffffff,
                                          ~uint64_t{0},
                                          0x7ff00000'00000000,
                                          0x7ff80000'00000001,
                                          0x7c00fc00'7e000001,
                                          31,
                                          32,
                                          33,
                                          64,
                                          0x3f800000'3f800000,
                                          0x7f7fffff'7f7fffff,
                                          0x00000001'007fffff,
                                          0x7ff00000'00000001};
  switch (style) {
    case 0:
      return random();
    case 1:
      return random() % 80;
    case 2: {
      // Moderate floats of both widths.
      const float x = static_cast<float>(static_cast<int64_t>(random() % 20001) - 10000) * 0.37f;
      return random() % 2 ? D(x) : F(x) | F(-x * 3) << 32;
    }
    default:
      return kSpecial[random() % std::size(kSpecial)];
  }
}

// One warp of a block without a launch: enough for operations that touch registers only.
struct Bench {
  Bench() {
    program.code.resize(1);
    program.sources.resize(1);
    block.program = &program;
    warp.block = &block;
    warp.frame = &frame;
    warp.bases[1] = constants.bytes;
    frame.registers = registers.bytes;
    warp.bases[0] = registers.bytes;
  }
  Program program;
  Block block;
  Warp warp;
  Frame frame;
  Registers registers{}, constants{};
};

class Tables : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HaveAvx2()) GTEST_SKIP() << "this machine has no AVX2";
  }

  // Runs both forms on the same random registers.
  void Compare(const AluKey& key, Op op) {
    const ExecFn plain = BaselineIsa().alu(key), wide = Avx2Isa().alu(key);
    ASSERT_EQ(plain == nullptr, wide == nullptr) << Name(key);
    if (plain == nullptr) return;
    ++compared_;
    op.d = 0;
    op.a = 2 * kSlotBytes;
    op.b = 3 * kSlotBytes;
    if (op.c != kNoOperand) op.c = 4 * kSlotBytes;
    if (op.e != kNoOperand) op.e = op.e == 1 ? kSlotBytes : 5 * kSlotBytes;
    for (int round = 0; round < 6; ++round) {
      Registers start;
      for (size_t i = 0; i < sizeof start.bytes; i += 8) {
        const uint64_t word = RandomWord(random_, round == 5 ? static_cast<int>(random_() % 4) : round % 4);
        std::memcpy(start.bytes + i, &word, 8);
      }
      const uint32_t mask = round % 2 == 0 ? kAllLanes : static_cast<uint32_t>(random_()) | 1;
      const Registers a = Run(plain, op, start, mask), b = Run(wide, op, start, mask);
      if (std::memcmp(&a, &b, sizeof a) == 0) continue;
      size_t at = 0;
      while (a.bytes[at] == b.bytes[at]) ++at;
      at &= ~size_t{7};
      auto word = [&](const Registers& r, size_t offset) {
        uint64_t value;
        std::memcpy(&value, r.bytes + offset, 8);
        return base::StrCat(value >> 32, ":", value & 0xffffffff);
      };
      FAIL() << Name(key) << " at byte " << at << ": " << word(a, at) << " plain, " << word(b, at) << " AVX2; from "
             << word(start, 2 * kSlotBytes + at % kSlotBytes) << " " << word(start, 3 * kSlotBytes + at % kSlotBytes)
             << " " << word(start, 4 * kSlotBytes + at % kSlotBytes);
    }
  }

  int compared_ = 0;

 private:
  Registers Run(ExecFn fn, const Op& op, const Registers& start, uint32_t mask) {
    bench_.registers = start;
    SetMask(bench_.warp, mask);
    fn(bench_.warp, op);
    return bench_.registers;
  }
  static std::string Name(const AluKey& k) {
    return base::StrCat("operation ", static_cast<int>(k.op), " type ", static_cast<int>(k.type), " source ",
                        static_cast<int>(k.source), " rounding ", static_cast<int>(k.rounding), " compare ",
                        static_cast<int>(k.compare), " flags ", k.ftz, k.sat, k.approx, k.relu, k.nan, k.satfinite);
  }

  Bench bench_;
  std::mt19937_64 random_{7};
};

constexpr Type kTypes[] = {Type::kB8,     Type::kB16,    Type::kB32,     Type::kB64,    Type::kU8,     Type::kU16,
                           Type::kU32,    Type::kU64,    Type::kS8,      Type::kS16,    Type::kS32,    Type::kS64,
                           Type::kF16,    Type::kBf16,   Type::kF16x2,   Type::kBf16x2, Type::kTf32,   Type::kF32,
                           Type::kF64,    Type::kU16x2,  Type::kS16x2,   Type::kE4m3x2, Type::kE5m2x2, Type::kE2m1x2,
                           Type::kE2m3x2, Type::kE3m2x2, Type::kUe8m0x2, Type::kF32x2};

TEST_F(Tables, Arithmetic) {
  for (int o = 0; o <= static_cast<int>(Alu::kMov); ++o) {
    const Alu operation = static_cast<Alu>(o);
    if (operation == Alu::kSetp || operation == Alu::kSet) continue;
    for (const Type type : kTypes) {
      for (int rounding = 0; rounding <= static_cast<int>(Rounding::kUp); ++rounding) {
        for (int flags = 0; flags < 64; ++flags) {
          AluKey key;
          key.op = operation;
          key.type = type;
          key.rounding = static_cast<Rounding>(rounding);
          key.ftz = flags & 1;
          key.sat = flags & 2;
          key.relu = flags & 4;
          key.nan = key.wrap = key.approx = key.abs = flags & 8;
          key.shift_amount = key.second = key.xorsign = flags & 16;
          key.source = flags & 32 ? Type::kF32 : Type::kS32;
          // Floats alone have rounding.
          if (rounding > 0 && !IsFloat(type)) continue;
          Op op;
          op.c = 0;
          op.e = 0;
          op.kind = static_cast<uint8_t>(rounding);
          if (operation == Alu::kLop3) op.imm = flags * 4 + 1;
          if (operation == Alu::kPrmt) op.kind = static_cast<uint8_t>(flags % 7);
          if (operation == Alu::kTestp) op.kind = static_cast<uint8_t>(flags % 6);
          if (operation >= Alu::kAddCarry && operation <= Alu::kMadCarryHi) {
            op.kind = static_cast<uint8_t>(operation);
            op.flags = static_cast<uint8_t>(flags & 7);
          }
          Compare(key, op);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(compared_, 2000);
}

TEST_F(Tables, Comparisons) {
  for (const Alu operation : {Alu::kSetp, Alu::kSet}) {
    for (const Type type : kTypes) {
      for (int compare = 0; compare <= static_cast<int>(Compare::kNan); ++compare) {
        for (int combine = 0; combine < 4; ++combine) {
          for (const Type to : {Type::kU32, Type::kF32, Type::kU16, Type::kF16, Type::kBf16, Type::kF16x2}) {
            AluKey key;
            key.op = operation;
            key.type = type;
            key.compare = static_cast<enum Compare>(compare);
            key.ftz = combine & 1;
            Op op;
            op.c = combine == 0 ? kNoOperand : 0;
            op.e = operation == Alu::kSetp ? 1 : kNoOperand;
            op.kind = static_cast<uint8_t>(combine);
            op.imm = static_cast<int64_t>(to);
            Compare(key, op);
            if (HasFatalFailure()) return;
            if (operation == Alu::kSetp) break;
          }
        }
      }
    }
  }
  EXPECT_GT(compared_, 1000);
}

TEST_F(Tables, Conversions) {
  for (const Type type : kTypes) {
    for (const Type source : kTypes) {
      for (int rounding = 0; rounding <= static_cast<int>(Rounding::kAway); ++rounding) {
        for (int flags = 0; flags < 16; ++flags) {
          AluKey key;
          key.op = Alu::kCvt;
          key.type = type;
          key.source = source;
          key.rounding = static_cast<Rounding>(rounding);
          key.ftz = flags & 1;
          key.sat = flags & 2;
          key.relu = flags & 4;
          key.satfinite = flags & 8;
          Op op;
          op.kind = static_cast<uint8_t>(rounding);
          op.flags = static_cast<uint8_t>(flags);
          op.imm = static_cast<int64_t>(type) << 8 | static_cast<int64_t>(source);
          Compare(key, op);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(compared_, 5000);
}

// Loads and stores of both tables, in shared memory.
TEST_F(Tables, Memory) {
  Bench bench;
  alignas(64) uint8_t storage[4096];
  bench.block.shared = Region{0, sizeof storage, storage, false, false, "shared memory"};
  bench.program.lists.push_back({0, kSlotBytes, kNoOperand, 2 * kSlotBytes});
  std::mt19937_64 random(9);
  int compared = 0;
  for (const Type type : kTypes) {
    for (const int register_bytes : {2, 4, 8}) {
      for (const bool store : {false, true}) {
        for (const int count : {1, 4}) {
          const MemoryKey key{type, register_bytes, store};
          const ExecFn plain = BaselineIsa().memory(key), wide = Avx2Isa().memory(key);
          ASSERT_EQ(plain == nullptr, wide == nullptr);
          if (plain == nullptr || TypeBytes(type) == 0) continue;
          Op op;
          op.space = AddressSpace::kShared;
          op.address32 = true;
          op.a = 8 * kSlotBytes;
          op.bytes = static_cast<uint8_t>(TypeBytes(type));
          op.count = static_cast<uint8_t>(count);
          (store ? op.c : op.d) = 0;
          op.target = 0;
          if (count == 4) bench.program.lists[0][2] = store ? 3 * kSlotBytes : kNoOperand;
          for (int round = 0; round < 4; ++round) {
            Registers start;
            for (uint8_t& byte : start.bytes) byte = static_cast<uint8_t>(random());
            for (uint32_t lane = 0; lane < 32; ++lane) {
              // Side by side or anywhere.
              const uint32_t bytes = op.bytes * static_cast<uint32_t>(count);
              const uint32_t slot = round < 2 ? lane : static_cast<uint32_t>(random() % 64);
              const uint32_t address = slot * bytes;
              std::memcpy(start.bytes + op.a + lane * 4, &address, 4);
            }
            uint8_t before[sizeof storage], after[sizeof storage];
            for (uint8_t& byte : before) byte = static_cast<uint8_t>(random());
            const uint32_t mask = round % 2 == 0 ? kAllLanes : static_cast<uint32_t>(random()) | 1;
            Registers results[2];
            for (int table = 0; table < 2; ++table) {
              std::memcpy(storage, before, sizeof storage);
              bench.registers = start;
              SetMask(bench.warp, mask);
              (table == 0 ? plain : wide)(bench.warp, op);
              results[table] = bench.registers;
              if (table == 0) std::memcpy(after, storage, sizeof storage);
            }
            ASSERT_FALSE(bench.block.failed) << bench.block.outcome.reason();
            EXPECT_EQ(std::memcmp(&results[0], &results[1], sizeof(Registers)), 0) << static_cast<int>(type);
            EXPECT_EQ(std::memcmp(after, storage, sizeof storage), 0) << static_cast<int>(type);
            ++compared;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 100);
}

}  // namespace
}  // namespace solstice::device
