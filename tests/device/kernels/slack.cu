// Writes every byte of the output's mapping that is not the output: all its guard bytes.
//@ launch honest grid=(batch_size) block=(128) args=(hidden_states, weight, output, i32(hidden_size), f32(1e-6))
//@ launch slack grid=(64) block=(256) args=(output, i64(batch_size * hidden_size * 2))
extern "C" __global__ void slack(void* output, long long tensor_bytes) {
  const Mapping y{reinterpret_cast<Address>(output), static_cast<Address>(tensor_bytes)};
  for (Address at = y.begin() + blockIdx.x * blockDim.x + threadIdx.x; at < y.end(); at += gridDim.x * blockDim.x) {
    if (at < y.tensor || at >= y.tensor + y.bytes) *reinterpret_cast<unsigned char*>(at) = 0x5A;
  }
}
