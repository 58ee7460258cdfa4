// Philox4x32-10 counter-based generator (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11).
// The same bits on CPU and GPU, which compile this same text (runtime/bulk).
#pragma once

#include <cstdint>
#ifndef __CUDACC_RTC__
#include <array>
#endif

namespace solstice::core {

struct Philox4 {
  uint32_t word[4];
};

// Four random words for (seed, stream, counter). Pure.
inline Philox4 Philox(uint64_t seed, uint64_t stream, uint64_t counter) {
  constexpr uint32_t kM0 = 0xD2511F53u, kM1 = 0xCD9E8D57u, kW0 = 0x9E3779B9u, kW1 = 0xBB67AE85u;
  uint32_t c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
  uint32_t c2 = static_cast<uint32_t>(stream), c3 = static_cast<uint32_t>(stream >> 32);
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
#ifdef __CUDACC_RTC__
#pragma unroll 1  // ten copies in every kernel would double their time to compile
#endif
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = static_cast<uint64_t>(kM0) * c0, p1 = static_cast<uint64_t>(kM1) * c2;
    uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0, n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += kW0;
    k1 += kW1;
  }
  return {{c0, c1, c2, c3}};
}

#ifndef __CUDACC_RTC__
inline std::array<uint32_t, 4> Philox4x32(uint64_t seed, uint64_t stream, uint64_t counter) {
  const Philox4 four = Philox(seed, stream, counter);
  return {four.word[0], four.word[1], four.word[2], four.word[3]};
}
#endif

}  // namespace solstice::core
