// Operations as streams and profiles see them. A family of kernels declares each of its operations once: name, element
// types, and what checks a call, computes it on the host, records it for a device and describes it.
// kernels/registry.cpp lists them all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "planning/element_type.hpp"

namespace tuff {

class Recorder;

// What a call was about, for people who look at a profile.
struct CallText {
  std::string shape;
  int32_t dtype = 0;
};

// An operation without its arguments.
struct OperationInfo {
  const char* name;    // of tuff_supports(), `tuff info` and profiles: "reduce"
  ElementTypes types;  // of the elements that it takes
  bool moves;          // it moves elements and computes nothing, so a device needs only storage of their type

  void (*check)(const void* args);                                      // throws, or nothing is wrong
  void (*compute)(const void* args);                                    // on the host: the reference; args are checked
  void (*record)(Recorder& recorder, const void* args);                 // on a device; args are checked
  CallText (*describe)(const void* args);                               // args are checked
  std::string (*variants)(const Recorder& recorder, const void* args);  // JSON; null: there are none to choose from
};

// A call: an operation and its arguments, which outlive it.
class Operation {
 public:
  Operation(const OperationInfo& info, const void* args) : info_(info), args_(args) {}

  const OperationInfo& info() const { return info_; }
  void check() const { info_.check(args_); }
  void compute() const { info_.compute(args_); }
  void record(Recorder& recorder) const { info_.record(recorder, args_); }
  CallText describe() const { return info_.describe(args_); }
  std::string variants(const Recorder& recorder) const { return info_.variants(recorder, args_); }

 private:
  const OperationInfo& info_;
  const void* args_;
};

// An operation with its arguments' type: stream.run(operations::reduce({…})).
template <typename Args>
class OperationOf {
 public:
  explicit constexpr OperationOf(const OperationInfo& info) : info_(info) {}
  Operation operator()(const Args& args) const { return {info_, &args}; }
  const OperationInfo& info() const { return info_; }

 private:
  OperationInfo info_;
};

// An operation by the functions that its family wrote for it.
template <typename Args, void (*check)(const Args&), void (*compute)(const Args&),
          void (*record)(Recorder&, const Args&), CallText (*describe)(const Args&),
          std::string (*variants)(const Recorder&, const Args&) = nullptr>
constexpr OperationOf<Args> define_operation(const char* name, ElementTypes types, bool moves = false) {
  OperationInfo info{};
  info.name = name;
  info.types = types;
  info.moves = moves;
  info.check = [](const void* args) { check(*static_cast<const Args*>(args)); };
  info.compute = [](const void* args) { compute(*static_cast<const Args*>(args)); };
  info.record = [](Recorder& recorder, const void* args) { record(recorder, *static_cast<const Args*>(args)); };
  info.describe = [](const void* args) { return describe(*static_cast<const Args*>(args)); };
  if constexpr (variants != nullptr) {
    info.variants = [](const Recorder& recorder, const void* args) {
      return variants(recorder, *static_cast<const Args*>(args));
    };
  }
  return OperationOf<Args>(info);
}

// All of them, in the order of the header. kernels/registry.cpp defines it.
extern const std::span<const OperationInfo* const> all_operations;

// Whether a device that computes with elements of types `computes`, and has storage for those of `stores`, has a
// feature that is an element type ("f16"), an operation ("reduce"), or both ("reduce.f16").
bool computes_feature(std::string_view feature, ElementTypes computes, ElementTypes stores);

}  // namespace tuff
