// For tests: one real compiler over the toolkit that FindToolkit finds, and short ways to call it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/nvjitlink/nvjitlink_linker.h"
#include "runtime/compile/nvrtc/nvrtc_frontend.h"

namespace solstice::compile {

inline std::vector<std::string> TestIncludePaths() {
  StatusOr<Toolkit> toolkit = FindToolkit();
  EXPECT_TRUE(toolkit.ok()) << toolkit.status();
  if (!toolkit.ok()) return {};
  return {toolkit->include, toolkit->include + "/cccl", std::string(SOLSTICE_SOURCE_DIR) + "/runtime/compile/headers"};
}

// Never destroyed; nullptr (and a failure) if there is no toolkit.
inline Compiler* TestCompiler() {
  static Compiler* compiler = []() -> Compiler* {
    StatusOr<Toolkit> toolkit = FindToolkit();
    if (!toolkit.ok()) return nullptr;
    auto frontend = OpenNvrtc(toolkit->nvrtc);
    auto linker = OpenNvJitLink(toolkit->nvjitlink);
    if (!frontend.ok() || !linker.ok()) return nullptr;
    return new Compiler(*std::move(frontend), *std::move(linker), {TestIncludePaths(), "sha256:test"});
  }();
  return compiler;
}

struct TestRequest {
  std::string text;
  std::vector<std::string> options, names, defines;
  std::vector<std::pair<std::string, std::string>> files;
  std::string arch = "sm_90a", path = "kernel.cu";
  v1::internal::CompileLimits limits;
};

inline v1::internal::ProgramSource MakeSource(const TestRequest& request) {
  v1::internal::ProgramSource source;
  v1::SourceFile* main = source.add_sources();
  main->set_path(request.path);
  main->set_content(request.text);
  for (const auto& file : request.files) {
    v1::SourceFile* other = source.add_sources();
    other->set_path(file.first);
    other->set_content(file.second);
  }
  for (const auto& option : request.options) source.add_options(option);
  for (const auto& name : request.names) source.add_name_expressions(name);
  for (const auto& define : request.defines) source.add_defines(define);
  source.set_arch(request.arch);
  source.set_keep_all_entries(request.names.empty());
  return source;
}

inline v1::internal::Program CompileTest(const TestRequest& request) {
  Compiler* compiler = TestCompiler();
  EXPECT_NE(compiler, nullptr) << "no CUDA toolkit, or its libraries cannot be opened";
  if (compiler == nullptr) return {};
  auto program = compiler->Compile(MakeSource(request), request.limits);
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *program : v1::internal::Program();
}

inline v1::internal::Program CompileTest(const std::string& text, std::vector<std::string> options = {},
                                         std::vector<std::string> names = {}) {
  TestRequest request;
  request.text = text;
  request.options = std::move(options);
  request.names = std::move(names);
  return CompileTest(request);
}

inline const std::string kAffineBody =
    "(const float* x, float* y, long long n) {\n"
    "  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) y[i] = 2.0f * x[i] + 1.0f;\n}\n";
inline const std::string kAffine = "extern \"C\" __global__ void k" + kAffineBody;

}  // namespace solstice::compile
