#include "server/pipeline/header_compilers.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "runtime/base/clock.h"

namespace solstice::pipeline {
namespace {

constexpr std::chrono::seconds kStartTimeout(30);
constexpr std::chrono::seconds kMakeTimeout(60);
constexpr std::chrono::minutes kIdle(10);
constexpr std::chrono::seconds kLookEvery(30);
// Headers that could not be precompiled are remembered, so that each source that names them does not cost another try.
constexpr size_t kMostFailed = 64;

}  // namespace

HeaderCompilers::HeaderCompilers(sandbox::Spawner* spawner, worker::Installation installation, int first_slot)
    : spawner_(spawner), installation_(std::move(installation)), first_slot_(first_slot) {
  thread_ = std::thread([this] { Work(); });
}

HeaderCompilers::~HeaderCompilers() {
  Shutdown();
  thread_.join();
}

worker::Client* HeaderCompilers::Acquire(const v1::internal::ProgramSource& headers) {
  const std::string key = headers.SerializeAsString();
  base::MutexLock lock(mutex_);
  if (shut_down_) return nullptr;
  for (auto& entry : entries_) {
    if (entry->busy || entry->key != key) continue;
    entry->busy = true;
    entry->used = std::chrono::steady_clock::now();
    return entry->client.get();
  }
  return nullptr;
}

void HeaderCompilers::Release(worker::Client* client, bool usable) {
  std::unique_ptr<Entry> ended;  // destroyed, with its process, after the lock
  base::MutexLock lock(mutex_);
  auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const auto& e) { return e->client.get() == client; });
  if (entry == entries_.end()) return;
  (*entry)->busy = false;
  (*entry)->used = std::chrono::steady_clock::now();
  if (usable && !shut_down_) return;
  ended = std::move(*entry);
  entries_.erase(entry);
}

bool HeaderCompilers::Known(const std::string& key) const {
  if (key == making_key_ || std::find(failed_.begin(), failed_.end(), key) != failed_.end()) return true;
  return std::any_of(entries_.begin(), entries_.end(), [&](const auto& entry) { return entry->key == key; });
}

void HeaderCompilers::Request(const v1::internal::ProgramSource& headers) {
  base::MutexLock lock(mutex_);
  if (shut_down_ || Known(headers.SerializeAsString())) return;
  wanted_ = headers;
  changed_.NotifyAll();
}

HeaderCompilers::Entries HeaderCompilers::TakeOld(bool make_room) {
  auto now = std::chrono::steady_clock::now();
  Entries taken;
  while (true) {
    auto oldest = entries_.end();
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (!(*entry)->busy && (oldest == entries_.end() || (*entry)->used < (*oldest)->used)) oldest = entry;
    }
    if (oldest == entries_.end()) return taken;
    bool full = make_room && entries_.size() >= kMost;
    if (!full && now - (*oldest)->used < kIdle) return taken;
    taken.push_back(std::move(*oldest));
    entries_.erase(oldest);
  }
}

int HeaderCompilers::FreeSlot() const {
  int slot = first_slot_;
  auto takes = [&](const auto& entry) { return entry->slot == slot; };
  while (std::any_of(entries_.begin(), entries_.end(), takes)) ++slot;
  return slot;
}

void HeaderCompilers::Work() {
  while (true) {
    std::optional<v1::internal::ProgramSource> headers;
    Entries old;
    int slot = 0;
    {
      base::MutexLock lock(mutex_);
      if (!shut_down_ && !wanted_) changed_.WaitFor(mutex_, kLookEvery);
      if (shut_down_) return;
      old = TakeOld(wanted_.has_value());
      std::swap(headers, wanted_);
      if (headers && entries_.size() >= kMost) headers.reset();  // all are at work: another time
      if (headers) making_key_ = headers->SerializeAsString();
      slot = FreeSlot();
    }
    old.clear();
    if (headers) Make(*headers, slot);
  }
}

void HeaderCompilers::Make(const v1::internal::ProgramSource& headers, int slot) {
  base::Stopwatch watch;
  auto entry = std::make_unique<Entry>();
  entry->key = headers.SerializeAsString();
  entry->slot = slot;
  Status status;
  auto jail = worker::HeaderCompilerJail(installation_, slot);
  auto client = jail.ok() ? worker::Client::Start(*spawner_, *jail, kStartTimeout) : jail.status();
  status = client.status();
  if (status.ok()) {
    entry->client = *std::move(client);
    {
      base::MutexLock lock(mutex_);
      if (shut_down_) return;
      making_ = entry->client.get();
    }
    v1::internal::WorkerRequest request;
    *request.mutable_precompile_headers()->mutable_headers() = headers;
    status = entry->client->Call(std::move(request), {}, nullptr, kMakeTimeout).status();
  }
  base::MutexLock lock(mutex_);
  making_ = nullptr;
  making_key_.clear();
  if (shut_down_) return;
  if (!status.ok()) {
    spdlog::warn("headers are not precompiled: {}", base::MessageOf(status));
    failed_.push_back(entry->key);
    if (failed_.size() > kMostFailed) failed_.pop_front();
    return;
  }
  spdlog::info("headers precompiled in {:.0f} ms", watch.milliseconds());
  entry->used = std::chrono::steady_clock::now();
  entries_.push_back(std::move(entry));
}

void HeaderCompilers::Shutdown() {
  base::MutexLock lock(mutex_);
  shut_down_ = true;
  if (making_ != nullptr) making_->Kill();
  for (auto& entry : entries_) {
    if (!entry->busy) entry->client->Kill();
  }
  changed_.NotifyAll();
}

}  // namespace solstice::pipeline
