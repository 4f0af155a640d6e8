#include "tool/matrix_rows.hpp"

namespace tool {
namespace {

using tuff::DType;

MatrixCall transposed(uint64_t rows, uint64_t cols) {
  return {{rows * cols}, rows * cols, [=](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
            context.permute(DType::f32, in[0], out, {rows, cols}, {1, 0});
          }};
}

MatrixCall half_of_each_row(uint64_t rows, uint64_t cols) {
  const uint64_t half = cols / 2;
  return {{rows * cols}, rows * half, [=](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
            context.slice(DType::f32, in[0], out, {rows, cols}, {0, half / 2}, {rows, half});
          }};
}

MatrixCall two_halves(uint64_t rows, uint64_t cols) {
  const uint64_t half = cols / 2;
  return {{rows * half, rows * half},
          2 * rows * half,
          [=](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
            context.concat(DType::f32, {in[0], in[1]}, {half, half}, out, {rows, 2 * half}, 1);
          }};
}

}  // namespace

const std::vector<MatrixRow>& matrix_rows() {
  static const std::vector<MatrixRow> rows = {
      {"permute", "transposed", 300, 500, transposed},
      {"slice", "half of each row", 90, 100, half_of_each_row},
      {"concat", "of two halves", 40, 60, two_halves},
  };
  return rows;
}

}  // namespace tool
