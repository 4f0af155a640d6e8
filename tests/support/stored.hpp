// Tensors of f32, f16 or bf16 that a test sees as floats, and what storage adds to a bound.
#pragma once

#include <cstdint>
#include <vector>

#include "support/tensor.hpp"
#include "support/typed_gemm.hpp"

namespace tuff_test {

// The nearest numbers of a type.
std::vector<float> rounded(int32_t dtype, std::vector<float> values);

// A TypedTensor that is filled and read as floats.
class StoredTensor {
 public:
  // Values of the type; `shift` elements past a 256-byte boundary.
  StoredTensor(tuff_context context, int32_t dtype, const std::vector<float>& values, uint64_t shift = 0);
  // Poisoned.
  StoredTensor(tuff_context context, int32_t dtype, uint64_t count, uint64_t shift = 0);
  operator tuff_buffer() const { return tensor_; }  // NOLINT(google-explicit-constructor)

  // Waits, reads everything back and checks the guards. poison() where nothing was written.
  std::vector<float> read() const;
  void expect_unchanged(const std::vector<float>& values) const;

 private:
  int32_t dtype_;
  TypedTensor tensor_;
};

// Bounds on f32 results become those on results that are then rounded to a type.
void add_storage(Expected& expected, int32_t dtype);

}  // namespace tuff_test
