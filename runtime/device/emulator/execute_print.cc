// vprintf and __assertfail, which device code calls as functions.
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "runtime/base/strings.h"
#include "runtime/device/emulator/execute.h"
#include "runtime/device/emulator/sanitizer.h"

namespace solstice::device {
namespace {

using base::StrCat;
using v1::internal::Fault;

constexpr size_t kMostText = 4096;

template <typename T>
T LocalValue(const Warp& w, int lane, int64_t offset) {
  T value{};
  const int64_t at = w.frame->local_base + offset;
  if (at + static_cast<int64_t>(sizeof(T)) <= w.local_capacity) {
    std::memcpy(&value, w.local + lane * w.local_capacity + at, sizeof(T));
  }
  return value;
}

// Reads the packed variable arguments of a vprintf.
class Arguments {
 public:
  Arguments(const Warp& w, int lane, uint64_t address) : w_(w), lane_(lane), address_(address) {}

  template <typename T>
  T Next() {
    address_ = (address_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value{};
    if (const uint8_t* bytes = PeekGeneric(w_, lane_, address_, sizeof(T))) std::memcpy(&value, bytes, sizeof(T));
    address_ += sizeof(T);
    return value;
  }

 private:
  const Warp& w_;
  int lane_;
  uint64_t address_;
};

// One conversion, already split: "%-08" and "ll" and 'd'. Widths are bounded, so the buffer is enough.
void AppendConversion(const Warp& w, int lane, Arguments& arguments, std::string spec, bool is_long, char conversion,
                      std::string& out) {
  char buffer[1400];
  int n = 0;
  switch (conversion) {
    case 'd':
    case 'i':
      n = std::snprintf(buffer, sizeof buffer, (spec + PRId64).c_str(),
                        is_long ? arguments.Next<int64_t>() : int64_t{arguments.Next<int32_t>()});
      break;
    case 'u':
    case 'x':
    case 'X':
    case 'o': {
      const uint64_t value = is_long ? arguments.Next<uint64_t>() : arguments.Next<uint32_t>();
      spec += "l";
      spec += conversion;
      n = std::snprintf(buffer, sizeof buffer, spec.c_str(), static_cast<unsigned long>(value));
      break;
    }
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
      n = std::snprintf(buffer, sizeof buffer, (spec + conversion).c_str(), arguments.Next<double>());
      break;
    case 'c':
      n = std::snprintf(buffer, sizeof buffer, (spec + "c").c_str(), arguments.Next<int32_t>());
      break;
    case 'p':
      n = std::snprintf(buffer, sizeof buffer, (spec + "p").c_str(),
                        reinterpret_cast<void*>(arguments.Next<uint64_t>()));
      break;
    case 's': {
      const std::string text = PeekString(w, lane, arguments.Next<uint64_t>(), 1024);
      n = std::snprintf(buffer, sizeof buffer, (spec + "s").c_str(), text.c_str());
      break;
    }
    default:
      out += spec + conversion;
      return;
  }
  if (n > 0) out.append(buffer, std::min<size_t>(static_cast<size_t>(n), sizeof buffer - 1));
}

std::string Format(const Warp& w, int lane, const std::string& format, Arguments arguments) {
  std::string out;
  for (size_t i = 0; i < format.size() && out.size() < kMostText; ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    if (i + 1 < format.size() && format[i + 1] == '%') {
      out += '%';
      ++i;
      continue;
    }
    std::string spec = "%";
    size_t j = i + 1;
    auto number = [&] {
      int value = 0;
      if (j < format.size() && format[j] == '*') {
        value = arguments.Next<int32_t>();
        ++j;
      } else {
        while (j < format.size() && format[j] >= '0' && format[j] <= '9') {
          value = std::min(value * 10 + (format[j++] - '0'), 300);
        }
      }
      return std::max(-300, std::min(value, 300));
    };
    while (j < format.size() && std::strchr("-+ #0", format[j]) != nullptr && spec.size() < 8) spec += format[j++];
    if (const int width = number(); width != 0) spec += StrCat(width);
    if (j < format.size() && format[j] == '.') {
      ++j;
      spec += StrCat(".", std::max(number(), 0));
    }
    bool is_long = false;
    while (j < format.size() && std::strchr("hlLqjzt", format[j]) != nullptr) {
      is_long |= format[j] != 'h';
      ++j;
    }
    if (j >= format.size()) break;
    AppendConversion(w, lane, arguments, spec, is_long, format[j], out);
    i = j;
  }
  return out;
}

}  // namespace

void ExecPrintf(Warp& w, const Op& op) {
  const std::vector<uint32_t>& list = w.block->program->lists[op.target];
  Block& block = *w.block;
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    const std::string format = PeekString(w, i, LocalValue<uint64_t>(w, i, list[0]), kMostText);
    int32_t fields = 0;
    if (block.output_left > 0) {
      std::string text = Format(w, i, format, Arguments(w, i, LocalValue<uint64_t>(w, i, list[1])));
      if (static_cast<int64_t>(text.size()) > block.output_left) text.resize(static_cast<size_t>(block.output_left));
      block.output_left -= static_cast<int64_t>(text.size());
      block.output += text;
    }
    for (size_t c = 0; c + 1 < format.size(); ++c) {
      if (format[c] != '%') continue;
      if (format[c + 1] == '%')
        ++c;
      else
        ++fields;
    }
    if (list.size() > 2) {
      std::memcpy(w.local + i * w.local_capacity + w.frame->local_base + list[2], &fields, sizeof fields);
    }
  }
  if (list.size() > 2 && block.sanitizer != nullptr) {
    block.sanitizer->MarkLocal(w, w.frame->local_base + list[2], sizeof(int32_t));
  }
}

void ExecAssertFail(Warp& w, const Op& op) {
  const std::vector<uint32_t>& list = w.block->program->lists[op.target];
  const int i = __builtin_ctz(w.mask);
  auto text = [&](int argument) { return PeekString(w, i, LocalValue<uint64_t>(w, i, list[argument]), 512); };
  const std::string message = text(0), path = text(1), function = text(3);
  RaiseFault(w, op, Fault::ASSERT, i, 0,
             StrCat("fails the assertion ", base::Quote(message, 400), " (", path.substr(path.rfind('/') + 1), ":",
                    LocalValue<uint32_t>(w, i, list[2]), ", ", function, ")"));
}

}  // namespace solstice::device
