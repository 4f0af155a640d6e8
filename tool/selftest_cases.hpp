// The problems of tuff selftest: random inputs, the call, and the error that a correct device may make.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tuff/tuff.hpp"

namespace tool {

using Tensor = std::vector<float>;
using Bound = std::vector<double>;

// Queues one operation: inputs in the order of Problem::inputs.
using Buffers = std::vector<tuff::Buffer>;
using Call = std::function<void(const tuff::Context&, const Buffers& inputs, const tuff::Buffer& output)>;

// Runs a call on the host backend.
using HostRun = std::function<Tensor(const Call&, const std::vector<Tensor>& inputs, const Tensor& output)>;

struct Problem {
  std::string operation;
  std::string shape;
  std::vector<Tensor> inputs;
  Tensor output;  // its contents before the call
  Call call;
  // The largest error of each element; reference is the host's result.
  std::function<Bound(const Problem&, const Tensor& reference, const HostRun&)> bound;
};

// Names the operation and its shape without making the inputs, so that a filter costs nothing.
struct Case {
  std::string operation;
  std::string shape;
  std::function<Problem(uint64_t seed)> make;
  std::string needs = {};  // of tuff_supports(): what not every device has
};

std::vector<Case> selftest_cases();

// What selftest_cases.cpp and selftest_types.cpp share: inputs that are the same for the same seed, and how results are
// judged.
constexpr double kRounding = 0x1p-24;   // u, the unit roundoff of f32
constexpr double kSmallest = 0x1p-126;  // the smallest normal f32: below it a device may flush to zero

// gamma_n = n u / (1 - n u): the relative error of n roundings (Higham, Accuracy and Stability, section 3.1).
double gamma(double n);
// Vulkan's own bound on exp(x): 3 + 2|x| units in the last place ("Precision of GLSL.std.450 Instructions").
double exp_error(double x);

// Every element somewhere a device can tell apart from the one beside it.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  Tensor uniform(uint64_t count, double low, double high);
  // Whole numbers: products and sums of them are exact as long as they stay below 2^24.
  Tensor integers(uint64_t count, int magnitude);

 private:
  double unit();
  uint64_t state_;
};

Tensor poison(uint64_t count);
Bound exact(const Problem&, const Tensor& reference, const HostRun&);

// Element types, activations, and operations of which one case tells enough.
void add_type_cases(std::vector<Case>& cases);

}  // namespace tool
