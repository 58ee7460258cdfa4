#include "runtime/compile/diagnose.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "runtime/base/strings.h"

namespace solstice::compile {
namespace {

using base::StrCat;

constexpr size_t kReasonBytes = 400;

int ParseInt(std::string_view text) {
  int value = 0;
  auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc() && result.ptr == text.data() + text.size() ? value : -1;
}

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// "error: ", "catastrophic error: ", "warning #177-D: ", "remark: ..." at the front of `text`.
bool TakeSeverity(std::string_view& text, bool* error) {
  for (std::string_view word : {"catastrophic error", "internal error", "error", "warning", "remark"}) {
    std::string_view rest = text;
    if (!TakePrefix(rest, word)) continue;
    if (!rest.empty() && rest[0] == ' ') {  // " #177-D"
      size_t colon = rest.find(':');
      if (rest.substr(0, 2) != " #" || colon == std::string_view::npos) continue;
      rest.remove_prefix(colon);
    }
    if (!TakePrefix(rest, ": ")) continue;
    *error = word != "warning" && word != "remark";
    text = rest;
    return true;
  }
  return false;
}

// "file(12): error: text"
bool ParseFrontendLine(std::string_view line, Diagnostic* out) {
  size_t at = line.find("): ");
  if (line.empty() || line[0] == ' ') return false;
  if (at != std::string_view::npos) {
    size_t open = line.rfind('(', at);
    std::string_view rest = line.substr(at + 3);
    if (open != std::string_view::npos && open > 0 && TakeSeverity(rest, &out->error)) {
      out->line = ParseInt(line.substr(open + 1, at - open - 1));
      out->file = line.substr(0, open);
      out->message = rest;
      return out->line >= 0;
    }
  }
  std::string_view rest = line;
  bool placed = TakePrefix(rest, "At end of source: ") || TakePrefix(rest, "Command-line ");
  if (!TakeSeverity(rest, &out->error)) return false;
  (void)placed;
  out->message = rest;
  return true;
}

// "ptxas application ptx input, line 23; error   : text", "ptxas fatal   : text", "error   : text"
bool ParseLinkLine(std::string_view line, Diagnostic* out) {
  std::string_view rest = line;
  if (TakePrefix(rest, "ptxas ")) {
    size_t at = rest.find(", line ");
    size_t semicolon = rest.find("; ");
    if (at != std::string_view::npos && semicolon != std::string_view::npos && at < semicolon) {
      out->line = ParseInt(rest.substr(at + 7, semicolon - at - 7));
      out->in_ptx = true;
      rest.remove_prefix(semicolon + 2);
    }
  }
  for (std::string_view word : {"error", "fatal", "warning"}) {
    std::string_view tail = rest;
    if (!TakePrefix(tail, word)) continue;
    while (!tail.empty() && tail[0] == ' ') tail.remove_prefix(1);
    if (!TakePrefix(tail, ": ")) continue;
    out->error = word != "warning";
    out->message = tail;
    return true;
  }
  return TakePrefix(rest, "ERROR ") && (out->error = true, out->message = rest, true);
}

std::string Where(const Diagnostic& d) { return d.file.empty() ? "" : StrCat(d.file, ":", d.line, ": "); }

std::string Sentence(std::string_view text) { return std::string(base::Utf8Prefix(text, kReasonBytes)); }

// What stands between the first pair of quotes.
std::string_view Quoted(std::string_view text) {
  size_t open = text.find('"');
  size_t close = open == std::string_view::npos ? open : text.find('"', open + 1);
  return close == std::string_view::npos ? std::string_view() : text.substr(open + 1, close - open - 1);
}

std::string WithoutBlanks(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c != ' ') out += c;
  }
  return out;
}

struct HostHeader {
  std::string_view name, instead;
};
// Headers of the C++ library and of frameworks that only a host has.
constexpr HostHeader kHostHeaders[] = {
    {"vector", "a fixed-size cuda/std/array, or cuda/std/span over memory passed as an argument"},
    {"string", "const char* literals"},
    {"string_view", "const char* literals"},
    {"map", "an array that you search"},
    {"unordered_map", "an array that you search"},
    {"set", "an array that you search"},
    {"unordered_set", "an array that you search"},
    {"list", "cuda/std/array"},
    {"deque", "cuda/std/array"},
    {"queue", "cuda/std/array"},
    {"stack", "cuda/std/array"},
    {"span", "cuda/std/span"},
    {"optional", "cuda/std/optional"},
    {"variant", "cuda/std/variant"},
    {"complex", "cuda/std/complex"},
    {"atomic", "cuda/atomic or cuda/std/atomic"},
    {"bit", "cuda/std/bit"},
    {"numeric", "cuda/std/numeric"},
    {"iterator", "cuda/std/iterator"},
    {"concepts", "cuda/std/concepts"},
    {"chrono", "clock64()"},
    {"ratio", "cuda/std/ratio"},
    {"memory", "plain pointers"},
    {"new", "nothing: placement new works without it"},
    {"iostream", "printf"},
    {"fstream", "printf"},
    {"sstream", "printf"},
    {"ostream", "printf"},
    {"istream", "printf"},
    {"iomanip", "printf"},
    {"format", "printf"},
    {"stdexcept", "assert or __trap()"},
    {"exception", "assert or __trap()"},
    {"thread", "threads of the grid"},
    {"mutex", "cuda/std/atomic or cooperative_groups.h"},
    {"condition_variable", "cooperative_groups.h"},
    {"future", "cooperative_groups.h"},
    {"random", "curand_kernel.h"},
};
constexpr std::string_view kHostFolders[] = {"torch/", "ATen/", "c10/",   "pybind11/", "thrust/",
                                             "sys/",   "bits/", "boost/", "fmt/"};

}  // namespace

std::vector<Diagnostic> ParseDiagnostics(std::string_view log) {
  std::vector<Diagnostic> list;
  size_t at = 0;
  while (at < log.size()) {
    size_t end = log.find('\n', at);
    end = end == std::string_view::npos ? log.size() : end + 1;
    std::string_view line = log.substr(at, end - at);
    if (!line.empty() && line.back() == '\n') line.remove_suffix(1);
    Diagnostic diagnostic;
    bool starts = ParseFrontendLine(line, &diagnostic);
    if (!starts) {
      diagnostic = Diagnostic();
      starts = ParseLinkLine(line, &diagnostic);
    }
    if (starts) {
      diagnostic.block = log.substr(at, end - at);
      list.push_back(diagnostic);
    } else if (!list.empty()) {
      list.back().block =
          std::string_view(list.back().block.data(), static_cast<size_t>(log.data() + end - list.back().block.data()));
    }
    at = end;
  }
  return list;
}

std::string ScrubLog(std::string_view log, const std::vector<std::string>& include_paths) {
  std::vector<std::string> prefixes;
  for (const std::string& path : include_paths) {
    if (path.size() > 1) prefixes.push_back(path.back() == '/' ? path : path + "/");
  }
  // Longest first: include/cccl lies below include.
  std::sort(prefixes.begin(), prefixes.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  auto library_file = [&](std::string_view file) {
    return std::any_of(prefixes.begin(), prefixes.end(), [&](const auto& p) { return file.substr(0, p.size()) == p; });
  };
  std::string kept;
  size_t done = 0;
  for (const Diagnostic& d : ParseDiagnostics(log)) {
    if (d.error || !library_file(d.file) ||
        d.message.find("incompatible redefinition of macro") == std::string_view::npos)
      continue;
    size_t start = static_cast<size_t>(d.block.data() - log.data());
    kept.append(log.substr(done, start - done));
    done = start + d.block.size();
  }
  kept.append(log.substr(done));
  for (const std::string& prefix : prefixes) {
    for (size_t at = kept.find(prefix); at != std::string::npos; at = kept.find(prefix, at))
      kept.erase(at, prefix.size());
  }
  return kept;
}

CutText CutLog(std::string_view log, int64_t limit) {
  CutText cut;
  cut.bytes = static_cast<int64_t>(log.size());
  if (cut.bytes <= limit) {
    cut.text = std::string(log);
    return cut;
  }
  std::vector<Diagnostic> diagnostics = ParseDiagnostics(log);
  std::string ordered;
  ordered.reserve(log.size());
  size_t lead = diagnostics.empty() ? log.size() : static_cast<size_t>(diagnostics[0].block.data() - log.data());
  for (bool errors : {true, false}) {
    for (const Diagnostic& d : diagnostics) {
      if (d.error == errors) ordered.append(d.block);
    }
    if (errors) ordered.append(log.substr(0, lead));
  }
  constexpr int64_t kMarkerBytes = 64;
  int64_t room = std::max<int64_t>(limit - kMarkerBytes, 0);
  std::string_view head = base::Utf8Prefix(ordered, static_cast<size_t>(room - room / 4));
  size_t tail_at = ordered.size() - static_cast<size_t>(room / 4);
  while (tail_at < ordered.size() && (static_cast<unsigned char>(ordered[tail_at]) & 0xC0) == 0x80) ++tail_at;
  cut.dropped = static_cast<int64_t>(tail_at - head.size());
  cut.text = StrCat(head, "\n[... ", cut.dropped, " bytes dropped ...]\n", std::string_view(ordered).substr(tail_at));
  if (static_cast<int64_t>(cut.text.size()) > limit)
    cut.text = std::string(base::Utf8Prefix(cut.text, static_cast<size_t>(std::max<int64_t>(limit, 0))));
  return cut;
}

std::string ReplaceInvalidUtf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    size_t length = 1;
    while (length < 4 && length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) ++length;
    if (base::IsValidUtf8(text.substr(0, length))) {
      out.append(text.substr(0, length));
    } else {
      out += '?';
      length = 1;
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string ListNames(const std::vector<std::string>& names, size_t limit) {
  std::string out;
  for (size_t i = 0; i < names.size() && i < limit; ++i) out += StrCat(i == 0 ? "" : ", ", names[i]);
  if (names.size() > limit) out += StrCat(" and ", names.size() - limit, " more");
  return out;
}

Explanation ExplainLaunch(std::string_view file, int line) {
  return {
      StrCat(file, ":", line,
             ": host functions and <<<>>> launches are not accepted here: a solution is device code, and its launches "
             "stand in a launch plan"),
      "remove the launcher and describe the launch in a line such as \"//@ launch kernel grid=(ceil_div(N, 256)) "
      "block=(256) args=(x, y, i32(N))\"; see docs/launch-plans.md"};
}

Explanation ExplainHostHeader(std::string_view where, std::string_view header) {
  std::string_view instead;
  bool known = false;
  for (const HostHeader& entry : kHostHeaders) {
    if (entry.name == header) {
      instead = entry.instead;
      known = true;
    }
  }
  for (std::string_view folder : kHostFolders) known |= header.substr(0, folder.size()) == folder;
  if (!known) {
    return {StrCat(where, "cannot find the header ", base::Quote(header),
                   "; found are the submission's own files, CUDA (cuda_bf16.h, mma.h), CCCL (cuda/std/array, "
                   "cub/block) and the "
                   "light standard headers (cstdint, cmath, algorithm)"),
            "send the header among the sources, or take what is needed of it into the source"};
  }
  std::string mend =
      "keep host code out of the source and describe launches in \"//@ launch\" lines; see docs/launch-plans.md";
  if (!instead.empty())
    mend = StrCat("use ", instead,
                  "; if only a host launcher needed it, remove that: launches stand in \"//@ launch\" lines "
                  "(docs/launch-plans.md)");
  return {StrCat(where, "<", header,
                 ">: host-only headers do not exist in this runtime compiler; for device code there are ",
                 instead.empty() ? "cuda/std/array, cuda/std/span and the other cuda/std headers"
                                 : StrCat(instead, " (and cuda/std/array, cuda/std/span, ...)")),
          mend};
}

Explanation ExplainFrontend(std::string_view log, const std::vector<std::string>& name_expressions,
                            const std::vector<std::string>& entries) {
  const Diagnostic* name_error = nullptr;
  std::string_view bad_expression;
  std::vector<Diagnostic> diagnostics = ParseDiagnostics(log);
  for (const Diagnostic& d : diagnostics) {
    if (!d.error) continue;
    if (d.file != "__nv_name_map") {
      constexpr std::string_view kOpen = "cannot open source file ";
      if (d.message.substr(0, kOpen.size()) == kOpen) return ExplainHostHeader(Where(d), Quoted(d.message));
      return {Sentence(StrCat(Where(d), d.message)), "mend the source; the whole log is kept"};
    }
    if (name_error == nullptr) name_error = &d;
    constexpr std::string_view kInput = "Input name expression was: ";
    size_t at = d.message.find(kInput);
    if (bad_expression.empty() && at != std::string_view::npos) bad_expression = Quoted(d.message.substr(at));
  }
  if (name_error == nullptr) return {Sentence(StrCat("the front end failed: ", base::Trim(log))), ""};
  std::string expression(base::Trim(bad_expression));
  for (const std::string& asked : name_expressions) {
    if (WithoutBlanks(asked) == WithoutBlanks(bad_expression)) expression = asked;
  }
  std::string known = entries.empty() ? "the program has no entry" : StrCat("the program has: ", ListNames(entries));
  bool plain = expression.find('<') == std::string::npos;
  std::string_view missing = Quoted(name_error->message);
  std::string_view last = expression;
  if (size_t colon = last.rfind("::"); colon != std::string_view::npos) last.remove_prefix(colon + 2);
  if (plain && name_error->message.find("instance of function template") == std::string_view::npos &&
      name_error->message.find("non-__global__") == std::string_view::npos &&
      (missing == last || missing == expression)) {
    return {StrCat("entry not found: ", expression, "; ", known),
            "launch an entry that the source defines as __global__"};
  }
  return {Sentence(StrCat("name expression ", base::Quote(expression, 200), ": ", name_error->message)),
          StrCat(known, "; a template needs all arguments: \"kernel<float, 4>\"")};
}

Explanation ExplainLink(std::string_view log, std::string_view ptx, std::string_view arch) {
  for (const Diagnostic& d : ParseDiagnostics(log)) {
    if (!d.error) continue;
    if (d.message.find("__cudaCDP2") != std::string_view::npos ||
        d.message.find("cudaLaunchDevice") != std::string_view::npos) {
      return {"kernels launched from device code (<<<>>> inside a kernel) are not accepted here",
              ExplainLaunch("", 0).mend};
    }
    if (d.message.find("Undefined reference to") != std::string_view::npos) {
      return {Sentence(StrCat("undefined function or variable: ", d.message)),
              "define it in the submission: nothing else is linked"};
    }
    if (size_t at = d.message.find("uses too much shared data (0x"); at != std::string_view::npos) {
      std::string_view numbers = d.message.substr(at + 29);
      uint64_t size = 0, most = 0;
      std::from_chars(numbers.data(), numbers.data() + numbers.size(), size, 16);
      if (size_t max = numbers.find(", 0x"); max != std::string_view::npos) {
        std::from_chars(numbers.data() + max + 4, numbers.data() + numbers.size(), most, 16);
      }
      std::string_view name = d.message.substr(0, at);
      size_t open = name.find('\''), close = name.rfind('\'');
      if (open < close) name = name.substr(open + 1, close - open - 1);
      return {StrCat("kernel ", name, " declares ", size, " bytes of static shared memory; a block of ", arch,
                     " has at most ", most),
              "use less, or dynamic shared memory: extern __shared__ in the kernel and shared= in its launch line"};
    }
    std::string where = d.in_ptx ? SourceOfPtxLine(ptx, d.line) : std::string();
    if (!where.empty()) where += ": ";
    std::string_view message = base::Trim(d.message);
    std::string target = message.find(arch) == std::string_view::npos ? StrCat(" (target ", arch, ")") : std::string();
    std::string mend = message.find("not supported on .target") != std::string_view::npos
                           ? StrCat("this program is compiled for ", arch,
                                    ": guard the instruction by architecture, or choose a device that has it")
                           : "mend the inline PTX or the declaration; the whole log is kept";
    return {Sentence(StrCat(where, message, target)), mend};
  }
  return {Sentence(StrCat("the link failed: ", base::Trim(log))), ""};
}

std::string SourceOfPtxLine(std::string_view ptx, int line) {
  std::map<std::string_view, std::string_view> files;
  std::string_view file_index, source_line;
  int number = 0;
  size_t at = 0;
  while (at < ptx.size()) {
    size_t end = std::min(ptx.find('\n', at), ptx.size());
    std::string_view text = base::Trim(ptx.substr(at, end - at));
    at = end + 1;
    ++number;
    if (number <= line && text.substr(0, 5) == ".loc\t") {
      std::vector<std::string_view> parts = base::Split(base::Trim(text.substr(5)), ' ');
      if (parts.size() >= 2) {
        file_index = parts[0];
        source_line = parts[1];
      }
    } else if (number <= line && text == "}") {
      file_index = {};  // a function ended: its lines say nothing of the next one
    } else if (text.substr(0, 6) == ".file\t") {
      std::string_view rest = base::Trim(text.substr(6));
      size_t blank = rest.find_first_of(" \t");
      if (blank != std::string_view::npos) files[rest.substr(0, blank)] = Quoted(rest);
    }
  }
  auto found = files.find(file_index);
  if (file_index.empty() || found == files.end()) return "";
  return StrCat(found->second, ":", source_line);
}

std::string NormalisePtxPaths(std::string_view ptx, const std::string& sources,
                              const std::vector<std::string>& includes) {
  std::vector<std::pair<std::string, std::string_view>> prefixes;  // and what stands for them
  auto add = [&prefixes](const std::string& folder, std::string_view stands) {
    if (folder.size() > 1) prefixes.emplace_back(folder.back() == '/' ? folder : folder + "/", stands);
  };
  add(sources, "");
  for (const std::string& folder : includes) add(folder, "/toolkit/include/");
  std::sort(prefixes.begin(), prefixes.end(),
            [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  std::string out;
  out.reserve(ptx.size());
  while (!ptx.empty()) {
    size_t end = ptx.find('\n');
    end = end == std::string_view::npos ? ptx.size() : end + 1;
    std::string_view line = ptx.substr(0, end);
    ptx.remove_prefix(end);
    size_t quote = line.find('"');
    if (base::Trim(line).substr(0, 5) == ".file" && quote != std::string_view::npos) {
      out.append(line.substr(0, quote + 1));
      line.remove_prefix(quote + 1);
      for (const auto& [prefix, stands] : prefixes) {
        if (!TakePrefix(line, prefix)) continue;
        out.append(stands);
        break;
      }
    }
    out.append(line);
  }
  return out;
}

}  // namespace solstice::compile
