#include "runtime/compile/options.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/strings.h"
#include "runtime/compile/compile.h"

namespace solstice::compile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CheckOptions, RefusesAndNamesTheOption) {
  for (const char* option : {"-I/",
                             "--include-path=/etc",
                             "-include",
                             "/etc/passwd",
                             "--pre-include=/etc/hostname",
                             "--time=/tmp/owned.csv",
                             "-time=/var/lib/service/db/CURRENT",
                             "--fdevice-time-trace=/tmp/owned",
                             "-pch",
                             "--create-pch=/tmp/x.pch",
                             "--use-pch=/tmp/x.pch",
                             "--pch-dir=/",
                             "-Xptxas",
                             "--ptxas-options=-o /tmp/owned",
                             "--split-compile=0",
                             "-arch=sm_75",
                             "--gpu-architecture=compute_90",
                             "-dlto",
                             "-optix-ir",
                             "--modify-stack-limit=true",
                             "--device-debug",
                             "-G",
                             "@/etc/passwd",
                             "--std=c++20\n-I/",
                             "",
                             "-D__global__=__device__",
                             "-DEVIL=\"\\\"; #include \\\"/etc/passwd\"",
                             "-O3",
                             "-O0",
                             "-g",
                             "-lcublas",
                             "-L/usr",
                             "-rdc=true",
                             "-std=c++14",
                             "-std=c++23",
                             "-std",
                             "--std c++17",
                             "-ftz",
                             "-ftz=1",
                             "-ftz=maybe",
                             "-fmad=",
                             "--use_fast_math=true",
                             "-maxrregcount",
                             "-maxrregcount=0",
                             "-maxrregcount=256",
                             "-maxrregcount=12x",
                             "-maxrregcount=-1",
                             "-maxrregcount= 8",
                             "-restrict=true",
                             "-D",
                             "-D1X=2",
                             "-Dint=long",
                             "-D__x=1",
                             "-DX(a)=a",
                             "-DX=1 2",
                             "-DX=\"s\"",
                             "-DX=a;b",
                             "-DX=#",
                             "-DX=1\\",
                             "-DthreadIdx=blockIdx",
                             "-Ddefined",
                             "-DX=a:b",
                             "-DX=::a",
                             "-DX=1-2",
                             "-UX",
                             "--Ofast-compile=max",
                             "--frandom-seed=2",
                             "--expt-relaxed-constexpr",
                             "--extended-lambda",
                             "-",
                             "--",
                             "-lineinfo\t",
                             "--dopt=on",
                             "-diag-suppress=177",
                             "-W",
                             "-Xptxas=-v"}) {
    auto checked = CheckOptions({option});
    ASSERT_FALSE(checked.ok()) << option;
    EXPECT_EQ(checked.status().code(), absl::StatusCode::kInvalidArgument) << option;
    EXPECT_THAT(base::MessageOf(checked.status()), HasSubstr(base::Quote(option))) << option;
    EXPECT_FALSE(base::MendOf(checked.status()).empty()) << option;
  }
}

TEST(CheckOptions, AcceptsAndNormalises) {
  struct Row {
    const char *option, *normal;
  };
  for (const Row& row : {Row{"-std=c++17", "-std=c++17"},
                         {"--std=c++20", "-std=c++20"},
                         {"-use_fast_math", "--use_fast_math"},
                         {"--use_fast_math", "--use_fast_math"},
                         {"--ftz=true", "-ftz=true"},
                         {"-prec-div=false", "-prec-div=false"},
                         {"--prec-sqrt=true", "-prec-sqrt=true"},
                         {"-fmad=false", "-fmad=false"},
                         {"--restrict", "-restrict"},
                         {"-restrict", "-restrict"},
                         {"-extra-device-vectorization", "--extra-device-vectorization"},
                         {"--maxrregcount=128", "-maxrregcount=128"},
                         {"-maxrregcount=064", "-maxrregcount=64"},
                         {"-DTILE=64", "-DTILE=64"},
                         {"-DNDEBUG", "-DNDEBUG"},
                         {"-DX=", "-DX="},
                         {"-DT=cuda::std::int32_t", "-DT=cuda::std::int32_t"},
                         {"-DEPS=1.5e-3f", "-DEPS=1.5e-3f"},
                         {"-DMASK=0x1Fu", "-DMASK=0x1Fu"},
                         {"-DN=-1", "-DN=-1"},
                         {"-D_X=__nv_bfloat16", "-D_X=__nv_bfloat16"},
                         {"-DEVERY=int", "-DEVERY=int"}}) {
    auto checked = CheckOptions({row.option});
    ASSERT_TRUE(checked.ok()) << row.option << ": " << checked.status();
    EXPECT_THAT(*checked, ElementsAre(row.normal));
  }
  EXPECT_THAT(*CheckOptions({"-lineinfo", "-DB", "-DA", "--std=c++17", "-std=c++17"}),
              ElementsAre("-DB", "-DA", "-std=c++17"));
}

TEST(CheckOptions, RefusesContradictionsAndTooMany) {
  EXPECT_FALSE(CheckOptions({"-std=c++17", "--std=c++20"}).ok());
  EXPECT_FALSE(CheckOptions({"-DX=1", "-DX=2"}).ok());
  EXPECT_FALSE(CheckOptions({"-ftz=true", "-ftz=false"}).ok());
  EXPECT_TRUE(CheckOptions({"-DX=1", "-DXY=2"}).ok());
  EXPECT_FALSE(CheckOptions(std::vector<std::string>(kMaxOptions + 1, "-restrict")).ok());
  EXPECT_FALSE(CheckOptions({"-DX=" + std::string(300, '1')}).ok());
}

TEST(CheckOptions, AdvisesByName) {
  EXPECT_THAT(base::MendOf(CheckOptions({"-arch=sm_75"}).status()), HasSubstr("own target"));
  EXPECT_THAT(base::MendOf(CheckOptions({"-O3"}).status()), HasSubstr("optimiser"));
  EXPECT_THAT(base::MendOf(CheckOptions({"--use-fast-math"}).status()), HasSubstr("use_fast_math"));
  EXPECT_THAT(base::MendOf(CheckOptions({"-D FOO"}).status()), HasSubstr("NAME=value"));
}

TEST(CheckDefine, TakesNumbersAndNamesOnly) {
  for (const char* good : {"HEAD_DIM=128", "X", "T=float", "E=1e-6", "B=true", "N=-3"})
    EXPECT_TRUE(CheckDefine(good).ok()) << good;
  for (const char* bad :
       {"", "=1", "1=1", "X=(1)", "X=1;", "X=\n", "X=a b", "__X=1", "float=double", "X=-", "X=+.", "X=a::", "X=1''0"}) {
    EXPECT_FALSE(CheckDefine(bad).ok()) << bad;
  }
}

TEST(SortOptions, GivesMathSwitchesToTheLinkToo) {
  EXPECT_THAT(SortOptions({}).lto, ElementsAre("-fma=1", "-ftz=0", "-prec-div=1", "-prec-sqrt=1"));
  EXPECT_THAT(SortOptions({"--use_fast_math"}).lto, ElementsAre("-fma=1", "-ftz=1", "-prec-div=0", "-prec-sqrt=0"));
  // An explicit switch wins on either side.
  EXPECT_THAT(SortOptions({"-ftz=false", "--use_fast_math", "-prec-div=true", "-fmad=false"}).lto,
              ElementsAre("-fma=0", "-ftz=0", "-prec-div=1", "-prec-sqrt=0"));
  OptionSet set = SortOptions({"-maxrregcount=32", "-DTILE=4", "-DNDEBUG", "-std=c++20"});
  EXPECT_THAT(set.ptxas, ElementsAre("-maxrregcount=32"));
  EXPECT_THAT(set.frontend, ElementsAre("-DTILE=4", "-DNDEBUG", "-std=c++20"));
  EXPECT_THAT(set.macros, ElementsAre("TILE", "NDEBUG"));
}

TEST(CheckArch, KnowsTheTargets) {
  for (const char* good : {"sm_90a", "sm_100a", "sm_100f", "sm_103a", "sm_103f"}) EXPECT_TRUE(CheckArch(good).ok());
  for (const char* bad : {"", "sm_90", "compute_90a", "sm_80", "sm_90a ", "native", "sm_103"}) {
    EXPECT_THAT(base::MendOf(CheckArch(bad)), HasSubstr("sm_103f")) << bad;
  }
}

Status CheckOne(const std::string& path, const std::string& content) {
  google::protobuf::RepeatedPtrField<v1::SourceFile> sources;
  v1::SourceFile* file = sources.Add();
  file->set_path(path);
  file->set_content(content);
  return CheckSources(sources);
}

TEST(CheckSources, PathsAndText) {
  for (const char* good : {"kernel.cu", "include/tile.cuh", "a+b-c_d.cu", "..a/b"})
    EXPECT_TRUE(CheckOne(good, "int x;").ok()) << good;
  for (const char* bad : {"", "/kernel.cu", "../kernel.cu", "a/../b", "a//b", "./a", "a/", "a b", "a\\b", "-x.cu",
                          "a\nb", "a\"b", "\xC3\xA4.cu"}) {
    EXPECT_FALSE(CheckOne(bad, "int x;").ok()) << bad;
  }
  EXPECT_FALSE(CheckOne(std::string(300, 'a'), "").ok());
  EXPECT_TRUE(CheckOne("k.cu", "\xEF\xBB\xBF// \xC3\xA4").ok());
  for (const std::string& bad : {std::string("a\0b", 3), std::string("a\xFF"), std::string("\xFF\xFEi\0", 4),
                                 std::string("\xFE\xFF\0i", 4), std::string("\xC3"), std::string("\xED\xA0\x80")}) {
    Status status = CheckOne("k.cu", bad);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(base::MessageOf(status), HasSubstr("k.cu"));
  }
  EXPECT_TRUE(CheckOne("k.cu", std::string(kMaxSourceBytes, ' ')).ok());
  EXPECT_FALSE(CheckOne("k.cu", std::string(kMaxSourceBytes + 1, ' ')).ok());
}

TEST(CheckSources, Counts) {
  google::protobuf::RepeatedPtrField<v1::SourceFile> sources;
  EXPECT_FALSE(CheckSources(sources).ok());
  for (int i = 0; i < kMaxSources; ++i) sources.Add()->set_path(base::StrCat("f", i));
  EXPECT_TRUE(CheckSources(sources).ok());
  sources.Add()->set_path("more");
  EXPECT_FALSE(CheckSources(sources).ok());
  sources.RemoveLast();
  sources.Mutable(1)->set_path("f0");
  EXPECT_THAT(base::MessageOf(CheckSources(sources)), HasSubstr("twice"));
}

TEST(ProgramKey, ChangesWithEveryField) {
  v1::internal::ProgramSource source;
  source.add_sources()->set_path("k.cu");
  source.mutable_sources(0)->set_content("text");
  source.add_sources()->set_path("h.cuh");
  source.add_options("-DA=1");
  source.add_options("-DB=1");
  source.add_defines("N=1");
  source.add_name_expressions("k<1>");
  source.set_arch("sm_90a");
  v1::Toolchain toolchain;
  toolchain.set_nvrtc("13.0");
  toolchain.set_nvjitlink("13.0");
  toolchain.set_headers_digest("d");
  std::vector<std::string> keys = {ProgramKey(source, toolchain)};
  EXPECT_EQ(keys[0], ProgramKey(source, toolchain));
  EXPECT_EQ(keys[0].rfind("sha256:", 0), 0u);
  auto with = [&](auto change) {
    v1::internal::ProgramSource copy = source;
    v1::Toolchain tools = toolchain;
    change(copy, tools);
    keys.push_back(ProgramKey(copy, tools));
  };
  with([](auto& s, auto&) { s.mutable_sources(0)->set_content("texT"); });
  with([](auto& s, auto&) { s.mutable_sources(0)->set_path("K.cu"); });
  with([](auto& s, auto&) { s.mutable_sources()->SwapElements(0, 1); });
  with([](auto& s, auto&) { s.mutable_sources()->RemoveLast(); });
  with([](auto& s, auto&) { s.set_main_source(1); });
  with([](auto& s, auto&) { s.mutable_options()->SwapElements(0, 1); });
  with([](auto& s, auto&) { s.mutable_options()->RemoveLast(); });
  with([](auto& s, auto&) { s.set_defines(0, "N=2"); });
  with([](auto& s, auto&) {
    s.clear_defines();
    s.add_options("N=1");
  });
  with([](auto& s, auto&) { s.set_name_expressions(0, "k<2>"); });
  with([](auto& s, auto&) { s.set_arch("sm_100a"); });
  with([](auto& s, auto&) { s.set_keep_all_entries(true); });
  with([](auto&, auto& t) { t.set_nvrtc("13.1"); });
  with([](auto&, auto& t) { t.set_nvjitlink("13.1"); });
  with([](auto&, auto& t) { t.set_headers_digest("e"); });
  for (size_t i = 0; i < keys.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(keys[i], keys[j]) << i << " " << j;
  }
}

}  // namespace
}  // namespace solstice::compile
