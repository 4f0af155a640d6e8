// Reductions of floats: sums in double precision. Long ones are cut into parts of a fixed size, whose sums are added in
// order, so the result does not depend on the number of threads.
#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/device.hpp"

namespace tuff_cpu {
namespace {

// What is done with each element, how values are combined, and what is done with the result.
enum class Prepare { plain, magnitude, square };
enum class Combine { add, largest, smallest };
enum class Finish { none, mean, root };

struct Plan {
  Prepare prepare;
  Combine combine;
  Finish finish;
};

bool plan_for(int32_t op, Plan& plan) {
  switch (op) {
    case TUFF_REDUCE_SUM: plan = {Prepare::plain, Combine::add, Finish::none}; return true;
    case TUFF_REDUCE_MEAN: plan = {Prepare::plain, Combine::add, Finish::mean}; return true;
    case TUFF_REDUCE_SUM_SQUARES: plan = {Prepare::square, Combine::add, Finish::none}; return true;
    case TUFF_REDUCE_L1: plan = {Prepare::magnitude, Combine::add, Finish::none}; return true;
    case TUFF_REDUCE_L2: plan = {Prepare::square, Combine::add, Finish::root}; return true;
    case TUFF_REDUCE_MAX: plan = {Prepare::plain, Combine::largest, Finish::none}; return true;
    case TUFF_REDUCE_MIN: plan = {Prepare::plain, Combine::smallest, Finish::none}; return true;
    default: return false;
  }
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr uint64_t kPart = 1 << 16;  // elements along the axis
constexpr uint64_t kColumns = 256;   // of one part, with elements apart
constexpr uint64_t kBlock = 1024;    // elements that are converted at a time

double identity(Combine combine) {
  return combine == Combine::add ? 0 : combine == Combine::largest ? -kInfinity : kInfinity;
}

// NaN, or the better one.
template <Combine combine>
double combined(double a, double b) {
  if constexpr (combine == Combine::add) return a + b;
  if (a != a) return a;
  if (b != b) return b;
  return (combine == Combine::largest ? a > b : a < b) ? a : b;
}

// For neighbouring elements.
double sum_of(Prepare prepare, const float* x, uint64_t n) {
  double sum = 0;
  if (prepare == Prepare::square) {
#pragma omp simd reduction(+ : sum)
    for (uint64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  } else if (prepare == Prepare::magnitude) {
#pragma omp simd reduction(+ : sum)
    for (uint64_t i = 0; i < n; ++i) sum += static_cast<double>(std::fabs(x[i]));
  } else {
#pragma omp simd reduction(+ : sum)
    for (uint64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]);
  }
  return sum;
}

double largest_of(const float* x, uint64_t n) {
  auto best = static_cast<float>(-kInfinity);
  uint32_t nans = 0;
#pragma omp simd reduction(max : best) reduction(+ : nans)
  for (uint64_t i = 0; i < n; ++i) {
    best = x[i] > best ? x[i] : best;
    nans += x[i] != x[i] ? 1 : 0;
  }
  return nans != 0 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(best);
}

double smallest_of(const float* x, uint64_t n) {
  auto best = static_cast<float>(kInfinity);
  uint32_t nans = 0;
#pragma omp simd reduction(min : best) reduction(+ : nans)
  for (uint64_t i = 0; i < n; ++i) {
    best = x[i] < best ? x[i] : best;
    nans += x[i] != x[i] ? 1 : 0;
  }
  return nans != 0 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(best);
}

template <Combine combine>
double reduced(Prepare prepare, const float* x, uint64_t n) {
  if constexpr (combine == Combine::add) return sum_of(prepare, x, n);
  return combine == Combine::largest ? largest_of(x, n) : smallest_of(x, n);
}

// For a part of a row, in any type.
template <Combine combine, typename T>
double part_of_row(Prepare prepare, const T* x, uint64_t n) {
  if constexpr (std::is_same_v<T, float>) return reduced<combine>(prepare, x, n);
  float block[kBlock];
  double value = identity(combine);
  for (uint64_t i = 0; i < n; i += kBlock) {
    const uint64_t count = std::min(kBlock, n - i);
    widen(x + i, block, count);
    value = combined<combine>(value, reduced<combine>(prepare, block, count));
  }
  return value;
}

// values[j] = of rows 0 ... rows - 1 of column j; rows are `stride` elements apart.
template <Combine combine, typename T>
void part_of_columns(Prepare prepare, const T* x, uint64_t rows, uint64_t stride, uint64_t columns, double* values) {
  std::fill_n(values, columns, identity(combine));
  float row[kColumns];
  for (uint64_t r = 0; r < rows; ++r) {
    widen(x + r * stride, row, columns);
    if (prepare == Prepare::square) {
      for (uint64_t j = 0; j < columns; ++j) values[j] += static_cast<double>(row[j]) * static_cast<double>(row[j]);
    } else if (prepare == Prepare::magnitude) {
      for (uint64_t j = 0; j < columns; ++j) values[j] += static_cast<double>(std::fabs(row[j]));
    } else {
      for (uint64_t j = 0; j < columns; ++j) values[j] = combined<combine>(values[j], static_cast<double>(row[j]));
    }
  }
}

template <typename Y>
void store(const Plan& plan, const AxisView& view, double value, Y& result) {
  if (plan.finish == Finish::mean) value /= static_cast<double>(view.axis);
  if (plan.finish == Finish::root) value = std::sqrt(value);
  round_to(static_cast<float>(value), result);
}

template <Combine combine, typename T, typename Y>
void reduce_as(const Plan& plan, const AxisView& view, const T* x, Y* y) {
  const uint64_t parts = std::max<uint64_t>((view.axis + kPart - 1) / kPart, 1);
  const uint64_t strips = (view.inner + kColumns - 1) / kColumns;
  // The values of each part of each result.
  const uint64_t results = view.outer * view.inner;
  std::vector<double> values(parts > 1 ? parts * results : 0);
  for_each(view.outer * parts * strips, std::min(view.axis, kPart) * std::min(view.inner, kColumns), [&](uint64_t i) {
    const uint64_t strip = i % strips, part = i / strips % parts, outer = i / strips / parts;
    const uint64_t first = part * kPart, rows = std::min(kPart, view.axis - std::min(view.axis, first));
    const uint64_t column = strip * kColumns, columns = std::min(kColumns, view.inner - column);
    const T* from = x + (outer * view.axis + first) * view.inner + column;
    double buffer[kColumns];
    if (view.inner == 1) {
      buffer[0] = part_of_row<combine>(plan.prepare, from, rows);
    } else {
      part_of_columns<combine>(plan.prepare, from, rows, view.inner, columns, buffer);
    }
    for (uint64_t j = 0; j < columns; ++j) {
      const uint64_t result = outer * view.inner + column + j;
      if (parts > 1) {
        values[part * results + result] = buffer[j];
      } else {
        store(plan, view, buffer[j], y[result]);
      }
    }
  });
  if (parts == 1) return;
  for_each(results, parts, [&](uint64_t i) {
    double value = values[i];
    for (uint64_t part = 1; part < parts; ++part) value = combined<combine>(value, values[part * results + i]);
    store(plan, view, value, y[i]);
  });
}

}  // namespace

tuff_status reduce(Device& device, const tuff_reduce_desc& call) {
  Plan plan{};
  if (!plan_for(call.op, plan) || !is_float(call.dtype) || !is_float(call.output_type)) return reduce_any(device, call);
  const AxisView view(call.shape, call.rank, call.axis, call.axis_count);
  if (view.axis == 0) return TUFF_ERROR_UNSUPPORTED;
  if (device.asked) return TUFF_OK;
  with_float(call.dtype, [&]<typename T>(T) {
    with_float(call.output_type, [&]<typename Y>(Y) {
      const T* x = at<const T>(call.input);
      Y* y = at<Y>(call.output);
      switch (plan.combine) {
        case Combine::add: return reduce_as<Combine::add>(plan, view, x, y);
        case Combine::largest: return reduce_as<Combine::largest>(plan, view, x, y);
        case Combine::smallest: return reduce_as<Combine::smallest>(plan, view, x, y);
      }
    });
  });
  return TUFF_OK;
}

}  // namespace tuff_cpu
