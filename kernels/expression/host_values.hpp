// Values of formulas on the host: conversions and the functions of nodes, one element at a time.
#pragma once

#include <cstdint>

#include "kernels/expression/expression.hpp"

namespace tuff::expression {

// A float in `number`, f32 as the double of the same value; an integer or bool in `integer`, u64 as its bits.
struct HostValue {
  double number = 0;
  int64_t integer = 0;
};

// The integer modulo 2^bits of its type.
int64_t wrapped(Value type, int64_t integer);

// As tuff_cast() converts.
HostValue converted(Value from, const HostValue& value, Value to);
// Rounded once to f16 or bf16, as f32.
HostValue rounded_to_dtype(Value from, const HostValue& value, int32_t dtype);

// Applies a call's function to values of the type `of`.
HostValue applied(const Node& call, Value of, const HostValue* args);

}  // namespace tuff::expression
