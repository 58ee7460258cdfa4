// An instruction as text.
#include <algorithm>
#include <charconv>
#include <cstring>

#include "runtime/base/strings.h"
#include "runtime/ptx/module.h"

namespace solstice::ptx {
namespace {

// Appends until the limit is reached; what is longer is cut by the caller.
class Writer {
 public:
  explicit Writer(size_t limit) : limit_(limit) {}

  void Add(std::string_view text) {
    if (!Full()) out_.append(text.substr(0, limit_ + 1 - out_.size()));
  }
  void Add(const Operand& operand);
  void AddList(const std::vector<Operand>& operands, std::string_view separator);
  bool Full() const { return out_.size() > limit_; }
  std::string Take() { return std::move(out_); }

 private:
  void AddImmediate(const Operand& operand);
  void AddOffset(int64_t offset) {
    if (offset != 0) Add(base::StrCat(offset > 0 ? "+" : "", offset));
  }

  size_t limit_;
  std::string out_;
};

void Writer::AddList(const std::vector<Operand>& operands, std::string_view separator) {
  for (size_t i = 0; i < operands.size() && !Full(); ++i) {
    if (i > 0) Add(separator);
    Add(operands[i]);
  }
}

void Writer::AddImmediate(const Operand& operand) {
  if (!operand.is_float) return Add(base::StrCat(static_cast<int64_t>(operand.bits)));
  char digits[24];
  auto end = std::to_chars(digits, digits + sizeof digits, operand.bits, 16).ptr;
  std::string hex(digits, end);
  std::transform(hex.begin(), hex.end(), hex.begin(), [](char c) { return c >= 'a' ? static_cast<char>(c - 32) : c; });
  size_t width = static_cast<size_t>(operand.float_bytes) * 2;
  Add(operand.float_bytes == 4 ? "0f" : "0d");
  Add(std::string(width > hex.size() ? width - hex.size() : 0, '0'));
  Add(hex);
}

void Writer::Add(const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::kImmediate:
      return AddImmediate(operand);
    case Operand::Kind::kAddress:
      Add("[");
      Add(operand.name);
      if (operand.name.empty()) {
        Add(base::StrCat(operand.offset));
      } else {
        AddOffset(operand.offset);
      }
      if (!operand.elements.empty()) Add(", ");
      AddList(operand.elements, ", ");
      return Add("]");
    case Operand::Kind::kVector:
      Add("{");
      AddList(operand.elements, ", ");
      return Add("}");
    case Operand::Kind::kList:
      Add("(");
      AddList(operand.elements, ", ");
      return Add(")");
    case Operand::Kind::kPair:
      return AddList(operand.elements, "|");
    case Operand::Kind::kSink:
      return Add("_");
    default:
      if (operand.negated) Add("!");
      Add(operand.name);
      AddOffset(operand.offset);
  }
}

}  // namespace

std::string ToText(const Instruction& instruction, size_t limit) {
  Writer writer(limit);
  if (!instruction.guard.empty()) {
    writer.Add(instruction.guard_negated ? "@!" : "@");
    writer.Add(instruction.guard);
    writer.Add(" ");
  }
  writer.Add(instruction.opcode);
  for (const std::string& modifier : instruction.modifiers) {
    writer.Add(".");
    writer.Add(modifier);
  }
  if (!instruction.operands.empty()) writer.Add(" ");
  writer.AddList(instruction.operands, ", ");
  writer.Add(";");
  bool cut = writer.Full();
  std::string text = writer.Take();
  if (!cut) return text;
  constexpr std::string_view kEllipsis = "...";
  text.resize(limit > kEllipsis.size() ? limit - kEllipsis.size() : 0);
  text += kEllipsis.substr(0, limit);
  return text;
}

}  // namespace solstice::ptx
