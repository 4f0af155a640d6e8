#include "support/call_table.hpp"

#include <cstddef>

namespace tuff_test {
namespace {

constexpr int32_t kF32 = TUFF_F32;
constexpr uint64_t kOutside[4] = {1, 2, 6, 5}, kFilter[4] = {3, 2, 3, 2}, kInside[4] = {1, 3, 4, 4};
constexpr uint64_t kStride[2] = {1, 1}, kPadding[2] = {0, 0}, kShape[3] = {4, 5, 6};
constexpr uint32_t kOrder[3] = {2, 0, 1};
constexpr uint64_t kStart[3] = {1, 0, 2}, kPart[3] = {3, 5, 2}, kSizes[2] = {2, 3};
uint64_t result_size;
unsigned char host_bytes[64];

template <typename T>
T sized() {
  T desc{};
  desc.struct_size = sizeof(T);
  return desc;
}

template <typename T>
T operation() {
  T desc = sized<T>();
  desc.dtype = kF32;
  return desc;
}

tuff_scan_desc scan(tuff_buffer input, tuff_buffer output) {
  auto desc = operation<tuff_scan_desc>();
  desc.input = input, desc.output = output;
  desc.shape[0] = 6, desc.shape[1] = 10, desc.rank = 2, desc.axis = 1;
  return desc;
}

tuff_pool_desc pool(tuff_buffer input, tuff_buffer output) {
  auto desc = operation<tuff_pool_desc>();
  desc.input = input, desc.output = output;
  desc.batch = 2, desc.channels = 3, desc.spatial = 1;
  desc.in_shape[0] = 9, desc.out_shape[0] = 4, desc.kernel[0] = 3, desc.stride[0] = 2;
  return desc;
}

}  // namespace

const std::vector<BufferCall>& buffer_calls() {
  static const std::vector<BufferCall> calls = {
      {"tuff_view",
       {"buffer"},
       false,
       [](tuff_stream, const tuff_buffer* x) {
         tuff_buffer view = 0;
         const tuff_status status = tuff_view(x[0], 4, 8, &view);
         if (status == TUFF_OK) tuff_free(view);
         return status;
       }},
      {"tuff_buffer_size",
       {"buffer"},
       false,
       [](tuff_stream, const tuff_buffer* x) { return tuff_buffer_size(x[0], &result_size); }},
      {"tuff_copy_htod",
       {"dst"},
       true,
       [](tuff_stream s, const tuff_buffer* x) { return tuff_copy_htod(s, x[0], 4, host_bytes, 8); }},
      {"tuff_copy_dtoh",
       {"src"},
       true,
       [](tuff_stream s, const tuff_buffer* x) { return tuff_copy_dtoh(s, host_bytes, x[0], 4, 8); }},
      {"tuff_copy_dtod",
       {"dst", "src"},
       true,
       [](tuff_stream s, const tuff_buffer* x) { return tuff_copy_dtod(s, x[0], 4, x[1], 8, 12); }},
      {"tuff_fill",
       {"buffer"},
       true,
       [](tuff_stream s, const tuff_buffer* x) { return tuff_fill(s, x[0], 4, 8, "abcd", 4); }},
      {"tuff_gemm",
       {"a", "b", "c"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         return tuff_gemm(s, kF32, TUFF_NO_TRANS, TUFF_NO_TRANS, 3, 4, 5, 1, x[0], 5, x[1], 4, 0, x[2], 4);
       }},
      {"tuff_gemm_ex",
       {"a", "b", "c"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_gemm_desc>();
         desc.m = 3, desc.n = 4, desc.k = 5, desc.alpha = 1;
         desc.a = x[0], desc.b = x[1], desc.c = x[2];
         return tuff_gemm_ex(s, &desc);
       }},
      {"tuff_batched_gemm",
       {"a", "b", "c"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         return tuff_batched_gemm(s, kF32, TUFF_NO_TRANS, TUFF_TRANS, 3, 4, 5, 1, x[0], 5, 15, x[1], 5, 0, 1, x[2], 4,
                                  12, 3);
       }},
      {"tuff_batched_gemm_ex",
       {"a", "b", "c"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_batched_gemm_desc>();
         desc.m = 3, desc.n = 4, desc.k = 5, desc.alpha = 1;
         desc.a = x[0], desc.b = x[1], desc.c = x[2];
         desc.stride_a = 15, desc.stride_b = 20, desc.stride_c = 12, desc.batch_count = 2;
         return tuff_batched_gemm_ex(s, &desc);
       }},
      {"tuff_batched_gemm_ex",
       {"a_array[0]", "b_array[0]", "c_array[0]"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_batched_gemm_desc>();
         desc.m = 3, desc.n = 4, desc.k = 5, desc.alpha = 1;
         desc.a_array = x, desc.b_array = x + 1, desc.c_array = x + 2, desc.batch_count = 1;
         return tuff_batched_gemm_ex(s, &desc);
       }},
      {"tuff_conv2d",
       {"input", "filter", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         return tuff_conv2d(s, kF32, x[0], kOutside, x[1], kFilter, x[2], kInside, kStride, kPadding);
       }},
      {"tuff_conv2d_ex",
       {"input", "filter", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_conv2d_desc>();
         desc.input = x[0], desc.filter = x[1], desc.output = x[2];
         for (int i = 0; i < 4; ++i) {
           desc.in_shape[i] = kOutside[i], desc.filter_shape[i] = kFilter[i], desc.out_shape[i] = kInside[i];
         }
         return tuff_conv2d_ex(s, &desc);
       }},
      {"tuff_conv1d",
       {"input", "filter", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         const uint64_t in[3] = {2, 3, 9}, filter[3] = {4, 3, 2}, out[3] = {2, 4, 8};
         return tuff_conv1d(s, kF32, x[0], in, x[1], filter, x[2], out, 1, 0);
       }},
      {"tuff_conv1d_ex",
       {"input", "filter", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_conv1d_desc>();
         desc.input = x[0], desc.filter = x[1], desc.output = x[2];
         for (uint64_t* shape : {desc.in_shape, desc.filter_shape, desc.out_shape}) shape[0] = shape[1] = 2;
         desc.in_shape[2] = 5, desc.filter_shape[2] = 2, desc.out_shape[2] = 4;
         return tuff_conv1d_ex(s, &desc);
       }},
      {"tuff_conv3d",
       {"input", "filter", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         const uint64_t in[5] = {1, 2, 3, 4, 3}, filter[5] = {2, 2, 2, 2, 2}, out[5] = {1, 2, 2, 3, 2};
         const uint64_t ones[3] = {1, 1, 1}, zeros[3] = {0, 0, 0};
         return tuff_conv3d(s, kF32, x[0], in, x[1], filter, x[2], out, ones, zeros);
       }},
      {"tuff_conv3d_ex",
       {"input", "filter", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_conv3d_desc>();
         desc.input = x[0], desc.filter = x[1], desc.output = x[2];
         for (int i = 0; i < 5; ++i) desc.in_shape[i] = 2, desc.filter_shape[i] = desc.out_shape[i] = 1;
         desc.filter_shape[1] = 2;
         for (int i = 2; i < 5; ++i) desc.filter_shape[i] = 2;
         desc.filter_shape[0] = desc.out_shape[1] = 3, desc.out_shape[0] = 2;
         return tuff_conv3d_ex(s, &desc);
       }},
      {"tuff_conv_transpose2d",
       {"input", "filter", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         const uint64_t in[4] = {1, 2, 3, 3}, filter[4] = {2, 3, 2, 2}, out[4] = {1, 3, 4, 4};
         return tuff_conv_transpose2d(s, kF32, x[0], in, x[1], filter, x[2], out, kStride, kPadding, kPadding);
       }},
      {"tuff_conv_transpose2d_ex",
       {"input", "filter", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_conv_transpose2d_desc>();
         desc.input = x[0], desc.filter = x[1], desc.output = x[2];
         for (int i = 0; i < 4; ++i) desc.in_shape[i] = desc.filter_shape[i] = 2, desc.out_shape[i] = i < 2 ? 2 : 4;
         desc.stride[0] = desc.stride[1] = 2;
         return tuff_conv_transpose2d_ex(s, &desc);
       }},
      {"tuff_attention",
       {"q", "k", "v", "o"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         return tuff_attention(s, kF32, x[0], x[1], x[2], x[3], 2, 3, 4, 5, 6, 0.5, TUFF_CAUSAL_NONE);
       }},
      {"tuff_attention_ex",
       {"q", "k", "v", "o"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_attention_desc>();
         desc.q = x[0], desc.k = x[1], desc.v = x[2], desc.o = x[3];
         desc.batch = 2, desc.heads = 3, desc.seq_q = 4, desc.seq_kv = 5, desc.head_dim = 6;
         desc.softcap = 20;
         return tuff_attention_ex(s, &desc);
       }},
      {"tuff_reduce",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         return tuff_reduce(s, kF32, TUFF_REDUCE_SUM, x[0], x[1], kShape, 3, 1);
       }},
      {"tuff_reduce_ex",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_reduce_desc>();
         desc.op = TUFF_REDUCE_MAX, desc.rank = 2, desc.axis = 1;
         desc.input = x[0], desc.output = x[1];
         desc.shape[0] = 7, desc.shape[1] = 8;
         return tuff_reduce_ex(s, &desc);
       }},
      {"tuff_cumsum",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         const auto desc = scan(x[0], x[1]);
         return tuff_cumsum(s, &desc);
       }},
      {"tuff_cumprod",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = scan(x[0], x[1]);
         desc.exclusive = 1, desc.reverse = 1;
         return tuff_cumprod(s, &desc);
       }},
      {"tuff_unary",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) { return tuff_unary(s, kF32, TUFF_UNARY_NEG, x[0], x[1], 10); }},
      {"tuff_unary_ex",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_unary_desc>();
         desc.op = TUFF_UNARY_ABS, desc.n = 10;
         desc.input = x[0], desc.output = x[1];
         return tuff_unary_ex(s, &desc);
       }},
      {"tuff_binary",
       {"a", "b", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) { return tuff_binary(s, kF32, TUFF_BINARY_ADD, x[0], x[1], x[2], 10); }},
      {"tuff_binary_ex",
       {"a", "b", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_binary_desc>();
         desc.op = TUFF_BINARY_MUL, desc.n = 10;
         desc.a = x[0], desc.b = x[1], desc.output = x[2];
         return tuff_binary_ex(s, &desc);
       }},
      {"tuff_softmax",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) { return tuff_softmax(s, kF32, x[0], x[1], kShape, 3, 2); }},
      {"tuff_softmax_ex",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_softmax_desc>();
         desc.input = x[0], desc.output = x[1];
         desc.shape[0] = 7, desc.shape[1] = 8, desc.rank = 2;
         return tuff_softmax_ex(s, &desc);
       }},
      {"tuff_layer_norm",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) { return tuff_layer_norm(s, kF32, x[0], 0, 0, x[1], 7, 9, 1e-5); }},
      {"tuff_layer_norm_ex",
       {"input", "residual", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_layer_norm_desc>();
         desc.rows = 3, desc.cols = 8, desc.epsilon = 1e-5;
         desc.input = x[0], desc.residual = x[1], desc.output = x[2];
         // Without a residual the call would be valid too; a sum without a residual is not.
         if (x[1] == TUFF_NULL_HANDLE) desc.sum = x[3];
         return tuff_layer_norm_ex(s, &desc);
       }},
      {"tuff_rms_norm",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) { return tuff_rms_norm(s, kF32, x[0], 0, x[1], 7, 8, 1e-5); }},
      {"tuff_rms_norm_ex",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_rms_norm_desc>();
         desc.rows = 3, desc.cols = 7, desc.epsilon = 1e-5;
         desc.input = x[0], desc.output = x[1];
         return tuff_rms_norm_ex(s, &desc);
       }},
      {"tuff_group_norm",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         return tuff_group_norm(s, kF32, x[0], 0, 0, x[1], 2, 6, 5, 3, 1e-5);
       }},
      {"tuff_group_norm_ex",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_group_norm_desc>();
         desc.batch = 2, desc.channels = 3, desc.inner = 8, desc.epsilon = 1e-5;
         desc.input = x[0], desc.output = x[1];
         return tuff_group_norm_ex(s, &desc);
       }},
      {"tuff_batch_norm",
       {"input", "mean", "variance", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         return tuff_batch_norm(s, kF32, x[0], x[1], x[2], 0, 0, x[3], 2, 3, 4, 1e-5);
       }},
      {"tuff_batch_norm_ex",
       {"input", "mean", "variance", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_batch_norm_desc>();
         desc.batch = 2, desc.channels = 3, desc.inner = 5, desc.epsilon = 1e-5;
         desc.input = x[0], desc.mean = x[1], desc.variance = x[2], desc.output = x[3];
         return tuff_batch_norm_ex(s, &desc);
       }},
      {"tuff_permute",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) { return tuff_permute(s, kF32, x[0], x[1], kShape, 3, kOrder); }},
      {"tuff_permute_ex",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_permute_desc>();
         desc.input = x[0], desc.output = x[1];
         desc.shape[0] = 7, desc.shape[1] = 8, desc.order[0] = 1, desc.rank = 2;
         return tuff_permute_ex(s, &desc);
       }},
      {"tuff_cast",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) { return tuff_cast(s, kF32, TUFF_I32, x[0], x[1], 10); }},
      {"tuff_cast_ex",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = sized<tuff_cast_desc>();
         desc.input_type = TUFF_I32, desc.output_type = kF32, desc.n = 10;
         desc.input = x[0], desc.output = x[1];
         return tuff_cast_ex(s, &desc);
       }},
      {"tuff_slice",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         return tuff_slice(s, kF32, x[0], x[1], kShape, 3, kStart, nullptr, kPart);
       }},
      {"tuff_slice_ex",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_slice_desc>();
         desc.input = x[0], desc.output = x[1];
         desc.shape[0] = 7, desc.start[0] = 6, desc.step[0] = -2, desc.out_shape[0] = 4, desc.rank = 1;
         return tuff_slice_ex(s, &desc);
       }},
      {"tuff_concat",
       {"inputs[0]", "inputs[1]", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) { return tuff_concat(s, kF32, x, kSizes, 2, x[2], kShape, 3, 1); }},
      {"tuff_concat_ex",
       {"inputs[0]", "inputs[1]", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_concat_desc>();
         desc.inputs = x, desc.sizes = kSizes, desc.count = 2, desc.output = x[2];
         desc.rank = 2, desc.shape[0] = 5, desc.shape[1] = 8;
         return tuff_concat_ex(s, &desc);
       }},
      {"tuff_gather",
       {"input", "indices", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         return tuff_gather(s, kF32, TUFF_U32, x[0], x[1], x[2], kShape, 3, 1, 7);
       }},
      {"tuff_gather_ex",
       {"input", "indices", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_gather_desc>();
         desc.index_type = TUFF_I32, desc.elementwise = 1;
         desc.input = x[0], desc.indices = x[1], desc.output = x[2];
         desc.rank = 2, desc.shape[0] = 5, desc.shape[1] = 8, desc.index_shape[0] = 3, desc.index_shape[1] = 8;
         return tuff_gather_ex(s, &desc);
       }},
      {"tuff_rope",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) { return tuff_rope(s, kF32, x[0], x[1], 2, 3, 4, 6, 5, 10000); }},
      {"tuff_rope_ex",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_rope_desc>();
         desc.input = x[0], desc.output = x[1];
         desc.batch = 2, desc.heads = 3, desc.seq = 4, desc.head_dim = 8, desc.interleaved = 1;
         return tuff_rope_ex(s, &desc);
       }},
      {"tuff_max_pool",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = pool(x[0], x[1]);
         desc.padding[0] = 1, desc.out_shape[0] = 5;
         return tuff_max_pool(s, &desc);
       }},
      {"tuff_avg_pool",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         const auto desc = pool(x[0], x[1]);
         return tuff_avg_pool(s, &desc);
       }},
      {"tuff_resize",
       {"input", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_resize_desc>();
         desc.input = x[0], desc.output = x[1];
         desc.batch = 2, desc.channels = 3, desc.spatial = 1, desc.mode = TUFF_RESIZE_LINEAR;
         desc.in_shape[0] = 9, desc.out_shape[0] = 14;
         return tuff_resize(s, &desc);
       }},
  };
  return calls;
}

}  // namespace tuff_test
