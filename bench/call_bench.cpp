// What one eager call costs when there is next to nothing to compute: many small operations, then one wait.
// "chained" reads what the call before wrote; "independent" has values of its own; "alone" waits for each.
#include <fmt/format.h>

#include <memory>

#include "bench/harness.hpp"

namespace bench {
namespace {

void relu_in_place(const tuff::Context& context, const tuff::Buffer& x, uint64_t n) {
  context.unary(DType::f32, tuff::Unary::relu, x, x, n);
}

}  // namespace

void add_calls() {
  constexpr uint64_t kCalls = 1000;
  for (const auto& row : read_table("calls")) {
    const uint64_t n = to_number(row.at(0));
    const auto operands = [n](const tuff::Context& context, uint64_t count) {
      auto buffers = std::vector<std::shared_ptr<tuff::Buffer>>();
      for (uint64_t i = 0; i < count; ++i) buffers.push_back(random_buffer(context, n));
      return buffers;
    };
    add(
        fmt::format("tuff/call chained/relu {}", n), {}, 4 * n,
        [=](const tuff::Context& context) {
          return [=, &context, x = operands(context, 1)] {
            for (uint64_t i = 0; i < kCalls; ++i) relu_in_place(context, *x[0], n);
          };
        },
        kCalls);
    add(
        fmt::format("tuff/call independent/relu {}", n), {}, 4 * n * kCalls,
        [=](const tuff::Context& context) {
          return [=, &context, x = operands(context, kCalls)] {
            for (const auto& each : x) relu_in_place(context, *each, n);
          };
        },
        kCalls);
    add(fmt::format("tuff/call alone/relu {}", n), {}, 4 * n, [=](const tuff::Context& context) {
      return [=, &context, x = operands(context, 1)] {
        relu_in_place(context, *x[0], n);
        context.synchronize();
      };
    });
  }
}

}  // namespace bench
