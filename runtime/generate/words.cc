#include "runtime/generate/words.h"

#include "runtime/core/philox.h"

namespace solstice::generate {
namespace {

constexpr int kLanes = 8;

// core::Philox4x32 of `kLanes` counters from `counter` on, lane by lane, so that the compiler makes vector instructions
// of it: out[4 l + w] is word w of counter + l.
void PhiloxLanes(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t* out) {
  constexpr uint32_t kM0 = 0xD2511F53u, kM1 = 0xCD9E8D57u, kW0 = 0x9E3779B9u, kW1 = 0xBB67AE85u;
  uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    c0[l] = static_cast<uint32_t>(counter + l);
    c1[l] = static_cast<uint32_t>((counter + l) >> 32);
    c2[l] = static_cast<uint32_t>(stream);
    c3[l] = static_cast<uint32_t>(stream >> 32);
  }
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int l = 0; l < kLanes; ++l) {
      const uint64_t p0 = static_cast<uint64_t>(kM0) * c0[l], p1 = static_cast<uint64_t>(kM1) * c2[l];
      c0[l] = static_cast<uint32_t>(p1 >> 32) ^ c1[l] ^ k0;
      c2[l] = static_cast<uint32_t>(p0 >> 32) ^ c3[l] ^ k1;
      c1[l] = static_cast<uint32_t>(p1);
      c3[l] = static_cast<uint32_t>(p0);
    }
    k0 += kW0;
    k1 += kW1;
  }
  for (int l = 0; l < kLanes; ++l) {
    out[4 * l] = c0[l];
    out[4 * l + 1] = c1[l];
    out[4 * l + 2] = c2[l];
    out[4 * l + 3] = c3[l];
  }
}

}  // namespace

void Words::Fill(uint64_t first, int count, uint32_t* out) const {
  int done = 0;
  while (done < count && (first + done) % 4 != 0) {
    out[done] = core::Philox4x32(seed_, stream_, (first + done) / 4)[(first + done) % 4];
    ++done;
  }
  for (; done + 4 * kLanes <= count; done += 4 * kLanes) PhiloxLanes(seed_, stream_, (first + done) / 4, out + done);
  while (done < count) {
    const auto four = core::Philox4x32(seed_, stream_, (first + done) / 4);
    for (int word = 0; word < 4 && done < count; ++word, ++done) out[done] = four[word];
  }
}

}  // namespace solstice::generate
