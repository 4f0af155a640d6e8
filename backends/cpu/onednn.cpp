// oneDNN keeps its machine code in static objects, which it makes when a function first needs them, and which are
// destroyed at process exit: a GEMM in an exit handler or a static destructor would then run freed code. The first use
// here makes all of them, and registers a handler, which therefore runs before they are destroyed. Handlers of the
// program that run after it find oneDNN unavailable, and Tuff computes their calls.
#include <dnnl.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "backends/cpu/device.hpp"

namespace tuff_cpu {
namespace {

std::atomic<bool> ended{false};

// Products of every kind: which operand is transposed, a row or a column, what C is multiplied by, and sizes that are
// computed in place and in packed copies.
void make_static_objects() {
  constexpr dnnl_dim_t kSizes[][3] = {{8, 8, 8}, {1, 64, 64}, {64, 1, 64}, {192, 192, 192}};
  constexpr uint64_t kMax = 192 * 192;
  const Scratch<float> a(kMax), b(kMax), c(kMax);
  for (const auto& scratch : {&a, &b, &c}) std::fill_n(scratch->get(), kMax, 0.0F);
  for (const auto& [m, n, k] : kSizes) {
    for (int kind = 0; kind < 12; ++kind) {
      const char ta = kind % 2 == 0 ? 'N' : 'T', tb = kind / 2 % 2 == 0 ? 'N' : 'T';
      const auto beta = static_cast<float>(kind / 4);
      dnnl_sgemm(ta, tb, m, n, k, 1, a.get(), ta == 'N' ? k : m, b.get(), tb == 'N' ? n : k, beta, c.get(), n);
    }
  }
  // The cache of primitives.
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  using Memory = dnnl::memory;
  const Memory::desc rows({8, 8}, Memory::data_type::f32, Memory::format_tag::ab);
  const Memory::desc columns({8, 8}, Memory::data_type::f32, Memory::format_tag::ba);
  const dnnl::reorder reorder(dnnl::reorder::primitive_desc(engine, rows, engine, columns));
}

}  // namespace

bool onednn_available() {
  static std::once_flag once;
  std::call_once(once, [] {
    make_static_objects();
    if (std::atexit([] { ended = true; }) != 0) ended = true;
  });
  return !ended;
}

}  // namespace tuff_cpu
