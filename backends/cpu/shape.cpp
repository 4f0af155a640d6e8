// Permutations, conversions between floats, and gathers of rows.
#include <cstring>
#include <type_traits>

#include "backends/cpu/device.hpp"

namespace tuff_cpu {
namespace {

// Calls body(T{}) with an integer type of this many bytes.
template <typename Body>
void with_unit(uint64_t bytes, const Body& body) {
  struct Pair {
    uint64_t words[2];
  };
  switch (bytes) {
    case 16: return body(Pair{});
    case 8: return body(uint64_t{});
    case 4: return body(uint32_t{});
    case 2: return body(uint16_t{});
    default: body(uint8_t{});
  }
}

// The output's axes, outermost first; axes that stay together are one.
struct Axes {
  uint32_t rank = 0;
  uint64_t sizes[8];
  uint64_t strides[8];  // in the input
  uint64_t steps[8];    // in the output

  explicit Axes(const tuff_permute_desc& call) {
    uint64_t of_input[8], step = 1;
    for (uint32_t i = call.rank; i-- > 0;) {
      of_input[i] = step;
      step *= call.shape[i];
    }
    for (uint32_t i = 0; i < call.rank; ++i) {
      const uint64_t size = call.shape[call.order[i]], stride = of_input[call.order[i]];
      if (size == 1) continue;
      if (rank > 0 && strides[rank - 1] == size * stride) {
        sizes[rank - 1] *= size;
        strides[rank - 1] = stride;
        continue;
      }
      sizes[rank] = size;
      strides[rank++] = stride;
    }
    step = 1;
    for (uint32_t d = rank; d-- > 0;) {
      steps[d] = step;
      step *= sizes[d];
    }
  }
};

// The place, by axes.strides or axes.steps, of the output's index `i` over axes 0 ... count - 1 without `skip`.
uint64_t place_of(const Axes& axes, const uint64_t (&strides)[8], uint32_t count, uint32_t skip, uint64_t i) {
  uint64_t place = 0;
  for (uint32_t d = count; d-- > 0;) {
    if (d == skip) continue;
    place += i % axes.sizes[d] * strides[d];
    i /= axes.sizes[d];
  }
  return place;
}

constexpr uint32_t kNoAxis = ~uint32_t{0};
constexpr uint64_t kTile = 32;

// Rows whose elements are neighbours in the input, too.
template <typename T>
void copy_rows(const Axes& axes, const T* x, T* y, uint64_t n) {
  const uint64_t row = axes.sizes[axes.rank - 1];
  for_each(n / row, row, [&](uint64_t r) {
    std::memcpy(y + r * row, x + place_of(axes, axes.strides, axes.rank - 1, kNoAxis, r), row * sizeof(T));
  });
}

// Planes of the output's last axis and of the axis whose elements are neighbours in the input, in tiles.
template <typename T>
void transpose(const Axes& axes, const T* x, T* y, uint64_t n) {
  const uint32_t last = axes.rank - 1;
  uint32_t inner = 0;
  for (uint32_t d = 0; d < axes.rank; ++d) {
    if (axes.strides[d] == 1) inner = d;
  }
  const uint64_t rows = axes.sizes[inner], cols = axes.sizes[last];
  const uint64_t step = axes.strides[last], row_step = axes.steps[inner];
  const uint64_t tiles = (rows + kTile - 1) / kTile;
  for_each(n / rows / cols * tiles, kTile * cols, [&](uint64_t i) {
    const uint64_t plane = i / tiles, first = i % tiles * kTile, end = std::min(first + kTile, rows);
    const T* from = x + place_of(axes, axes.strides, last, inner, plane);
    T* to = y + place_of(axes, axes.steps, last, inner, plane);
    for (uint64_t c = 0; c < cols; c += kTile) {
      const uint64_t c_end = std::min(c + kTile, cols);
      for (uint64_t r = first; r < end; ++r) {
        for (uint64_t k = c; k < c_end; ++k) to[r * row_step + k] = from[k * step + r];
      }
    }
  });
}

// f64 too, for conversions.
template <typename Body>
void with_number(int32_t dtype, const Body& body) {
  if (dtype == TUFF_F64) return body(double{});
  with_float(dtype, body);
}

bool is_number(int32_t dtype) { return is_float(dtype) || dtype == TUFF_F64; }

constexpr uint64_t kBlock = 1024;

template <typename X, typename Y>
void cast_block(const X* x, Y* y, uint64_t n) {
  if constexpr (std::is_same_v<X, double> && std::is_same_v<Y, float>) {
    for (uint64_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i]);
  } else {
    float block[kBlock];
    widen(x, block, n);
    if constexpr (std::is_same_v<Y, double>) {
      for (uint64_t i = 0; i < n; ++i) y[i] = static_cast<double>(block[i]);
    } else {
      narrow(block, y, n);
    }
  }
}

bool is_index(int32_t type) { return type == TUFF_I32 || type == TUFF_U32 || type == TUFF_I64 || type == TUFF_U64; }

uint64_t index_at(const tuff_backend_gather& call, uint64_t j) {
  int64_t index = 0;
  switch (call.index_type) {
    case TUFF_I32: index = at<const int32_t>(call.indices)[j]; break;
    case TUFF_U32: index = at<const uint32_t>(call.indices)[j]; break;
    case TUFF_I64: index = at<const int64_t>(call.indices)[j]; break;
    default: return at<const uint64_t>(call.indices)[j];
  }
  if (index < 0 && call.negative == 1) index += static_cast<int64_t>(call.size);
  return static_cast<uint64_t>(index);  // beyond any size if it is negative
}

}  // namespace

tuff_status permute(Device& device, const tuff_permute_desc& call) {
  if (size_of(call.dtype) == 0) return TUFF_ERROR_UNSUPPORTED;
  if (device.asked) return TUFF_OK;
  const Axes axes(call);
  uint64_t n = 1;
  for (uint32_t i = 0; i < call.rank; ++i) n *= call.shape[i];
  with_unit(size_of(call.dtype), [&]<typename T>(T) {
    const T* x = at<const T>(call.input);
    T* y = at<T>(call.output);
    if (axes.rank == 0) {
      *y = *x;
    } else if (axes.rank == 1) {
      in_parts(n, 1 << 16,
               [&](uint64_t first, uint64_t count) { std::memcpy(y + first, x + first, count * sizeof(T)); });
    } else if (axes.strides[axes.rank - 1] == 1) {
      copy_rows(axes, x, y, n);
    } else {
      transpose(axes, x, y, n);
    }
  });
  return TUFF_OK;
}

tuff_status cast(Device& device, const tuff_cast_desc& call) {
  if (!is_number(call.input_type) || !is_number(call.output_type) || call.input_type == call.output_type) {
    return TUFF_ERROR_UNSUPPORTED;
  }
  // By way of f32, an f64 would be rounded twice.
  if (call.input_type == TUFF_F64 && call.output_type != TUFF_F32) return TUFF_ERROR_UNSUPPORTED;
  if (device.asked) return TUFF_OK;
  with_number(call.input_type, [&]<typename X>(X) {
    with_number(call.output_type, [&]<typename Y>(Y) {
      if constexpr (!std::is_same_v<X, double> || std::is_same_v<Y, float>) {
        in_parts(call.n, kBlock, [&](uint64_t first, uint64_t count) {
          cast_block(at<const X>(call.input) + first, at<Y>(call.output) + first, count);
        });
      }
    });
  });
  return TUFF_OK;
}

tuff_status gather(Device& device, const tuff_backend_gather& call) {
  if (size_of(call.dtype) == 0 || !is_index(call.index_type)) return TUFF_ERROR_UNSUPPORTED;
  if (device.asked) return TUFF_OK;
  const uint64_t row = call.inner * size_of(call.dtype);
  const auto* input = at<const uint8_t>(call.input);
  auto* output = at<uint8_t>(call.output);
  for_each(call.outer * call.count, call.inner, [&](uint64_t i) {
    const uint64_t index = index_at(call, i % call.count);
    if (index < call.size) {
      std::memcpy(output + i * row, input + (i / call.count * call.size + index) * row, row);
    } else {
      std::memset(output + i * row, 0, row);
    }
  });
  return TUFF_OK;
}

}  // namespace tuff_cpu
