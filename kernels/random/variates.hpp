// Random numbers of distributions whose parameters may differ from element to element, most of them by rejection:
// variates.glsl has the formulas.
#pragma once

#include <array>
#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

struct VariatesArgs {
  int32_t dtype;
  int32_t distribution;  // TUFF_VARIATES_*
  const Buffer* output;
  uint64_t n;
  uint64_t seed, sequence, offset;
  std::array<const Buffer*, 3> parameters;  // of each element; null: the value below for all
  std::array<double, 3> values;
};

namespace variates {

// The number of parameters that a distribution has.
uint32_t parameters_of(int32_t distribution);

// The values of parameters without a buffer, as the bits that a buffer would hold: of f32 or of i32.
std::array<uint32_t, 3> bits_of(const VariatesArgs& args);

}  // namespace variates

void check_variates(const VariatesArgs& args);
void host_variates(const VariatesArgs& args);
void record_variates(Recorder& recorder, const VariatesArgs& args);

namespace operations {
extern const OperationOf<VariatesArgs> variates;
}  // namespace operations

}  // namespace tuff
