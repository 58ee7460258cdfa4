#include "client/lib/doctor.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "client/lib/evaluation_json.h"

namespace solstice::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

v1::ServerInfo FromText(const std::string& text) {
  v1::ServerInfo info;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &info)) << text;
  return info;
}

const char kNoGpu[] = R"pb(
  devices { kind: EMULATOR arch: "sm_90a" }
  host { driver_error: "there is no CUDA driver here" driver_mend: "install it" nvml_error: "no NVML" })pb";

const char kGpu[] = R"pb(
  devices { kind: CUDA ordinal: 0 }
  probed { seconds: 1000 }
  host {
    driver_found: true
    gpu_present: true
    driver_version: "580.1"
    cuda_version: "13.0"
    cupti_library: "/l/libcupti.so.13"
    cupti_version: "13.0.1"
    gpus {
      properties { kind: CUDA name: "NVIDIA H200" arch: "sm_90a" ordinal: 0 sm_count: 132 memory_bytes: 150000000000 }
      uuid: "GPU-1"
      pci: "0000:00:06.0"
      mig_mode: 0
      ecc_mode: 1
      persistence_mode: -1
      sm_clock_mhz: 345
      max_sm_clock_mhz: 1980
      power_w: 76.5
      temperature_c: 31
      processes_known: true
      processes { pid: 7 memory_bytes: 500 ours: true visible: true }
    }
  })pb";

std::vector<std::string> Reasons(const v1::ServerInfo& info) {
  std::vector<std::string> reasons;
  for (const Finding& finding : Findings(info)) reasons.push_back(finding.reason);
  return reasons;
}

TEST(FindingsTest, NothingToSayWhereThereIsNoGpuOrAllIsWell) {
  EXPECT_THAT(Reasons(FromText(kNoGpu)), IsEmpty());
  EXPECT_FALSE(GpuUnusable(FromText(kNoGpu)));
  EXPECT_THAT(Reasons(FromText(kGpu)), IsEmpty());
  EXPECT_FALSE(GpuUnusable(FromText(kGpu)));
}

TEST(FindingsTest, AGpuWithoutAWorkingDriverIsUnusable) {
  v1::ServerInfo info = FromText(kNoGpu);
  info.mutable_host()->set_gpu_present(true);
  EXPECT_TRUE(GpuUnusable(info));
  EXPECT_THAT(Reasons(info), ElementsAre("no GPU can be used: there is no CUDA driver here"));
  EXPECT_EQ(Findings(info)[0].mend, "install it");
}

TEST(FindingsTest, ADriverWithoutAGpuIsTold) {
  v1::ServerInfo info = FromText(kNoGpu);
  info.mutable_host()->set_driver_found(true);
  EXPECT_FALSE(GpuUnusable(info)) << "nothing is there to use";
  EXPECT_THAT(Reasons(info), ElementsAre(HasSubstr("no GPU can be used")));
}

TEST(FindingsTest, WhatIsHiddenIsNotMeantToBeUsed) {
  v1::ServerInfo info = FromText(kNoGpu);
  info.mutable_host()->set_driver_found(true);
  info.mutable_host()->set_gpu_present(true);
  info.mutable_host()->set_has_visible_devices(true);
  EXPECT_TRUE(GpuUnusable(info)) << "the driver may be broken";
  info.mutable_host()->set_none_visible(true);
  EXPECT_FALSE(GpuUnusable(info));
  EXPECT_THAT(Reasons(info), ElementsAre("CUDA_VISIBLE_DEVICES=\"\" hides every GPU"));
}

TEST(FindingsTest, OldGpus) {
  v1::ServerInfo info = FromText(kGpu);
  info.mutable_host()->mutable_gpus(0)->set_unusable("NVIDIA A100 (sm_80): too old");
  EXPECT_TRUE(GpuUnusable(info));
  EXPECT_THAT(Reasons(info), ElementsAre("cuda:0 is left out: NVIDIA A100 (sm_80): too old"));
  *info.mutable_host()->add_gpus() = FromText(kGpu).host().gpus(0);
  EXPECT_FALSE(GpuUnusable(info)) << "the other will do";
}

TEST(FindingsTest, PageableMemory) {
  v1::ServerInfo info = FromText(kGpu);
  v1::GpuProbe* gpu = info.mutable_host()->mutable_gpus(0);
  gpu->set_pageable_memory_access(true);
  ASSERT_THAT(Reasons(info), ElementsAre(HasSubstr("pageable host memory (HMM)")));
  EXPECT_THAT(Findings(info)[0].reason, HasSubstr("not ranked"));
  EXPECT_THAT(Findings(info)[0].mend, HasSubstr("uvm_disable_hmm=1"));
  gpu->set_host_page_tables(true);
  ASSERT_THAT(Reasons(info), ElementsAre(HasSubstr("pageable host memory (ATS)")));
  EXPECT_THAT(Findings(info)[0].mend, Not(HasSubstr("uvm_disable_hmm")));
}

TEST(FindingsTest, OtherUsersAreNamedAndOursAreNot) {
  v1::ServerInfo info = FromText(kGpu);
  v1::GpuProbe* gpu = info.mutable_host()->mutable_gpus(0);
  v1::GpuProcess* other = gpu->add_processes();
  other->set_pid(4711);
  other->set_memory_bytes(int64_t{3} << 30);
  other->set_visible(true);
  ASSERT_THAT(Reasons(info), ElementsAre("cuda:0 has other users, and timings suffer: pid 4711 (3.0 GiB)"));
  other->set_visible(false);
  ASSERT_THAT(Reasons(info), ElementsAre(HasSubstr("cannot see: pid 4711 (3.0 GiB); the server's own workers may be")));
  other->set_visible(true);
  for (int i = 0; i < 20; ++i) *gpu->add_processes() = *other;
  EXPECT_THAT(Reasons(info)[0], testing::EndsWith("pid 4711 (3.0 GiB), ..."));
}

TEST(FindingsTest, WhatTimingsNeed) {
  v1::ServerInfo info = FromText(kGpu);
  info.mutable_host()->set_nvml_error("there is no NVML here");
  info.mutable_host()->set_cupti_error("CUPTI cannot be opened");
  v1::GpuProbe* gpu = info.mutable_host()->mutable_gpus(0);
  gpu->add_throttle_reasons("power cap");
  gpu->set_mig_mode(1);
  EXPECT_THAT(Reasons(info),
              ElementsAre(HasSubstr("cuda:0 is a MIG instance"), HasSubstr("below its clocks: power cap"),
                          HasSubstr("cannot be told: there is no NVML here"),
                          HasSubstr("CUPTI cannot be opened; latencies are taken by events")));
  EXPECT_THAT(Reasons(info)[3], HasSubstr("solstice-v1-events"));
}

TEST(DoctorJsonTest, Shape) {
  core::Json json = InfoJson(FromText(kGpu));
  EXPECT_EQ(json.Find("probed")->string(), "1970-01-01T00:16:40.000Z");
  EXPECT_TRUE(json.Find("findings")->array().empty());
  EXPECT_TRUE(json.Find("toolkit_root")->is_null());
  const core::Json& host = *json.Find("host");
  EXPECT_EQ(host.Find("driver")->Find("version")->string(), "580.1");
  EXPECT_TRUE(host.Find("driver")->Find("error")->is_null());
  EXPECT_TRUE(host.Find("nvml")->Find("error")->is_null());
  EXPECT_EQ(host.Find("cupti")->Find("version")->string(), "13.0.1");
  EXPECT_TRUE(host.Find("visible_devices")->is_null());
  const core::Json& gpu = host.Find("gpus")->array().at(0);
  EXPECT_EQ(gpu.Find("memory_bytes")->integer(), 150000000000);
  EXPECT_TRUE(gpu.Find("driven")->boolean());
  EXPECT_DOUBLE_EQ(gpu.Find("power_w")->number(), 76.5);
  // Known, off and on; unknown.
  EXPECT_FALSE(gpu.Find("mig")->boolean());
  EXPECT_TRUE(gpu.Find("ecc")->boolean());
  EXPECT_TRUE(gpu.Find("persistence")->is_null());
  EXPECT_TRUE(gpu.Find("power_limit_w")->is_null());
  EXPECT_TRUE(gpu.Find("pageable_memory_access")->is_null());
  EXPECT_EQ(gpu.Find("processes")->array().at(0).Find("pid")->integer(), 7);
  EXPECT_TRUE(gpu.Find("processes")->array().at(0).Find("ours")->boolean());
}

TEST(DoctorJsonTest, EveryFieldIsPresentWithoutAHost) {
  core::Json json = InfoJson(v1::ServerInfo());
  for (const char* name : {"toolkit_root", "header_pack", "host", "probed", "findings", "devices", "environment"}) {
    EXPECT_NE(json.Find(name), nullptr) << name;
  }
  v1::ServerInfo bare;
  bare.mutable_host()->add_gpus();
  const core::Json gpu = HostJson(bare).Find("gpus")->array().at(0);
  EXPECT_FALSE(gpu.Find("driven")->boolean());
  EXPECT_TRUE(gpu.Find("processes")->is_null()) << "nobody said that there are none";
}

}  // namespace
}  // namespace solstice::client
