// Permutations, casts, gathers, broadcast operands, pooling, rotary positions and resizing.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "bench/harness.hpp"

namespace bench {
namespace {

using Words = std::vector<std::string>;

// A row's numbers: the words from `first` up to, but not including, `end`.
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

void add_gather(const Words& row) {
  const uint64_t entries = to_number(row.at(1)), size = to_number(row.at(2)), count = to_number(row.at(3));
  const DType dtype = to_dtype(row, 4);
  const uint64_t bytes = 2 * element_bytes(dtype) * size * count + 4 * count;
  add(fmt::format("tuff/gather/{}x{}/{}{}", entries, size, count, dtype_suffix(dtype)), {0, static_cast<double>(bytes)},
      bytes + element_bytes(dtype) * entries * size, [=](const tuff::Context& context) {
        auto indices = empty_buffer(context, count);
        indices->upload(scattered_indices(count, entries));
        return
            [=, &context, x = random_buffer(context, entries * size, dtype), y = empty_buffer(context, size * count)] {
              context.gather(dtype, DType::u32, *x, *indices, *y, {entries, size}, 0, count);
            };
      });
}

void add_pool(const Words& row) {
  const DType dtype = to_dtype(row, 8);
  const auto sizes = numbers<uint64_t>(row.begin() + 1, row.begin() + 8);
  tuff_pool_desc desc{};
  desc.dtype = static_cast<int32_t>(dtype);
  desc.batch = sizes[0];
  desc.channels = sizes[1];
  desc.spatial = 2;
  for (int i = 0; i < 2; ++i) {
    desc.in_shape[i] = sizes[2 + i];
    desc.kernel[i] = sizes[4];
    desc.stride[i] = sizes[5];
    desc.padding[i] = sizes[6];
    desc.out_shape[i] = (sizes[2 + i] + 2 * sizes[6] - sizes[4]) / sizes[5] + 1;
  }
  const uint64_t planes = sizes[0] * sizes[1], inputs = planes * sizes[2] * sizes[3],
                 outputs = planes * desc.out_shape[0] * desc.out_shape[1],
                 bytes = element_bytes(dtype) * (inputs + outputs);
  const bool maximum = row.at(0) == "max_pool";
  add(fmt::format("tuff/{}/{}{}", row.at(0), fmt::join(sizes, "x"), dtype_suffix(dtype)),
      {0, static_cast<double>(bytes)}, bytes, [=](const tuff::Context& context) {
        return [=, &context, x = random_buffer(context, inputs, dtype), y = empty_buffer(context, outputs)] {
          tuff_pool_desc call = desc;
          call.input = x->handle();
          call.output = y->handle();
          maximum ? context.max_pool(call) : context.avg_pool(call);
        };
      });
}

void add_broadcast(const Words& row) {
  const uint64_t rows = to_number(row.at(1)), cols = to_number(row.at(2));
  const DType dtype = to_dtype(row, 3);
  const bool by_row = row.at(0) == "binary_row";
  const uint64_t repeated = by_row ? cols : rows, bytes = element_bytes(dtype) * (2 * rows * cols + repeated);
  add(fmt::format("tuff/{}/{}x{}{}", row.at(0), rows, cols, dtype_suffix(dtype)), {0, static_cast<double>(bytes)},
      bytes, [=](const tuff::Context& context) {
        return [=, &context, a = random_buffer(context, rows * cols, dtype),
                b = random_buffer(context, repeated, dtype), y = empty_buffer(context, rows * cols)] {
          tuff_binary_desc desc{};
          desc.dtype = static_cast<int32_t>(dtype);
          desc.op = TUFF_BINARY_ADD;
          desc.a = a->handle();
          desc.b = b->handle();
          desc.output = y->handle();
          desc.rank = 2;
          desc.a_shape[0] = rows;
          desc.a_shape[1] = cols;
          desc.b_shape[0] = by_row ? 1 : rows;
          desc.b_shape[1] = by_row ? cols : 1;
          context.binary(desc);
        };
      });
}

void add_rope(const Words& row) {
  const DType dtype = to_dtype(row, 5);
  const auto sizes = numbers<uint64_t>(row.begin() + 1, row.begin() + 5);
  const uint64_t count = product(sizes), bytes = 2 * element_bytes(dtype) * count;
  add(fmt::format("tuff/rope/{}{}", fmt::join(sizes, "x"), dtype_suffix(dtype)), {0, static_cast<double>(bytes)}, bytes,
      [=](const tuff::Context& context) {
        return [=, &context, x = random_buffer(context, count, dtype), y = empty_buffer(context, count)] {
          context.rope(dtype, *x, *y, sizes[0], sizes[1], sizes[2], sizes[3]);
        };
      });
}

void add_resize(const Words& row) {
  const DType dtype = to_dtype(row, 8);
  const auto sizes = numbers<uint64_t>(row.begin() + 1, row.begin() + 7);
  tuff_resize_desc desc{};
  desc.dtype = static_cast<int32_t>(dtype);
  desc.mode = row.at(7) == "linear" ? TUFF_RESIZE_LINEAR : TUFF_RESIZE_NEAREST;
  desc.batch = sizes[0];
  desc.channels = sizes[1];
  desc.spatial = 2;
  for (int i = 0; i < 2; ++i) desc.in_shape[i] = sizes[2 + i], desc.out_shape[i] = sizes[4 + i];
  const uint64_t planes = sizes[0] * sizes[1], inputs = planes * sizes[2] * sizes[3],
                 outputs = planes * sizes[4] * sizes[5], bytes = element_bytes(dtype) * (inputs + outputs);
  add(fmt::format("tuff/resize/{}/{}{}", row.at(7), fmt::join(sizes, "x"), dtype_suffix(dtype)),
      {0, static_cast<double>(bytes)}, bytes, [=](const tuff::Context& context) {
        return [=, &context, x = random_buffer(context, inputs, dtype), y = empty_buffer(context, outputs)] {
          tuff_resize_desc call = desc;
          call.input = x->handle();
          call.output = y->handle();
          context.resize(call);
        };
      });
}

const std::map<std::string, void (*)(const Words&)> kFamilies = {
    {"permute", add_permute},         {"cast", add_cast},     {"gather", add_gather},
    {"max_pool", add_pool},           {"avg_pool", add_pool}, {"binary_row", add_broadcast},
    {"binary_column", add_broadcast}, {"rope", add_rope},     {"resize", add_resize}};

}  // namespace

void add_shape() {
  for (const auto& row : read_table("shape")) kFamilies.at(row.at(0))(row);
}

}  // namespace bench
