// What the host's linear algebra shares: matrices in doubles.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/common/elements.hpp"
#include "kernels/linalg/linalg.hpp"

namespace tuff::linalg {

// A copy of one matrix in doubles.
class Doubles {
 public:
  Doubles(uint64_t rows, uint64_t columns) : columns_(columns), values_(rows * columns) {}
  double& operator()(uint64_t i, uint64_t j) { return values_[i * columns_ + j]; }
  double operator()(uint64_t i, uint64_t j) const { return values_[i * columns_ + j]; }

 private:
  uint64_t columns_;
  std::vector<double> values_;
};

template <typename T>
T* matrix_at(const MatrixArgs& matrix, uint64_t index) {
  return matrix.buffer->host<T>() + index * matrix.stride;
}

template <typename T>
Doubles load(const MatrixArgs& matrix, uint64_t index, uint64_t rows, uint64_t columns) {
  Doubles result(rows, columns);
  const T* from = matrix_at<T>(matrix, index);
  for (uint64_t i = 0; i < rows; ++i) {
    for (uint64_t j = 0; j < columns; ++j) result(i, j) = static_cast<double>(from[i * matrix.ld + j]);
  }
  return result;
}

template <typename T>
void store(const Doubles& from, const MatrixArgs& matrix, uint64_t index, uint64_t rows, uint64_t columns) {
  T* to = matrix_at<T>(matrix, index);
  for (uint64_t i = 0; i < rows; ++i) {
    for (uint64_t j = 0; j < columns; ++j) to[i * matrix.ld + j] = static_cast<T>(from(i, j));
  }
}

template <typename Body>
void with_type(int32_t dtype, const Body& body) {
  dtype == TUFF_F64 ? body(double{}) : body(float{});
}

// Divides by a power of two, after which the largest magnitude is about 1. False: an element is NaN or infinite.
bool scale(Doubles& x, uint64_t rows, uint64_t columns, int& exponent);
double norm_of(const Doubles& x, uint64_t rows, uint64_t columns);  // the root of the sum of squares
Doubles identity(uint64_t n);

// QR factorisation of an m x n matrix: R in place, with zeros below its diagonal, and Q, which is an identity of m
// rows.
void householder(Doubles& a, uint64_t m, uint64_t n, Doubles* q, uint64_t q_columns);

}  // namespace tuff::linalg
