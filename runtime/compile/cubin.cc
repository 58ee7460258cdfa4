#include "runtime/compile/cubin.h"

#include <charconv>
#include <cstring>
#include <vector>

#include "runtime/base/strings.h"

namespace solstice::compile {
namespace {

using base::DataLoss;
using base::StrCat;

// ELF64 little endian, and the attributes of .nv.info that are read.
constexpr uint32_t kSymbolTable = 2, kNoBits = 8;
constexpr uint8_t kFormatSized = 4;  // attribute carries a 16-bit size and that many bytes
constexpr uint8_t kAttributeMinStackSize = 0x12, kAttributeRegisterCount = 0x2f;
constexpr uint64_t kMaxSections = 1 << 20;

struct Section {
  std::string_view name;
  uint32_t type = 0, link = 0;
  std::string_view data;  // empty for kNoBits
  uint64_t size = 0;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  // Zero outside: callers check ranges by Slice first where it matters.
  template <typename T>
  T At(uint64_t offset) const {
    T value = 0;
    if (offset <= bytes_.size() && bytes_.size() - offset >= sizeof(T))
      std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }
  bool Slice(uint64_t offset, uint64_t size, std::string_view* out) const {
    if (offset > bytes_.size() || bytes_.size() - offset < size) return false;
    *out = bytes_.substr(offset, size);
    return true;
  }

 private:
  std::string_view bytes_;
};

// The text at `offset` up to a NUL; "" outside.
std::string_view StringAt(std::string_view table, uint64_t offset) {
  if (offset >= table.size()) return {};
  std::string_view rest = table.substr(offset);
  size_t end = rest.find('\0');
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

StatusOr<std::vector<Section>> ReadSections(std::string_view cubin) {
  Reader reader(cubin);
  if (cubin.size() < 64 ||
      cubin.substr(0, 4) !=
          "\x7f"
          "ELF" ||
      cubin[4] != 2 || cubin[5] != 1) {
    return DataLoss("cubin: not a 64-bit little-endian ELF file");
  }
  uint64_t table = reader.At<uint64_t>(0x28);
  uint64_t entry_size = reader.At<uint16_t>(0x3a), count = reader.At<uint16_t>(0x3c),
           names_at = reader.At<uint16_t>(0x3e);
  if (count == 0 && table != 0) count = reader.At<uint64_t>(table + 0x20);  // more than 65279: size of section 0
  if (names_at == 0xffff) names_at = reader.At<uint32_t>(table + 0x28);
  std::string_view headers;
  if (entry_size < 64 || count > kMaxSections || names_at >= count ||
      !reader.Slice(table, count * entry_size, &headers)) {
    return DataLoss("cubin: the section table lies outside the file");
  }
  std::vector<Section> sections(count);
  std::vector<uint32_t> names(count);
  for (uint64_t i = 0; i < count; ++i) {
    Reader header(headers.substr(i * entry_size, entry_size));
    names[i] = header.At<uint32_t>(0);
    sections[i].type = header.At<uint32_t>(4);
    sections[i].size = header.At<uint64_t>(0x20);
    sections[i].link = header.At<uint32_t>(0x28);
    if (sections[i].type == kNoBits || sections[i].type == 0) continue;
    if (!reader.Slice(header.At<uint64_t>(0x18), sections[i].size, &sections[i].data)) {
      return DataLoss(StrCat("cubin: section ", i, " lies outside the file"));
    }
  }
  for (uint64_t i = 0; i < count; ++i) sections[i].name = StringAt(sections[names_at].data, names[i]);
  return sections;
}

// Attribute entries: format, attribute, then a 16-bit value or size.
void ReadInfo(std::string_view info, const std::vector<std::string_view>& symbols,
              std::map<std::string, KernelResources>* kernels) {
  Reader reader(info);
  uint64_t at = 0;
  while (at + 4 <= info.size()) {
    uint8_t format = reader.At<uint8_t>(at), attribute = reader.At<uint8_t>(at + 1);
    uint16_t size = reader.At<uint16_t>(at + 2);
    at += 4;
    if (format != kFormatSized) continue;
    if (size >= 8 && at + 8 <= info.size()) {
      uint32_t symbol = reader.At<uint32_t>(at), value = reader.At<uint32_t>(at + 4);
      auto kernel = symbol < symbols.size() ? kernels->find(std::string(symbols[symbol])) : kernels->end();
      if (kernel != kernels->end()) {
        if (attribute == kAttributeRegisterCount) kernel->second.registers = static_cast<int>(value);
        if (attribute == kAttributeMinStackSize) kernel->second.local_bytes = value;
      }
    }
    at += size;
  }
}

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// The number before " <unit>" in `line`; 0 if there is none.
int64_t NumberBefore(std::string_view line, std::string_view unit) {
  size_t at = line.find(unit);
  if (at == std::string_view::npos) return 0;
  size_t start = at;
  while (start > 0 && line[start - 1] >= '0' && line[start - 1] <= '9') --start;
  int64_t value = 0;
  std::from_chars(line.data() + start, line.data() + at, value);
  return value;
}

}  // namespace

StatusOr<std::map<std::string, KernelResources>> ReadCubin(std::string_view cubin) {
  SOLSTICE_ASSIGN_OR_RETURN(std::vector<Section> sections, ReadSections(cubin));
  std::vector<std::string_view> symbols;
  std::map<std::string, KernelResources> kernels;
  constexpr std::string_view kConstant = ".nv.constant";
  for (const Section& section : sections) {
    if (section.type == kSymbolTable && section.link < sections.size()) {
      std::string_view strings = sections[section.link].data;
      Reader reader(section.data);
      for (uint64_t at = 0; at + 24 <= section.data.size(); at += 24)
        symbols.push_back(StringAt(strings, reader.At<uint32_t>(at)));
    }
    std::string_view name = section.name;
    // Every kernel has its parameters' bank; device functions do not.
    if (TakePrefix(name, ".nv.constant0.")) kernels[std::string(name)];
  }
  int64_t module_constants = 0;
  for (const Section& section : sections) {
    std::string_view name = section.name;
    if (name == ".nv.info") ReadInfo(section.data, symbols, &kernels);
    if (name == ".nv.constant3") module_constants = static_cast<int64_t>(section.data.size());
    if (!TakePrefix(name, kConstant) || name.size() < 3 || name[0] == '0') continue;
    size_t dot = name.find('.');
    if (dot == std::string_view::npos) continue;
    auto kernel = kernels.find(std::string(name.substr(dot + 1)));
    if (kernel != kernels.end()) kernel->second.constant_bytes += static_cast<int64_t>(section.data.size());
  }
  for (auto& [name, resources] : kernels) resources.constant_bytes += module_constants;
  return kernels;
}

std::map<std::string, PtxasReport> ReadPtxasLog(std::string_view log) {
  std::map<std::string, PtxasReport> reports;
  PtxasReport* current = nullptr;
  while (!log.empty()) {
    size_t end = std::min(log.find('\n'), log.size());
    std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    constexpr std::string_view kProperties = "Function properties for ", kEntry = "Compiling entry function '";
    if (size_t at = line.find(kEntry); at != std::string_view::npos) {
      std::string_view name = line.substr(at + kEntry.size());
      current = &reports[std::string(name.substr(0, name.find('\'')))];
    } else if (size_t at = line.find(kProperties); at != std::string_view::npos) {
      current = &reports[std::string(base::Trim(line.substr(at + kProperties.size())))];
    } else if (current != nullptr && line.find(" bytes stack frame") != std::string_view::npos) {
      current->stack_bytes = NumberBefore(line, " bytes stack frame");
      current->spill_store_bytes = NumberBefore(line, " bytes spill stores");
      current->spill_load_bytes = NumberBefore(line, " bytes spill loads");
    } else if (current != nullptr && line.find(" registers") != std::string_view::npos) {
      current->registers = static_cast<int>(NumberBefore(line, " registers"));
      current->shared_bytes = NumberBefore(line, " bytes smem");
    }
  }
  return reports;
}

}  // namespace solstice::compile
