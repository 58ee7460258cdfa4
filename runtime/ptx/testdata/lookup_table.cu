__constant__ float scale[4] = {1.0f, 0.5f, 0.25f, 0.125f};
__device__ const float nf4[16] = {-1.0f, -0.69f, -0.52f, -0.39f, -0.28f, -0.18f, -0.09f, 0.0f,
                                  0.07f, 0.16f,  0.24f,  0.33f,  0.44f,  0.56f,  0.72f,  1.0f};
__device__ const char* const names[2] = {"zero", "one"};
struct Row {
  const float* p;
  int n;
};
__device__ const Row rows[2] = {{nf4, 16}, {nf4 + 8, 8}};
extern "C" __global__ void k(const unsigned char* q, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  static const int primes[5] = {2, 3, 5, 7, 11};
  if (i < n)
    y[i] = nf4[q[i] & 15] * scale[q[i] >> 6] + names[i & 1][q[i] & 3] + rows[i & 1].p[q[i] & 7] + primes[n % 5];
}
