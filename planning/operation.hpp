// Operations as streams and profiles see them. A kernel family declares each of its operations once: its name, its
// element types, and the functions that check a call, compute it on the host, record it for a device and describe it.
// kernels/registry.cpp lists them all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "planning/call_copy.hpp"
#include "planning/element_type.hpp"
#include "tuff/tuff.h"

namespace tuff {

class Recorder;

// A plug-in's function for an operation (tuff/backend.h), and the device to compute on. With `accepts`, the plug-in is
// only asked whether it would compute the call.
struct PluginFunction {
  tuff_status (*compute)(void* device, const void* call);
  void* device;
  tuff_status (*accepts)(void* device, tuff_status (*compute)(void* device, const void* call),
                         const void* call) = nullptr;

  template <typename Call>
  tuff_status operator()(const Call& call) const {
    return accepts != nullptr ? accepts(device, compute, &call) : compute(device, &call);
  }
};

// An operand that plug-ins cannot reach, because the process has no address for it.
struct NotMapped {};

// Describes a call in a profile.
struct CallText {
  std::string shape;
  int32_t dtype = 0;
};

// An operation without its arguments.
struct OperationInfo {
  const char* name;    // as in tuff_supports(), `tuff info` and profiles: "reduce"
  ElementTypes types;  // accepted element types
  bool moves;          // only moves elements, so that a device needs only storage for their type

  void (*check)(const void* args);                       // throws if the call is invalid
  void (*compute)(const void* args);                     // the host's reference implementation; args are checked
  void (*record)(Recorder& recorder, const void* args);  // on a device; args are checked
  CallText (*describe)(const void* args);                // args are checked
  std::string (*variants)(const Recorder& recorder, const void* args);  // JSON; null if the operation has no variants
  // Describes the call to a plug-in, which computes it or returns UNSUPPORTED; args are checked. Null:
  // plug-ins are not asked.
  tuff_status (*offer)(const PluginFunction& function, const void* args);
  const void* (*copy)(CallCopy& copy,
                      const void* args);  // into the copy, with all that they point to; args are checked
};

// A call: an operation and its arguments, which must outlive it (CallCopy, for calls that are kept).
class Operation {
 public:
  Operation(const OperationInfo& info, const void* args) : info_(info), args_(args) {}

  const OperationInfo& info() const { return info_; }
  void check() const { info_.check(args_); }
  void compute() const { info_.compute(args_); }
  void record(Recorder& recorder) const { info_.record(recorder, args_); }
  CallText describe() const { return info_.describe(args_); }
  std::string variants(const Recorder& recorder) const { return info_.variants(recorder, args_); }
  tuff_status offer(const PluginFunction& function) const { return info_.offer(function, args_); }
  const void* copy(CallCopy& copy) const { return info_.copy(copy, args_); }

 private:
  const OperationInfo& info_;
  const void* args_;
};

// An operation with the type of its arguments: stream.run(operations::reduce({…})).
template <typename Args>
class OperationOf {
 public:
  explicit constexpr OperationOf(const OperationInfo& info) : info_(info) {}
  Operation operator()(const Args& args) const { return {info_, &args}; }
  const OperationInfo& info() const { return info_; }

 private:
  OperationInfo info_;
};

// Defines an operation from its family's functions.
template <typename Args, void (*check)(const Args&), void (*compute)(const Args&),
          void (*record)(Recorder&, const Args&), CallText (*describe)(const Args&),
          auto variants = nullptr,  // std::string (*)(const Recorder&, const Args&)
          auto offer = nullptr>     // tuff_status (*)(const PluginFunction&, const Args&)
constexpr OperationOf<Args> define_operation(const char* name, ElementTypes types, bool moves = false) {
  OperationInfo info{};
  info.name = name;
  info.types = types;
  info.moves = moves;
  info.check = [](const void* args) { check(*static_cast<const Args*>(args)); };
  info.compute = [](const void* args) { compute(*static_cast<const Args*>(args)); };
  info.record = [](Recorder& recorder, const void* args) { record(recorder, *static_cast<const Args*>(args)); };
  info.describe = [](const void* args) { return describe(*static_cast<const Args*>(args)); };
  info.copy = [](CallCopy& copy, const void* args) -> const void* {
    return copy.arguments(*static_cast<const Args*>(args));
  };
  // Not `variants != nullptr`, which is no constant expression for GCC's sanitizers.
  if constexpr (!std::is_null_pointer_v<decltype(variants)>) {
    info.variants = [](const Recorder& recorder, const void* args) {
      return variants(recorder, *static_cast<const Args*>(args));
    };
  }
  if constexpr (!std::is_null_pointer_v<decltype(offer)>) {
    info.offer = [](const PluginFunction& function, const void* args) {
      return offer(function, *static_cast<const Args*>(args));
    };
  }
  return OperationOf<Args>(info);
}

// All operations, in the order of the header. Defined in kernels/registry.cpp.
extern const std::span<const OperationInfo* const> all_operations;

// Whether a device supports a feature: an element type ("f16"), an operation ("reduce"), or both ("reduce.f16"). The
// device computes with elements of the types in `computes` and can store those in `stores`.
bool computes_feature(std::string_view feature, ElementTypes computes, ElementTypes stores);

}  // namespace tuff
