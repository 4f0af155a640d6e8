// Elements of Tuff's types in kernels in PTX.
#pragma once

#include <cstdint>

#include "kernels/native/ptx.hpp"

namespace tuff::ptx {

// An f32, f16 or bf16 in memory, as f32; 0 if the condition does not hold.
F32 load_element(int32_t dtype, const U64& at, uint32_t offset, const Pred* exists);
// Two neighbouring elements of f16 or bf16, rounded to nearest even.
U32 packed_pair(int32_t dtype, const F32& low, const F32& high);

}  // namespace tuff::ptx
