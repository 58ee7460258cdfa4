// C = A * B^T in float16 on the tensor cores, for every definition gemm_n*_k* whose N is a multiple of 128 and K of 64.
// Sums in float32.
//
// A block makes one tile of C. It walks along K in stages of 64, which cp.async brings to shared memory while the
// tensor cores (mma.sync m16n8k16) work on earlier ones. The plan chooses the tile: 128 x 256 where there are enough of
// them to fill the device, smaller ones for few rows. Where even those are too few, several blocks share a tile's K and
// leave partial sums, which a second kernel adds in a fixed order.
//
//   solstice run -d gemm_n4096_k4096 examples/gemm_mma.cu
//
//@ let square_tiles = ceil_div(M, 128) * (N // 128)
//@ let wide_tiles = ceil_div(M, 128) * (N // 256)
//@ let wide = M > 64 and N % 256 == 0
//@            and 10 * ceil_div(wide_tiles, sm_count) <= 6 * ceil_div(square_tiles, sm_count)
//@ let block_m = 16 if M <= 16 else 32 if M <= 32 else 64 if M <= 64 else 128
//@ let block_n = 64 if M <= 16 else 256 if wide else 128
//@ let warp_m = 16 if M <= 16 else 32 if M <= 64 else 64
//@ let warp_n = 16 if M <= 16 else 32 if M <= 32 else 64 if M <= 64 or wide else 32
//@ let stages = 8 if M <= 16 else 5 if M <= 32 else 4 if M <= 64 or wide else 5
//@ let tiles = ceil_div(M, block_m) * (N // block_n)
//@ let resident = (2 if M <= 64 else 1) * sm_count
//@ let depth = round_up(ceil_div(K, max(1, min(resident // max(tiles, 1), K // 256, 16))), 64)
//@ let splits = ceil_div(K, depth)
//@ scratch partial = splits * M * N * 4 if splits > 1 else 256
//@ launch gemm_mma<N, K, block_m, block_n, warp_m, warp_n, stages>
//@        grid=(tiles, splits) block=(32 * (block_m // warp_m) * (block_n // warp_n))
//@        shared=(stages * (block_m + block_n) * 128) args=(A, B, C, partial, i32(M), i32(depth))
//@ launch add_partials grid=(ceil_div(M * N, 512)) block=(128) when=(splits > 1)
//@        args=(partial, C, i32(M * N // 4), i32(splits))
#include <cuda_fp16.h>

#include <cstdint>

// A row of a tile in shared memory: 64 halves, eight chunks of 16 bytes. Chunk c of row r lies at place c ^ (r % 8), so
// that the eight rows of an 8 x 8 matrix, which ldmatrix reads at once, fall into different banks.
constexpr int kDepth = 64, kRowBytes = 128, kChunks = 8;
// A stage is four steps of an mma's 16.
constexpr int kSteps = kDepth / 16;
// Tiles of C are visited in groups of this many tile rows: blocks that run together then share rows of A and B in L2.
constexpr int kGroup = 16;

extern __shared__ __align__(128) unsigned char shared_bytes[];

// Copies 16 bytes to shared memory in the background, or fills them with zeros.
__device__ __forceinline__ void CopyAsync(uint32_t to, const void* from, bool valid) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0)
               : "memory");
}

__device__ __forceinline__ void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most kPending of this thread's committed groups are under way.
template <int kPending>
__device__ __forceinline__ void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// Four 8 x 8 matrices: lane l names row l % 8 of matrix l / 8, and gets of each two elements of row l / 4.
__device__ __forceinline__ void LoadMatrices(uint32_t row, uint32_t& r0, uint32_t& r1, uint32_t& r2, uint32_t& r3) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
               : "r"(row)
               : "memory");
}

// sum += a (16 x 16) * b (16 x 8).
__device__ __forceinline__ void MultiplyAdd(float (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// One thread's share of bringing kRows rows of a factor to shared memory: the same chunk of every kStride-th row.
template <int kRows, int kThreads, int kK>
struct Loader {
  static constexpr int kStride = kThreads / kChunks, kCopies = kRows / kStride;
  static_assert(kRows % kStride == 0 && kStride % 8 == 0, "every thread copies alike, at one place of the swizzle");

  const __half* from;
  uint32_t to;
  int rows;  // that exist, from this thread's first

  __device__ Loader(const __half* factor, int first_row, int row_count, int first_depth, uint32_t tile) {
    const int row = threadIdx.x / kChunks, chunk = threadIdx.x % kChunks;
    from = factor + static_cast<long long>(first_row + row) * kK + first_depth + chunk * 8;
    to = tile + row * kRowBytes + (chunk ^ (row % 8)) * 16;
    rows = row_count - first_row - row;
  }

  __device__ void Copy(uint32_t stage, int copy) const {
    CopyAsync(stage + to + copy * kStride * kRowBytes, from + copy * kStride * kK, copy * kStride < rows);
  }
};

// What a warp multiplies in one step.
template <int kWarpM, int kWarpN>
struct Fragments {
  uint32_t a[kWarpM / 16][4];
  uint32_t b[kWarpN / 8][2];

  // The addresses are this lane's in the step's matrices at the top of the warp's rows.
  __device__ void Load(uint32_t a_at, uint32_t b_at) {
#pragma unroll
    for (int i = 0; i < kWarpM / 16; ++i) {
      LoadMatrices(a_at + i * 16 * kRowBytes, a[i][0], a[i][1], a[i][2], a[i][3]);
    }
#pragma unroll
    for (int j = 0; j < kWarpN / 8; j += 2) {
      LoadMatrices(b_at + j * 8 * kRowBytes, b[j][0], b[j][1], b[j + 1][0], b[j + 1][1]);
    }
  }

  __device__ void Multiply(float (&sum)[kWarpM / 16][kWarpN / 8][4]) const {
#pragma unroll
    for (int i = 0; i < kWarpM / 16; ++i) {
#pragma unroll
      for (int j = 0; j < kWarpN / 8; ++j) MultiplyAdd(sum[i][j], a[i], b[j]);
    }
  }
};

// Writes the warp's sums as they are: two neighbours a lane, 32 bytes of eight rows at a time.
template <int kN, int kWarpM, int kWarpN>
__device__ void StorePartial(const float (&sum)[kWarpM / 16][kWarpN / 8][4], float* to, int rows) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < kWarpM / 8; ++i) {
    const int row = i * 8 + lane / 4;
    if (row >= rows) continue;
#pragma unroll
    for (int j = 0; j < kWarpN / 8; ++j) {
      *reinterpret_cast<float2*>(to + static_cast<long long>(row) * kN + j * 8 + lane % 4 * 2) =
          make_float2(sum[i / 2][j][i % 2 * 2], sum[i / 2][j][i % 2 * 2 + 1]);
    }
  }
}

// Rounds the warp's sums and puts them in the block's tile in shared memory; rows lie kPitch halves apart.
template <int kPitch, int kWarpM, int kWarpN>
__device__ void StageTile(const float (&sum)[kWarpM / 16][kWarpN / 8][4], __half* to) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < kWarpM / 8; ++i) {
#pragma unroll
    for (int j = 0; j < kWarpN / 8; ++j) {
      *reinterpret_cast<__half2*>(to + (i * 8 + lane / 4) * kPitch + j * 8 + lane % 4 * 2) =
          __floats2half2_rn(sum[i / 2][j][i % 2 * 2], sum[i / 2][j][i % 2 * 2 + 1]);
    }
  }
}

// Writes the staged tile in whole rows, 16 bytes a thread.
template <int kN, int kBlockM, int kBlockN, int kPitch, int kThreads>
__device__ void StoreTile(const __half* staged, __half* to, int rows) {
  constexpr int kVectors = kBlockN / 8;
#pragma unroll 4
  for (int i = threadIdx.x; i < kBlockM * kVectors; i += kThreads) {
    const int row = i / kVectors, column = i % kVectors * 8;
    if (row >= rows) break;
    *reinterpret_cast<uint4*>(to + static_cast<long long>(row) * kN + column) =
        *reinterpret_cast<const uint4*>(staged + row * kPitch + column);
  }
}

template <int kN, int kK, int kBlockM, int kBlockN, int kWarpM, int kWarpN, int kStages>
__global__ void __launch_bounds__(32 * (kBlockM / kWarpM) * (kBlockN / kWarpN))
    gemm_mma(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ c,
             float* __restrict__ partial, int m, int depth) {
  static_assert(kN % kBlockN == 0 && kK % kDepth == 0 && kStages >= 3, "whole tiles along N and K");
  constexpr int kWarpsN = kBlockN / kWarpN, kThreads = 32 * (kBlockM / kWarpM) * kWarpsN;
  constexpr uint32_t kStageBytes = (kBlockM + kBlockN) * kRowBytes;

  constexpr int kTilesN = kN / kBlockN;
  const int group = blockIdx.x / (kGroup * kTilesN), in_group = blockIdx.x % (kGroup * kTilesN);
  const int group_height = min(kGroup, (m + kBlockM - 1) / kBlockM - group * kGroup);
  const int first_row = (group * kGroup + in_group % group_height) * kBlockM;
  const int first_column = in_group / group_height * kBlockN;
  const int first_depth = blockIdx.y * depth, tiles = min(depth, kK - first_depth) / kDepth;

  const uint32_t stages_begin = static_cast<uint32_t>(__cvta_generic_to_shared(shared_bytes));
  const uint32_t stages_end = stages_begin + kStages * kStageBytes;
  Loader<kBlockM, kThreads, kK> a_loader(a, first_row, m, first_depth, 0);
  Loader<kBlockN, kThreads, kK> b_loader(b, first_column, kN, first_depth, kBlockM * kRowBytes);
  // Copies number first, first + stride ... of both factors. A stage's copies are spread over a tile's first steps.
  const auto copy = [&](uint32_t stage, int first, int stride) {
#pragma unroll
    for (int i = first; i < a_loader.kCopies; i += stride) a_loader.Copy(stage, i);
#pragma unroll
    for (int i = first; i < b_loader.kCopies; i += stride) b_loader.Copy(stage, i);
  };

  for (int stage = 0; stage < kStages - 1; ++stage) {
    if (stage < tiles) {
      copy(stages_begin + stage * kStageBytes, 0, 1);
      a_loader.from += kDepth;
      b_loader.from += kDepth;
    }
    CommitCopies();
  }

  // This lane's rows and chunk of the first step's matrices; those of step s are this, exclusive or 32 s.
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int warp_row = warp / kWarpsN * kWarpM, warp_column = warp % kWarpsN * kWarpN;
  const uint32_t a_lane = (warp_row + lane % 16) * kRowBytes + ((lane / 16) ^ (lane % 8)) * 16;
  const uint32_t b_lane =
      (kBlockM + warp_column + lane / 16 * 8 + lane % 8) * kRowBytes + ((lane / 8 % 2) ^ (lane % 8)) * 16;

  float sum[kWarpM / 16][kWarpN / 8][4] = {};
  Fragments<kWarpM, kWarpN> fragments[2];
  uint32_t read = stages_begin, write = stages_end - kStageBytes;
  WaitForCopies<kStages - 2>();
  __syncthreads();
  fragments[0].Load(read + a_lane, read + b_lane);

  for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (step == kSteps - 1) {
        // The next tile is there, and nobody reads this one any more. After the last its start is read again, unused.
        WaitForCopies<kStages - 2>();
        __syncthreads();
        write = read;
        if (tile + 1 < tiles) read = read + kStageBytes == stages_end ? stages_begin : read + kStageBytes;
      }
      const uint32_t next_step = (step + 1) % kSteps * 32;
      fragments[(step + 1) % 2].Load((read + a_lane) ^ next_step, (read + b_lane) ^ next_step);
      if (step < kSteps - 1) {
        if (tile + kStages - 1 < tiles) copy(write, step, kSteps - 1);
        if (step == kSteps - 2) CommitCopies();
      } else {
        a_loader.from += kDepth;
        b_loader.from += kDepth;
      }
      fragments[step % 2].Multiply(sum);
    }
  }

  if (gridDim.y > 1) {
    float* to =
        partial + (static_cast<long long>(blockIdx.y) * m + first_row + warp_row) * kN + first_column + warp_column;
    StorePartial<kN, kWarpM, kWarpN>(sum, to, m - first_row - warp_row);
    return;
  }
  constexpr int kPitch = kBlockN + 8;
  static_assert(kBlockM * kPitch * 2 <= kStages * kStageBytes, "the tile must fit where the stages were");
  __half* staged = reinterpret_cast<__half*>(shared_bytes);
  WaitForCopies<0>();
  __syncthreads();
  StageTile<kPitch, kWarpM, kWarpN>(sum, staged + warp_row * kPitch + warp_column);
  __syncthreads();
  StoreTile<kN, kBlockM, kBlockN, kPitch, kThreads>(staged, c + static_cast<long long>(first_row) * kN + first_column,
                                                    m - first_row);
}

// C is the sum of the splits' partial products; four elements a thread.
extern "C" __global__ void __launch_bounds__(128)
    add_partials(const float4* __restrict__ partial, uint2* __restrict__ c, int count, int splits) {
  const int at = blockIdx.x * 128 + threadIdx.x;
  if (at >= count) return;
  float4 sum = partial[at];
#pragma unroll 8
  for (int split = 1; split < splits; ++split) {
    const float4 next = partial[static_cast<long long>(split) * count + at];
    sum.x += next.x, sum.y += next.y, sum.z += next.z, sum.w += next.w;
  }
  __half2 halves[2] = {__floats2half2_rn(sum.x, sum.y), __floats2half2_rn(sum.z, sum.w)};
  c[at] = *reinterpret_cast<const uint2*>(halves);
}
