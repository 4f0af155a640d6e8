// For messages of planners whose workgroups do not tell it, because the extents decide about their size: which kind of
// kernels was chosen, or forced by a variable. tests/sweeps looks for these words.
#pragma once

namespace tuff {

constexpr const char* kernels_for(bool cpu) { return cpu ? "kernels for CPUs" : "kernels for GPUs"; }

}  // namespace tuff
