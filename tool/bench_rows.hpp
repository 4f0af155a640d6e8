// What tuff bench measures: one row for each operation and shape.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tuff/tuff.hpp"

namespace tool {

enum class Unit { flops, bytes, calls };
// Which of the device's measured limits a row is compared with.
enum class Limit { none, gemm, copy };

struct Row {
  std::string operation;
  std::string feature;  // as tuff info lists it; "copies" for rows that compute nothing
  std::string shape;
  Unit unit;
  Limit limit;
  double work;  // floating-point operations, bytes moved or calls in one repetition
  // Creates the buffers and returns the call to repeat, which keeps them alive. The context outlives it.
  std::function<std::function<void()>(const tuff::Context&)> prepare;
};

Row gemm_row(uint64_t m, uint64_t n, uint64_t k);
Row copy_row(uint64_t values);

// The names that a filter is matched against.
std::vector<std::string> names_of(const Row& row);

// All rows except the square GEMMs and the copy. large: shapes that keep a large GPU busy.
std::vector<Row> bench_rows(bool large, uint64_t values);

}  // namespace tool
