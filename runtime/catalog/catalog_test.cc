#include "runtime/catalog/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "runtime/base/crypto.h"
#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/catalog/digest.h"
#include "runtime/core/json.h"

namespace solstice::catalog {
namespace {

using base::StrCat;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

namespace fs = std::filesystem;

const char kSource[] = SOLSTICE_SOURCE_DIR;

std::string Definition(std::string_view name, std::string_view more = "") {
  return StrCat(R"({"name": ")", name, R"(", "reference": "def run(x): return 2 * x", )", more,
                R"("axes": {"N": {"type": "var"}, "K": {"type": "const", "value": 4}},
  "inputs": {"x": {"shape": ["N", "K"], "dtype": "float32"}}, "outputs": {"y": {"shape": ["N", "K"], "dtype": "float32"}}})");
}
constexpr std::string_view kWorkload = R"({"uuid": "w1", "axes": {"N": 1}, "inputs": {"x": {"type": "random"}}}
{"uuid": "w2", "axes": {"N": 2}, "inputs": {"x": {"type": "random"}}})";
constexpr std::string_view kCompanion =
    R"({"version": 1, "reference": {"source": "reference.cu"}, "parameters": {"factor": 2.0}, "smoke_workloads": ["w1"]})";
constexpr std::string_view kReference = "//@ launch twice grid=(N) block=(4) args=(x, y)\n";

v1::DefinitionFiles Files() {
  v1::DefinitionFiles files;
  files.set_definition_json(Definition("twice"));
  files.set_workload_jsonl(std::string(kWorkload));
  files.set_solstice_json(std::string(kCompanion));
  files.set_reference_source(std::string(kReference));
  return files;
}

std::string BundleError(const v1::DefinitionFiles& files) {
  auto bundle = BundleFromFiles(files);
  EXPECT_FALSE(bundle.ok());
  if (bundle.ok()) return "";
  EXPECT_EQ(bundle.status().code(), absl::StatusCode::kInvalidArgument);
  return base::MessageOf(bundle.status());
}

TEST(Bundle, HoldsEverything) {
  auto bundle = BundleFromFiles(Files());
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ(bundle->definition().name(), "twice");
  EXPECT_EQ(bundle->workloads_size(), 2);
  EXPECT_EQ(bundle->companion().reference_source(), kReference);
  EXPECT_EQ(bundle->companion().reference_path(), "reference.cu");
  EXPECT_EQ(bundle->companion().smoke_workloads(0).uuid(), "w1");
  EXPECT_THAT(bundle->digest(), StartsWith("sha256:"));
  EXPECT_EQ(bundle->version(), StrCat("twice@", bundle->digest().substr(7, 12)));
}

TEST(Bundle, NeedsOnlyTheDefinition) {
  v1::DefinitionFiles files;
  files.set_definition_json(Definition("twice"));
  auto bundle = BundleFromFiles(files);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ(bundle->workloads_size(), 0);
  EXPECT_EQ(bundle->companion().reference_source(), "");
}

TEST(Bundle, RefusesWhatDoesNotFitTogether) {
  v1::DefinitionFiles files = Files();
  files.clear_reference_source();
  EXPECT_THAT(BundleError(files), HasSubstr("reference.cu is missing"));
  files = Files();
  files.clear_solstice_json();
  EXPECT_THAT(BundleError(files), HasSubstr("names none"));
  files = Files();
  files.set_reference_source(std::string("a\0b", 3));
  EXPECT_THAT(BundleError(files), HasSubstr("not UTF-8"));
  files.set_reference_source("\xFF");
  EXPECT_THAT(BundleError(files), HasSubstr("not UTF-8"));
  files.set_reference_source(std::string(kMaxSourceBytes + 1, ' '));
  EXPECT_THAT(BundleError(files), HasSubstr("the limit is 1048576"));
  files = Files();
  files.set_workload_jsonl(
      R"({"uuid": "b", "axes": {"N": 1}, "inputs": {"x": {"type": "safetensors", "path": "blob/x", "tensor_key": "x"}}})");
  files.clear_solstice_json();
  files.clear_reference_source();
  EXPECT_THAT(BundleError(files), HasSubstr("\"blob/x\" did not come with the request"));
  files.set_definition_json("{}");
  EXPECT_THAT(BundleError(files), StartsWith("definition.json:1:1: $: "));
}

// The golden text and digest of docs/formats/digests.md. A change here makes every recorded version another one.
TEST(Digest, Golden) {
  auto bundle = BundleFromFiles(Files());
  ASSERT_TRUE(bundle.ok());
  std::string text = DefinitionDigestText(bundle->definition(), bundle->companion());
  EXPECT_EQ(text, R"({"axes":[{"name":"N","variable":true},{"constant":4,"name":"K"}],"custom_inputs_entrypoint":"",)"
                  R"("inputs":[{"dtype":"float32","name":"x","shape":["N","K"]}],"op_type":"",)"
                  R"("outputs":[{"dtype":"float32","name":"y","shape":["N","K"]}],)"
                  R"("parameters":[{"integer":false,"name":"factor","value":2}],)"
                  R"("reference":"sha256:a008fe9b165fc2110693e7887fc17f23f14237d960602eb801f3625d0f4303dc",)"
                  R"("reference_kernel":"sha256:10c32fa2c410446eb8c632873ff9686c4a7ed88fbd8c55eccceb1b79eff17a74",)"
                  R"("smoke_workloads":[{"axes":[{"name":"N","value":1}],"inputs":[{"name":"x","type":"random"}],)"
                  R"("tolerance":{"allow_negative_inf":false,"max_atol":0.01,"max_error_cap":null,"max_rtol":0.01,)"
                  R"("required_matched_ratio":0.99},"uuid":"w1"}]})");
  EXPECT_EQ(bundle->digest(), "sha256:7f6322bb70b007196744d4dc88c601cf3da7f7c8116e6bcf9fee2990974b469e");
  EXPECT_EQ(bundle->digest(), StrCat("sha256:", base::Hex(base::Sha256(StrCat("solstice/definition/v1", '\0', text)))));
}

TEST(Digest, LeavesOutNamesDescriptionsAndWorkloads) {
  std::string digest = BundleFromFiles(Files())->digest();
  v1::DefinitionFiles files = Files();
  files.set_definition_json(Definition("other", R"("description": "d", "hf_id": "x", )"));
  EXPECT_EQ(BundleFromFiles(files)->digest(), digest);
  files = Files();
  files.set_workload_jsonl(std::string(kWorkload.substr(0, kWorkload.find('\n'))));
  EXPECT_EQ(BundleFromFiles(files)->digest(), digest);
}

TEST(Digest, CoversEverythingElse) {
  std::set<std::string> digests = {BundleFromFiles(Files())->digest()};
  auto expect_new = [&](const v1::DefinitionFiles& files, const char* what) {
    auto bundle = BundleFromFiles(files);
    ASSERT_TRUE(bundle.ok()) << bundle.status();
    EXPECT_TRUE(digests.insert(bundle->digest()).second) << what;
  };
  auto change = [&](std::string_view from, std::string_view to, auto get, const char* what) {
    v1::DefinitionFiles files = Files();
    std::string* text = get(files);
    size_t at = text->find(from);
    ASSERT_NE(at, std::string::npos) << what;
    text->replace(at, from.size(), to);
    expect_new(files, what);
  };
  auto definition = [](v1::DefinitionFiles& files) { return files.mutable_definition_json(); };
  auto companion = [](v1::DefinitionFiles& files) { return files.mutable_solstice_json(); };
  auto reference = [](v1::DefinitionFiles& files) { return files.mutable_reference_source(); };
  auto workload = [](v1::DefinitionFiles& files) { return files.mutable_workload_jsonl(); };
  change("\"value\": 4", "\"value\": 5", definition, "a constant");
  change(R"("type": "const", "value": 4)", R"("type": "expr", "expression": "4")", definition, "a kind of axis");
  change(R"(["N", "K"], "dtype": "float32"}}, "out)", R"(["K", "N"], "dtype": "float32"}}, "out)", definition,
         "a shape");
  change("float32", "float16", definition, "a type");
  change("2 * x", "x * 2", definition, "the published reference");
  change("\"reference\"", R"("op_type": "scale", "reference")", definition, "the kind of operator");
  change("\"reference\"", R"("custom_inputs_entrypoint": "make", "reference")", definition, "an entrypoint");
  change("2.0", "3.0", companion, "a parameter");
  change("2.0", "2", companion, "a parameter's type");
  change("w1", "w2", companion, "a smoke workload");
  change("\"N\": 1", "\"N\": 3", workload, "an axis of a smoke workload");
  change("twice grid", "thrice grid", reference, "the reference kernel");
}

// A folder of the test's own.
class FolderTest : public ::testing::Test {
 protected:
  FolderTest() {
    std::string pattern = ::testing::TempDir() + "/catalog.XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~FolderTest() override { fs::remove_all(root_); }

  void Write(const std::string& path, std::string_view text) {
    fs::create_directories(fs::path(root_ + "/" + path).parent_path());
    std::ofstream(root_ + "/" + path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  std::unique_ptr<Catalog> Load(const std::string& below = "") {
    auto catalog = Catalog::Load({root_ + below}, root_ + "/kernels");
    EXPECT_TRUE(catalog.ok()) << catalog.status();
    return catalog.ok() ? std::move(*catalog) : nullptr;
  }

  std::string root_;
};

TEST_F(FolderTest, FindsDefinitionsAtMostThreeFoldersDeep) {
  Write("definition.d/one/definition.json", Definition("one"));
  Write("a/b/two/definition.json", Definition("two"));
  Write("a/b/c/four/definition.json", Definition("four"));
  Write(".hidden/three/definition.json", Definition("three"));
  Write("loose.json", "{");
  fs::create_directory_symlink(root_ + "/a", root_ + "/link");
  auto catalog = Load();
  EXPECT_THAT(catalog->problems(), IsEmpty());
  std::vector<std::string> names;
  for (const auto& bundle : catalog->All()) names.push_back(bundle->definition().name());
  EXPECT_THAT(names, ElementsAre("one", "two"));
  EXPECT_EQ(Load("/a/b/two")->All().size(), 1u);  // a root may be a definition itself
}

TEST_F(FolderTest, BrokenFoldersDoNotStopTheOthers) {
  Write("bad/definition.json", "{");
  Write("good/definition.json", Definition("good"));
  Write("good/workload.jsonl", R"({"uuid": "w", "axes": {"N": 1, "extra": 2}, "inputs": {"x": {"type": "random"}}})");
  Write("worse/definition.json", Definition("worse"));
  Write("worse/workload.jsonl", "[]");
  Write("zz/definition.json", Definition("good"));
  auto catalog = Load();
  EXPECT_THAT(catalog->All(), SizeIs(1));
  EXPECT_THAT(catalog->problems(),
              ElementsAre(HasSubstr("bad: definition.json:1:2: $: "), HasSubstr("worse: workload.jsonl:1:1: $: "),
                          AllOf(HasSubstr("zz: good is already defined in"), HasSubstr("/good"))));
  EXPECT_THAT(catalog->notes(), ElementsAre(HasSubstr("good: workload.jsonl: axis \"extra\"")));
}

TEST_F(FolderTest, ReadsReferencesBesideAndFromFamilies) {
  Write("kernels/scale/kernel.cu", "// family\n");
  Write("own/definition.json", Definition("own"));
  Write("own/solstice.json", R"({"version": 1, "reference": {"source": "cuda/reference.cu"}})");
  Write("own/cuda/reference.cu", "// own\n");
  Write("shared/definition.json", Definition("shared"));
  Write("shared/solstice.json", R"({"version": 1, "reference": {"family": "scale"}})");
  Write("missing/definition.json", Definition("missing"));
  Write("missing/solstice.json", R"({"version": 1, "reference": {"family": "absent"}})");
  Write("linked/definition.json", Definition("linked"));
  Write("linked/solstice.json", R"({"version": 1, "reference": {"source": "link.cu"}})");
  fs::create_symlink("/etc/hostname", root_ + "/linked/link.cu");
  auto catalog = Load();
  EXPECT_EQ((*catalog->Find("own"))->companion().reference_source(), "// own\n");
  EXPECT_EQ((*catalog->Find("shared"))->companion().reference_source(), "// family\n");
  EXPECT_THAT(catalog->problems(), ElementsAre(HasSubstr("linked"), HasSubstr("no reference kernel \"absent\"")));
}

TEST_F(FolderTest, FindsByNameAndVersion) {
  Write("a/definition.json", Definition("alpha"));
  auto catalog = Load();
  auto bundle = catalog->Find("alpha");
  ASSERT_TRUE(bundle.ok());
  EXPECT_TRUE(catalog->Find((*bundle)->version()).ok());
  auto other = catalog->Find("alpha@000000000000");
  EXPECT_EQ(other.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(base::MessageOf(other.status()), HasSubstr((*bundle)->version()));
  auto unknown = catalog->Find("alhpa");
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(base::MendOf(unknown.status()), HasSubstr("did you mean alpha?"));
}

TEST_F(FolderTest, RootsMustExist) {
  EXPECT_EQ(Catalog::Load({root_ + "/absent"}, "").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(FolderTest, ReadFolderGivesTheBytes) {
  Write("a/definition.json", Definition("a"));
  Write("a/workload.jsonl", kWorkload);
  Write("a/solstice.json", kCompanion);
  Write("a/reference.cu", kReference);
  auto files = ReadFolder(root_ + "/a", "");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->definition_json(), Definition("a"));
  EXPECT_EQ(files->workload_jsonl(), kWorkload);
  EXPECT_EQ(files->solstice_json(), kCompanion);
  EXPECT_EQ(files->reference_source(), kReference);
  EXPECT_TRUE(BundleFromFiles(*files).ok());
  EXPECT_FALSE(ReadFolder(root_ + "/absent", "").ok());
  EXPECT_FALSE(ReadFolder(root_, "").ok());  // no definition.json
}

// Case 20: one safetensors file is good, every other workload is left out with file, tensor and reason.
TEST_F(FolderTest, ChecksTheBlobsOfCase20) {
  std::string source = StrCat(kSource, "/tests/cases/20_bad_workload_files/blobs");
  fs::copy(source, root_ + "/blobs", fs::copy_options::recursive);
  fs::copy_file(source + "/workload_blobs.jsonl", root_ + "/blobs/workload.jsonl",
                fs::copy_options::overwrite_existing);
  FolderReport report;
  auto bundle = BundleFromFolder(root_ + "/blobs", "", report);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  ASSERT_EQ(bundle->workloads_size(), 1);
  EXPECT_EQ(bundle->workloads(0).uuid(), "blob-good");
  auto left_out = [](std::string_view uuid, std::string_view file, std::string_view reason) {
    return AllOf(HasSubstr(StrCat("workload \"", uuid, "\", input \"x\": blob/", file, ".safetensors")),
                 HasSubstr(reason));
  };
  EXPECT_THAT(
      report.left_out,
      ElementsAre(left_out("blob-header_len_huge", "header_len_huge", "the header claims 9223372036854775807 bytes"),
                  left_out("blob-offset_past_end", "offset_past_end", "tensor \"x\": data_offsets end at 4096"),
                  left_out("blob-offsets_reversed", "offsets_reversed", "tensor \"x\": data_offsets run backwards"),
                  left_out("blob-shape_mismatch", "shape_mismatch", "tensor \"x\": the shape asks for 4000000000"),
                  left_out("blob-shape_overflow", "shape_overflow", "tensor \"x\": the shape overflows"),
                  left_out("blob-wrong_dtype", "wrong_dtype", "tensor \"x\": is F64"),
                  left_out("blob-duplicate_key", "duplicate_key", "$.x: duplicate key"),
                  left_out("blob-truncated", "truncated", "the header claims 64 bytes"),
                  left_out("blob-empty", "empty", "0 bytes are too few"),
                  left_out("blob-missing-key", "good", "has no tensor \"nope\""),
                  left_out("blob-wrong-axis", "good", "tensor \"x\": has shape [4], the workload needs [5]")));
  EXPECT_THAT(base::MessageOf(ReadFolder(root_ + "/blobs", "").status()), HasSubstr("blob-header_len_huge"));
  auto catalog = Load();
  EXPECT_THAT(catalog->problems(), ElementsAre(HasSubstr("11 workloads left out")));
}

// Case 20: of the paths, only the two plain ones load.
TEST_F(FolderTest, ChecksThePathsOfCase20) {
  std::string source = StrCat(kSource, "/tests/cases/20_bad_workload_files/blobs");
  fs::copy(source, root_ + "/blobs", fs::copy_options::recursive);
  fs::create_symlink("/etc/hostname", root_ + "/blobs/blob/link_outside.safetensors");
  auto text = base::ReadFile(source + "/workload_traversal.jsonl", 1 << 20);
  ASSERT_TRUE(text.ok());
  std::vector<std::string> loaded;
  int lines = 0;
  for (std::string_view line : base::Split(base::Trim(*text), '\n')) {
    ++lines;
    Write("blobs/workload.jsonl", line);
    FolderReport report;
    auto bundle = BundleFromFolder(root_ + "/blobs", "", report);
    if (bundle.ok() && bundle->workloads_size() == 1) loaded.push_back(bundle->workloads(0).uuid());
    if (!bundle.ok()) {
      EXPECT_EQ(bundle.status().code(), absl::StatusCode::kInvalidArgument);
    }
    auto files = ReadFolder(root_ + "/blobs", "");
    EXPECT_EQ(files.ok(), bundle.ok() && bundle->workloads_size() == 1);
    if (!files.ok()) {
      EXPECT_EQ(files.status().code(), absl::StatusCode::kInvalidArgument);
    }
  }
  EXPECT_EQ(lines, 13);
  EXPECT_THAT(loaded, ElementsAre("path-4", "path-5"));
}

// What the repository ships: complete, and different from one another.
TEST(Repository, DefinitionsAreComplete) {
  auto catalog = Catalog::Load({StrCat(kSource, "/definitions")}, StrCat(kSource, "/reference_kernels"));
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  EXPECT_THAT((*catalog)->problems(), IsEmpty());
  EXPECT_THAT((*catalog)->notes(), IsEmpty());
  EXPECT_GE((*catalog)->All().size(), 17u);
  std::set<std::string> digests, uuids;
  for (const auto& bundle : (*catalog)->All()) {
    const std::string& name = bundle->definition().name();
    EXPECT_TRUE(digests.insert(bundle->digest()).second) << name;
    EXPECT_FALSE(bundle->definition().description().empty()) << name;
    EXPECT_FALSE(bundle->definition().op_type().empty()) << name;
    EXPECT_THAT(bundle->definition().reference(), HasSubstr("def run(")) << name;
    EXPECT_GT(bundle->workloads_size(), 0) << name;
    EXPECT_GT(bundle->companion().smoke_workloads_size(), 0) << name;
    EXPECT_THAT(bundle->companion().reference_source(), HasSubstr("//@ launch ")) << name;
    for (const v1::Workload& workload : bundle->workloads()) EXPECT_TRUE(uuids.insert(workload.uuid()).second) << name;
    for (const auto* tensors : {&bundle->definition().inputs(), &bundle->definition().outputs()}) {
      for (const v1::Tensor& tensor : *tensors) EXPECT_FALSE(tensor.description().empty()) << name;
    }
  }
}

TEST(Repository, CasesLoadAndTheirTableIsSound) {
  std::string cases = StrCat(kSource, "/tests/cases/");
  auto catalog = Catalog::Load({cases}, StrCat(kSource, "/reference_kernels"));
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  EXPECT_THAT((*catalog)->problems(), IsEmpty());
  EXPECT_GE((*catalog)->All().size(), 16u);
  for (const auto& bundle : (*catalog)->All()) {
    EXPECT_THAT(bundle->companion().reference_source(), HasSubstr("//@ launch ")) << bundle->version();
  }
  auto text = base::ReadFile(cases + "cases.json", 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status();
  auto table = core::ParseJson(*text, "cases.json");
  ASSERT_TRUE(table.ok()) << table.status();
  std::set<std::string> expected = {"PASSED",      "INCORRECT_NUMERICAL", "RUNTIME_ERROR", "COMPILE_ERROR",   "TIMEOUT",
                                    "REWARD_HACK", "INVALID_SUBMISSION",  "NEEDS_DEVICE",  "INVALID_ARGUMENT"};
  for (const core::Json& row : table->array()) {
    for (const char* key :
         {"case", "definition", "kernel", "plan", "expect", "expect_reason_contains", "needs_device", "later_issue"}) {
      EXPECT_NE(row.Find(key), nullptr) << key << " in " << row.Text();
    }
    EXPECT_TRUE(fs::is_regular_file(cases + row.Find("kernel")->string())) << row.Text();
    EXPECT_TRUE(fs::is_regular_file(cases + row.Find("plan")->string())) << row.Text();
    EXPECT_TRUE(fs::is_regular_file(cases + row.Find("definition")->string() + "/definition.json")) << row.Text();
    EXPECT_EQ(expected.count(row.Find("expect")->string()), 1u) << row.Text();
  }
}

}  // namespace
}  // namespace solstice::catalog
