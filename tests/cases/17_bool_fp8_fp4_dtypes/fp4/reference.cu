// Two four-bit floats a byte, the low nibble first, times the scale of their row.
//@ launch dequantise grid=(ceil_div(R * C_packed, 256)) block=(256) args=(packed, scale, out, i64(R), i64(C_packed))
#include <cuda_bf16.h>

// Sign, two bits of exponent, one of mantissa: 0 0.5 1 1.5 2 3 4 6.
__device__ float Decode(unsigned int nibble) {
  const unsigned int exponent = nibble >> 1 & 3, mantissa = nibble & 1;
  const float magnitude = exponent == 0 ? 0.5f * mantissa : (1.0f + 0.5f * mantissa) * (1u << (exponent - 1));
  return nibble & 8 ? -magnitude : magnitude;
}

extern "C" __global__ void dequantise(const unsigned char* __restrict__ packed, const float* __restrict__ scale,
                                      __nv_bfloat16* __restrict__ out, long long rows, long long packed_columns) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= rows * packed_columns) return;
  const float factor = scale[i / packed_columns];
  const unsigned int pair = packed[i];
  out[2 * i] = __float2bfloat16(Decode(pair & 15) * factor);
  out[2 * i + 1] = __float2bfloat16(Decode(pair >> 4) * factor);
}
