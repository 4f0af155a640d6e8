// What the planners of products with weights as they are stored have in common.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/quant/quant.hpp"
#include "planning/arithmetic.hpp"
#include "planning/dispatch.hpp"
#include "planning/element_type.hpp"

namespace tuff::quant {

// The defines of weights as they are stored, and the members of push blocks that say where their scales are.
struct Stored {
  explicit Stored(const QgemmArgs& qgemm) : args(qgemm), format(format_of(qgemm.format)) {}
  template <typename Push>
  void describe(Push& push) const {
    push.items = narrow(args.k / 8);
    push.scales = narrow(scales_of_row(args));
    push.block_shift = block_shift(8);
  }
  // The number of a scale in its row is that of a unit of the row >> block_shift().
  uint32_t block_shift(uint64_t unit) const {
    if (args.granularity != TUFF_QUANT_PER_BLOCK) return 31;
    return std::min(31u, static_cast<uint32_t>(std::countr_zero(args.block_size / unit)));
  }
  uint64_t bytes() const { return stored_bytes(format, args.n * args.k); }
  uint64_t scales() const {
    if (!format.integers()) return 0;
    const uint64_t each = scales_of_row(args);
    return each == 0 ? 1 : args.n * each;
  }
  uint64_t scale_bytes() const { return scales() * dtype_size(args.scale_type); }
  void add_weights(Dispatch& dispatch) const {
    dispatch.operand(args.weights, 0, bytes(), Access::read).operand(args.scales, 0, scale_bytes(), Access::read);
  }
  void add_zeros(Dispatch& dispatch) const {
    dispatch.operand(args.zero_points, 0, stored_bytes(format, scales()), Access::read);
  }
  void operands(Dispatch& dispatch) const {
    add_weights(dispatch);
    add_zeros(dispatch);
  }
  uint32_t bits() const { return format.integers() ? format.bits() : 8; }
  uint32_t blocks() const { return format.integers() ? 0 : static_cast<uint32_t>(args.format); }
  double read() const { return static_cast<double>(bytes() + scale_bytes()); }

  const QgemmArgs& args;
  const Format& format;
};

inline double operations_of(const QgemmArgs& args) {
  return 2.0 * static_cast<double>(args.m * args.n) * static_cast<double>(args.k);
}

// A, C, bias and residual, of which those that are missing are null.
inline void add_rows(Dispatch& dispatch, const QgemmArgs& args) {
  const uint64_t a_size = dtype_size(args.a_type), c_size = dtype_size(args.c_type);
  const auto footprint = [&](uint64_t ld, uint64_t columns) { return (args.m - 1) * ld + columns; };
  dispatch.operand(args.a, 0, footprint(args.lda, args.k) * a_size, Access::read)
      .operand(args.c, 0, footprint(args.ldc, args.n) * c_size, Access::write)
      .operand(args.bias, 0, args.n * c_size, Access::read)
      .operand(args.residual, 0, args.residual != nullptr ? footprint(args.ld_residual, args.n) * c_size : 0,
               Access::read);
}

// Members of push blocks. `lda` is in the kernel's unit; a single row has no leading dimensions.
template <typename Push>
void set_rows(Push& push, const QgemmArgs& args, uint64_t lda) {
  push.m = narrow(args.m);
  push.n = narrow(args.n);
  if (args.m > 1) {
    push.lda = narrow(lda);
    push.ldc = narrow(args.ldc);
    if (args.residual != nullptr) push.ld_residual = narrow(args.ld_residual);
  }
  push.alpha = static_cast<float>(args.alpha);
}

}  // namespace tuff::quant
