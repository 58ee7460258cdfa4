// Where addresses may go: a flow-insensitive, interprocedural points-to analysis over registers, parameters and private
// memory. Internal to FindDeviceState.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <utility>
#include <vector>

namespace solstice::ptx {

// A graph of nodes (a register, or the contents of a memory object) that hold addresses of objects. Built with Add...,
// then solved once. Not thread safe.
class TaintGraph {
 public:
  enum class ObjectKind : uint8_t {
    kVariable,  // .global: what the analysis is about
    kReadOnly,  // .const
    kPrivate,   // .local and .param: followed, not reported
  };

  // `work`: the most (node, object) pairs and steps before Solve gives up.
  explicit TaintGraph(size_t work) : work_(work) { escaped_ = AddNode(); }

  int AddNode();
  int AddObject(ObjectKind kind);  // with a node for its contents
  int ContentsOf(int object) const { return objects_[object].contents; }

  // The contents of private memory whose address was stored somewhere: what a load through an unknown address may see.
  int escaped() const { return escaped_; }

  void AddAddress(int node, int object);  // `node` holds the address of `object`
  void AddFlow(int from, int to) {
    if (from != to) AddUse(from, {UseKind::kFlow, to});
  }
  void AddLoad(int address, int to) { AddUse(address, {UseKind::kLoad, to}); }          // to = *address
  void AddStore(int address, int value) { AddUse(address, {UseKind::kStore, value}); }  // *address = value
  // Sinks, by a number of the caller's: an instruction that writes through `address`, lets `value` go where it cannot
  // be followed, or copies what `address` points to there.
  void AddWrite(int address, int sink) { AddUse(address, {UseKind::kWrite, sink}); }
  void AddEscape(int value, int sink) { AddUse(value, {UseKind::kEscape, sink}); }
  void AddCopyOut(int address, int sink) { AddUse(address, {UseKind::kCopyOut, sink}); }

  // False: too much work; results are incomplete then. May be called again after more was added.
  bool Solve();

  bool HoldsPrivate(int node) const;
  // The lowest sink that writes `object`, or lets its address escape; -1: none.
  int FirstWrite(int object) const { return objects_[object].first_write; }
  int FirstEscape(int object) const { return objects_[object].first_escape; }

 private:
  enum class UseKind : uint8_t { kFlow, kLoad, kStore, kWrite, kEscape, kCopyOut };
  struct Use {
    UseKind kind;
    int target;
  };
  struct Node {
    std::vector<Use> uses;
    std::vector<int> objects;
  };
  struct Object {
    ObjectKind kind;
    int contents;
    int first_write = -1, first_escape = -1;
    bool has_escaped = false;
  };

  void AddUse(int node, Use use);
  void Apply(Use use, int object);

  size_t work_;
  int escaped_ = 0;
  std::vector<Node> nodes_;
  std::vector<Object> objects_;
  std::unordered_set<uint64_t> pairs_;
  std::vector<std::pair<int, int>> pending_;  // (node, object) whose uses have not been applied
};

}  // namespace solstice::ptx
