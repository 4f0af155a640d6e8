// Invalid descriptors of GEMMs: their status, a message that names the field, and no effect.
#include <cmath>
#include <functional>

#include "support/tensor.hpp"

namespace tuff_test::gemm_misuse_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT, kHandle = TUFF_ERROR_INVALID_HANDLE,
                      kUnsupported = TUFF_ERROR_UNSUPPORTED;

class GemmMisuse : public OnBackend {
 protected:
  // Each buffer fits four 8 x 8 matrices of any type.
  void SetUp() override {
    for (OwnBuffer& buffer : buffers_) buffer = OwnBuffer(context(), 8 * 8 * 8 * 4);
    const uint32_t poison = kPoison;
    ASSERT_OK(tuff_fill(context(), buffers_[2], 0, 2048, &poison, 4));
    ASSERT_OK(tuff_synchronize(context()));
    before_ = stats_of(context());
    good_.struct_size = sizeof good_;
    good_.dtype = TUFF_F32;
    good_.m = good_.n = good_.k = 8;
    good_.alpha = 1;
    good_.a = buffers_[0], good_.b = buffers_[1], good_.c = buffers_[2];
    good_.batch_count = 1;
    for (int i = 0; i < 3; ++i) {
      as_[i] = buffers_[0];
      bs_[i] = buffers_[1];
      views_[i] = view(2, 256 * static_cast<uint64_t>(i), 256);
      cs_[i] = views_[i];
    }
  }
  void TearDown() override {
    EXPECT_EQ(stats_of(context()).dispatches, before_.dispatches);
    std::vector<uint32_t> words(512);
    EXPECT_OK(tuff_copy_dtoh(context(), words.data(), buffers_[2], 0, 2048));
    EXPECT_EQ(words, std::vector<uint32_t>(words.size(), kPoison));
  }
  OwnBuffer view(int buffer, uint64_t offset, uint64_t bytes) {
    tuff_buffer result = 0;
    EXPECT_OK(tuff_view(buffers_[buffer], offset, bytes, &result));
    return OwnBuffer(result);
  }
  tuff_batched_gemm_desc arrays() {
    tuff_batched_gemm_desc desc = good_;
    desc.a = desc.b = desc.c = 0;
    desc.batch_count = 3;
    desc.a_array = as_, desc.b_array = bs_, desc.c_array = cs_;
    return desc;
  }
  void expect(const tuff_batched_gemm_desc& desc, tuff_status status, const char* word) {
    EXPECT_FAILS(tuff_batched_gemm_ex(context(), &desc), status, "tuff_batched_gemm_ex", word);
  }

  OwnBuffer buffers_[4], views_[3];
  tuff_buffer as_[3], bs_[3], cs_[3];
  tuff_batched_gemm_desc good_{};
  tuff_stats before_{};
};

using Edit = std::function<void(tuff_batched_gemm_desc&)>;

TEST_P(GemmMisuse, Fields) {
  const tuff_buffer spare = buffers_[3];
  const OwnBuffer small = view(3, 0, 28), first_matrix = view(2, 0, 256), odd = view(3, 1, 1024);
  const OwnBuffer tiny = view(3, 0, 3);
  const struct {
    const char* word;
    tuff_status status;
    Edit edit;
  } rows[] = {
      {"dtype", kArgument, [](auto& d) { d.dtype = 0; }},
      {"dtype", kUnsupported, [](auto& d) { d.dtype = TUFF_I32; }},
      {"dtype", kArgument, [](auto& d) { d.dtype = 99, d.a_type = d.b_type = d.c_type = TUFF_F32; }},
      {"a_type", kArgument, [](auto& d) { d.a_type = 99; }},
      {"b_type", kArgument, [](auto& d) { d.dtype = 0, d.a_type = TUFF_F32; }},
      {"c_type", kArgument, [](auto& d) { d.c_type = -1; }},
      {"c_type", kUnsupported, [](auto& d) { d.c_type = TUFF_F64; }},
      {"a_type", kUnsupported, [](auto& d) { d.a_type = TUFF_I8; }},
      {"b_type", kUnsupported, [](auto& d) { d.a_type = TUFF_F64, d.b_type = TUFF_F32, d.c_type = TUFF_F64; }},
      {"c_type", kUnsupported, [](auto& d) { d.dtype = TUFF_I8, d.c_type = TUFF_I8; }},
      {"accumulate", kArgument, [](auto& d) { d.accumulate = 77; }},
      {"accumulate", kUnsupported, [](auto& d) { d.accumulate = TUFF_F64; }},
      {"accumulate", kUnsupported, [](auto& d) { d.accumulate = TUFF_F16; }},
      {"accumulate", kUnsupported, [](auto& d) { d.a_type = TUFF_F16, d.b_type = TUFF_BF16, d.accumulate = TUFF_F16; }},
      {"precision", kArgument, [](auto& d) { d.precision = 3; }},
      {"precision", kArgument, [](auto& d) { d.dtype = TUFF_F16, d.precision = TUFF_PRECISION_ALLOW_F16; }},
      {"precision", kArgument, [](auto& d) { d.a_type = TUFF_F16, d.precision = TUFF_PRECISION_ALLOW_F16; }},
      {"precision", kArgument, [](auto& d) { d.b_type = TUFF_BF16, d.precision = TUFF_PRECISION_ALLOW_BF16; }},
      {"activation", kArgument, [](auto& d) { d.activation = TUFF_ACTIVATION_RELU6 + 1; }},
      {"activation", kArgument, [](auto& d) { d.dtype = TUFF_I8, d.activation = TUFF_ACTIVATION_GELU; }},
      {"alpha", kArgument, [](auto& d) { d.dtype = TUFF_I8, d.alpha = 0.5; }},
      {"alpha", kArgument, [](auto& d) { d.dtype = TUFF_I8, d.alpha = 0x1p31; }},
      {"beta", kArgument, [](auto& d) { d.dtype = TUFF_I8, d.beta = -NAN; }},
      {"reserved", kArgument, [](auto& d) { d.reserved = 1; }},
      {"bias_axis", kArgument, [](auto& d) { d.bias_axis = 3; }},
      {"bias_axis", kArgument, [&](auto& d) { d.bias = spare; }},
      {"bias", kHandle, [](auto& d) { d.bias_axis = TUFF_BIAS_ROWS; }},
      {"bias", kHandle, [](auto& d) { d.bias_axis = TUFF_BIAS_ROWS, d.bias = 12345; }},
      {"bias", kArgument, [&](auto& d) { d.bias_axis = TUFF_BIAS_COLUMNS, d.bias = small; }},
      {"bias", kArgument, [&](auto& d) { d.bias_axis = TUFF_BIAS_COLUMNS, d.bias = odd; }},
      {"bias", kArgument, [](auto& d) { d.bias_axis = TUFF_BIAS_COLUMNS, d.bias = d.c; }},
      {"residual", kHandle, [](auto& d) { d.residual = 12345; }},
      {"residual", kArgument, [&](auto& d) { d.residual = small; }},
      {"ld_residual", kArgument, [&](auto& d) { d.residual = spare, d.ld_residual = 7; }},
      {"residual", kArgument, [](auto& d) { d.residual = d.c, d.ld_residual = 9; }},
      {"residual", kArgument,
       [](auto& d) { d.residual = d.c, d.batch_count = 2, d.stride_c = 64, d.stride_residual = 0; }},
      {"c_type", kUnsupported, [](auto& d) { d.a_type = d.b_type = TUFF_F8_E4M3, d.c_type = TUFF_I32; }},
      {"b_type", kUnsupported, [](auto& d) { d.a_type = TUFF_F8_E4M3, d.b_type = TUFF_I8; }},
      {"accumulate", kUnsupported,
       [](auto& d) { d.a_type = TUFF_F8_E4M3, d.b_type = TUFF_F16, d.accumulate = TUFF_F16; }},
      {"precision", kArgument, [](auto& d) { d.a_type = TUFF_F8_E5M2, d.precision = TUFF_PRECISION_ALLOW_F16; }},
      {"scale_a", kHandle, [](auto& d) { d.scale_a = 12345; }},
      {"scale_b", kArgument, [&](auto& d) { d.scale_b = tiny; }},
      {"scale_a", kArgument, [&](auto& d) { d.scale_a = odd; }},
      {"scale_c", kArgument, [&](auto& d) { d.scale_c = first_matrix; }},
      {"scale_b", kArgument, [&](auto& d) { d.dtype = TUFF_I8, d.scale_b = spare; }},
      {"scale_c", kArgument, [&](auto& d) { d.dtype = TUFF_F64, d.scale_c = spare; }},
      {"scale_a", kArgument,
       [&](auto& d) {
         d = arrays();
         d.scale_a = first_matrix;
       }},
      {"a_array", kArgument, [&](auto& d) { d.b_array = bs_, d.c_array = cs_; }},
      {"b_array", kArgument, [&](auto& d) { d.a_array = as_, d.c_array = cs_; }},
      {"c_array", kArgument, [&](auto& d) { d.a_array = as_; }},
      {"a_array", kArgument, [&](auto& d) { d.a_array = as_, d.b_array = bs_, d.c_array = cs_; }},
      {"stride_c", kArgument,
       [&](auto& d) {
         d = arrays();
         d.stride_c = 64;
       }},
  };
  for (const auto& row : rows) {
    tuff_batched_gemm_desc desc = good_;
    row.edit(desc);
    SCOPED_TRACE(&row - rows);
    expect(desc, row.status, row.word);
  }
}

TEST_P(GemmMisuse, ElementsOfArrays) {
  const auto refused = [&](tuff_buffer& element, tuff_buffer handle, tuff_status status, const char* word) {
    const tuff_buffer kept = element;
    element = handle;
    expect(arrays(), status, word);
    element = kept;
  };
  tuff_buffer stale = 0;
  ASSERT_OK(tuff_alloc(context(), 256, &stale));
  ASSERT_OK(tuff_free(stale));
  OwnContext other(GetParam());
  const OwnBuffer foreign(other, 256);
  const OwnBuffer small = view(3, 0, 255), overlapping = view(2, 252, 256), inside = view(2, 512, 256);
  refused(as_[1], stale, kHandle, "a_array[1]");
  refused(bs_[0], foreign, kHandle, "b_array[0]");
  refused(cs_[2], 0, kHandle, "c_array[2]");
  refused(as_[2], small, kArgument, "a_array[2]");
  refused(cs_[1], small, kArgument, "c_array[1]");
  refused(cs_[1], cs_[0], kArgument, "c_array[1]");
  refused(cs_[2], overlapping, kArgument, "c_array[2]");
  refused(bs_[0], inside, kArgument, "b_array[0]");
  refused(as_[0], buffers_[2], kArgument, "a_array[0]");
  // A residual may be exactly its own matrix of C, but no other.
  tuff_batched_gemm_desc desc = arrays();
  desc.residual = inside;
  expect(desc, kArgument, "residual");
  desc.bias_axis = TUFF_BIAS_ROWS, desc.bias = inside, desc.residual = 0;
  expect(desc, kArgument, "bias");
  // With its own leading dimension it ends within a matrix of C; with C's it would end before.
  const OwnBuffer wide = view(2, 32, 480);
  const OwnBuffer last[3] = {view(2, 1280, 256), view(2, 480, 256), view(2, 1024, 256)};
  desc = arrays();
  for (int i = 0; i < 3; ++i) cs_[i] = last[i];
  desc.residual = wide, desc.ld_residual = 16;
  expect(desc, kArgument, "residual");
  for (int i = 0; i < 3; ++i) cs_[i] = views_[i];
  // More handles than any process has memory for: none is read.
  desc = arrays();
  desc.batch_count = uint64_t{1} << 60;
  expect(desc, TUFF_ERROR_OUT_OF_HOST_MEMORY, "memory");
}
TUFF_ON_BACKENDS(GemmMisuse);

}  // namespace
}  // namespace tuff_test::gemm_misuse_test
