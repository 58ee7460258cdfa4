#include "runtime/ptx/taint.h"

#include <algorithm>

namespace solstice::ptx {
namespace {

void Lower(int* first, int sink) {
  if (*first < 0 || sink < *first) *first = sink;
}

}  // namespace

int TaintGraph::AddNode() {
  nodes_.emplace_back();
  return static_cast<int>(nodes_.size()) - 1;
}

int TaintGraph::AddObject(ObjectKind kind) {
  int contents = AddNode();
  objects_.push_back(Object{kind, contents});
  return static_cast<int>(objects_.size()) - 1;
}

void TaintGraph::AddAddress(int node, int object) {
  uint64_t pair = static_cast<uint64_t>(static_cast<uint32_t>(node)) << 32 | static_cast<uint32_t>(object);
  if (!pairs_.insert(pair).second) return;
  nodes_[node].objects.push_back(object);
  pending_.emplace_back(node, object);
}

void TaintGraph::AddUse(int node, Use use) {
  nodes_[node].uses.push_back(use);
  // By index: what a use does may add objects to this very node; those are pending and see the use then.
  size_t count = nodes_[node].objects.size();
  for (size_t i = 0; i < count && work_ > 0; ++i) Apply(use, nodes_[node].objects[i]);
}

void TaintGraph::Apply(Use use, int object) {
  if (work_ == 0) return;  // Solve says so
  --work_;
  Object& target = objects_[object];
  switch (use.kind) {
    case UseKind::kFlow:
      return AddAddress(use.target, object);
    case UseKind::kLoad:
      return AddFlow(target.contents, use.target);
    case UseKind::kStore:
      return AddFlow(use.target, target.contents);
    case UseKind::kWrite:
      return Lower(&target.first_write, use.target);
    case UseKind::kEscape:
      Lower(&target.first_escape, use.target);
      if (target.kind != ObjectKind::kPrivate || target.has_escaped) return;
      target.has_escaped = true;
      return AddFlow(target.contents, escaped_);
    case UseKind::kCopyOut:
      return AddEscape(target.contents, use.target);
  }
}

bool TaintGraph::Solve() {
  while (!pending_.empty()) {
    if (work_ == 0) return false;
    auto [node, object] = pending_.back();
    pending_.pop_back();
    size_t count = nodes_[node].uses.size();
    for (size_t i = 0; i < count; ++i) {
      if (work_ == 0) return false;
      Use use = nodes_[node].uses[i];
      Apply(use, object);
    }
  }
  return work_ > 0;
}

bool TaintGraph::HoldsPrivate(int node) const {
  const std::vector<int>& held = nodes_[node].objects;
  return std::any_of(held.begin(), held.end(),
                     [this](int object) { return objects_[object].kind == ObjectKind::kPrivate; });
}

}  // namespace solstice::ptx
