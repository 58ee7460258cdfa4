#include "server/pipeline/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "runtime/base/strings.h"
#include "server/pipeline/host.h"

namespace solstice::pipeline {
namespace {

using absl::StatusCode;
using base::StrCat;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

v1::GpuProbe* AddGpu(v1::HostProbe* host, const std::string& unusable = "") {
  v1::GpuProbe* gpu = host->add_gpus();
  const int ordinal = host->gpus_size() - 1;
  gpu->mutable_properties()->set_kind(v1::CUDA);
  gpu->mutable_properties()->set_name("NVIDIA H200");
  gpu->mutable_properties()->set_ordinal(ordinal);
  gpu->set_uuid(StrCat("GPU-", ordinal));
  gpu->set_unusable(unusable);
  return gpu;
}

v1::HostProbe NoDriver() {
  v1::HostProbe host;
  host.set_driver_error("there is no CUDA driver here: libcuda.so.1: cannot open");
  host.set_driver_mend("install the NVIDIA driver");
  return host;
}

v1::HostProbe BrokenDriver() {
  v1::HostProbe host;
  host.set_driver_found(true);
  host.set_gpu_present(true);
  host.set_driver_error("the CUDA driver does not start: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
  return host;
}

v1::HostProbe Gpus(int count) {
  v1::HostProbe host;
  host.set_driver_found(true);
  host.set_gpu_present(true);
  for (int i = 0; i < count; ++i) AddGpu(&host);
  return host;
}

v1::HostProbe OldBesideNew() {
  v1::HostProbe host = Gpus(0);
  AddGpu(&host, "NVIDIA A100 (sm_80) is not a GPU that Solstice drives");
  AddGpu(&host);
  return host;
}

v1::HostProbe OnlyOld() {
  v1::HostProbe host = Gpus(0);
  AddGpu(&host, "NVIDIA A100 (sm_80) is not a GPU that Solstice drives");
  return host;
}

DeviceSpec Cuda(int ordinal) { return {v1::CUDA, ordinal}; }
DeviceSpec EveryGpu() { return Cuda(kEveryOrdinal); }
DeviceSpec Emulator() { return {}; }

// "emulator", "cuda:1 GPU-1"
std::vector<std::string> Names(const DeviceChoice& choice) {
  std::vector<std::string> names;
  for (const DeviceSpec& device : choice.devices) {
    names.push_back(StrCat(DeviceLabel(device.kind, device.ordinal), device.uuid.empty() ? "" : " ", device.uuid));
  }
  return names;
}

TEST(ChooseDevicesTest, Choices) {
  struct Case {
    const char* what;
    std::vector<DeviceSpec> requested;
    v1::HostProbe host;
    std::vector<std::string> devices;
    std::string note;  // part of the only one; empty: none
  };
  const Case cases[] = {
      {"nothing anywhere", {}, NoDriver(), {"emulator"}, ""},
      {"a driver that fails", {}, BrokenDriver(), {"emulator"}, "DRIVER_MISMATCH"},
      {"a driver that shows no GPU", {}, Gpus(0), {"emulator"}, "no GPU is visible"},
      {"one GPU", {}, Gpus(1), {"cuda:0 GPU-0"}, ""},
      {"every GPU", {}, Gpus(3), {"cuda:0 GPU-0", "cuda:1 GPU-1", "cuda:2 GPU-2"}, ""},
      {"an old one beside", {}, OldBesideNew(), {"cuda:1 GPU-1"}, "cuda:0 is left out: NVIDIA A100"},
      {"every GPU by name", {EveryGpu()}, Gpus(2), {"cuda:0 GPU-0", "cuda:1 GPU-1"}, ""},
      {"one of two", {Cuda(1)}, Gpus(2), {"cuda:1 GPU-1"}, ""},
      {"in the order asked for", {Cuda(1), Cuda(0)}, Gpus(2), {"cuda:1 GPU-1", "cuda:0 GPU-0"}, ""},
      {"the emulator beside a GPU", {Emulator()}, Gpus(1), {"emulator"}, ""},
      {"the emulator beside a broken driver", {Emulator()}, BrokenDriver(), {"emulator"}, ""},
      {"both", {Cuda(0), Emulator()}, Gpus(1), {"cuda:0 GPU-0", "emulator"}, ""},
      {"two emulators", {Emulator(), Emulator()}, NoDriver(), {"emulator", "emulator"}, ""},
  };
  for (const Case& c : cases) {
    auto choice = ChooseDevices(c.requested, c.host);
    ASSERT_TRUE(choice.ok()) << c.what << ": " << choice.status();
    EXPECT_EQ(Names(*choice), c.devices) << c.what;
    ASSERT_EQ(choice->notes.size(), c.note.empty() ? 0u : 1u) << c.what;
    if (!c.note.empty()) {
      EXPECT_THAT(choice->notes[0], HasSubstr(c.note)) << c.what;
    }
  }
}

TEST(ChooseDevicesTest, OnlyOldGpusLeaveTheEmulatorAndSayWhy) {
  auto choice = ChooseDevices({}, OnlyOld());
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_THAT(Names(*choice), ElementsAre("emulator"));
  EXPECT_THAT(choice->notes, ElementsAre(HasSubstr("cuda:0 is left out"),
                                         HasSubstr("the emulator stands in for a GPU: NVIDIA A100 (sm_80)")));
}

TEST(ChooseDevicesTest, Refusals) {
  struct Case {
    std::vector<DeviceSpec> requested;
    v1::HostProbe host;
    StatusCode code;
    std::string message, mend;
  };
  const Case cases[] = {
      {{Cuda(0)},
       NoDriver(),
       StatusCode::kNotFound,
       "no cuda:0 to drive: there is no CUDA driver here",
       "install the NVIDIA driver; this host has emulator"},
      {{EveryGpu()}, NoDriver(), StatusCode::kNotFound, "no GPU to drive: there is no CUDA driver here", "emulator"},
      {{EveryGpu()}, BrokenDriver(), StatusCode::kNotFound, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "emulator"},
      {{EveryGpu()}, Gpus(0), StatusCode::kNotFound, "no GPU is visible", "emulator"},
      {{EveryGpu()}, OnlyOld(), StatusCode::kNotFound, "NVIDIA A100 (sm_80)", "emulator"},
      {{Cuda(1)},
       Gpus(1),
       StatusCode::kNotFound,
       "no cuda:1 to drive: 1 GPU is visible",
       "this host has cuda:0 (NVIDIA H200), emulator"},
      {{Cuda(2)}, Gpus(2), StatusCode::kNotFound, "2 GPUs are visible", "cuda:0 (NVIDIA H200), cuda:1"},
      {{Cuda(0)}, OldBesideNew(), StatusCode::kNotFound, "no cuda:0 to drive: NVIDIA A100", "cuda:1 (NVIDIA H200)"},
      {{Cuda(0), Cuda(0)}, Gpus(1), StatusCode::kInvalidArgument, "cuda:0 is asked for twice", "once"},
      {{Cuda(1), EveryGpu()}, Gpus(2), StatusCode::kInvalidArgument, "cuda:1 is asked for twice", "once"},
  };
  for (const Case& c : cases) {
    Status status = ChooseDevices(c.requested, c.host).status();
    EXPECT_EQ(status.code(), c.code) << c.message;
    EXPECT_THAT(base::MessageOf(status), HasSubstr(c.message));
    EXPECT_THAT(base::MendOf(status), HasSubstr(c.mend));
  }
  v1::HostProbe hidden = Gpus(0);
  hidden.set_has_visible_devices(true);
  hidden.set_visible_devices("7");
  EXPECT_THAT(base::MessageOf(ChooseDevices({Cuda(0)}, hidden).status()), HasSubstr("CUDA_VISIBLE_DEVICES=\"7\""));
}

TEST(ChooseDevicesTest, PageableMemoryAccessIsToldAndKept) {
  v1::HostProbe host = Gpus(2);
  host.mutable_gpus(1)->set_pageable_memory_access(true);
  auto choice = ChooseDevices({}, host);
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_FALSE(choice->devices[0].pageable_memory_access);
  EXPECT_TRUE(choice->devices[1].pageable_memory_access);
  EXPECT_THAT(choice->notes, ElementsAre(HasSubstr("cuda:1: kernels can read pageable host memory")));
}

TEST(ChooseDevicesTest, AProbeThatDiedIsABrokenDriver) {
  v1::HostProbe host = FailedProbe(base::Unavailable("the host's probe died: it was killed by signal 11"));
  auto choice = ChooseDevices({}, host);
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_THAT(choice->notes, ElementsAre(HasSubstr("killed by signal 11")));
  EXPECT_THAT(base::MessageOf(ChooseDevices({Cuda(0)}, host).status()), HasSubstr("killed by signal 11"));
}

class SetClock : public base::Clock {
 public:
  int64_t NowUnixNs() const override { return 5000000000 + now; }
  int64_t NowSteadyNs() const override { return now; }
  std::atomic<int64_t> now = 0;
};

TEST(HostTest, LooksAgainOnlyAfterAWhile) {
  SetClock clock;
  int looks = 0;
  Host host(
      [&looks]() -> StatusOr<v1::HostProbe> {
        v1::HostProbe probe;
        probe.set_driver_version(StrCat(++looks));
        return probe;
      },
      &clock);
  host.Look();
  clock.now = 1999999999;
  host.LookAgain();
  EXPECT_EQ(host.probe().driver_version(), "1");
  clock.now = 2000000000;
  host.LookAgain();
  host.LookAgain();
  EXPECT_EQ(host.probe().driver_version(), "2");
  v1::ServerInfo info;
  host.Describe(&info);
  EXPECT_EQ(info.host().driver_version(), "2");
  EXPECT_EQ(info.probed().seconds(), 7);
}

TEST(HostTest, OneLooksAtATime) {
  SetClock clock;
  Host* self = nullptr;
  int looks = 0;
  Host host(
      [&]() -> StatusOr<v1::HostProbe> {
        if (++looks > 1) self->LookAgain();  // as somebody would who asks meanwhile
        return v1::HostProbe();
      },
      &clock);
  self = &host;
  host.Look();
  clock.now = 10000000000;
  host.LookAgain();
  EXPECT_EQ(looks, 2);
}

TEST(HostTest, AFailureIsTheAnswer) {
  SetClock clock;
  Host host([]() -> StatusOr<v1::HostProbe> { return base::DeadlineExceeded("no answer", "try nvidia-smi"); }, &clock);
  host.Look();
  EXPECT_EQ(host.probe().driver_error(), "no answer");
  EXPECT_EQ(host.probe().driver_mend(), "try nvidia-smi");
  EXPECT_THAT(host.probe().gpus(), IsEmpty());
}

}  // namespace
}  // namespace solstice::pipeline
