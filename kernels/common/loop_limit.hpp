// The number of loop iterations that one shader invocation may run on a CPU device.
//
// Mesa's gallivm, which compiles the shaders of lavapipe, bounds the loops of an invocation:
// LP_MAX_TGSI_LOOP_ITERATIONS (65,535; src/gallium/auxiliary/gallivm/lp_limits.h, used by lp_bld_ir_common.c). One
// counter serves all loops of the shader, nested ones included. When it runs out, every loop ends at once without an
// error, and the results are silently wrong. Loops that the compiler unrolls do not count. Observed with Mesa 22.3;
// with Mesa 25.0.7 conv2d and attention exceeded the limit unharmed. Planners therefore cut work with longer loops into
// several dispatches on CPU devices (DeviceTraits::cpu).
#pragma once

#include <cstdint>

namespace tuff {

/// Below gallivm's 65,535, with room for short loops that a planner's estimate leaves out.
inline constexpr uint32_t kMaxLoopIterationsCpu = 60000;

}  // namespace tuff
