// The random words that every generator draws from: word i of a stream, in any order. Pure, thread-safe.
#pragma once

#include <cstdint>

namespace solstice::generate {

// What a stream of words is drawn for: streams of one seed never share a counter.
enum class Purpose : uint64_t { kValues = 0, kHoles = 1 };

// At most 2^24 variants and 2^32 inputs.
inline uint64_t StreamOf(Purpose purpose, uint64_t variant, uint64_t input_index) {
  return static_cast<uint64_t>(purpose) << 56 | variant << 32 | input_index;
}

// Word i is word i % 4 of Philox4x32(seed, stream, i / 4).
class Words {
 public:
  Words(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

  // Writes words `first`, `first` + 1, ... to out[0 .. count).
  void Fill(uint64_t first, int count, uint32_t* out) const;

 private:
  uint64_t seed_, stream_;
};

}  // namespace solstice::generate
