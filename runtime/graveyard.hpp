// Where contexts end. What a device works on must not be destroyed under it: a backend whose device does not finish in
// time is put aside, and destroyed once the device has finished, when another context begins or ends; if that never
// comes to pass, never.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/compute_backend.hpp"

namespace tuff {

// Destroys the backend, if its device is at rest or comes to rest within its wait limit; without `wait`, if it is. Puts
// it aside otherwise, with a warning to the log.
void end_backend(std::unique_ptr<ComputeBackend> backend, bool wait) noexcept;

// Destroys those whose device has come to rest; returns how many are left.
size_t sweep_graveyard() noexcept;

}  // namespace tuff
