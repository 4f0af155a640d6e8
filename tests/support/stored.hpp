// Tensors of f32, f16 or bf16 that a test accesses as floats, and the error that storage adds to a bound.
#pragma once

#include <cstdint>
#include <vector>

#include "support/tensor.hpp"
#include "support/typed_gemm.hpp"

namespace tuff_test {

// Rounds values to the nearest numbers of a type.
std::vector<float> rounded(int32_t dtype, std::vector<float> values);

// A TypedTensor that is filled and read as floats.
class StoredTensor {
 public:
  // Initialised with values, which must be of the type; `shift` elements past a 256-byte boundary.
  StoredTensor(tuff_context context, int32_t dtype, const std::vector<float>& values, uint64_t shift = 0);
  // Filled with poison.
  StoredTensor(tuff_context context, int32_t dtype, uint64_t count, uint64_t shift = 0);
  operator tuff_buffer() const { return tensor_; }  // NOLINT(google-explicit-constructor)

  // Waits, reads everything back and checks the guards. Elements that were not written read as poison().
  std::vector<float> read() const;
  void expect_unchanged(const std::vector<float>& values) const;

 private:
  int32_t dtype_;
  TypedTensor tensor_;
};

// Turns bounds on f32 results into bounds on those results rounded to a type.
void add_storage(Expected& expected, int32_t dtype);

}  // namespace tuff_test
