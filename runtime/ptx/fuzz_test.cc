// Mutated goldens must be parsed or refused, never crash; what parses must be analysable.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "runtime/base/strings.h"
#include "runtime/ptx/analysis.h"
#include "runtime/ptx/golden.h"

namespace solstice::ptx {
namespace {

class Mutator {
 public:
  explicit Mutator(std::vector<std::string> corpus) : corpus_(std::move(corpus)) {}

  std::string Next() {
    std::string text = corpus_[Below(corpus_.size())];
    for (size_t i = 1 + Below(4); i > 0 && !text.empty(); --i) Mutate(&text);
    return text;
  }

 private:
  size_t Below(size_t bound) { return random_() % bound; }

  void Mutate(std::string* text) {
    static const char* const kPieces[] = {
        "{",        "}",       "(",    ")",       "[",   "]",     ";",   ":",          ",",      "%r1",    "@",
        "|",        "-",       ".reg", ".global", "=",   "0x",    "0f",  "<",          ">",      "\"",     "/*",
        "generic(", ".param",  "%",    "call",    "bra", ".",     "::",  "_",          "ret;",   "1e999",  "99999999",
        ".align",   "WARP_SZ", "#",    "!",       "+",   "%tid.", ".v4", ".section {", ".loc 1", "brx.idx"};
    size_t at = Below(text->size());
    size_t length = std::min(1 + Below(40), text->size() - at);
    switch (Below(6)) {
      case 0:
        text->erase(at, length);
        break;
      case 1:
        text->insert(at, kPieces[Below(std::size(kPieces))]);
        break;
      case 2:
        (*text)[at] = static_cast<char>(Below(256));
        break;
      case 3:
        text->insert(at, text->substr(Below(text->size()), length));
        break;
      case 4:
        text->resize(at);
        break;
      default: {
        const std::string& other = corpus_[Below(corpus_.size())];
        text->replace(at, length, other.substr(Below(other.size()), length * 4));
      }
    }
  }

  std::vector<std::string> corpus_;
  std::mt19937_64 random_{20240613};
};

TEST(FuzzTest, MutatedGoldens) {
  std::vector<std::string> corpus;
  for (const std::string& name : GoldenNames()) corpus.push_back(Golden(name));
  ASSERT_FALSE(corpus.empty());
  Mutator mutator(std::move(corpus));
  const char* more = std::getenv("SOLSTICE_FUZZ_ROUNDS");
  const int rounds = more == nullptr ? 1 : std::max(1, std::atoi(more));
  int parsed = 0, refused = 0;
  for (int i = 0; i < 6000 * rounds; ++i) {
    auto module = Parse(mutator.Next());
    if (!module.ok()) {
      ++refused;
      ASSERT_EQ(base::MessageOf(module.status()).substr(0, 4), "ptx:") << module.status();
      continue;
    }
    ++parsed;
    DescribeKernels(*module);
    FindDeviceState(*module);
    MathModes(*module);
    for (const Function& function : module->functions) {
      for (const Instruction& instruction : function.body) ASSERT_LE(ToText(instruction, 60).size(), 60u);
    }
  }
  EXPECT_GT(parsed, 100);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace solstice::ptx
