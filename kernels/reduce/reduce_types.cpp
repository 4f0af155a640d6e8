#include "kernels/reduce/reduce_ops.hpp"

namespace tuff::reduce {

OutputTypes output_types(const Op& op, int32_t dtype) {
  const bool floats = kFloatTypes.has(dtype);
  switch (op.output) {
    case Output::same: return {dtype, {dtype}};
    case Output::place: return {TUFF_U32, {TUFF_U32, TUFF_I64}};
    case Output::truth: return {TUFF_BOOL, {TUFF_BOOL}};
    case Output::count: return {TUFF_I64, {TUFF_I64, TUFF_I32, TUFF_U32, TUFF_U64}};
    case Output::sum:
      if (floats || dtype == TUFF_F64) break;
      return {dtype == TUFF_BOOL ? int32_t{TUFF_I32} : dtype, kIntegerTypes};
    case Output::real: break;
  }
  if (dtype == TUFF_F64) return {TUFF_F64, {TUFF_F64}};
  if (floats) return {dtype, {dtype, TUFF_F32, TUFF_F64}};
  return {TUFF_F32, {TUFF_F32, TUFF_F64}};
}

int32_t value_type(const Op& op, int32_t dtype, int32_t output) {
  const bool floats = kFloatTypes.has(dtype) || dtype == TUFF_F64;
  switch (op.output) {
    case Output::same:
      if (floats) break;
      return dtype == TUFF_I64 || dtype == TUFF_U64 || dtype == TUFF_U32 ? dtype : int32_t{TUFF_I32};
    case Output::sum:  // modulo 2^32 or 2^64, of which narrower types keep their bits; unsigned ones keep their
                       // magnitude
      if (floats) break;
      if (dtype == TUFF_U64) return TUFF_U64;
      if (dtype_size(dtype) == 8 || dtype_size(output) == 8) return TUFF_I64;
      return dtype == TUFF_U32 ? TUFF_U32 : TUFF_I32;
    case Output::real: break;
    case Output::truth:
    case Output::count:
    case Output::place: return TUFF_U32;
  }
  return output == TUFF_F64 ? TUFF_F64 : TUFF_F32;
}

AxisView view_of(const ReduceArgs& args) {
  AxisView view = check_axis(args.shape, args.rank, args.axis);
  if (args.axis_count <= 1) return view;
  require(args.axis_count <= args.rank - args.axis, "axis_count is {}, and axis {} of rank {} has {} from it on",
          args.axis_count, args.axis, args.rank, args.rank - args.axis);
  const uint32_t end = args.axis + args.axis_count;
  view.axis = checked_product({args.shape + args.axis, args.axis_count}, "shape");
  view.inner = checked_product({args.shape + end, args.rank - end}, "shape");
  return view;
}

}  // namespace tuff::reduce
