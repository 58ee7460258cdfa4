#include "runtime/device/cuda/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/device/cuda/driver.h"

namespace solstice::device::cuda {
namespace {

using testing::HasSubstr;
using v1::internal::Fault;
using v1::internal::RunOutcome;

TEST(OutcomeOfTest, WhatTheSubmissionDidIsAFault) {
  const std::pair<CUresult, Fault::Kind> kinds[] = {
      {CUDA_ERROR_ILLEGAL_ADDRESS, Fault::OUT_OF_BOUNDS},
      {CUDA_ERROR_MISALIGNED_ADDRESS, Fault::MISALIGNED},
      {CUDA_ERROR_ASSERT, Fault::ASSERT},
      {CUDA_ERROR_LAUNCH_FAILED, Fault::TRAP},
      {CUDA_ERROR_ILLEGAL_INSTRUCTION, Fault::TRAP},
      {CUDA_ERROR_HARDWARE_STACK_ERROR, Fault::STACK_OVERFLOW},
      {CUDA_ERROR_INVALID_ADDRESS_SPACE, Fault::OUT_OF_BOUNDS},
      {CUDA_ERROR_INVALID_PC, Fault::OTHER},
  };
  for (const auto& [result, kind] : kinds) {
    RunOutcome outcome = OutcomeOf(result, {"k"});
    EXPECT_EQ(outcome.kind(), RunOutcome::FAULT) << ErrorName(result);
    EXPECT_EQ(outcome.fault().kind(), kind) << ErrorName(result);
    EXPECT_EQ(outcome.fault().kernel(), "k");
    EXPECT_THAT(outcome.reason(), HasSubstr("kernel k "));
    EXPECT_THAT(outcome.reason(), HasSubstr(ErrorName(result)));
    EXPECT_FALSE(IsDeviceLost(result));
  }
}

TEST(OutcomeOfTest, SeveralKernelsAreAllNamed) {
  RunOutcome outcome = OutcomeOf(CUDA_ERROR_ILLEGAL_ADDRESS, {"first", "second", "first"});
  EXPECT_THAT(outcome.reason(), HasSubstr("one of the kernels first, second"));
  EXPECT_EQ(outcome.fault().kernel(), "");
}

TEST(OutcomeOfTest, MemoryIsNoFault) {
  EXPECT_EQ(OutcomeOf(CUDA_ERROR_OUT_OF_MEMORY, {"k"}).kind(), RunOutcome::OUT_OF_MEMORY);
  EXPECT_EQ(RefusedLaunch(CUDA_ERROR_OUT_OF_MEMORY, "k").kind(), RunOutcome::OUT_OF_MEMORY);
}

TEST(RefusedLaunchTest, IsAnInvalidLaunch) {
  RunOutcome outcome = RefusedLaunch(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "k");
  EXPECT_EQ(outcome.kind(), RunOutcome::FAULT);
  EXPECT_EQ(outcome.fault().kind(), Fault::INVALID_LAUNCH);
  EXPECT_THAT(outcome.reason(), HasSubstr("registers or shared memory"));
}

TEST(CudaErrorTest, OursAndMemoryAndALostDeviceAreToldApart) {
  EXPECT_EQ(CudaError("x", CUDA_ERROR_INVALID_HANDLE).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(CudaError("x", CUDA_ERROR_OUT_OF_MEMORY).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(CudaError("x", CUDA_ERROR_ECC_UNCORRECTABLE).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrorName(static_cast<CUresult>(424242)), "CUDA error 424242");
}

// With a driver here this says nothing; tests/device shows that case.
TEST(DriverTest, MissingDriverIsAClearMessage) {
  auto driver = Driver::Open("libcuda-that-is-not-there.so.1");
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::MessageOf(driver.status()), HasSubstr("there is no CUDA driver here"));
  EXPECT_THAT(base::MendOf(driver.status()), HasSubstr("emulator"));
  EXPECT_FALSE(Driver::Opened());
}

}  // namespace
}  // namespace solstice::device::cuda
