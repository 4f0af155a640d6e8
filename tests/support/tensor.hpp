// Tensors with guards around them, inputs for both tiers, and comparisons against f64.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "support/harness.hpp"
#include "tuff/tuff.h"

namespace tuff_test {

// Bit patterns of quiet NaNs: the initial contents of outputs, and what surrounds and separates the parts of every
// tensor. A kernel that reads one by mistake spreads NaN; one that overwrites it is caught.
inline constexpr uint32_t kPoison = 0x7fd1d1d1u;
inline constexpr uint32_t kGuard = 0x7fe5a5a5u;

inline uint32_t bits(float value) {
  uint32_t result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}
inline float from_bits(uint32_t value) {
  float result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}
inline float poison() { return from_bits(kPoison); }

// A tuff_view into the middle of a larger buffer. The view itself ends with guard bytes too, so that they are within
// whatever range of it the library binds.
class Tensor {
 public:
  // `shift` bytes (a multiple of 4) past a 256-byte boundary.
  Tensor(tuff_context context, const std::vector<float>& values, uint64_t shift = 0);
  // Filled with poison.
  Tensor(tuff_context context, uint64_t count, uint64_t shift = 0);

  operator tuff_buffer() const { return view_; }  // NOLINT(google-explicit-constructor)
  uint64_t count() const { return count_; }

  // Waits, reads everything back and checks the guards.
  std::vector<float> read() const;
  // Requires exactly the bits that were stored.
  void expect_unchanged(const std::vector<float>& values) const;
  void expect_poisoned() const;

 private:
  static constexpr uint64_t kAround = 512, kInside = 64;
  tuff_context context_;
  uint64_t count_, shift_;
  OwnBuffer whole_, view_;
};

// A random generator that gives the same numbers for the same seed, on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x243f6a8885a308d3u) {}
  uint64_t next();
  // An integer in [-limit, limit].
  float integer(int limit);
  // [low, high)
  float uniform(float low, float high);
  // A number of either sign with a magnitude in 2^-6 .. 2^2, so that swapped or missing elements show.
  float spread();

 private:
  uint64_t state_;
};

std::vector<float> integers(uint64_t count, int limit, uint64_t seed);
std::vector<float> uniforms(uint64_t count, float low, float high, uint64_t seed);
std::vector<float> spreads(uint64_t count, uint64_t seed);

// The expected result: a value for each element, and the allowed error.
struct Expected {
  std::vector<double> value;
  std::vector<double> bound;  // empty: 0, the exact tier
};

// Requires that every element is written (no poison left) and within its bound, and NaN only where NaN is expected.
// Zeros of either sign are equal.
void expect_matches(const std::vector<float>& got, const Expected& expected);
// Requires equal bits; any NaN equals any NaN.
void expect_same_bits(const std::vector<float>& got, const std::vector<float>& expected);

}  // namespace tuff_test
