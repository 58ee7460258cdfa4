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
  kReservedSharedSize,
  kAllSharedSize,
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
inline constexpr uint8_t kReduxSigned = 1, kReduxFloat = 2, kReduxAbs = 4, kReduxNan = 8;  // Op::flags of redux
enum class BarrierOp : uint8_t { kSync, kArrive, kPopc, kAnd, kOr };

// Register moves.
void ExecSpecial(Warp& w, const Op& op);                     // d; bytes 4 or 8
void ExecPredicate(Warp& w, const Op& op);                   // d, a, b: predicates
void ExecLocalAddress(Warp& w, const Op& op);                // d; imm: offset in the frame; bytes
void ExecIsSpace(Warp& w, const Op& op);                     // d: predicate, a: 64-bit address; space
void ExecConvertPack(Warp& w, const Op& op);                 // d, a, b, c; bytes: bits of a part; flags 1: signed
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
void ExecAlloca(Warp& w, const Op& op);        // d; a: u64 bytes; imm: alignment; bytes of d
void ExecStackSave(Warp& w, const Op& op);     // d; bytes of d
void ExecStackRestore(Warp& w, const Op& op);  // a: u64
void ExecBulkZero(Warp& w, const Op& op);      // a: address; b: u64 bytes; space
void ExecFence(Warp& w, const Op& op);
void ExecAssertFail(Warp& w, const Op& op);  // list target: local offsets of the arguments
void ExecPrintf(Warp& w, const Op& op);      // list target: local offsets of format, arguments, result

// Atomics: d (kNoOperand: red), a address, imm, b and c operands; type in flags.
ExecFn FindAtomic(AtomicOp op, Type type, bool noftz);
void ExecAtomic128(Warp& w, const Op& op);  // kind: exch or cas; d, b, c: 128-bit

// Warp and block synchronisation.
void ExecShuffle(Warp& w, const Op& op);     // d, e: predicate; a value, b lane, c clamp; target: mask operand
void ExecVote(Warp& w, const Op& op);        // d; a predicate; target: mask operand
void ExecActiveMask(Warp& w, const Op& op);  // d
void ExecMatch(Warp& w, const Op& op);       // d, e: predicate; a value; bytes; flags 1: all; target: mask operand
void ExecRedux(Warp& w, const Op& op);       // d; a value; flags: kRedux...; target: mask operand
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
// Asynchronous copies: a destination and b source address, 64-bit; c: bytes to read or kNoOperand; e: predicate that
// ignores the source or kNoOperand; bytes.
void ExecAsyncCopy(Warp& w, const Op& op);
void ExecAsyncCommit(Warp& w, const Op& op);
void ExecAsyncWait(Warp& w, const Op& op);            // imm: groups that may stay pending; flags 1: waits for all
void ExecAsyncArrive(Warp& w, const Op& op);          // a: address of an mbarrier; flags 1: noinc; space
void FinishAsync(Warp& w, uint32_t lanes);            // the copies and arrivals of lanes that end
void FinishArrivals(Block& block, uint8_t* barrier);  // what is due at an mbarrier, and what it waits for

// Op::kind of mbarrier: a address; b count, bytes, state or parity; d result or kNoOperand. kind: MbarrierOp.
enum class MbarrierOp : uint8_t { kInit, kInval, kExpect, kComplete, kArrive, kWait, kWaitParity, kPendingCount };
inline constexpr uint8_t kMbarrierDrop = 1, kMbarrierNoComplete = 2, kMbarrierExpect = 4;  // Op::flags of kArrive
void ExecMbarrier(Warp& w, const Op& op);
// One arrival of a thread. False after raising the fault.
bool ArriveAtMbarrier(Warp& w, const Op& op, int lane, uint8_t* barrier);
// Makes the phase wait for one arrival more. False after raising the fault.
bool AddPendingAtMbarrier(Warp& w, const Op& op, int lane, uint8_t* barrier);
// Host bytes of the mbarrier at `address` in shared memory; nullptr after the fault.
uint8_t* FindMbarrier(Warp& w, const Op& op, int lane, uint64_t address);

// Host bytes of one lane's address range in any space, for printf and assert; nullptr if not readable.
const uint8_t* PeekGeneric(const Warp& w, int lane, uint64_t address, uint64_t bytes);
// A NUL-terminated string of at most `limit` bytes.
std::string PeekString(const Warp& w, int lane, uint64_t address, size_t limit);

}  // namespace solstice::device
