// Included before every source of the planners under test (-include). A static_cast to a narrower integer throws if it
// changes the number, instead of truncating it. The standard library is included first, so that it keeps the keyword.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numbers>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace tuff_test {

struct CutNumber : std::logic_error {
  using std::logic_error::logic_error;
};

template <typename To, typename From>
constexpr To checked_cast(From&& value, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  using Plain = std::remove_cvref_t<From>;
  if constexpr (std::is_integral_v<To> && std::is_integral_v<Plain>) {
    const To result = static_cast<To>(value);
    if (sizeof(To) < sizeof(Plain) && static_cast<Plain>(result) != value) {
      throw CutNumber(fmt::format("{}:{}: {} is cut to {}", file, line, value, result));
    }
    return result;
  } else {
    return static_cast<To>(std::forward<From>(value));
  }
}

}  // namespace tuff_test

#define static_cast ::tuff_test::checked_cast
