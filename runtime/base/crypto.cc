#include "runtime/base/crypto.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "runtime/base/mutex.h"

namespace solstice::base {

std::string Hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (unsigned char c : bytes) {
    out.push_back(kDigits[c >> 4]);
    out.push_back(kDigits[c & 15]);
  }
  return out;
}

std::string Sha256(std::string_view bytes) {
  std::string out(32, '\0');
  unsigned int length = 32;
  if (EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(out.data()), &length, EVP_sha256(),
                 nullptr) != 1) {
    std::abort();
  }
  return out;
}

std::string HmacSha256(std::string_view key, std::string_view message) {
  std::string out(32, '\0');
  unsigned int length = 32;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(),
           reinterpret_cast<unsigned char*>(out.data()), &length) == nullptr) {
    std::abort();
  }
  return out;
}

std::string Digest(std::string_view domain, std::string_view content) {
  std::string text(domain);
  text.push_back('\0');
  text.append(content);
  return "sha256:" + Hex(Sha256(text));
}

std::string RandomBytes(size_t count) {
  std::string out(count, '\0');
  size_t done = 0;
  while (done < count) {
    ssize_t n = ::getrandom(out.data() + done, count - done, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) std::abort();
    done += static_cast<size_t>(n);
  }
  return out;
}

uint64_t RandomU64() {
  uint64_t value;
  std::memcpy(&value, RandomBytes(8).data(), 8);
  return value;
}

std::string NewUlid(int64_t unix_ms) {
  static Mutex mutex;
  static int64_t last_ms = -1;
  static unsigned char random[10];
  unsigned char bytes[16];
  {
    MutexLock lock(mutex);
    if (unix_ms <= last_ms) {
      unix_ms = last_ms;
      for (int i = 9; i >= 0 && ++random[i] == 0; --i) {
      }
    } else {
      last_ms = unix_ms;
      std::memcpy(random, RandomBytes(10).data(), 10);
      random[0] &= 0x7F;  // leaves room to count up
    }
    for (int i = 0; i < 6; ++i) bytes[i] = static_cast<unsigned char>(unix_ms >> (40 - 8 * i));
    std::memcpy(bytes + 6, random, 10);
  }
  static constexpr char kAlphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  // 128 bits in 26 digits of 5 bits, the first digit holding 3.
  std::string out(26, '0');
  for (int digit = 0; digit < 26; ++digit) {
    int value = 0;
    for (int bit = 0; bit < 5; ++bit) {
      int position = digit * 5 + bit - 2;
      int b = position < 0 ? 0 : (bytes[position / 8] >> (7 - position % 8)) & 1;
      value = value * 2 + b;
    }
    out[digit] = kAlphabet[value];
  }
  return out;
}

}  // namespace solstice::base
