// The fingerprint of memory. Host and device compile this same text.
//
// Content is chunks of four 32-bit words, the last one filled up with zeros. With key words k(i) = Philox(key, stream,
// i), each sum is NH of J. Black et al., "UMAC: Fast and Secure Message Authentication" (CRYPTO '99), modulo 2^64: the
// sum over the chunks of (w0 + k0)(w1 + k1) + (w2 + k2)(w3 + k3), where the inner additions are modulo 2^32; the second
// sum takes k(i + kFingerprintShift), UMAC's Toeplitz construction. For two contents of one length, known beforehand,
// the key makes both sums equal with probability 2^-64.
#pragma once

#include <cstdint>

namespace solstice::bulk {

inline constexpr uint64_t kFingerprintStream = 0x66696e6765727072ull;
inline constexpr int kFingerprintShift = 32;  // chunks

struct FingerprintSums {
  uint64_t sum[2] = {0, 0};

  // One chunk's words with its own and the shifted key words.
  void Add(const uint32_t* words, const uint32_t* key, const uint32_t* shifted) {
    sum[0] += Product(words[0] + key[0], words[1] + key[1]) + Product(words[2] + key[2], words[3] + key[3]);
    sum[1] +=
        Product(words[0] + shifted[0], words[1] + shifted[1]) + Product(words[2] + shifted[2], words[3] + shifted[3]);
  }

 private:
  static uint64_t Product(uint32_t a, uint32_t b) { return static_cast<uint64_t>(a) * b; }
};

}  // namespace solstice::bulk
