#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "bench/harness.hpp"

namespace bench {

std::vector<std::vector<std::string>> read_table(const std::string& name) {
  const std::string path = fmt::format("{}/{}.txt", TUFF_BENCH_SHAPES, name);
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::vector<std::string> row;
    for (std::string word; words >> word;) row.push_back(word);
    if (!row.empty()) rows.push_back(std::move(row));
  }
  return rows;
}

uint64_t to_number(const std::string& word) {
  char* end = nullptr;
  uint64_t number = std::strtoull(word.c_str(), &end, 10);
  if (number == 2 && *end == '^') number = uint64_t{1} << std::strtoull(end + 1, &end, 10);
  if (end == word.c_str() || *end != '\0') throw std::runtime_error(fmt::format("\"{}\" is not a number", word));
  return number;
}

namespace {
constexpr std::pair<const char*, DType> kTypes[] = {{"f32", DType::f32}, {"f16", DType::f16}, {"bf16", DType::bf16}};
}

bool is_dtype(const std::string& word) {
  return std::any_of(std::begin(kTypes), std::end(kTypes), [&](const auto& type) { return word == type.first; });
}

DType to_dtype(const std::vector<std::string>& row, size_t at) {
  if (at >= row.size()) return DType::f32;
  for (const auto& [name, dtype] : kTypes) {
    if (row[at] == name) return dtype;
  }
  throw std::runtime_error(fmt::format("\"{}\" is not an element type", row[at]));
}

uint64_t element_bytes(DType dtype) { return dtype == DType::f32 ? 4 : 2; }

std::string dtype_suffix(DType dtype) { return dtype == DType::f16 ? "/f16" : dtype == DType::bf16 ? "/bf16" : ""; }

}  // namespace bench
