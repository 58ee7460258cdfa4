// Operations that are not lane-wise arithmetic or plain loads and stores.
#pragma once

#include "runtime/device/emulator/program.h"
#include "runtime/device/emulator/warp.h"

namespace solstice::device {

// Op::kind of special registers.
enum class Special : uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneid,
  kWarpid,
  kNwarpid,
  kSmid,
  kNsmid,
  kGridid,
  kClock,
  kClockHi,
  kClock64,
  kGlobaltimer,
  kGlobaltimerLo,
  kGlobaltimerHi,
  kLanemaskEq,
  kLanemaskLt,
  kLanemaskLe,
  kLanemaskGt,
  kLanemaskGe,
  kDynamicSharedSize,
  kTotalSharedSize,
  kZero,
  kOne,
};
// Op::kind of predicate logic.
enum class PredicateOp : uint8_t { kMov, kNot, kAnd, kOr, kXor };
// Op::kind of atom and red.
enum class AtomicOp : uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor, kInc, kDec, kExch, kCas };
// Op::kind of shfl, vote, match, redux.
enum class ShuffleOp : uint8_t { kUp, kDown, kBfly, kIdx };
enum class VoteOp : uint8_t { kAll, kAny, kUni, kBallot };
enum class ReduxOp : uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor };
enum class BarrierOp : uint8_t { kSync, kArrive, kPopc, kAnd, kOr };

// Register moves.
void ExecSpecial(Warp& w, const Op& op);                     // d; bytes 4 or 8
void ExecPredicate(Warp& w, const Op& op);                   // d, a, b: predicates
void ExecLocalAddress(Warp& w, const Op& op);                // d; imm: offset in the frame; bytes
void ExecIsSpace(Warp& w, const Op& op);                     // d: predicate, a: 64-bit address; space
void ExecConvertPack(Warp& w, const Op& op);                 // d, a, b, c: see decode_arithmetic.cc
void ExecSelectPredicate(Warp& w, const Op& op);             // selp on predicates: d, a, b, c
ExecFn FindJoin(int total_bytes, int element_bytes);         // d; list target
ExecFn FindSplit(int total_bytes, int element_bytes);        // a; list target
ExecFn FindResize(int from_bytes, int to_bytes, bool sign);  // d, a

// Control flow.
void ExecBranch(Warp& w, const Op& op);        // target
void ExecBranchIf(Warp& w, const Op& op);      // target; a: predicate; flags 1: negated
void ExecBranchIndex(Warp& w, const Op& op);   // a: u32 index; target: list of operations
void ExecCall(Warp& w, const Op& op);          // target: call site; imm: function index
void ExecCallIndirect(Warp& w, const Op& op);  // a: u64
void ExecReturn(Warp& w, const Op& op);
void ExecExit(Warp& w, const Op& op);
void ExecTrap(Warp& w, const Op& op);
void ExecNanosleep(Warp& w, const Op& op);  // a: u32
void ExecNothing(Warp& w, const Op& op);
void ExecFence(Warp& w, const Op& op);
void ExecAssertFail(Warp& w, const Op& op);  // list target: local offsets of the arguments
void ExecPrintf(Warp& w, const Op& op);      // list target: local offsets of format, arguments, result

// Atomics: d (kNoOperand: red), a address, imm, b and c operands; type in flags.
ExecFn FindAtomic(AtomicOp op, Type type, bool noftz);

// Warp and block synchronisation.
void ExecShuffle(Warp& w, const Op& op);     // d, e: predicate; a value, b lane, c clamp; target: mask operand
void ExecVote(Warp& w, const Op& op);        // d; a predicate; target: mask operand
void ExecActiveMask(Warp& w, const Op& op);  // d
void ExecMatch(Warp& w, const Op& op);       // d, e: predicate; a value; bytes; flags 1: all; target: mask operand
void ExecRedux(Warp& w, const Op& op);       // d; a value; bytes: Type; target: mask operand
void ExecElect(Warp& w, const Op& op);       // d, e: predicate; target: mask operand
void ExecWarpSync(Warp& w, const Op& op);    // target: mask operand
void ExecBarrier(Warp& w, const Op& op);     // a: id, b: count or kNoOperand; c: predicate; d: result

// Matrices; all lanes of the warp meet. List `target`: what each says, then operands. Addresses: a, imm.
void ExecMatrixMultiply(Warp& w, const Op& op);   // list: index of a plan; registers of d, a, b, c
void ExecMatrixTranspose(Warp& w, const Op& op);  // d, a
void ExecMatrixRead(Warp& w, const Op& op);       // ldmatrix: list: registers; flags 1: transposed
void ExecMatrixWrite(Warp& w, const Op& op);      // stmatrix
void ExecFragmentLoad(Warp& w, const Op& op);     // wmma.load: b: stride; list: index of a fragment, registers;
                                                  // bytes: of an element; flags 1: rows lie in memory
void ExecFragmentStore(Warp& w, const Op& op);    // wmma.store

// Host bytes of one lane's address range in any space, for printf and assert; nullptr if not readable.
const uint8_t* PeekGeneric(const Warp& w, int lane, uint64_t address, uint64_t bytes);
// A NUL-terminated string of at most `limit` bytes.
std::string PeekString(const Warp& w, int lane, uint64_t address, size_t limit);

}  // namespace solstice::device
