struct Pair {
  double a;
  int b;
};
__device__ __noinline__ Pair combine(Pair x, int k, const float* p) { return Pair{x.a * k + p[0], x.b + k}; }
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
typedef float (*op)(float);
__device__ float twice(float x) { return 2 * x; }
__device__ float square(float x) { return x * x; }
__device__ float half_of(float x) { return x / 2; }
extern "C" __global__ void k(const float* p, float* out, int n) {
  Pair v{1.0, n};
  v = combine(v, n, p);
  v = combine(v, n + 1, p);
  op table[3] = {twice, square, half_of};
  out[threadIdx.x] = table[(threadIdx.x + n) % 3](p[threadIdx.x]) + (float)v.a + v.b + fib(n);
}
