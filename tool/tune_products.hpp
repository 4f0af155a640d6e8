// The GEMMs that tuff tune measures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tuff/tuff.hpp"

namespace tool {

struct Product {
  tuff::DType type;  // of A and B; C has the same type, or i32 for i8
  bool ta, tb;
  uint64_t m, n, k, batch;

  std::string name() const;  // "f32 nn 512 x 512 x 512", "f16 nt 64 x 64 x 64, 16 times"
  double flops() const;
  uint64_t bytes() const;  // of all operands
  tuff::DType c_type() const;
};

// "f32,f16" → the types; throws std::runtime_error for any other word.
std::vector<tuff::DType> parse_types(const std::string& words);
uint64_t type_bytes(tuff::DType type);

// Reads lines of "ta tb m n k [batch]" with N or T, as in bench/shapes/gemm.txt; an empty path selects the built-in
// list. Returns every line once for each type, smallest GEMMs first. Throws std::runtime_error with the path and line.
std::vector<Product> read_products(const std::string& path, const std::vector<tuff::DType>& types);

}  // namespace tool
