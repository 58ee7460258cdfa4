#include "runtime/ptx/analysis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "runtime/base/strings.h"
#include "runtime/ptx/golden.h"

namespace solstice::ptx {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<std::string> StateOf(const std::string& text) {
  std::vector<std::string> names;
  for (const v1::DeviceState& state : FindDeviceState(MustParse(text))) names.push_back(state.variable());
  return names;
}

// State of a kernel whose body is `body`, with .global variables g and h, u32 and u64, and a table of g's address.
std::vector<std::string> StateAround(const std::string& body, const std::string& before = "") {
  return StateOf(
      Around(".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<4>; .reg .f32 %f<4>;\n"
             "ld.param.u64 %rd1, [p0]; ld.param.u32 %r1, [p1];\n" +
                 body,
             ".global .u32 g[4]; .global .u64 h; .global .u64 to_g = generic(g);\n" + before));
}

std::vector<std::string> NeedsAround(const std::string& body, const std::string& before = "") {
  auto kernels = DescribeKernels(
      MustParse(Around(".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<4>; .reg .f32 %f<4>;\n" + body, before)));
  EXPECT_EQ(kernels.size(), 1u);
  return {kernels[0].needs_device().begin(), kernels[0].needs_device().end()};
}

TEST(DescribeTest, ParametersBoundsAndSharedMemory) {
  auto kernels = DescribeKernels(MustParse(Golden("rmsnorm")));
  ASSERT_EQ(kernels.size(), 1u);
  const v1::Kernel& kernel = kernels[0];
  EXPECT_EQ(kernel.name(), "rms");
  ASSERT_EQ(kernel.parameters_size(), 5);
  EXPECT_EQ(kernel.parameters(3).type(), "u32");
  EXPECT_EQ(kernel.parameters(3).offset(), 24);
  EXPECT_EQ(kernel.parameters(4).type(), "f32");
  EXPECT_EQ(kernel.parameters(4).offset(), 28);
  EXPECT_EQ(kernel.static_shared_bytes(), 32);
  EXPECT_EQ(kernel.max_threads(), 256);
  EXPECT_THAT(kernel.needs_device(), IsEmpty());
}

TEST(DescribeTest, SharedMemoryOfCalledFunctionsAndOfTheModule) {
  auto kernels = DescribeKernels(MustParse(R"(.version 9.0 .target sm_90a .address_size 64
    .shared .align 16 .b8 used[40]; .shared .b8 unused[64]; .extern .shared .align 16 .b8 dynamic[];
    .func leaf() { .shared .align 4 .b8 mine[10]; ret; }
    .func other() { .shared .b8 theirs[100]; ret; }
    .func middle() { .reg .b32 r; mov.b32 r, used; call leaf; ret; }
    .entry a(.param .align 4 .b8 s[12], .param .u64 p, .param .u8 c) .reqntid 16, 4 { .shared .b8 own; call middle; ret; }
    .entry b() { ret; })"));
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].static_shared_bytes(), 56);  // own 1, leaf's 10 at 4, used 40 at 16
  EXPECT_EQ(kernels[0].max_threads(), 64);
  EXPECT_EQ(kernels[0].parameters(0).bytes(), 12);
  EXPECT_EQ(kernels[0].parameters(0).type(), "b8");
  EXPECT_EQ(kernels[0].parameters(1).offset(), 16);
  EXPECT_EQ(kernels[0].parameters(2).offset(), 24);
  EXPECT_EQ(kernels[1].static_shared_bytes(), 0);
  EXPECT_EQ(kernels[1].max_threads(), 0);
}

TEST(DescribeTest, WhatNeedsADevice) {
  auto kernels = DescribeKernels(MustParse(Golden("tensor_copy")));
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].parameters(0).bytes(), 128);
  EXPECT_EQ(kernels[0].parameters(0).alignment(), 64);
  EXPECT_THAT(kernels[0].needs_device(),
              UnorderedElementsAre(".reqnctapercluster 2, 1, 1", "cp.async.bulk.tensor", "barrier.cluster"));
  for (const char* name : {"calls", "cooperative_groups", "block_reduce", "printf_assert", "switch", "inline_asm"}) {
    for (const v1::Kernel& kernel : DescribeKernels(MustParse(Golden(name)))) {
      EXPECT_THAT(kernel.needs_device(), IsEmpty()) << name;
    }
  }
  EXPECT_THAT(NeedsAround("wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1}, %rd1, "
                          "%rd2, 1, 1, 1, 0, 0; wgmma.fence.sync.aligned;"),
              ElementsAre("wgmma.fence", "wgmma.mma_async"));
  EXPECT_THAT(NeedsAround("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 64, [%r2];"),
              ElementsAre("cp.async.bulk"));
  EXPECT_THAT(NeedsAround("mapa.shared::cluster.u32 %r1, %r2, 1; st.shared::cluster.u32 [%r1], 1;"),
              ElementsAre("mapa", "st.shared::cluster"));
  EXPECT_THAT(NeedsAround("mov.u32 %r1, %cluster_ctaid.x; mov.u32 %r2, %cluster_ctarank;"),
              ElementsAre("%cluster_ctaid", "%cluster_ctarank"));
  EXPECT_THAT(NeedsAround("griddepcontrol.wait; setmaxnreg.inc.sync.aligned.u32 96;"),
              ElementsAre("setmaxnreg.inc"));
  EXPECT_THAT(NeedsAround("call far;", ".func far() { tcgen05.wait::ld.sync.aligned; ret; }"),
              ElementsAre("tcgen05.wait::ld"));
  EXPECT_THAT(NeedsAround("ret;", ".func far() { tcgen05.wait::ld.sync.aligned; ret; }"), IsEmpty());
  EXPECT_THAT(NeedsAround("mov.u64 %rd1, far; call %rd1, ();", ".func far() { setmaxnreg.dec.sync.aligned.u32 24; ret; }"),
              ElementsAre("setmaxnreg.dec"));
  EXPECT_THAT(NeedsAround("cp.async.cg.shared.global [%r1], [%rd1], 16; cp.async.commit_group; "
                          "fence.acq_rel.cluster; mbarrier.arrive.shared::cta.b64 _, [%r1];"),
              IsEmpty());
}

TEST(MathModesTest, SaysWhichOccur) {
  EXPECT_THAT(MathModes(MustParse(Golden("calls"))), IsEmpty());
  EXPECT_THAT(MathModes(MustParse(Golden("rmsnorm"))), Contains("approx"));
  EXPECT_THAT(MathModes(MustParse(Around(".reg .f32 f; div.full.ftz.f32 f, f, f; sqrt.approx.f32 f, f; ret;"))),
              ElementsAre("ftz", "fast-div", "fast-sqrt"));
  EXPECT_THAT(MathModes(MustParse(Around(".reg .f32 f; div.rn.f32 f, f, f; sqrt.rn.f32 f, f; ret;"))), IsEmpty());
}

TEST(DeviceStateTest, GoldensWithoutState) {
  for (const char* name : {"rmsnorm", "calls", "printf_assert", "lookup_table", "switch", "cooperative_groups",
                           "block_reduce", "inline_asm", "tensor_copy"}) {
    EXPECT_THAT(StateOf(Golden(name)), IsEmpty()) << name;
  }
}

TEST(DeviceStateTest, CounterAndCacheWithTheLineOfTheWrite) {
  auto states = FindDeviceState(MustParse(Golden("device_counter")));
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states[0].variable(), "done_blocks");
  EXPECT_EQ(states[0].file(), "/src/k.cu");
  EXPECT_EQ(states[0].line(), 8);
  EXPECT_EQ(states[0].bytes(), 4);
  EXPECT_THAT(states[0].instruction(), HasSubstr("atom.global.add.u32"));
  EXPECT_EQ(states[1].variable(), "(anonymous namespace)::cache");
  EXPECT_EQ(states[1].line(), 13);
  EXPECT_EQ(states[1].bytes(), 256);
}

TEST(DeviceStateTest, ThroughCallsReturnsTablesAndEscapes) {
  std::map<std::string, int> lines;
  for (const auto& state : FindDeviceState(MustParse(Golden("pointer_escape")))) {
    lines[state.variable()] = state.line();
  }
  EXPECT_EQ(lines, (std::map<std::string, int>{{"hidden", 11}, {"by_call", 4}, {"by_return", 14}, {"by_table", 15}}));
}

TEST(DeviceStateTest, LibraryCodeIsReportedWhereItWasCalled) {
  auto states = FindDeviceState(MustParse(Golden("atomic_ref")));
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].file(), "/src/k.cu");
  EXPECT_EQ(states[0].line(), 5);
}

TEST(DeviceStateTest, EachWayToWrite) {
  EXPECT_THAT(StateAround("st.global.u32 [g+4], %r1;"), ElementsAre("g"));
  EXPECT_THAT(StateAround("mov.u64 %rd2, g; st.global.u32 [%rd2], %r1;"), ElementsAre("g"));
  EXPECT_THAT(StateAround("mov.u64 %rd2, g; cvta.global.u64 %rd3, %rd2; add.s64 %rd4, %rd1, %rd3; st.u32 [%rd4], 1;"),
              ElementsAre("g"));
  EXPECT_THAT(StateAround("mov.u64 %rd2, g; mov.b64 {%r2, %r3}, %rd2; mov.b64 %rd3, {%r2, %r3}; st.u32 [%rd3], 1;"),
              ElementsAre("g"));
  EXPECT_THAT(StateAround("mov.u64 %rd2, g; selp.b64 %rd3, %rd1, %rd2, %p1; red.global.add.u32 [%rd3], 1;"),
              ElementsAre("g"));
  EXPECT_THAT(StateAround("mov.u64 %rd2, g; shfl.sync.idx.b32 %r2|%p1, %r3, 0, 31, -1; cvt.u32.u64 %r3, %rd2;"
                          "cvt.u64.u32 %rd5, %r2; st.u32 [%rd5], 1;"),
              ElementsAre("g"));
  EXPECT_THAT(StateAround("mov.u64 %rd2, g; cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], 16;"),
              ElementsAre("g"));
  EXPECT_THAT(StateAround("ld.global.u64 %rd2, [to_g]; st.u32 [%rd2], 1;"), ElementsAre("g"));
  EXPECT_THAT(StateAround("mov.u64 %rd2, to_g; ld.global.v2.u64 {%rd3, %rd4}, [%rd2]; st.u32 [%rd4], 1;"),
              ElementsAre("g"));
  EXPECT_THAT(StateAround("frobnicate.u32 [g], %r1;"), ElementsAre("g"));  // unknown: may write
}

TEST(DeviceStateTest, EachWayToEscape) {
  EXPECT_THAT(StateAround("mov.u64 %rd2, g; st.global.u64 [%rd1], %rd2;"), ElementsAre("g"));
  EXPECT_THAT(StateAround("mov.u64 %rd2, g; st.shared.u64 [%r1], %rd2;"), ElementsAre("g"));
  EXPECT_THAT(StateAround("mov.u64 %rd2, g; atom.global.exch.b64 %rd3, [%rd1], %rd2;"), ElementsAre("g"));
  EXPECT_THAT(StateAround("cp.async.ca.shared.global [%r1], [to_g], 8;"), ElementsAre("g"));
  EXPECT_THAT(StateAround("mov.u64 %rd2, g; call ext, (%rd2);", ".extern .func ext(.reg .b64 a);"), ElementsAre("g"));
  EXPECT_THAT(StateAround("mov.u64 %rd2, g; tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd2;"),
              ElementsAre("g"));
}

TEST(DeviceStateTest, PrivateMemoryIsFollowed) {
  const std::string local = ".local .align 8 .b8 box[16]; mov.u64 %rd2, g; mov.u64 %rd3, box;";
  EXPECT_THAT(StateAround(local + "st.local.u64 [%rd3+8], %rd2;"), IsEmpty());
  EXPECT_THAT(StateAround(local + "st.local.u64 [%rd3+8], %rd2; ld.local.u64 %rd4, [%rd3]; st.u32 [%rd4], 1;"),
              ElementsAre("g"));
  EXPECT_THAT(StateAround(local + "st.local.u64 [box], %rd2; cvta.local.u64 %rd4, %rd3; ld.u64 %rd5, [%rd4];"
                                  "st.u32 [%rd5], 1;"),
              ElementsAre("g"));
  // Through the address of the private memory, itself stored in memory.
  EXPECT_THAT(StateAround(local + "st.local.u64 [box], %rd2; cvta.local.u64 %rd4, %rd3; st.global.u64 [%rd1], %rd4;"
                                  "ld.global.u64 %rd5, [%rd1]; ld.u64 %rd6, [%rd5]; st.u32 [%rd6], 1;"),
              ElementsAre("g"));
  // At addresses that are numbers.
  EXPECT_THAT(StateAround(local + "st.local.u64 [64], %rd2; ld.local.u64 %rd5, [box]; st.u32 [%rd5], 1;"),
              ElementsAre("g"));
  EXPECT_THAT(StateAround(local + "st.local.u64 [box], %rd2; mov.u64 %rd4, 8; ld.local.u64 %rd5, [%rd4];"
                                  "st.u32 [%rd5], 1;"),
              ElementsAre("g"));
  EXPECT_THAT(StateAround(local + "st.local.u64 [box], %rd2; cvta.local.u64 %rd4, 0; ld.u64 %rd5, [%rd4];"
                                  "st.u32 [%rd5], 1;"),
              ElementsAre("g"));
}

TEST(DeviceStateTest, AcrossCalls) {
  const std::string write = ".func w(.param .b64 a) { .reg .b64 r; ld.param.u64 r, [a]; st.u32 [r], 1; ret; }\n";
  const std::string pass = "{ .param .b64 x; st.param.b64 [x], %rd2; call.uni w, (x); }";
  EXPECT_THAT(StateAround("mov.u64 %rd2, g; " + pass, write), ElementsAre("g"));
  EXPECT_THAT(StateAround("mov.u64 %rd3, g; " + pass, write), IsEmpty());
  EXPECT_THAT(StateAround("mov.u64 %rd2, g; { .param .b64 x; st.param.b64 [x], %rd2; .reg .b64 f; mov.u64 f, w;"
                          "P: .callprototype _ (.param .b64 _); call f, (x), P; }",
                          write),
              ElementsAre("g"));
  EXPECT_THAT(StateAround("mov.u64 %rd2, h; { .param .b64 x; .param .b64 y; st.param.b64 [x], %rd2;"
                          "call.uni (y), id, (x); ld.param.u64 %rd3, [y]; } st.u64 [%rd3], 1;",
                          ".func (.param .b64 r) id(.param .b64 a) { .reg .b64 t; ld.param.u64 t, [a];"
                          "st.param.b64 [r], t; ret; }"),
              ElementsAre("h"));
}

TEST(DeviceStateTest, ReadingIsAllowed) {
  EXPECT_THAT(StateAround("mov.u64 %rd2, g; add.s64 %rd2, %rd2, 4; ld.global.nc.u32 %r2, [%rd2];"
                          "st.global.u32 [%rd1], %r2; cp.async.ca.shared.global [%r1], [%rd2], 4;"
                          "prefetch.global.L2 [%rd2]; setp.ne.u64 %p1, %rd2, 0; selp.u32 %r3, 1, 0, %p1;"
                          "st.global.u32 [%rd1], %r3;"),
              IsEmpty());
  EXPECT_THAT(StateOf(Around("ret;", ".global .u32 g; .func f() { ret; }")), IsEmpty());
}

TEST(DeviceStateTest, HidesNothingBehindALocalOfTheSameName) {
  EXPECT_THAT(StateAround("{ .local .u32 g; st.local.u32 [g], 1; } "), IsEmpty());
  EXPECT_THAT(StateAround("{ .local .u32 g; st.local.u32 [g], 1; } st.global.u32 [g], 1;"), ElementsAre("g"));
}

TEST(DeviceStateTest, NamesMadeToBlowTheDemanglerUpStayAsTheyAre) {
  std::string name = "_ZN1aI1bI1cI";
  for (int i = 0; i < 60; ++i) name += "S" + std::to_string(i % 10) + "_";
  EXPECT_THAT(StateOf(Around("st.global.u32 [" + name + "], 1;", ".global .u32 " + name + ";")),
              ElementsAre(name.substr(0, 200)));
}

TEST(DeviceStateTest, ManyVariablesThroughOneRegisterStayBounded) {
  std::string before, body = ".reg .b64 a; .reg .b64 %q<20000>;\n";
  for (int i = 0; i < 4000; ++i) {
    std::string n = std::to_string(i);
    before += ".global .u64 v" + n + ";\n";
    body += "add.u64 %q0, %q0, v" + n + ";\n";
  }
  for (int i = 1; i < 20000; ++i) body += "mov.b64 %q" + std::to_string(i) + ", %q" + std::to_string(i - 1) + ";\n";
  body += "st.u32 [%q19999], 1;";
  EXPECT_EQ(StateOf(Around(body, before)).size(), 4000u);
}

}  // namespace
}  // namespace solstice::ptx
