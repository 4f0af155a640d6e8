// Shared by scan_rows.comp and scan_columns.comp.
//# TUFF_TYPE : types : type of input and output, as in tuff.h
//# TUFF_OP : 1|2 : 1: sums; 2: products
//# TUFF_STAGE : 0..2 : 0: whole axes; 1: segment totals, as TUFF_VALUE; 2: results, from the totals of earlier segments
//# TUFF_EXCLUSIVE : 0|1 : 1: the result at an element excludes the element itself
//# TUFF_REVERSE : 0|1 : 1: scans from the end of the axis to its beginning
//# group form : TUFF_EXCLUSIVE TUFF_OP TUFF_REVERSE TUFF_STAGE TUFF_TYPE : what is computed, and which part of it
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/elementwise/blocks.glsl"
#include "kernels/scan/scan.def"

#if TUFF_OP == 1
#define TUFF_IDENTITY TUFF_ZERO
#define TUFF_COMBINE(a, b) TUFF_ADD(a, b)
#else
#define TUFF_IDENTITY TUFF_ONE
#define TUFF_COMBINE(a, b) TUFF_MULTIPLY(a, b)
#endif
