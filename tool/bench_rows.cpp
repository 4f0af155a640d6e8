#include "tool/bench_rows.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <memory>

#include "tool/format.hpp"

namespace tool {
namespace {

using Buffers = std::vector<tuff::Buffer>;
using Call = std::function<void(const tuff::Context&, Buffers&)>;
using tuff::DType;

// A row whose buffers hold so many values each, all 0.5, and whose repetition is one call.
Row row(const char* operation, const char* feature, std::string shape, Unit unit, Limit limit, double work,
        std::vector<uint64_t> counts, Call call) {
  auto prepare = [counts = std::move(counts), call = std::move(call)](const tuff::Context& context) {
    auto buffers = std::make_shared<Buffers>();
    for (const uint64_t count : counts) {
      buffers->push_back(context.alloc<float>(count));
      buffers->back().fill<float>(0.5f, count);
    }
    return [call, buffers, &context] { call(context, *buffers); };
  };
  return {operation, feature, std::move(shape), unit, limit, work, std::move(prepare)};
}

Row compute_row(const char* operation, std::string shape, double flops, std::vector<uint64_t> counts, Call call) {
  return row(operation, operation, std::move(shape), Unit::flops, Limit::gemm, flops, std::move(counts),
             std::move(call));
}

Row memory_row(const char* operation, const char* feature, std::string shape, uint64_t bytes,
               std::vector<uint64_t> counts, Call call) {
  return row(operation, feature, std::move(shape), Unit::bytes, Limit::copy, static_cast<double>(bytes),
             std::move(counts), std::move(call));
}

Row batched_gemm_row(uint64_t batch, uint64_t size) {
  const uint64_t count = size * size;
  return compute_row("batched_gemm", fmt::format("{} of {} x {} x {}", batch, size, size, size),
                     2.0 * static_cast<double>(batch * count * size), {batch * count, batch * count, batch * count},
                     [=](const tuff::Context& context, Buffers& b) {
                       context.batched_gemm(DType::f32, tuff::Transpose::no, tuff::Transpose::no, size, size, size, 1,
                                            b[0], size, count, b[1], size, count, 0, b[2], size, count, batch);
                     });
}

// 3 x 3, stride 1, padding 1, as many filters as channels.
Row conv2d_row(uint64_t batch, uint64_t channels, uint64_t extent) {
  const uint64_t pixels = batch * extent * extent;
  const uint64_t taps = channels * 9;
  return compute_row("conv2d", fmt::format("{} x {} x {} x {}, 3 x 3", batch, channels, extent, extent),
                     2.0 * static_cast<double>(pixels * channels * taps),
                     {pixels * channels, channels * taps, pixels * channels},
                     [=](const tuff::Context& context, Buffers& b) {
                       const std::array<uint64_t, 4> image = {batch, channels, extent, extent};
                       const std::array<uint64_t, 4> filter = {channels, channels, 3, 3};
                       context.conv2d(DType::f32, b[0], image, b[1], filter, b[2], image, {1, 1}, {1, 1});
                     });
}

Row attention_row(uint64_t batch, uint64_t heads, uint64_t sequence, uint64_t head_dim) {
  const uint64_t count = batch * heads * sequence * head_dim;
  const double scale = 1 / std::sqrt(static_cast<double>(head_dim));
  return compute_row("attention", fmt::format("{} x {} x {} x {}", batch, heads, sequence, head_dim),
                     4.0 * static_cast<double>(count) * static_cast<double>(sequence), {count, count, count, count},
                     [=](const tuff::Context& context, Buffers& b) {
                       context.attention(DType::f32, b[0], b[1], b[2], b[3], batch, heads, sequence, sequence, head_dim,
                                         scale);
                     });
}

Row unary_row(const char* name, tuff::Unary op, uint64_t n) {
  return memory_row(name, "unary", fmt::format("{} values", format_count(n)), 8 * n, {n, n},
                    [=](const tuff::Context& context, Buffers& b) { context.unary(DType::f32, op, b[0], b[1], n); });
}

Row sum_row(const char* name, std::vector<uint64_t> shape, uint64_t results) {
  uint64_t n = 1;
  for (const uint64_t size : shape) n *= size;
  return memory_row(name, "reduce", fmt::format("{} values", fmt::join(shape, " x ")), 4 * n, {n, results},
                    [=](const tuff::Context& context, Buffers& b) {
                      context.reduce(DType::f32, tuff::Reduce::sum, b[0], b[1], shape,
                                     static_cast<uint32_t>(shape.size()) - 1);
                    });
}

Row softmax_row(uint64_t rows, uint64_t columns) {
  const uint64_t n = rows * columns;
  return memory_row("softmax", "softmax", fmt::format("{} x {}", rows, columns), 8 * n, {n, n},
                    [=](const tuff::Context& context, Buffers& b) {
                      context.softmax(DType::f32, b[0], b[1], {rows, columns}, 1);
                    });
}

// Between ordinary host memory and the device: what limits it is the bus, which the copy says nothing of.
Row transfer_row(const char* name, bool upload, uint64_t n) {
  auto host = std::make_shared<std::vector<float>>();
  return row(name, "copies", format_bytes(4 * n), Unit::bytes, Limit::none, 4.0 * static_cast<double>(n), {n},
             [=](const tuff::Context&, Buffers& b) {
               host->resize(n, 1.0f);
               if (upload) {
                 b[0].upload(*host);
               } else {
                 b[0].download(*host);
               }
             });
}

// What one call costs when there is next to nothing to compute: each on the result of the one before, or
// each on values of its own.
Row small_row(const char* name, bool chained) {
  constexpr uint64_t kValues = 1024, kCalls = 256;
  return row(name, "unary", fmt::format("relu of {}, in place", format_count(kValues)), Unit::calls, Limit::none,
             kCalls, std::vector<uint64_t>(chained ? 1 : kCalls, kValues),
             [=](const tuff::Context& context, Buffers& b) {
               for (uint64_t i = 0; i < kCalls; ++i) {
                 const tuff::Buffer& x = b[chained ? 0 : i];
                 context.unary(DType::f32, tuff::Unary::relu, x, x, kValues);
               }
             });
}

}  // namespace

Row gemm_row(uint64_t m, uint64_t n, uint64_t k) {
  return compute_row("gemm", fmt::format("{} x {} x {}", m, n, k),
                     2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k),
                     {m * k, k * n, m * n}, [=](const tuff::Context& context, Buffers& b) {
                       context.gemm(DType::f32, tuff::Transpose::no, tuff::Transpose::no, m, n, k, 1, b[0], k, b[1], n,
                                    0, b[2], n);
                     });
}

Row copy_row(uint64_t values) {
  return memory_row("copy", "copies", format_bytes(4 * values), 8 * values, {values, values},
                    [=](const tuff::Context&, Buffers& b) { b[1].copy_from(b[0], 4 * values); });
}

std::vector<std::string> names_of(const Row& row) {
  return {row.operation + " " + row.shape, row.feature, row.feature + " " + row.operation};
}

std::vector<Row> bench_rows(bool large, uint64_t values) {
  constexpr uint64_t kColumns = 4096;
  const uint64_t rows = values / kColumns;
  std::vector<Row> all;
  if (large) {
    all.push_back(gemm_row(1, 16384, 16384));
    all.push_back(batched_gemm_row(64, 512));
    all.push_back(conv2d_row(32, 256, 56));
    all.push_back(attention_row(4, 32, 4096, 128));
  } else {
    all.push_back(gemm_row(1, 2048, 2048));
    all.push_back(batched_gemm_row(32, 64));
    all.push_back(conv2d_row(1, 32, 28));
    all.push_back(attention_row(1, 4, 256, 64));
  }
  all.push_back(unary_row("relu", tuff::Unary::relu, values));
  all.push_back(unary_row("exp", tuff::Unary::exp, values));
  all.push_back(unary_row("tanh", tuff::Unary::tanh, values));
  all.push_back(memory_row("add", "binary", fmt::format("{} values", format_count(values)), 12 * values,
                           {values, values, values}, [=](const tuff::Context& context, Buffers& b) {
                             context.binary(DType::f32, tuff::Binary::add, b[0], b[1], b[2], values);
                           }));
  all.push_back(sum_row("sum", {values}, 1));
  all.push_back(sum_row("sum of rows", {rows, kColumns}, rows));
  all.push_back(softmax_row(rows, kColumns));
  all.push_back(transfer_row("upload", true, values));
  all.push_back(transfer_row("download", false, values));
  all.push_back(small_row("small, chained", true));
  all.push_back(small_row("small, independent", false));
  return all;
}

}  // namespace tool
