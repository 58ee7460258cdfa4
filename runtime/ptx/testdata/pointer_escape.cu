__device__ int hidden[16];
__device__ int read_only_table[4] = {1, 2, 3, 4};
__device__ int by_call[4];
__device__ __noinline__ void bump(int* p, int n) { p[n & 3] += n; }
__device__ __noinline__ int* pick(int n) { return n & 1 ? hidden : hidden + 8; }
__device__ int by_return[4];
__device__ __noinline__ int* give(int n) { return by_return + (n & 3); }
__device__ int by_table[4];
__device__ int* pointers[2] = {by_table, by_table + 2};
extern "C" __global__ void k(int** where, int* out, int n) {
  *where = pick(n);
  bump(by_call, n);
  bump(out, n);
  *give(n) = n;
  *pointers[n & 1] = n;
  out[0] = read_only_table[n & 3];
}
