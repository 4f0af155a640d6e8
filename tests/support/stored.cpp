#include "support/stored.hpp"

#include <cmath>

namespace tuff_test {
namespace {

constexpr uint16_t kPoison16 = 0x7fd1;  // a quiet NaN of f16 and of bf16

Bytes encoded(int32_t dtype, const std::vector<float>& values) {
  Bytes bytes(values.size() * size_of(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    if (bits(values[i]) == kPoison && size_of(dtype) == 2) {
      std::memcpy(bytes.data() + 2 * i, &kPoison16, 2);
    } else {
      set_element(dtype, bytes, i, values[i]);
    }
  }
  return bytes;
}

}  // namespace

float rounded(int32_t dtype, double value) {
  if (dtype == TUFF_F32) return static_cast<float>(value);
  Bytes one(2);
  set_element(dtype, one, 0, value);
  return static_cast<float>(element(dtype, one, 0));
}

std::vector<float> rounded(int32_t dtype, std::vector<float> values) {
  for (float& value : values) value = rounded(dtype, value);
  return values;
}

StoredTensor::StoredTensor(tuff_context context, int32_t dtype, const std::vector<float>& values, uint64_t shift)
    : dtype_(dtype), tensor_(context, dtype, encoded(dtype, values), shift) {}

StoredTensor::StoredTensor(tuff_context context, int32_t dtype, uint64_t count, uint64_t shift)
    : StoredTensor(context, dtype, std::vector<float>(count, poison()), shift) {}

std::vector<float> StoredTensor::read() const {
  const Bytes bytes = tensor_.read();
  std::vector<float> values(bytes.size() / size_of(dtype_));
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype_ == TUFF_F32) {
      std::memcpy(&values[i], bytes.data() + 4 * i, 4);
    } else if (std::memcmp(bytes.data() + 2 * i, &kPoison16, 2) == 0) {
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
