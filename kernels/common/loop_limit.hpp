// The number of loop iterations that one shader invocation may run on a device that is a CPU.
//
// Mesa's gallivm, which compiles the shaders of lavapipe, bounds the loops of an invocation:
// LP_MAX_TGSI_LOOP_ITERATIONS (65,535; src/gallium/auxiliary/gallivm/lp_limits.h, used by lp_bld_ir_common.c). One
// counter serves all loops of the shader, nested ones included, and when it is used up every loop ends at once, without
// an error: the results are silently wrong. Loops that the compiler unrolls do not count. Seen with Mesa 22.3; conv2d
// and attention ran beyond it unharmed with Mesa 25.0.7. Planners therefore cut work with longer loops into several
// dispatches on such a device (DeviceTraits::cpu).
#pragma once

#include <cstdint>

namespace tuff {

/// Below the 65,535 of gallivm, with room for loops of a few iterations that a planner's estimate leaves out.
inline constexpr uint32_t kMaxLoopIterationsCpu = 60000;

}  // namespace tuff
