// Hashes and random bytes, by OpenSSL and the kernel. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace solstice::base {

std::string Hex(std::string_view bytes);
// 32 raw bytes.
std::string Sha256(std::string_view bytes);
std::string HmacSha256(std::string_view key, std::string_view message);
// "sha256:<64 hex digits>" of `domain`, a NUL, and `content`.
std::string Digest(std::string_view domain, std::string_view content);
// From the kernel; aborts if it has none.
std::string RandomBytes(size_t count);
uint64_t RandomU64();

// 26 characters, Crockford base 32: 48 bits of milliseconds, 80 random bits; later ones sort after earlier ones, within
// a millisecond too (per process).
std::string NewUlid(int64_t unix_ms);

}  // namespace solstice::base
