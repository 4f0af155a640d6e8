#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "kernels/common/check.hpp"
#include "kernels/position/rope.hpp"

namespace tuff {
namespace {

// The number of elements up to the last one used.
uint64_t footprint(const RopeArgs& args, const std::array<uint64_t, 3>& strides, const char* name) {
  const uint64_t sizes[3] = {args.batch, args.heads, args.seq};
  uint64_t last = args.head_dim - 1;
  for (int i = 0; i < 3; ++i) last = checked_add(last, checked_mul(sizes[i] - 1, strides[i], name), name);
  return checked_add(last, 1, name);
}

// Rows of head_dim elements must not overlap: each stride is at least the span of the axes with smaller strides.
void check_rows_apart(const RopeArgs& args) {
  std::array<std::pair<uint64_t, uint64_t>, 3> axes = {std::pair{args.output_strides[0], args.batch},
                                                       {args.output_strides[1], args.heads},
                                                       {args.output_strides[2], args.seq}};
  std::sort(axes.begin(), axes.end());
  uint64_t span = args.head_dim;
  for (const auto& [stride, size] : axes) {
    if (size == 1) continue;
    require(stride >= span, "output_strides {} {} {}: rows of the output overlap", args.output_strides[0],
            args.output_strides[1], args.output_strides[2]);
    span += (size - 1) * stride;
  }
}

}  // namespace

void check_rope(const RopeArgs& args) {
  check_float_type(args.dtype);
  require(args.rotary_dim % 2 == 0 && args.rotary_dim <= args.head_dim,
          "rotary_dim is {}, needs an even number up to head_dim={}", args.rotary_dim, args.head_dim);
  require(args.base > 1 && std::isfinite(args.base), "base is {}, needs to be finite and above 1", args.base);
  require_flag(args.interleaved, "interleaved");
  const bool fits = args.offset >= INT32_MIN && args.offset <= INT32_MAX &&
                    (args.positions != nullptr || args.seq <= static_cast<uint64_t>(INT32_MAX - args.offset) + 1);
  require(fits, "offset is {} and seq {}, positions need to fit 32 bits", args.offset, args.seq);
  const uint64_t sizes[4] = {args.batch, args.heads, args.seq, args.head_dim};
  if (checked_product(sizes, "batch, heads, seq, head_dim") == 0) return;
  const uint64_t input = footprint(args, args.input_strides, "input"),
                 output = footprint(args, args.output_strides, "output"), size = dtype_size(args.dtype);
  check_rows_apart(args);
  const auto detail = [&] {
    return fmt::format("batch={} heads={} seq={} head_dim={}", args.batch, args.heads, args.seq, args.head_dim);
  };
  check_operand(args.input, "input", input, args.dtype, detail);
  check_operand(args.output, "output", output, args.dtype, detail);
  check_overlap(args.output, "output", output * size, args.input, "input", input * size,
                args.input_strides == args.output_strides);
  if (args.positions == nullptr) return;
  const uint64_t positions =
      checked_add(checked_mul(args.batch - 1, args.positions_stride, "positions"), args.seq, "positions");
  check_operand(args.positions, "positions", positions, TUFF_I32, detail);
  check_overlap(args.output, "output", output * size, args.positions, "positions", positions * 4, false);
}

}  // namespace tuff
