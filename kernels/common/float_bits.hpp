// The bits of floats, for kernels that take elements as numbers without a sign.
#pragma once

#include <cstdint>

#include "tuff/tuff.h"

namespace tuff {

// The largest magnitude of a real floating-point type that is no NaN; of f64 its high word. Other types: 0.
inline uint32_t largest_magnitude(int32_t dtype) {
  switch (dtype) {
    case TUFF_F32: return 0x7f800000;
    case TUFF_F16: return 0x7c00;
    case TUFF_BF16: return 0x7f80;
    case TUFF_F64: return 0x7ff00000;
    case TUFF_F8_E4M3: return 0x7e;
    case TUFF_F8_E5M2: return 0x7c;
    default: return 0;
  }
}

}  // namespace tuff
