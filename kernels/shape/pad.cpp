// Pad: argument check and reference implementation.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/common/elements.hpp"
#include "kernels/shape/pad.hpp"
#include "kernels/shape/shape.hpp"

namespace tuff {

std::array<uint64_t, 8> padded_shape(const PadArgs& args) {
  std::array<uint64_t, 8> shape{};
  for (uint32_t d = 0; d < args.rank; ++d) {
    uint64_t added = 0, removed = 0;
    for (const int64_t more : {args.before[d], args.after[d]}) {
      const auto count = static_cast<uint64_t>(more);
      if (more >= 0) {
        added += count;
      } else {
        removed = checked_add(removed, 0 - count, "before and after");
      }
    }
    require(removed <= args.shape[d], "before[{0}]={1} and after[{0}]={2} remove more than shape[{0}]={3}", d,
            args.before[d], args.after[d], args.shape[d]);
    shape[d] = checked_add(args.shape[d] - removed, added, "shape, before and after");
  }
  return shape;
}

uint64_t pad_value_bits(const PadArgs& args) {
  uint64_t bits = 0;
  if (kIntegerTypes.has(args.dtype)) {
    std::memcpy(&bits, &args.integer, dtype_size(args.dtype));
  } else if (args.dtype == TUFF_BOOL) {
    bits = args.integer != 0 ? 1 : 0;
  } else {
    with_any_type(part_type(args.dtype), [&]<typename T>(T) {
      const T value = static_cast<T>(args.value);
      std::memcpy(&bits, &value, sizeof value);
    });
  }
  return bits;
}

std::array<uint32_t, 4> pad_pattern(const PadArgs& args) {
  const uint64_t size = dtype_size(args.dtype), bits = pad_value_bits(args);
  std::array<uint32_t, 4> pattern{};
  auto* bytes = reinterpret_cast<std::byte*>(pattern.data());
  for (uint64_t at = 0; at < sizeof pattern; at += size) std::memcpy(bytes + at, &bits, std::min<uint64_t>(size, 8));
  return pattern;
}

void check_pad(const PadArgs& args) {
  const uint64_t size = dtype_size(args.dtype);
  require(args.mode >= TUFF_PAD_CONSTANT && args.mode <= TUFF_PAD_WRAP, "mode is {}, needs {} to {}", args.mode,
          TUFF_PAD_CONSTANT, TUFF_PAD_WRAP);
  require(args.rank >= 1 && args.rank <= 8, "rank is {}, needs 1 to 8", args.rank);
  const std::array<uint64_t, 8> shape = padded_shape(args);
  const uint64_t inputs = checked_product({args.shape, args.rank}, "shape");
  const uint64_t outputs = checked_product({shape.data(), args.rank}, "shape, before and after");
  if (outputs == 0) return;
  for (uint32_t d = 0; d < args.rank; ++d) {
    require(args.mode == TUFF_PAD_CONSTANT || args.shape[d] != 0,
            "shape[{}] is 0, and only the mode CONSTANT extends an empty axis", d);
  }
  const auto detail = [&] { return fmt::format("{} elements from {}", outputs, inputs); };
  check_operand(args.input, "input", inputs, args.dtype, detail);
  check_operand(args.output, "output", outputs, args.dtype, detail);
  check_overlap(args.output, "output", checked_mul(outputs, size, "output"), args.input, "input", inputs * size, false);
}

namespace {

// The position in an axis of n elements that `at` stands for; n if it is none.
uint64_t position(int32_t mode, Int128 at, uint64_t n) {
  const Int128 size = n;
  if (at >= 0 && at < size) return static_cast<uint64_t>(at);
  const auto modulo = [](Int128 a, Int128 b) { return (a % b + b) % b; };
  switch (mode) {
    case TUFF_PAD_EDGE: return at < 0 ? 0 : n - 1;
    case TUFF_PAD_REFLECT: {
      if (n == 1) return 0;
      const Int128 place = modulo(at, 2 * size - 2);
      return static_cast<uint64_t>(place < size ? place : 2 * size - 2 - place);
    }
    case TUFF_PAD_SYMMETRIC: {
      const Int128 place = modulo(at, 2 * size);
      return static_cast<uint64_t>(place < size ? place : 2 * size - 1 - place);
    }
    case TUFF_PAD_WRAP: return static_cast<uint64_t>(modulo(at, size));
    default: return n;
  }
}

}  // namespace

void host_pad(const PadArgs& args) {
  const std::array<uint64_t, 8> shape = padded_shape(args);
  const uint64_t outputs = checked_product({shape.data(), args.rank}, "shape"), size = dtype_size(args.dtype);
  const uint64_t constant[2] = {pad_value_bits(args), 0};
  for (uint64_t i = 0; i < outputs; ++i) {
    uint64_t from = 0, stride = 1, rest = i;
    bool inside = true;
    for (uint32_t d = args.rank; d-- > 0; rest /= shape[d], stride *= args.shape[d]) {
      const uint64_t place = position(args.mode, Int128{rest % shape[d]} - args.before[d], args.shape[d]);
      inside = inside && place < args.shape[d];
      from += place * stride;
    }
    const void* source = inside ? args.input->host<std::byte>() + from * size : static_cast<const void*>(constant);
    std::memcpy(args.output->host<std::byte>() + i * size, source, size);
  }
}

}  // namespace tuff
