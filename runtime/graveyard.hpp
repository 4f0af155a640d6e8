// Ends contexts. Objects that a device is using must not be destroyed: if a device does not finish in time, its backend
// is set aside and destroyed once the device has finished, when another context is created or destroyed. If the device
// never finishes, the backend is never destroyed.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/compute_backend.hpp"

namespace tuff {

// Destroys the backend if its device is idle or, with `wait`, becomes idle within its wait limit. Otherwise sets it
// aside and logs a warning.
void end_backend(std::unique_ptr<ComputeBackend> backend, bool wait) noexcept;

// Destroys the backends whose devices have become idle. Returns how many are left.
size_t sweep_graveyard() noexcept;

}  // namespace tuff
