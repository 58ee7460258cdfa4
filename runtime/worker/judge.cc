#include "runtime/worker/judge.h"

#include <algorithm>

#include "runtime/base/clock.h"
#include "runtime/base/crypto.h"
#include "runtime/base/strings.h"
#include "runtime/catalog/catalog.h"
#include "runtime/generate/generate.h"
#include "runtime/plan/plan.h"
#include "runtime/verify/verify.h"
#include "runtime/worker/device_load.h"
#include "runtime/worker/runner.h"

namespace solstice::worker {
namespace {

using base::StrCat;
using v1::internal::BoundPlan;
using v1::internal::RunOutcome;

constexpr double kReferenceTimeoutS = 60;
constexpr size_t kMaxReferences = 64;
constexpr const char* kReferenceMend =
    "this is a fault of the definition, not of the submission: tell who publishes it";

std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

const v1::Tensor* FindTensor(const google::protobuf::RepeatedPtrField<v1::Tensor>& tensors, const std::string& name) {
  for (const v1::Tensor& tensor : tensors) {
    if (tensor.name() == name) return &tensor;
  }
  return nullptr;
}

}  // namespace

std::string Judge::JudgeBuffer::Name() const {
  return StrCat(base::Lower(v1::internal::BufferRole_Name(role)), " '", name, "'");
}

StatusOr<std::unique_ptr<Judge>> Judge::Create(OpenDeviceFunction open_device) {
  std::unique_ptr<Judge> judge(new Judge);
  judge->open_device_ = std::move(open_device);
  SOLSTICE_ASSIGN_OR_RETURN(judge->device_, judge->open_device_());
  return judge;
}

Judge::~Judge() {
  Release();
  references_.clear();
}

void Judge::Release() {
  shared_.clear();
  expected_.clear();
  prepared_ = false;
}

Status Judge::ResetDevice() {
  Release();
  for (auto& [index, reference] : references_) reference.module.reset();
  device_.reset();
  SOLSTICE_ASSIGN_OR_RETURN(device_, open_device_());
  return absl::OkStatus();
}

exec::GuardFill Judge::Fill() const {
  return [secret = secret_](uint64_t stream, char* data, int64_t bytes) {
    generate::FillRandom(secret, stream, data, bytes);
  };
}

StatusOr<Answer> Judge::Handle(const v1::internal::WorkerRequest& request) {
  if (request.has_load()) return Load(request.load());
  if (request.has_prepare()) return Prepare(request.prepare());
  if (!request.has_verify()) return base::InvalidArgument("the judge only loads, prepares and verifies");
  if (!request.verify().release()) return Verify();
  Release();
  Answer answer;
  answer.reply.mutable_verified();
  return answer;
}

StatusOr<Answer> Judge::Load(const v1::internal::LoadProgram& program) {
  auto found = references_.find(program.program());
  bool same = found != references_.end() && found->second.module != nullptr &&
              found->second.program.ptx() == program.ptx() && found->second.program.cubin() == program.cubin();
  if (!same) {
    if (found == references_.end() && references_.size() >= kMaxReferences) {
      return base::ResourceExhausted("judge: too many reference programs");
    }
    ReferenceProgram& reference = references_[program.program()];
    reference.module.reset();
    reference.failure.Clear();
    reference.program = program;
  } else {
    *found->second.program.mutable_kernels() = program.kernels();
  }
  Refusal refusal;
  SOLSTICE_RETURN_IF_ERROR(Reference(program.program(), &refusal).status());
  Answer answer;
  if (refusal.refused()) {
    *answer.reply.mutable_load_failure() = references_[program.program()].failure;
  } else {
    answer.reply.set_loaded(true);
  }
  return answer;
}

StatusOr<device::Module*> Judge::Reference(int program, Refusal* refusal) {
  auto found = references_.find(program);
  if (found == references_.end()) {
    return base::FailedPrecondition(StrCat("judge: reference program ", program, " is not loaded"));
  }
  ReferenceProgram& reference = found->second;
  if (reference.module == nullptr) {
    SOLSTICE_ASSIGN_OR_RETURN(Loaded loaded, LoadModule(*device_, reference.program));
    reference.module = std::move(loaded.module);
    reference.failure = std::move(loaded.failure);
  }
  if (reference.module == nullptr) {
    bool needs_device = reference.failure.kind() == RunOutcome::NEEDS_DEVICE;
    refusal->verdict = needs_device ? v1::NEEDS_DEVICE : v1::INVALID_REFERENCE;
    refusal->reason = StrCat("the definition's reference cannot be loaded: ", reference.failure.reason());
    refusal->mend = needs_device ? "run it on a GPU" : kReferenceMend;
  }
  return reference.module.get();
}

StatusOr<Judge::JudgeBuffer> Judge::Allocate(v1::internal::BufferRole role, const std::string& name, int64_t bytes,
                                             int64_t shift) {
  JudgeBuffer made;
  made.role = role;
  made.name = name;
  made.stream = next_stream_++;
  if (shift < 0 || shift >= exec::kAlignment) {
    return base::InvalidArgument(StrCat("judge: pointers cannot be shifted by ", shift, " bytes"));
  }
  int slack = static_cast<int>(base::RandomU64() % (exec::kMaxSlack + 1));
  if (shift > 0) slack = std::max(slack, 1);  // room for the shift
  SOLSTICE_ASSIGN_OR_RETURN(made.placement, exec::Place(bytes, device_->granularity(), slack));
  made.placement.offset += shift;
  const std::string what = base::Lower(v1::internal::BufferRole_Name(role));
  auto buffer = device_->Allocate(made.placement.mapped_bytes, {name, made.placement.offset, bytes, what});
  if (!buffer.ok()) return base::Annotate(buffer.status(), StrCat(made.Name(), " of ", bytes, " bytes"));
  made.buffer = *std::move(buffer);
  SOLSTICE_RETURN_IF_ERROR(exec::FillGuards(*device_, made.buffer->address(), made.placement, Fill(), made.stream));
  if (role == v1::internal::INPUT || bytes == 0) return made;
  // Poison: what a kernel does not write is random, and differs between the reference's buffer and the submission's.
  std::string poison(static_cast<size_t>(bytes), '\0');
  generate::FillRandom(secret_, ~made.stream, poison.data(), bytes);
  SOLSTICE_RETURN_IF_ERROR(device_->CopyIn(made.tensor(), Bytes(poison)));
  return made;
}

StatusOr<std::string> Judge::Content(const JudgeBuffer& buffer) {
  std::string bytes(static_cast<size_t>(buffer.placement.bytes), '\0');
  if (bytes.empty()) return bytes;
  SOLSTICE_RETURN_IF_ERROR(device_->CopyOut({reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}, buffer.tensor()));
  return bytes;
}

StatusOr<Judge::Refusal> Judge::FillInput(const v1::internal::Prepare& prepare, const std::vector<v1::NamedInt>& axes,
                                          JudgeBuffer* buffer) {
  const v1::Tensor* tensor = FindTensor(prepare.definition().inputs(), buffer->name);
  if (tensor == nullptr) return base::Internal(StrCat("judge: the definition has no ", buffer->Name()));
  int index = 0;
  for (int i = 0; i < prepare.definition().inputs_size(); ++i) {
    if (prepare.definition().inputs(i).name() == buffer->name) index = i;
  }
  v1::InputSource source;
  source.set_name(buffer->name);
  source.set_random(true);
  for (const v1::InputSource& given : prepare.workload().inputs()) {
    if (given.name() == buffer->name) source = given;
  }
  SOLSTICE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, catalog::ResolveShape(*tensor, axes));
  generate::Seeds seeds = {prepare.seed(), prepare.structure_seed()};
  auto content = generate::GenerateInput(*tensor, source, shape, index, seeds, prepare.variant());
  if (absl::IsInvalidArgument(content.status())) {
    return Refusal{v1::SKIPPED, StrCat("not run: ", base::MessageOf(content.status())), base::MendOf(content.status())};
  }
  if (!content.ok()) return content.status();
  if (static_cast<int64_t>(content->size()) != buffer->placement.bytes) {
    return base::Internal(
        StrCat("judge: ", buffer->Name(), " has ", content->size(), " bytes, the plan says ", buffer->placement.bytes));
  }
  buffer->digest = base::Sha256(*content);
  if (content->empty()) return Refusal{};
  SOLSTICE_RETURN_IF_ERROR(device_->CopyIn(buffer->tensor(), Bytes(*content)));
  return Refusal{};
}

StatusOr<Judge::Refusal> Judge::MakeShared(const v1::internal::Prepare& prepare, BoundPlan* plan) {
  std::vector<v1::Kernel> kernels(prepare.kernels().begin(), prepare.kernels().end());
  SOLSTICE_ASSIGN_OR_RETURN(plan::BindResult bound, plan::Bind(prepare.plan(), prepare.definition(), prepare.workload(),
                                                               kernels, device_->properties()));
  if (bound.rejection.rejected()) {
    return Refusal{bound.rejection.verdict, bound.rejection.reason, bound.rejection.mend};
  }
  *plan = std::move(bound.plan);
  plan->set_program(prepare.plan().program());
  if (plan->buffers_size() > sandbox::Channel::kMaxDescriptors) {
    return Refusal{
        v1::RESOURCE_EXCEEDED,
        StrCat(plan->buffers_size(), " buffers, at most ", sandbox::Channel::kMaxDescriptors, " can be used"),
        "join scratch buffers into one"};
  }
  SOLSTICE_ASSIGN_OR_RETURN(std::vector<v1::NamedInt> axes,
                            catalog::ResolveAxes(prepare.definition(), prepare.workload()));
  const int64_t shift = prepare.debug_pointer_shift_bytes();
  for (v1::internal::BufferPlacement& placed : *plan->mutable_buffers()) {
    auto buffer = Allocate(placed.role(), placed.name(), placed.bytes(), shift);
    if (absl::IsResourceExhausted(buffer.status())) {
      return Refusal{
          v1::RESOURCE_EXCEEDED, base::MessageOf(buffer.status()),
          placed.role() == v1::internal::SCRATCH ? "use less scratch" : "run it on a device with more memory"};
    }
    if (!buffer.ok()) return buffer.status();
    placed.set_mapped_bytes(buffer->placement.mapped_bytes);
    placed.set_offset(buffer->placement.offset);
    placed.set_debug_shift(shift);
    if (placed.role() == v1::internal::INPUT) {
      SOLSTICE_ASSIGN_OR_RETURN(Refusal refusal, FillInput(prepare, axes, &*buffer));
      if (refusal.refused()) return refusal;
    }
    shared_.push_back(*std::move(buffer));
  }
  return Refusal{};
}

StatusOr<Answer> Judge::Prepare(const v1::internal::Prepare& prepare) {
  base::Stopwatch watch;
  Release();
  secret_ = base::RandomU64();
  next_stream_ = 0;
  tolerance_ = prepare.workload().tolerance();
  Answer answer;
  v1::internal::Prepared* prepared = answer.reply.mutable_prepared();
  auto made = MakeShared(prepare, prepared->mutable_plan());
  if (made.ok() && !made->refused()) made = RunReference(prepare);
  if (!made.ok()) {
    Release();
    return made.status();
  }
  if (made->refused()) {
    Release();
    prepared->clear_plan();
    prepared->set_verdict(made->verdict);
    prepared->set_reason(made->reason);
    prepared->set_mend(made->mend);
  } else {
    for (const JudgeBuffer& buffer : shared_) {
      device::Access access =
          buffer.role == v1::internal::INPUT ? device::Access::kReadOnly : device::Access::kReadWrite;
      SOLSTICE_ASSIGN_OR_RETURN(base::UniqueFd exported, buffer.buffer->Export(access));
      answer.descriptors.push_back(std::move(exported));
    }
    prepared_ = true;
  }
  prepared->set_milliseconds(watch.milliseconds());
  return answer;
}

StatusOr<Judge::Refusal> Judge::RunReference(const v1::internal::Prepare& prepare) {
  Refusal refusal;
  SOLSTICE_ASSIGN_OR_RETURN(device::Module * module, Reference(prepare.reference_plan().program(), &refusal));
  if (refusal.refused()) return refusal;
  const auto& listed = references_[prepare.reference_plan().program()].program.kernels();
  std::vector<v1::Kernel> kernels(listed.begin(), listed.end());
  SOLSTICE_ASSIGN_OR_RETURN(plan::BindResult bound, plan::Bind(prepare.reference_plan(), prepare.definition(),
                                                               prepare.workload(), kernels, device_->properties()));
  auto invalid = [](const std::string& reason) {
    return Refusal{v1::INVALID_REFERENCE, StrCat("the definition's reference ", reason), kReferenceMend};
  };
  if (bound.rejection.rejected()) return invalid(StrCat("does not fit its workload: ", bound.rejection.reason));

  // Its inputs are the shared ones, imported read-only, so that it cannot spoil what the submission will see; the rest
  // is its own.
  std::vector<JudgeBuffer> own;
  std::vector<std::unique_ptr<device::Buffer>> imported;
  std::vector<device::Address> tensors;
  for (const v1::internal::BufferPlacement& placed : bound.plan.buffers()) {
    if (placed.role() != v1::internal::INPUT) {
      auto buffer = Allocate(placed.role(), placed.name(), placed.bytes());
      if (absl::IsResourceExhausted(buffer.status())) {
        return Refusal{v1::RESOURCE_EXCEEDED, StrCat("for the reference: ", base::MessageOf(buffer.status())),
                       "run it on a device with more memory"};
      }
      if (!buffer.ok()) return buffer.status();
      tensors.push_back(buffer->tensor());
      own.push_back(*std::move(buffer));
      continue;
    }
    auto input = std::find_if(shared_.begin(), shared_.end(), [&placed](const JudgeBuffer& buffer) {
      return buffer.role == v1::internal::INPUT && buffer.name == placed.name();
    });
    if (input == shared_.end() || input->placement.bytes != placed.bytes()) {
      return base::Internal(StrCat("judge: the two plans disagree about input ", base::Quote(placed.name())));
    }
    SOLSTICE_ASSIGN_OR_RETURN(base::UniqueFd handle, input->buffer->Export(device::Access::kReadOnly));
    SOLSTICE_ASSIGN_OR_RETURN(
        std::unique_ptr<device::Buffer> view,
        device_->Import(std::move(handle), input->placement.mapped_bytes, device::Access::kReadOnly,
                        {input->name, input->placement.offset, input->placement.bytes, "input"}));
    tensors.push_back(view->address() + static_cast<device::Address>(input->placement.offset));
    imported.push_back(std::move(view));
  }
  device::RunLimits limits;
  limits.timeout = TimeoutFrom(prepare.timeout_s(), kReferenceTimeoutS);
  SOLSTICE_ASSIGN_OR_RETURN(RunOutcome outcome, exec::RunPlan(*device_, *module, bound.plan, tensors, limits));
  if (outcome.kind() != RunOutcome::OK) {
    std::string reason = outcome.reason().empty() ? outcome.fault().message() : outcome.reason();
    own.clear();
    imported.clear();
    SOLSTICE_RETURN_IF_ERROR(ResetDevice());
    if (outcome.kind() == RunOutcome::NEEDS_DEVICE) {
      return Refusal{v1::NEEDS_DEVICE, StrCat("the definition's reference needs a GPU: ", reason), "run it on a GPU"};
    }
    return invalid(StrCat("failed: ", reason));
  }
  for (const JudgeBuffer& buffer : own) {
    SOLSTICE_ASSIGN_OR_RETURN(Refusal damage, CheckBuffer(buffer));
    if (damage.refused()) return invalid(StrCat("writes where it must not: ", damage.reason));
  }
  return KeepExpected(prepare, own);
}

StatusOr<Judge::Refusal> Judge::KeepExpected(const v1::internal::Prepare& prepare,
                                             const std::vector<JudgeBuffer>& outputs) {
  SOLSTICE_ASSIGN_OR_RETURN(std::vector<v1::NamedInt> axes,
                            catalog::ResolveAxes(prepare.definition(), prepare.workload()));
  for (const JudgeBuffer& buffer : outputs) {
    if (buffer.role != v1::internal::OUTPUT) continue;
    const v1::Tensor* tensor = FindTensor(prepare.definition().outputs(), buffer.name);
    if (tensor == nullptr) return base::Internal(StrCat("judge: the definition has no ", buffer.Name()));
    Expected expected;
    expected.tensor = *tensor;
    SOLSTICE_ASSIGN_OR_RETURN(expected.shape, catalog::ResolveShape(*tensor, axes));
    SOLSTICE_ASSIGN_OR_RETURN(expected.bytes, Content(buffer));
    expected_[buffer.name] = std::move(expected);
  }
  return Refusal{};
}

StatusOr<Judge::Refusal> Judge::CheckBuffer(const JudgeBuffer& buffer) {
  SOLSTICE_ASSIGN_OR_RETURN(exec::GuardDamage damage, exec::CheckGuards(*device_, buffer.buffer->address(),
                                                                        buffer.placement, Fill(), buffer.stream));
  if (damage.any()) {
    return Refusal{v1::RUNTIME_ERROR, StrCat("guard damaged: ", damage.Describe(buffer.Name())),
                   "check the kernel's index bounds against the tensor's size"};
  }
  return Refusal{};
}

StatusOr<Answer> Judge::Verify() {
  if (!prepared_) return base::FailedPrecondition("judge: nothing is prepared");
  base::Stopwatch watch;
  Answer answer;
  v1::internal::Verified* verified = answer.reply.mutable_verified();
  verified->set_verdict(v1::PASSED);
  auto note = [verified](v1::Verdict verdict, const std::string& reason, const std::string& mend) {
    if (verify::Severity(verdict) <= verify::Severity(verified->verdict())) return;
    verified->set_verdict(verdict);
    verified->set_reason(reason);
    verified->set_mend(mend);
  };
  for (const JudgeBuffer& buffer : shared_) {
    SOLSTICE_ASSIGN_OR_RETURN(Refusal damage, CheckBuffer(buffer));
    if (damage.refused()) note(damage.verdict, damage.reason, damage.mend);
    if (buffer.role == v1::internal::SCRATCH) continue;
    SOLSTICE_ASSIGN_OR_RETURN(std::string content, Content(buffer));
    if (buffer.role == v1::internal::INPUT) {
      if (base::Sha256(content) != buffer.digest) {
        note(v1::RUNTIME_ERROR, StrCat(buffer.Name(), " was written"), "inputs are read-only: copy to scratch first");
      }
      continue;
    }
    auto expected = expected_.find(buffer.name);
    if (expected == expected_.end()) return base::Internal(StrCat("judge: no reference for ", buffer.Name()));
    verify::TensorComparison comparison = verify::CompareTensor(
        expected->second.tensor, expected->second.shape, tolerance_, Bytes(content), Bytes(expected->second.bytes));
    comparison.numbers.set_name(buffer.name);
    note(comparison.verdict, comparison.reason, comparison.mend);
    *verified->add_outputs() = std::move(comparison.numbers);
  }
  Release();
  verified->set_milliseconds(watch.milliseconds());
  return answer;
}

}  // namespace solstice::worker
