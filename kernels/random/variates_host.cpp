// The host's numbers of tuff_variates(): variates.glsl, compiled as C++. The same source gives the same bits. This file
// is compiled without contraction to multiply-add.
#include "kernels/random/variates.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/random/random.hpp"
#include "planning/arithmetic.hpp"

namespace tuff {
namespace {

// What the files below use of GLSL.
using uint = uint32_t;
struct vec2 {
  vec2(float first, float second) : x(first), y(second) {}
  float x, y;
};
struct uvec2 {
  uvec2(uint first, uint second) : x(first), y(second) {}
  uint x, y;
};
struct uvec4 {
  uvec4(uint first, uint second, uint third, uint fourth) : x(first), y(second), z(third), w(fourth) {}
  uint x, y, z, w;
};
float uintBitsToFloat(uint bits) { return std::bit_cast<float>(bits); }
uint floatBitsToUint(float value) { return std::bit_cast<uint>(value); }
int findMSB(uint word) { return 31 - std::countl_zero(word); }
void umulExtended(uint a, uint b, uint& high, uint& low) {
  const uint64_t product = uint64_t{a} * b;
  high = high_word(product), low = low_word(product);
}
uint usubBorrow(uint a, uint b, uint& borrow) {
  borrow = a < b ? 1 : 0;
  return a - b;
}
uvec4 tuff_philox(const uvec4& c, const uvec2& key) {
  const std::array<uint, 4> words = random::philox({c.x, c.y, c.z, c.w}, {key.x, key.y});
  return {words[0], words[1], words[2], words[3]};
}
using std::abs, std::floor, std::max, std::min;

#define precise
class Sampler {
 public:
#include "kernels/random/formulas.glsl"
#include "kernels/random/variates.glsl"
};
#undef precise

}  // namespace

void host_variates(const VariatesArgs& args) {
  if (args.n == 0) return;
  Sampler sampler{};
  sampler.sequence_low = low_word(args.sequence), sampler.sequence_high = high_word(args.sequence);
  sampler.key_low = low_word(args.seed), sampler.key_high = high_word(args.seed);
  const std::array<uint32_t, 3> values = variates::bits_of(args);
  std::array<const uint32_t*, 3> given{};
  for (size_t p = 0; p < 3; ++p) {
    if (args.parameters[p] != nullptr) given[p] = args.parameters[p]->host<uint32_t>();
  }
  auto* output = args.output->host<uint32_t>();
  for (uint64_t i = 0; i < args.n; ++i) {
    const uint64_t element = args.offset + i;
    sampler.element_low = low_word(element), sampler.element_high = high_word(element);
    const auto parameter = [&](size_t p) { return given[p] != nullptr ? given[p][i] : values[p]; };
    output[i] = sampler.variate_of(args.distribution, parameter(0), parameter(1), parameter(2));
  }
}

}  // namespace tuff
