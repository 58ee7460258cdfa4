#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "runtime/base/strings.h"
#include "runtime/ptx/golden.h"

namespace solstice::ptx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  auto module = Parse(text);
  return module.ok() ? "" : base::MessageOf(module.status());
}

const Function& Entry(const Module& module) {
  const Function* function = module.FindFunction("k");
  EXPECT_NE(function, nullptr);
  static const Function kNone;
  return function == nullptr ? kNone : *function;
}

std::vector<std::string> Texts(const Function& function) {
  std::vector<std::string> texts;
  for (const Instruction& instruction : function.body) texts.push_back(ToText(instruction));
  return texts;
}

TEST(ParseTest, ReadsEveryGoldenAndNamesAreUnique) {
  ASSERT_GE(GoldenNames().size(), 10u);
  for (const std::string& name : GoldenNames()) {
    SCOPED_TRACE(name);
    Module module = MustParse(Golden(name));
    EXPECT_EQ(module.version, "9.0");
    EXPECT_EQ(module.target, "sm_90a");
    EXPECT_FALSE(module.functions.empty());
    EXPECT_EQ(module.files[1], "/src/k.cu");
    for (const Function& function : module.functions) {
      std::set<std::string> names;
      for (const Variable& variable : function.parameters) EXPECT_TRUE(names.insert(variable.name).second);
      for (const auto& declaration : function.registers) EXPECT_TRUE(names.insert(declaration.name).second);
      for (const Variable& variable : function.variables) EXPECT_TRUE(names.insert(variable.name).second);
      for (const auto& [label, index] : function.labels) EXPECT_LE(index, static_cast<int>(function.body.size()));
    }
  }
}

TEST(ParseTest, KernelWithSharedMemoryAndBounds) {
  Module module = MustParse(Golden("rmsnorm"));
  const Function* function = module.FindFunction("rms");
  ASSERT_NE(function, nullptr);
  EXPECT_TRUE(function->is_entry);
  ASSERT_EQ(function->parameters.size(), 5u);
  EXPECT_EQ(function->parameters[4].type.name, "f32");
  EXPECT_EQ(function->max_threads[0], 256);
  EXPECT_EQ(function->max_threads[1], 1);
  EXPECT_EQ(function->min_blocks_per_sm, 2);
  const Variable* dynamic = module.FindVariable("rowbuf");
  ASSERT_NE(dynamic, nullptr);
  EXPECT_TRUE(dynamic->is_extern && dynamic->is_array);
  EXPECT_EQ(dynamic->count, 0);
  EXPECT_EQ(dynamic->space, Space::kShared);
}

TEST(ParseTest, CallSequencesGetTheirOwnParameters) {
  Module module = MustParse(Golden("calls"));
  const Function& function = Entry(module);
  std::set<std::string> first_arguments;
  bool indirect = false;
  for (const Instruction& instruction : function.body) {
    if (instruction.opcode != "call") continue;
    ASSERT_GE(instruction.operands.size(), 3u);
    EXPECT_EQ(instruction.operands[0].kind, Operand::Kind::kList);
    EXPECT_TRUE(first_arguments.insert(instruction.operands[2].elements[0].name).second);
    if (instruction.operands[1].kind == Operand::Kind::kRegister) {
      indirect = true;
      ASSERT_EQ(instruction.operands.size(), 4u);
      ASSERT_EQ(function.prototypes.size(), 1u);
      EXPECT_EQ(instruction.operands[3].name, function.prototypes[0].name);
      EXPECT_EQ(function.prototypes[0].parameters.size(), 1u);
      EXPECT_EQ(function.prototypes[0].returns[0].type.name, "b32");
    }
  }
  EXPECT_TRUE(indirect);
  EXPECT_EQ(first_arguments.size(), 4u);
  const Function* combine = module.FindFunction("_Z7combine4PairiPKf");
  ASSERT_NE(combine, nullptr);
  EXPECT_EQ(combine->parameters[0].count, 16);
  EXPECT_EQ(combine->parameters[0].alignment, 8);
  EXPECT_EQ(combine->returns[0].name, "func_retval0");
}

TEST(ParseTest, DeclarationsOfTheSystemsFunctions) {
  Module module = MustParse(Golden("printf_assert"));
  const Function* print = module.FindFunction("vprintf");
  ASSERT_NE(print, nullptr);
  EXPECT_TRUE(print->is_declaration);
  EXPECT_EQ(print->parameters.size(), 2u);
}

TEST(ParseTest, InlinedPlacesFormAChainToTheSource) {
  Module module = MustParse(Golden("atomic_ref"));
  for (const Instruction& instruction : Entry(module).body) {
    if (instruction.opcode != "atom") continue;
    EXPECT_NE(instruction.file, 1);
    int at = instruction.location;
    ASSERT_GE(at, 0);
    while (module.locations[at].inlined_at >= 0) {
      ASSERT_LT(module.locations[at].inlined_at, at);
      at = module.locations[at].inlined_at;
    }
    EXPECT_EQ(module.locations[at].file, 1);
    return;
  }
  FAIL() << "no atom";
}

TEST(ParseTest, InlineAssemblyScopesAreApart) {
  Module module = MustParse(Golden("inline_asm"));
  const Function& function = Entry(module);
  std::set<std::string> targets;
  for (size_t i = 0; i < function.body.size(); ++i) {
    const Instruction& instruction = function.body[i];
    if (instruction.opcode != "bra" || instruction.operands[0].name.find("LAB_WAIT") == std::string::npos) continue;
    int to = function.labels.at(instruction.operands[0].name);
    EXPECT_LT(to, static_cast<int>(i));
    EXPECT_LT(static_cast<int>(i) - to, 4);
    targets.insert(instruction.operands[0].name);
  }
  EXPECT_GE(targets.size(), 2u);
}

TEST(ParseTest, OperandForms) {
  Module module = MustParse(Around(R"(
    .reg .pred q<3>; .reg .b32 %r<9>; .reg .b64 %rd<3>; .reg .f32 f; .reg .v4 .f32 v; .shared .align 16 .b8 s[64];
    @!q1 ld.global.nc.v4.u32 {%r1, %r2, _, %r4}, [%rd1+-8];
    shfl.sync.down.b32 %r1|q2, %r2, 0x10, 037, -1;
    mov.u32 %r3, %tid.x; mov.u32 %r4, %laneid; mov.b32 %r5, WARP_SZ;
    st.shared.f32 [s+4*2-1], 0fBF800000;
    mov.f32 f, -1.5;
    mov.b64 %rd2, s+8;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1, {%r1, %r2}], [s+8];
    mov.f32 f, v.y;
    st.shared.v4.f32 [16], v;
    selp.b32 %r6, 0b101U, (1 << 4) | 3, !q1;
    ret;)"));
  EXPECT_THAT(
      Texts(Entry(module)),
      ElementsAre(
          "@!q1 ld.global.nc.v4.u32 {%r1, %r2, _, %r4}, [%rd1-8];", "shfl.sync.down.b32 %r1|q2, %r2, 16, 31, -1;",
          "mov.u32 %r3, %tid.x;", "mov.u32 %r4, %laneid;", "mov.b32 %r5, 32;", "st.shared.f32 [s+7], 0fBF800000;",
          "mov.f32 f, 0dBFF8000000000000;", "mov.b64 %rd2, s+8;",
          "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1, {%r1, "
          "%r2}], [s+8];",
          "mov.f32 f, v.y;", "st.shared.v4.f32 [16], {v.x, v.y, v.z, v.w};", "selp.b32 %r6, 5, 19, !q1;", "ret;"));
  const Operand& address = Entry(module).body[5].operands[0];
  EXPECT_TRUE(address.base_is_symbol);
  EXPECT_EQ(Entry(module).body[0].operands[0].elements.size(), 4u);
  EXPECT_EQ(Entry(module).body[8].operands[1].elements[0].elements.size(), 2u);
}

TEST(ParseTest, ScopesShadowRegistersVariablesAndLabels) {
  Module module = MustParse(Around(R"(
    .reg .b32 %r<3>; .reg .b32 a;
    mov.b32 a, 1;
    bra L;
    { .reg .b32 a; .reg .b32 %r<2>; .param .b32 x; mov.b32 a, %r1; mov.b32 %r2, a; bra L; L: st.param.b32 [x], a; }
    { .param .b32 x; .reg .b32 %r1; st.param.b32 [x], %r1; bra L; }
    L: mov.b32 a, %r1;)"));
  const Function& function = Entry(module);
  std::vector<std::string> texts = Texts(function);
  EXPECT_EQ(texts[0], "mov.b32 a, 1;");
  EXPECT_EQ(texts.back(), "mov.b32 a, %r1;");
  EXPECT_THAT(texts[2], HasSubstr("a#"));
  EXPECT_THAT(texts[2], HasSubstr("%r1#"));
  EXPECT_EQ(texts[3].substr(0, 13), "mov.b32 %r2, ");  // the inner range ends below it
  EXPECT_THAT(texts[6], HasSubstr("[x#"));
  // The inner L was declared first and keeps its name; the two branches outside mean the outer one.
  EXPECT_EQ(function.labels.at(function.body[4].operands[0].name), 5);
  EXPECT_EQ(function.labels.at(function.body[1].operands[0].name), 8);
  EXPECT_EQ(function.labels.at(function.body[7].operands[0].name), 8);
}

TEST(ParseTest, SwitchTablesPrototypesAndAliases) {
  Module module = MustParse(Around(R"(
    .reg .b32 %r<3>; .reg .b64 %rd<3>;
    ts: .branchtargets A, B,
        A;
    brx.idx.uni %r1, ts;
    A: ret;
    B: proto: .callprototype ()_ (.param .b64 _, .param .align 4 .b8 _[12]) .noreturn;
    call %rd1, (p0, p1), proto;
    call.uni g;
    exit;)",
                                   ".func g() { ret; }\n.alias h, g;\n"));
  const Function& function = Entry(module);
  ASSERT_EQ(function.branch_targets.size(), 1u);
  EXPECT_THAT(function.branch_targets[0].labels, ElementsAre("A", "B", "A"));
  EXPECT_EQ(function.prototypes[0].parameters[1].count, 12);
  EXPECT_EQ(function.body[2].operands.size(), 3u);
  EXPECT_EQ(module.FindFunction("h"), module.FindFunction("g"));
}

TEST(ParseTest, Initialisers) {
  Module module = MustParse(Around("ret;", R"(
    .global .align 4 .u32 word = 0x10;
    .const .f32 floats[3] = {1.5, 0f40000000, -2};
    .global .b8 rows[2][3] = {{1}, {4, 5}};
    .global .s16 open[] = {-1, 2};
    .global .u64 pointers[3] = {word, generic(rows)+4, 7};
    .global .b8 bytes[10] = {1, 0xFF(generic(word)), 0xFF00(generic(word)), 0xFF0000(generic(word)),
      0xFF000000(generic(word)), 0xFF00000000(generic(word)), 0xFF0000000000(generic(word)),
      0xFF000000000000(generic(word)), 0xFF00000000000000(generic(word)), 9};
    .global .v4 .f32 quads[2];
    .extern .global .u32 elsewhere;)"));
  EXPECT_THAT(module.FindVariable("word")->initial, ElementsAre(0x10, 0, 0, 0));
  EXPECT_THAT(module.FindVariable("floats")->initial, ElementsAre(0, 0, 0xC0, 0x3F, 0, 0, 0, 0x40, 0, 0, 0, 0xC0));
  EXPECT_THAT(module.FindVariable("rows")->initial, ElementsAre(1, 0, 0, 4, 5, 0));
  EXPECT_EQ(module.FindVariable("open")->count, 2);
  EXPECT_THAT(module.FindVariable("open")->initial, ElementsAre(0xFF, 0xFF, 2, 0));
  const Variable& pointers = *module.FindVariable("pointers");
  ASSERT_EQ(pointers.relocations.size(), 2u);
  EXPECT_FALSE(pointers.relocations[0].generic);
  EXPECT_EQ(pointers.relocations[1].symbol, "rows");
  EXPECT_EQ(pointers.relocations[1].addend, 4);
  EXPECT_EQ(pointers.relocations[1].offset, 8);
  EXPECT_TRUE(pointers.relocations[1].generic);
  EXPECT_EQ(pointers.initial[16], 7);
  const Variable& bytes = *module.FindVariable("bytes");
  ASSERT_EQ(bytes.relocations.size(), 1u);
  EXPECT_EQ(bytes.relocations[0].offset, 1);
  EXPECT_EQ(bytes.initial[9], 9);
  EXPECT_EQ(module.FindVariable("quads")->count, 8);
  EXPECT_EQ(module.FindVariable("quads")->alignment, 16);
  EXPECT_TRUE(module.FindVariable("elsewhere")->is_extern);
}

TEST(ParseTest, HeadersDirectivesAndSections) {
  Module module = MustParse(R"(/* a
    comment */ .version 8.5
    .target sm_100a, debug
    .address_size 64
    .file 2 "/src/a b.cu", 1, 2
    .pragma "used";
    .entry k (.param .u64 .ptr .global .align 16 p, .param .align 64 .b8 map[128]) .reqntid 32, 4
      .explicitcluster .reqnctapercluster 2, 1, 1 .maxnreg 64
    { .loc 2 7 3
      ret; }
    .section .debug_info { .b8 1, 2
      .b64 $L__x { } }
  )");
  EXPECT_EQ(module.version, "8.5");
  EXPECT_EQ(module.target, "sm_100a");
  EXPECT_EQ(module.files[2], "/src/a b.cu");
  const Function& function = Entry(module);
  EXPECT_EQ(function.required_threads[1], 4);
  EXPECT_THAT(function.directives, ElementsAre(".explicitcluster", ".reqnctapercluster 2, 1, 1", ".maxnreg 64"));
  EXPECT_EQ(function.parameters[0].alignment, 8);  // .ptr .align speaks of what is pointed to
  EXPECT_EQ(function.body[0].line, 7);
  EXPECT_EQ(function.body[0].file, 2);
}

TEST(ParseTest, ToTextIsCut) {
  Module module = MustParse(Around(".reg .b32 %r<300>; mov.b32 %r299, %r298;"));
  EXPECT_EQ(ToText(Entry(module).body[0], 12), "mov.b32 %...");
  EXPECT_EQ(ToText(Entry(module).body[0], 0), "");
}

struct Bad {
  const char* body;
  const char* before;
  const char* message;
};

TEST(ParseTest, RefusesWhatIsNotPtx) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("not PTX"));
  EXPECT_THAT(ErrorOf("int main() {}"), HasSubstr("ptx:1: expected a directive"));
  EXPECT_THAT(ErrorOf(".version 9.0 .address_size 32"), HasSubstr(".address_size 64"));
  EXPECT_THAT(ErrorOf(".version 9.0\n/* open"), HasSubstr("ptx:2: the comment"));
  EXPECT_THAT(ErrorOf(std::string(".version 9.0\n\0x", 15)), HasSubstr("ptx:2: a byte"));
  EXPECT_THAT(ErrorOf(std::string((size_t{64} << 20) + 1, ' ')), HasSubstr("most is 67108864"));
  const Bad kBad[] = {
      {"mov.b32 %r1, 1;", "", "ptx:7: \"%r1\" is neither a declared nor a special register"},
      {"bra NOWHERE;", "", "a label of its function"},
      {"bra g;", ".func g() { ret; }", "a label of its function"},
      {"ts: .branchtargets X; ret;", "", "not a label"},
      {".reg .b32 r; brx.idx r, X; X: ret;", "", ".branchtargets list"},
      {".reg .b64 r; ld.u64 r, [nothing];", "", "\"nothing\" is not declared"},
      {"call nothing;", "", "\"nothing\" is not declared"},
      {"X: X: ret;", "", "declared twice"},
      {".reg .b32 r; .reg .b32 r;", "", "declared twice"},
      {".reg .b32 %r1; .reg .b32 %r<4>;", "", "declared twice"},
      {".reg .b32 %r<4>; .reg .b32 %r1;", "", "declared twice"},
      {"@p ret;", "", "guard"},
      {"ret 1", "", "expected ';'"},
      {".reg .b32 r; mov.b32 r, 0x;", "", "without digits"},
      {".reg .b32 r; mov.b32 r, 09;", "", "digit"},
      {".reg .b32 r; mov.b32 r, 0f12;", "", "hexadecimal digits"},
      {".reg .b32 r; mov.b32 r, 18446744073709551616;", "", "more than 64 bits"},
      {".reg .b32 r; mov.b32 r, 1/0;", "", "division by zero"},
      {".reg .b32 r; mov.b32 r, %tid.q;", "", "no part"},
      {".reg .b32 r; mov.b32 r, {{{{{{{r}}}}}}};", "", "nested too deep"},
      {".reg .b32 %r<9999999>;", "", "registers"},
      {".reg .v4 .b32 %r<9>;", "", "vector registers"},
      {".local .b8 x[];", "", "no size"},
      {".shared .b8 x[9999999999999999];", "", "too large"},
      {".shared .b8 x[1000000][1000000][1000000][1000000];", "", "too large"},
      {".shared .nonsense x;", "", "cannot have the type"},
      {".shared .align 3 .b8 x;", "", "power of two"},
      {"ret;", ".global .u32 x[2] = {1, 2, 3};", "too many elements"},
      {"ret;", ".global .u32 x = y;", "8 bytes"},
      {"ret;", ".global .u64 x = y;", "\"y\" is not declared"},
      {"ret;", ".global .u32 x; .global .u32 x;", "declared twice"},
      {"ret;", ".global .b8 x[999999999] = {1};", "initial values"},
      {"ret;", ".global .b8 x[8] = {0xFF00(y)};", "lowest"},
      {"ret;", ".func g() { ret; } .func g() { ret; }", "defined twice"},
      {"ret;", ".global .u32 g; .func g() { ret; }", "a variable already"},
      {"ret;", ".alias h, g;", "\"g\" is not declared"},
      {"ret;", ".section .debug { ", "no end"},
      {"ret;", ".loc 1 2", "column"},
      {"ret;", ".frobnicate", "unknown directive"},
      {"{ ret;", "", "found the end"},
  };
  for (const Bad& bad : kBad) {
    EXPECT_THAT(ErrorOf(Around(bad.body, bad.before)), HasSubstr(bad.message)) << bad.body << bad.before;
    EXPECT_EQ(ErrorOf(Around(bad.body, bad.before)).substr(0, 4), "ptx:");
  }
}

TEST(ParseTest, DeepNestingDoesNotOverflowTheStack) {
  std::string deep(200'000, '(');
  EXPECT_THAT(ErrorOf(Around(".reg .b32 r; mov.b32 r, " + deep)), HasSubstr("nested too deep"));
  EXPECT_THAT(ErrorOf(Around(".reg .b32 r; mov.b32 r, " + std::string(200'000, '-') + "1;")),
              HasSubstr("nested too deep"));
  EXPECT_THAT(ErrorOf(Around(std::string(200'000, '{'))), HasSubstr("nested too deep"));
  EXPECT_THAT(ErrorOf(Around("ret;", ".global .b8 x[] = " + std::string(200'000, '{'))), HasSubstr("nested too deep"));
}

TEST(ParseTest, LargeModulesAreLinear) {
  std::string body = ".reg .b32 %r<2>; .reg .pred p;\n";
  for (int i = 0; i < 20'000; ++i) {
    std::string n = std::to_string(i);
    body += "L" + n + ": { .param .b32 x; st.param.b32 [x], %r1; @p bra M; bra L" + n + "; M: }\n";
  }
  Module module = MustParse(Around(body));
  EXPECT_EQ(Entry(module).body.size(), 60'000u);
  EXPECT_EQ(Entry(module).variables.size(), 20'000u);
}

}  // namespace
}  // namespace solstice::ptx
