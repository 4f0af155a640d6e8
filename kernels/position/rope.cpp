#include "kernels/position/rope.hpp"

#include <fmt/format.h>

namespace tuff {
namespace {

CallText describe(const RopeArgs& args) {
  return {fmt::format("{} batch {} heads {} seq {} of {}", dtype_name(args.dtype), args.batch, args.heads, args.seq,
                      args.head_dim),
          args.dtype};
}

}  // namespace

namespace operations {
const OperationOf<RopeArgs> rope =
    define_operation<RopeArgs, check_rope, host_rope, record_rope, describe>("rope", kFloatTypes);
}  // namespace operations

}  // namespace tuff
