// The problems of tuff selftest: random inputs, the call, and the error bound of a correct device.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tuff/tuff.hpp"

namespace tool {

using Tensor = std::vector<float>;
using Bound = std::vector<double>;

// Enqueues one operation; inputs are in the order of Problem::inputs.
using Buffers = std::vector<tuff::Buffer>;
using Call = std::function<void(const tuff::Context&, const Buffers& inputs, const tuff::Buffer& output)>;

// Runs a call on the host backend.
using HostRun = std::function<Tensor(const Call&, const std::vector<Tensor>& inputs, const Tensor& output)>;

// The largest allowed error of each element; reference is the host's result.
struct Problem;
using ErrorBound = std::function<Bound(const Problem&, const Tensor& reference, const HostRun&)>;

struct Problem {
  std::string operation;
  std::string shape;
  std::vector<Tensor> inputs;
  Tensor output;  // its contents before the call
  Call call;
  ErrorBound bound;
};

// Names the operation and its shape without creating the inputs, so that filtering costs nothing.
struct Case {
  std::string operation;
  std::string shape;
  std::function<Problem(uint64_t seed)> make;
  std::string needs = {};  // a name for tuff_supports(), if not every device has it
};

std::vector<Case> selftest_cases();

// What the files of cases share: reproducible random inputs, and error bounds.
constexpr double kRounding = 0x1p-24;   // u, the unit roundoff of f32
constexpr double kSmallest = 0x1p-126;  // the smallest normal f32: below it a device may flush to zero

// gamma_n = n u / (1 - n u): the relative error of n roundings (Higham, Accuracy and Stability, section 3.1).
double gamma(double n);
// Vulkan's bound on the error of exp(x): 3 + 2|x| units in the last place ("Precision of GLSL.std.450 Instructions").
double exp_error(double x);

// A reproducible random generator for inputs whose elements are distinguishable from their neighbours.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  Tensor uniform(uint64_t count, double low, double high);
  // Integers: their products and sums are exact below 2^24.
  Tensor integers(uint64_t count, int magnitude);

 private:
  double unit();
  uint64_t state_;
};

Tensor poison(uint64_t count);
Bound exact(const Problem&, const Tensor& reference, const HostRun&);
// The bound of a sum of products with n roundings: gamma_n times the same sum over magnitudes, which the host computes.
ErrorBound accumulated(double n, Call over_magnitudes);

// A case whose result must be bit-identical on every device.
Case exact_case(std::string operation, std::string shape, std::vector<uint64_t> inputs, uint64_t results, Call call);
// Changes a case so that its results may be off by `bound`.
Case within(Case entry, double bound);

// Each adds the cases of the file that is named after it, one for each shape: a new operation needs only a few.
void add_product_cases(std::vector<Case>& cases);
void add_row_cases(std::vector<Case>& cases);
void add_elementwise_cases(std::vector<Case>& cases);
void add_shape_cases(std::vector<Case>& cases);
void add_type_cases(std::vector<Case>& cases);
void add_linalg_cases(std::vector<Case>& cases);
void add_sparse_cases(std::vector<Case>& cases);

}  // namespace tool
