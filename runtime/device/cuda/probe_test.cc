#include "runtime/device/cuda/probe.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/strings.h"
#include "runtime/device/cuda/nvml.h"
#include "runtime/device/cuda/properties.h"

namespace solstice::device::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const char kFakeNvml[] = SOLSTICE_BINARY_DIR "/tests/libfake_nvml.so";

bool HasDriver() { return ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr; }

TEST(ArchTest, NamesTheSpecificVariantWhereThereIsOne) {
  EXPECT_EQ(ArchName(9, 0), "sm_90a");
  EXPECT_EQ(ArchName(10, 0), "sm_100a");
  EXPECT_EQ(ArchName(10, 3), "sm_103a");
  EXPECT_EQ(ArchName(12, 0), "sm_120a");
  EXPECT_EQ(ArchName(8, 0), "sm_80");
  EXPECT_EQ(ArchName(8, 9), "sm_89");
}

TEST(ArchTest, OnlyWhatIsCompiledForIsDriven) {
  for (const char* arch : {"sm_90a", "sm_100a", "sm_103a"}) EXPECT_TRUE(CheckDrivable("a GPU", arch).ok()) << arch;
  for (const char* arch : {"sm_80", "sm_89", "sm_90", "sm_120a", ""}) {
    Status status = CheckDrivable("NVIDIA A100", arch);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << arch;
    EXPECT_THAT(base::MessageOf(status), HasSubstr(base::StrCat("NVIDIA A100 (", arch, ")")));
  }
}

TEST(UuidTest, IsWrittenAsTheDriverTakesIt) {
  const char bytes[] = "\x8a\xc3\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\xff";
  EXPECT_EQ(UuidText(std::string_view(bytes, 16)), "8ac30001-0203-0405-0607-08090a0b0cff");
}

TEST(ThrottleTest, WordsOfEveryBit) {
  EXPECT_THAT(ThrottleWords(0), IsEmpty());
  EXPECT_THAT(ThrottleWords(0x1), IsEmpty()) << "idle slows nothing down";
  EXPECT_THAT(ThrottleWords(0x100), IsEmpty());
  EXPECT_THAT(ThrottleWords(0x4), ElementsAre("power cap"));
  EXPECT_THAT(ThrottleWords(0x1 | 0x8 | 0x40 | 0x80 | 0x20 | 0x10 | 0x2),
              ElementsAre("hardware slowdown", "hardware thermal slowdown", "hardware power brake",
                          "software thermal slowdown", "sync boost", "application clocks"));
  EXPECT_THAT(ThrottleWords(uint64_t{1} << 63 | 0x400), ElementsAre("reason 10", "reason 63"));
}

TEST(NvmlTest, DescribesAGpu) {
  auto nvml = Nvml::Open(kFakeNvml);
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  EXPECT_EQ((*nvml)->DriverVersion(), "580.1.2");
  v1::GpuProbe gpu;
  gpu.set_uuid("GPU-fake");
  ASSERT_TRUE((*nvml)->Describe(&gpu).ok());
  EXPECT_EQ(gpu.sm_clock_mhz(), 345);
  EXPECT_EQ(gpu.max_sm_clock_mhz(), 1980);
  EXPECT_EQ(gpu.memory_clock_mhz(), 2619);
  EXPECT_EQ(gpu.max_memory_clock_mhz(), 2620);
  EXPECT_DOUBLE_EQ(gpu.power_w(), 76.5);
  EXPECT_DOUBLE_EQ(gpu.power_limit_w(), 700);
  EXPECT_EQ(gpu.memory_used_bytes(), 600);
  EXPECT_THAT(gpu.throttle_reasons(), ElementsAre("power cap"));
  EXPECT_EQ(gpu.ecc_mode(), 1);
  EXPECT_EQ(gpu.persistence_mode(), 0);
  // More than the first guess has room for; what the first uses is not told.
  EXPECT_TRUE(gpu.processes_known());
  ASSERT_EQ(gpu.processes_size(), 40);
  EXPECT_EQ(gpu.processes(0).memory_bytes(), 0);
  EXPECT_EQ(gpu.processes(39).pid(), 40);
  EXPECT_EQ(gpu.processes(39).memory_bytes(), 39);
}

TEST(NvmlTest, WhatItDoesNotTellStaysUnknown) {
  auto nvml = Nvml::Open(kFakeNvml);
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  v1::GpuProbe gpu;
  gpu.set_uuid("MIG-unknown");
  gpu.set_pci("0000:01:00.0");  // by which it is found
  ASSERT_TRUE((*nvml)->Describe(&gpu).ok());
  EXPECT_EQ(gpu.sm_clock_mhz(), 345);
  EXPECT_EQ(gpu.temperature_c(), 0) << "the query failed";
  EXPECT_EQ(gpu.mig_mode(), -1) << "there is no such function";
  v1::GpuProbe other;
  other.set_uuid("GPU-other");
  EXPECT_EQ((*nvml)->Describe(&other).code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(other.processes_known());
}

TEST(NvmlTest, SaysWhyItIsNotThere) {
  auto missing = Nvml::Open("/nowhere/libnvidia-ml.so.1");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::MessageOf(missing.status()), HasSubstr("there is no NVML here: /nowhere/libnvidia-ml.so.1"));
  ::setenv("FAKE_NVML", "broken", 1);
  auto broken = Nvml::Open(kFakeNvml);
  ::unsetenv("FAKE_NVML");
  EXPECT_EQ(base::MessageOf(broken.status()), "NVML does not start: Driver Not Loaded");
}

TEST(ProbeTest, WithoutADriverSaysSo) {
  if (HasDriver()) GTEST_SKIP() << "there is a driver here";
  ::setenv("CUDA_VISIBLE_DEVICES", "0,2", 1);
  v1::HostProbe host = ProbeHost({});
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_THAT(host.driver_error(), HasSubstr("there is no CUDA driver here: libcuda.so.1"));
  EXPECT_THAT(host.driver_mend(), HasSubstr("emulator"));
  EXPECT_FALSE(host.driver_found());
  EXPECT_THAT(host.nvml_error(), HasSubstr("there is no NVML here"));
  EXPECT_TRUE(host.has_visible_devices());
  EXPECT_EQ(host.visible_devices(), "0,2");
  EXPECT_EQ(host.cuda_version(), "");
  EXPECT_EQ(host.gpus_size(), 0);
  EXPECT_FALSE(ProbeHost({}).has_visible_devices());
}

TEST(ProbeTest, NamesTheCuptiItCannotOpen) {
  ProbeOptions options;
  options.cupti_library = "/nowhere/libcupti.so.13";
  v1::HostProbe host = ProbeHost(options);
  EXPECT_EQ(host.cupti_library(), "/nowhere/libcupti.so.13");
  EXPECT_THAT(host.cupti_error(), HasSubstr("CUPTI cannot be opened: /nowhere/libcupti.so.13"));
  EXPECT_EQ(host.cupti_version(), "");
  // A library, but not CUPTI.
  options.cupti_library = kFakeNvml;
  EXPECT_THAT(ProbeHost(options).cupti_error(), HasSubstr("libfake_nvml.so does not tell its version"));
}

TEST(ProbeTest, CuptiVersions) {
  EXPECT_EQ(CuptiVersionText(130001), "13.0.1");
  EXPECT_EQ(CuptiVersionText(121300), "12.13.0");
  EXPECT_EQ(CuptiVersionText(24), "API 24");
}

TEST(DescentTest, FollowsParents) {
  EXPECT_TRUE(DescendsFrom(::getpid(), ::getpid()));
  EXPECT_TRUE(DescendsFrom(::getpid(), ::getppid()));
  EXPECT_FALSE(DescendsFrom(::getppid(), ::getpid()));
  EXPECT_FALSE(DescendsFrom(0, ::getpid()));
  EXPECT_FALSE(DescendsFrom(2147483000, 2147483000)) << "no such process";
  int gate[2];
  ASSERT_EQ(::pipe(gate), 0);
  pid_t child = ::fork();
  if (child == 0) {
    ::close(gate[1]);
    char byte;
    ::_exit(::read(gate[0], &byte, 1) == 0 ? 0 : 1);
  }
  EXPECT_TRUE(DescendsFrom(child, ::getpid()));
  ::close(gate[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::close(gate[0]);
}

}  // namespace
}  // namespace solstice::device::cuda
