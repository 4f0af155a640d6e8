// Parts of the text by which profiles describe a call.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <span>
#include <string>

#include "planning/operation.hpp"

namespace tuff {

template <typename T>
std::string describe_sizes(const T* first, size_t count) {
  return fmt::format("[{}]", fmt::join(std::span<const T>(first, count), ","));
}

// For operations that turn planes of one size into planes of another: pooling, resize.
template <typename Args>
CallText describe_planes(const Args& args) {
  return {fmt::format("{} {}x{}x{} to {}", dtype_name(args.dtype), args.batch, args.channels,
                      fmt::join(std::span(args.in_shape.data(), args.spatial), "x"),
                      fmt::join(std::span(args.out_shape.data(), args.spatial), "x")),
          args.dtype};
}

}  // namespace tuff
