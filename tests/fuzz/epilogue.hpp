// What follows a sum before it is stored: how far its result may be from the host backend's.
#pragma once

#include "fuzz/draft.hpp"

namespace tuff_fuzz {

// Units in the last place of f32 that docs/accuracy.md promises of tuff_unary_op `op` for this argument; 0: exact.
double promised_ulps(int32_t op, double argument);

struct Epilogue {
  int32_t activation = 0;
  Allowed allowed(int32_t dtype) const;
};

// A number that both sides have to within `ulps` units of f32 and round once to dtype. The host backend computes in
// f64, and is within one unit.
double rounded(int32_t dtype, double ulps, double value);

}  // namespace tuff_fuzz
