#include "tool/tune_products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tool/usage.hpp"

namespace tool {
namespace {

using tuff::DType;

struct TypeName {
  DType type;
  const char* name;
  uint64_t bytes;
};
constexpr TypeName kTypes[] = {{DType::f32, "f32", 4},
                               {DType::f16, "f16", 2},
                               {DType::bf16, "bf16", 2},
                               {DType::f64, "f64", 8},
                               {DType::i8, "i8", 1}};

// In the format of bench/shapes/gemm.txt: shapes that networks and solvers use, one for each bucket of sizes.
constexpr const char* kBuiltIn = R"(
# squares, stored as they are and transposed
N N 64 64 64
N N 128 128 128
N N 256 256 256
N N 384 384 384
N N 512 512 512
N N 768 768 768
N N 1024 1024 1024
N N 1536 1536 1536
N N 2048 2048 2048
N N 3072 3072 3072
N N 4096 4096 4096
N N 8192 8192 8192
N T 256 256 256
N T 512 512 512
N T 1024 1024 1024
N T 2048 2048 2048
N T 4096 4096 4096
T N 256 256 256
T N 512 512 512
T N 1024 1024 1024
T N 2048 2048 2048
T N 4096 4096 4096
# a layer of a network and few rows of it
N N 1 4096 4096
N T 1 4096 4096
N N 8 4096 4096
N T 8 4096 4096
N N 16 4096 4096
N T 16 4096 4096
N N 32 4096 4096
N N 64 4096 4096
N T 64 4096 4096
N N 256 4096 4096
N T 256 4096 4096
N N 4096 1 4096
N N 4096 16 4096
N N 4096 64 4096
# long and short k
N N 64 64 16384
T N 64 64 16384
N N 256 256 8192
N N 2048 2048 64
# batches
N N 64 64 64 64
N N 128 128 128 32
N N 256 256 256 16
N T 512 512 64 16
N N 512 64 512 16
)";

bool is_transposed(const std::string& word, const std::string& place) {
  if (word != "N" && word != "T") throw std::runtime_error(fmt::format("{}: \"{}\" is not N or T", place, word));
  return word == "T";
}

uint64_t size(const std::string& word, const std::string& place) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || number == 0 || number > 1u << 20) {
    throw std::runtime_error(fmt::format("{}: \"{}\" is not a size from 1 to {}", place, word, 1u << 20));
  }
  return number;
}

Product parse_line(std::istringstream& words, const std::string& place) {
  std::vector<std::string> row;
  for (std::string word; words >> word;) row.push_back(word);
  if (row.size() != 5 && row.size() != 6) {
    throw std::runtime_error(
        fmt::format("{}: it has {} words, needs \"ta tb m n k\" or \"ta tb m n k batch\"", place, row.size()));
  }
  Product product{DType::f32, is_transposed(row[0], place), is_transposed(row[1], place), 0, 0, 0, 1};
  product.m = size(row[2], place);
  product.n = size(row[3], place);
  product.k = size(row[4], place);
  if (row.size() == 6) product.batch = size(row[5], place);
  return product;
}

const TypeName& type_name(DType type) {
  return *std::find_if(std::begin(kTypes), std::end(kTypes), [type](const TypeName& row) { return row.type == type; });
}

}  // namespace

std::string Product::name() const {
  return fmt::format("{} {}{} {} x {} x {}{}", type_name(type).name, ta ? 't' : 'n', tb ? 't' : 'n', m, n, k,
                     batch == 1 ? "" : fmt::format(", {} times", batch));
}

double Product::flops() const {
  return 2.0 * static_cast<double>(m * batch) * static_cast<double>(n) * static_cast<double>(k);
}

DType Product::c_type() const { return type == DType::i8 ? DType::i32 : type; }

uint64_t type_bytes(DType type) { return type == DType::i32 ? 4 : type_name(type).bytes; }

uint64_t Product::bytes() const { return batch * ((m * k + k * n) * type_bytes(type) + m * n * type_bytes(c_type())); }

std::vector<DType> parse_types(const std::string& words) {
  std::vector<DType> types;
  std::istringstream list(words);
  for (std::string word; std::getline(list, word, ',');) {
    const auto* found =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& row) { return row.name == word; });
    if (found == std::end(kTypes)) {
      throw UsageError(fmt::format("--type: \"{}\" is not one of f32, f16, bf16, f64 and i8", word));
    }
    if (std::find(types.begin(), types.end(), found->type) == types.end()) types.push_back(found->type);
  }
  if (types.empty()) throw UsageError("--type: it names none of f32, f16, bf16, f64 and i8");
  return types;
}

std::vector<Product> read_products(const std::string& path, const std::vector<DType>& types) {
  std::ifstream file;
  std::istringstream built_in(kBuiltIn);
  if (!path.empty()) {
    file.open(path);
    if (!file) throw std::runtime_error(fmt::format("--shapes: {} cannot be read", path));
  }
  std::istream& lines = path.empty() ? static_cast<std::istream&>(built_in) : file;
  std::vector<Product> rows;
  uint64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    if ((words >> std::ws).eof()) continue;
    rows.push_back(parse_line(words, fmt::format("{}:{}", path, number)));
  }
  if (rows.empty()) throw std::runtime_error(fmt::format("--shapes: {} has no shapes", path));
  std::stable_sort(rows.begin(), rows.end(), [](const Product& x, const Product& y) { return x.flops() < y.flops(); });
  std::vector<Product> products;
  for (const DType type : types) {
    for (Product product : rows) {
      product.type = type;
      products.push_back(product);
    }
  }
  return products;
}

}  // namespace tool
