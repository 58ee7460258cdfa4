#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <regex>

#include "client/cli/render.h"

namespace solstice::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Render(const std::string& text) {
  v1::ServerInfo info;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &info)) << text;
  return RenderInfo(info, "unix:/s.sock");
}

// Columns parted by "|" instead of two spaces or more.
std::string Cells(const std::string& text) { return std::regex_replace(text, std::regex("  +"), "|"); }

TEST(RenderInfoTest, WithoutAGpu) {
  const std::string text = Render(R"pb(
    version: "1.0"
    toolkit_root: "/cuda"
    header_pack: "/pack"
    data_dir: "/data"
    environment: "jail=bubblewrap"
    devices { kind: EMULATOR name: "emulated H200" arch: "sm_90a" }
    host {
      driver_error: "there is no CUDA driver here: libcuda.so.1"
      cupti_library: "/cuda/libcupti.so.13"
      cupti_version: "13.0.1"
    })pb");
  EXPECT_THAT(text, HasSubstr("toolkit      /cuda\n"));
  EXPECT_THAT(text, HasSubstr("driver       there is no CUDA driver here: libcuda.so.1\n"));
  EXPECT_THAT(text, HasSubstr("CUPTI        13.0.1 (/cuda/libcupti.so.13)\n"));
  EXPECT_THAT(text, HasSubstr("device       emulator emulated H200 (sm_90a)\n"));
  EXPECT_THAT(text, HasSubstr("enforced     jail=bubblewrap\n"));
  EXPECT_THAT(text, Not(HasSubstr("GPU")));
  EXPECT_THAT(text, Not(HasSubstr("CUDA_VISIBLE_DEVICES")));
}

TEST(RenderInfoTest, GpusAndFindings) {
  const std::string text = Render(R"pb(
    devices { kind: CUDA ordinal: 1 name: "NVIDIA H200" arch: "sm_90a" }
    host {
      driver_found: true
      gpu_present: true
      driver_version: "580.1"
      cuda_version: "13.0"
      has_visible_devices: true
      visible_devices: "3,1"
      gpus {
        properties { ordinal: 0 name: "NVIDIA A100" arch: "sm_80" memory_bytes: 85899345920 }
        unusable: "too old"
        mig_mode: -1
        ecc_mode: -1
      }
      gpus {
        properties { ordinal: 1 name: "NVIDIA H200" arch: "sm_90a" sm_count: 132 memory_bytes: 150323855360 }
        uuid: "GPU-1"
        pci: "0000:00:06.0"
        memory_used_bytes: 1073741824
        sm_clock_mhz: 345
        max_sm_clock_mhz: 1980
        power_w: 76.5
        power_limit_w: 700
        temperature_c: 31
        ecc_mode: 1
        throttle_reasons: "power\033cap\n"
      }
    })pb");
  EXPECT_THAT(text, HasSubstr("driver                580.1, CUDA 13.0\n"));
  EXPECT_THAT(text, HasSubstr("CUDA_VISIBLE_DEVICES  \"3,1\"\n"));
  EXPECT_THAT(text, HasSubstr("device                cuda:1 NVIDIA H200 (sm_90a)\n"));
  EXPECT_THAT(Cells(text), HasSubstr("cuda:0|NVIDIA A100|sm_80|0|80.0 GiB|-|-|-|-|-|unusable\n"));
  EXPECT_THAT(Cells(text),
              HasSubstr("cuda:1|NVIDIA H200|sm_90a|132|1.0 GiB of 140.0 GiB|345 / 1980 MHz|76 / 700 W|31 C|"
                        "off|on|driven\n"));
  EXPECT_THAT(text, HasSubstr("cuda:1  GPU-1  0000:00:06.0\n"));
  EXPECT_THAT(text, HasSubstr("! cuda:0 is left out: too old\n"));
  EXPECT_THAT(text, HasSubstr("! cuda:1 is held below its clocks: powercap \n  mend: "));
  EXPECT_THAT(text, Not(HasSubstr("\033"))) << "nothing from a server drives the terminal";
}

}  // namespace
}  // namespace solstice::cli
