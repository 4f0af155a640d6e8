// A program: calls, from bytes. A header of 16 bytes, and 16 for each call, so that calls can be taken out one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fuzz/world.hpp"

namespace tuff_fuzz {

inline constexpr size_t kRecord = 16;
inline constexpr size_t kMaxRecords = 400;

// bytes[0..8): what the dialects come from; bytes[8]: how many there are, 0: as many as records. A dialect is an
// operation with its options and sizes, so that few kernels have to be compiled for many calls.
std::vector<uint8_t> draw_program(Draw& draw, uint64_t dialects, uint8_t dialect_count, size_t records);

// Throws Failure.
void run_program(World& world, std::span<const uint8_t> bytes);

// What of tuff.json no description draws, a line each; empty: nothing.
std::string undescribed();

}  // namespace tuff_fuzz
