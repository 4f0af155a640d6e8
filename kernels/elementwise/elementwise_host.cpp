// Plain loops in double precision. abs and neg work on the bits, so that NaN keeps its payload.
#include <bit>

#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/elementwise_ops.hpp"

namespace tuff {
namespace {

constexpr uint32_t kSign = 0x80000000u;

float apply_unary(const elementwise::UnaryOp& op, float x) {
  if (op.op == TUFF_UNARY_ABS) return std::bit_cast<float>(std::bit_cast<uint32_t>(x) & ~kSign);
  if (op.op == TUFF_UNARY_NEG) return std::bit_cast<float>(std::bit_cast<uint32_t>(x) ^ kSign);
  return static_cast<float>(op.apply(x));
}

}  // namespace

void host_unary(const UnaryArgs& args) {
  if (args.n == 0) return;
  const elementwise::UnaryOp& op = *elementwise::find(elementwise::kUnaryOps, args.op);
  const float* input = args.input->host<float>();
  float* output = args.output->host<float>();
  for (uint64_t i = 0; i < args.n; ++i) output[i] = apply_unary(op, input[i]);
}

void host_binary(const BinaryArgs& args) {
  if (args.n == 0) return;
  const elementwise::BinaryOp& op = *elementwise::find(elementwise::kBinaryOps, args.op);
  const float* a = args.a->host<float>();
  const float* b = args.b->host<float>();
  float* output = args.output->host<float>();
  for (uint64_t i = 0; i < args.n; ++i) output[i] = static_cast<float>(op.apply(a[i], b[i]));
}

}  // namespace tuff
