#include <assert.h>
// Recursion, a switch, function pointers, a local array with dynamic index, printf, assert, clock.
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ int square(int x) { return x * x; }
__device__ __noinline__ int negate(int x) { return -x; }
typedef int (*Fn)(int);
__device__ Fn table[] = {twice, square, negate, fib};
extern "C" __global__ void language(int* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int local[16];
  for (int k = 0; k < 16; ++k) local[k] = i * k;
  int r = local[(i * 7 + n) & 15];
  switch ((i + n) % 9) {
    case 0:
      r += 3;
      break;
    case 1:
      r *= 5;
      break;
    case 2:
      r ^= 0x55;
      break;
    case 3:
      r = __popc(r);
      break;
    case 4:
      r = __brev(r) >> 5;
      break;
    case 5:
      r -= n;
      break;
    case 6:
      r = r << 2 | 1;
      break;
    case 7:
      r = ~r;
      break;
    default:
      r = __clz(r);
  }
  r += table[i & 3](i & 15);
  assert(r != 123456789);
  long long before = clock64();
  __nanosleep(20);
  if (clock64() < before) r = 0;
  if (i == 0) printf("first %d %s %5.2f\n", r, "done", 1.5);
  y[i] = r;
}
