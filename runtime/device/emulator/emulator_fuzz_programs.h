// For the fuzz test of the emulator: programs that no compiler would make.
#pragma once

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/strings.h"
#include "runtime/device/emulator/emulator_test_support.h"
#include "runtime/device/emulator/random_text.h"

namespace solstice::device {

// ---- Mutation of the goldens ----------------------------------------------------------------------------------------

inline std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> tokens;
  auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%'; };
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (is_word(text[i]) || text[i] == '.') {
      while (end < text.size() && is_word(text[end])) ++end;
    }
    tokens.push_back(text.substr(i, end - i));
    i = end;
  }
  return tokens;
}

class Mutator {
 public:
  Mutator(std::vector<std::string> corpus, uint64_t seed) : dice_(seed) {
    std::set<std::string> dots, words;
    for (const std::string& text : corpus) {
      corpus_.push_back(Split(text));
      for (const std::string& token : corpus_.back()) {
        if (token[0] == '.' && token.size() > 1) dots.insert(token);
        if (std::islower(static_cast<unsigned char>(token[0]))) words.insert(token);
      }
    }
    for (const char* more :
         {".s8",   ".u8",     ".s16",       ".u16",   ".s64",   ".f16",   ".bf16",     ".f16x2",   ".f64",
          ".b128", ".v2",     ".v4",        ".sat",   ".ftz",   ".rz",    ".rm",       ".rp",      ".rni",
          ".rzi",  ".hi",     ".wide",      ".cc",    ".and",   ".or",    ".xor",      ".cas",     ".exch",
          ".popc", ".max",    ".shared",    ".local", ".const", ".param", ".volatile", ".acquire", ".NaN",
          ".relu", ".e4m3x2", ".satfinite", ".wrap",  ".clamp", ".any",   ".ballot",   ".idx",     ".bfly"}) {
      dots.insert(more);
    }
    for (const char* more :
         {"bfe",       "bfi",      "prmt",     "lop3",  "shf",  "fns",  "bfind", "sad",   "mul24", "mad24", "addc",
          "subc",      "madc",     "div",      "rem",   "atom", "red",  "vote",  "match", "redux", "shfl",  "elect",
          "nanosleep", "isspacep", "copysign", "testp", "set",  "slct", "szext", "bmsk",  "dp4a"}) {
      words.insert(more);
    }
    dots_.assign(dots.begin(), dots.end());
    words_.assign(words.begin(), words.end());
  }

  std::string Next() {
    std::vector<std::string> tokens = dice_.From(corpus_);
    std::vector<std::string> registers;
    for (const std::string& token : tokens) {
      if (token[0] == '%' && token.size() > 1) registers.push_back(token);
    }
    for (size_t i = 1 + dice_.Below(6); i > 0; --i) Change(tokens, registers);
    std::string text;
    for (const std::string& token : tokens) text += token;
    return text;
  }

 private:
  // Changes one token past the header for another of its kind, or moves a whole line.
  void Change(std::vector<std::string>& tokens, const std::vector<std::string>& registers) {
    const size_t body = std::min<size_t>(60, tokens.size() / 4);
    for (int attempt = 0; attempt < 50; ++attempt) {
      const size_t at = body + dice_.Below(tokens.size() - body);
      std::string& token = tokens[at];
      const unsigned char first = static_cast<unsigned char>(token[0]);
      if (first == '.' && token.size() > 1) {
        token = dice_.Chance(10) ? "" : dice_.From(dots_);
        if (token.empty()) token = " ";
      } else if (first == '%' && !registers.empty()) {
        token = dice_.From(registers);
      } else if (std::isdigit(first)) {
        token = dice_.Chance(20) ? base::StrCat("-", dice_.Edge() >> 1) : base::StrCat(dice_.Edge());
      } else if (std::islower(first)) {
        token = dice_.From(words_);
      } else if (first == '\n') {
        CopyLine(tokens, at);
      } else {
        continue;
      }
      return;
    }
  }

  void CopyLine(std::vector<std::string>& tokens, size_t at) {
    size_t from = tokens.size() / 3 + dice_.Below(tokens.size() - tokens.size() / 3);
    while (from > 0 && tokens[from] != "\n") --from;
    size_t end = from + 1;
    while (end < tokens.size() && tokens[end] != "\n") ++end;
    const std::vector<std::string> line(tokens.begin() + static_cast<ptrdiff_t>(from),
                                        tokens.begin() + static_cast<ptrdiff_t>(end));
    tokens.insert(tokens.begin() + static_cast<ptrdiff_t>(at), line.begin(), line.end());
  }

  Dice dice_;
  std::vector<std::vector<std::string>> corpus_;
  std::vector<std::string> dots_, words_;
};

// ---- Programs from templates ----------------------------------------------------------------------------------------

// For ExpandTemplate. Many make no valid instruction.
inline const std::vector<std::string>& Templates() {
  static const std::vector<std::string> kTemplates = {
      "{add|sub|mul.lo|mul.hi|div|rem|min|max}.{u16|s16} @h, @h, @h;",
      "{add|sub|mul.lo|mul.hi|div|rem|min|max}.{u32|s32} @r, @r, {@r|@i};",
      "{add|sub|mul.lo|mul.hi|div|rem|min|max}.{u64|s64} @q, @q, {@q|@i};",
      "{add|sub}.sat.s32 @r, @r, @r;",
      "{mad.lo|mad.hi|sad}.{u16|s16} @h, @h, @h, @h;",
      "{mad.lo|mad.hi|sad|mad24.lo|mad24.hi}.{u32|s32} @r, @r, @r, @r;",
      "mad.hi.sat.s32 @r, @r, @r, @r;",
      "{mad.lo|mad.hi|sad}.{u64|s64} @q, @q, @q, @q;",
      "mul24.{lo|hi}.{u32|s32} @r, @r, @r;",
      "mul.wide.{u32|s32} @q, @r, @r;",
      "{add|sub}.cc.{u32|s32} @r, @r, @r;",
      "{addc|subc}{|.cc}.{u32|u64} {@r|@q}, {@r|@q}, {@r|@q};",
      "{mad|madc}.{lo|hi}.cc.{u32|s32} @r, @r, @r, @r;",
      "{abs|neg}.{s16|s32|s64} {@h|@r|@q}, {@h|@r|@q};",
      "{popc|clz|brev}.b32 @r, @r;",
      "{popc|clz}.b64 @r, @q;",
      "bfind{|.shiftamt}.{u32|s32} @r, @r;",
      "bfind{|.shiftamt}.{u64|s64} @r, @q;",
      "bfe.{u32|s32} @r, @r, @r, @r;",
      "bfe.{u64|s64} @q, @q, @r, @r;",
      "bfi.b32 @r, @r, @r, @r, {@r|@i};",
      "bfi.b64 @q, @q, @q, @r, @r;",
      "{szext|bmsk}.{wrap|clamp}.{b32|s32|u32} @r, @r, @r;",
      "fns.b32 @r, @r, @r, @r;",
      "shf.{l|r}.{wrap|clamp}.b32 @r, @r, @r, @r;",
      "{shl.b16|shr.u16|shr.s16} @h, @h, @r;",
      "{shl.b32|shr.u32|shr.s32} @r, @r, @r;",
      "{shl.b64|shr.u64|shr.s64} @q, @q, @r;",
      "prmt.b32{|.f4e|.b4e|.rc8|.ecl|.ecr|.rc16} @r, @r, @r, @r;",
      "lop3.b32 @r, @r, @r, @r, {0|128|150|202|255};",
      "{dp4a|dp2a.lo|dp2a.hi}.{u32|s32}.{u32|s32} @r, @r, @r, @r;",
      "{add|sub|mul|min|max|div.rn|div.approx}{|.ftz}.f32 @r, @r, @r;",
      "{add|mul|fma}{.rn|.rz|.rm|.rp}{|.ftz}{|.sat}.f32 @r, @r, @r{|, @r};",
      "{add|sub|mul|min|max|div.rn|div.rz}.f64 @q, @q, @q;",
      "fma.{rn|rz|rm|rp}.f64 @q, @q, @q, @q;",
      "{rcp.rn|rcp.approx|sqrt.rn|sqrt.approx|rsqrt.approx|sin.approx|cos.approx|lg2.approx|ex2.approx|tanh.approx}."
      "f32 "
      "@r, @r;",
      "{add|sub|mul|min|max}.{f16|bf16} @h, @h, @h;",
      "{add|sub|mul|min.NaN|max}.{f16x2|bf16x2} @r, @r, @r;",
      "fma.rn{|.relu}.{f16|bf16} @h, @h, @h, @h;",
      "fma.rn.{f16x2|bf16x2} @r, @r, @r, @r;",
      "{min|max}{|.relu}.{u16x2|s16x2} @r, @r, @r;",
      "cvt.{u8|s8|u16|s16}.{u32|s32} @h, @r;",
      "cvt{|.sat}.{u8|s8|u16|s16|u32|s32|u64|s64}.{u8|s8|u16|s16|u32|s32|u64|s64} {@h|@r|@q}, {@h|@r|@q};",
      "cvt.{rni|rzi|rmi|rpi}{|.ftz}{|.sat}.{u8|s8|u16|s16|u32|s32|u64|s64}.{f16|f32|f64} {@h|@r|@q}, {@h|@r|@q};",
      "cvt.{rn|rz|rm|rp}.{f16|f32|f64|bf16}.{u8|s16|u32|s32|u64|s64} {@h|@r|@q}, {@h|@r|@q};",
      "cvt{|.rn|.rz|.rm|.rp|.rni}{|.ftz}{|.sat}.{f16|bf16|f32|f64|tf32}.{f16|bf16|f32|f64} {@h|@r|@q}, {@h|@r|@q};",
      "cvt.{rn|rz}{|.relu}{|.satfinite}.{f16x2|bf16x2} @r, @r, @r;",
      "cvt.{rn|rz}{|.relu}.{f16x2|bf16x2}.f32 @r, @r, @r;",
      "cvt.rn.satfinite{|.relu}.{e4m3x2|e5m2x2}.f32 @h, @r, @r;",
      "cvt.rn{|.relu}.f16x2.{e4m3x2|e5m2x2} @r, @h;",
      "cvt.pack.sat.{u8|s8|u16|s16}.s32{|.b32} @r, @r, @r{|, @r};",
      "setp.{eq|ne|lt|le|gt|ge|equ|ltu|num|nan}{|.ftz}.f32 @p, @r, @r;",
      "setp.{lt|le|gt|ge|hi|lo}{.and|.or|.xor}.{u32|s32} @p^@p, @r, @r, @p;",
      "setp.{lt|gt|nan}.{f16x2|bf16x2} @p^@p, @r, @r;",
      "set.{eq|lt|gt}.{u32|s32|f32}.{u32|s32|f32} @r, @r, @r;",
      "selp.{b32|f32|u32} @r, @r, @r, @p;",
      "slct.{u32|s64}.{s32|f32} {@r|@q}, {@r|@q}, {@r|@q}, @r;",
      "testp.{finite|infinite|number|notanumber|normal|subnormal}.{f32|f64} @p, {@r|@q};",
      "mov.b64 {@q|{@r,@r}}, {@q|{@r,@r}|{@h,@h,@h,@h}};",
      "mov.b32 {@r|{@h,@h}}, {@r|{@h,@h}};",
      "mov.b128 {%x1|{@q,@q}}, {%x2|{@q,@q}};",
      "mov.{u32|u64} {@r|@q}, {%tid.x|%laneid|%warpid|%clock|%clock64|%globaltimer|%lanemask_lt|s|l|g|c};",
      "ld{|.global|.shared|.local|.const|.param}{|.volatile|.relaxed.gpu}.{u8|s8|b16|u32|s32|f32|b64} {@h|@r|@q}, "
      "[{@q|@q+8|@q-1|s|s+4|l|l+12|g|g+60|c+4|pa|16|@r}];",
      "ld{|.global|.shared}.{v2|v4}.{u8|u16|b32|f32} {{@r,@r}|{@r,@r,@r,@r}|{@r,_,@r,_}}, [{@q|s|g+16}];",
      "ld.{global|shared|local}.b128 %x1, [{@q|s|l|g}];",
      "st{|.global|.shared|.local|.param}.{u8|b16|u32|f32|b64} [{@q|@q+8|s|s+60|l+4|l-4|g|g+64|c|@r}], {@h|@r|@q|@i};",
      "st{|.global|.shared}.{v2|v4}.{b32|f32|u8} [{@q|s|g}], {{@r,@r}|{@r,@r,@r,@r}};",
      "atom{|.global|.shared}.{add|min|max|exch|inc|dec|and|or|xor}.{u32|s32|b32|f32} @r, [{@q|s|g+4|@r}], @r;",
      "atom{|.global|.shared}.{add|min|max|exch|cas}.{u64|s64|b64|f64} @q, [{@q|s|g|l}], @q{|, @q};",
      "red.{global|shared}.{add|min|max}{|.noftz}.{f16|f16x2|bf16x2|bf16} [{@q|s|g}], {@h|@r};",
      "cvta{|.to}.{global|shared|local|const}.u64 @q, {@q|s|l|g|c};",
      "isspacep.{global|shared|local|const|param} @p, @q;",
      "{and|or|xor|not}.{b16|b32|b64|pred} {@h|@r|@q|@p}, {@h|@r|@q|@p}{|, @h|, @r|, @q|, @p};",
      "shfl.sync.{up|down|bfly|idx}.b32 {@r|@r^@p}, @r, {@r|@i}, {@r|31}, {-1|@r};",
      "vote.sync.{all|any|uni}.pred @p, {@p|!@p}, {-1|@r};",
      "vote.sync.ballot.b32 @r, @p, {-1|@r};",
      "match.{any|all}.sync.{b32|b64} {@r|@r^@p}, {@r|@q}, {-1|@r};",
      "redux.sync.{add|min|max|and|or|xor}.{u32|s32|b32} @r, @r, {-1|@r};",
      "elect.sync @r^@p, {-1|@r};",
      "activemask.b32 @r;",
      "bar.{sync|arrive} {0|1|@r}, {32|64|@r};",
      "bar.sync {0|3|17};",
      "barrier.cta.red.{popc.u32 @r|and.pred @p|or.pred @p}, 0, @p;",
      "bar.warp.sync {-1|@r};",
      "nanosleep.u32 {@r|20};",
      "membar.{gl|cta|sys};",
      "bra {FORWARD|BACK};",
      "{ret|exit|trap};",
      "brx.idx @r, TARGETS;",
      "call.uni (o1), f, (a1);",
      "call (o1), {@q|f}, (a1), proto;",
      "{mov.u64 @q, f|copysign.f32 @r, @r, @r|cnot.b32 @r, @r};"};
  return kTemplates;
}

class Generator {
 public:
  explicit Generator(uint64_t seed) : dice_(seed) {}

  std::string Next() {
    std::string body;
    const size_t lines = 1 + dice_.Below(5);
    for (size_t i = 0; i < lines; ++i) {
      if (i == lines / 2) body += "BACK:\n";
      if (dice_.Chance(25)) body += base::StrCat("  @", dice_.Chance(50) ? "!" : "", "%p", dice_.Below(4), " ");
      body += "  " + ExpandTemplate(dice_.From(Templates()), dice_) + "\n";
    }
    std::string values;
    for (int i = 0; i < 6; ++i) {
      values += base::StrCat("  mov.b32 %r", i, ", ", dice_.Edge() & 0xffffffff, ";\n");
      if (i > 2) values += base::StrCat("  mov.b64 %q", i, ", ", dice_.Edge(), ";\n");
      values += base::StrCat("  mov.b16 %h", i, ", ", dice_.Edge() & 0xffff, ";\n");
    }
    return Wrap(R"(
.shared .align 16 .b8 s[64];
.global .align 16 .b8 g[64];
.const .align 16 .b8 c[64];
.func (.param .b64 o) f(.param .b64 a)
{
  .reg .b64 %q<2>;
  ld.param.b64 %q0, [a];
  st.param.b64 [o], %q0;
  ret;
}
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u32 pc)
{
  .reg .pred %p<4>;
  .reg .b16 %h<6>;
  .reg .b32 %r<6>;
  .reg .b64 %q<6>;
  .reg .b128 %x<3>;
  .local .align 16 .b8 l[64];
  .param .b64 a1;
  .param .b64 o1;
)") + values +
           R"(
  ld.param.u64 %q0, [pa];
  ld.param.u64 %q1, [pb];
  cvta.shared.u64 %q2, s;
  mov.u32 %r0, %tid.x;
  and.b32 %r1, %r0, 3;
  mul.wide.u32 %q3, %r0, 4;
  add.s64 %q1, %q1, %q3;
  setp.lt.u32 %p1, %r0, 16;
  setp.eq.u32 %p2, %r1, 0;
  st.param.b64 [a1], %q4;
)" + (dice_.Chance(10) ? "proto: .callprototype (.param .b64 _) _ (.param .b64 _);\n" : "") +
           "TARGETS: .branchtargets FORWARD, BACK;\n" + body + R"(
FORWARD:
  ret;
}
)";
  }

 private:
  Dice dice_;
};

}  // namespace solstice::device
