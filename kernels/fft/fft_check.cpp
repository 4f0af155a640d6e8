// Argument checks of Fourier transforms, and the operands' sizes and strides.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "kernels/common/check.hpp"
#include "kernels/common/strided_elements.hpp"
#include "kernels/fft/fft.hpp"

namespace tuff {

uint32_t fft::axes_of(uint32_t given, uint32_t rank) {
  require(rank >= 1 && rank <= 8, "rank is {}, needs 1 to 8", rank);
  const uint32_t axes = given != 0 ? given : 1u << (rank - 1);
  require(axes >> rank == 0, "axes is {:#x}, needs bits below rank {}", axes, rank);
  return axes;
}

void fft::set_strides(Operand& operand, const uint64_t* given, uint32_t rank, std::string_view name) {
  const bool dense = std::all_of(given, given + rank, [](uint64_t stride) { return stride == 0; });
  const std::string_view shape = "shape";
  const uint64_t count = checked_product({operand.sizes.data(), rank}, shape);
  uint64_t next = 1;
  for (uint32_t i = rank; i-- > 0;) {
    operand.strides[i] = dense ? next : given[i];
    // With a size of 0 the others may be of any size, and their product beyond 64 bits.
    if (dense && count != 0) next = checked_mul(next, operand.sizes[i], shape);
  }
  operand.span = 0;
  if (count == 0) return;
  operand.span = 1;
  for (uint32_t i = 0; i < rank; ++i) {
    operand.span = checked_add(operand.span, checked_mul(operand.sizes[i] - 1, operand.strides[i], name), name);
  }
}

// Their reach is bounded by the span, which is checked.
void fft::require_distinct(const Operand& output, uint32_t rank) {
  const auto found = coincidence({output.strides.data(), rank}, {output.sizes.data(), rank}, 1);
  if (!found) return;
  fail(TUFF_ERROR_INVALID_ARGUMENT, "output_strides has {} for an axis, needs more than {}: numbers of output coincide",
       output.strides[found->axis], found->reach - 1);
}

double fft::scale_of(int32_t norm, double length) {
  require(norm >= TUFF_FFT_NORM_NONE && norm <= TUFF_FFT_NORM_ROOT, "norm is {}, needs a TUFF_FFT_NORM_*", norm);
  return norm == TUFF_FFT_NORM_SIZE ? 1 / length : norm == TUFF_FFT_NORM_ROOT ? 1 / std::sqrt(length) : 1;
}

void fft::check_operands(const Operands& operands, bool may_be_same) {
  const auto bytes_of = [&](const Buffer* buffer, const Operand& numbers, std::string_view name) {
    const uint64_t elements = checked_mul(numbers.span, numbers.elements, name);
    check_operand(buffer, name, elements, operands.dtype,
                  [&] { return fmt::format("{} numbers of {} elements", numbers.span, numbers.elements); });
    return checked_mul(elements, dtype_size(operands.dtype), name);
  };
  const auto& [in, out, from, to, rank, dtype] = operands;
  const uint64_t input = bytes_of(in, from, "input"), output = bytes_of(out, to, "output");
  if (output == 0) return;
  const bool same = may_be_same && std::equal(from.strides.begin(), from.strides.begin() + rank, to.strides.begin());
  check_overlap(out, "output", output, in, "input", input, same);
}

fft::Pieces::Pieces(const uint64_t* shape, uint32_t rank, uint32_t axes, uint64_t fits) : rank_(rank) {
  for (uint32_t axis = rank; axis-- > 0;) {
    shape_[axis] = sizes_[axis] = shape[axis];
    if ((axes >> axis & 1) != 0) continue;
    sizes_[axis] = std::min(shape[axis], fits);
    fits = sizes_[axis] < shape[axis] ? 1 : std::max<uint64_t>(fits / sizes_[axis], 1);
    batch_ *= sizes_[axis];
  }
}

bool fft::is_direct(uint64_t n) {
  for (uint64_t p = 2; p <= kMaxPrime; ++p) {
    while (n % p == 0) n /= p;
  }
  return n == 1;
}

fft::Shape fft::shape_of(const FftArgs& args) {
  Shape shape{};
  shape.axes = axes_of(args.axes, args.rank);
  require(args.kind >= TUFF_FFT_COMPLEX && args.kind <= TUFF_FFT_TO_REAL, "kind is {}, needs a TUFF_FFT_*", args.kind);
  require_flag(args.inverse, "inverse");
  shape.length = 1;
  for (uint32_t i = 0; i < args.rank; ++i) {
    if ((shape.axes >> i & 1) == 0) continue;
    require(args.shape[i] > 0, "shape[{}] is 0, and the axis is transformed", i);
    shape.length = checked_mul(shape.length, args.shape[i], "shape");
    shape.last = i;
  }
  shape.scale = scale_of(args.norm, static_cast<double>(shape.length));
  const auto fill = [&](Operand& operand, const uint64_t* strides, int32_t real, int32_t half, std::string_view name) {
    std::copy_n(args.shape, args.rank, operand.sizes.begin());
    if (args.kind == half) operand.sizes[shape.last] = args.shape[shape.last] / 2 + 1;
    operand.elements = args.kind == real ? 1 : 2;
    set_strides(operand, strides, args.rank, name);
  };
  fill(shape.input, args.input_strides, TUFF_FFT_REAL, TUFF_FFT_TO_REAL, "input_strides");
  fill(shape.output, args.output_strides, TUFF_FFT_TO_REAL, TUFF_FFT_REAL, "output_strides");
  if (shape.output.span != 0) require_distinct(shape.output, args.rank);
  return shape;
}

void check_fft(const FftArgs& args) {
  check_type(args.dtype, fft::kTypes, "fft");
  const fft::Shape shape = fft::shape_of(args);
  for (uint32_t i = 0; i < args.rank; ++i) {
    if ((shape.axes >> i & 1) == 0) continue;
    const uint64_t n = args.shape[i];
    if (n > fft::kMaxLength) {
      fail(TUFF_ERROR_UNSUPPORTED, "shape[{}] is {}, and at most 2^29 numbers are transformed along an axis", i, n);
    }
    if (n > fft::kMaxBluestein && !fft::is_direct(n)) {
      fail(TUFF_ERROR_UNSUPPORTED, "shape[{}] is {}, and beyond 2^28 a size has no prime factor above {}", i, n,
           fft::kMaxPrime);
    }
  }
  fft::check_operands({args.input, args.output, shape.input, shape.output, args.rank, args.dtype},
                      args.kind == TUFF_FFT_COMPLEX);
}

}  // namespace tuff
