#include "support/size_table.hpp"

#include <initializer_list>
#include <type_traits>

namespace tuff_test {
namespace {

constexpr int32_t kF32 = TUFF_F32;
using Numbers = std::vector<SizeNumber>;
unsigned char host_bytes[2 * kSizeBytes];

// name[0], name[1], …
Numbers array(const std::string& name, std::initializer_list<uint64_t> values) {
  Numbers numbers;
  for (const uint64_t value : values) numbers.push_back({name + "[" + std::to_string(numbers.size()) + "]", value});
  return numbers;
}

Numbers all(std::initializer_list<Numbers> parts) {
  Numbers numbers;
  for (const Numbers& part : parts) numbers.insert(numbers.end(), part.begin(), part.end());
  return numbers;
}

template <typename T>
T sized(int32_t dtype = kF32) {
  T desc{};
  desc.struct_size = sizeof(T);
  if constexpr (requires { desc.dtype; }) desc.dtype = dtype;
  return desc;
}

// Assigns successive values to fields, in the order in which they are named.
class Values {
 public:
  explicit Values(const uint64_t* values) : next_(values) {}
  template <typename... T>
  void into(T&... fields) {
    (put(fields), ...);
  }
  template <typename T>
  void put(T& field) {
    if constexpr (std::is_array_v<T>) {
      for (auto& one : field) put(one);
    } else {
      field = static_cast<T>(*next_++);
    }
  }
  template <typename T>
  void some(T* fields, size_t count) {
    for (size_t i = 0; i < count; ++i) put(fields[i]);
  }

 private:
  const uint64_t* next_;
};

template <typename Desc>
Desc convolution(const tuff_buffer* x) {
  auto desc = sized<Desc>();
  desc.input = x[0], desc.filter = x[1], desc.output = x[2], desc.bias = x[3];
  return desc;
}

template <typename Desc>
void convolution_numbers(Desc& desc, const uint64_t* v) {
  Values values(v);
  values.into(desc.in_shape, desc.filter_shape, desc.out_shape, desc.stride, desc.padding);
  values.into(desc.dilation, desc.padding_end, desc.groups);
}

const Numbers kConv2d = all({array("in_shape", {1, 2, 6, 5}),
                             array("filter_shape", {4, 1, 3, 2}),
                             array("out_shape", {1, 4, 6, 4}),
                             array("stride", {1, 1}),
                             array("padding", {1, 0}),
                             array("dilation", {1, 1}),
                             array("padding_end", {1, 0}),
                             {{"groups", 2}}});
const Numbers kPool = all({{{"batch", 2}, {"channels", 3}},
                           array("in_shape", {5, 4, 6}),
                           array("out_shape", {3, 2, 3}),
                           array("kernel", {3, 2, 2}),
                           array("stride", {2, 2, 2}),
                           array("padding", {1, 0, 0}),
                           array("dilation", {1, 1, 1}),
                           {{"spatial", 3}}});

tuff_pool_desc pool(const tuff_buffer* x, const uint64_t* v) {
  auto desc = sized<tuff_pool_desc>();
  desc.input = x[0], desc.output = x[1];
  Values values(v);
  values.into(desc.batch, desc.channels, desc.in_shape, desc.out_shape, desc.kernel, desc.stride);
  values.into(desc.padding, desc.dilation, desc.spatial);
  return desc;
}

std::vector<SizeCall> products() {
  return {
      {"tuff_gemm",
       {{"m", 3}, {"n", 4}, {"k", 5}, {"lda", 5}, {"ldb", 4}, {"ldc", 4}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         return tuff_gemm(s, kF32, TUFF_NO_TRANS, TUFF_NO_TRANS, v[0], v[1], v[2], 1, x[0], v[3], x[1], v[4], 0, x[2],
                          v[5]);
       }},
      {"tuff_gemm_ex",
       {{"m", 3}, {"n", 4}, {"k", 5}, {"lda", 3}, {"ldb", 5}, {"ldc", 6}, {"ld_residual", 4}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = sized<tuff_gemm_desc>();
         desc.ta = desc.tb = TUFF_TRANS, desc.alpha = 1, desc.bias_axis = TUFF_BIAS_ROWS;
         desc.a = x[0], desc.b = x[1], desc.c = x[2], desc.bias = x[3], desc.residual = x[4];
         Values(v).into(desc.m, desc.n, desc.k, desc.lda, desc.ldb, desc.ldc, desc.ld_residual);
         return tuff_gemm_ex(s, &desc);
       }},
      {"tuff_batched_gemm",
       {{"m", 3},
        {"n", 4},
        {"k", 5},
        {"lda", 5},
        {"stride_a", 15},
        {"ldb", 5},
        {"stride_b", 0},
        {"ldc", 4},
        {"stride_c", 12},
        {"batch_count", 3}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         return tuff_batched_gemm(s, kF32, TUFF_NO_TRANS, TUFF_TRANS, v[0], v[1], v[2], 1, x[0], v[3], v[4], x[1], v[5],
                                  v[6], 1, x[2], v[7], v[8], v[9]);
       }},
      {"tuff_batched_gemm_ex",
       {{"m", 3},
        {"n", 4},
        {"k", 5},
        {"lda", 5},
        {"ldb", 4},
        {"ldc", 4},
        {"stride_a", 15},
        {"stride_b", 20},
        {"stride_c", 12},
        {"batch_count", 2},
        {"ld_residual", 4},
        {"stride_bias", 4},
        {"stride_residual", 12}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = sized<tuff_batched_gemm_desc>();
         desc.alpha = 1, desc.bias_axis = TUFF_BIAS_COLUMNS;
         desc.a = x[0], desc.b = x[1], desc.c = x[2], desc.bias = x[3], desc.residual = x[4];
         Values(v).into(desc.m, desc.n, desc.k, desc.lda, desc.ldb, desc.ldc, desc.stride_a, desc.stride_b,
                        desc.stride_c, desc.batch_count, desc.ld_residual, desc.stride_bias, desc.stride_residual);
         return tuff_batched_gemm_ex(s, &desc);
       }},
      {"tuff_attention",
       {{"batch", 2}, {"heads", 3}, {"seq_q", 4}, {"seq_kv", 5}, {"head_dim", 6}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         return tuff_attention(s, kF32, x[0], x[1], x[2], x[3], v[0], v[1], v[2], v[3], v[4], 0.5, TUFF_CAUSAL_NONE);
       }},
      {"tuff_attention_ex",
       all({{{"batch", 2},
             {"heads", 4},
             {"kv_heads", 2},
             {"seq_q", 3},
             {"seq_kv", 5},
             {"head_dim", 6},
             {"head_dim_v", 4}},
            array("q_strides", {72, 18, 6}),
            array("k_strides", {60, 30, 6}),
            array("v_strides", {40, 20, 4}),
            array("o_strides", {48, 12, 4}),
            array("bias_strides", {0, 15, 5}),
            {{"window_left", 3}, {"window_right", 2}}}),
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = sized<tuff_attention_desc>();
         desc.q = x[0], desc.k = x[1], desc.v = x[2], desc.o = x[3], desc.bias = x[4], desc.lse = x[5];
         desc.causal = TUFF_CAUSAL_BOTTOM_RIGHT;
         Values values(v);
         values.into(desc.batch, desc.heads, desc.kv_heads, desc.seq_q, desc.seq_kv, desc.head_dim, desc.head_dim_v);
         values.into(desc.q_strides, desc.k_strides, desc.v_strides, desc.o_strides, desc.bias_strides);
         values.into(desc.window_left, desc.window_right);
         return tuff_attention_ex(s, &desc);
       }},
      {"tuff_rope",
       {{"batch", 2}, {"heads", 3}, {"seq", 4}, {"head_dim", 6}, {"offset", 5}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         return tuff_rope(s, kF32, x[0], x[1], v[0], v[1], v[2], v[3], static_cast<int64_t>(v[4]), 10000);
       }},
      {"tuff_rope_ex",
       all({{{"batch", 2}, {"heads", 3}, {"seq", 4}, {"head_dim", 8}, {"rotary_dim", 6}},
            array("input_strides", {96, 32, 8}),
            array("output_strides", {96, 8, 24}),
            {{"positions_stride", 4}, {"offset", 5}}}),
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = sized<tuff_rope_desc>();
         desc.input = x[0], desc.output = x[1], desc.positions = x[2];
         Values values(v);
         values.into(desc.batch, desc.heads, desc.seq, desc.head_dim, desc.rotary_dim, desc.input_strides);
         values.into(desc.output_strides, desc.positions_stride, desc.offset);
         return tuff_rope_ex(s, &desc);
       }},
  };
}

std::vector<SizeCall> images() {
  return {
      {"tuff_conv1d_ex",
       all({array("in_shape", {2, 2, 9}),
            array("filter_shape", {4, 2, 2}),
            array("out_shape", {2, 4, 4}),
            array("stride", {2}),
            array("padding", {0}),
            array("dilation", {2}),
            array("padding_end", {0}),
            {{"groups", 1}}}),
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = convolution<tuff_conv1d_desc>(x);
         convolution_numbers(desc, v);
         return tuff_conv1d_ex(s, &desc);
       }},
      {"tuff_conv2d",
       all({array("in_shape", {1, 2, 6, 5}), array("filter_shape", {3, 2, 3, 2}), array("out_shape", {1, 3, 4, 4}),
            array("stride", {1, 1}), array("padding", {0, 0})}),
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         return tuff_conv2d(s, kF32, x[0], v, x[1], v + 4, x[2], v + 8, v + 12, v + 14);
       }},
      {"tuff_conv2d_ex", kConv2d,
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = convolution<tuff_conv2d_desc>(x);
         desc.asymmetric = 1;
         convolution_numbers(desc, v);
         return tuff_conv2d_ex(s, &desc);
       }},
      {"tuff_conv2d_ex", kConv2d,
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = convolution<tuff_conv2d_desc>(x);
         desc.asymmetric = 1, desc.layout = TUFF_LAYOUT_NHWC, desc.precision = TUFF_PRECISION_ALLOW_WINOGRAD;
         convolution_numbers(desc, v);
         return tuff_conv2d_ex(s, &desc);
       }},
      {"tuff_conv3d_ex",
       all({array("in_shape", {2, 2, 3, 4, 3}),
            array("filter_shape", {2, 2, 2, 2, 2}),
            array("out_shape", {2, 2, 2, 3, 2}),
            array("stride", {1, 1, 1}),
            array("padding", {0, 0, 0}),
            array("dilation", {1, 1, 1}),
            array("padding_end", {0, 0, 0}),
            {{"groups", 1}}}),
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = convolution<tuff_conv3d_desc>(x);
         convolution_numbers(desc, v);
         return tuff_conv3d_ex(s, &desc);
       }},
      {"tuff_conv_transpose2d_ex",
       all({array("in_shape", {2, 2, 3, 3}),
            array("filter_shape", {2, 3, 2, 2}),
            array("out_shape", {2, 3, 6, 6}),
            array("stride", {2, 2}),
            array("padding", {0, 0}),
            array("output_padding", {0, 0}),
            array("dilation", {1, 1}),
            {{"groups", 1}}}),
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = convolution<tuff_conv_transpose2d_desc>(x);
         Values values(v);
         values.into(desc.in_shape, desc.filter_shape, desc.out_shape, desc.stride, desc.padding);
         values.into(desc.output_padding, desc.dilation, desc.groups);
         return tuff_conv_transpose2d_ex(s, &desc);
       }},
      {"tuff_max_pool", kPool,
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = pool(x, v);
         desc.indices = x[2];
         return tuff_max_pool(s, &desc);
       }},
      {"tuff_avg_pool", kPool,
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = pool(x, v);
         desc.count_include_pad = 1;
         return tuff_avg_pool(s, &desc);
       }},
      {"tuff_avg_pool",
       all({{{"batch", 2}, {"channels", 3}}, array("in_shape", {5, 6}), array("out_shape", {3, 4}), {{"spatial", 2}}}),
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = sized<tuff_pool_desc>();
         desc.input = x[0], desc.output = x[1], desc.adaptive = 1;
         Values values(v);
         values.into(desc.batch, desc.channels);
         values.some(desc.in_shape, 2), values.some(desc.out_shape, 2), values.put(desc.spatial);
         return tuff_avg_pool(s, &desc);
       }},
      {"tuff_max_pool",
       {{"channels", 3}, {"in_shape[0]", 5}, {"out_shape[0]", 3}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = sized<tuff_pool_desc>();
         desc.input = x[0], desc.output = x[1], desc.indices = x[2], desc.adaptive = 1, desc.batch = desc.spatial = 1;
         Values values(v);
         values.into(desc.channels), values.some(desc.in_shape, 1), values.some(desc.out_shape, 1);
         return tuff_max_pool(s, &desc);
       }},
      {"tuff_resize",
       all({{{"batch", 2}, {"channels", 3}},
            array("in_shape", {3, 4, 2}),
            array("out_shape", {3, 6, 3}),
            {{"spatial", 3}}}),
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = sized<tuff_resize_desc>();
         desc.input = x[0], desc.output = x[1], desc.mode = TUFF_RESIZE_LINEAR, desc.layout = TUFF_LAYOUT_NHWC;
         Values(v).into(desc.batch, desc.channels, desc.in_shape, desc.out_shape, desc.spatial);
         return tuff_resize(s, &desc);
       }},
  };
}

std::vector<SizeCall> rows() {
  return {
      {"tuff_reduce_ex", all({array("shape", {4, 5, 6}), {{"rank", 3}, {"axis", 1}}}),
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = sized<tuff_reduce_desc>();
         desc.op = TUFF_REDUCE_SUM, desc.input = x[0], desc.output = x[1];
         Values values(v);
         values.some(desc.shape, 3), values.into(desc.rank, desc.axis);
         return tuff_reduce_ex(s, &desc);
       }},
      {"tuff_reduce", array("shape", {4, 5, 6}),
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         return tuff_reduce(s, kF32, TUFF_REDUCE_ARGMAX, x[0], x[1], v, 3, 2);
       }},
      {"tuff_cumsum", all({array("shape", {4, 5, 6}), {{"rank", 3}, {"axis", 1}}}),
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = sized<tuff_scan_desc>();
         desc.input = x[0], desc.output = x[1];
         Values values(v);
         values.some(desc.shape, 3), values.into(desc.rank, desc.axis);
         return tuff_cumsum(s, &desc);
       }},
      {"tuff_cumprod", all({array("shape", {4, 12}), {{"axis", 1}}}),
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = sized<tuff_scan_desc>();
         desc.input = x[0], desc.output = x[1], desc.rank = 2, desc.reverse = 1;
         Values values(v);
         values.some(desc.shape, 2), values.put(desc.axis);
         return tuff_cumprod(s, &desc);
       }},
      {"tuff_unary_ex",
       {{"n", 10}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = sized<tuff_unary_desc>();
         desc.op = TUFF_UNARY_NEG, desc.input = x[0], desc.output = x[1], desc.n = v[0];
         return tuff_unary_ex(s, &desc);
       }},
      {"tuff_binary_ex", all({{{"n", 0}, {"rank", 3}}, array("a_shape", {4, 1, 6}), array("b_shape", {1, 5, 6})}),
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = sized<tuff_binary_desc>();
         desc.op = TUFF_BINARY_SUB, desc.a = x[0], desc.b = x[1], desc.output = x[2];
         Values values(v);
         values.into(desc.n, desc.rank), values.some(desc.a_shape, 3), values.some(desc.b_shape, 3);
         return tuff_binary_ex(s, &desc);
       }},
      {"tuff_softmax_ex",
       all({array("shape", {4, 5, 6}), {{"rank", 3}, {"axis", 2}, {"mask_rows", 5}, {"mask_repeat", 2}}}),
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = sized<tuff_softmax_desc>();
         desc.input = x[0], desc.output = x[1], desc.mask = x[2];
         Values values(v);
         values.some(desc.shape, 3), values.into(desc.rank, desc.axis, desc.mask_rows, desc.mask_repeat);
         return tuff_softmax_ex(s, &desc);
       }},
      {"tuff_softmax", array("shape", {4, 5, 6}),
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         return tuff_softmax(s, kF32, x[0], x[1], v, 3, 1);
       }},
      {"tuff_layer_norm_ex",
       {{"rows", 3}, {"cols", 8}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = sized<tuff_layer_norm_desc>();
         desc.input = x[0], desc.residual = x[1], desc.output = x[2], desc.sum = x[3], desc.epsilon = 1;
         Values(v).into(desc.rows, desc.cols);
         return tuff_layer_norm_ex(s, &desc);
       }},
      {"tuff_rms_norm",
       {{"rows", 3}, {"cols", 8}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         return tuff_rms_norm(s, kF32, x[0], x[1], x[2], v[0], v[1], 1);
       }},
      {"tuff_group_norm",
       {{"batch", 2}, {"channels", 6}, {"inner", 5}, {"groups", 3}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         return tuff_group_norm(s, kF32, x[0], x[1], x[2], x[3], v[0], v[1], v[2], v[3], 1);
       }},
      {"tuff_batch_norm",
       {{"batch", 2}, {"channels", 3}, {"inner", 5}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         return tuff_batch_norm(s, kF32, x[0], x[1], x[2], 0, x[3], x[4], v[0], v[1], v[2], 1);
       }},
  };
}

std::vector<SizeCall> moves() {
  return {
      {"tuff_permute_ex", all({array("shape", {4, 5, 6}), array("order", {2, 0, 1}), {{"rank", 3}}}),
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = sized<tuff_permute_desc>();
         desc.input = x[0], desc.output = x[1];
         Values values(v);
         values.some(desc.shape, 3), values.some(desc.order, 3), values.put(desc.rank);
         return tuff_permute_ex(s, &desc);
       }},
      {"tuff_cast",
       {{"n", 10}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         return tuff_cast(s, kF32, TUFF_F64, x[0], x[1], v[0]);
       }},
      {"tuff_slice_ex",
       all({array("shape", {4, 5, 6}),
            array("start", {1, 4, 0}),
            array("step", {1, ~uint64_t{1}, 2}),
            array("out_shape", {3, 3, 3}),
            {{"rank", 3}}}),
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = sized<tuff_slice_desc>();
         desc.input = x[0], desc.output = x[1];
         Values values(v);
         values.some(desc.shape, 3), values.some(desc.start, 3), values.some(desc.step, 3);
         values.some(desc.out_shape, 3), values.put(desc.rank);
         return tuff_slice_ex(s, &desc);
       }},
      {"tuff_concat_ex", all({array("sizes", {2, 3}), array("shape", {4, 5, 6}), {{"rank", 3}, {"axis", 1}}}),
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = sized<tuff_concat_desc>();
         desc.inputs = x, desc.sizes = v, desc.count = 2, desc.output = x[2];
         Values values(v + 2);
         values.some(desc.shape, 3), values.into(desc.rank, desc.axis);
         return tuff_concat_ex(s, &desc);
       }},
      {"tuff_gather", all({array("shape", {4, 5, 6}), {{"rank", 3}, {"axis", 1}, {"count", 7}}}),
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         return tuff_gather(s, kF32, TUFF_U32, x[0], x[1], x[2], v, static_cast<uint32_t>(v[3] <= 3 ? v[3] : 0),
                            static_cast<uint32_t>(v[4]), v[5]);
       }},
      {"tuff_gather_ex", all({array("shape", {4, 5, 6}), array("index_shape", {4, 7, 6}), {{"rank", 3}, {"axis", 1}}}),
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = sized<tuff_gather_desc>();
         desc.input = x[0], desc.indices = x[1], desc.output = x[2], desc.index_type = TUFF_I32, desc.elementwise = 1;
         Values values(v);
         values.some(desc.shape, 3), values.some(desc.index_shape, 3), values.into(desc.rank, desc.axis);
         return tuff_gather_ex(s, &desc);
       }},
      {"tuff_view",
       {{"offset", 4}, {"bytes", 8}},
       [](tuff_stream, const tuff_buffer* x, const uint64_t* v) {
         tuff_buffer view = 0;
         const tuff_status status = tuff_view(x[0], v[0], v[1], &view);
         if (status == TUFF_OK) tuff_free(view);
         return status;
       }},
      {"tuff_fill",
       {{"offset", 4}, {"bytes", 8}, {"pattern_bytes", 4}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         return tuff_fill(s, x[0], v[0], v[1], "0123456789abcdef", v[2]);
       }},
      {"tuff_copy_htod",
       {{"dst_offset", 4}, {"bytes", 8}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         return tuff_copy_htod(s, x[0], v[0], host_bytes, v[1]);
       }},
      {"tuff_copy_dtoh",
       {{"src_offset", 4}, {"bytes", 8}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         static unsigned char target[2 * kSizeBytes];
         return tuff_copy_dtoh(s, target, x[0], v[0], v[1]);
       }},
      {"tuff_copy_dtod",
       {{"dst_offset", 4}, {"src_offset", 8}, {"bytes", 12}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         return tuff_copy_dtod(s, x[0], v[0], x[1], v[1], v[2]);
       }},
      {"tuff_copy_peer",
       {{"dst_offset", 64}, {"src_offset", 8}, {"bytes", 12}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         return tuff_copy_peer(s, x[0], v[0], s, x[0], v[1], v[2]);
       }},
  };
}

}  // namespace

const std::vector<SizeCall>& size_calls() {
  static const std::vector<SizeCall> calls = [] {
    std::vector<SizeCall> result;
    for (const auto& part : {products(), images(), rows(), moves()}) {
      result.insert(result.end(), part.begin(), part.end());
    }
    return result;
  }();
  return calls;
}

}  // namespace tuff_test
