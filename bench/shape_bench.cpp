// What moves elements, and changes their type.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "bench/harness.hpp"

namespace bench {
namespace {

using Words = std::vector<std::string>;

// A row's numbers from word `first` to the word before `end`.
template <typename T>
std::vector<T> numbers(Words::const_iterator first, Words::const_iterator end) {
  std::vector<T> result;
  for (; first != end; ++first) result.push_back(static_cast<T>(to_number(*first)));
  return result;
}

uint64_t product(const std::vector<uint64_t>& sizes) {
  uint64_t count = 1;
  for (const uint64_t size : sizes) count *= size;
  return count;
}

void add_permute(const Words& row) {
  const bool typed = is_dtype(row.back());
  const DType dtype = to_dtype(row, typed ? row.size() - 1 : row.size());
  const auto by = std::find(row.begin(), row.end(), "by");
  const auto sizes = numbers<uint64_t>(row.begin() + 1, by);
  const auto order = numbers<uint32_t>(by + 1, row.end() - (typed ? 1 : 0));
  const uint64_t count = product(sizes), bytes = 2 * element_bytes(dtype) * count;
  tuff_permute_desc desc{};
  desc.dtype = static_cast<int32_t>(dtype);
  desc.rank = static_cast<uint32_t>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), desc.shape);
  std::copy(order.begin(), order.end(), desc.order);
  add(fmt::format("tuff/permute/{}/{}{}", fmt::join(sizes, "x"), fmt::join(order, ""), dtype_suffix(dtype)),
      {0, static_cast<double>(bytes)}, bytes, [=](const tuff::Context& context) {
        auto input = random_buffer(context, count, dtype);
        auto output = empty_buffer(context, count);
        tuff_permute_desc call = desc;
        call.input = input->handle();
        call.output = output->handle();
        return [=, &context] {
          static_cast<void>(input), static_cast<void>(output);
          context.permute(call);
        };
      });
}

void add_cast(const Words& row) {
  const uint64_t n = to_number(row.at(1));
  const DType from = to_dtype(row, 2), to = to_dtype(row, 3);
  const uint64_t bytes = (element_bytes(from) + element_bytes(to)) * n;
  add(fmt::format("tuff/cast/{}/{} {}", n, row.at(2), row.at(3)), {0, static_cast<double>(bytes)}, bytes,
      [=](const tuff::Context& context) {
        return [=, &context, x = random_buffer(context, n, from), y = empty_buffer(context, n)] {
          context.cast(from, to, *x, *y, n);
        };
      });
}

}  // namespace

void add_shape() {
  for (const auto& row : read_table("shape")) row.at(0) == "cast" ? add_cast(row) : add_permute(row);
}

}  // namespace bench
