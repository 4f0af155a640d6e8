// Row-major matrices of a batch, with gaps between rows and between matrices.
#pragma once

#include "fuzz/draft.hpp"

namespace tuff_fuzz {

struct Stored {
  uint64_t rows, cols, leading, stride;
  std::vector<Axis> axes(uint64_t batch) const {
    return {{rows == 0 || cols == 0 ? 0 : batch, stride}, {rows, leading}, {cols, 1}};
  }
  uint64_t at(uint64_t matrix, uint64_t i, uint64_t j) const { return matrix * stride + i * leading + j; }
};

// padded: there may be gaps. repeat: all matrices of the batch are the same one.
inline Stored stored(Draft& d, uint64_t rows, uint64_t cols, uint64_t batch, bool padded, bool repeat) {
  Stored matrix{rows, cols, cols, 0};
  if (padded) matrix.leading += d.loose().below(4);
  if (!repeat && batch > 1) matrix.stride = footprint(matrix.axes(1)) + (padded ? d.loose().below(6) : 0);
  return matrix;
}

// Sets a leading dimension, which 0 stands for if rows are dense.
inline void set_leading(Draft& d, const char* name, const Stored& matrix) {
  d.set(name, matrix.leading == matrix.cols && d.free.one_in(2) ? 0 : matrix.leading);
}

}  // namespace tuff_fuzz
