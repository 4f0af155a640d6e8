// The header's matrix products. A flat function fills the descriptor of its _ex sibling; both then take the same path.
#include <cstddef>

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "runtime/status.hpp"

using tuff::capi::acquire_stream;
using tuff::capi::guarded;
using tuff::capi::Operand;
using tuff::capi::read_structure;

namespace {

// Of the descriptors of 0.1.0, which end where element types begin.
constexpr size_t kFirstGemm = offsetof(tuff_gemm_desc, a_type);
constexpr size_t kFirstBatchedGemm = offsetof(tuff_batched_gemm_desc, a_type);

// In descriptors, zero leading dimensions mean dense: the stored row's length. (An unknown ta or tb is
// left for the operation's check.)
template <typename Desc>
void fill_leading_dimensions(Desc& desc) {
  if (desc.lda == 0) desc.lda = desc.ta == TUFF_NO_TRANS ? desc.k : desc.m;
  if (desc.ldb == 0) desc.ldb = desc.tb == TUFF_NO_TRANS ? desc.n : desc.k;
  if (desc.ldc == 0) desc.ldc = desc.n;
}

template <typename Desc>
tuff::GemmArgs gemm_args(const Desc& desc, const Operand& a, const Operand& b, const Operand& c) {
  tuff::GemmArgs args{};
  args.a_type = args.b_type = args.c_type = desc.dtype;
  args.ta = desc.ta;
  args.tb = desc.tb;
  args.m = desc.m;
  args.n = desc.n;
  args.k = desc.k;
  args.alpha = desc.alpha;
  args.beta = desc.beta;
  args.a = a;
  args.b = b;
  args.c = c;
  args.lda = desc.lda;
  args.ldb = desc.ldb;
  args.ldc = desc.ldc;
  return args;
}

void gemm(tuff_stream stream, const tuff_gemm_desc& desc) {
  const auto context = acquire_stream(stream);
  const Operand a(context, desc.a, "a"), b(context, desc.b, "b"), c(context, desc.c, "c");
  context->backend().gemm(gemm_args(desc, a, b, c));
}

void batched_gemm(tuff_stream stream, const tuff_batched_gemm_desc& desc) {
  const auto context = acquire_stream(stream);
  const Operand a(context, desc.a, "a"), b(context, desc.b, "b"), c(context, desc.c, "c");
  tuff::GemmArgs args = gemm_args(desc, a, b, c);
  args.stride_a = desc.stride_a;
  args.stride_b = desc.stride_b;
  args.stride_c = desc.stride_c;
  args.batch_count = desc.batch_count;
  context->backend().batched_gemm(args);
}

template <typename Desc>
Desc flat(int32_t dtype, int32_t ta, int32_t tb, uint64_t m, uint64_t n, uint64_t k, double alpha, tuff_buffer a,
          uint64_t lda, tuff_buffer b, uint64_t ldb, double beta, tuff_buffer c, uint64_t ldc) {
  Desc desc{};
  desc.struct_size = sizeof(Desc);
  desc.dtype = dtype;
  desc.ta = ta;
  desc.tb = tb;
  desc.m = m;
  desc.n = n;
  desc.k = k;
  desc.alpha = alpha;
  desc.beta = beta;
  desc.a = a;
  desc.b = b;
  desc.c = c;
  desc.lda = lda;
  desc.ldb = ldb;
  desc.ldc = ldc;
  return desc;
}

}  // namespace

extern "C" {

tuff_status tuff_gemm(tuff_stream stream, int32_t dtype, int32_t ta, int32_t tb, uint64_t m, uint64_t n, uint64_t k,
                      double alpha, tuff_buffer a, uint64_t lda, tuff_buffer b, uint64_t ldb, double beta,
                      tuff_buffer c, uint64_t ldc) {
  return guarded("tuff_gemm", [&] {
    gemm(stream, flat<tuff_gemm_desc>(dtype, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc));
  });
}

tuff_status tuff_gemm_ex(tuff_stream stream, const tuff_gemm_desc* desc) {
  return guarded("tuff_gemm_ex", [&] {
    tuff_gemm_desc wanted = read_structure(desc, "desc", kFirstGemm);
    fill_leading_dimensions(wanted);
    gemm(stream, wanted);
  });
}

tuff_status tuff_batched_gemm(tuff_stream stream, int32_t dtype, int32_t ta, int32_t tb, uint64_t m, uint64_t n,
                              uint64_t k, double alpha, tuff_buffer a, uint64_t lda, uint64_t stride_a, tuff_buffer b,
                              uint64_t ldb, uint64_t stride_b, double beta, tuff_buffer c, uint64_t ldc,
                              uint64_t stride_c, uint64_t batch_count) {
  return guarded("tuff_batched_gemm", [&] {
    auto desc = flat<tuff_batched_gemm_desc>(dtype, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    desc.stride_a = stride_a;
    desc.stride_b = stride_b;
    desc.stride_c = stride_c;
    desc.batch_count = batch_count;
    batched_gemm(stream, desc);
  });
}

tuff_status tuff_batched_gemm_ex(tuff_stream stream, const tuff_batched_gemm_desc* desc) {
  return guarded("tuff_batched_gemm_ex", [&] {
    tuff_batched_gemm_desc wanted = read_structure(desc, "desc", kFirstBatchedGemm);
    fill_leading_dimensions(wanted);
    batched_gemm(stream, wanted);
  });
}

}  // extern "C"
