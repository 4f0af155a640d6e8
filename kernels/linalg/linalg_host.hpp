// What the host's linear algebra shares: matrices in doubles.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/common/elements.hpp"
#include "kernels/common/last_writes.hpp"
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

// Decomposes the matrices of a batch: body(T(), matrix, writes) returns its info and adds what it writes, which
// is written when all have been decomposed. Empty ones have info 0.
template <typename Args, typename Body>
void for_each_matrix(const Args& args, bool empty, const Body& body) {
  if (empty && args.info == nullptr) return;
  LastWrites writes;
  for (uint64_t matrix = 0; matrix < args.batch_count; ++matrix) {
    int32_t info = 0;
    if (!empty) with_type(args.dtype, [&](auto type) { info = body(type, matrix, writes); });
    if (args.info != nullptr) writes.add([&args, matrix, info] { args.info->template host<int32_t>()[matrix] = info; });
  }
  writes.run();
}

// Divides by a power of two, after which the largest magnitude is about 1. False: an element is NaN or infinite.
bool scale(Doubles& x, uint64_t rows, uint64_t columns, int& exponent);
double norm_of(const Doubles& x, uint64_t rows, uint64_t columns);  // the root of the sum of squares
Doubles identity(uint64_t n);

// QR factorisation of an m x n matrix: R in place, with zeros below its diagonal, and Q, which is an identity of m
// rows.
void householder(Doubles& a, uint64_t m, uint64_t n, Doubles* q, uint64_t q_columns);

}  // namespace tuff::linalg
