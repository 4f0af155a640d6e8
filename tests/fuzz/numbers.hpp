// Elements in memory, as numbers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tuff_fuzz {

uint64_t size_of(int32_t dtype);
// The type of the parts of a complex type; the type itself for a real one.
int32_t part_of(int32_t dtype);
double decode(int32_t dtype, const uint8_t* element);  // of a complex element the real part
// `value` must be representable in the type. A complex element has it as its real part, and its opposite beside it.
void encode(int32_t dtype, double value, uint8_t* element);
// The distance from a number of the type to the next, at `value`; 0 for integers.
double spacing(int32_t dtype, double value);
// How far two numbers may be apart that were at most `error` apart, near a value in f32, before each was rounded to a
// type.
double with_storage(int32_t dtype, double value, double error);

}  // namespace tuff_fuzz
