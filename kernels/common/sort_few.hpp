// A stable sort of a few values, such as axes, that allocates nothing: std::stable_sort asks for memory in every call.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace tuff {

template <typename Value, typename Before>
void sort_few(std::span<Value> values, const Before& before) {
  for (size_t end = 1; end < values.size(); ++end) {
    for (size_t i = end; i > 0 && before(values[i], values[i - 1]); --i) std::swap(values[i], values[i - 1]);
  }
}

}  // namespace tuff
