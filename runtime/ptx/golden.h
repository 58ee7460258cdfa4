// Golden PTX of the tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/ptx/module.h"

namespace solstice::ptx {

inline std::string TestdataFolder() { return std::string(SOLSTICE_SOURCE_DIR) + "/runtime/ptx/testdata"; }

// Made from testdata/<name>.cu by NVRTC -dlto -lineinfo and nvJitLink -lto -ptx for sm_90a; paths replaced.
inline std::string Golden(const std::string& name) {
  auto text = base::ReadFile(TestdataFolder() + "/" + name + ".ptx", 1 << 20);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *text : "";
}

inline std::vector<std::string> GoldenNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(TestdataFolder())) {
    if (entry.path().extension() == ".ptx") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// A module around the body of one entry "k" with parameters p0 (u64) and p1 (u32).
inline std::string Around(const std::string& body, const std::string& before = "") {
  return ".version 9.0\n.target sm_90a\n.address_size 64\n" + before +
         "\n.visible .entry k(.param .u64 p0, .param .u32 p1)\n{\n" + body + "\n}\n";
}

inline Module MustParse(const std::string& text) {
  auto module = Parse(text);
  EXPECT_TRUE(module.ok()) << module.status() << "\n" << text.substr(0, 2000);
  return module.ok() ? *std::move(module) : Module();
}

}  // namespace solstice::ptx
