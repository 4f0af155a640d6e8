// The functions of unary.def and binary.def, for blocks of numbers (elementwise.cpp).
#pragma once

#include <cstdint>

namespace tuff_cpu {

// All elements go through whole blocks, so that an element's result does not depend on its place.
constexpr uint64_t kBlock = 256;

// y[i] = f(x[i]) and y[i] = f(a[i], b[i]) for a whole block. y may be an operand.
using UnaryBlock = void (*)(const float* x, float* y, double alpha);
using BinaryBlock = void (*)(const float* a, const float* b, float* y);

// By its name in unary.def; null: there is none.
UnaryBlock unary_block(const char* name);
// A power of two numbers.
BinaryBlock power_block();

}  // namespace tuff_cpu
