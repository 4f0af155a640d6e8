// Tensors seen along one axis: the tables of reduce and softmax share these shapes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tuff_test {

struct AxisShape {
  std::vector<uint64_t> shape;
  uint32_t axis = 0;
  uint64_t shift = 0;

  uint32_t rank() const { return static_cast<uint32_t>(shape.size()); }
  uint64_t length() const { return shape[axis]; }
  uint64_t outer() const {
    uint64_t result = 1;
    for (uint32_t i = 0; i < axis; ++i) result *= shape[i];
    return result;
  }
  uint64_t inner() const {
    uint64_t result = 1;
    for (uint32_t i = axis + 1; i < rank(); ++i) result *= shape[i];
    return result;
  }
  uint64_t count() const { return outer() * length() * inner(); }
  uint64_t index(uint64_t o, uint64_t r, uint64_t i) const { return (o * length() + r) * inner() + i; }
  double work() const { return static_cast<double>(count()); }
  std::string name() const {
    std::string result = "shape";
    for (uint64_t size : shape) result.append("_").append(std::to_string(size));
    result.append("_axis").append(std::to_string(axis));
    if (shift != 0) result.append("_shift").append(std::to_string(shift));
    return result;
  }
};

// Shapes that matter for 16-bit elements: blocks of eight, lengths and widths that are not multiples of eight, odd
// starts. The shift is in bytes of f32, so 16-bit tensors are shifted by half as many.
inline std::vector<AxisShape> axis_shapes16() {
  std::vector<AxisShape> all;
  for (uint64_t length : {1, 7, 8, 17, 64, 129, 1025, 4104, 20'011}) {
    all.push_back({{length}, 0, 4 * (length % 4)});
    all.push_back({{7, length}, 1, 4 * (length % 3)});
    all.push_back({{length, 5}, 0, 4 * (length % 5)});
    all.push_back({{3, length, 40}, 1, 0});
  }
  const std::vector<AxisShape> others = {
      {{2, 1000, 12}, 1, 0}, {{0, 5}, 1, 0},       {{64, 1024}, 1, 0},   {{64, 1024}, 0, 16},  {{1000, 100}, 1, 4},
      {{3, 500'009}, 1, 0},  {{500'009, 2}, 0, 4}, {{2000, 1000}, 0, 0}, {{200'000, 5}, 1, 4}, {{200'000, 16}, 1, 0}};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

// Axis lengths around every power of two, along rows and columns, few and many of them, ranks up to 8.
inline std::vector<AxisShape> axis_shapes() {
  std::vector<AxisShape> all;
  for (uint64_t length :
       {1,   2,   3,   4,   5,   7,   8,   9,   15,   16,   17,   31,   32,   33,   63,   64,   65,
        127, 128, 129, 255, 256, 257, 511, 513, 1000, 1023, 1025, 2047, 2049, 4096, 4099, 8193, 20'011}) {
    all.push_back({{length}, 0, 4 * (length % 4)});
    all.push_back({{7, length}, 1, 4 * (length % 3)});
    all.push_back({{length, 5}, 0, 4 * (length % 5)});
    all.push_back({{3, length, 33}, 1, 0});
  }
  const std::vector<AxisShape> others = {
      {{0, 5}, 1, 0},
      {{5, 3, 0}, 1, 0},
      {{4, 4}, 0, 0},
      {{2, 3, 4}, 0, 4},
      {{2, 3, 4}, 1, 4},
      {{2, 3, 4}, 2, 4},
      {{2, 3, 1, 4, 1, 2, 3, 2}, 0, 0},
      {{2, 3, 1, 4, 1, 2, 3, 2}, 3, 0},
      {{2, 3, 1, 4, 1, 2, 3, 2}, 4, 0},
      {{2, 3, 1, 4, 1, 2, 3, 2}, 7, 0},
      {{1, 1, 1, 1, 1, 1, 1, 1}, 7, 0},
      {{64, 1024}, 1, 0},
      {{64, 1024}, 0, 0},
      {{1000, 100}, 1, 4},
      {{100, 1000}, 0, 4},
      {{16, 256, 16}, 1, 0},
      {{5, 300, 64}, 1, 8},
      {{3, 4096, 3}, 1, 4},
      {{2, 9, 4096}, 1, 0},
      {{40, 17, 257}, 1, 12},
      {{1'000'003}, 0, 4},
      {{3, 500'009}, 1, 0},
      {{500'009, 2}, 0, 4},
      {{2000, 1000}, 0, 0},
      {{2000, 1000}, 1, 0},
      // more than 65,535 rows, columns, and both
      {{70'000, 3}, 1, 0},
      {{3, 70'000}, 0, 4},
      {{70'000, 2, 2}, 1, 0},
      {{200'000, 5}, 1, 4},
      {{2, 2'300'000}, 0, 0},
      {{2'300'000, 2}, 1, 0},
      // 160 MiB
      {{41'943'040}, 0, 0},
      {{40'961, 1024}, 1, 4},
      {{1024, 40'961}, 0, 0},
  };
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

}  // namespace tuff_test
