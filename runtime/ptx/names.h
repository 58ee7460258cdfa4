// Names of one function while it is parsed: nested scopes, register ranges, labels that are used before they appear.
// Internal to the parser.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace solstice::ptx {

// All names are views into the PTX text, which must outlive the table. Not thread safe.
class NameTable {
 public:
  enum class Kind : uint8_t { kRegister, kVectorRegister, kVariable };
  enum class LabelKind : uint8_t { kCode, kTargets, kPrototype };

  struct Local {
    Kind kind = Kind::kRegister;
    uint8_t width = 1;    // of a vector register
    uint32_t rename = 0;  // 0: as written; n: suffix "#n"
  };
  struct Label {
    LabelKind kind = LabelKind::kCode;
    uint32_t rename = 0;
  };
  // A name that an instruction (or, `in_targets`, a branch target list) uses, that was not declared at that point and
  // may be a label.
  struct Reference {
    std::string_view name;
    uint32_t index = 0;     // of the instruction or of the list
    uint32_t position = 0;  // of the operand in it, or of the label
    int line = 0;
    bool in_targets = false;
  };

  static constexpr int kMaxDepth = 32;

  // Forgets everything and opens the outermost scope.
  void Reset();
  bool Push();  // false: nested too deep
  // Closes the innermost scope. Calls resolve(reference, label) for references to its labels; hands the others to the
  // enclosing scope, or, from the outermost, calls unresolved(reference).
  template <typename Resolve, typename Unresolved>
  void Pop(Resolve resolve, Unresolved unresolved);
  int depth() const { return static_cast<int>(depth_); }

  // Nullptr: the scope has the name already. `taken`: rename it in any case.
  const Local* Declare(std::string_view name, Kind kind, int width, bool taken);
  // prefix0 ... prefix(count-1). False: a name of them exists in the scope.
  bool DeclareRange(std::string_view prefix, uint32_t count, uint32_t* rename);
  bool DeclareLabel(std::string_view name, LabelKind kind, uint32_t* rename);
  bool Find(std::string_view name, Local* local) const;
  void Refer(const Reference& reference) { scopes_[depth_ - 1].references.push_back(reference); }

  static std::string Renamed(std::string_view name, uint32_t rename);

 private:
  struct Range {
    uint32_t count = 0;
    uint32_t rename = 0;
  };
  struct Scope {
    std::unordered_map<std::string_view, Local> names;
    std::unordered_map<std::string_view, Range> ranges;
    std::unordered_map<std::string_view, Label> labels;
    std::vector<Reference> references;
  };

  static const Range* InRange(const std::unordered_map<std::string_view, Range>& ranges, std::string_view name);

  std::vector<Scope> scopes_;  // kept allocated; the first depth_ are open
  size_t depth_ = 0;
  uint32_t renames_ = 0;
  // Of the whole function, scopes that are closed included.
  std::unordered_set<std::string_view> used_, used_labels_;
  std::unordered_map<std::string_view, Range> used_ranges_;
};

template <typename Resolve, typename Unresolved>
void NameTable::Pop(Resolve resolve, Unresolved unresolved) {
  Scope& scope = scopes_[--depth_];
  for (const Reference& reference : scope.references) {
    auto found = scope.labels.find(reference.name);
    if (found != scope.labels.end()) {
      resolve(reference, found->second);
    } else if (depth_ > 0) {
      scopes_[depth_ - 1].references.push_back(reference);
    } else {
      unresolved(reference);
    }
  }
  scope.references.clear();
  scope.names.clear();
  scope.ranges.clear();
  scope.labels.clear();
}

}  // namespace solstice::ptx
