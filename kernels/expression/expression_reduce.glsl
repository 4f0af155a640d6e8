// Formulas that end with a reduction: shared by expression_rows.comp and expression_columns.comp. The axes are two
// groups, each merged and numbered by itself: those that are kept, and those that are reduced. An operand's element is
// at the sum of its offsets in both. What is gathered, combined and stored is as for every reduction
// (kernels/reduce/reduce.glsl); the element is the formula's value, already in the type that it is accumulated in.
//
// The table of expression_operands.glsl has sizes, multipliers and shifts of the kept axes and then of the reduced ones,
// after the index of every operand's element at coordinates 0 the strides of the kept axes and then of the reduced ones.
//
// kernels/expression/expression_glsl.cpp generates, in place of the line with TUFF_BODY, expr_scalars(), expr_load(i),
// expr_load_one(i) and expr_compute() as for expression.comp, and
//
//   expr_store(v), expr_store_one(v)   store four results, or the first, at the places of the output
//# TUFF_V_TYPE : 1|4|5|6|9|10 : the type that values are computed in and kept as between dispatches: f32, f64, i32, u32, i64, u64
//# TUFF_CUT : 0|1 : 1: stores partial results, [segment][kept index], for another stage
//# TUFF_UNROLL : 1|4 : blocks in flight
//# TUFF_RUN : 0.. : pieces or results that a lane processes one after another; 0: push.run says
//# TUFF_SLOTS : 2..11 : operands in buffers, and the table
//# group formula : TUFF_COMPUTES_F64 TUFF_COMPUTES_INT64 TUFF_CUT TUFF_DOUBLES TUFF_EXACT_ARITHMETIC TUFF_FILES TUFF_FINISH TUFF_GATHERED TUFF_MODES TUFF_OP TUFF_OPERANDS TUFF_OWN TUFF_RUN TUFF_SCALARS TUFF_SLOTS TUFF_UNROLL TUFF_V_TYPE TUFF_VECTOR : a formula and its reduction
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint KEPT = 1;     // axes
layout(constant_id = 2) const uint REDUCED = 1;  // axes

layout(push_constant, std430) uniform Push {
  TUFF_BASES(TUFF_SLOTS)
  uint kept;      // results
  uint extent;    // elements of each
  uint segments;  // that each is cut into
  uint segment;   // rows only: elements of each segment, a multiple of 4; the last has the rest
  uint run;
  float divisor;
  uint divisor_low, divisor_high;  // the same as f64
} push;

#define TUFF_VALUE_OF TUFF_V_TYPE
#define TUFF_PARTS 1
#define TUFF_PREPARE 0
#define TUFF_CENTERED 0
#define TUFF_SPLIT 0
#define TUFF_X_TYPE TUFF_V_TYPE
#define TUFF_PLACES 1
#define EXPR_REDUCES 1
#include "kernels/elementwise/blocks.glsl"
#include "kernels/expression/expression_functions.glsl"
#include "kernels/expression/expression_casts.glsl"

// Words of the table.
#define EXPR_KEPT_SIZES (2 * TUFF_SCALARS)
#define EXPR_REDUCED_SIZES (EXPR_KEPT_SIZES + 3 * (KEPT - 1))
#define EXPR_FIRSTS (EXPR_REDUCED_SIZES + 3 * (REDUCED - 1))
#define EXPR_KEPT_STRIDES (EXPR_FIRSTS + TUFF_OPERANDS)
#define EXPR_REDUCED_STRIDES (EXPR_KEPT_STRIDES + KEPT * TUFF_OPERANDS)
// Those of the axes along which four elements lie.
#if EXPR_ALONG_REDUCED
#define EXPR_STRIDES EXPR_REDUCED_STRIDES
#else
#define EXPR_STRIDES EXPR_KEPT_STRIDES
#endif
#include "kernels/expression/expression_operands.glsl"
#include "kernels/reduce/reduce.glsl"

#if TUFF_CUT
TUFF_BLOCKS_WRITE(TUFF_OPERANDS - 1, Partials, TUFF_V_TYPE)
#endif

TUFF_BODY

// The places of index 0 of the reduced axes.
EXPR_PLACE expr_base[TUFF_OPERANDS];
// Chooses an index of the kept axes.
void expr_begin(EXPR_PLACE n) {
  [[unroll]] for (uint slot = 0; slot < TUFF_OPERANDS; ++slot) {
    expr_places[slot] = EXPR_PLACE(TUFF_AT(T, EXPR_FIRSTS + slot));
  }
  expr_walk(n, KEPT, EXPR_KEPT_SIZES, EXPR_KEPT_STRIDES);
  expr_base = expr_places;
}
// Chooses an index of the reduced axes too.
void expr_find(EXPR_PLACE n) {
  expr_places = expr_base;
  expr_walk(n, REDUCED, EXPR_REDUCED_SIZES, EXPR_REDUCED_STRIDES);
}

// The formula's values at four elements from the chosen places on.
TuffBlock expr_values() {
  expr_load(0u);
  expr_compute();
  TuffBlock block;
  block.part[0] = y0;
  return block;
}
