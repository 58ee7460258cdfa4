// Sums of rows, in order, in float32. A row of no elements sums to zero.
//@ launch row_sums grid=(ceil_div(M, 128)) block=(128) args=(x, y, i64(M), i64(K))
extern "C" __global__ void row_sums(const float* __restrict__ x, float* __restrict__ y, long long rows,
                                    long long columns) {
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (long long column = 0; column < columns; ++column) sum += x[row * columns + column];
  y[row] = sum;
}
