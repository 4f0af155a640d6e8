#include "fuzz/operands.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "fuzz/numbers.hpp"

namespace tuff_fuzz {

uint64_t bytes_of(const Operand& operand) { return operand.elements * size_of(operand.dtype); }

double draw_value(const Operand& operand, Draw& draw) {
  const auto most = static_cast<int64_t>(operand.most);
  const int32_t type = operand.dtype;
  const bool has_negative =
      type != TUFF_U8 && type != TUFF_U16 && type != TUFF_U32 && type != TUFF_U64 && type != TUFF_BOOL;
  switch (operand.fill) {
    case Fill::positive: return static_cast<double>(draw.between(1, static_cast<uint64_t>(most)));
    case Fill::powers: return draw.of({1.0, -1.0, 2.0, -2.0, 1.0, 1.0});
    case Fill::indices:
      return static_cast<double>(static_cast<int64_t>(draw.below(static_cast<uint64_t>(most) + 2)) -
                                 (has_negative ? 1 : 0));
    case Fill::booleans: return static_cast<double>(draw.below(3) != 0 ? draw.below(3) : 0);
    default:
      return static_cast<double>(static_cast<int64_t>(draw.below(2 * static_cast<uint64_t>(most) + 1)) -
                                 (has_negative ? most : 0));
  }
}

bool fill_bits(const Operand& operand, Draw& draw, uint8_t* to) {
  if (operand.fill == Fill::offsets) {
    std::vector<double> numbers(operand.elements);
    for (double& number : numbers) {
      number = static_cast<double>(draw.below(static_cast<uint64_t>(operand.most) + 1));
    }
    std::sort(numbers.begin(), numbers.end());
    for (uint64_t i = 0; i < operand.elements; ++i) {
      encode(operand.dtype, numbers[i], to + i * size_of(operand.dtype));
    }
    return true;
  }
  if (operand.fill != Fill::anything && operand.fill != Fill::odd) return false;
  for (uint64_t i = 0; i < bytes_of(operand); ++i) to[i] = static_cast<uint8_t>(draw.next());
  const uint64_t unit = size_of(operand.dtype);
  for (uint64_t i = 0; operand.fill == Fill::odd && i < operand.elements; ++i) to[i * unit] |= 1;
  return true;
}

void look(Operand& operand, const uint8_t* from) {
  const uint64_t unit = size_of(operand.dtype);
  Seen seen;
  operand.values.clear();
  for (uint64_t i = 0; i < operand.elements; ++i) {
    const double value = decode(operand.dtype, from + i * unit);
    if (operand.keep_values) operand.values.push_back(value);
    if (!(std::fabs(value) <= 1e18) || value != std::trunc(value)) {
      seen.integral = false, seen.most = seen.product = INFINITY;
      if (!operand.keep_values) break;
      continue;
    }
    seen.most = std::max(seen.most, std::fabs(value));
    seen.positive = seen.positive && value > 0;
    if (value != 0) seen.product *= std::fabs(value);
  }
  operand.seen = seen;
}

void mark(const Operand& operand, uint8_t* bytes) {
  const uint64_t unit = size_of(operand.dtype);
  if (operand.axes.empty()) {
    std::memset(bytes, 1, bytes_of(operand));
    return;
  }
  std::vector<uint64_t> index(operand.axes.size(), 0);
  for (;;) {
    uint64_t at = 0;
    for (size_t i = 0; i < index.size(); ++i) at += index[i] * operand.axes[i].stride;
    const Axis& last = operand.axes.back();
    for (uint64_t i = 0; i < last.count; ++i) {
      std::memset(bytes + (at + i * last.stride) * unit, 1, unit);
    }
    size_t axis = index.size() - 1;
    while (axis-- > 0) {
      if (++index[axis] < operand.axes[axis].count) break;
      index[axis] = 0;
    }
    if (axis == static_cast<size_t>(-1)) return;
  }
}

bool alike(const Operand& operand, uint64_t index, const uint8_t* host, const uint8_t* device) {
  // Types that decode() does not tell apart: doubles have fewer digits, and any byte other than 0 is true.
  if (operand.dtype == TUFF_I64 || operand.dtype == TUFF_U64 || operand.dtype == TUFF_BOOL) {
    return std::memcmp(host, device, size_of(operand.dtype)) == 0;
  }
  if (const int32_t part = part_of(operand.dtype); part != operand.dtype) {
    Operand parts = operand;
    parts.dtype = part;
    const uint64_t size = size_of(part);
    return alike(parts, index, host, device) && alike(parts, index, host + size, device + size);
  }
  const double wanted = decode(operand.dtype, host), got = decode(operand.dtype, device);
  if (std::isnan(wanted) || std::isnan(got)) return std::isnan(wanted) && std::isnan(got);
  if (wanted == got) return true;
  if (!operand.allowed) return false;
  const double allowed = operand.allowed(index, wanted);
  if (std::isinf(wanted) || std::isinf(got)) {
    // The largest number and infinity are neighbours.
    return std::signbit(wanted) == std::signbit(got) && operand.dtype == TUFF_F16 &&
           std::fabs(std::isinf(wanted) ? got : wanted) > 65000;
  }
  return std::fabs(wanted - got) <= allowed;
}

}  // namespace tuff_fuzz
