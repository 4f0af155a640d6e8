#include "tool/bench_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "tool/format.hpp"
#include "tool/matrix_rows.hpp"

namespace tool {
namespace {

using BenchCall = std::function<void(const tuff::Context&, Buffers&)>;
using tuff::DType;

// A row with one buffer for each entry of counts, filled with 0.5. One repetition is one call.
Row row(const char* operation, const char* feature, std::string shape, Unit unit, Limit limit, double work,
        std::vector<uint64_t> counts, BenchCall call) {
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

Row compute_row(const char* operation, std::string shape, double flops, std::vector<uint64_t> counts, BenchCall call) {
  return row(operation, operation, std::move(shape), Unit::flops, Limit::gemm, flops, std::move(counts),
             std::move(call));
}

Row memory_row(const char* operation, const char* feature, std::string shape, uint64_t bytes,
               std::vector<uint64_t> counts, BenchCall call) {
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

// Five products of all rows and keys; those that compute the weights a second time do not count.
Row attention_backward_row(uint64_t batch, uint64_t heads, uint64_t sequence, uint64_t head_dim) {
  const uint64_t count = batch * heads * sequence * head_dim;
  return compute_row("attention_backward", fmt::format("{} x {} x {} x {}", batch, heads, sequence, head_dim),
                     10.0 * static_cast<double>(count) * static_cast<double>(sequence),
                     {count, count, count, count, count, count, count, count, batch * heads * sequence},
                     [=](const tuff::Context& context, Buffers& b) {
                       tuff_attention_backward_desc desc{};
                       desc.dtype = TUFF_F32;
                       desc.q = b[0].handle(), desc.k = b[1].handle(), desc.v = b[2].handle();
                       desc.o = b[3].handle(), desc.d_o = b[4].handle();
                       desc.dq = b[5].handle(), desc.dk = b[6].handle(), desc.dv = b[7].handle();
                       desc.lse = b[8].handle();
                       desc.batch = batch, desc.heads = heads, desc.head_dim = head_dim;
                       desc.seq_q = desc.seq_kv = sequence;
                       context.attention_backward(desc);
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

Row scan_row(const char* operation, const std::string& text, const std::vector<uint64_t>& shape, bool product) {
  uint64_t n = 1;
  for (const uint64_t size : shape) n *= size;
  const auto axis = static_cast<uint32_t>(shape.size() - 1);
  return memory_row(operation, operation, text, 8 * n, {n, n}, [=](const tuff::Context& context, Buffers& b) {
    product ? context.cumprod(DType::f32, b[0], b[1], shape, axis)
            : context.cumsum(DType::f32, b[0], b[1], shape, axis);
  });
}

enum class Scanned { largest, smallest, logarithms };

Row other_scan_row(const char* operation, uint64_t rows, uint64_t columns, Scanned what) {
  const uint64_t n = rows * columns;
  return memory_row(operation, operation, fmt::format("{} x {}", rows, columns), 8 * n, {n, n},
                    [=](const tuff::Context& context, Buffers& b) {
                      tuff_scan_desc desc{};
                      desc.dtype = TUFF_F32, desc.input = b[0].handle(), desc.output = b[1].handle();
                      desc.shape[0] = rows, desc.shape[1] = columns, desc.rank = 2, desc.axis = 1;
                      switch (what) {
                        case Scanned::largest: context.cummax(desc); break;
                        case Scanned::smallest: context.cummin(desc); break;
                        case Scanned::logarithms: context.cumlogsumexp(desc); break;
                      }
                    });
}

// With `row` the second input is repeated along the rows.
Row expr_row(const char* name, uint64_t rows, uint64_t columns, bool row) {
  const uint64_t n = rows * columns, second = row ? columns : n;
  const auto made = std::make_shared<std::pair<tuff_context, tuff::Expr>>();  // for the last context
  return memory_row(name, "expr", fmt::format("{} x {}", rows, columns), 4 * (2 * n + second), {n, second, n},
                    [=](const tuff::Context& context, Buffers& b) {
                      if (made->first != context.handle()) {
                        made->first = context.handle();
                        made->second = context.expression("where(a < b, gelu(a), a * b + s)",
                                                          {{"a", TUFF_F32, 0}, {"b", TUFF_F32, 0}, {"s", TUFF_F32, 1}},
                                                          {{"y", TUFF_F32, 0}});
                      }
                      tuff_expr_operand a{}, operand{}, s{}, y{};
                      a.buffer = b[0].handle(), operand.buffer = b[1].handle(), y.buffer = b[2].handle(), s.value = 0.5;
                      operand.strided = 1, operand.strides[0] = row ? 0 : static_cast<int64_t>(columns);
                      operand.strides[1] = 1;
                      made->second.run(context.handle(), {rows, columns}, {a, operand, s}, {y});
                    });
}

Row softmax_row(uint64_t rows, uint64_t columns) {
  const uint64_t n = rows * columns;
  return memory_row("softmax", "softmax", fmt::format("{} x {}", rows, columns), 8 * n, {n, n},
                    [=](const tuff::Context& context, Buffers& b) {
                      context.softmax(DType::f32, b[0], b[1], {rows, columns}, 1);
                    });
}

// Images of about `values` elements in total, each with 64 channels of 64 x 64.
struct Images {
  explicit Images(uint64_t values) : batch(std::max<uint64_t>(values / (kChannels * kPixels), 1)) {}
  static constexpr uint64_t kChannels = 64, kExtent = 64, kPixels = kExtent * kExtent;
  uint64_t count() const { return batch * kChannels * kPixels; }
  std::string text() const { return fmt::format("{} x {} x {} x {}", batch, kChannels, kExtent, kExtent); }
  uint64_t batch;
};

void add_norm_rows(std::vector<Row>& all, uint64_t rows, uint64_t columns, const Images& images) {
  constexpr double kEpsilon = 1e-5;
  const uint64_t n = rows * columns;
  const std::string text = fmt::format("{} x {}", rows, columns);
  all.push_back(memory_row("layer_norm", "layer_norm", text, 8 * n, {n, columns, columns, n},
                           [=](const tuff::Context& context, Buffers& b) {
                             context.layer_norm(DType::f32, b[0], b[1], b[2], b[3], rows, columns, kEpsilon);
                           }));
  all.push_back(
      memory_row("rms_norm", "rms_norm", text, 8 * n, {n, columns, n}, [=](const tuff::Context& context, Buffers& b) {
        context.rms_norm(DType::f32, b[0], b[1], b[2], rows, columns, kEpsilon);
      }));
  const uint64_t count = images.count(), channels = Images::kChannels;
  all.push_back(memory_row("group_norm", "group_norm", images.text() + ", 8 groups", 8 * count,
                           {count, channels, channels, count}, [=](const tuff::Context& context, Buffers& b) {
                             context.group_norm(DType::f32, b[0], b[1], b[2], b[3], images.batch, channels,
                                                Images::kPixels, 8, kEpsilon);
                           }));
  all.push_back(memory_row("batch_norm", "batch_norm", images.text(), 8 * count,
                           {count, channels, channels, channels, channels, count},
                           [=](const tuff::Context& context, Buffers& b) {
                             context.batch_norm(DType::f32, b[0], b[1], b[2], b[3], b[4], b[5], images.batch, channels,
                                                Images::kPixels, kEpsilon);
                           }));
}

// Buffers are of 4 bytes for each of their values. Scales are one for 32 numbers of a row.
void add_quant_rows(std::vector<Row>& all, uint64_t rows, uint64_t columns) {
  const uint64_t n = rows * columns;
  const std::string text = fmt::format("{} x {}, i8 in blocks of 32", rows, columns);
  const auto fill_in = [=](auto& desc) {
    desc.format = TUFF_QUANT_I8, desc.dtype = TUFF_F32, desc.granularity = TUFF_QUANT_PER_BLOCK, desc.block_size = 32;
    desc.shape[0] = rows, desc.shape[1] = columns, desc.rank = 2, desc.axis = 1;
  };
  const uint64_t bytes = 5 * n + n / 8;
  all.push_back(memory_row("quantize", "quantize", text, bytes, {n, n / 32, n / 4},
                           [=](const tuff::Context& context, Buffers& b) {
                             tuff_quantize_desc desc{};
                             fill_in(desc);
                             desc.input = b[0].handle(), desc.scales = b[1].handle(), desc.output = b[2].handle();
                             context.quantize(desc);
                           }));
  all.push_back(memory_row("dequantize", "dequantize", text, bytes, {n / 4, n / 32, n},
                           [=](const tuff::Context& context, Buffers& b) {
                             tuff_dequantize_desc desc{};
                             fill_in(desc);
                             desc.input = b[0].handle(), desc.scales = b[1].handle(), desc.output = b[2].handle();
                             context.dequantize(desc);
                           }));
  // 144 bytes for 256 numbers.
  all.push_back(memory_row("qgemm", "qgemm", fmt::format("1 x {} x {} by q4_K", rows, columns), n / 256 * 144,
                           {columns, n / 256 * 36, rows}, [=](const tuff::Context& context, Buffers& b) {
                             tuff_qgemm_desc desc{};
                             desc.format = TUFF_QUANT_Q4_K, desc.a_type = TUFF_F32;
                             desc.m = 1, desc.n = rows, desc.k = columns;
                             desc.a = b[0].handle(), desc.weights = b[1].handle(), desc.c = b[2].handle();
                             context.qgemm(desc);
                           }));
  // A's integers are bytes of a buffer of floats; scales are for rows of both.
  const uint64_t tokens = 256;
  all.push_back(memory_row("qgemm", "qgemm", fmt::format("{} x {} x {} of i8 by i8", tokens, rows, columns), n,
                           {tokens * columns / 4, n / 4, rows, tokens, tokens * rows},
                           [=](const tuff::Context& context, Buffers& b) {
                             tuff_qgemm_desc desc{};
                             desc.format = TUFF_QUANT_I8, desc.a_type = TUFF_I8;
                             desc.granularity = desc.a_granularity = TUFF_QUANT_PER_AXIS;
                             desc.m = tokens, desc.n = rows, desc.k = columns;
                             desc.a = b[0].handle(), desc.weights = b[1].handle(), desc.scales = b[2].handle();
                             desc.a_scales = b[3].handle(), desc.c = b[4].handle();
                             context.qgemm(desc);
                           }));
}

// Gathers rows of a table in an order that defeats caches.
Row gather_row(uint64_t rows, uint64_t columns) {
  Row result = memory_row("gather", "gather", fmt::format("{} rows of {}", rows, columns), 8 * rows * columns, {}, {});
  result.prepare = [=](const tuff::Context& context) {
    std::vector<uint32_t> places(rows);
    for (uint64_t i = 0; i < rows; ++i) places[i] = static_cast<uint32_t>(i * 2654435761u % rows);
    auto buffers = std::make_shared<Buffers>();
    buffers->push_back(context.alloc<float>(rows * columns));
    buffers->push_back(context.upload(places));
    buffers->push_back(context.alloc<float>(rows * columns));
    return [=, &context] {
      const Buffers& b = *buffers;
      context.gather(DType::f32, DType::u32, b[0], b[1], b[2], {rows, columns}, 0, rows);
    };
  };
  return result;
}

// Single values at places in an order that defeats caches, each of which is named once or, with sums, about four times.
Row scatter_row(uint64_t values, bool set) {
  const uint64_t places = set ? values : std::max<uint64_t>(values / 4, 1);
  Row result = memory_row(set ? "scatter set" : "scatter add", "scatter",
                          fmt::format("{} values", format_count(values)), 8 * values + 4 * values, {}, {});
  result.prepare = [=](const tuff::Context& context) {
    std::vector<uint32_t> indices(values);
    for (uint64_t i = 0; i < values; ++i) indices[i] = static_cast<uint32_t>(i * 2654435761u % places);
    auto buffers = std::make_shared<Buffers>();
    buffers->push_back(context.upload(indices));
    buffers->push_back(context.alloc<float>(values));
    buffers->push_back(context.alloc<float>(places));
    return [=, &context] {
      const Buffers& b = *buffers;
      tuff_scatter_desc desc{};
      desc.dtype = TUFF_F32, desc.index_type = TUFF_U32, desc.op = set ? TUFF_SCATTER_SET : TUFF_SCATTER_ADD;
      desc.indices = b[0].handle(), desc.updates = b[1].handle(), desc.output = b[2].handle();
      desc.rank = 1, desc.shape[0] = places, desc.count = values;
      context.scatter(desc);
    };
  };
  return result;
}

// Half of the elements, by a mask.
Row select_row(uint64_t n) {
  Row result = memory_row("select", "select", fmt::format("{} values, half of them", format_count(n)),
                          n + 4 * n + 2 * n, {}, {});
  result.prepare = [=](const tuff::Context& context) {
    std::vector<uint8_t> mask(n);
    for (uint64_t i = 0; i < n; ++i) mask[i] = static_cast<uint8_t>(i * 2654435761u >> 16 & 1);
    auto buffers = std::make_shared<Buffers>();
    buffers->push_back(context.upload(mask));
    buffers->push_back(context.alloc<float>(n));
    buffers->push_back(context.alloc<float>(n));
    buffers->push_back(context.alloc<uint64_t>(1));
    return [=, &context] {
      const Buffers& b = *buffers;
      tuff_select_desc desc{};
      desc.dtype = TUFF_F32, desc.op = TUFF_SELECT_NONZERO, desc.mask_type = TUFF_BOOL;
      desc.mask = b[0].handle(), desc.input = b[1].handle(), desc.output = b[2].handle(), desc.count = b[3].handle();
      desc.n = desc.capacity = n;
      context.select(desc);
    };
  };
  return result;
}

Row matrix_row(const MatrixRow& row, uint64_t rows, uint64_t columns) {
  MatrixCall made = row.make(rows, columns);
  std::vector<uint64_t> counts = made.inputs;
  counts.push_back(made.results);
  const uint64_t elements = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  return memory_row(row.operation, row.operation, fmt::format("{} x {}, {}", rows, columns, row.form), 4 * elements,
                    std::move(counts), [made = std::move(made)](const tuff::Context& context, Buffers& b) {
                      made.call(context, b, b.back());  // the inputs come first
                    });
}

void add_moving_rows(std::vector<Row>& all, uint64_t rows, uint64_t columns) {
  const uint64_t n = rows * columns;
  for (const MatrixRow& row : matrix_rows()) all.push_back(matrix_row(row, rows, columns));
  all.push_back(memory_row(
      "cast", "cast", fmt::format("{} values, f32 to f16", format_count(n)), 6 * n, {n, n / 2},
      [=](const tuff::Context& context, Buffers& b) { context.cast(DType::f32, DType::f16, b[0], b[1], n); }));
  all.push_back(gather_row(rows, columns));
  all.push_back(scatter_row(n, true));
  all.push_back(scatter_row(n, false));
  all.push_back(select_row(n));
  all.push_back(memory_row("pad", "pad", fmt::format("{} x {}, 2 on each side", rows, columns), 8 * n,
                           {n, (rows + 4) * (columns + 4)}, [=](const tuff::Context& context, Buffers& b) {
                             tuff_pad_desc desc{};
                             desc.dtype = TUFF_F32, desc.rank = 2;
                             desc.input = b[0].handle(), desc.output = b[1].handle();
                             desc.shape[0] = rows, desc.shape[1] = columns;
                             for (int i = 0; i < 2; ++i) desc.before[i] = desc.after[i] = 2;
                             context.pad(desc);
                           }));
  all.push_back(memory_row("copy_strided", "copy_strided", fmt::format("{} x {}, rows backwards", rows, columns), 8 * n,
                           {n, n}, [=](const tuff::Context& context, Buffers& b) {
                             tuff_copy_strided_desc desc{};
                             desc.dtype = TUFF_F32, desc.rank = 2;
                             desc.input = b[0].handle(), desc.output = b[1].handle();
                             desc.shape[0] = rows, desc.shape[1] = columns;
                             desc.input_first = (rows - 1) * columns;
                             desc.input_strides[0] = -static_cast<int64_t>(columns), desc.input_strides[1] = 1;
                             desc.output_strides[0] = static_cast<int64_t>(columns), desc.output_strides[1] = 1;
                             context.copy_strided(desc);
                           }));
}

void add_image_rows(std::vector<Row>& all, const Images& images) {
  const uint64_t count = images.count();
  const auto pool = [&](const char* name, bool largest) {
    all.push_back(memory_row(name, name, images.text() + ", 2 x 2", 5 * count, {count, count / 4},
                             [=](const tuff::Context& context, Buffers& b) {
                               tuff_pool_desc desc{};
                               desc.dtype = TUFF_F32;
                               desc.input = b[0].handle(), desc.output = b[1].handle();
                               desc.batch = images.batch, desc.channels = Images::kChannels, desc.spatial = 2;
                               for (int i = 0; i < 2; ++i) {
                                 desc.in_shape[i] = Images::kExtent, desc.out_shape[i] = Images::kExtent / 2;
                                 desc.kernel[i] = 2, desc.stride[i] = 2;
                               }
                               if (largest) {
                                 context.max_pool(desc);
                               } else {
                                 context.avg_pool(desc);
                               }
                             }));
  };
  pool("max_pool", true);
  pool("avg_pool", false);
  all.push_back(memory_row("pool_backward", "pool_backward", images.text() + ", mean of 2 x 2", 5 * count,
                           {count / 4, count}, [=](const tuff::Context& context, Buffers& b) {
                             tuff_pool_backward_desc desc{};
                             desc.dtype = TUFF_F32;
                             desc.doutput = b[0].handle(), desc.dinput = b[1].handle();
                             desc.batch = images.batch, desc.channels = Images::kChannels, desc.spatial = 2;
                             for (int i = 0; i < 2; ++i) {
                               desc.in_shape[i] = Images::kExtent, desc.out_shape[i] = Images::kExtent / 2;
                               desc.kernel[i] = 2, desc.stride[i] = 2;
                             }
                             context.pool_backward(desc);
                           }));
  all.push_back(memory_row("resize", "resize", images.text() + " from a quarter, linear", 5 * count, {count / 4, count},
                           [=](const tuff::Context& context, Buffers& b) {
                             tuff_resize_desc desc{};
                             desc.dtype = TUFF_F32;
                             desc.input = b[0].handle(), desc.output = b[1].handle();
                             desc.batch = images.batch, desc.channels = Images::kChannels, desc.spatial = 2;
                             desc.mode = TUFF_RESIZE_LINEAR;
                             for (int i = 0; i < 2; ++i) {
                               desc.in_shape[i] = Images::kExtent / 2, desc.out_shape[i] = Images::kExtent;
                             }
                             context.resize(desc);
                           }));
  all.push_back(memory_row("rope", "rope", fmt::format("{} x 8 x 512 x 64", images.batch), 8 * count, {count, count},
                           [=](const tuff::Context& context, Buffers& b) {
                             context.rope(DType::f32, b[0], b[1], images.batch, 8, 512, 64);
                           }));
}

// conv1d with 5 taps and padding 2; conv3d with a 3 x 3 x 3 filter and padding 1; conv_transpose2d that doubles the
// extent with 2 x 2 filters and stride 2.
void add_conv_rows(std::vector<Row>& all, uint64_t batch, uint64_t channels, uint64_t extent) {
  const uint64_t line = extent * extent, cube = line * extent, c = channels;
  const auto flops = [&](uint64_t pixels, uint64_t taps) {
    return 2.0 * static_cast<double>(batch * pixels * c * c * taps);
  };
  all.push_back(
      compute_row("conv1d", fmt::format("{} x {} x {}, 5", batch, c, line), flops(line, 5),
                  {batch * c * line, c * c * 5, batch * c * line}, [=](const tuff::Context& context, Buffers& b) {
                    context.conv1d(DType::f32, b[0], {batch, c, line}, b[1], {c, c, 5}, b[2], {batch, c, line}, 1, 2);
                  }));
  all.push_back(compute_row(
      "conv3d", fmt::format("{} x {} x {} x {} x {}, 3 x 3 x 3", batch, c, extent, extent, extent), flops(cube, 27),
      {batch * c * cube, c * c * 27, batch * c * cube}, [=](const tuff::Context& context, Buffers& b) {
        context.conv3d(DType::f32, b[0], {batch, c, extent, extent, extent}, b[1], {c, c, 3, 3, 3}, b[2],
                       {batch, c, extent, extent, extent}, {1, 1, 1}, {1, 1, 1});
      }));
  all.push_back(compute_row("conv_transpose2d", fmt::format("{} x {} x {} x {}, 2 x 2", batch, c, extent, extent),
                            flops(line, 4), {batch * c * line, c * c * 4, 4 * batch * c * line},
                            [=](const tuff::Context& context, Buffers& b) {
                              context.conv_transpose2d(DType::f32, b[0], {batch, c, extent, extent}, b[1], {c, c, 2, 2},
                                                       b[2], {batch, c, 2 * extent, 2 * extent}, {2, 2});
                            }));
}

// The gradients of 3 x 3 windows with padding 1, by images and by filters.
void add_gradient_rows(std::vector<Row>& all, uint64_t batch, uint64_t channels, uint64_t extent) {
  const uint64_t images = batch * channels * extent * extent, filters = channels * channels * 9;
  for (const bool data : {true, false}) {
    const char* const name = data ? "conv_backward_data" : "conv_backward_filter";
    all.push_back(compute_row(name, fmt::format("{} x {} x {} x {}, 3 x 3", batch, channels, extent, extent),
                              2.0 * static_cast<double>(images * channels * 9),
                              {images, data ? filters : images, data ? images : filters},
                              [=](const tuff::Context& context, Buffers& b) {
                                tuff_conv_backward_desc desc{};
                                desc.dtype = TUFF_F32, desc.spatial = 2;
                                desc.doutput = b[0].handle();
                                for (uint64_t* shape : {desc.in_shape, desc.out_shape}) {
                                  shape[0] = batch, shape[1] = channels, shape[2] = shape[3] = extent;
                                }
                                desc.filter_shape[0] = desc.filter_shape[1] = channels;
                                desc.filter_shape[2] = desc.filter_shape[3] = 3;
                                desc.padding[0] = desc.padding[1] = 1;
                                if (data) {
                                  desc.filter = b[1].handle(), desc.dinput = b[2].handle();
                                  context.conv_backward_data(desc);
                                } else {
                                  desc.input = b[1].handle(), desc.dfilter = b[2].handle();
                                  context.conv_backward_filter(desc);
                                }
                              }));
  }
}

// Layers with as many inputs as units, of which every step needs the one before.
void add_rnn_rows(std::vector<Row>& all, uint64_t batch, uint64_t steps, uint64_t hidden) {
  const auto add = [&](const char* cell_name, int32_t cell, uint64_t gates) {
    const uint64_t weights = gates * hidden * hidden, values = batch * steps * hidden;
    all.push_back(compute_row(
        "rnn", fmt::format("{}, {} x {} steps, {} to {}", cell_name, batch, steps, hidden, hidden),
        4.0 * static_cast<double>(batch * steps * weights), {values, weights, weights, gates * hidden, values},
        [=](const tuff::Context& context, Buffers& b) {
          tuff_rnn_desc desc{};
          desc.dtype = TUFF_F32, desc.cell = cell, desc.linear_before_reset = cell == TUFF_RNN_CELL_GRU;
          desc.batch = batch, desc.steps = steps, desc.input_size = desc.hidden_size = hidden;
          desc.x = b[0].handle(), desc.w = b[1].handle(), desc.r = b[2].handle(), desc.bias_w = b[3].handle();
          desc.y = b[4].handle();
          context.rnn(desc);
        }));
  };
  add("lstm", TUFF_RNN_CELL_LSTM, 4);
  add("gru", TUFF_RNN_CELL_GRU, 3);
  // The products of the steps computed anew, of their gradients, and of those by weights.
  const uint64_t weights = 4 * hidden * hidden, values = batch * steps * hidden;
  all.push_back(compute_row("rnn_backward", fmt::format("lstm, {} x {} steps, {} to {}", batch, steps, hidden, hidden),
                            12.0 * static_cast<double>(batch * steps * weights),
                            {values, weights, weights, values, values, weights, weights},
                            [=](const tuff::Context& context, Buffers& b) {
                              tuff_rnn_backward_desc desc{};
                              desc.dtype = TUFF_F32, desc.cell = TUFF_RNN_CELL_LSTM;
                              desc.batch = batch, desc.steps = steps, desc.input_size = desc.hidden_size = hidden;
                              desc.x = b[0].handle(), desc.w = b[1].handle(), desc.r = b[2].handle();
                              desc.dy = b[3].handle(), desc.dx = b[4].handle(), desc.dw = b[5].handle();
                              desc.dr = b[6].handle();
                              context.rnn_backward(desc);
                            }));
}

// The loss and the gradient of rows of logits, in one pass, and the gradient of softmax.
void add_loss_rows(std::vector<Row>& all, uint64_t rows, uint64_t classes) {
  const uint64_t n = rows * classes;
  const std::string shape = fmt::format("{} x {}", rows, classes);
  all.push_back(memory_row("cross_entropy", "cross_entropy", shape + ", loss and gradient", 12 * n, {n, rows, rows, n},
                           [=](const tuff::Context& context, Buffers& b) {
                             tuff_cross_entropy_desc desc{};
                             desc.dtype = TUFF_F32, desc.label_type = TUFF_I32, desc.rank = 2, desc.axis = 1;
                             desc.shape[0] = rows, desc.shape[1] = classes;
                             desc.logits = b[0].handle(), desc.labels = b[1].handle();
                             desc.loss = b[2].handle(), desc.gradient = b[3].handle();
                             context.cross_entropy(desc);
                           }));
  all.push_back(memory_row("softmax_backward", "softmax_backward", shape, 12 * n, {n, n, n},
                           [=](const tuff::Context& context, Buffers& b) {
                             tuff_softmax_backward_desc desc{};
                             desc.dtype = TUFF_F32, desc.rank = 2, desc.axis = 1;
                             desc.shape[0] = rows, desc.shape[1] = classes;
                             desc.output = b[0].handle(), desc.output_gradient = b[1].handle();
                             desc.gradient = b[2].handle();
                             context.softmax_backward(desc);
                           }));
}

// All gradients of layer norm, and batch norm for training with its own. Bytes are those that have to be moved: two
// reads and a write, and for batch norm's output a read more.
void add_norm_training_rows(std::vector<Row>& all, uint64_t rows, uint64_t columns, uint64_t plane) {
  const uint64_t n = rows * columns;
  const auto gradients = [](tuff_norm_backward_desc desc, Buffers& b) {
    desc.dtype = TUFF_F32, desc.epsilon = 1e-5;
    desc.input = b[0].handle(), desc.output_gradient = b[1].handle(), desc.weight = b[2].handle();
    desc.input_gradient = b[3].handle(), desc.weight_gradient = b[4].handle(), desc.bias_gradient = b[5].handle();
    return desc;
  };
  const std::vector<uint64_t> layer = {n, n, columns, n, columns, columns};
  all.push_back(memory_row("norm_backward", "norm_backward", fmt::format("layer, {} x {}", rows, columns), 12 * n,
                           layer, [=](const tuff::Context& context, Buffers& b) {
                             tuff_norm_backward_desc desc{};
                             desc.kind = TUFF_NORM_LAYER;
                             desc.batch = rows, desc.channels = columns, desc.inner = 1;
                             context.norm_backward(gradients(desc, b));
                           }));
  const uint64_t images = 32, channels = std::max<uint64_t>(n / images / plane, 1), size = images * channels * plane;
  const std::string shape = fmt::format("{} x {} x {}", images, channels, plane);
  const std::vector<uint64_t> batch = {size, size, channels, size, channels, channels};
  all.push_back(memory_row("norm_backward", "norm_backward", "batch, " + shape, 12 * size, batch,
                           [=](const tuff::Context& context, Buffers& b) {
                             tuff_norm_backward_desc desc{};
                             desc.kind = TUFF_NORM_BATCH;
                             desc.batch = images, desc.channels = channels, desc.inner = plane;
                             context.norm_backward(gradients(desc, b));
                           }));
  all.push_back(memory_row("batch_norm_training", "batch_norm_training", shape, 12 * size, {size, channels, size},
                           [=](const tuff::Context& context, Buffers& b) {
                             tuff_batch_norm_training_desc desc{};
                             desc.dtype = TUFF_F32, desc.batch = images, desc.channels = channels, desc.inner = plane;
                             desc.epsilon = 1e-5, desc.input = b[0].handle(), desc.weight = b[1].handle();
                             desc.output = b[2].handle();
                             context.batch_norm_training(desc);
                           }));
}

// AdamW for a few tensors, and the norm of their gradients.
void add_optimizer_rows(std::vector<Row>& all, uint64_t size) {
  constexpr size_t kTensors = 4;
  const std::array<uint64_t, kTensors> sizes = {size, size, size, size};
  const std::vector<uint64_t> gradients(kTensors, size), all_of_a_step(4 * kTensors, size);
  const std::string shape = fmt::format("{} x {}", kTensors, size);
  const auto handles = [](Buffers& b, size_t first) {
    std::array<tuff_buffer, kTensors> of{};
    for (size_t i = 0; i < kTensors; ++i) of[i] = b[first + i].handle();
    return of;
  };
  all.push_back(memory_row("optimizer_step", "optimizer_step", "adamw, " + shape, 28 * kTensors * size, all_of_a_step,
                           [=](const tuff::Context& context, Buffers& b) {
                             const auto w = handles(b, 0), g = handles(b, kTensors), m = handles(b, 2 * kTensors),
                                        v = handles(b, 3 * kTensors);
                             tuff_optimizer_desc desc{};
                             desc.dtype = TUFF_F32, desc.algorithm = TUFF_OPTIMIZER_ADAMW, desc.count = kTensors;
                             desc.sizes = sizes.data(), desc.parameters = w.data(), desc.gradients = g.data();
                             desc.first_moments = m.data(), desc.second_moments = v.data();
                             desc.rate = 1e-3, desc.beta1 = 0.9, desc.beta2 = 0.999, desc.epsilon = 1e-8;
                             desc.weight_decay = 0.01, desc.step = 1;
                             context.optimizer_step(desc);
                           }));
  std::vector<uint64_t> and_norm = gradients;
  and_norm.push_back(1);
  all.push_back(memory_row("gradient_norm", "gradient_norm", shape, 4 * kTensors * size, and_norm,
                           [=](const tuff::Context& context, Buffers& b) {
                             const auto g = handles(b, 0);
                             tuff_gradient_norm_desc desc{};
                             desc.dtype = TUFF_F32, desc.count = kTensors, desc.sizes = sizes.data(),
                             desc.gradients = g.data();
                             desc.norm = b[kTensors].handle();
                             context.gradient_norm(desc);
                           }));
}

// The matrix of Poisson's equation on a grid of n x n points: itself and four neighbours in each row. Those beyond the
// grid's edge have the index -1, which is ignored.
struct Grid {
  tuff::Buffer offsets, indices, values;
};
Grid room_for(const tuff::Context& context, uint64_t points) {
  return {context.alloc<int32_t>(points + 1), context.alloc<int32_t>(5 * points), context.alloc<float>(5 * points)};
}
Grid grid_of(const tuff::Context& context, uint64_t n) {
  const auto points = static_cast<int32_t>(n * n), width = static_cast<int32_t>(n);
  std::vector<int32_t> offsets, indices;
  std::vector<float> values;
  for (int32_t i = 0; i <= points; ++i) offsets.push_back(5 * i);
  for (int32_t i = 0; i < points; ++i) {
    const int32_t x = i % width;
    const int32_t near[5] = {i - width, x > 0 ? i - 1 : -1, i, x + 1 < width ? i + 1 : -1, i + width};
    for (const int32_t j : near) indices.push_back(j < points ? j : -1), values.push_back(j == i ? 4.0f : -1.0f);
  }
  Grid grid = room_for(context, n * n);
  grid.offsets.upload(offsets), grid.indices.upload(indices), grid.values.upload(values);
  return grid;
}

// The same grid with four unknowns for each point: blocks of 4 x 4.
void add_sparse_blocks_row(std::vector<Row>& all, uint64_t n) {
  const uint64_t points = n * n, entries = 5 * points;
  const auto prepare = [=](const tuff::Context& context) {
    const auto grid = std::make_shared<Grid>(grid_of(context, n));
    const auto values = std::make_shared<tuff::Buffer>(context.alloc<float>(16 * entries)),
               x = std::make_shared<tuff::Buffer>(context.alloc<float>(4 * points)),
               y = std::make_shared<tuff::Buffer>(context.alloc<float>(4 * points));
    return [=, &context] {
      tuff_spmm_desc desc{};
      desc.dtype = TUFF_F32, desc.index_type = TUFF_I32, desc.rows = desc.columns = 4 * points, desc.nnz = entries;
      desc.block_rows = desc.block_columns = 4;
      desc.n = desc.batch_count = 1, desc.alpha = 1, desc.offsets = grid->offsets.handle();
      desc.indices = grid->indices.handle(), desc.values = values->handle();
      desc.b = x->handle(), desc.c = y->handle();
      context.spmm(desc);
    };
  };
  all.push_back({"spmm", "spmm", fmt::format("{} points, 5 blocks of 4 x 4 each", format_count(points)), Unit::bytes,
                 Limit::copy, static_cast<double>(68 * entries + 36 * points), prepare});
}

void add_sparse_rows(std::vector<Row>& all, uint64_t n) {
  const uint64_t points = n * n, entries = 5 * points;
  const std::string shape = fmt::format("{} points, 5 entries each", format_count(points));
  const auto prepare_product = [=](const tuff::Context& context) {
    const auto grid = std::make_shared<Grid>(grid_of(context, n));
    const auto x = std::make_shared<tuff::Buffer>(context.alloc<float>(points)),
               y = std::make_shared<tuff::Buffer>(context.alloc<float>(points));
    return [=, &context] {
      tuff_spmm_desc desc{};
      desc.dtype = TUFF_F32, desc.index_type = TUFF_I32, desc.rows = desc.columns = points, desc.nnz = entries;
      desc.n = desc.batch_count = 1, desc.alpha = 1, desc.offsets = grid->offsets.handle();
      desc.indices = grid->indices.handle(), desc.values = grid->values.handle();
      desc.b = x->handle(), desc.c = y->handle();
      context.spmm(desc);
    };
  };
  all.push_back({"spmm", "spmm", shape, Unit::bytes, Limit::copy, static_cast<double>(8 * entries + 12 * points),
                 prepare_product});
  constexpr uint64_t kDepth = 64;
  const auto prepare_sampled = [=](const tuff::Context& context) {
    const auto grid = std::make_shared<Grid>(grid_of(context, n));
    const auto a = std::make_shared<tuff::Buffer>(context.alloc<float>(points * kDepth)),
               b = std::make_shared<tuff::Buffer>(context.alloc<float>(points * kDepth)),
               values = std::make_shared<tuff::Buffer>(context.alloc<float>(entries));
    return [=, &context] {
      tuff_sddmm_desc desc{};
      desc.dtype = TUFF_F32, desc.index_type = TUFF_I32, desc.place_format = TUFF_SPARSE_CSR;
      desc.transpose = TUFF_TRANS, desc.rows = desc.columns = points, desc.nnz = entries, desc.k = kDepth;
      desc.alpha = 1, desc.batch_count = 1, desc.place_rows = grid->offsets.handle();
      desc.place_columns = grid->indices.handle(), desc.a = a->handle(), desc.b = b->handle();
      desc.values = values->handle();
      context.sddmm(desc);
    };
  };
  all.push_back({"sddmm", "sddmm", shape + ", depth " + std::to_string(kDepth), Unit::bytes, Limit::copy,
                 static_cast<double>(8 * entries + 8 * points * kDepth), prepare_sampled});
  const auto prepare_conversion = [=](const tuff::Context& context) {
    const auto from = std::make_shared<Grid>(grid_of(context, n)),
               to = std::make_shared<Grid>(room_for(context, points));
    return [=, &context] {
      tuff_sparse_convert_desc desc{};
      desc.dtype = TUFF_F32, desc.index_type = TUFF_I32, desc.from_format = TUFF_SPARSE_CSR;
      desc.to_format = TUFF_SPARSE_CSC, desc.rows = desc.columns = points, desc.nnz = desc.capacity = entries;
      desc.from_rows = from->offsets.handle(), desc.from_columns = from->indices.handle();
      desc.from_values = from->values.handle(), desc.to_columns = to->offsets.handle();
      desc.to_rows = to->indices.handle(), desc.to_values = to->values.handle();
      context.sparse_convert(desc);
    };
  };
  all.push_back({"sparse_convert", "sparse_convert", shape + ", CSR to CSC", Unit::bytes, Limit::copy,
                 static_cast<double>(16 * entries + 8 * points), prepare_conversion});
  // The square has 13 entries a row at most, of 25 terms.
  const auto prepare_square = [=](const tuff::Context& context) {
    const auto grid = std::make_shared<Grid>(grid_of(context, n));
    const auto offsets = std::make_shared<tuff::Buffer>(context.alloc<int32_t>(points + 1)),
               indices = std::make_shared<tuff::Buffer>(context.alloc<int32_t>(13 * points)),
               values = std::make_shared<tuff::Buffer>(context.alloc<float>(13 * points));
    return [=, &context] {
      tuff_spgemm_desc desc{};
      desc.dtype = TUFF_F32, desc.index_type = TUFF_I32, desc.rows = desc.inner = desc.columns = points;
      desc.a_nnz = desc.b_nnz = entries, desc.max_terms = 25 * points, desc.capacity = 13 * points;
      desc.a_offsets = desc.b_offsets = grid->offsets.handle();
      desc.a_indices = desc.b_indices = grid->indices.handle();
      desc.a_values = desc.b_values = grid->values.handle(), desc.c_offsets = offsets->handle();
      desc.c_indices = indices->handle(), desc.c_values = values->handle();
      context.spgemm(desc);
    };
  };
  all.push_back({"spgemm", "spgemm", shape + ", squared", Unit::bytes, Limit::copy,
                 static_cast<double>((16 * 5 + 8 * 13 + 4) * points), prepare_square});
  const auto prepare_solve = [=](const tuff::Context& context) {
    const auto grid = std::make_shared<Grid>(grid_of(context, n));
    const auto b = std::make_shared<tuff::Buffer>(context.alloc<float>(points)),
               x = std::make_shared<tuff::Buffer>(context.alloc<float>(points)),
               levels = std::make_shared<tuff::Buffer>(context.alloc<int32_t>(2 * points + 1));
    tuff_sparse_triangular_solve_desc desc{};
    desc.dtype = TUFF_F32, desc.index_type = TUFF_I32, desc.triangle = TUFF_TRIANGLE_LOWER, desc.rows = points;
    desc.nnz = entries, desc.n = 1, desc.alpha = 1, desc.offsets = grid->offsets.handle();
    desc.indices = grid->indices.handle(), desc.values = grid->values.handle(), desc.levels = levels->handle();
    desc.b = b->handle(), desc.x = x->handle();
    context.sparse_triangular_solve(desc);
    return [=, &context]() mutable {
      desc.b = b->handle(), desc.x = x->handle(), desc.levels = levels->handle();
      desc.offsets = grid->offsets.handle(), desc.levels_ready = 1;
      context.sparse_triangular_solve(desc);
    };
  };
  all.push_back({"sparse_triangular_solve", "sparse_triangular_solve", shape + ", lower triangle, levels ready",
                 Unit::bytes, Limit::copy, static_cast<double>(8 * entries + 16 * points), prepare_solve});
}

// Factorisations and systems of n x n matrices with n right sides, each of a fresh copy.
void add_linalg_rows(std::vector<Row>& all, uint64_t n) {
  const uint64_t count = n * n;
  const double cube = static_cast<double>(count) * static_cast<double>(n);
  const std::string shape = fmt::format("{} x {}", n, n);
  all.push_back(compute_row("cholesky", shape, cube / 3, {count, count}, [=](const tuff::Context& context, Buffers& b) {
    b[1].copy_from(b[0], count * sizeof(float));
    tuff_cholesky_desc desc{};
    desc.dtype = TUFF_F32, desc.n = n, desc.a = b[1].handle(), desc.batch_count = 1;
    context.cholesky(desc);
  }));
  all.push_back(
      compute_row("lu", shape, 2 * cube / 3, {count, count, n}, [=](const tuff::Context& context, Buffers& b) {
        b[1].copy_from(b[0], count * sizeof(float));
        tuff_lu_desc desc{};
        desc.dtype = TUFF_F32, desc.m = desc.n = n, desc.a = b[1].handle(), desc.pivots = b[2].handle(),
        desc.batch_count = 1;
        context.lu(desc);
      }));
  all.push_back(
      compute_row("triangular_solve", shape, cube, {count, count}, [=](const tuff::Context& context, Buffers& b) {
        tuff_triangular_solve_desc desc{};
        desc.dtype = TUFF_F32, desc.m = desc.n = n, desc.a = b[0].handle(), desc.b = b[1].handle();
        desc.batch_count = 1;
        context.triangular_solve(desc);
      }));
  all.push_back(
      compute_row("lu_solve", shape, 2 * cube, {count, count, n}, [=](const tuff::Context& context, Buffers& b) {
        tuff_lu_solve_desc desc{};
        desc.dtype = TUFF_F32, desc.n = desc.nrhs = n, desc.a = b[0].handle(), desc.b = b[1].handle();
        desc.pivots = b[2].handle(), desc.batch_count = 1;
        context.lu_solve(desc);
      }));
  all.push_back(
      compute_row("qr", shape, 8 * cube / 3, {count, count, count}, [=](const tuff::Context& context, Buffers& b) {
        b[1].copy_from(b[0], count * sizeof(float));
        tuff_qr_desc desc{};
        desc.dtype = TUFF_F32, desc.m = desc.n = n, desc.a = b[1].handle(), desc.q = b[2].handle();
        desc.batch_count = 1;
        context.qr(desc);
      }));
  // Rates by the operations of LAPACK's methods, of which Jacobi's needs several times as many.
  const uint64_t small = n / 4, one = small * small;
  const double small_cube = static_cast<double>(one) * static_cast<double>(small);
  const std::string small_shape = fmt::format("{} x {}", small, small);
  all.push_back(compute_row(
      "eigh", small_shape, 9 * small_cube, {one, one, small}, [=](const tuff::Context& context, Buffers& b) {
        tuff_eigh_desc desc{};
        desc.dtype = TUFF_F32, desc.n = small, desc.a = b[0].handle(), desc.vectors = b[1].handle();
        desc.values = b[2].handle(), desc.batch_count = 1;
        context.eigh(desc);
      }));
  all.push_back(compute_row(
      "eig", small_shape, 25 * small_cube, {one, 2 * one, 2 * small}, [=](const tuff::Context& context, Buffers& b) {
        tuff_eig_desc desc{};
        desc.dtype = TUFF_F32, desc.n = small, desc.a = b[0].handle(), desc.vectors = b[1].handle();
        desc.values = b[2].handle(), desc.batch_count = 1;
        context.eig(desc);
      }));
  all.push_back(compute_row("svd", small_shape, 22 * small_cube, {one, one, one, small},
                            [=](const tuff::Context& context, Buffers& b) {
                              tuff_svd_desc desc{};
                              desc.dtype = TUFF_F32, desc.m = desc.n = small, desc.a = b[0].handle();
                              desc.u = b[1].handle(), desc.vt = b[2].handle(), desc.values = b[3].handle();
                              desc.batch_count = 1;
                              context.svd(desc);
                            }));
  // For 8 x 8 matrices, of which only the diagonal is read.
  const uint64_t batch = count / 64;
  all.push_back(row("lu_determinant", "lu_determinant", fmt::format("{} of 8 x 8", batch), Unit::bytes, Limit::none,
                    static_cast<double>(32 * batch), {count, 8 * batch, batch},
                    [=](const tuff::Context& context, Buffers& b) {
                      tuff_lu_determinant_desc desc{};
                      desc.dtype = TUFF_F32, desc.n = 8, desc.a = b[0].handle(), desc.stride_a = 64;
                      desc.pivots = b[1].handle(), desc.determinant = b[2].handle(), desc.batch_count = batch;
                      context.lu_determinant(desc);
                    }));
}

// Transfers between pageable host memory and the device. The bus limits them, so the copy limit does not apply.
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

// The cost of one call with almost no work. Chained calls each depend on the previous result; the others are
// independent.
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
    add_conv_rows(all, 16, 128, 32);
    add_gradient_rows(all, 16, 128, 32);
    all.push_back(attention_row(4, 32, 4096, 128));
    all.push_back(attention_backward_row(4, 32, 4096, 128));
  } else {
    all.push_back(gemm_row(1, 2048, 2048));
    all.push_back(batched_gemm_row(32, 64));
    all.push_back(conv2d_row(1, 32, 28));
    add_conv_rows(all, 1, 16, 16);
    add_gradient_rows(all, 1, 16, 16);
    all.push_back(attention_row(1, 4, 256, 64));
    all.push_back(attention_backward_row(1, 4, 256, 64));
  }
  if (large) {
    add_rnn_rows(all, 64, 100, 1024);
    add_optimizer_rows(all, 1 << 24);
    add_loss_rows(all, 8192, 32000);
    add_norm_training_rows(all, 8192, 4096, 3136);
  } else {
    add_rnn_rows(all, 8, 32, 128);
    add_optimizer_rows(all, 1 << 20);
    add_loss_rows(all, 512, 4000);
    add_norm_training_rows(all, 1024, 1024, 784);
  }
  add_linalg_rows(all, large ? 4096 : 512);
  add_sparse_rows(all, large ? 4096 : 512);
  add_sparse_blocks_row(all, large ? 2048 : 256);
  all.push_back(unary_row("relu", tuff::Unary::relu, values));
  all.push_back(unary_row("exp", tuff::Unary::exp, values));
  all.push_back(unary_row("tanh", tuff::Unary::tanh, values));
  all.push_back(memory_row("add", "binary", fmt::format("{} values", format_count(values)), 12 * values,
                           {values, values, values}, [=](const tuff::Context& context, Buffers& b) {
                             context.binary(DType::f32, tuff::Binary::add, b[0], b[1], b[2], values);
                           }));
  all.push_back(sum_row("sum", {values}, 1));
  all.push_back(sum_row("sum of rows", {rows, kColumns}, rows));
  all.push_back(scan_row("cumsum", fmt::format("{}", values), {values}, false));
  all.push_back(scan_row("cumprod", fmt::format("{} x {}", rows, kColumns), {rows, kColumns}, true));
  all.push_back(other_scan_row("cummax", rows, kColumns, Scanned::largest));
  all.push_back(other_scan_row("cummin", rows, kColumns, Scanned::smallest));
  all.push_back(other_scan_row("cumlogsumexp", rows, kColumns, Scanned::logarithms));
  all.push_back(memory_row("sort", "sort", fmt::format("{} values", format_count(values)), 8 * values, {values, values},
                           [=](const tuff::Context& context, Buffers& b) {
                             tuff_sort_desc desc{};
                             desc.dtype = TUFF_F32, desc.input = b[0].handle(), desc.values = b[1].handle();
                             desc.shape[0] = values, desc.rank = 1;
                             context.sort(desc);
                           }));
  all.push_back(memory_row("random normal", "random", fmt::format("{} values", format_count(values)), 4 * values,
                           {values}, [=](const tuff::Context& context, Buffers& b) {
                             tuff_random_desc desc{};
                             desc.dtype = TUFF_F32, desc.distribution = TUFF_RANDOM_NORMAL;
                             desc.output = b[0].handle(), desc.n = values;
                             context.random(desc);
                           }));
  all.push_back(memory_row("random gamma", "variates", fmt::format("{} values", format_count(values)), 4 * values,
                           {values}, [=](const tuff::Context& context, Buffers& b) {
                             tuff_variates_desc desc{};
                             desc.dtype = TUFF_F32, desc.distribution = TUFF_VARIATES_GAMMA, desc.first_value = 2.5;
                             desc.output = b[0].handle(), desc.n = values;
                             context.variates(desc);
                           }));
  all.push_back(memory_row("dropout", "dropout", fmt::format("{} values", format_count(values)), 8 * values,
                           {values, values}, [=](const tuff::Context& context, Buffers& b) {
                             tuff_dropout_desc desc{};
                             desc.dtype = TUFF_F32, desc.input = b[0].handle(), desc.output = b[1].handle();
                             desc.n = values, desc.probability = 0.25;
                             context.dropout(desc);
                           }));
  all.push_back(memory_row("fft", "fft", fmt::format("{} x 1024 complex", values / 2048), 8 * values, {values, values},
                           [=](const tuff::Context& context, Buffers& b) {
                             tuff_fft_desc desc{};
                             desc.dtype = TUFF_F32, desc.kind = TUFF_FFT_COMPLEX, desc.rank = 2;
                             desc.input = b[0].handle(), desc.output = b[1].handle();
                             desc.shape[0] = values / 2048, desc.shape[1] = 1024;
                             context.fft(desc);
                           }));
  all.push_back(memory_row("dct", "dct", fmt::format("{} x 1024", values / 1024), 8 * values, {values, values},
                           [=](const tuff::Context& context, Buffers& b) {
                             tuff_dct_desc desc{};
                             desc.dtype = TUFF_F32, desc.kind = TUFF_DCT_2, desc.rank = 2;
                             desc.input = b[0].handle(), desc.output = b[1].handle();
                             desc.shape[0] = values / 1024, desc.shape[1] = 1024;
                             context.dct(desc);
                           }));
  add_quant_rows(all, rows, kColumns);
  all.push_back(expr_row("expr", rows, kColumns, false));
  all.push_back(expr_row("expr, row", rows, kColumns, true));
  all.push_back(softmax_row(rows, kColumns));
  add_norm_rows(all, rows, kColumns, Images(values));
  add_moving_rows(all, rows, kColumns);
  add_image_rows(all, Images(values));
  all.push_back(transfer_row("upload", true, values));
  all.push_back(transfer_row("download", false, values));
  all.push_back(small_row("small, chained", true));
  all.push_back(small_row("small, independent", false));
  return all;
}

}  // namespace tool
