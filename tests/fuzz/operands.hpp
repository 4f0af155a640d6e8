// The elements of an operand: drawn, examined before a call, and judged after it.
#pragma once

#include <cstdint>

#include "fuzz/draft.hpp"

namespace tuff_fuzz {

uint64_t bytes_of(const Operand& operand);

double draw_value(const Operand& operand, Draw& draw);

// Fills it with any bits, if that is its fill, and returns true.
bool fill_bits(const Operand& operand, Draw& draw, uint8_t* to);

// Sets `seen`, and `values` if a description asked for them, from the elements at `from`.
void look(Operand& operand, const uint8_t* from);

// Marks the bytes that the call may write with 1; the operand begins at `bytes`.
void mark(const Operand& operand, uint8_t* bytes);

// Whether the device's element is what the host backend's allows.
bool alike(const Operand& operand, uint64_t index, const uint8_t* host, const uint8_t* device);

}  // namespace tuff_fuzz
