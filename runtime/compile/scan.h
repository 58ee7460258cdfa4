// A token scan of CUDA C++ text: comments, strings and raw strings are skipped, preprocessor branches that are
// certainly inactive under NVRTC are left out. It finds what NVRTC itself would drop silently (kernel launches, with
// -default-device) and what messages need (includes, kernel names). Pure functions, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace solstice::compile {

struct SourceScan {
  struct Include {
    int line = 0;
    std::string name;
    bool angled = false;
    size_t offset = 0;  // of the name in the text
  };
  struct KernelName {
    int line = 0;
    std::string name;  // qualified: "ns::kernel"
    bool is_template = false;
  };
  std::vector<Include> includes;
  std::vector<int> launches;  // lines with <<<
  std::vector<KernelName> kernels;
  bool computed_include = false;  // an #include names a macro
};

SourceScan Scan(std::string_view text);

// Every word of `text` that the preprocessor may take for an identifier: more than there are, never fewer.
std::vector<std::string_view> Identifiers(std::string_view text);

// `name` relative to the folder of `from`, "." and ".." resolved; "" if it leaves the root.
std::string ResolvePath(std::string_view from, std::string_view name);

}  // namespace solstice::compile
