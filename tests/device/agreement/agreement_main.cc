// Whether a GPU and the emulator agree: every definition's smoke workloads get their inputs from the trusted kernels on
// the one and from host code on the other, which must be equal bit for bit, and the reference's outputs must agree
// within the workload's tolerance. Run from a bundle's root or the source tree's; exit code 0 if all agree, 1 if not, 2
// otherwise.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "runtime/base/strings.h"
#include "runtime/bulk/bulk.h"
#include "runtime/catalog/catalog.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/nvjitlink/nvjitlink_linker.h"
#include "runtime/compile/nvrtc/nvrtc_frontend.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/emulator/emulator.h"
#include "runtime/exec/exec.h"
#include "runtime/plan/plan.h"
#include "runtime/verify/verify.h"
#include "runtime/worker/device_load.h"
#include "server/pipeline/programs.h"

namespace solstice {
namespace {

using v1::internal::BoundPlan;
using v1::internal::RunOutcome;

constexpr int kVariants = 3;

// One of the two that are compared.
struct Side {
  std::unique_ptr<device::Device> device;
  std::unique_ptr<device::Module> trusted;
  std::unique_ptr<bulk::Bulk> bulk;
};

// A workload's buffers on one side, as its reference plan has them.
struct Buffers {
  std::vector<std::unique_ptr<device::Buffer>> mappings;
  std::vector<device::Address> tensors;
};

v1::internal::LoadProgram Loadable(const v1::internal::Program& program) {
  v1::internal::LoadProgram load;
  load.set_ptx(program.ptx());
  load.set_cubin(program.cubin());
  *load.mutable_kernels() = program.kernels();
  return load;
}

StatusOr<std::unique_ptr<compile::Compiler>> OpenCompiler(const std::string& headers) {
  SOLSTICE_ASSIGN_OR_RETURN(compile::Toolkit toolkit, compile::FindToolkit());
  SOLSTICE_ASSIGN_OR_RETURN(auto frontend, compile::OpenNvrtc(toolkit.nvrtc));
  SOLSTICE_ASSIGN_OR_RETURN(auto linker, compile::OpenNvJitLink(toolkit.nvjitlink));
  compile::CompilerConfig config;
  config.include_paths = {headers, toolkit.include, toolkit.include + "/cccl"};
  return std::make_unique<compile::Compiler>(std::move(frontend), std::move(linker), std::move(config));
}

StatusOr<v1::internal::Program> Compile(compile::Compiler& compiler, const v1::internal::ProgramSource& source) {
  SOLSTICE_ASSIGN_OR_RETURN(v1::internal::Program program, compiler.Compile(source, {}));
  if (program.verdict() == v1::PASSED) return program;
  return base::Internal(base::StrCat("it does not compile: ", program.reason(), "\n", program.log()));
}

StatusOr<std::unique_ptr<device::Module>> Load(Side& side, const v1::internal::Program& program) {
  SOLSTICE_ASSIGN_OR_RETURN(worker::Loaded loaded, worker::LoadModule(*side.device, Loadable(program)));
  if (loaded.module == nullptr) return base::Internal(loaded.failure.reason());
  return std::move(loaded.module);
}

StatusOr<std::string> Content(Side& side, const Buffers& buffers, int index, int64_t bytes) {
  std::string content(static_cast<size_t>(bytes), '\0');
  SOLSTICE_RETURN_IF_ERROR(side.device->CopyOut({reinterpret_cast<uint8_t*>(content.data()), content.size()},
                                                buffers.tensors[static_cast<size_t>(index)]));
  return content;
}

// Inputs as the judge makes them for `variant`; all else filled at random.
StatusOr<Buffers> MakeBuffers(Side& side, const v1::Definition& definition, const v1::Workload& workload,
                              const BoundPlan& plan, int variant) {
  SOLSTICE_ASSIGN_OR_RETURN(auto axes, catalog::ResolveAxes(definition, workload));
  Buffers made;
  for (const auto& buffer : plan.buffers()) {
    SOLSTICE_ASSIGN_OR_RETURN(exec::Placement placed, exec::Place(buffer.bytes(), side.device->granularity(), 0));
    SOLSTICE_ASSIGN_OR_RETURN(auto mapping, side.device->Allocate(placed.mapped_bytes, {buffer.name(), placed.offset,
                                                                                        placed.bytes, "buffer"}));
    const device::Address tensor = mapping->address() + static_cast<device::Address>(placed.offset);
    made.mappings.push_back(std::move(mapping));
    made.tensors.push_back(tensor);
    if (buffer.role() != v1::internal::INPUT) {
      SOLSTICE_RETURN_IF_ERROR(side.bulk->FillRandom(7, made.tensors.size(), tensor, buffer.bytes()));
      continue;
    }
    v1::InputSource source;
    source.set_random(true);
    for (const auto& given : workload.inputs()) {
      if (given.name() == buffer.name()) source = given;
    }
    for (int i = 0; i < definition.inputs_size(); ++i) {
      if (definition.inputs(i).name() != buffer.name()) continue;
      SOLSTICE_ASSIGN_OR_RETURN(auto shape, catalog::ResolveShape(definition.inputs(i), axes));
      SOLSTICE_RETURN_IF_ERROR(
          side.bulk->MakeInput(definition.inputs(i), source, shape, i, {0x5EED, 0x57A7}, variant, tensor));
    }
  }
  SOLSTICE_RETURN_IF_ERROR(side.bulk->Finish());
  return made;
}

Status Run(Side& side, const device::Module& module, const BoundPlan& plan, const Buffers& buffers) {
  device::RunLimits limits;
  limits.timeout = std::chrono::seconds(120);
  SOLSTICE_ASSIGN_OR_RETURN(RunOutcome outcome, exec::RunPlan(*side.device, module, plan, buffers.tensors, limits));
  if (outcome.kind() == RunOutcome::OK) return absl::OkStatus();
  return base::Internal(base::StrCat("the reference failed: ", outcome.reason()));
}

// What one workload says, a line of words; disagreements are counted.
struct Tally {
  int workloads = 0, inputs = 0, wrong = 0;
};

Status CompareWorkload(Side* sides, const v1::DefinitionBundle& bundle, const pipeline::WorkloadPlan& planned,
                       const v1::internal::Program& program, Tally* tally) {
  const v1::Definition& definition = bundle.definition();
  const std::vector<v1::Kernel> kernels(program.kernels().begin(), program.kernels().end());
  SOLSTICE_ASSIGN_OR_RETURN(plan::BindResult bound, plan::Bind(planned.plan, definition, planned.workload, kernels,
                                                               sides[0].device->properties()));
  if (bound.rejection.rejected()) return base::Internal(bound.rejection.reason);
  double worst = 0;
  int wrong = 0;
  for (int variant = 0; variant < kVariants; ++variant) {
    Buffers buffers[2];
    for (int s = 0; s < 2; ++s) {
      SOLSTICE_ASSIGN_OR_RETURN(buffers[s], MakeBuffers(sides[s], definition, planned.workload, bound.plan, variant));
    }
    for (int i = 0; i < bound.plan.buffers_size(); ++i) {
      const auto& buffer = bound.plan.buffers(i);
      if (buffer.role() != v1::internal::INPUT) continue;
      SOLSTICE_ASSIGN_OR_RETURN(std::string one, Content(sides[0], buffers[0], i, buffer.bytes()));
      SOLSTICE_ASSIGN_OR_RETURN(std::string other, Content(sides[1], buffers[1], i, buffer.bytes()));
      ++tally->inputs;
      if (one == other) continue;
      ++wrong;
      std::printf("  DIFFERENT: input %s, variant %d\n", buffer.name().c_str(), variant);
    }
    if (variant > 0) continue;
    for (int s = 0; s < 2; ++s) {
      SOLSTICE_ASSIGN_OR_RETURN(auto module, Load(sides[s], program));
      SOLSTICE_RETURN_IF_ERROR(Run(sides[s], *module, bound.plan, buffers[s]));
    }
    SOLSTICE_ASSIGN_OR_RETURN(auto axes, catalog::ResolveAxes(definition, planned.workload));
    for (int i = 0; i < bound.plan.buffers_size(); ++i) {
      const auto& buffer = bound.plan.buffers(i);
      if (buffer.role() != v1::internal::OUTPUT) continue;
      SOLSTICE_ASSIGN_OR_RETURN(std::string one, Content(sides[0], buffers[0], i, buffer.bytes()));
      SOLSTICE_ASSIGN_OR_RETURN(std::string other, Content(sides[1], buffers[1], i, buffer.bytes()));
      for (const v1::Tensor& tensor : definition.outputs()) {
        if (tensor.name() != buffer.name()) continue;
        SOLSTICE_ASSIGN_OR_RETURN(auto shape, catalog::ResolveShape(tensor, axes));
        auto bytes = [](const std::string& text) {
          return std::span<const uint8_t>(reinterpret_cast<const uint8_t*>(text.data()), text.size());
        };
        auto compared = verify::CompareTensor(tensor, shape, planned.workload.tolerance(), bytes(one), bytes(other));
        worst = std::max(worst, compared.numbers.max_absolute_error());
        if (compared.verdict == v1::PASSED) continue;
        ++wrong;
        std::printf("  DIFFERENT: output %s: %s\n", buffer.name().c_str(), compared.reason.c_str());
      }
    }
  }
  std::string where;
  for (const auto& axis : planned.workload.axes()) {
    where += base::StrCat(" ", axis.name(), "=", static_cast<int64_t>(axis.value()));
  }
  std::printf("%-28s%-22s inputs %s, reference max abs difference %.3g\n", definition.name().c_str(), where.c_str(),
              wrong == 0 ? "equal" : "or outputs differ", worst);
  ++tally->workloads;
  tally->wrong += wrong;
  return absl::OkStatus();
}

StatusOr<Tally> CompareAll(const std::string& device, const std::string& root, const std::string& families,
                           const std::string& headers, const std::string& only) {
  SOLSTICE_ASSIGN_OR_RETURN(auto compiler, OpenCompiler(headers));
  SOLSTICE_RETURN_IF_ERROR(compiler->status());
  Side sides[2];
  if (device == "cuda") {
    SOLSTICE_ASSIGN_OR_RETURN(sides[0].device, device::MakeCuda({}));
  } else {
    sides[0].device = device::MakeEmulator();
  }
  sides[1].device = device::MakeEmulator();
  const std::string arch = sides[0].device->properties().arch();
  SOLSTICE_ASSIGN_OR_RETURN(auto kernels, Compile(*compiler, bulk::KernelSource(arch)));
  SOLSTICE_ASSIGN_OR_RETURN(sides[0].trusted, Load(sides[0], kernels));
  SOLSTICE_ASSIGN_OR_RETURN(sides[0].bulk, bulk::MakeKernelBulk(sides[0].device.get(), sides[0].trusted.get()));
  sides[1].bulk = bulk::MakeHostBulk(sides[1].device.get());
  SOLSTICE_ASSIGN_OR_RETURN(auto catalog, catalog::Catalog::Load({root}, families));
  Tally tally;
  for (const auto& bundle : catalog->All()) {
    const std::string& name = bundle->definition().name();
    if (!only.empty() && name != only) continue;
    bool complete = false;
    auto workloads = pipeline::ChooseWorkloads(*bundle, {}, /*smoke=*/true, &complete);
    SOLSTICE_ASSIGN_OR_RETURN(auto specialised,
                              pipeline::SpecialiseReference(*bundle, workloads, sides[0].device->properties()));
    std::vector<v1::internal::Program> programs;
    for (const auto& source : specialised.programs) {
      auto program = Compile(*compiler, source);
      if (!program.ok()) return base::Annotate(program.status(), name);
      programs.push_back(*std::move(program));
    }
    for (const auto& planned : specialised.workloads) {
      Status status =
          planned.rejection.rejected()
              ? base::Internal(planned.rejection.reason)
              : CompareWorkload(sides, *bundle, planned, programs[static_cast<size_t>(planned.plan.program())], &tally);
      if (!status.ok()) return base::Annotate(status, base::StrCat(name, " ", planned.workload.uuid()));
    }
  }
  return tally;
}

}  // namespace
}  // namespace solstice

int main(int argc, char** argv) {
  CLI::App app{"agreement: whether a GPU and the emulator agree on inputs and references"};
  app.footer("Example: tests/device/bin/agreement --only rmsnorm_h2048");
  std::string device = "cuda", root = "definitions", families = "reference_kernels", headers, only;
  app.add_option("--device", device, "cuda, or emulator to compare the trusted kernels there with host code")
      ->check(CLI::IsMember({"cuda", "emulator"}));
  app.add_option("--definitions", root, "folder of definitions");
  app.add_option("--reference-kernels", families, "folder of the families' reference kernels");
  app.add_option("--headers", headers, "header pack");
  app.add_option("--only", only, "this definition");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (headers.empty()) {
    headers = std::filesystem::exists("share/solstice/headers") ? "share/solstice/headers" : "runtime/compile/headers";
  }
  auto tally = solstice::CompareAll(device, root, families, std::filesystem::absolute(headers).string(), only);
  if (!tally.ok()) {
    std::fprintf(stderr, "agreement: %s\n", solstice::base::MessageOf(tally.status()).c_str());
    return 2;
  }
  std::printf("%d workloads, %d inputs: %d differences\n", tally->workloads, tally->inputs, tally->wrong);
  if (tally->workloads == 0) std::fprintf(stderr, "agreement: nothing was compared\n");
  std::fflush(stdout);
  // Not by main's end: a driver may not come down in an orderly way.
  std::_Exit(tally->workloads == 0 ? 2 : tally->wrong == 0 ? 0 : 1);
}
