#include "support/stored.hpp"

#include <cmath>
#include <cstring>

namespace tuff_test {
namespace {

Bytes encoded(int32_t dtype, const std::vector<float>& values) {
  Bytes bytes(values.size() * size_of(dtype));
  if (dtype == TUFF_F32) {
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (bits(values[i]) == kPoison) {
      set_poison(dtype, bytes, i);
    } else {
      set_element(dtype, bytes, i, values[i]);
    }
  }
  return bytes;
}

Bytes poisoned(int32_t dtype, uint64_t count) {
  Bytes bytes(count * size_of(dtype));
  poison_all(dtype, bytes);
  return bytes;
}

}  // namespace

std::vector<float> rounded(int32_t dtype, std::vector<float> values) {
  if (dtype == TUFF_F32) return values;
  for (float& value : values) value = rounded(dtype, value);
  return values;
}

StoredTensor::StoredTensor(tuff_context context, int32_t dtype, const std::vector<float>& values, uint64_t shift)
    : dtype_(dtype), tensor_(context, dtype, encoded(dtype, values), shift) {}

StoredTensor::StoredTensor(tuff_context context, int32_t dtype, uint64_t count, uint64_t shift)
    : dtype_(dtype), tensor_(context, dtype, poisoned(dtype, count), shift) {}

std::vector<float> StoredTensor::read() const {
  const Bytes bytes = tensor_.read();
  std::vector<float> values(bytes.size() / size_of(dtype_));
  if (dtype_ == TUFF_F32) {
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (is_poison(dtype_, bytes, i)) {
      values[i] = poison();
    } else {
      values[i] = static_cast<float>(element(dtype_, bytes, i));
    }
  }
  return values;
}

void StoredTensor::expect_unchanged(const std::vector<float>& values) const { expect_same_bits(read(), values); }

void add_storage(Expected& expected, int32_t dtype) {
  if (dtype == TUFF_F32) return;
  expected.bound.resize(expected.value.size());
  for (size_t i = 0; i < expected.value.size(); ++i) {
    double& bound = expected.bound[i];
    bound += unit_roundoff(dtype) * (std::fabs(expected.value[i]) + bound) + (dtype == TUFF_F16 ? 0x1p-25 : 0);
  }
}

}  // namespace tuff_test
