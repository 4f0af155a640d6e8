// Shared by scan_rows.comp and scan_columns.comp.
//# TUFF_TYPE : 1..3 : type of input and output, as in tuff.h
//# TUFF_OP : 1|2 : 1: sums; 2: products
//# TUFF_STAGE : 0..2 : 0: whole axes; 1: segment totals, as f32; 2: results, from the totals of earlier segments
//# TUFF_EXCLUSIVE : 0|1 : 1: the result at an element excludes the element itself
//# TUFF_REVERSE : 0|1 : 1: scans from the end of the axis to its beginning
//# group form : TUFF_EXCLUSIVE TUFF_OP TUFF_REVERSE TUFF_STAGE TUFF_TYPE : what is computed, and which part of it
#include "kernels/elementwise/blocks.glsl"

#if TUFF_OP == 1
#define TUFF_IDENTITY 0.0
#define TUFF_COMBINE(a, b) ((a) + (b))
#else
#define TUFF_IDENTITY 1.0
#define TUFF_COMBINE(a, b) ((a) * (b))
#endif
