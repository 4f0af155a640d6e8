// What one eager call costs when there is next to nothing to compute: many small operations, then one wait.
// "chained" reads what the call before wrote; "independent" has values of its own; "alone" waits for each. "replayed"
// is the same calls captured as a graph, which one call launches. Beside them what the same driver takes when nothing
// stands between it and the program.
#include <fmt/format.h>

#include <memory>

#include "bench/harness.hpp"
#include "bench/plain_vulkan.hpp"

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
    // Chained: one buffer for all calls; independent: one for each.
    for (const bool chained : {true, false}) {
      const char* order = chained ? "chained" : "independent";
      const uint64_t buffers = chained ? 1 : kCalls;
      const auto calls = [n, buffers](const tuff::Context& context, const auto& x) {
        for (uint64_t i = 0; i < kCalls; ++i) relu_in_place(context, *x[i % buffers], n);
      };
      add(
          fmt::format("tuff/call {}/relu {}", order, n), {}, 4 * n * buffers,
          [=](const tuff::Context& context) {
            return [=, &context, x = operands(context, buffers)] { calls(context, x); };
          },
          kCalls);
      add(
          fmt::format("tuff/call replayed {}/relu {}", order, n), {}, 4 * n * buffers,
          [=](const tuff::Context& context) {
            const auto x = operands(context, buffers);  // the graph keeps their memory
            const auto graph = std::make_shared<tuff::Graph>(context.capture([&] { calls(context, x); }));
            return [=, &context] { context.launch(*graph); };
          },
          kCalls);
      if (device_properties().type == TUFF_DEVICE_HOST) continue;
      const auto peer = [n, buffers] {
        auto plain = std::make_shared<PlainVulkan>(device_properties());
        plain->allocate(n, buffers);
        return plain;
      };
      add_peer(fmt::format("plain vulkan/call {}/relu {}", order, n), {}, kCalls, [=] {
        const auto plain = peer();
        return Begun{[plain] { plain->eager(kCalls); }, [plain] { plain->finish(); }};
      });
      add_peer(fmt::format("plain vulkan/call replayed {}/relu {}", order, n), {}, kCalls, [=] {
        const auto plain = peer();
        plain->record(kCalls);
        return Begun{[plain] { plain->replay(); }, [plain] { plain->finish(); }};
      });
    }
    add(fmt::format("tuff/call alone/relu {}", n), {}, 4 * n, [=](const tuff::Context& context) {
      return [=, &context, x = operands(context, 1)] {
        relu_in_place(context, *x[0], n);
        context.synchronize();
      };
    });
  }
}

}  // namespace bench
