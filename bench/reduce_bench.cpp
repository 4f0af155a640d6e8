// Reductions and softmax: both walk one axis.
#include <fmt/format.h>

#include <map>
#include <memory>

#include "bench/harness.hpp"

namespace bench {
namespace {

const std::map<std::string, tuff::Reduce> kReduce = {{"sum", tuff::Reduce::sum},
                                                     {"max", tuff::Reduce::max},
                                                     {"min", tuff::Reduce::min},
                                                     {"mean", tuff::Reduce::mean},
                                                     {"prod", tuff::Reduce::prod}};

}  // namespace

void add_reduce() {
  for (const auto& row : read_table("reduce")) {
    const std::string name = row.at(0);
    const auto axis = static_cast<uint32_t>(to_number(row.at(1)));
    std::vector<uint64_t> shape;
    for (size_t i = 2; i < row.size(); ++i) shape.push_back(to_number(row[i]));
    uint64_t count = 1;
    for (const uint64_t size : shape) count *= size;
    const bool softmax = name == "softmax";
    const uint64_t results = softmax ? count : count / shape.at(axis);
    const uint64_t bytes = 4 * (count + results);
    add(fmt::format("tuff/{}/{}/axis {}", name, fmt::join(shape, "x"), axis), {0, static_cast<double>(bytes)}, bytes,
        [=](const tuff::Context& context) {
          auto input = random_buffer(context, count);
          auto output = empty_buffer(context, results);
          return [=, &context] {
            if (softmax) {
              context.softmax(DType::f32, *input, *output, shape, axis);
            } else {
              context.reduce(DType::f32, kReduce.at(name), *input, *output, shape, axis);
            }
          };
        });
  }
}

}  // namespace bench
