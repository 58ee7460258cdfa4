// For this folder's tests: a definition, a workload, a device, and short ways to plan with them.
#pragma once

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/base/strings.h"
#include "runtime/plan/plan.h"

namespace solstice::plan {

template <typename Message>
Message FromText(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

// y[M, N] from x[M, N], w[N] (float32), idx[M] (int32) and the scalars alpha (f32), count (i32), flag (bool).
inline v1::Definition TestDefinition() {
  return FromText<v1::Definition>(R"pb(
    name: "test"
    axes { name: "M" variable: true }
    axes { name: "N" constant: 1024 }
    axes { name: "half" expression: "N // 2" }
    inputs { name: "x" dtype: FLOAT32 shape: "M" shape: "N" }
    inputs { name: "w" dtype: FLOAT32 shape: "N" }
    inputs { name: "idx" dtype: INT32 shape: "M" }
    inputs { name: "alpha" dtype: FLOAT32 scalar: true }
    inputs { name: "count" dtype: INT32 scalar: true }
    inputs { name: "flag" dtype: BOOL scalar: true }
    inputs { name: "tiny" dtype: FLOAT8_E4M3FN scalar: true }
    outputs { name: "y" dtype: FLOAT32 shape: "M" shape: "N" }
  )pb");
}

inline v1::Workload TestWorkload(int64_t m) {
  v1::Workload workload = FromText<v1::Workload>(R"pb(
    uuid: "w1"
    axes { name: "M" }
    inputs { name: "x" random: true }
    inputs { name: "w" random: true }
    inputs { name: "idx" random: true }
    inputs {
      name: "alpha"
      scalar { number: 0.5 }
    }
    inputs {
      name: "count"
      scalar { integer: 3 }
    }
    inputs {
      name: "flag"
      scalar { boolean: true }
    }
    inputs {
      name: "tiny"
      scalar { number: 1 }
    }
  )pb");
  workload.mutable_axes(0)->set_value(m);
  return workload;
}

inline v1::DeviceProperties TestDevice() {
  return FromText<v1::DeviceProperties>(R"pb(
    kind: EMULATOR
    name: "emulator"
    arch: "sm_90a"
    sm_count: 132
    max_shared_bytes: 232448
    max_threads_per_block: 1024
    max_threads_per_sm: 2048
    max_registers_per_block: 65536
    shared_bytes_per_sm: 233472
    l2_bytes: 52428800
    memory_bytes: 1000000000
    max_grid: 2147483647
    max_grid: 65535
    max_grid: 65535
    max_block: 1024
    max_block: 1024
    max_block: 64
  )pb");
}

// A kernel `k` with these PTX parameter types, `b8` ones as "b8:<bytes>:<alignment>".
inline v1::Kernel TestKernel(const std::string& name, const std::vector<std::string>& types) {
  v1::Kernel kernel;
  kernel.set_name(name);
  kernel.set_registers(32);
  int64_t offset = 0;
  for (const std::string& type : types) {
    v1::KernelParameter* parameter = kernel.add_parameters();
    std::vector<std::string_view> parts = base::Split(type, ':');
    parameter->set_type(std::string(parts[0]));
    int64_t bytes =
        parts.size() > 1 ? std::stol(std::string(parts[1])) : std::stol(type.substr(type.find_first_of("123468"))) / 8;
    parameter->set_bytes(bytes);
    parameter->set_alignment(parts.size() > 2 ? std::stol(std::string(parts[2])) : bytes);
    parameter->set_offset(offset);
    offset += bytes;
  }
  return kernel;
}

// One plan line a line of `text`, in "plan.cu" from line 1.
inline std::vector<PlanLine> Lines(const std::string& text) {
  std::vector<PlanLine> lines;
  for (std::string_view line : base::Split(text, '\n')) {
    lines.push_back({"plan.cu", static_cast<int>(lines.size()) + 1, std::string(line)});
  }
  return lines;
}

// "" or the error and, after " | ", its mend.
inline std::string Explain(const Status& status) {
  if (status.ok()) return "";
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  std::string mend = base::MendOf(status);
  return base::MessageOf(status) + (mend.empty() ? "" : " | " + mend);
}

inline std::string Explain(const Rejection& rejection) {
  if (!rejection.rejected()) return "";
  return v1::Verdict_Name(rejection.verdict) + ": " + rejection.reason +
         (rejection.mend.empty() ? "" : " | " + rejection.mend);
}

inline std::string ParseError(const std::string& text) {
  v1::Definition definition = TestDefinition();
  return Explain(Plan::Parse(Lines(text), &definition).status());
}

inline SpecialiseResult SpecialiseText(const std::string& text, int64_t m = 8,
                                       const std::vector<v1::NamedNumber>& parameters = {}) {
  v1::Definition definition = TestDefinition();
  StatusOr<Plan> plan = Plan::Parse(Lines(text), &definition);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return {};
  StatusOr<SpecialiseResult> result = Specialise(*plan, definition, TestWorkload(m), parameters, TestDevice());
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : SpecialiseResult();
}

inline BindResult BindText(const std::string& text, const std::vector<v1::Kernel>& kernels, int64_t m = 8) {
  SpecialiseResult specialised = SpecialiseText(text, m);
  EXPECT_EQ(Explain(specialised.rejection), "");
  StatusOr<BindResult> result = Bind(specialised.plan, TestDefinition(), TestWorkload(m), kernels, TestDevice());
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : BindResult();
}

}  // namespace solstice::plan
