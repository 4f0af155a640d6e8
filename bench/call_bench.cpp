// The cost of one eager call with next to nothing to compute: many small operations, then one wait. "chained" reads
// what the previous call wrote, "independent" uses separate buffers, "alone" waits for each call. "replayed" captures
// the same calls as a graph, which one call launches. "relu" is Tuff's own operation, "kernel" the same as a custom
// kernel. The peer is the same driver called directly by a minimal Vulkan program.
#include <fmt/format.h>

#include <functional>
#include <memory>

#include "bench/harness.hpp"
#include "bench/plain_vulkan.hpp"

namespace bench {
namespace {

constexpr uint64_t kCalls = 1000;

// An in-place operation on n values.
using Small = std::function<void(const tuff::Buffer&)>;
using MakeSmall = Small (*)(const tuff::Context&, uint64_t n);

Small make_relu(const tuff::Context& context, uint64_t n) {
  return [&context, n](const tuff::Buffer& x) { context.unary(DType::f32, tuff::Unary::relu, x, x, n); };
}

Small make_kernel(const tuff::Context& context, uint64_t n) {
  constexpr uint32_t kGroup = 256;
  const auto kernel = std::make_shared<tuff::Kernel>(context.kernel(R"(#version 450
layout(local_size_x = 256) in;
layout(binding = 0, std430) buffer Values { vec4 x[]; };
layout(push_constant) uniform Push { uint blocks; };
void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < blocks) x[i] = max(x[i], vec4(0));
}
)"));
  const auto blocks = static_cast<uint32_t>(n / 4);
  return [kernel, blocks](const tuff::Buffer& x) {
    kernel->launch({(blocks + kGroup - 1) / kGroup, 1, 1}, {x}, blocks);
  };
}

// The host backend has no custom kernels.
bool on_host() { return device_properties().type == TUFF_DEVICE_HOST; }

// Chained calls share one buffer; independent calls have one each.
uint64_t buffers_of(bool chained) { return chained ? 1 : kCalls; }

// Enqueues all calls without waiting.
Repeat make_calls(const tuff::Context& context, MakeSmall make, uint64_t n, bool chained) {
  std::vector<std::shared_ptr<tuff::Buffer>> x;
  for (uint64_t i = 0; i < buffers_of(chained); ++i) x.push_back(random_buffer(context, n));
  return [x = std::move(x), call = make(context, n)] {
    for (uint64_t i = 0; i < kCalls; ++i) call(*x[i % x.size()]);
  };
}

void add_small(const char* name, MakeSmall make, const char* order, bool chained, uint64_t n) {
  const uint64_t memory = 4 * n * buffers_of(chained);
  add(
      fmt::format("tuff/call {}/{} {}", order, name, n), {}, memory,
      [=](const tuff::Context& context) { return make_calls(context, make, n, chained); }, kCalls);
  add(
      fmt::format("tuff/call replayed {}/{} {}", order, name, n), {}, memory,
      [=](const tuff::Context& context) {
        const auto graph = std::make_shared<tuff::Graph>(context.capture(make_calls(context, make, n, chained)));
        return [graph, &context] { context.launch(*graph); };  // the graph keeps the memory alive
      },
      kCalls);
}

void add_plain(const char* order, bool chained, uint64_t n) {
  const auto open = [=] {
    auto plain = std::make_shared<PlainVulkan>(device_properties());
    plain->allocate(n, buffers_of(chained));
    return plain;
  };
  add_peer(fmt::format("plain vulkan/call {}/relu {}", order, n), {}, kCalls, [=] {
    const auto plain = open();
    return Begun{[plain] { plain->eager(kCalls); }, [plain] { plain->finish(); }};
  });
  add_peer(fmt::format("plain vulkan/call replayed {}/relu {}", order, n), {}, kCalls, [=] {
    const auto plain = open();
    plain->record(kCalls);
    return Begun{[plain] { plain->replay(); }, [plain] { plain->finish(); }};
  });
}

}  // namespace

void add_calls() {
  for (const auto& row : read_table("calls")) {
    const uint64_t n = to_number(row.at(0));
    for (const bool chained : {true, false}) {
      const char* order = chained ? "chained" : "independent";
      add_small("relu", make_relu, order, chained, n);
      if (on_host()) continue;
      add_small("kernel", make_kernel, order, chained, n);
      add_plain(order, chained, n);
    }
    add(fmt::format("tuff/call alone/relu {}", n), {}, 4 * n, [=](const tuff::Context& context) {
      const auto x = random_buffer(context, n);
      return [&context, x, call = make_relu(context, n)] {
        call(*x);
        context.synchronize();
      };
    });
  }
}

}  // namespace bench
