// Reductions, scans and softmax: all of them walk one axis.
#include <fmt/format.h>

#include <map>
#include <memory>

#include "bench/harness.hpp"

namespace bench {
namespace {

const std::map<std::string, tuff::Reduce> kReduce = {
#define REDUCE(number, NAME, name, ...) {#name, tuff::Reduce::name},
#include "kernels/reduce/reduce.def"
};

}  // namespace

void add_reduce() {
  for (const auto& row : read_table("reduce")) {
    const std::string name = row.at(0);
    const auto axis = static_cast<uint32_t>(to_number(row.at(1)));
    std::vector<uint64_t> shape;
    const bool typed = is_dtype(row.back());
    const DType dtype = to_dtype(row, typed ? row.size() - 1 : row.size());
    for (size_t i = 2; i + (typed ? 1 : 0) < row.size(); ++i) shape.push_back(to_number(row[i]));
    uint64_t count = 1;
    for (const uint64_t size : shape) count *= size;
    const bool softmax = name == "softmax";
    const bool scan = name == "cumsum";
    const uint64_t results = softmax || scan ? count : count / shape.at(axis);
    const uint64_t bytes = element_bytes(dtype) * (count + results);
    add(fmt::format("tuff/{}/{}/axis {}{}", name, fmt::join(shape, "x"), axis, dtype_suffix(dtype)),
        {0, static_cast<double>(bytes)}, bytes, [=](const tuff::Context& context) {
          auto input = random_buffer(context, count, dtype);
          auto output = empty_buffer(context, results);
          return [=, &context] {
            if (softmax) {
              context.softmax(dtype, *input, *output, shape, axis);
            } else if (scan) {
              context.cumsum(dtype, *input, *output, shape, axis);
            } else {
              context.reduce(dtype, kReduce.at(name), *input, *output, shape, axis);
            }
          };
        });
  }
}

}  // namespace bench
