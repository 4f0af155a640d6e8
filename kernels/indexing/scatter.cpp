// Scatter: argument check and reference implementation.
#include "kernels/indexing/scatter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/common/check.hpp"
#include "kernels/common/describe.hpp"
#include "kernels/common/elements.hpp"

namespace tuff {
namespace {

const char* name_of_op(int32_t op) {
  constexpr const char* kNames[] = {"set", "add", "mul", "max", "min"};
  return kNames[op - TUFF_SCATTER_SET];
}

uint64_t elements_of(const IndexView& view) {
  return checked_mul(checked_mul(view.outer, view.places, "shape"), view.inner, "shape");
}
uint64_t updates_of(const IndexView& view) {
  return checked_mul(checked_mul(view.outer, view.count, "count"), view.inner, "count");
}

void check_scatter(const ScatterArgs& args) {
  const uint64_t size = dtype_size(args.dtype);
  require(args.op >= TUFF_SCATTER_SET && args.op <= TUFF_SCATTER_MIN, "op is {}, needs {} to {}", args.op,
          TUFF_SCATTER_SET, TUFF_SCATTER_MIN);
  if (args.op != TUFF_SCATTER_SET) check_type(args.dtype, scatter::kCombinedTypes, name_of_op(args.op));
  const IndexView view = check_indices(args.index);
  const uint64_t elements = elements_of(view), updates = updates_of(view);
  const uint64_t numbers = checked_mul(view.count, args.index.numbers(), "count");
  const uint64_t bytes = checked_mul(elements, size, "shape");
  if (elements == 0) return;
  const auto detail = [&] { return fmt::format("{} updates of {} elements", updates, elements); };
  if (args.input != nullptr) check_operand(args.input, "input", elements, args.dtype, detail);
  check_operand(args.output, "output", elements, args.dtype, detail);
  if (args.input != nullptr) check_overlap(args.output, "output", bytes, args.input, "input", bytes, true);
  if (updates == 0) return;
  check_operand(args.index.indices, "indices", numbers, args.index.index_type, detail);
  check_operand(args.updates, "updates", updates, args.dtype, detail);
  check_overlap(args.output, "output", bytes, args.updates, "updates", updates * size, false);
  check_overlap(args.output, "output", bytes, args.index.indices, "indices",
                numbers * dtype_size(args.index.index_type), false);
}

template <typename Value>
Value combined(int32_t op, Value a, Value b) {
  switch (op) {
    case TUFF_SCATTER_ADD: return a + b;
    case TUFF_SCATTER_MUL: return a * b;
    default: break;
  }
  if constexpr (std::is_floating_point_v<Value>) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<Value>::quiet_NaN();
    if (a == b) return std::signbit(a) == (op == TUFF_SCATTER_MAX) ? b : a;  // -0 is below 0
  }
  return op == TUFF_SCATTER_MAX ? std::max(a, b) : std::min(a, b);
}

// One update after another: floats in double precision, rounded at the end; integers modulo 2^64, of which every type
// keeps its own bits, unless they are compared.
template <typename T>
void combine(const ScatterArgs& args, const IndexView& view) {
  constexpr bool integral = std::is_integral_v<T>;
  using Value = std::conditional_t<integral, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>, double>;
  T* output = args.output->host<T>();
  const T* updates = args.updates->host<T>();
  const uint64_t elements = elements_of(view);
  std::vector<Value> values(elements);
  std::vector<bool> named(elements);
  for (uint64_t i = 0; i < elements; ++i) values[i] = static_cast<Value>(output[i]);
  for (uint64_t o = 0; o < view.outer; ++o) {
    for (uint64_t j = 0; j < view.count; ++j) {
      const uint64_t place = place_named(args.index, j);
      if (place >= view.places) continue;
      for (uint64_t i = 0; i < view.inner; ++i) {
        const uint64_t to = (o * view.places + place) * view.inner + i;
        const auto update = static_cast<Value>(updates[(o * view.count + j) * view.inner + i]);
        if constexpr (integral) {
          if (args.op <= TUFF_SCATTER_MUL) {
            const auto sum = combined(args.op, static_cast<uint64_t>(values[to]), static_cast<uint64_t>(update));
            values[to] = static_cast<Value>(sum);
          } else {
            values[to] = combined(args.op, values[to], update);
          }
        } else {
          values[to] = combined(args.op, values[to], update);
        }
        named[to] = true;
      }
    }
  }
  for (uint64_t i = 0; i < elements; ++i) {
    if (named[i]) output[i] = static_cast<T>(values[i]);
  }
}

void host_scatter(const ScatterArgs& args) {
  const IndexView view = view_indices(args.index);
  const uint64_t size = dtype_size(args.dtype), elements = elements_of(view);
  if (elements == 0) return;
  auto* output = args.output->host<std::byte>();
  if (args.input != nullptr && args.input->host<std::byte>() != output) {
    std::memcpy(output, args.input->host<std::byte>(), elements * size);
  }
  if (updates_of(view) == 0) return;
  if (args.op != TUFF_SCATTER_SET) {
    return with_any_type(args.dtype, [&]<typename T>(T) { combine<T>(args, view); });
  }
  const uint64_t row = view.inner * size;
  for (uint64_t o = 0; o < view.outer; ++o) {
    for (uint64_t j = 0; j < view.count; ++j) {
      const uint64_t place = place_named(args.index, j);
      if (place >= view.places) continue;
      std::memcpy(output + (o * view.places + place) * row,
                  args.updates->host<std::byte>() + (o * view.count + j) * row, row);
    }
  }
}

CallText describe(const ScatterArgs& args) {
  const IndexArgs& index = args.index;
  const std::string by =
      index.index_shape != nullptr ? describe_sizes(index.index_shape, index.rank) : fmt::format("{}", index.count);
  return {fmt::format("{} {} {} axis {} by {}", name_of_op(args.op), dtype_name(args.dtype),
                      describe_sizes(index.shape, index.rank), index.axis, by),
          args.dtype};
}

}  // namespace

namespace operations {
const OperationOf<ScatterArgs> scatter =
    define_operation<ScatterArgs, check_scatter, host_scatter, record_scatter, describe>("scatter", kAllTypes, true);
}  // namespace operations

}  // namespace tuff
