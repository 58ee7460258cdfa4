#include "runtime/worker/judge.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "runtime/base/clock.h"
#include "runtime/base/crypto.h"
#include "runtime/base/strings.h"
#include "runtime/catalog/catalog.h"
#include "runtime/generate/generate.h"
#include "runtime/plan/plan.h"
#include "runtime/timing/timing.h"
#include "runtime/worker/device_load.h"
#include "runtime/worker/judge_shared.h"
#include "runtime/worker/worker.h"

namespace solstice::worker {
namespace {

using base::StrCat;
using v1::internal::BoundPlan;

constexpr size_t kMaxReferences = 64;
constexpr int kMostSlots = 64;
// Slots of one workload may take so much of the device's memory.
constexpr int64_t kMemoryShare = 4;
// Some are left for what travels beside.
constexpr int kMostDescribed = sandbox::Channel::kMaxDescriptors - 3;

StatusOr<base::UniqueFd> Duplicate(const base::UniqueFd& descriptor) {
  base::UniqueFd copy(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 3));
  if (!copy.valid()) return base::FromErrno(errno, "duplicating a memory descriptor");
  return copy;
}

}  // namespace

const v1::Tensor* FindTensor(const google::protobuf::RepeatedPtrField<v1::Tensor>& tensors, const std::string& name) {
  for (const v1::Tensor& tensor : tensors) {
    if (tensor.name() == name) return &tensor;
  }
  return nullptr;
}

StatusOr<std::unique_ptr<Judge>> Judge::Create(OpenDeviceFunction open_device) {
  std::unique_ptr<Judge> judge(new Judge);
  judge->open_device_ = std::move(open_device);
  SOLSTICE_ASSIGN_OR_RETURN(auto device, judge->open_device_());
  SOLSTICE_RETURN_IF_ERROR(judge->Adopt(std::move(device)));
  return judge;
}

Status Judge::Adopt(std::unique_ptr<device::Device> device) {
  device_ = std::move(device);
  shared_ = std::make_unique<BufferPool>(device_.get(), /*shared=*/true, &next_handle_);
  private_ = std::make_unique<BufferPool>(device_.get(), /*shared=*/false, &next_handle_);
  bulk_ = bulk::MakeHostBulk(device_.get());
  return absl::OkStatus();
}

Judge::~Judge() { Release(); }

void Judge::Release() {
  work_.reset();
  if (shared_ != nullptr) shared_->GiveBack();
  if (private_ != nullptr) private_->GiveBack();
}

Status Judge::ResetDevice() {
  Release();
  if (device_->properties().kind() != v1::EMULATOR) {
    spoilt_ = true;
    return absl::OkStatus();
  }
  for (auto& [index, reference] : references_) reference.module.reset();
  bulk_.reset();
  trusted_.reset();
  clear_.reset();
  shared_.reset();
  private_.reset();
  device_.reset();
  SOLSTICE_ASSIGN_OR_RETURN(auto device, open_device_());
  return Adopt(std::move(device));
}

StatusOr<Answer> Judge::Handle(const v1::internal::WorkerRequest& request) {
  auto handle = [&]() -> StatusOr<Answer> {
    if (request.has_load()) return Load(request.load());
    if (request.has_prepare()) return Prepare(request.prepare());
    if (request.has_time_reference()) return TimeReference(request.time_reference());
    if (request.has_clear_buffer()) return ShareClearBuffer();
    if (!request.has_verify()) return base::InvalidArgument("the judge only loads, prepares, times and verifies");
    if (!request.verify().release()) return Verify(request.verify());
    Release();
    Answer released;
    released.reply.mutable_verified();
    return released;
  };
  StatusOr<Answer> answer = handle();
  if (answer.ok() && spoilt_) answer->last = true;
  return answer;
}

StatusOr<Answer> Judge::Load(const v1::internal::LoadProgram& program) {
  if (program.program() == kTrustedKernels) return LoadTrusted(program);
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

StatusOr<Answer> Judge::LoadTrusted(const v1::internal::LoadProgram& program) {
  Release();
  SOLSTICE_ASSIGN_OR_RETURN(Loaded loaded, LoadModule(*device_, program));
  if (loaded.module == nullptr) {
    return base::Internal(StrCat("judge: Solstice's own kernels cannot be loaded: ", loaded.failure.reason()));
  }
  SOLSTICE_ASSIGN_OR_RETURN(auto bulk, bulk::MakeKernelBulk(device_.get(), loaded.module.get()));
  bulk_ = std::move(bulk);
  trusted_ = std::move(loaded.module);
  Answer answer;
  answer.reply.set_loaded(true);
  return answer;
}

// ---- Prepare: the submission's side --------------------------------------------------------------------------------

StatusOr<PlacedTensor> Judge::Place(BufferPool& pool, v1::internal::BufferRole role, const std::string& name,
                                    int64_t bytes, Work* work, int64_t shift, const Spot* again) {
  PlacedTensor tensor;
  tensor.role = role;
  tensor.name = name;
  tensor.stream = work->next_stream++;
  if (shift < 0 || shift >= exec::kAlignment) {
    return base::InvalidArgument(StrCat("judge: pointers cannot be shifted by ", shift, " bytes"));
  }
  int slack = static_cast<int>(base::RandomU64() % (exec::kMaxSlack + 1));
  if (shift > 0) slack = std::max(slack, 1);  // room for the shift
  SOLSTICE_ASSIGN_OR_RETURN(tensor.placement, pool.Place(bytes, slack));
  tensor.placement.offset += shift;
  const bool read_only = role == v1::internal::INPUT;
  if (again != nullptr && again->placement.bytes == bytes) tensor.mapping = pool.TakeAgain(again->handle);
  if (tensor.mapping != nullptr && tensor.mapping->read_only != read_only) {
    return base::Internal(StrCat("judge: ", tensor.Name(), " had another role before"));
  }
  if (tensor.mapping != nullptr) {
    tensor.placement = again->placement;
  } else {
    const auto access = read_only ? device::Access::kReadOnly : device::Access::kReadWrite;
    auto mapping = pool.Take(tensor.placement.mapped_bytes, access, tensor.extent());
    if (!mapping.ok()) return base::Annotate(mapping.status(), StrCat(tensor.Name(), " of ", bytes, " bytes"));
    tensor.mapping = *mapping;
  }
  SOLSTICE_RETURN_IF_ERROR(FillGuards(*bulk_, work->secret, tensor));
  if (role != v1::internal::INPUT) SOLSTICE_RETURN_IF_ERROR(FillPoison(*bulk_, work->secret, tensor));
  return tensor;
}

Status Judge::FillInput(int slot, Work* work, PlacedTensor* tensor, Refusal* refusal) {
  const v1::internal::Prepare& prepare = work->request;
  const v1::Tensor* declared = FindTensor(prepare.definition().inputs(), tensor->name);
  if (declared == nullptr) return base::Internal(StrCat("judge: the definition has no ", tensor->Name()));
  int index = 0;
  for (int i = 0; i < prepare.definition().inputs_size(); ++i) {
    if (prepare.definition().inputs(i).name() == tensor->name) index = i;
  }
  v1::InputSource source;
  source.set_name(tensor->name);
  source.set_random(true);
  for (const v1::InputSource& given : prepare.workload().inputs()) {
    if (given.name() == tensor->name) source = given;
  }
  SOLSTICE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, catalog::ResolveShape(*declared, work->axes));
  SOLSTICE_ASSIGN_OR_RETURN(int64_t bytes, generate::TensorBytes(*declared, shape));
  if (bytes != tensor->placement.bytes) {
    return base::Internal(
        StrCat("judge: ", tensor->Name(), " has ", bytes, " bytes, the plan says ", tensor->placement.bytes));
  }
  const generate::Seeds seeds = {prepare.seed(), prepare.structure_seed()};
  Status made = bulk_->MakeInput(*declared, source, shape, index, seeds, prepare.variant() + slot, tensor->address());
  if (absl::IsInvalidArgument(made)) {
    *refusal = {v1::SKIPPED, StrCat("not run: ", base::MessageOf(made)), base::MendOf(made)};
    return absl::OkStatus();
  }
  return made;
}

StatusOr<Judge::Refusal> Judge::BindSubmission(Work* work) {
  const v1::internal::Prepare& prepare = work->request;
  std::vector<v1::Kernel> kernels(prepare.kernels().begin(), prepare.kernels().end());
  SOLSTICE_ASSIGN_OR_RETURN(plan::BindResult bound, plan::Bind(prepare.plan(), prepare.definition(), prepare.workload(),
                                                               kernels, device_->properties()));
  if (bound.rejection.rejected()) {
    return Refusal{bound.rejection.verdict, bound.rejection.reason, bound.rejection.mend};
  }
  work->plan = std::move(bound.plan);
  work->plan.set_program(prepare.plan().program());
  if (work->plan.buffers_size() > kMostDescribed) {
    return Refusal{v1::RESOURCE_EXCEEDED,
                   StrCat(work->plan.buffers_size(), " buffers, at most ", kMostDescribed, " can be used"),
                   "join scratch buffers into one"};
  }
  SOLSTICE_ASSIGN_OR_RETURN(work->axes, catalog::ResolveAxes(prepare.definition(), prepare.workload()));
  return Refusal{};
}

int Judge::SlotCount(const Work& work) const {
  int64_t wanted = std::clamp(work.request.slots(), 1, kMostSlots);
  wanted = std::min<int64_t>(wanted, kMostDescribed / std::max(work.plan.buffers_size(), 1));
  int64_t bytes = 0;
  for (const auto& buffer : work.plan.buffers()) {
    auto placed = shared_->Place(buffer.bytes(), exec::kMaxSlack);
    bytes += placed.ok() ? placed->mapped_bytes : buffer.bytes();
  }
  wanted = std::min(wanted, device_->properties().memory_bytes() / kMemoryShare / std::max<int64_t>(bytes, 1));
  return timing::FitBatch(device_->BatchCapacity(), work.plan.operations_size(),
                          static_cast<int>(std::max<int64_t>(wanted, 1)))
      .slots;
}

StatusOr<Judge::Refusal> Judge::MakeSlot(int index, Work* work) {
  const int64_t shift = work->request.debug_pointer_shift_bytes();
  Slot slot;
  const bool again = work->request.same_places() && index == 0 &&
                     last_spots_.size() == static_cast<size_t>(work->plan.buffers_size());
  for (const v1::internal::BufferPlacement& buffer : work->plan.buffers()) {
    auto tensor = Place(*shared_, buffer.role(), buffer.name(), buffer.bytes(), work, shift,
                        again ? &last_spots_[slot.size()] : nullptr);
    if (absl::IsResourceExhausted(tensor.status())) {
      return Refusal{
          v1::RESOURCE_EXCEEDED, base::MessageOf(tensor.status()),
          buffer.role() == v1::internal::SCRATCH ? "use less scratch" : "run it on a device with more memory"};
    }
    if (!tensor.ok()) return tensor.status();
    if (buffer.role() == v1::internal::INPUT) {
      Refusal refusal;
      SOLSTICE_RETURN_IF_ERROR(FillInput(index, work, &*tensor, &refusal));
      if (refusal.refused()) return refusal;
    }
    slot.push_back(*std::move(tensor));
  }
  work->slots.push_back(std::move(slot));
  // Fingerprints land in place, so only now, that they move no more.
  for (PlacedTensor& tensor : work->slots.back()) {
    if (tensor.role != v1::internal::INPUT) continue;
    SOLSTICE_RETURN_IF_ERROR(
        bulk_->TakeFingerprint(work->secret, tensor.address(), tensor.placement.bytes, &tensor.fingerprint));
  }
  return Refusal{};
}

void Judge::Describe(const Work& work, Answer* answer) {
  v1::internal::Prepared* prepared = answer->reply.mutable_prepared();
  *prepared->mutable_plan() = work.plan;
  for (const Slot& slot : work.slots) {
    v1::internal::Slot* described = prepared->add_slots();
    for (const PlacedTensor& tensor : slot) {
      v1::internal::BufferPlacement* placed = described->add_buffers();
      placed->set_role(tensor.role);
      placed->set_name(tensor.name);
      placed->set_bytes(tensor.placement.bytes);
      placed->set_mapped_bytes(tensor.placement.mapped_bytes);
      placed->set_offset(tensor.placement.offset);
      placed->set_debug_shift(work.request.debug_pointer_shift_bytes());
      placed->set_handle(tensor.mapping->handle);
    }
  }
}

StatusOr<Answer> Judge::Prepare(const v1::internal::Prepare& prepare) {
  base::Stopwatch watch;
  Release();
  auto work = std::make_unique<Work>();
  work->request = prepare;
  work->secret = base::RandomU64();
  auto make = [&]() -> StatusOr<Refusal> {
    SOLSTICE_ASSIGN_OR_RETURN(Refusal refusal, BindSubmission(work.get()));
    if (refusal.refused()) return refusal;
    const int count = SlotCount(*work);
    work->slots.reserve(static_cast<size_t>(count));
    for (int slot = 0; slot < count && !refusal.refused(); ++slot) {
      SOLSTICE_ASSIGN_OR_RETURN(refusal, MakeSlot(slot, work.get()));
      if (slot == 0 || refusal.verdict != v1::RESOURCE_EXCEEDED) continue;
      refusal = Refusal{};  // others use the device too: fewer slots do
      break;
    }
    // What was queued writes to memory that is about to be given back: it runs even so.
    SOLSTICE_RETURN_IF_ERROR(bulk_->Finish());
    if (refusal.refused() || prepare.defer_reference()) return refusal;
    return RunReference(0, work.get(), &work->expected);
  };
  StatusOr<Refusal> made = make();
  if (!made.ok()) {
    Release();
    return made.status();
  }
  Answer answer;
  v1::internal::Prepared* prepared = answer.reply.mutable_prepared();
  if (made->refused()) {
    if (!spoilt_) Release();
    prepared->set_verdict(made->verdict);
    prepared->set_reason(made->reason);
    prepared->set_mend(made->mend);
  } else {
    for (const Slot& slot : work->slots) {
      for (const PlacedTensor& tensor : slot) {
        if (tensor.mapping->described) continue;
        SOLSTICE_ASSIGN_OR_RETURN(base::UniqueFd descriptor, Duplicate(tensor.mapping->descriptor));
        answer.descriptors.push_back(std::move(descriptor));
        prepared->add_described(tensor.mapping->handle);
      }
    }
    for (Slot& slot : work->slots) {
      for (PlacedTensor& tensor : slot) tensor.mapping->described = true;
    }
    Describe(*work, &answer);
    last_spots_.clear();
    for (const PlacedTensor& tensor : work->slots[0]) {
      last_spots_.push_back({tensor.mapping->handle, tensor.placement});
    }
    work_ = std::move(work);
  }
  for (int64_t handle : shared_->TakeDropped()) prepared->add_dropped(handle);
  prepared->set_milliseconds(watch.milliseconds());
  return answer;
}

StatusOr<Answer> Judge::ShareClearBuffer() {
  if (clear_ == nullptr) {
    const int64_t granularity = device_->granularity();
    // Twice the cache, so that nothing of what was there before survives being read past.
    const int64_t wanted = 2 * std::max<int64_t>(device_->properties().l2_bytes(), granularity);
    const int64_t bytes = (wanted + granularity - 1) / granularity * granularity;
    auto clear = std::make_unique<Mapping>();
    clear->handle = next_handle_++;
    SOLSTICE_ASSIGN_OR_RETURN(clear->buffer, device_->Allocate(bytes, {"clear", 0, bytes, "input"}));
    SOLSTICE_ASSIGN_OR_RETURN(clear->descriptor, clear->buffer->Export(device::Access::kReadOnly));
    SOLSTICE_RETURN_IF_ERROR(bulk_->FillRandom(base::RandomU64(), 0, clear->buffer->address(), bytes));
    SOLSTICE_RETURN_IF_ERROR(bulk_->Finish());
    clear_ = std::move(clear);
  }
  Answer answer;
  v1::internal::BufferPlacement* placed = answer.reply.mutable_clear_buffer()->mutable_buffer();
  placed->set_role(v1::internal::INPUT);
  placed->set_name("clear");
  placed->set_bytes(clear_->buffer->bytes());
  placed->set_mapped_bytes(clear_->buffer->bytes());
  placed->set_handle(clear_->handle);
  SOLSTICE_ASSIGN_OR_RETURN(base::UniqueFd descriptor, Duplicate(clear_->descriptor));
  answer.descriptors.push_back(std::move(descriptor));
  return answer;
}

}  // namespace solstice::worker
