// Random numbers by Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"), which computes
// any block of a sequence from the block's number.
#pragma once

#include <array>
#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

struct RandomArgs {
  int32_t dtype;
  int32_t distribution;  // TUFF_RANDOM_*
  const Buffer* output;
  uint64_t n;
  uint64_t seed, sequence, offset;
  double low, high;        // UNIFORM
  double mean, deviation;  // NORMAL
  double scale;            // EXPONENTIAL
  double probability;      // BERNOULLI
  int64_t least, most;     // INTEGERS, both inclusive
};

namespace random {

// Block `counter` of the generator with this key: four words.
std::array<uint32_t, 4> philox(const std::array<uint32_t, 4>& counter, const std::array<uint32_t, 2>& key);

// Block `number` of a sequence of the generator with this seed.
std::array<uint32_t, 4> block_of(uint64_t seed, uint64_t sequence, uint64_t number);

// The parameters of a distribution, as both backends compute with them.
struct Numbers {
  float offset, factor;   // UNIFORM, NORMAL and EXPONENTIAL: offset + factor * (the standard distribution)
  uint32_t least, range;  // INTEGERS: modulo 2^32, where a range of 0 stands for 2^32
  uint32_t threshold;     // BERNOULLI: words below it give 1; if it is 0, `range` says whether all do
};
Numbers numbers_of(const RandomArgs& args);

}  // namespace random

void check_random(const RandomArgs& args);
void host_random(const RandomArgs& args);
void record_random(Recorder& recorder, const RandomArgs& args);

namespace operations {
extern const OperationOf<RandomArgs> random;
}  // namespace operations

}  // namespace tuff
