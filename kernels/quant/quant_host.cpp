// References of quantize, dequantize and qgemm.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/common/elements.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/quant/quant.hpp"

namespace tuff {
namespace {

double number_at(const Buffer* buffer, int32_t type, uint64_t index) {
  double value = 0;
  with_float_type(type, [&]<typename T>(T) { value = static_cast<double>(buffer->host<T>()[index]); });
  return value;
}

double rounded(int32_t type, double value) {
  with_float_type(type, [&]<typename T>(T) { value = static_cast<double>(T(value)); });
  return value;
}

// Number `index` of a buffer of integers; 0 without a buffer.
int32_t integer_at(const Buffer* buffer, const quant::Format& format, uint64_t index) {
  if (buffer == nullptr) return 0;
  const auto* bytes = buffer->host<uint8_t>();
  if (format.bits() == 8) return format.least < 0 ? static_cast<int8_t>(bytes[index]) : bytes[index];
  const int32_t half = (bytes[index / 2] >> (index % 2 * 4)) & 15;
  return format.least < 0 && half > 7 ? half - 16 : half;
}

void put_integer(const Buffer* buffer, const quant::Format& format, uint64_t index, int32_t value) {
  auto* bytes = buffer->host<uint8_t>();
  const auto bits = static_cast<uint8_t>(value);
  if (format.bits() == 8) {
    bytes[index] = bits;
  } else if (index % 2 == 0) {
    bytes[index / 2] = bits & 15;
  } else {
    bytes[index / 2] = static_cast<uint8_t>(bytes[index / 2] | bits << 4);
  }
}

// round(x / scale), as far as the formats tell such numbers apart. Double precision is more than twice as long as any
// of the types, so that rounding its quotient gives the type's own quotient (Figueroa 1995, "When is double rounding
// innocuous?"); where that is denormal, both are rounded to 0.
double quotient(double x, double scale, int32_t type) {
  const double result = rounded(type, rounded(type, x) / rounded(type, scale));
  if (std::isnan(result)) return 0;
  return std::nearbyint(std::clamp(result, -1024.0, 1024.0));
}

}  // namespace

void host_quantize(const QuantArgs& args) {
  const quant::Format& format = quant::format_of(args.format);
  const quant::Places places = quant::places_of(args);
  for (uint64_t i = 0; i < places.elements(); ++i) {
    const uint64_t at = places.scale_of(i);
    const double q = quotient(number_at(args.values, args.dtype, i), number_at(args.scales, args.scale_type, at),
                              args.quotient_type);
    const int32_t sum = static_cast<int32_t>(q) + integer_at(args.zero_points, format, at);
    put_integer(args.quantised, format, i, std::clamp(sum, format.least, format.most));
  }
}

namespace {

// An element of a format of integers.
float dequantised(const QuantArgs& args, const quant::Format& format, const quant::Places& places, uint64_t element) {
  const uint64_t at = places.scale_of(element);
  const int32_t difference = integer_at(args.quantised, format, element) - integer_at(args.zero_points, format, at);
  return static_cast<float>(difference) * static_cast<float>(number_at(args.scales, args.scale_type, at));
}

// Calls body(i, element i) for the elements [first, first + count), which begin a block.
template <typename Body>
void each_dequantised(const QuantArgs& args, const quant::Places& places, uint64_t first, uint64_t count,
                      const Body& body) {
  const quant::Format& format = quant::format_of(args.format);
  if (format.integers()) {
    for (uint64_t i = 0; i < count; ++i) body(i, dequantised(args, format, places, first + i));
    return;
  }
  const uint8_t* blocks = args.quantised->host<uint8_t>();
  float numbers[256];
  for (uint64_t i = 0; i < count; i += format.block) {
    quant::decode_block(args.format, blocks + (first + i) / format.block * format.block_bytes, numbers);
    for (uint64_t j = 0; j < format.block; ++j) body(i + j, numbers[j]);
  }
}

}  // namespace

void host_dequantize(const QuantArgs& args) {
  const quant::Places places = quant::places_of(args);
  if (places.elements() == 0) return;
  with_float_type(args.dtype, [&]<typename T>(T) {
    T* output = args.values->host<T>();
    each_dequantised(args, places, 0, places.elements(),
                     [&](uint64_t i, float value) { output[i] = T(static_cast<double>(value)); });
  });
}

namespace {

// The element of C that has this product of A and W, without alpha.
void put_product(const QgemmArgs& args, uint64_t i, uint64_t j, double product) {
  double value = double{static_cast<float>(args.alpha)} * product;
  if (args.bias != nullptr) value += number_at(args.bias, args.c_type, j);
  if (args.residual != nullptr) value += number_at(args.residual, args.c_type, i * args.ld_residual + j);
  value = activate(args.activation, value);
  with_float_type(args.c_type, [&]<typename T>(T) { args.c->host<T>()[i * args.ldc + j] = T(value); });
}

// A product of integers: sums of blocks modulo 2^32, times their scales.
double quantised_product(const QgemmArgs& args, uint64_t i, uint64_t j) {
  const quant::Format &w_format = quant::format_of(args.format),
                      &a_format = quant::format_of(args.a_type == TUFF_I8 ? TUFF_QUANT_I8 : TUFF_QUANT_U8);
  const uint64_t each = quant::scales_of_row(args), a_at = args.a_granularity == TUFF_QUANT_PER_AXIS ? i : 0;
  const uint64_t block = args.granularity == TUFF_QUANT_PER_BLOCK ? args.block_size : args.k;
  const int32_t a_zero = integer_at(args.a_zero_points, a_format, a_at);
  double sum = 0;
  for (uint64_t begin = 0, at = j * each; begin < args.k; begin += std::min(block, args.k - begin), ++at) {
    const int32_t zero = integer_at(args.zero_points, w_format, at);
    uint32_t products = 0;
    for (uint64_t p = begin; p < begin + std::min(block, args.k - begin); ++p) {
      const int32_t a = integer_at(args.a, a_format, i * args.lda + p) - a_zero,
                    w = integer_at(args.weights, w_format, j * args.k + p) - zero;
      products += static_cast<uint32_t>(a * w);
    }
    sum += static_cast<double>(static_cast<int32_t>(products)) * number_at(args.scales, args.scale_type, at);
  }
  return args.k == 0 ? 0 : sum * number_at(args.a_scales, args.scale_type, a_at);
}

}  // namespace

void host_qgemm(const QgemmArgs& args) {
  if (args.m == 0 || args.n == 0) return;
  if (args.quantised()) {
    for (uint64_t i = 0; i < args.m; ++i) {
      for (uint64_t j = 0; j < args.n; ++j) put_product(args, i, j, quantised_product(args, i, j));
    }
    return;
  }
  const quant::Weights weights(args, 0, args.n);
  std::vector<double> row(args.k);
  const quant::Places places = args.k != 0 ? quant::places_of(weights.args) : quant::Places{};
  for (uint64_t j = 0; j < args.n; ++j) {
    if (args.k != 0) {
      each_dequantised(weights.args, places, j * args.k, args.k, [&](uint64_t i, float value) { row[i] = value; });
    }
    for (uint64_t i = 0; i < args.m; ++i) {
      double sum = 0;
      for (uint64_t p = 0; p < args.k; ++p) sum += number_at(args.a, args.a_type, i * args.lda + p) * row[p];
      put_product(args, i, j, sum);
    }
  }
}

}  // namespace tuff
