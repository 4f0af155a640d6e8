// A program: a sequence of calls encoded in bytes. It has a header of 16 bytes and a record of 16 bytes for each call,
// so that calls can be removed one by one.
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

// bytes[0..8) is the seed of the dialects; bytes[8] is their number, 0 meaning as many as records. A dialect is an
// operation with its options and sizes; with few dialects, few kernels have to be compiled for many calls.
std::vector<uint8_t> draw_program(Draw& draw, uint64_t dialects, uint8_t dialect_count, size_t records);

// Throws Failure.
void run_program(World& world, std::span<const uint8_t> bytes);

// The parts of tuff.json that no description draws, one line each; empty if all are covered.
std::string undescribed();

}  // namespace tuff_fuzz
