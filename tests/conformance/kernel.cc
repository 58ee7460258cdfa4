#include "tests/conformance/kernel.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include "runtime/base/strings.h"
#include "tests/conformance/operands.h"

namespace solstice::conformance {
namespace {

using base::StrCat;

std::string Replaced(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

std::string Substituted(std::string text, const std::vector<std::string>& chosen) {
  for (size_t i = 0; i < chosen.size(); ++i) text = Replaced(text, StrCat("[", i, "]"), chosen[i]);
  return text;
}

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  for (const std::string_view word : base::Split(text, ' ')) {
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

// Places the values one after the other, each aligned to its size; returns the stride.
int Place(const std::vector<std::string>& types, std::vector<Value>* values) {
  int top = 0, widest = 1;
  for (const std::string& type : types) {
    const int bytes = BytesOf(type);
    top = (top + bytes - 1) / bytes * bytes;
    widest = std::max(widest, bytes);
    values->push_back({type, top});
    top += bytes;
  }
  return (top + widest - 1) / widest * widest;
}

// Addresses of vector accesses to the tuple's input need it.
constexpr int kInputAlignment = 16;

std::string Register(const std::string& type) {
  if (type == "pred") return ".pred";
  return StrCat(".b", std::max(BytesOf(type) * 8, 16));
}

std::string LoadWord(const std::string& type) {
  if (type == "s8") return "s8";
  return BytesOf(type) == 1 ? "u8" : StrCat("b", BytesOf(type) * 8);
}

// The loads of operands and stores of results around the instruction.
std::string Body(const Case& c, const std::string& text, const std::string& prefix) {
  std::string out = prefix;
  auto uses = [&](const char* name) { return text.find(name) != std::string::npos; };
  if (uses("$E_shared") || uses("%mine")) out += ".shared .align 128 .b8 $E_shared[8192];\n";
  if (uses("$E_table")) {
    out += ".const .align 16 .b8 $E_table[64] = {";
    for (int i = 0; i < 64; ++i) out += StrCat(i == 0 ? "" : ", ", (3 * i + 128) & 255);
    out += "};\n";
  }
  out +=
      ".visible .entry $E(.param .u64 in, .param .u64 out, .param .u64 scratch, .param .align 16 .b8 extra[32])\n{\n";
  out +=
      "  .reg .pred %p<8>;\n  .reg .b16 %h<8>, %byte;\n  .reg .b32 %r<16>, %t;\n  .reg .b64 %q<8>, %src, %dst, %own, "
      "%common, %mine;\n";
  if (uses("near")) out += "  .local .align 16 .b8 near[64];\n";
  for (size_t i = 0; i < c.operands.size(); ++i)
    out += StrCat("  .reg ", Register(c.operands[i].type), " %i", i, ";\n");
  for (size_t i = 0; i < c.results.size(); ++i) out += StrCat("  .reg ", Register(c.results[i].type), " %o", i, ";\n");
  out += StrCat("  mov.u32 %t, %tid.x;\n  ld.param.u64 %src, [in];\n  mul.wide.u32 %dst, %t, ", c.input_stride,
                ";\n  add.s64 %src, %src, %dst;\n");
  if (uses("%own") || uses("%common")) {
    out += StrCat("  ld.param.u64 %common, [scratch];\n  mul.wide.u32 %own, %t, ", kOwnBytes,
                  ";\n  add.s64 %own, %own, %common;\n  add.s64 %own, %own, ", kCommonBytes, ";\n");
  }
  if (uses("%mine")) {
    out += "  mov.u64 %mine, $E_shared;\n  mul.wide.u32 %dst, %t, 16;\n  add.s64 %mine, %mine, %dst;\n";
  }
  for (size_t i = 0; i < c.operands.size(); ++i) {
    const Value& value = c.operands[i];
    if (value.type == "pred") {
      out += StrCat("  ld.global.u8 %byte, [%src+", value.offset, "];\n  setp.ne.b16 %i", i, ", %byte, 0;\n");
    } else {
      out += StrCat("  ld.global.", LoadWord(value.type), " %i", i, ", [%src+", value.offset, "];\n");
    }
  }
  out += "  " + text + "\n";
  out += StrCat("  ld.param.u64 %src, [out];\n  mul.wide.u32 %dst, %t, ", c.answer_stride,
                ";\n  add.s64 %dst, %dst, %src;\n");
  for (size_t i = 0; i < c.results.size(); ++i) {
    const Value& value = c.results[i];
    if (value.type == "pred") {
      out += StrCat("  selp.b16 %byte, 1, 0, %o", i, ";\n  st.global.u8 [%dst+", value.offset, "], %byte;\n");
    } else {
      out += StrCat("  st.global.b", BytesOf(value.type) * 8, " [%dst+", value.offset, "], %o", i, ";\n");
    }
  }
  return Replaced(out + "  ret;\n}\n", "$E", c.entry);
}

}  // namespace

int BytesOf(const std::string& type) {
  if (type == "pred") return 1;
  if (type == "shift" || type == "tf32") return 4;
  size_t digits = 0;
  while (digits < type.size() && !std::isdigit(static_cast<unsigned char>(type[digits]))) ++digits;
  if (type.rfind("e", 0) == 0) {  // e4m3x2: a byte an element, but e2m1x2: one for both
    const int elements = type.back() - '0';
    return type.rfind("e2m1", 0) == 0 ? elements / 2 : elements;
  }
  int bits = 0;
  for (; digits < type.size() && std::isdigit(static_cast<unsigned char>(type[digits])); ++digits) {
    bits = bits * 10 + (type[digits] - '0');
  }
  if (digits < type.size() && type[digits] == 'x') bits *= type.back() - '0';
  return bits / 8;
}

std::string ModuleHeader(const std::string& arch) {
  return StrCat(".version ", arch == "sm_90a" ? "8.4" : "8.7", "\n.target ", arch, "\n.address_size 64\n");
}

uint64_t Hash(const void* data, size_t bytes, uint64_t seed) {
  const auto* p = static_cast<const uint8_t*>(data);
  for (size_t i = 0; i < bytes; ++i) seed = (seed ^ p[i]) * 0x100000001b3u;
  return seed;
}

uint64_t Case::Fingerprint() const {
  const uint64_t text = Hash(ptx.data(), ptx.size());
  return Hash(input.data(), input.size(), text ^ static_cast<uint64_t>(tuples));
}

std::vector<Expanded> Alternatives(const std::string& text) {
  std::vector<Expanded> all = {{}};
  for (size_t i = 0; i < text.size();) {
    std::vector<std::string> choices = {std::string(1, text[i])};
    size_t end = i + 1;
    const bool braces = text[i] == '{';
    if (braces) {
      end = text.find('}', i) + 1;
      choices.clear();
      for (const std::string_view choice : base::Split(std::string_view(text).substr(i + 1, end - i - 2), '|')) {
        choices.emplace_back(choice);
      }
    }
    std::vector<Expanded> next;
    for (const Expanded& start : all) {
      for (const std::string& choice : choices) {
        next.push_back(start);
        next.back().text += choice;
        if (braces) next.back().chosen.push_back(choice);
      }
    }
    all = std::move(next);
    i = end;
  }
  return all;
}

void AddRow(const std::string& group, const Row& row, std::vector<Case>* cases,
            const std::vector<std::vector<uint64_t>>& input) {
  for (const Expanded& form : Alternatives(row.name)) {
    Case c;
    c.group = group;
    c.name = StrCat(group, "/", form.text);
    c.arch = row.arch;
    c.bound = row.bound;
    for (const char letter : c.name) c.entry += std::isalnum(static_cast<unsigned char>(letter)) ? letter : '_';
    // Names that differ in signs alone must not be one name.
    c.entry += StrCat("_", Hash(c.name.data(), c.name.size()) % 100000);
    const std::vector<std::string> operands = Words(Substituted(row.operands, form.chosen)),
                                   results = Words(Substituted(row.results, form.chosen));
    c.input_stride =
        (std::max(Place(operands, &c.operands), 1) + kInputAlignment - 1) / kInputAlignment * kInputAlignment;
    // A byte comes back with the rest of its register: how it was extended is part of the answer.
    std::vector<std::string> stored = results;
    for (std::string& type : stored) {
      if (type == "u8" || type == "s8") type = "b16";
    }
    c.answer_stride = Place(stored, &c.results);
    std::string text = Substituted(row.text, form.chosen);
    if (text.empty()) {
      text = form.text;
      std::string separator = " ";
      for (size_t i = 0; i < results.size(); ++i) text += StrCat(std::exchange(separator, ", "), "%o", i);
      for (size_t i = 0; i < operands.size(); ++i) text += StrCat(std::exchange(separator, ", "), "%i", i);
      text += ";";
    }
    c.tuples = row.tuples != 0 ? row.tuples : operands.size() == 1 ? 128 : kMostTuples;
    std::vector<std::vector<uint64_t>> tuples = input;
    if (tuples.empty()) {
      tuples = MakeTuples(operands, results.empty() ? "" : results[0], c.tuples, Hash(c.name.data(), c.name.size()));
    }
    c.input.assign(static_cast<size_t>(c.tuples * c.input_stride), 0);
    for (int i = 0; i < c.tuples; ++i) {
      for (size_t k = 0; k < operands.size(); ++k) {
        const uint64_t word = tuples[static_cast<size_t>(i)][k];
        std::memcpy(c.input.data() + i * c.input_stride + c.operands[k].offset, &word,
                    static_cast<size_t>(BytesOf(operands[k])));
      }
    }
    c.ptx = Body(c, text, Substituted(row.prefix, form.chosen));
    cases->push_back(std::move(c));
  }
}

void AddRows(const std::string& group, const std::vector<Row>& rows, std::vector<Case>* cases) {
  for (const Row& row : rows) AddRow(group, row, cases);
}

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const auto add : {&AddInteger, &AddBits, &AddComparison, &AddConversion, &AddFloat, &AddApproximate, &AddWarp,
                         &AddAtomic, &AddMemory, &AddControl, &AddMatrix, &AddAsync}) {
    add(&cases);
  }
  return cases;
}

}  // namespace solstice::conformance
