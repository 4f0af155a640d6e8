// The interface that planners append dispatches to.
//
// A planner runs with its context's lock held, on arguments that are checked. It fills in a KernelRequest (which GLSL,
// with which defines and constants) and a Dispatch (operands, parameters, groups) and calls Recorder::dispatch. The
// recorder finds or builds the pipeline, decides how operands are bound, adds a barrier where byte ranges conflict, and
// submits when enough work is gathered. Nothing here shows Vulkan: runtime/vulkan/ implements it.
#pragma once

#include <cstdint>

#include "planning/arithmetic.hpp"
#include "planning/device_traits.hpp"
#include "planning/dispatch.hpp"
#include "planning/kernel_request.hpp"
#include "planning/probe.hpp"

namespace tuff {

class TuningTable;

// A planner that has others record a part of its work keeps what it needs meanwhile in the outer place.
enum class Scratch : uint8_t { inner, outer };

class Recorder {
 public:
  virtual ~Recorder() = default;

  virtual const DeviceTraits& traits() const noexcept = 0;

  // True if these operands of a kernel of that kind will be bound by address. For planners whose best tile differs
  // between the two.
  virtual bool binds_addresses(Reads reads, const Dispatch& dispatch) const noexcept = 0;

  // The choices measured on this device; null: there are none.
  virtual const TuningTable* tuning() const noexcept { return nullptr; }

  virtual void dispatch(const KernelRequest& kernel, const Dispatch& dispatch) = 0;

  // Rows of so many bytes, by the device's command for copies. pitch: from one row to the next.
  struct Rows {
    const Buffer* buffer;
    uint64_t offset, pitch;
  };
  virtual void copy_rows(const Rows& to, const Rows& from, uint64_t bytes, uint64_t count) = 0;

  // Device memory for partial results, of at least this many bytes, valid until the next call of
  // scratch() for the same place. Uninitialised. Operations that use it follow one another (the recorder sees the
  // hazard).
  virtual const Buffer& scratch(uint64_t bytes, Scratch place = Scratch::inner) = 0;

  // Parameters that are too many to push, as memory for a kernel to read: at most kMaxParameterBytes, for the next
  // dispatch alone. Nothing has to wait for them.
  static constexpr uint32_t kMaxParameterBytes = 256;
  virtual const Buffer& parameters(const void* data, uint32_t bytes) = 0;

  // The probe's answer for this device; it runs when it is first asked for.
  virtual bool holds(const Probe&) { return false; }
};

}  // namespace tuff
