// Real compilers in real jails: that headers are precompiled in the background, and what is kept.
#include "server/pipeline/header_compilers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "runtime/base/strings.h"
#include "runtime/compile/compile.h"
#include "runtime/worker/test_installation.h"
#include "server/pipeline/compiler_pool.h"
#include "server/store/rocksdb/rocksdb_store.h"

namespace solstice::pipeline {
namespace {

using std::chrono::milliseconds;
using v1::internal::ProgramSource;

ProgramSource Source(const std::string& headers, const std::string& value = "1") {
  ProgramSource source;
  v1::SourceFile* file = source.add_sources();
  file->set_path("kernel.cu");
  std::string text;
  for (std::string_view header : base::Split(headers, ' ')) text += base::StrCat("#include <", header, ">\n");
  file->set_content(base::StrCat(text, "extern \"C\" __global__ void k(int* y) { y[0] = ", value, "; }\n"));
  source.set_arch("sm_90a");
  source.set_keep_all_entries(true);
  return source;
}

class HeaderCompilersTest : public worker::InstallationTest {
 protected:
  // Waits long enough for any machine; nullptr if none comes.
  static worker::Client* Await(HeaderCompilers& compilers, const std::string& headers) {
    for (int i = 0; i < 3000; ++i) {
      worker::Client* client = compilers.Acquire(compile::SharedHeaders(Source(headers)));
      if (client != nullptr) return client;
      std::this_thread::sleep_for(milliseconds(100));
    }
    return nullptr;
  }
  static worker::Client* Acquire(HeaderCompilers& compilers, const std::string& headers) {
    return compilers.Acquire(compile::SharedHeaders(Source(headers)));
  }
};

constexpr char kOne[] = "cuda/ptx";
constexpr char kTwo[] = "cuda_fp16.h cuda/ptx";
constexpr char kThree[] = "cuda_bf16.h cuda/ptx";

TEST_F(HeaderCompilersTest, OneHolderATimeAndTheLeastRecentlyUsedGoes) {
  HeaderCompilers compilers(spawner_.get(), installation_, 0);
  EXPECT_EQ(Acquire(compilers, kOne), nullptr);
  compilers.Request(compile::SharedHeaders(Source(kOne)));
  worker::Client* one = Await(compilers, kOne);
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(Acquire(compilers, kOne), nullptr) << "held";
  compilers.Release(one, true);

  compilers.Request(compile::SharedHeaders(Source(kTwo)));
  worker::Client* two = Await(compilers, kTwo);
  ASSERT_NE(two, nullptr);
  compilers.Release(two, true);
  ASSERT_EQ(Acquire(compilers, kOne), one);
  compilers.Release(one, true);

  compilers.Request(compile::SharedHeaders(Source(kThree)));
  worker::Client* three = Await(compilers, kThree);
  ASSERT_NE(three, nullptr);
  EXPECT_EQ(Acquire(compilers, kTwo), nullptr) << "the least recently used";
  EXPECT_EQ(Acquire(compilers, kOne), one);
  // With both at work nothing is put out.
  compilers.Request(compile::SharedHeaders(Source(kTwo)));
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_TRUE(one->alive());
  EXPECT_TRUE(three->alive());
  compilers.Release(one, true);
  // One that failed is not lent again.
  compilers.Release(three, false);
  EXPECT_EQ(Acquire(compilers, kThree), nullptr);
}

TEST_F(HeaderCompilersTest, HeadersThatDoNotCompileHoldUpNobody) {
  HeaderCompilers compilers(spawner_.get(), installation_, 0);
  compilers.Request(compile::SharedHeaders(Source("cuda/there_is_none")));
  // Once the first was taken up; a request would replace one that still waits.
  std::this_thread::sleep_for(milliseconds(200));
  compilers.Request(compile::SharedHeaders(Source(kOne)));
  worker::Client* one = Await(compilers, kOne);
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(Acquire(compilers, "cuda/there_is_none"), nullptr);
  compilers.Release(one, true);
}

TEST_F(HeaderCompilersTest, ShutdownEndsTheMaking) {
  HeaderCompilers compilers(spawner_.get(), installation_, 0);
  compilers.Request(compile::SharedHeaders(Source("cub/block/block_reduce.cuh")));
  std::this_thread::sleep_for(milliseconds(100));
  compilers.Shutdown();
  compilers.Request(compile::SharedHeaders(Source(kOne)));
  EXPECT_EQ(Acquire(compilers, kOne), nullptr);
}

TEST_F(HeaderCompilersTest, ThePoolUsesThemAndProgramsAreTheSame) {
  char folder[] = "/tmp/header_compilers_XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  auto store = store::OpenRocksDb(folder);
  ASSERT_TRUE(store.ok()) << store.status();
  {
    auto pool = CompilerPool::Start(spawner_.get(), installation_, store->get(), 1, 120);
    ASSERT_TRUE(pool.ok()) << pool.status();
    auto compile = [&](const ProgramSource& source) {
      auto compiled = (*pool)->Compile("local", "evaluation", source);
      EXPECT_TRUE(compiled.ok()) << compiled.status();
      return compiled.ok() ? *std::move(compiled) : CompilerPool::Compiled();
    };
    auto first = compile(Source(kOne, "0"));
    EXPECT_EQ(first.program.verdict(), v1::PASSED) << first.program.log();
    EXPECT_FALSE(first.program.precompiled_headers());
    // Each a new source, until the header is there.
    bool used = false;
    for (int i = 1; i < 3000 && !used; ++i) {
      used = compile(Source(kOne, base::StrCat(i))).program.precompiled_headers();
      if (!used) std::this_thread::sleep_for(milliseconds(100));
    }
    EXPECT_TRUE(used);
    // Another tenant's compile of the first source is not cached, and its program is the same.
    auto again = (*pool)->Compile("other", "evaluation", Source(kOne, "0"));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_FALSE(again->cached);
    EXPECT_TRUE(again->program.precompiled_headers());
    EXPECT_EQ(again->program.ptx(), first.program.ptx());
    EXPECT_EQ(again->program.cubin(), first.program.cubin());
    EXPECT_EQ(again->program.log(), first.program.log());
    EXPECT_FALSE(compile(Source("cuda_fp16.h")).program.precompiled_headers());
    (*pool)->Shutdown();
  }
  store->reset();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace solstice::pipeline
