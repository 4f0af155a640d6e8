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
};

std::vector<Case> selftest_cases();

}  // namespace tool
