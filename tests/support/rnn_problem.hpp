// Recurrent layers of tests: their sizes and options, where their operands' elements are, and numbers with bounds.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "support/bounds.hpp"
#include "support/stored.hpp"

namespace tuff_test {

inline constexpr int32_t kLstm = TUFF_RNN_CELL_LSTM, kGru = TUFF_RNN_CELL_GRU, kTanh = TUFF_RNN_CELL_TANH,
                         kRelu = TUFF_RNN_CELL_RELU;
inline constexpr int32_t kForward = TUFF_RNN_DIRECTION_FORWARD, kReverse = TUFF_RNN_DIRECTION_REVERSE,
                         kBoth = TUFF_RNN_DIRECTION_BOTH;
inline constexpr int32_t kTorch = TUFF_RNN_GATES_TORCH, kOnnx = TUFF_RNN_GATES_ONNX;

enum class RnnRows : uint8_t { dense, batch_first, padded };

struct RnnCase {
  int32_t cell = kLstm, direction = kForward, order = kTorch;
  bool linear_before_reset = false;
  uint64_t batch = 2, steps = 4, inputs = 5, hidden = 6, proj = 0;
  int32_t dtype = TUFF_F32;
  double clip = 0;
  bool bias_w = true, bias_r = true, peepholes = false, initial = true;
  std::vector<int32_t> lengths{};
  RnnRows rows = RnnRows::dense;
  bool outputs = true, finals = true, in_place = false;  // y, hn and cn; of gradients, those by them
  uint64_t shift = 0;
  bool whole = false;      // small integers, for which relu is exact
  bool gradients = false;  // of tuff_rnn_backward()

  uint64_t directions() const { return direction == kBoth ? 2 : 1; }
  uint64_t gates() const { return cell == kLstm ? 4 : cell == kGru ? 3 : 1; }
  uint64_t width() const { return proj != 0 ? proj : hidden; }
  std::array<uint64_t, 2> x_strides() const {
    const uint64_t row = inputs + (rows == RnnRows::padded ? 3 : 0);
    if (rows == RnnRows::batch_first) return {row, steps * row};
    return {batch * row + (rows == RnnRows::padded ? 2 : 0), row};
  }
  std::array<uint64_t, 3> y_strides() const {
    const uint64_t row = directions() * width();
    if (rows == RnnRows::batch_first) return {row, steps * row, width()};
    // As ONNX has it: [steps][directions][batch][width].
    if (rows == RnnRows::padded) return {directions() * (batch * width() + 1), width(), batch * width() + 1};
    return {batch * row, row, width()};
  }
  uint64_t bias_stride() const { return gates() * hidden + (rows == RnnRows::padded ? 5 : 0); }
  bool runs() const { return batch != 0 && steps != 0; }
  uint64_t x_at(uint64_t t, uint64_t b) const { return t * x_strides()[0] + b * x_strides()[1]; }
  uint64_t y_at(uint64_t t, uint64_t b, uint64_t d) const {
    return t * y_strides()[0] + b * y_strides()[1] + d * y_strides()[2];
  }
  uint64_t x_elements() const { return runs() ? x_at(steps - 1, batch - 1) + inputs : 0; }
  uint64_t y_elements() const { return runs() ? y_at(steps - 1, batch - 1, directions() - 1) + width() : 0; }
  uint64_t length(uint64_t b) const {
    const auto all = static_cast<int64_t>(steps);
    return static_cast<uint64_t>(lengths.empty() ? all : std::min<int64_t>(std::max(lengths[b], 0), all));
  }
  // Where each order has a gate.
  uint64_t place(char gate) const {
    if (cell == kLstm) return std::string(order == kOnnx ? "iofg" : "ifgo").find(gate);
    if (cell == kGru) return std::string(order == kOnnx ? "zrn" : "rzn").find(gate);
    return 0;
  }

  std::string name() const {
    static const char* const kCells[] = {"lstm", "gru", "tanh", "relu"};
    std::string text = kCells[cell];
    text += direction == kBoth ? "_both" : direction == kReverse ? "_reverse" : "";
    text += (order == kOnnx ? "_onnx" : "") + std::string(linear_before_reset ? "_linear" : "");
    for (const uint64_t size : {batch, steps, inputs, hidden}) text += "_" + std::to_string(size);
    if (proj != 0) text += "_to" + std::to_string(proj);
    text += std::string("_") + name_of(dtype) + (clip > 0 ? "_clip" : "");
    const bool neither = gradients && !bias_w && !bias_r;
    text += neither ? "_no_bias" : std::string(bias_w ? "" : "_no_bw") + (bias_r ? "" : "_no_br");
    text += std::string(peepholes ? "_peep" : "") + (initial ? "" : "_zeros") + (lengths.empty() ? "" : "_lengths");
    text += std::string(rows == RnnRows::batch_first ? "_first" : "") + (rows == RnnRows::padded ? "_padded" : "");
    const std::string by = gradients ? "_no_d" : "_no_";
    text += (outputs ? "" : by + "y") + (finals ? "" : by + "n");
    return text + (in_place ? "_in_place" : "") + (shift != 0 ? "_shift" : "") + (whole ? "_whole" : "");
  }
  double work() const {
    const double once = static_cast<double>(directions() * batch * steps * gates() * hidden * (inputs + width()));
    return gradients ? 8 * once : once;
  }
};

// add(row) for each cell, and for a GRU of both kinds.
template <typename Add>
void each_cell(RnnCase row, const Add& add) {
  for (const int32_t cell : {kLstm, kGru, kTanh, kRelu}) {
    row.cell = cell;
    add(row);
    if (cell != kGru) continue;
    row.linear_before_reset = true;
    add(row);
    row.linear_before_reset = false;
  }
}

inline Bytes lengths_bytes(const std::vector<int32_t>& lengths) {
  Bytes bytes(std::max<size_t>(lengths.size(), 1) * 4);
  for (size_t i = 0; i < lengths.size(); ++i) set_element(TUFF_I32, bytes, i, lengths[i]);
  return bytes;
}

// A number with a bound of its error.
struct Number {
  double value = 0, error = 0;
};
inline Number operator+(Number a, Number b) {
  const double value = a.value + b.value;
  return {value, a.error + b.error + kU * (std::fabs(value) + a.error + b.error)};
}
inline Number operator*(Number a, Number b) {
  const double value = a.value * b.value;
  const double error = std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + a.error * b.error;
  return {value, error + kU * (std::fabs(value) + error)};
}

// The error of an |h| of at most `size` as the sum of two numbers of 11 bits, of which the last is at least 2^-24, or
// of 8 bits: what the first leaves is at most 2^-12 or 2^-9 of h's power of two, and half of its own last bit is lost.
// In f32, an |h| and a weight are sums of three bf16 each, of which the second and the third are at most 2^-7 and 2^-16
// of it; their two products with each other are left out.
inline double split_error(int32_t dtype, double size) {
  if (dtype == TUFF_F16) return std::max(0x1p-23 * size, 0x1p-25);
  return dtype == TUFF_BF16 ? 0x1p-17 * size : 0x1p-22 * size;
}

// Rows of `count` elements that begin at `rows`; what lies between keeps the poison.
inline void expect_rows(const std::vector<float>& got, const Expected& expected, const std::vector<uint64_t>& rows,
                        uint64_t count, int32_t dtype) {
  std::vector<float> values;
  Expected wanted;
  std::vector<bool> of_row(got.size());
  for (const uint64_t first : rows) {
    for (uint64_t at = first; at < first + count; ++at) {
      of_row[at] = true;
      values.push_back(got[at]);
      wanted.value.push_back(expected.value[at]), wanted.bound.push_back(expected.bound[at]);
    }
  }
  for (size_t i = 0; i < got.size(); ++i) {
    if (!of_row[i]) {
      EXPECT_EQ(bits(got[i]), kPoison) << "element " << i << " lies between rows";
    }
  }
  if (dtype != TUFF_F32) add_storage(wanted, dtype);
  expect_matches(values, wanted);
}

}  // namespace tuff_test
