#include "kernels/common/check.hpp"

#include <algorithm>

namespace tuff {

void check_known_type(int32_t dtype, std::string_view name) {
  require(kAllTypes.has(dtype), "{} is {}, not a TUFF_F32 … TUFF_C128", name, dtype);
}

void check_f32_only(int32_t dtype) {
  if (dtype == TUFF_F32) [[likely]] {
    return;
  }
  fail(TUFF_ERROR_UNSUPPORTED, "dtype is {}, this version computes in f32", dtype_name(dtype));
}

void check_type(int32_t dtype, ElementTypes types, std::string_view what) {
  if (types.has(dtype)) [[likely]] {
    return;
  }
  fail(TUFF_ERROR_UNSUPPORTED, "dtype is {}, and {} takes {}", dtype_name(dtype), what, names_of(types));
}

void check_float_type(int32_t dtype, std::string_view name) {
  if (dtype == TUFF_F32 || dtype == TUFF_F16 || dtype == TUFF_BF16) [[likely]] {
    return;
  }
  check_known_type(dtype, name);
  fail(TUFF_ERROR_UNSUPPORTED, "{} is {}, needs f32, f16 or bf16", name, dtype_name(dtype));
}

void check_transpose(int32_t transpose, std::string_view name) {
  require(transpose == TUFF_NO_TRANS || transpose == TUFF_TRANS || transpose == TUFF_CONJ_TRANS,
          "{} is {}, must be TUFF_NO_TRANS, TUFF_TRANS or TUFF_CONJ_TRANS", name, transpose);
}

void check_triangle(int32_t triangle) {
  require(triangle == TUFF_TRIANGLE_LOWER || triangle == TUFF_TRIANGLE_UPPER,
          "triangle is {}, must be TUFF_TRIANGLE_LOWER or _UPPER", triangle);
}

uint64_t checked_mul(uint64_t a, uint64_t b, std::string_view what) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) [[unlikely]] {
    fail(TUFF_ERROR_INVALID_ARGUMENT, "{} overflows 64 bits ({} * {})", what, a, b);
  }
  return product;
}

uint64_t checked_add(uint64_t a, uint64_t b, std::string_view what) {
  uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) [[unlikely]] {
    fail(TUFF_ERROR_INVALID_ARGUMENT, "{} overflows 64 bits ({} + {})", what, a, b);
  }
  return sum;
}

uint64_t checked_product(std::span<const uint64_t> factors, std::string_view what) {
  // With a zero anywhere the product is zero, even if the other factors would overflow.
  if (std::find(factors.begin(), factors.end(), uint64_t{0}) != factors.end()) return 0;
  uint64_t product = 1;
  for (const uint64_t factor : factors) product = checked_mul(product, factor, what);
  return product;
}

void check_operand(const Buffer* buffer, std::string_view name, uint64_t elements, int32_t dtype,
                   std::string_view detail) {
  if (elements == 0) return;
  const uint64_t size = dtype_size(dtype);
  const uint64_t bytes = checked_mul(elements, size, name);
  if (buffer == nullptr) [[unlikely]] {
    fail(TUFF_ERROR_INVALID_HANDLE, "{} is TUFF_NULL_HANDLE, needs {} bytes ({} {})", name, bytes, detail,
         dtype_name(dtype));
  }
  if (buffer->bytes < bytes) [[unlikely]] {
    fail(TUFF_ERROR_INVALID_ARGUMENT, "{} holds {} bytes, needs {} ({} {})", name, buffer->bytes, bytes, detail,
         dtype_name(dtype));
  }
  if (buffer->offset % size != 0) [[unlikely]] {
    fail(TUFF_ERROR_INVALID_ARGUMENT, "{} starts at byte {} of its allocation, needs a multiple of {} ({})", name,
         buffer->offset, size, dtype_name(dtype));
  }
  if (buffer->allocation->mapped.load(std::memory_order_relaxed)) [[unlikely]] {
    fail(TUFF_ERROR_INVALID_ARGUMENT, "{} is mapped, needs tuff_unmap first", name);
  }
}

void check_overlap(const Buffer* output, std::string_view output_name, uint64_t output_bytes, const Buffer* input,
                   std::string_view input_name, uint64_t input_bytes, bool exact_allowed) {
  if (output == nullptr || input == nullptr || output_bytes == 0 || input_bytes == 0) return;
  if (output->allocation != input->allocation) return;
  const uint64_t output_end = output->offset + output_bytes, input_end = input->offset + input_bytes;
  if (output_end <= input->offset || input_end <= output->offset) return;
  if (exact_allowed && output->offset == input->offset && output_bytes == input_bytes) return;
  fail(TUFF_ERROR_INVALID_ARGUMENT, "{} overlaps {} (bytes {}..{} and {}..{} of one allocation){}", output_name,
       input_name, output->offset, output_end, input->offset, input_end,
       exact_allowed ? "; the ranges may be identical or disjoint" : "");
}

InputOutput check_planes(const Buffer* input, const Buffer* output, uint64_t batch, uint64_t channels,
                         std::span<const uint64_t> in_shape, std::span<const uint64_t> out_shape, int32_t dtype) {
  const uint64_t planes = checked_mul(batch, channels, "channels");
  const InputOutput count{checked_mul(planes, checked_product(in_shape, "in_shape"), "in_shape"),
                          checked_mul(planes, checked_product(out_shape, "out_shape"), "out_shape")};
  if (count.output == 0) return count;
  const auto detail = [&] { return fmt::format("batch={} channels={}", batch, channels); };
  check_operand(input, "input", count.input, dtype, detail);
  check_operand(output, "output", count.output, dtype, detail);
  check_overlap(output, "output", count.output * dtype_size(dtype), input, "input", count.input * dtype_size(dtype),
                false);
  return count;
}

AxisView check_axis(const uint64_t* shape, uint32_t rank, uint32_t axis) {
  require(rank >= 1 && rank <= 8, "rank is {}, needs 1 to 8", rank);
  require(axis < rank, "axis is {}, needs to be below rank {}", axis, rank);
  checked_product({shape, rank}, "shape");
  return {checked_product({shape, axis}, "shape"), shape[axis],
          checked_product({shape + axis + 1, rank - axis - 1}, "shape")};
}

}  // namespace tuff
