#include "planning/backend_kernels.hpp"

#include "kernels/elementwise/elementwise.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/gemm/native/hopper_probe.hpp"
#include "kernels/memory/memory.hpp"
#include "planning/recorder.hpp"
#include "shaders/binding_probe.hpp"

namespace tuff {
namespace {

void record_stream(Recorder& recorder, const Buffer& in, const Buffer& out, uint64_t elements) {
  record_unary(recorder, {TUFF_F32, TUFF_UNARY_ABS, &in, &out, elements, 0});
}

GemmArgs square_f32(const Buffer& a, const Buffer& b, const Buffer& c, uint64_t n) {
  GemmArgs args{};
  args.a_type = args.b_type = args.c_type = args.accumulate = TUFF_F32;
  args.m = args.n = args.k = args.lda = args.ldb = args.ldc = n;
  args.alpha = 1;
  args.a = &a;
  args.b = &b;
  args.c = &c;
  return args;
}

void record_multiply(Recorder& recorder, const Buffer& a, const Buffer& b, const Buffer& c, uint64_t n) {
  record_gemm(recorder, square_f32(a, b, c, n));
}

void record_multiply_tiles(Recorder& recorder, const Buffer& a, const Buffer& b, const Buffer& c, uint64_t n) {
  record_gemm_tiles(recorder, square_f32(a, b, c, n));
}

void record_bind(Recorder& recorder, const Buffer& in, const Buffer& out, uint64_t bytes) {
  const DeviceTraits& traits = recorder.traits();
  const uint32_t local_size = traits.subgroup_size;
  const shaders::BindingProbe::Push push{.vectors = static_cast<uint32_t>(bytes / 16), .mask = 1};
  Dispatch dispatch("binding probe");
  dispatch.operand(&in, 0, bytes, Access::read)
      .operand(&out, 0, bytes, Access::write)
      .push(push)
      .groups_linear(ceil_div(bytes / 16, local_size * 4), traits);
  recorder.dispatch(
      shaders::BindingProbe::request({.words = traits.streams_by_words}).streaming().constant(0, local_size), dispatch);
}

}  // namespace

const BackendKernels backend_kernels = {record_fill,           record_copy, record_stream,      record_multiply,
                                        record_multiply_tiles, record_bind, &gemm::hopper_probe};

}  // namespace tuff
