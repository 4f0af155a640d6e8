#include "networks/layer_call.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace networks {
namespace {

using Buffers = std::vector<tuff_buffer>;

template <typename Desc>
Desc sized(int32_t dtype) {
  Desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = dtype;
  return desc;
}

// Adds an operand and returns its index among the buffers.
size_t operand(LayerCall& call, const char* name, uint64_t count, uint64_t entries = 0) {
  call.inputs.push_back({name, count, entries});
  return call.inputs.size() - 1;
}

// The buffer at an index, or none.
constexpr size_t kNone = SIZE_MAX;
tuff_buffer at(const Buffers& buffers, size_t place) { return place == kNone ? TUFF_NULL_HANDLE : buffers[place]; }

uint64_t count_of(const uint64_t (&shape)[4]) { return shape[0] * shape[1] * shape[2] * shape[3]; }

// The common part of a convolution and its transpose: shapes, input and filter operands, and costs.
template <typename Desc>
LayerCall convolution(Desc& desc, const Layer& layer, uint64_t batch, const std::array<uint64_t, 4>& filter, uint64_t p,
                      uint64_t q) {
  const std::vector<uint64_t>& s = layer.sizes;
  const uint64_t image[4] = {batch, s[0], s[1], s[2]}, result[4] = {batch, s[3], p, q};
  std::copy_n(image, 4, desc.in_shape);
  std::copy_n(filter.data(), 4, desc.filter_shape);
  std::copy_n(result, 4, desc.out_shape);
  std::fill_n(desc.stride, 2, s[6]);
  std::fill_n(desc.padding, 2, s[7]);
  desc.activation = layer.activation;
  LayerCall call;
  call.outputs = count_of(desc.out_shape);
  operand(call, "input", count_of(desc.in_shape));
  operand(call, "filter", count_of(desc.filter_shape));
  call.flops = 2 * static_cast<double>(batch) * layer.work();
  return call;
}

LayerCall conv2d(const Layer& layer, uint64_t batch, int32_t dtype) {
  const std::vector<uint64_t>& s = layer.sizes;
  auto desc = sized<tuff_conv2d_desc>(dtype);
  desc.groups = layer.groups;
  LayerCall call = convolution(desc, layer, batch, {s[3], s[0] / layer.groups, s[4], s[5]},
                               (s[1] + 2 * s[7] - s[4]) / s[6] + 1, (s[2] + 2 * s[7] - s[5]) / s[6] + 1);
  const size_t bias = layer.bias ? operand(call, "bias", s[3]) : kNone;
  const size_t residual = layer.residual ? operand(call, "residual", call.outputs) : kNone;
  call.run = [=](tuff_stream stream, const Buffers& inputs, tuff_buffer output) {
    tuff_conv2d_desc full = desc;
    full.input = inputs[0], full.filter = inputs[1], full.output = output;
    full.bias = at(inputs, bias), full.residual = at(inputs, residual);
    return tuff_conv2d_ex(stream, &full);
  };
  return call;
}

LayerCall conv_transpose2d(const Layer& layer, uint64_t batch, int32_t dtype) {
  const std::vector<uint64_t>& s = layer.sizes;
  auto desc = sized<tuff_conv_transpose2d_desc>(dtype);
  LayerCall call = convolution(desc, layer, batch, {s[0], s[3], s[4], s[5]}, (s[1] - 1) * s[6] + s[4] - 2 * s[7],
                               (s[2] - 1) * s[6] + s[5] - 2 * s[7]);
  const size_t bias = layer.bias ? operand(call, "bias", s[3]) : kNone;
  call.run = [=](tuff_stream stream, const Buffers& inputs, tuff_buffer output) {
    tuff_conv_transpose2d_desc full = desc;
    full.input = inputs[0], full.filter = inputs[1], full.output = output;
    full.bias = at(inputs, bias);
    return tuff_conv_transpose2d_ex(stream, &full);
  };
  return call;
}

LayerCall pool(const Layer& layer, uint64_t batch, int32_t dtype) {
  const std::vector<uint64_t>& s = layer.sizes;
  auto desc = sized<tuff_pool_desc>(dtype);
  desc.batch = batch, desc.channels = s[0], desc.spatial = 2;
  for (int i = 0; i < 2; ++i) {
    desc.in_shape[i] = s[1 + i];
    desc.kernel[i] = s[3], desc.stride[i] = s[4], desc.padding[i] = s[5];
    desc.out_shape[i] = (s[1 + i] + 2 * s[5] - s[3]) / s[4] + 1;
  }
  LayerCall call;
  call.outputs = batch * s[0] * desc.out_shape[0] * desc.out_shape[1];
  operand(call, "input", batch * s[0] * s[1] * s[2]);
  const auto function = layer.operation == Operation::max_pool ? tuff_max_pool : tuff_avg_pool;
  call.run = [=](tuff_stream stream, const Buffers& inputs, tuff_buffer output) {
    tuff_pool_desc full = desc;
    full.input = inputs[0], full.output = output;
    return function(stream, &full);
  };
  return call;
}

LayerCall linear(const Layer& layer, uint64_t batch, int32_t dtype) {
  auto desc = sized<tuff_gemm_desc>(dtype);
  desc.tb = TUFF_TRANS, desc.alpha = 1;
  desc.m = batch * layer.sizes[0], desc.n = layer.sizes[1], desc.k = layer.sizes[2];
  desc.activation = layer.activation;
  desc.bias_axis = layer.bias ? TUFF_BIAS_COLUMNS : TUFF_BIAS_NONE;
  LayerCall call;
  call.outputs = desc.m * desc.n;
  operand(call, "a", desc.m * desc.k);
  operand(call, "b", desc.n * desc.k);
  const size_t bias = layer.bias ? operand(call, "bias", desc.n) : kNone;
  const size_t residual = layer.residual ? operand(call, "residual", call.outputs) : kNone;
  // With few rows, reading the matrix is the limit.
  if (desc.m > 16) call.flops = 2 * static_cast<double>(batch) * layer.work();
  call.run = [=](tuff_stream stream, const Buffers& inputs, tuff_buffer output) {
    tuff_gemm_desc full = desc;
    full.a = inputs[0], full.b = inputs[1], full.c = output;
    full.bias = at(inputs, bias), full.residual = at(inputs, residual);
    return tuff_gemm_ex(stream, &full);
  };
  return call;
}

LayerCall attention(const Layer& layer, uint64_t batch, int32_t dtype) {
  auto desc = sized<tuff_attention_desc>(dtype);
  desc.batch = batch, desc.heads = layer.sizes[0], desc.kv_heads = layer.sizes[1];
  desc.seq_q = layer.sizes[2], desc.seq_kv = layer.sizes[3], desc.head_dim = layer.sizes[4];
  desc.causal = layer.causal ? TUFF_CAUSAL_BOTTOM_RIGHT : TUFF_CAUSAL_NONE;
  const auto strides = [&](uint64_t(&of)[3], uint64_t heads, uint64_t seq) {
    of[0] = heads * seq * desc.head_dim, of[1] = desc.head_dim, of[2] = heads * desc.head_dim;
  };
  strides(desc.q_strides, desc.heads, desc.seq_q);
  strides(desc.o_strides, desc.heads, desc.seq_q);
  strides(desc.k_strides, desc.kv_heads, desc.seq_kv);
  strides(desc.v_strides, desc.kv_heads, desc.seq_kv);
  LayerCall call;
  call.outputs = batch * desc.heads * desc.seq_q * desc.head_dim;
  operand(call, "q", call.outputs);
  operand(call, "k", batch * desc.kv_heads * desc.seq_kv * desc.head_dim);
  operand(call, "v", batch * desc.kv_heads * desc.seq_kv * desc.head_dim);
  if (desc.seq_q > 8) {
    // Scores masked by the causal rule are not counted.
    const auto rows = static_cast<double>(desc.seq_q), keys = static_cast<double>(desc.seq_kv);
    const double seen = layer.causal ? 1 - (rows - 1) / (2 * keys) : 1;
    call.flops = 2 * seen * static_cast<double>(batch) * layer.work();
  }
  call.run = [=](tuff_stream stream, const Buffers& inputs, tuff_buffer output) {
    tuff_attention_desc full = desc;
    full.q = inputs[0], full.k = inputs[1], full.v = inputs[2], full.o = output;
    return tuff_attention_ex(stream, &full);
  };
  return call;
}

LayerCall row_norm(const Layer& layer, uint64_t batch, int32_t dtype) {
  const uint64_t rows = batch * layer.sizes[0], cols = layer.sizes[1];
  const bool centred = layer.operation == Operation::layer_norm;
  LayerCall call;
  call.outputs = rows * cols;
  operand(call, "input", rows * cols);
  operand(call, "weight", cols);
  const size_t bias = centred ? operand(call, "bias", cols) : kNone;
  const size_t residual = layer.residual ? operand(call, "residual", rows * cols) : kNone;
  const auto common = [=](auto desc, const Buffers& inputs, tuff_buffer output) {
    desc.input = inputs[0], desc.weight = inputs[1], desc.output = output;
    desc.rows = rows, desc.cols = cols, desc.epsilon = 1e-5;
    desc.residual = at(inputs, residual);
    return desc;
  };
  if (centred) {
    call.run = [=](tuff_stream stream, const Buffers& inputs, tuff_buffer output) {
      auto desc = common(sized<tuff_layer_norm_desc>(dtype), inputs, output);
      desc.bias = at(inputs, bias);
      return tuff_layer_norm_ex(stream, &desc);
    };
  } else {
    call.run = [=](tuff_stream stream, const Buffers& inputs, tuff_buffer output) {
      const auto desc = common(sized<tuff_rms_norm_desc>(dtype), inputs, output);
      return tuff_rms_norm_ex(stream, &desc);
    };
  }
  return call;
}

LayerCall softmax(const Layer& layer, uint64_t batch, int32_t dtype) {
  const uint64_t rows = batch * layer.sizes[0], cols = layer.sizes[1];
  LayerCall call;
  call.outputs = rows * cols;
  operand(call, "input", rows * cols);
  call.run = [=](tuff_stream stream, const Buffers& inputs, tuff_buffer output) {
    const uint64_t shape[] = {rows, cols};
    return tuff_softmax(stream, dtype, inputs[0], output, shape, 2, 1);
  };
  return call;
}

LayerCall embedding(const Layer& layer, uint64_t batch, int32_t dtype) {
  const uint64_t entries = layer.sizes[0], size = layer.sizes[1], count = batch * layer.sizes[2];
  LayerCall call;
  call.outputs = count * size;
  operand(call, "input", entries * size);
  operand(call, "indices", count, entries);
  call.run = [=](tuff_stream stream, const Buffers& inputs, tuff_buffer output) {
    const uint64_t shape[] = {entries, size};
    return tuff_gather(stream, dtype, TUFF_U32, inputs[0], inputs[1], output, shape, 2, 0, count);
  };
  return call;
}

LayerCall rope(const Layer& layer, uint64_t batch, int32_t dtype) {
  auto desc = sized<tuff_rope_desc>(dtype);
  desc.batch = batch, desc.heads = layer.sizes[0], desc.seq = layer.sizes[1], desc.head_dim = layer.sizes[2];
  const uint64_t strides[] = {desc.heads * desc.seq * desc.head_dim, desc.head_dim, desc.heads * desc.head_dim};
  std::copy_n(strides, 3, desc.input_strides);
  std::copy_n(strides, 3, desc.output_strides);
  LayerCall call;
  call.outputs = batch * strides[0];
  operand(call, "input", call.outputs);
  call.run = [=](tuff_stream stream, const Buffers& inputs, tuff_buffer output) {
    tuff_rope_desc full = desc;
    full.input = inputs[0], full.output = output;
    return tuff_rope_ex(stream, &full);
  };
  return call;
}

LayerCall binary(const Layer& layer, uint64_t batch, int32_t dtype) {
  const uint64_t n = batch * layer.sizes[0];
  const int32_t op = layer.operation == Operation::add ? TUFF_BINARY_ADD : TUFF_BINARY_MUL;
  LayerCall call;
  call.outputs = n;
  operand(call, "a", n);
  operand(call, "b", n);
  call.run = [=](tuff_stream stream, const Buffers& inputs, tuff_buffer output) {
    return tuff_binary(stream, dtype, op, inputs[0], inputs[1], output, n);
  };
  return call;
}

LayerCall concat(const Layer& layer, uint64_t batch, int32_t dtype) {
  const std::vector<uint64_t>& s = layer.sizes;
  LayerCall call;
  call.outputs = batch * (s[0] + s[1]) * s[2] * s[3];
  operand(call, "inputs[0]", batch * s[0] * s[2] * s[3]);
  operand(call, "inputs[1]", batch * s[1] * s[2] * s[3]);
  call.run = [=](tuff_stream stream, const Buffers& inputs, tuff_buffer output) {
    const uint64_t channels[] = {s[0], s[1]}, shape[] = {batch, s[0] + s[1], s[2], s[3]};
    return tuff_concat(stream, dtype, inputs.data(), channels, 2, output, shape, 4, 1);
  };
  return call;
}

LayerCall transpose(const Layer& layer, uint64_t batch, int32_t dtype) {
  LayerCall call;
  call.outputs = batch * layer.sizes[0] * layer.sizes[1];
  operand(call, "input", call.outputs);
  call.run = [=, sizes = layer.sizes](tuff_stream stream, const Buffers& inputs, tuff_buffer output) {
    const uint64_t shape[] = {batch, sizes[0], sizes[1]};
    const uint32_t order[] = {0, 2, 1};
    return tuff_permute(stream, dtype, inputs[0], output, shape, 3, order);
  };
  return call;
}

LayerCall without_bytes(const Layer& layer, uint64_t batch, int32_t dtype) {
  switch (layer.operation) {
    case Operation::conv2d: return conv2d(layer, batch, dtype);
    case Operation::conv_transpose2d: return conv_transpose2d(layer, batch, dtype);
    case Operation::max_pool:
    case Operation::avg_pool: return pool(layer, batch, dtype);
    case Operation::linear: return linear(layer, batch, dtype);
    case Operation::attention: return attention(layer, batch, dtype);
    case Operation::layer_norm:
    case Operation::rms_norm: return row_norm(layer, batch, dtype);
    case Operation::softmax: return softmax(layer, batch, dtype);
    case Operation::embedding: return embedding(layer, batch, dtype);
    case Operation::rope: return rope(layer, batch, dtype);
    case Operation::add:
    case Operation::mul: return binary(layer, batch, dtype);
    case Operation::concat: return concat(layer, batch, dtype);
    case Operation::transpose: break;
  }
  return transpose(layer, batch, dtype);
}

}  // namespace

LayerCall make_call(const Layer& layer, uint64_t batch, int32_t dtype) {
  LayerCall call = without_bytes(layer, batch, dtype);
  const double element = dtype == TUFF_F32 ? 4 : 2;
  call.bytes = element * static_cast<double>(call.outputs);
  for (const Operand& input : call.inputs) {
    call.bytes += (input.entries != 0 ? 4 : element) * static_cast<double>(input.count);
  }
  // Only the selected rows of an embedding table are read.
  if (layer.operation == Operation::embedding) {
    call.bytes += element * (static_cast<double>(call.outputs) - static_cast<double>(call.inputs[0].count));
  }
  return call;
}

}  // namespace networks
