// The suite itself: its cases are well formed and come again, each runs on the emulator or is listed in
// not_executed.txt, answers and their file are compared as they should be, and where answers of hardware lie in
// answers/, the emulator gives them.
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/device/emulator/emulator.h"
#include "tests/conformance/fuzz.h"
#include "tests/conformance/runner.h"

namespace solstice::conformance {
namespace {

using testing::HasSubstr;
using Verdict = Comparison::Verdict;

const std::string kFolder = std::string(SOLSTICE_SOURCE_DIR) + "/tests/conformance/";
constexpr int64_t kMostFileBytes = 64 << 20;

const std::vector<Case>& Cases() {
  static const auto* cases = new std::vector<Case>(AllCases());
  return *cases;
}

const std::vector<Answer>& OnEmulator() {
  static const auto* answers = [] {
    auto run = RunOnEmulator(Cases());
    EXPECT_TRUE(run.ok()) << run.status();
    return new std::vector<Answer>(run.ok() ? *std::move(run) : std::vector<Answer>(Cases().size()));
  }();
  return *answers;
}

// Patterns, a line each.
std::vector<std::string> NotExecuted() {
  std::vector<std::string> patterns;
  auto text = base::ReadFile(kFolder + "not_executed.txt", kMostFileBytes);
  EXPECT_TRUE(text.ok()) << text.status();
  if (!text.ok()) return {};
  for (const std::string_view line : base::Split(*text, '\n')) {
    if (!line.empty() && line[0] != '#') patterns.emplace_back(line);
  }
  return patterns;
}

// The first case of a name that ran.
size_t IndexOf(const std::string& name) {
  for (size_t i = 0; i < Cases().size(); ++i) {
    if (Cases()[i].name == name && !OnEmulator()[i].bytes.empty()) return i;
  }
  ADD_FAILURE() << "no case " << name << " ran";
  return 0;
}

TEST(Suite, IsWellFormedAndComesAgain) {
  const std::vector<Case> again = AllCases();
  ASSERT_EQ(again.size(), Cases().size());
  EXPECT_GE(again.size(), 400u);
  std::set<std::string> names, entries;
  size_t bytes = 0;
  for (size_t i = 0; i < again.size(); ++i) {
    const Case& c = again[i];
    EXPECT_EQ(c.Fingerprint(), Cases()[i].Fingerprint()) << c.name;
    EXPECT_TRUE(names.insert(c.name).second) << c.name;
    EXPECT_TRUE(entries.insert(c.entry).second) << c.entry;
    EXPECT_LE(c.tuples, 256) << c.name;
    EXPECT_FALSE(c.results.empty()) << c.name;
    EXPECT_EQ(c.bound.kind == Bound::Kind::kExact, c.bound.meaning.empty()) << c.name;
    bytes += c.AnswerBytes();
  }
  EXPECT_LE(bytes, size_t{2} << 20);
}

TEST(Suite, EveryCaseRunsOrIsListed) {
  const std::vector<std::string> patterns = NotExecuted();
  std::set<std::string> used;
  for (size_t i = 0; i < Cases().size(); ++i) {
    std::string listed;
    for (const std::string& pattern : patterns) {
      if (::fnmatch(pattern.c_str(), Cases()[i].name.c_str(), 0) == 0) listed = pattern;
    }
    const Answer& answer = OnEmulator()[i];
    EXPECT_FALSE(answer.failed) << Cases()[i].name << ": " << answer.why_not;
    EXPECT_EQ(answer.bytes.empty(), !listed.empty())
        << Cases()[i].name
        << (listed.empty() ? " does not run: " + answer.why_not : " runs: take it off not_executed.txt");
    used.insert(listed);
  }
  for (const std::string& pattern : patterns) EXPECT_EQ(used.count(pattern), 1u) << "nothing is called " << pattern;
}

TEST(Suite, AnswersDoNotDependOnThreads) {
  auto one = RunOnEmulator(Cases(), 1);
  ASSERT_TRUE(one.ok()) << one.status();
  for (size_t i = 0; i < Cases().size(); ++i) EXPECT_EQ((*one)[i].bytes, OnEmulator()[i].bytes) << Cases()[i].name;
}

// What a GPU runs is what the real assembler makes of the text; it refuses no case and no random kernel.
TEST(Suite, Assembles) {
  auto assembler = OpenAssembler();
  ASSERT_TRUE(assembler.ok()) << assembler.status();
  for (const std::string arch : {"sm_90a", "sm_100a"}) {
    Module module{arch, ModuleHeader(arch), {}};
    for (const Case& c : Cases()) module.ptx += c.arch == arch ? c.ptx : "";
    for (uint64_t seed = 1; seed <= 100 && arch == "sm_90a"; ++seed) module.ptx += MakeRandomKernel(seed).Ptx();
    auto cubin = (*assembler)->Assemble(module);
    EXPECT_TRUE(cubin.ok()) << arch << ": " << cubin.status();
  }
  EXPECT_FALSE((*assembler)->Assemble({"sm_90a", ModuleHeader("sm_90a") + "nonsense", {}}).ok());
}

TEST(AnswerFile, ComesBack) {
  auto parsed = Parse(Serialise(Cases(), OnEmulator(), "a device"));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->device, "a device");
  for (size_t i = 0; i < Cases().size(); ++i) EXPECT_EQ(parsed->by_name[Cases()[i].name].bytes, OnEmulator()[i].bytes);
  EXPECT_FALSE(AnyDifferent(CompareAll(Cases(), OnEmulator(), *parsed)));
}

TEST(AnswerFile, DamageIsRefused) {
  const std::vector<Case> few(Cases().begin(), Cases().begin() + 3);
  const std::vector<Answer> answers(OnEmulator().begin(), OnEmulator().begin() + 3);
  const std::string content = Serialise(few, answers, "x");
  for (size_t size = 0; size < content.size(); ++size) EXPECT_FALSE(Parse(content.substr(0, size)).ok()) << size;
  EXPECT_FALSE(Parse(content + "x").ok());
  EXPECT_FALSE(Parse("x" + content).ok());
}

TEST(AnswerFile, AnAlteredAnswerIsADifference) {
  const size_t at = IndexOf("integer/add.u32");
  std::vector<Answer> altered = OnEmulator();
  altered[at].bytes[static_cast<size_t>(7 * Cases()[at].answer_stride)] ^= 1;
  auto parsed = Parse(Serialise(Cases(), altered, "x"));
  ASSERT_TRUE(parsed.ok());
  const auto comparisons = CompareAll(Cases(), OnEmulator(), *parsed);
  EXPECT_TRUE(AnyDifferent(comparisons));
  EXPECT_EQ(comparisons[at].verdict, Verdict::kDifferent);
  EXPECT_EQ(comparisons[at].different, 1);
  ASSERT_EQ(comparisons[at].examples.size(), 1u);
  EXPECT_THAT(comparisons[at].examples[0], HasSubstr("tuple 7: 0x"));
  int others = 0;
  for (const Comparison& c : comparisons) others += c.verdict == Verdict::kDifferent;
  EXPECT_EQ(others, 1);
}

TEST(AnswerFile, OfAnotherVersionOfACaseSaysNothing) {
  std::vector<Case> changed = Cases();
  const size_t at = IndexOf("integer/add.u32");
  changed[at].input[0] ^= 1;
  auto parsed = Parse(Serialise(changed, OnEmulator(), "x"));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(CompareAll(Cases(), OnEmulator(), *parsed)[at].verdict, Verdict::kNoAnswer);
}

// A case of one f32 result, and whether `got` passes for `expected` within the bound.
Verdict Judge(Bound bound, float got, float expected) {
  Case c;
  c.tuples = 1;
  c.results = {{"f32", 0}};
  c.answer_stride = 4;
  c.bound = std::move(bound);
  c.input.resize(16);
  Answer mine, theirs;
  for (auto [answer, value] : {std::pair(&mine, got), std::pair(&theirs, expected)}) {
    answer->bytes.resize(4);
    std::memcpy(answer->bytes.data(), &value, 4);
  }
  return Compare(c, mine, theirs).verdict;
}

TEST(Bounds, AreAppliedAsTheySay) {
  using Kind = Bound::Kind;
  const float ulp = 0x1p-23f;
  EXPECT_EQ(Judge({}, 1, 1), Verdict::kEqual);
  EXPECT_EQ(Judge({}, 1 + ulp, 1), Verdict::kDifferent);
  EXPECT_EQ(Judge({}, -0.0f, 0), Verdict::kDifferent);
  // Twice the bound, and a unit for the rounding.
  EXPECT_EQ(Judge({Kind::kUlps, 2, "x"}, 1 + 5 * ulp, 1), Verdict::kWithinBound);
  EXPECT_EQ(Judge({Kind::kUlps, 2, "x"}, 1 + 6 * ulp, 1), Verdict::kDifferent);
  EXPECT_EQ(Judge({Kind::kRelative, 0x1p-11, "x"}, 4 + 0x1p-8f, 4), Verdict::kWithinBound);
  EXPECT_EQ(Judge({Kind::kRelative, 0x1p-11, "x"}, 4 + 0x1.1p-8f, 4), Verdict::kDifferent);
  EXPECT_EQ(Judge({Kind::kAbsolute, 0x1p-11, "x"}, 4 + 0x1p-10f, 4), Verdict::kWithinBound);
  EXPECT_EQ(Judge({Kind::kAbsolute, 0x1p-11, "x"}, 4 + 0x1p-9f, 4), Verdict::kDifferent);
  EXPECT_EQ(Judge({Kind::kEither, 0x1p-11, "x"}, 4 + 0x1p-8f, 4), Verdict::kWithinBound);
  EXPECT_EQ(Judge({Kind::kEither, 0x1p-11, "x"}, 0.25f + 0x1p-10f, 0.25f), Verdict::kWithinBound);
  // No bound makes a NaN or an infinity of a number.
  for (const float special : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
    EXPECT_EQ(Judge({Kind::kAbsolute, 1e30, "x"}, special, 1), Verdict::kDifferent);
    EXPECT_EQ(Judge({Kind::kAbsolute, 1e30, "x"}, 1, special), Verdict::kDifferent);
  }
}

// Each file of answers/ is what one kind of hardware said.
TEST(Hardware, TheEmulatorGivesTheRecordedAnswers) {
  const std::filesystem::path folder = kFolder + "answers";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".bin") continue;
    ++files;
    auto content = base::ReadFile(entry.path().string(), kMostFileBytes);
    ASSERT_TRUE(content.ok()) << content.status();
    auto expected = Parse(*content);
    ASSERT_TRUE(expected.ok()) << entry.path() << ": " << expected.status();
    const auto comparisons = CompareAll(Cases(), OnEmulator(), *expected);
    size_t compared = 0;
    for (size_t i = 0; i < Cases().size(); ++i) {
      const Comparison& c = comparisons[i];
      compared += c.tuples > 0;
      EXPECT_NE(c.verdict, Verdict::kDifferent)
          << Cases()[i].name << ": " << c.different << " tuples\n  " << base::Join(c.examples, "\n  ");
    }
    // Else the cases have changed so much that the file says little.
    EXPECT_GE(compared * 10, Cases().size() * 7) << entry.path() << " is out of date: record it anew";
  }
  if (files == 0) GTEST_SKIP() << "no answers of hardware have been recorded yet";
}

struct Pair {
  std::unique_ptr<Bench> one, other;
};

Pair TwoBenches() {
  using DeviceOr = StatusOr<std::unique_ptr<device::Device>>;
  auto one = Bench::Make([]() -> DeviceOr { return device::MakeEmulator(); });
  auto other = Bench::Make([]() -> DeviceOr {
    device::EmulatorOptions options;
    options.baseline_isa = true;
    return device::MakeEmulator(options);
  });
  EXPECT_TRUE(one.ok() && other.ok());
  return {*std::move(one), *std::move(other)};
}

TEST(Fuzz, BothBuildsOfTheEmulatorAgree) {
  const Pair pair = TwoBenches();
  const Side one{pair.one.get()}, other{pair.other.get()};
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const RandomKernel kernel = MakeRandomKernel(seed);
    EXPECT_EQ(kernel.Ptx(), MakeRandomKernel(seed).Ptx());
    std::string seen;
    auto different = Disagree(kernel, one, other, &seen);
    ASSERT_TRUE(different.ok()) << different.status();
    EXPECT_FALSE(*different) << seen << "\n" << kernel.Ptx();
  }
}

TEST(Fuzz, ADifferenceIsFoundAndMinimised) {
  const Pair pair = TwoBenches();
  Side one{pair.one.get()}, other{pair.other.get()};
  other.rewrite = [](std::string text) {
    const size_t at = text.find("xor.b32 %r");
    return at == std::string::npos ? text : text.replace(at, 3, "and");
  };
  int found = 0;
  for (uint64_t seed = 1; seed <= 60 && found < 3; ++seed) {
    const RandomKernel kernel = MakeRandomKernel(seed);
    std::string seen;
    auto different = Disagree(kernel, one, other, &seen);
    ASSERT_TRUE(different.ok()) << different.status();
    if (!*different) continue;
    ++found;
    EXPECT_THAT(seen, HasSubstr("thread "));
    auto least = Minimise(kernel, one, other);
    ASSERT_TRUE(least.ok()) << least.status();
    ASSERT_EQ(least->lines.size(), 1u) << least->Ptx();
    EXPECT_THAT(least->lines[0], HasSubstr("xor.b32"));
  }
  EXPECT_GE(found, 1);
}

}  // namespace
}  // namespace solstice::conformance
