// The epilogue of a sum, and how far its result may be from the host backend's.
#pragma once

#include "fuzz/draft.hpp"

namespace tuff_fuzz {

// The error in ULP of f32 that docs/accuracy.md promises for tuff_unary_op `op` at this argument; 0: exact.
double promised_ulps(int32_t op, double argument);

struct Epilogue {
  int32_t activation = 0;
  Allowed allowed(int32_t dtype) const;
};

// The allowed difference of a value that both sides compute to within `ulps` ULP of f32 and round once to dtype. The
// host backend computes in f64, and is within one ULP.
double rounded(int32_t dtype, double ulps, double value);

}  // namespace tuff_fuzz
