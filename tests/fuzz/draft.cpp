#include "fuzz/draft.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "fuzz/epilogue.hpp"
#include "fuzz/numbers.hpp"
#include "support/unary_operations.hpp"

namespace tuff_fuzz {

uint64_t Draft::extent(uint64_t drawn, uint64_t least, uint64_t usual) {
  if (extents == nullptr) return drawn;
  const size_t index = extents->asked++;
  uint64_t value = index < extents->values.size() ? extents->values[index] : drawn;
  if (index != extents->swept && usual != 0 && free.one_in(2)) value = 1 + value % usual;
  return std::max(value, least);
}

uint64_t Draft::volume(uint64_t drawn, size_t axes) {
  uint64_t all = extent(drawn);
  for (size_t i = 1; i < axes && extents != nullptr; ++i) all *= extent(1);
  return all;
}

const Operand& Draft::of(std::string_view name) const { return operands[static_cast<size_t>(index_of(name))]; }

int Draft::index_of(std::string_view name) const {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].name == name) return static_cast<int>(i);
  }
  throw std::logic_error("no operand " + std::string(name));
}

const std::vector<Description>& descriptions() {
  static const std::vector<Description> all = [] {
    std::vector<Description> result;
    for (const std::span<const Description> family :
         {describe_products(), describe_images(), describe_rows(), describe_shapes(), describe_attention(),
          describe_linalg(), describe_recurrent(), describe_sparse(), describe_quant(), describe_training()}) {
      result.insert(result.end(), family.begin(), family.end());
    }
    return result;
  }();
  return all;
}

int32_t draw_float(Draw& draw) { return draw.of<int32_t>({TUFF_F32, TUFF_F32, TUFF_F16, TUFF_BF16}); }

// Zero, one, a small size, or any size.
uint64_t draw_size(Draw& draw, uint64_t most) {
  switch (draw.below(16)) {
    case 0: return draw.one_in(3) ? 0 : 1;
    case 1:
    case 2: return 1;
    case 3:
    case 4:
    case 5: return draw.between(1, std::min<uint64_t>(most, 5));
    case 6: return std::min<uint64_t>(most, uint64_t{4} << draw.below(4));
    default: return draw.between(1, most);
  }
}

// The index after the last element; 0 if there are no elements.
uint64_t footprint(std::span<const Axis> axes) {
  uint64_t last = 0;
  for (const Axis& axis : axes) {
    if (axis.count == 0) return 0;
    last += (axis.count - 1) * axis.stride;
  }
  return last + 1;
}

double promised_ulps(int32_t op, double argument) {
  for (const tuff_test::Operation& each : tuff_test::kOperations) {
    if (each.op == op) return each.allowed(argument);
  }
  return 0;
}

double rounded(int32_t dtype, double ulps, double value) {
  const double wide = (ulps + 1) * spacing(TUFF_F32, value);
  // Two values this close may round to neighbouring numbers. Denormal results may be flushed to zero.
  return with_storage(dtype, value, wide) + 0x1p-126;
}

Allowed Epilogue::allowed(int32_t dtype) const {
  switch (activation) {
    case TUFF_ACTIVATION_GELU:
    case TUFF_ACTIVATION_SILU: return [dtype](uint64_t, double y) { return rounded(dtype, 8, y); };  // docs/accuracy.md
    case TUFF_ACTIVATION_GELU_TANH:
      // 8 + 7 * |t| * (1 - sigmoid(t)): |t| * exp(-|t|) is below 0.37. Where results are negative, t is at least -104;
      // below that the sigmoid is zero in f32.
      return [dtype](uint64_t, double y) { return rounded(dtype, 8 + (y < 0 ? 7 * 104.0 : 3), y); };
    default: return {};
  }
}

std::vector<uint64_t> draw_shape(Draft& d, uint64_t most, uint64_t longest) {
  Draw& draw = d.shape;
  std::vector<uint64_t> shape(draw.between(1, draw.one_in(3) ? 8 : 4));
  for (uint64_t& size : shape) {
    size = std::min<uint64_t>(draw_size(draw, longest), most);
    most /= std::max<uint64_t>(size, 1);
    size = d.extent(size);
  }
  return shape;
}

}  // namespace tuff_fuzz
