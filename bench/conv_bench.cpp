#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "bench/harness.hpp"

namespace bench {
namespace {

// A row of a shape table.
struct Shape {
  uint64_t n, c, h, w, k, r, s, stride, padding, groups = 1;
  DType dtype = DType::f32;
  int32_t layout = TUFF_LAYOUT_NCHW;
  bool winograd = false;
};

Shape read_shape(const std::vector<std::string>& row) {
  const auto number = [&](size_t i) { return to_number(row.at(i)); };
  Shape shape{number(0), number(1), number(2), number(3), number(4), number(5), number(6), number(7), number(8)};
  for (size_t i = 9; i < row.size(); ++i) {
    if (row[i] == "nhwc") {
      shape.layout = TUFF_LAYOUT_NHWC;
    } else if (row[i] == "winograd") {
      shape.winograd = true;
    } else if (is_dtype(row[i])) {
      shape.dtype = to_dtype(row, i);
    } else {
      shape.groups = number(i);
    }
  }
  return shape;
}

template <typename Desc>
Desc describe(const Shape& x, const uint64_t (&filter_shape)[4], uint64_t p, uint64_t q) {
  Desc desc{};
  desc.dtype = static_cast<int32_t>(x.dtype);
  const uint64_t in_shape[] = {x.n, x.c, x.h, x.w}, out_shape[] = {x.n, x.k, p, q};
  std::copy_n(in_shape, 4, desc.in_shape);
  std::copy_n(filter_shape, 4, desc.filter_shape);
  std::copy_n(out_shape, 4, desc.out_shape);
  std::fill_n(desc.stride, 2, x.stride);
  std::fill_n(desc.padding, 2, x.padding);
  desc.groups = x.groups;
  desc.layout = x.layout;
  if constexpr (requires { desc.precision; }) {
    if (x.winograd) desc.precision = TUFF_PRECISION_ALLOW_WINOGRAD;
  }
  return desc;
}

// `call` is Context::conv2d or ::conv_transpose2d with a descriptor.
template <typename Desc, typename Call>
void add_shape(const char* operation, const Shape& x, const Desc& desc, double flops, const Call& call) {
  const auto count = [](const uint64_t(&shape)[4]) { return shape[0] * shape[1] * shape[2] * shape[3]; };
  const uint64_t in = count(desc.in_shape), filter = count(desc.filter_shape), out = count(desc.out_shape);
  std::string name =
      fmt::format("tuff/{}/{}x{}x{}x{}/{}x{}x{}/stride {}", operation, x.n, x.c, x.h, x.w, x.k, x.r, x.s, x.stride);
  if (x.groups != 1) name += fmt::format("/groups {}", x.groups);
  name += dtype_suffix(x.dtype);
  if (x.layout == TUFF_LAYOUT_NHWC) name += "/nhwc";
  if (x.winograd) name += "/winograd";
  add(name, {flops, 0}, element_bytes(x.dtype) * (in + filter + out), [=](const tuff::Context& context) {
    auto input = random_buffer(context, in, x.dtype);
    auto weights = random_buffer(context, filter, x.dtype);
    auto output = empty_buffer(context, out);
    Desc with_buffers = desc;
    with_buffers.input = input->handle();
    with_buffers.filter = weights->handle();
    with_buffers.output = output->handle();
    return [=, &context] {
      static_cast<void>(input), static_cast<void>(weights), static_cast<void>(output);  // kept alive
      call(context, with_buffers);
    };
  });
}

}  // namespace

void add_conv() {
  for (const auto& row : read_table("conv2d")) {
    const Shape x = read_shape(row);
    const uint64_t p = (x.h + 2 * x.padding - x.r) / x.stride + 1, q = (x.w + 2 * x.padding - x.s) / x.stride + 1;
    const auto flops = 2.0 * static_cast<double>(x.n * x.k * p * q) * static_cast<double>(x.c / x.groups * x.r * x.s);
    add_shape("conv2d", x, describe<tuff_conv2d_desc>(x, {x.k, x.c / x.groups, x.r, x.s}, p, q), flops,
              [](const tuff::Context& context, const tuff_conv2d_desc& desc) { context.conv2d(desc); });
  }
  for (const auto& row : read_table("conv_transpose2d")) {
    const Shape x = read_shape(row);
    const uint64_t p = (x.h - 1) * x.stride + x.r - 2 * x.padding, q = (x.w - 1) * x.stride + x.s - 2 * x.padding;
    // Each input pixel is multiplied by each tap, ignoring what padding removes.
    const auto flops = 2.0 * static_cast<double>(x.n * x.c * x.h * x.w) * static_cast<double>(x.k * x.r * x.s);
    add_shape(
        "conv_transpose2d", x, describe<tuff_conv_transpose2d_desc>(x, {x.c, x.k, x.r, x.s}, p, q), flops,
        [](const tuff::Context& context, const tuff_conv_transpose2d_desc& desc) { context.conv_transpose2d(desc); });
  }
}

}  // namespace bench
