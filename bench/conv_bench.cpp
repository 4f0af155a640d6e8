#include <fmt/format.h>

#include <memory>

#include "bench/harness.hpp"

namespace bench {

void add_conv() {
  for (const auto& row : read_table("conv2d")) {
    const uint64_t n = to_number(row.at(0)), c = to_number(row.at(1)), h = to_number(row.at(2)),
                   w = to_number(row.at(3));
    const uint64_t k = to_number(row.at(4)), r = to_number(row.at(5)), s = to_number(row.at(6));
    const uint64_t stride = to_number(row.at(7)), padding = to_number(row.at(8));
    const uint64_t p = (h + 2 * padding - r) / stride + 1, q = (w + 2 * padding - s) / stride + 1;
    const auto flops = 2.0 * static_cast<double>(n * k * p * q) * static_cast<double>(c * r * s);
    const uint64_t bytes = 4 * (n * c * h * w + k * c * r * s + n * k * p * q);
    add(fmt::format("tuff/conv2d/{}x{}x{}x{}/{}x{}x{}/stride {}", n, c, h, w, k, r, s, stride), {flops, 0}, bytes,
        [=](const tuff::Context& context) {
          auto input = random_buffer(context, n * c * h * w);
          auto filter = random_buffer(context, k * c * r * s);
          auto output = empty_buffer(context, n * k * p * q);
          return [=, &context] {
            context.conv2d(DType::f32, *input, {n, c, h, w}, *filter, {k, c, r, s}, *output, {n, k, p, q},
                           {stride, stride}, {padding, padding});
          };
        });
  }
}

}  // namespace bench
