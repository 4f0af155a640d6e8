// A deterministic random generator: the same seed gives the same numbers on every machine.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace tuff_fuzz {

class Draw {
 public:
  explicit Draw(uint64_t seed) : state_(seed) {}

  // SplitMix64 (Steele, Lea and Flood, 2014).
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t n) { return next() % n; }
  uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }
  bool one_in(uint64_t n) { return below(n) == 0; }
  template <typename T>
  T of(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }

 private:
  uint64_t state_;
};

}  // namespace tuff_fuzz
