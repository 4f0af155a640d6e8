#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

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
  if (end == word.c_str() || *end != '\0') throw std::runtime_error(fmt::format("\"{}\" is no number", word));
  return number;
}

}  // namespace bench
