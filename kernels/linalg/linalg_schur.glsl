// Shared by the kernels that bring general matrices to their real Schur form H = Q T Q^T: T is an upper triangle but
// for blocks of 2 x 2 on its diagonal. Matrices are n x n, dense, in scratch memory, scaled by linalg_load.comp. Q is
// stored transposed, so that neighbouring invocations have neighbouring elements of a column.
#include "kernels/linalg/linalg_pairs.glsl"

// A matrix's state, after what linalg_load.comp knows and in the place of the counts, which it sets to 0:
const uint FOUND = COUNTS;      // values at the end of the diagonal that have been separated from the rest
const uint NEXT = COUNTS + 1;   // 0: a sweep begins; otherwise the row of the sweep's next reflection, plus 1
const uint TRIES = COUNTS + 2;  // sweeps since a value was separated
const uint LOW = COUNTS + 3;    // first row of the block that the sweep is in

// LEAST: far below any rounding error of a matrix whose elements are scaled to about 1, with a square root that is a
// normal number.
#if TUFF_TYPE == 1
const TUFF_VALUE EPSILON = 1.1920929e-7;
const TUFF_VALUE LEAST = 1e-30;
#else
const TUFF_VALUE EPSILON = 2.220446049250313e-16lf;
const TUFF_VALUE LEAST = 1e-290lf;
#endif
