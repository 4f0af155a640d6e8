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
//
// A reduction whose running result is more than one value (TUFF_STATE, kernels/reduce/states.glsl) leaves partial results
// as [value][segment][kept index]. The next stage's formula has them as y0, y1, y2 (TUFF_MERGES). One that gives an index
// has an operand more in the table: its strides are those of the shape of the reduced axes, in the call's order.
//# TUFF_V_TYPE : 1|4|5|6|9|10 : the type that values are computed in and kept as between dispatches: f32, f64, i32, u32, i64, u64
//# TUFF_CUT : 0|1 : 1: stores partial results, [segment][kept index], for another stage
//# TUFF_UNROLL : 1|4 : blocks in flight
//# TUFF_RUN : 0.. : pieces or results that a lane processes one after another; 0: push.run says
//# TUFF_SLOTS : 2..11 : operands in buffers, and the table
//# group formula : TUFF_COMPUTES_F64 TUFF_COMPUTES_INT64 TUFF_CUT TUFF_DOUBLES TUFF_EXACT_ARITHMETIC TUFF_FILES TUFF_FINISH TUFF_GATHERED TUFF_KEY_MINIMUM TUFF_MERGES TUFF_MODES TUFF_OP TUFF_OPERANDS TUFF_OWN TUFF_RUN TUFF_SCALARS TUFF_SLOTS TUFF_STATE TUFF_UNROLL TUFF_V_TYPE TUFF_VECTOR : a formula and its reduction
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
  uint plane;     // from a value of a partial result to its next one
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
#define EXPR_INDEXED (TUFF_STATE == 2 && !TUFF_MERGES)
#if EXPR_INDEXED
#define EXPR_WALKED (TUFF_OPERANDS + 1)
#else
#define EXPR_WALKED TUFF_OPERANDS
#endif
#include "kernels/elementwise/blocks.glsl"
#include "kernels/expression/expression_functions.glsl"
#include "kernels/expression/expression_casts.glsl"

// Words of the table.
#define EXPR_KEPT_SIZES (2 * TUFF_SCALARS)
#define EXPR_REDUCED_SIZES (EXPR_KEPT_SIZES + 3 * (KEPT - 1))
#define EXPR_FIRSTS (EXPR_REDUCED_SIZES + 3 * (REDUCED - 1))
#define EXPR_KEPT_STRIDES (EXPR_FIRSTS + EXPR_WALKED)
#define EXPR_REDUCED_STRIDES (EXPR_KEPT_STRIDES + KEPT * EXPR_WALKED)
// Those of the axes along which four elements lie.
#if EXPR_ALONG_REDUCED
#define EXPR_STRIDES EXPR_REDUCED_STRIDES
#else
#define EXPR_STRIDES EXPR_KEPT_STRIDES
#endif
#include "kernels/expression/expression_operands.glsl"
#include "kernels/reduce/reduce.glsl"

#if TUFF_CUT && TUFF_STATE == 2
TUFF_WRITE(TUFF_OPERANDS - 1, Partials, uint, 4)
#elif TUFF_CUT
TUFF_BLOCKS_WRITE(TUFF_OPERANDS - 1, Partials, TUFF_V_TYPE)
#endif

TUFF_BODY

// The places of index 0 of the reduced axes.
EXPR_PLACE expr_base[EXPR_WALKED];
// Chooses an index of the kept axes.
void expr_begin(EXPR_PLACE n) {
  [[unroll]] for (uint slot = 0; slot < EXPR_WALKED; ++slot) {
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

// What is stored of a result.
#if TUFF_STATE == 0
#define expr_final(result) scaled(TUFF_VALUE4(result), TUFF_VALUE4(TUFF_ZERO))
#else
#define expr_final(result) expr_finals(state4(result))
#if TUFF_STATE == 2
#define expr_finals(s) s.c
#elif TUFF_STATE == 3
#define expr_finals(s) scaled(s.b, s.a)
#else
#define expr_finals(s) scaled(s.b, TUFF_VALUE4(TUFF_ZERO))
#endif
#endif

// The element from which the means of moments count.
TUFF_VALUE4 expr_origin = TUFF_VALUE4(TUFF_ZERO);

// What is gathered of the elements that are loaded; one: only the first is.
Loaded expr_elements(bool one) {
  expr_compute();
  Loaded e;
#if TUFF_MERGES && TUFF_STATE == 3
  e.part[0] = State4(y0, y1, TUFF_VALUE4(TUFF_ZERO));
#elif TUFF_MERGES && TUFF_STATE == 2 && TUFF_VALUE_TYPE != 4 && TUFF_VALUE_TYPE < 9
  e.part[0] = State4(y0, uvec4(0u), y1);
#elif TUFF_MERGES
  e.part[0] = State4(y0, y1, y2);
#elif TUFF_STATE == 2
  e.x = y0;
  e.place = uvec4(expr_places[TUFF_OPERANDS]);
#if EXPR_ALONG_REDUCED && !TUFF_GATHERED
  if (!one) e.place += uvec4(0, 1, 2, 3) * EXPR_STEP(TUFF_OPERANDS);
#endif
#elif TUFF_STATE == 1
  e.part[0] = y0 - expr_origin;
#else
  e.part[0] = y0;
#endif
  return e;
}
// Four elements from the chosen places on.
Loaded expr_values() {
  expr_load(0u);
  return expr_elements(false);
}
// One element, and nothing in the other places.
#if TUFF_STATE == 0
TuffBlock expr_value() {
  expr_load_one(0u);
  TuffBlock block = tuff_block(TUFF_IDENTITY);
  block.part[0].x = expr_elements(true).part[0].x;
  return block;
}
#else
Partial expr_value() {
  expr_load_one(0u);
  const Loaded e = expr_elements(true);
#if TUFF_MERGES
  return single_partial(e.part[0]);
#elif TUFF_STATE == 2
  return single_partial(state_of(e));
#else
  return single_partial(state_of(e.part[0]));
#endif
}
#endif

// Before elements are gathered, at the chosen index of the kept axes.
void expr_choose_origin(bool four) {
#if TUFF_STATE == 1 && !TUFF_MERGES
  expr_origin = TUFF_VALUE4(TUFF_ZERO);
  if (push.extent == 0) return;
  expr_find(EXPR_PLACE(0));
  if (four) {
    expr_load(0u);
  } else {
    expr_load_one(0u);
  }
  expr_compute();
  expr_origin = base_of(four ? y0 : TUFF_VALUE4(y0.x));
#endif
}

#if TUFF_CUT
void expr_store_partial(uint i, TUFF_RESULT result) {
#if TUFF_STATE == 0
  Partials_store(i, result);
#elif TUFF_STATE == 2
  TUFF_AT(Partials, i) = uint(result.a);
  i += push.plane;
#if TUFF_VALUE_TYPE == 4 || TUFF_VALUE_TYPE >= 9
  TUFF_AT(Partials, i) = result.b;
  i += push.plane;
#endif
  TUFF_AT(Partials, i) = result.c;
#else
  Partials_store(i, result.a);
  Partials_store(i + push.plane, result.b);
#if TUFF_STATE == 1
  Partials_store(i + 2 * push.plane, result.c);
#endif
#endif
}
#endif
