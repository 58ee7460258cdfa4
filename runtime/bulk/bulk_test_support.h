// For tests of bulk work: the trusted kernels, really compiled, on the emulator.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/bulk/bulk.h"
#include "runtime/compile/test_compiler.h"
#include "runtime/device/emulator/emulator.h"

namespace solstice::bulk {

inline const v1::internal::Program& TestProgram() {
  static const auto* program = [] {
    auto compiled = compile::TestCompiler()->Compile(KernelSource("sm_90a"), {});
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    auto* made = new v1::internal::Program(compiled.ok() ? *compiled : v1::internal::Program());
    EXPECT_EQ(made->verdict(), v1::PASSED) << made->reason() << "\n" << made->log();
    return made;
  }();
  return *program;
}

// A device with the kernels, both implementations over it, and buffers.
class BulkTest : public testing::Test {
 protected:
  void SetUp() override {
    device_ = device::MakeEmulator();
    v1::internal::LoadProgram load;
    load.set_ptx(TestProgram().ptx());
    v1::internal::RunOutcome outcome;
    auto module = device_->Load(load, &outcome);
    ASSERT_TRUE(module.ok()) << module.status();
    ASSERT_NE(*module, nullptr) << outcome.reason();
    module_ = *std::move(module);
    auto made = MakeKernelBulk(device_.get(), module_.get());
    ASSERT_TRUE(made.ok()) << made.status();
    kernels_ = *std::move(made);
    host_ = MakeHostBulk(device_.get());
  }
  void TearDown() override {
    kernels_.reset();
    host_.reset();
    buffers_.clear();
    module_.reset();
    device_.reset();
  }

  // The address of a copy of `content`, `shift` bytes behind a boundary of 256.
  device::Address Put(const std::string& content, int64_t shift = 0) {
    const int64_t granularity = device_->granularity();
    const int64_t bytes = static_cast<int64_t>(content.size()) + shift;
    const int64_t mapped = (bytes + granularity) / granularity * granularity;
    auto buffer = device_->Allocate(mapped, {"test", 0, mapped, "output"});
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    buffers_.push_back(*std::move(buffer));
    const device::Address address = buffers_.back()->address() + static_cast<device::Address>(shift);
    Write(address, content);
    return address;
  }
  void Write(device::Address address, const std::string& content) {
    EXPECT_TRUE(device_->CopyIn(address, {reinterpret_cast<const uint8_t*>(content.data()), content.size()}).ok());
  }
  std::string Get(device::Address address, int64_t bytes) {
    std::string content(static_cast<size_t>(bytes), '\0');
    EXPECT_TRUE(device_->CopyOut({reinterpret_cast<uint8_t*>(content.data()), content.size()}, address).ok());
    return content;
  }

  std::unique_ptr<device::Device> device_;
  std::unique_ptr<device::Module> module_;
  std::unique_ptr<Bulk> kernels_, host_;
  std::vector<std::unique_ptr<device::Buffer>> buffers_;
};

inline v1::Tensor MakeTensor(const std::string& name, v1::DType dtype) {
  v1::Tensor tensor;
  tensor.set_name(name);
  tensor.set_dtype(dtype);
  return tensor;
}

inline v1::InputSource RandomSource() {
  v1::InputSource source;
  source.set_random(true);
  return source;
}

#define EXPECT_OK(expression)                       \
  do {                                              \
    const Status expected_ok_ = (expression);       \
    EXPECT_TRUE(expected_ok_.ok()) << expected_ok_; \
  } while (false)

}  // namespace solstice::bulk
