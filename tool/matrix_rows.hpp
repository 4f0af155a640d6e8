// Operations on matrices that tuff selftest checks with a small matrix and tuff bench measures with a large one. A row
// is all that either needs.
#pragma once

#include "tool/selftest_cases.hpp"

namespace tool {

// The call for a matrix of this size, and how many elements its operands have.
struct MatrixCall {
  std::vector<uint64_t> inputs;
  uint64_t results;
  Call call;
};

struct MatrixRow {
  const char* operation;
  const char* form;     // what it does, after the size of the matrix: "transposed"
  uint64_t rows, cols;  // in tuff selftest
  MatrixCall (*make)(uint64_t rows, uint64_t cols);
  double bound = 0;  // of the error in tuff selftest, for inputs from -300 to 300; 0: bit-identical on every device
};

const std::vector<MatrixRow>& matrix_rows();

}  // namespace tool
