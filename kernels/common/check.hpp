// Building blocks of the operations' check functions: element types, overflow-safe sizes, footprints and overlaps. Each
// throws tuff::Error with a message that names the argument.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "planning/buffer.hpp"
#include "planning/element_type.hpp"
#include "planning/status.hpp"

namespace tuff {

// INVALID_ARGUMENT if the argument `name` is not an element type.
void check_known_type(int32_t dtype, std::string_view name);

// INVALID_ARGUMENT if unknown, UNSUPPORTED unless it is TUFF_F32.
void check_f32_only(int32_t dtype);

// INVALID_ARGUMENT if unknown, UNSUPPORTED unless `what` accepts it: "dtype is f64, and mean takes f32, f16 or bf16".
void check_type(int32_t dtype, ElementTypes types, std::string_view what);

// INVALID_ARGUMENT if unknown, UNSUPPORTED unless it is TUFF_F32, TUFF_F16 or TUFF_BF16.
void check_float_type(int32_t dtype, std::string_view name = "dtype");

// INVALID_ARGUMENT unless one of TUFF_NO_TRANS, TUFF_TRANS, TUFF_CONJ_TRANS, or of TUFF_TRIANGLE_*.
void check_transpose(int32_t transpose, std::string_view name);
void check_triangle(int32_t triangle);

// Overflow-checked arithmetic on sizes: INVALID_ARGUMENT beyond 2^64, naming `what`.
uint64_t checked_mul(uint64_t a, uint64_t b, std::string_view what);
uint64_t checked_add(uint64_t a, uint64_t b, std::string_view what);
uint64_t checked_product(std::span<const uint64_t> factors, std::string_view what);
inline uint64_t checked_product(std::initializer_list<uint64_t> factors, std::string_view what) {
  return checked_product(std::span(factors.begin(), factors.size()), what);
}

// The operand `name` must hold `elements` elements of dtype, start at a multiple of the element size and not be mapped.
// `detail` explains the required size in the message, such as "k=32 n=64 ldb=64". A null buffer is allowed only if
// elements is 0.
void check_operand(const Buffer* buffer, std::string_view name, uint64_t elements, int32_t dtype,
                   std::string_view detail);

// The same, with a detail() that is called only if the check fails, so that valid calls format no text.
inline bool operand_fits(const Buffer* buffer, uint64_t elements, int32_t dtype) {
  if (elements == 0) return true;
  const uint64_t size = dtype_size(dtype);
  return buffer != nullptr && buffer->bytes >> std::countr_zero(size) >= elements &&
         (buffer->offset & (size - 1)) == 0 && !buffer->allocation->mapped.load(std::memory_order_relaxed);
}
template <typename Detail>
requires std::is_invocable_v<const Detail&>
void check_operand(const Buffer* buffer, std::string_view name, uint64_t elements, int32_t dtype,
                   const Detail& detail) {
  if (!operand_fits(buffer, elements, dtype)) [[unlikely]] {
    const std::string text = detail();
    check_operand(buffer, name, elements, dtype, std::string_view(text));
  }
}

// The first `output_bytes` of output and `input_bytes` of input must be disjoint; with `exact_allowed` they may also be
// exactly the same range.
void check_overlap(const Buffer* output, std::string_view output_name, uint64_t output_bytes, const Buffer* input,
                   std::string_view input_name, uint64_t input_bytes, bool exact_allowed);

// Element counts of an input and of the output computed from it.
struct InputOutput {
  uint64_t input, output;
};
// `input` [batch][channels][in_shape...] and `output` [batch][channels][out_shape...], in any order of axes, must hold
// as many elements as their shapes say, and must not overlap. Nothing is checked if the output has no elements.
InputOutput check_planes(const Buffer* input, const Buffer* output, uint64_t batch, uint64_t channels,
                         std::span<const uint64_t> in_shape, std::span<const uint64_t> out_shape, int32_t dtype);

// A shape viewed around one axis: index = (outer * axis + r) * inner + i.
struct AxisView {
  uint64_t outer, axis, inner;
};
AxisView check_axis(const uint64_t* shape, uint32_t rank, uint32_t axis);

}  // namespace tuff
