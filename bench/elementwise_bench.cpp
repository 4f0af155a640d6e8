#include <fmt/format.h>

#include <map>
#include <memory>

#include "bench/harness.hpp"

namespace bench {
namespace {

const std::map<std::string, tuff::Unary> kUnary = {
#define UNARY(number, NAME, name, ...) {#name, tuff::Unary::name},
#include "kernels/elementwise/unary.def"
};
const std::map<std::string, tuff::Binary> kBinary = {
#define BINARY(number, NAME, name, ...) {#name, tuff::Binary::name},
#include "kernels/elementwise/binary.def"
};

}  // namespace

void add_elementwise() {
  for (const auto& row : read_table("elementwise")) {
    const std::string& name = row.at(1);
    const uint64_t n = to_number(row.at(2));
    const bool unary = row.at(0) == "unary";
    const DType dtype = to_dtype(row, 3);
    const uint64_t bytes = (unary ? 2 : 3) * element_bytes(dtype) * n;
    const std::string title = fmt::format("tuff/{}/{}{}", name, n, dtype_suffix(dtype));
    if (unary) {
      add(title, {0, static_cast<double>(bytes)}, bytes, [=, op = kUnary.at(name)](const tuff::Context& context) {
        return [=, &context, x = random_buffer(context, n, dtype), y = empty_buffer(context, n)] {
          context.unary(dtype, op, *x, *y, n);
        };
      });
    } else {
      add(title, {0, static_cast<double>(bytes)}, bytes, [=, op = kBinary.at(name)](const tuff::Context& context) {
        return [=, &context, a = random_buffer(context, n, dtype), b = random_buffer(context, n, dtype),
                y = empty_buffer(context, n)] { context.binary(dtype, op, *a, *b, *y, n); };
      });
    }
  }
}

}  // namespace bench
