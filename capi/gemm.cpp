// Entry points of the header's GEMMs. A flat function fills in the descriptor of its _ex sibling; both then take the
// same path.
#include <string>

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "kernels/common/check.hpp"
#include "kernels/gemm/gemm.hpp"
#include "planning/status.hpp"

using tuff::capi::acquire_stream;
using tuff::capi::Context;
using tuff::capi::guarded;
using tuff::capi::Operand;
using tuff::capi::read_structure;
using tuff::capi::StreamRef;

namespace {

// In descriptors, a zero leading dimension means dense: the length of a stored row. (The operation's check rejects an
// unknown ta or tb.)
template <typename Desc>
void fill_leading_dimensions(Desc& desc) {
  if (desc.lda == 0) desc.lda = desc.ta == TUFF_NO_TRANS ? desc.k : desc.m;
  if (desc.ldb == 0) desc.ldb = desc.tb == TUFF_NO_TRANS ? desc.n : desc.k;
  if (desc.ldc == 0) desc.ldc = desc.n;
  if (desc.ld_residual == 0) desc.ld_residual = desc.n;
}

// Resolves the types that are zero, which select a default.
template <typename Desc>
void fill_types(Desc& desc) {
  // dtype may be omitted if any other type is given, but must be valid if present.
  const bool alone = desc.a_type == 0 && desc.b_type == 0 && desc.c_type == 0;
  if (alone || desc.dtype != 0) tuff::check_known_type(desc.dtype, "dtype");
  if (desc.a_type == 0) desc.a_type = desc.dtype;
  if (desc.b_type == 0) desc.b_type = desc.dtype;
  if (desc.c_type == 0) desc.c_type = desc.dtype == TUFF_I8 ? TUFF_I32 : desc.dtype;
}

template <typename Desc>
tuff::GemmArgs gemm_args(const Desc& desc) {
  tuff::GemmArgs args{};
  args.a_type = desc.a_type;
  args.b_type = desc.b_type;
  args.c_type = desc.c_type;
  args.accumulate = desc.accumulate != 0 ? desc.accumulate : args.sum_type();
  args.precision = desc.precision;
  args.ta = desc.ta;
  args.tb = desc.tb;
  args.m = desc.m;
  args.n = desc.n;
  args.k = desc.k;
  args.alpha = tuff::gemm_scalar(desc.alpha, args);
  args.beta = tuff::gemm_scalar(desc.beta, args);
  args.lda = desc.lda;
  args.ldb = desc.ldb;
  args.ldc = desc.ldc;
  args.epilogue.activation = desc.activation;
  args.epilogue.bias_axis = desc.bias_axis;
  args.epilogue.ld_residual = desc.ld_residual;
  return args;
}

// The arguments that gemm's and batched_gemm's descriptors share, and the buffers that they refer to.
class SharedArgs {
 public:
  template <typename Desc>
  SharedArgs(const StreamRef& target, Desc& desc)
      : args_((tuff::require_reserved(desc.reserved), fill_types(desc), gemm_args(desc))),
        a_(target, desc.a, "a"),
        b_(target, desc.b, "b"),
        c_(target, desc.c, "c"),
        bias_(target, desc.bias, "bias"),
        residual_(target, desc.residual, "residual"),
        scale_a_(target, desc.scale_a, "scale_a"),
        scale_b_(target, desc.scale_b, "scale_b"),
        scale_c_(target, desc.scale_c, "scale_c") {
    args_.a = a_;
    args_.b = b_;
    args_.c = c_;
    args_.epilogue.bias = bias_;
    args_.epilogue.residual = residual_;
    args_.epilogue.scale_a = scale_a_;
    args_.epilogue.scale_b = scale_b_;
    args_.epilogue.scale_c = scale_c_;
  }
  tuff::GemmArgs& args() { return args_; }

 private:
  tuff::GemmArgs args_;
  Operand a_, b_, c_, bias_, residual_, scale_a_, scale_b_, scale_c_;
};

void gemm(tuff_stream stream, tuff_gemm_desc& desc) {
  const auto target = acquire_stream(stream);
  target->run(tuff::operations::gemm(SharedArgs(target, desc).args()));
}

// Calls use(stream, args) with the arguments of a descriptor.
template <typename Use>
void batched_gemm(tuff_stream stream, tuff_batched_gemm_desc& desc, const Use& use) {
  const auto target = acquire_stream(stream);
  SharedArgs shared(target, desc);
  tuff::GemmArgs& args = shared.args();
  args.stride_a = desc.stride_a;
  args.stride_b = desc.stride_b;
  args.stride_c = desc.stride_c;
  args.batch_count = desc.batch_count;
  args.epilogue.stride_bias = desc.stride_bias;
  args.epilogue.stride_residual = desc.stride_residual;
  if (desc.a_array == nullptr && desc.b_array == nullptr && desc.c_array == nullptr) {
    use(target, args);
    return;
  }
  tuff::require(desc.a_array != nullptr && desc.b_array != nullptr && desc.c_array != nullptr,
                "{} is null: needs a_array, b_array and c_array, or none of them",
                desc.a_array == nullptr   ? "a_array"
                : desc.b_array == nullptr ? "b_array"
                                          : "c_array");
  tuff::require(desc.a == TUFF_NULL_HANDLE && desc.b == TUFF_NULL_HANDLE && desc.c == TUFF_NULL_HANDLE,
                "a_array is given, so a, b and c must be TUFF_NULL_HANDLE");
  tuff::require(desc.stride_a == 0 && desc.stride_b == 0 && desc.stride_c == 0,
                "a_array is given, so stride_a, stride_b and stride_c must be 0");
  tuff::capi::OperandArrays arrays(target, 3, desc.batch_count);
  args.a_array = arrays.add(desc.a_array, desc.batch_count, "a_array").data();
  args.b_array = arrays.add(desc.b_array, desc.batch_count, "b_array").data();
  args.c_array = arrays.add(desc.c_array, desc.batch_count, "c_array").data();
  use(target, args);
}

constexpr auto kCompute = [](const StreamRef& stream, const tuff::GemmArgs& args) {
  stream->run(tuff::operations::batched_gemm(args));
};

tuff_batched_gemm_desc read_batched_gemm(const tuff_batched_gemm_desc* desc) {
  tuff_batched_gemm_desc wanted = read_structure(desc, "desc");
  fill_leading_dimensions(wanted);
  return wanted;
}

template <typename Desc>
Desc flat_desc(int32_t dtype, int32_t ta, int32_t tb, uint64_t m, uint64_t n, uint64_t k, double alpha, tuff_buffer a,
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
    auto desc = flat_desc<tuff_gemm_desc>(dtype, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    gemm(stream, desc);
  });
}

tuff_status tuff_gemm_ex(tuff_stream stream, const tuff_gemm_desc* desc) {
  return guarded("tuff_gemm_ex", [&] {
    tuff_gemm_desc wanted = read_structure(desc, "desc");
    fill_leading_dimensions(wanted);
    gemm(stream, wanted);
  });
}

tuff_status tuff_batched_gemm(tuff_stream stream, int32_t dtype, int32_t ta, int32_t tb, uint64_t m, uint64_t n,
                              uint64_t k, double alpha, tuff_buffer a, uint64_t lda, uint64_t stride_a, tuff_buffer b,
                              uint64_t ldb, uint64_t stride_b, double beta, tuff_buffer c, uint64_t ldc,
                              uint64_t stride_c, uint64_t batch_count) {
  return guarded("tuff_batched_gemm", [&] {
    auto desc = flat_desc<tuff_batched_gemm_desc>(dtype, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    desc.stride_a = stride_a;
    desc.stride_b = stride_b;
    desc.stride_c = stride_c;
    desc.batch_count = batch_count;
    batched_gemm(stream, desc, kCompute);
  });
}

tuff_status tuff_batched_gemm_ex(tuff_stream stream, const tuff_batched_gemm_desc* desc) {
  return guarded("tuff_batched_gemm_ex", [&] {
    tuff_batched_gemm_desc wanted = read_batched_gemm(desc);
    batched_gemm(stream, wanted, kCompute);
  });
}

tuff_status tuff_batched_gemm_variants(tuff_stream stream, const tuff_batched_gemm_desc* desc, char* json,
                                       uint64_t capacity, uint64_t* length) {
  return guarded("tuff_batched_gemm_variants", [&] {
    tuff::capi::check_text(json, "json", capacity);
    tuff_batched_gemm_desc wanted = read_batched_gemm(desc);
    std::string text;
    batched_gemm(stream, wanted, [&](const StreamRef& target, const tuff::GemmArgs& args) {
      text = target.context()->backend().variants(tuff::operations::batched_gemm(args));
    });
    tuff::capi::write_text(text, json, capacity, length);
  });
}

}  // extern "C"
