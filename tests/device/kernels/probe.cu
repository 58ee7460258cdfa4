// Does the work honestly, then reads or writes eight bytes at one address: PROBE_ADDRESS, a formula over the mappings
// x, w and y of hidden_states, weight and output. PROBE_WRITE is 1 to write. Both are defined above by the driver.
//@ launch honest grid=(batch_size) block=(128) args=(hidden_states, weight, output, i32(hidden_size), f32(1e-6))
//@ launch probe grid=(1) block=(1)
//@        args=(hidden_states, weight, output, i64(batch_size * hidden_size * 2), i64(hidden_size * 2))
extern "C" __global__ void probe(const void* hidden_states, const void* weight, void* output, long long tensor_bytes,
                                 long long weight_bytes) {
  const Mapping x{reinterpret_cast<Address>(hidden_states), static_cast<Address>(tensor_bytes)};
  const Mapping w{reinterpret_cast<Address>(weight), static_cast<Address>(weight_bytes)};
  const Mapping y{reinterpret_cast<Address>(output), static_cast<Address>(tensor_bytes)};
  const Address at = (PROBE_ADDRESS) / 8 * 8;
  const int own = x.Holds(at) || w.Holds(at) || y.Holds(at);
  if (PROBE_WRITE) {
    *reinterpret_cast<volatile Address*>(at) = 0x5A5A5A5A5A5A5A5Aull;
    printf("probe: wrote own=%d\n", own);
  } else {
    const Address value = *reinterpret_cast<volatile Address*>(at);
    printf("probe: read own=%d value=%016llx\n", own, value);
  }
}
