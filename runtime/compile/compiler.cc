// The compile stage: request -> LTO-IR -> PTX and cubin -> description.
#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>
#include <set>

#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/cubin.h"
#include "runtime/compile/diagnose.h"
#include "runtime/compile/options.h"
#include "runtime/compile/precompiled.h"
#include "runtime/compile/scan.h"
#include "runtime/compile/versions.h"
#include "runtime/ptx/analysis.h"
#include "runtime/ptx/module.h"

namespace solstice::compile {
namespace {

using base::Quote;
using base::StrCat;

constexpr int64_t kMaxPtxBytes = int64_t{64} << 20;  // what ptx::Parse accepts
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string Demangled(const std::string& name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string out = status == 0 && text != nullptr ? text : name;
  std::free(text);
  // Parameters and the return type of templates only obscure a kernel's name.
  if (out.rfind("void ", 0) == 0) out.erase(0, 5);
  size_t end = out.rfind('(');
  return end == std::string::npos || end == 0 ? out : out.substr(0, end);
}

// A name expression that cannot end the line or the expression NVRTC puts it into (runtime/plan checks its grammar).
bool IsSafeExpression(std::string_view text) {
  if (text.empty() || text.size() > 1024) return false;
  for (char c : text) {
    bool plain =
        std::isalnum(static_cast<unsigned char>(c)) || std::string_view("_:<>, -&*").find(c) != std::string_view::npos;
    if (!plain) return false;
  }
  return true;
}

bool IsFamily(std::string_view arch) { return !arch.empty() && arch.back() == 'f'; }

// nvJitLink of CUDA 13.0 leaves the f of a family target out of the PTX that it makes of LTO-IR, and the assembler then
// refuses what the whole family has.
void RestoreFamilyTarget(std::string_view arch, std::string* ptx) {
  if (!IsFamily(arch)) return;
  std::string bare = StrCat("\n.target ", arch.substr(0, arch.size() - 1));
  size_t end = ptx->find(bare);
  if (end == std::string::npos) return;
  end += bare.size();
  if (end < ptx->size() && std::isalnum(static_cast<unsigned char>((*ptx)[end])) == 0) ptx->insert(end, "f");
}

// One run of the stage. Each step returns false when the verdict stands.
class Job {
 public:
  Job(Frontend& frontend, Linker& linker, const CompilerConfig& config, const PrecompiledHeaders* precompiled,
      const v1::internal::ProgramSource& source, const v1::internal::CompileLimits& limits)
      : frontend_(frontend), linker_(linker), config_(config), precompiled_(precompiled), source_(source) {
    log_limit_ = limits.log_bytes() > 0 ? limits.log_bytes() : kDefaultLogBytes;
    cubin_limit_ = limits.cubin_bytes() > 0 ? limits.cubin_bytes() : kDefaultCubinBytes;
    program_.set_format_version(kProgramFormat);
    program_.set_arch(source.arch());
  }

  StatusOr<v1::internal::Program> Run();

 private:
  bool Reject(v1::Verdict verdict, std::string_view reason, std::string_view mend) {
    program_.set_verdict(verdict);
    program_.set_reason(std::string(reason));
    program_.set_mend(std::string(mend));
    return false;
  }
  bool Reject(const Explanation& explanation) {
    return Reject(v1::COMPILE_ERROR, explanation.reason, explanation.mend);
  }

  bool CheckRequest();
  bool PrepareSources();
  void FollowIncludes(std::vector<std::string>* texts);
  StatusOr<Frontend::Output> CallFrontend(const Frontend::Input& plain);
  StatusOr<bool> CompileToLtoIr();
  void StartCubin();
  StatusOr<bool> LinkToPtx();
  StatusOr<bool> AssembleCubin();
  StatusOr<bool> Describe();
  bool MatchEntries(const std::vector<v1::Kernel>& found);
  StatusOr<std::vector<std::string>> ListEntries();
  std::vector<std::string> TemplateNames() const;
  std::vector<std::string> LtoOptions() const;
  void Finish();

  Frontend& frontend_;
  Linker& linker_;
  const CompilerConfig& config_;
  const PrecompiledHeaders* const precompiled_;  // or nullptr
  const v1::internal::ProgramSource& source_;
  int64_t log_limit_ = 0, cubin_limit_ = 0;
  v1::internal::Program program_;
  OptionSet options_;
  Frontend::Input input_;
  std::vector<SourceScan::KernelName> kernels_in_source_;
  Frontend::Output compiled_;
  std::string ptx_, ptxas_log_, log_;
  std::future<StatusOr<Linker::Output>> assembling_;  // last: it uses the others
};

bool Job::CheckRequest() {
  auto refuse = [&](const Status& status) {
    return Reject(v1::INVALID_SUBMISSION, base::MessageOf(status), base::MendOf(status));
  };
  Status status = CheckArch(source_.arch());
  if (status.ok()) status = CheckSources(source_.sources());
  if (!status.ok()) return refuse(status);
  if (source_.main_source() < 0 || source_.main_source() >= source_.sources_size()) {
    return Reject(v1::INVALID_SUBMISSION, StrCat("main_source: there is no source ", source_.main_source()), "");
  }
  StatusOr<std::vector<std::string>> checked = CheckOptions({source_.options().begin(), source_.options().end()});
  if (!checked.ok()) return refuse(checked.status());
  options_ = SortOptions(*checked);
  for (const std::string& define : source_.defines()) {
    if (status = CheckDefine(define); !status.ok()) return refuse(status);
    std::string name(MacroName(define));
    if (std::find(options_.macros.begin(), options_.macros.end(), name) != options_.macros.end()) {
      return Reject(v1::INVALID_SUBMISSION,
                    StrCat("macro ", name, " is defined twice, by an option and by the plan, or twice by one"),
                    "define it in one place");
    }
    options_.macros.push_back(name);
  }
  for (const std::string& expression : source_.name_expressions()) {
    if (IsSafeExpression(expression)) continue;
    return Reject(v1::INVALID_SUBMISSION,
                  StrCat("name expression ", Quote(expression), ": holds a character that is not accepted"),
                  "write it as in \"ns::kernel<float, 4, true>\"");
  }
  return true;
}

bool Job::PrepareSources() {
  std::vector<std::string> texts;
  for (const v1::SourceFile& file : source_.sources()) {
    std::string_view text = file.content();
    if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
    texts.emplace_back(text);
  }
  FollowIncludes(&texts);
  if (program_.verdict() != v1::VERDICT_UNSPECIFIED) return false;
  for (int i = 0; i < source_.sources_size(); ++i) {
    if (i == source_.main_source()) {
      input_.name = source_.sources(i).path();
      input_.text = std::move(texts[i]);
    } else {
      input_.headers.emplace_back(source_.sources(i).path(), std::move(texts[i]));
    }
  }
  std::vector<std::string> given = options_.frontend;
  for (const std::string& define : source_.defines()) given.push_back("-D" + define);
  input_.options = FrontendOptions(source_.arch(), given, config_.include_paths);
  input_.name_expressions.assign(source_.name_expressions().begin(), source_.name_expressions().end());
  return true;
}

// NVRTC finds in-memory headers only by the exact text of the #include, so a path relative to the including file is
// replaced by the path in the submission. Files that are reached are searched for kernel launches.
void Job::FollowIncludes(std::vector<std::string>* texts) {
  std::map<std::string, int> by_path;
  for (int i = 0; i < source_.sources_size(); ++i) by_path[source_.sources(i).path()] = i;
  std::set<int> seen = {source_.main_source()};
  std::vector<int> queue = {source_.main_source()};
  for (size_t next = 0; next < queue.size(); ++next) {
    int index = queue[next];
    const std::string& path = source_.sources(index).path();
    std::string& text = (*texts)[index];
    SourceScan scan = Scan(text);
    if (!scan.launches.empty()) {
      Reject(ExplainLaunch(path, scan.launches[0]));
      return;
    }
    kernels_in_source_.insert(kernels_in_source_.end(), scan.kernels.begin(), scan.kernels.end());
    // From the back, so that offsets stay right.
    for (auto include = scan.includes.rbegin(); include != scan.includes.rend(); ++include) {
      auto target = include->angled ? by_path.end() : by_path.find(ResolvePath(path, include->name));
      if (target == by_path.end()) target = by_path.find(include->name);
      if (target == by_path.end()) continue;
      if (target->first != include->name) text.replace(include->offset, include->name.size(), target->first);
      if (seen.insert(target->second).second) queue.push_back(target->second);
    }
  }
}

std::vector<std::string> Job::LtoOptions() const {
  std::vector<std::string> list = {"-lto",      "-ptx",      "-optimize-unused-variables",
                                   "-lineinfo", "-no-cache", StrCat("-arch=", source_.arch())};
  list.insert(list.end(), options_.lto.begin(), options_.lto.end());
  return list;
}

std::vector<std::string> Job::TemplateNames() const {
  std::vector<std::string> names;
  for (const auto& kernel : kernels_in_source_) {
    if (kernel.is_template) names.push_back(kernel.name + "<...>");
  }
  return names;
}

// Entries of the program without name expressions, for messages.
StatusOr<std::vector<std::string>> Job::ListEntries() {
  std::vector<std::string> names;
  Frontend::Input input = input_;
  input.name_expressions.clear();
  SOLSTICE_ASSIGN_OR_RETURN(Frontend::Output output, CallFrontend(input));
  if (output.ok) {
    SOLSTICE_ASSIGN_OR_RETURN(Linker::Output linked, linker_.Link(output.lto_ir, false, input_.name, LtoOptions()));
    StatusOr<ptx::Module> module = ptx::Parse(linked.image);
    if (linked.ok && module.ok()) {
      for (const ptx::Function& function : module->functions) {
        if (function.is_entry) names.push_back(Demangled(function.name));
      }
    }
  }
  for (const std::string& name : TemplateNames()) names.push_back(name);
  return names;
}

StatusOr<Frontend::Output> Job::CallFrontend(const Frontend::Input& plain) {
  Frontend::Input input = plain;
  if (precompiled_ == nullptr || !precompiled_->Apply(source_, options_, &input)) return frontend_.Compile(plain);
  SOLSTICE_ASSIGN_OR_RETURN(Frontend::Output output, frontend_.Compile(input));
  // Whatever goes wrong with the precompiled header is not the submission's affair.
  if (output.exhausted || precompiled_->IsBlamed(output.log)) return frontend_.Compile(plain);
  program_.set_precompiled_headers(true);
  return output;
}

StatusOr<bool> Job::CompileToLtoIr() {
  SOLSTICE_ASSIGN_OR_RETURN(compiled_, CallFrontend(input_));
  log_ = ScrubLog(compiled_.log, config_.include_paths);
  if (compiled_.ok) return true;
  // At its memory limit the front end mostly ends with a diagnostic instead of a code.
  if (compiled_.exhausted || log_.find("catastrophic error: out of memory") != std::string::npos) {
    return Reject(v1::COMPILE_ERROR,
                  StrCat("compile memory limit: the front end ran out of memory or failed inside: ",
                         base::Utf8Prefix(base::Trim(log_), 200)),
                  "reduce template depth, macro expansion and the size of initialisers");
  }
  std::vector<std::string> entries;
  if (log_.find("__nv_name_map(") != std::string::npos) {
    SOLSTICE_ASSIGN_OR_RETURN(entries, ListEntries());
  }
  return Reject(ExplainFrontend(log_, input_.name_expressions, entries));
}

// From the LTO-IR, beside the link to PTX: from PTX nvJitLink makes relocatable code, which joins no shared loads and
// calls division's slow paths, and is slower than nvcc's. It is the program of that PTX all the same: what ptxas makes
// of the PTX for itself has the same instructions (docs/compilation.md).
void Job::StartCubin() {
  if (IsFamily(source_.arch())) return;  // its PTX must be put right before
  std::vector<std::string> options = LtoOptions();
  std::erase(options, "-ptx");
  options.push_back("-Xptxas=-v");
  options.insert(options.end(), options_.ptxas.begin(), options_.ptxas.end());
  assembling_ = std::async(std::launch::async, [this, options = std::move(options)] {
    return linker_.Link(compiled_.lto_ir, false, input_.name, options);
  });
}

StatusOr<bool> Job::LinkToPtx() {
  StartCubin();
  SOLSTICE_ASSIGN_OR_RETURN(Linker::Output linked, linker_.Link(compiled_.lto_ir, false, input_.name, LtoOptions()));
  if (!linked.ok) {
    log_ += linked.log;
    if (linked.exhausted)
      return Reject(v1::COMPILE_ERROR, "compile memory limit: the optimiser failed inside or ran out of memory",
                    "make the kernel smaller");
    return Reject(ExplainLink(linked.log, "", source_.arch()));
  }
  if (static_cast<int64_t>(linked.image.size()) > kMaxPtxBytes) {
    return Reject(
        v1::RESOURCE_EXCEEDED,
        StrCat("the program's PTX has ", linked.image.size(), " bytes, at most ", kMaxPtxBytes, " are accepted"),
        "unroll less, or initialise large tables in a kernel");
  }
  std::error_code error;
  ptx_ = NormalisePtxPaths(linked.image, std::filesystem::current_path(error).string(), config_.include_paths);
  RestoreFamilyTarget(source_.arch(), &ptx_);
  return true;
}

StatusOr<bool> Job::AssembleCubin() {
  std::vector<std::string> options = {"-Xptxas=-v", "-no-cache", StrCat("-arch=", source_.arch())};
  options.insert(options.end(), options_.ptxas.begin(), options_.ptxas.end());
  SOLSTICE_ASSIGN_OR_RETURN(Linker::Output linked,
                            assembling_.valid() ? assembling_.get() : linker_.Link(ptx_, true, input_.name, options));
  if (!linked.ok) {
    log_ += linked.log;
    if (linked.exhausted)
      return Reject(v1::COMPILE_ERROR, "compile memory limit: the assembler failed inside or ran out of memory",
                    "make the kernel smaller");
    return Reject(ExplainLink(linked.log, ptx_, source_.arch()));
  }
  if (static_cast<int64_t>(linked.image.size()) > cubin_limit_) {
    return Reject(v1::RESOURCE_EXCEEDED,
                  StrCat("the cubin has ", linked.image.size(), " bytes, at most ", cubin_limit_, " are accepted"),
                  "unroll less, or initialise large tables in a kernel");
  }
  program_.set_cubin(std::move(linked.image));
  ptxas_log_ = std::move(linked.log);
  return true;
}

// One v1::Kernel for each name expression, then those that nothing asked for.
bool Job::MatchEntries(const std::vector<v1::Kernel>& found) {
  std::set<std::string> asked;
  for (size_t i = 0; i < input_.name_expressions.size(); ++i) {
    const std::string& expression = input_.name_expressions[i];
    const std::string& lowered = i < compiled_.lowered_names.size() ? compiled_.lowered_names[i] : std::string();
    auto kernel = std::find_if(found.begin(), found.end(), [&](const v1::Kernel& k) { return k.name() == lowered; });
    if (lowered.empty() || kernel == found.end()) {
      std::vector<std::string> names;
      for (const v1::Kernel& other : found) names.push_back(Demangled(other.name()));
      return Reject(v1::COMPILE_ERROR, StrCat("entry not found: ", expression, "; the program has: ", ListNames(names)),
                    "launch an entry that the source defines as __global__");
    }
    asked.insert(lowered);
    v1::Kernel* out = program_.add_kernels();
    *out = *kernel;
    if (expression != lowered) out->set_name_expression(expression);
  }
  for (const v1::Kernel& kernel : found) {
    if (asked.count(kernel.name()) == 0) *program_.add_kernels() = kernel;
  }
  return true;
}

StatusOr<bool> Job::Describe() {
  StatusOr<ptx::Module> module = ptx::Parse(ptx_);
  if (!module.ok()) {
    // ptxas took it, so what our parser does not know came from inline PTX; unanalysed it could hide state.
    return Reject(v1::COMPILE_ERROR, StrCat("the program's PTX cannot be analysed: ", base::MessageOf(module.status())),
                  "simplify the inline PTX");
  }
  std::vector<v1::Kernel> found = ptx::DescribeKernels(*module);
  if (found.empty()) {
    std::vector<std::string> templates = TemplateNames();
    return Reject(v1::COMPILE_ERROR, "no kernels: the source defines no __global__ function that is compiled",
                  templates.empty()
                      ? "write extern \"C\" __global__ void name(...)"
                      : StrCat("templates need instances: name one in a launch line (", ListNames(templates), ")"));
  }
  SOLSTICE_ASSIGN_OR_RETURN(auto resources, ReadCubin(program_.cubin()));
  std::map<std::string, PtxasReport> reports = ReadPtxasLog(ptxas_log_);
  for (v1::Kernel& kernel : found) {
    auto resource = resources.find(kernel.name());
    if (resource == resources.end()) return base::Internal(StrCat("the cubin lacks kernel ", kernel.name()));
    kernel.set_registers(resource->second.registers);
    kernel.set_local_bytes(resource->second.local_bytes);
    kernel.set_constant_bytes(resource->second.constant_bytes);
    auto report = reports.find(kernel.name());
    if (report == reports.end()) continue;
    kernel.set_spill_store_bytes(report->second.spill_store_bytes);
    kernel.set_spill_load_bytes(report->second.spill_load_bytes);
    kernel.set_static_shared_bytes(report->second.shared_bytes);
  }
  if (!MatchEntries(found)) return false;
  for (const v1::DeviceState& state : ptx::FindDeviceState(*module)) *program_.add_device_state() = state;
  for (const std::string& mode : ptx::MathModes(*module)) program_.add_math_modes(mode);
  program_.set_ptx(ptx_);
  program_.set_verdict(v1::PASSED);
  return true;
}

void Job::Finish() {
  CutText cut = CutLog(log_, log_limit_);
  // Tools may quote bytes of a source in pieces; a protobuf string must be UTF-8.
  program_.set_log(base::IsValidUtf8(cut.text) ? cut.text : ReplaceInvalidUtf8(cut.text));
  program_.set_log_bytes(cut.bytes);
  program_.set_log_dropped_bytes(cut.dropped);
  if (program_.verdict() != v1::PASSED) {
    program_.clear_cubin();
    program_.clear_kernels();
    if (!base::IsValidUtf8(program_.reason())) program_.set_reason(ReplaceInvalidUtf8(program_.reason()));
    if (!base::IsValidUtf8(program_.mend())) program_.set_mend(ReplaceInvalidUtf8(program_.mend()));
  }
}

StatusOr<v1::internal::Program> Job::Run() {
  if (CheckRequest() && PrepareSources()) {
    using Step = StatusOr<bool> (Job::*)();
    for (Step step : {&Job::CompileToLtoIr, &Job::LinkToPtx, &Job::AssembleCubin, &Job::Describe}) {
      SOLSTICE_ASSIGN_OR_RETURN(bool go_on, (this->*step)());
      if (!go_on) break;
    }
  }
  Finish();
  return std::move(program_);
}

v1::internal::Program Stopped(const v1::internal::ProgramSource& source, v1::Verdict verdict, std::string_view reason,
                              std::string_view mend) {
  v1::internal::Program program;
  program.set_format_version(kProgramFormat);
  program.set_verdict(verdict);
  program.set_reason(std::string(reason));
  program.set_mend(std::string(mend));
  program.set_arch(source.arch());
  return program;
}

}  // namespace

Compiler::Compiler(std::unique_ptr<Frontend> frontend, std::unique_ptr<Linker> linker, CompilerConfig config)
    : frontend_(std::move(frontend)), linker_(std::move(linker)), config_(std::move(config)) {
  status_ = CheckVersions(frontend_->version(), linker_->version(), config_.include_paths);
}

Compiler::~Compiler() = default;

v1::Toolchain Compiler::toolchain() const {
  v1::Toolchain toolchain;
  toolchain.set_nvrtc(frontend_->version());
  toolchain.set_nvjitlink(linker_->version());
  toolchain.set_headers_digest(config_.headers_digest);
  return toolchain;
}

StatusOr<v1::internal::Program> Compiler::Compile(const v1::internal::ProgramSource& source,
                                                  const v1::internal::CompileLimits& limits) {
  SOLSTICE_RETURN_IF_ERROR(status_);
  base::Stopwatch watch;
  Job job(*frontend_, *linker_, config_, precompiled_.get(), source, limits);
  SOLSTICE_ASSIGN_OR_RETURN(v1::internal::Program program, job.Run());
  *program.mutable_toolchain() = toolchain();
  program.set_milliseconds(watch.milliseconds());
  return program;
}

Status Compiler::Precompile(const v1::internal::ProgramSource& headers, const std::string& path) {
  SOLSTICE_RETURN_IF_ERROR(status_);
  if (precompiled_ != nullptr) return base::FailedPrecondition("headers are precompiled already");
  SOLSTICE_ASSIGN_OR_RETURN(precompiled_, PrecompiledHeaders::Make(*frontend_, config_, headers, path));
  return absl::OkStatus();
}

v1::internal::Program TimeLimitProgram(const v1::internal::ProgramSource& source,
                                       const v1::internal::CompileLimits& limits) {
  v1::internal::Program program =
      Stopped(source, v1::COMPILE_ERROR, StrCat("compile time limit: not finished after ", limits.time_s(), " s"),
              "reduce template depth, unrolling and the number of instances");
  program.set_milliseconds(limits.time_s() * 1000);
  return program;
}

v1::internal::Program MemoryLimitProgram(const v1::internal::ProgramSource& source,
                                         const v1::internal::CompileLimits& limits) {
  return Stopped(source, v1::COMPILE_ERROR,
                 StrCat("compile memory limit: the compiler needed more than ", limits.memory_bytes() >> 20, " MiB"),
                 "reduce template depth, macro expansion and the size of initialisers");
}

}  // namespace solstice::compile
