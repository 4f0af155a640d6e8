// Select: argument check and reference implementation.
#include "kernels/indexing/select.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

#include "kernels/common/check.hpp"
#include "kernels/common/describe.hpp"
#include "kernels/common/elements.hpp"

namespace tuff {
namespace {

// An operand and the bytes of it that a call reads or writes.
struct Used {
  const Buffer* buffer;
  const char* name;
  uint64_t bytes;
};

void check_types(const SelectArgs& args) {
  check_known_type(args.dtype, "dtype");
  require(args.op == TUFF_SELECT_NONZERO || args.op == TUFF_SELECT_UNIQUE, "op is {}, needs {} or {}", args.op,
          TUFF_SELECT_NONZERO, TUFF_SELECT_UNIQUE);
  check_known_type(args.mask_type, "mask_type");
  check_known_type(args.index_type, "index_type");
  constexpr ElementTypes kIndexTypes = {TUFF_I32, TUFF_U32, TUFF_I64, TUFF_U64};
  if (!kIndexTypes.has(args.index_type)) {
    fail(TUFF_ERROR_UNSUPPORTED, "index_type is {}, needs {}", dtype_name(args.index_type), names_of(kIndexTypes));
  }
  require(args.indices == nullptr || args.index_type != TUFF_I32 || args.n <= uint64_t{1} << 31,
          "index_type is i32, and n={} has places beyond 2^31 - 1", args.n);
  require(args.indices == nullptr || args.index_type != TUFF_U32 || args.n <= uint64_t{1} << 32,
          "index_type is u32, and n={} has places beyond 2^32 - 1", args.n);
}

void check_select(const SelectArgs& args) {
  check_types(args);
  require(!args.unique() || args.mask == nullptr, "mask is given, and TUFF_SELECT_UNIQUE has none");
  require(args.output != nullptr || args.indices != nullptr || args.count != nullptr || args.room() == 0,
          "output, indices and count are all TUFF_NULL_HANDLE");
  const uint64_t size = dtype_size(args.dtype), index_size = dtype_size(args.index_type);
  checked_mul(args.n, std::max(size, args.unique() ? size : dtype_size(args.mask_type)), "n");
  checked_mul(args.capacity, std::max(size, index_size), "capacity");
  const auto detail = [&] { return fmt::format("n={} capacity={}", args.n, args.capacity); };
  const bool reads = args.unique() || (args.output != nullptr && args.room() != 0);
  if (reads) check_operand(args.input, "input", args.n, args.dtype, detail);
  if (!args.unique()) check_operand(args.mask, "mask", args.n, args.mask_type, detail);
  if (args.output != nullptr) check_operand(args.output, "output", args.capacity, args.dtype, detail);
  if (args.indices != nullptr) check_operand(args.indices, "indices", args.capacity, args.index_type, detail);
  if (args.count != nullptr) check_operand(args.count, "count", 1, TUFF_U64, detail);
  const Used inputs[] = {{reads ? args.input : nullptr, "input", args.n * size},
                         {args.mask, "mask", args.unique() ? 0 : args.n * dtype_size(args.mask_type)}};
  const Used outputs[] = {{args.output, "output", args.capacity * size},
                          {args.indices, "indices", args.capacity * index_size},
                          {args.count, "count", sizeof(uint64_t)}};
  const auto apart = [](const Used& a, const Used& b) {
    check_overlap(a.buffer, a.name, a.bytes, b.buffer, b.name, b.bytes, false);
  };
  for (size_t i = 0; i < std::size(outputs); ++i) {
    for (const Used& input : inputs) apart(outputs[i], input);
    for (size_t j = 0; j < i; ++j) apart(outputs[i], outputs[j]);
  }
}

template <typename T>
bool is_nan(T x) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return std::isnan(double{x});
  }
}

template <typename T>
bool same(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a == b;
  } else {
    return double{a} == double{b};
  }
}

// An element is its parts: two of a complex number, otherwise one.
template <typename T>
bool is_selected(const SelectArgs& args, const T* elements, size_t parts, uint64_t i) {
  const auto any = [&](const T* element, const auto& holds) {
    for (size_t p = 0; p < parts; ++p) {
      if (holds(element[p])) return true;
    }
    return false;
  };
  const T* element = elements + i * parts;
  if (!args.unique()) return any(element, [](T x) { return !same(x, T{}); });
  if (i == 0) return true;
  const T* before = element - parts;
  const auto nan = [](T x) { return is_nan(x); };
  if (any(element, nan) && any(before, nan)) return !args.equal_nan;
  for (size_t p = 0; p < parts; ++p) {
    if (!same(element[p], before[p])) return true;
  }
  return false;
}

void host_select(const SelectArgs& args) {
  const uint64_t size = dtype_size(args.dtype);
  uint64_t count = 0;
  const auto take = [&](uint64_t i) {
    const uint64_t place = count++;
    if (place >= args.capacity) return;
    if (args.output != nullptr) {
      std::memcpy(args.output->host<std::byte>() + place * size, args.input->host<std::byte>() + i * size, size);
    }
    if (args.indices == nullptr) return;
    if (dtype_size(args.index_type) == 8) {
      args.indices->host<uint64_t>()[place] = i;
    } else {
      args.indices->host<uint32_t>()[place] = static_cast<uint32_t>(i);
    }
  };
  const int32_t type = args.judged_type(), part = part_type(type);
  const size_t parts = dtype_size(type) / dtype_size(part);
  if (args.n != 0) {
    with_any_type(part, [&]<typename T>(T) {
      const T* elements = args.judged()->host<T>();
      for (uint64_t i = 0; i < args.n; ++i) {
        if (is_selected(args, elements, parts, i)) take(i);
      }
    });
  }
  if (args.count != nullptr) *args.count->host<uint64_t>() = count;
}

CallText describe(const SelectArgs& args) {
  return {fmt::format("{} {} of {}{}{}", args.unique() ? "unique" : "nonzero", dtype_name(args.judged_type()), args.n,
                      args.output != nullptr ? fmt::format(" to {}", dtype_name(args.dtype)) : "",
                      args.indices != nullptr ? " with indices" : ""),
          args.dtype};
}

}  // namespace

namespace operations {
const OperationOf<SelectArgs> select =
    define_operation<SelectArgs, check_select, host_select, record_select, describe>("select", kAllTypes, true);
}  // namespace operations

}  // namespace tuff
