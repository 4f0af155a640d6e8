// The interface that planners append dispatches to.
//
// A planner runs with its context's lock held, on checked arguments. It fills in a KernelRequest (which GLSL, with
// which defines and constants) and a Dispatch (operands, parameters, workgroups) and calls Recorder::dispatch. The
// recorder finds or builds the pipeline, decides how operands are bound, adds a barrier where byte ranges conflict, and
// submits when enough work has accumulated. It may run a planner twice for one call, and record at the second time only,
// so that a call that fails in the middle has no effect. This interface is independent of Vulkan; runtime/vulkan/ implements it.
#pragma once

#include <cstdint>

#include "planning/arithmetic.hpp"
#include "planning/device_traits.hpp"
#include "planning/dispatch.hpp"
#include "planning/kernel_request.hpp"
#include "planning/probe.hpp"

namespace tuff {

class TuningTable;

// Scratch memory has three places: a planner that calls other planners keeps its own data in `outer`, so that theirs in
// `inner` does not overwrite it. One that calls such planners keeps its own in `outermost`.
enum class Scratch : uint8_t { inner, outer, outermost };

class Recorder {
 public:
  virtual ~Recorder() = default;

  virtual const DeviceTraits& traits() const noexcept = 0;

  // True if the dispatch's operands will be bound by address in a kernel that accesses memory like this. For planners
  // whose best tile depends on the binding method.
  virtual bool binds_addresses(Reads reads, const Dispatch& dispatch) const noexcept = 0;

  // The choices measured on this device, or null if there are none.
  virtual const TuningTable* tuning() const noexcept { return nullptr; }

  virtual void dispatch(const KernelRequest& kernel, const Dispatch& dispatch) = 0;
  // Makes what such a dispatch needs, its kernel above all, and records nothing. For planners that choose another way if
  // the driver refuses the kernel.
  virtual void prepare(const KernelRequest&, const Dispatch&) {}

  // Copies `count` rows of `bytes` each with the device's copy command. `pitch` is the distance in bytes between the
  // starts of consecutive rows.
  struct Rows {
    const Buffer* buffer;
    uint64_t offset, pitch;
  };
  virtual void copy_rows(const Rows& to, const Rows& from, uint64_t bytes, uint64_t count) = 0;

  // Uninitialised device memory for partial results, of at least this many bytes, valid until the next call of
  // scratch() for the same place. Operations that use it run one after another, because the recorder sees the hazard.
  virtual const Buffer& scratch(uint64_t bytes, Scratch place = Scratch::inner) = 0;

  // Parameters that do not fit the push block, as memory that a kernel reads: at most kMaxParameterBytes, valid for the
  // next dispatch only. Needs no synchronisation.
  static constexpr uint32_t kMaxParameterBytes = 640;
  virtual const Buffer& parameters(const void* data, uint32_t bytes) = 0;

  // The probe's answer for this device. The probe runs when it is first requested.
  virtual bool holds(const Probe&) { return false; }
};

}  // namespace tuff
