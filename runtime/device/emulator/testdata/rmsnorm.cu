#include <cuda_bf16.h>
// residual += x; out = residual * rsqrt(mean(residual^2) + eps) * weight; one block a row of 2048.
extern "C" __global__ void __launch_bounds__(256)
fused_add_rmsnorm(const __nv_bfloat16* __restrict__ x, __nv_bfloat16* __restrict__ residual,
                  const __nv_bfloat16* __restrict__ weight, __nv_bfloat16* __restrict__ out, float eps) {
  __shared__ float partial[8];
  const size_t row = blockIdx.x;
  const int t = threadIdx.x;
  uint4 a = reinterpret_cast<const uint4*>(x + row * 2048)[t];
  uint4 b = reinterpret_cast<const uint4*>(residual + row * 2048)[t];
  uint4 w = reinterpret_cast<const uint4*>(weight)[t];
  const __nv_bfloat162* pa = reinterpret_cast<const __nv_bfloat162*>(&a);
  __nv_bfloat162* pb = reinterpret_cast<__nv_bfloat162*>(&b);
  const __nv_bfloat162* pw = reinterpret_cast<const __nv_bfloat162*>(&w);
  float v[8], sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float2 p = __bfloat1622float2(pa[i]), q = __bfloat1622float2(pb[i]);
    pb[i] = __floats2bfloat162_rn(p.x + q.x, p.y + q.y);
    float2 r = __bfloat1622float2(pb[i]);
    v[2 * i] = r.x;
    v[2 * i + 1] = r.y;
    sum += r.x * r.x + r.y * r.y;
  }
  reinterpret_cast<uint4*>(residual + row * 2048)[t] = b;
#pragma unroll
  for (int m = 16; m > 0; m >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, m);
  if ((t & 31) == 0) partial[t >> 5] = sum;
  __syncthreads();
  float total = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) total += partial[i];
  const float scale = rsqrtf(total / 2048.0f + eps);
  uint4 o;
  __nv_bfloat162* po = reinterpret_cast<__nv_bfloat162*>(&o);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float2 g = __bfloat1622float2(pw[i]);
    po[i] = __floats2bfloat162_rn(v[2 * i] * scale * g.x, v[2 * i + 1] * scale * g.y);
  }
  reinterpret_cast<uint4*>(out + row * 2048)[t] = o;
}
