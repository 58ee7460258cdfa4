// For this folder's tests: y = 2 x + 1 as a definition, a plan and PTX.
#pragma once

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/ptx/analysis.h"
#include "solstice/v1/worker.pb.h"

namespace solstice::worker {

template <typename Message>
Message FromText(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

inline v1::Definition AffineDefinition() {
  return FromText<v1::Definition>(R"pb(
    name: "affine"
    axes { name: "n" variable: true }
    inputs { name: "x" dtype: FLOAT32 shape: "n" }
    outputs { name: "y" dtype: FLOAT32 shape: "n" }
  )pb");
}

inline v1::Workload AffineWorkload(int64_t n) {
  v1::Workload workload = FromText<v1::Workload>(R"pb(
    uuid: "w"
    axes { name: "n" }
    inputs { name: "x" random: true }
    tolerance { max_atol: 0.01 max_rtol: 0.01 required_matched_ratio: 0.99 }
  )pb");
  workload.mutable_axes(0)->set_value(n);
  return workload;
}

// y[i] = a x[i] + 1 for i < n, in the form of nvJitLink's PTX. `a` and `extra`, instructions before the end, make wrong
// ones.
inline std::string AffinePtx(const std::string& a = "0f40000000", const std::string& extra = "") {
  return R"(
.version 9.0
.target sm_90a
.address_size 64
.visible .entry affine(.param .u64 affine_param_0, .param .u64 affine_param_1, .param .u32 affine_param_2)
{
  .reg .pred %p<3>;
  .reg .b32 %r<8>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<10>;
  ld.param.u64 %rd1, [affine_param_0];
  ld.param.u64 %rd2, [affine_param_1];
  ld.param.u32 %r5, [affine_param_2];
  cvta.to.global.u64 %rd3, %rd1;
  cvta.to.global.u64 %rd4, %rd2;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r1, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r1, %r5;
  @%p1 bra $L__BB0_2;
  mul.wide.s32 %rd5, %r1, 4;
  add.s64 %rd6, %rd3, %rd5;
  add.s64 %rd7, %rd4, %rd5;
  ld.global.f32 %f1, [%rd6];
  fma.rn.f32 %f2, %f1, )" +
         a + R"(, 0f3F800000;
  st.global.f32 [%rd7], %f2;
)" + extra +
         R"(
$L__BB0_2:
  ret;
}
)";
}

inline const char kAffinePlan[] = "launch affine grid=(ceil_div(n, 128)) block=(128) args=(x, y, i32(n))";

inline v1::internal::SpecialisedPlan Specialised(const std::string& line, int64_t n) {
  v1::Definition definition = AffineDefinition();
  auto plan = plan::Plan::Parse({{"kernel.cu", 1, line}}, &definition);
  EXPECT_TRUE(plan.ok()) << plan.status();
  v1::DeviceProperties device;
  device.set_arch("sm_90a");
  device.set_sm_count(132);
  auto made = plan::Specialise(*plan, definition, AffineWorkload(n), {}, device);
  EXPECT_TRUE(made.ok() && !made->rejection.rejected()) << made.status() << (made.ok() ? made->rejection.reason : "");
  return made->plan;
}

inline v1::internal::LoadProgram ProgramOf(const std::string& ptx) {
  v1::internal::LoadProgram program;
  program.set_ptx(ptx);
  auto module = ptx::Parse(ptx);
  EXPECT_TRUE(module.ok()) << module.status();
  for (const v1::Kernel& kernel : ptx::DescribeKernels(*module)) *program.add_kernels() = kernel;
  return program;
}

// A Prepare of y = 2 x + 1 whose reference is program 0 of the judge.
inline v1::internal::Prepare AffinePrepare(int64_t n, const std::string& line = kAffinePlan) {
  v1::internal::Prepare prepare;
  *prepare.mutable_definition() = AffineDefinition();
  *prepare.mutable_workload() = AffineWorkload(n);
  *prepare.mutable_plan() = Specialised(line, n);
  *prepare.mutable_kernels() = ProgramOf(AffinePtx()).kernels();
  *prepare.mutable_reference_plan() = Specialised(kAffinePlan, n);
  prepare.set_seed(1);
  prepare.set_structure_seed(2);
  return prepare;
}

// The first slot of what a judge prepared, all its descriptors fresh.
inline void FillRun(const v1::internal::Prepared& prepared, v1::internal::Run* run) {
  run->Clear();
  *run->mutable_plan() = prepared.plan();
  if (prepared.slots_size() > 0) *run->mutable_slot() = prepared.slots(0);
  *run->mutable_described() = prepared.described();
}

}  // namespace solstice::worker
