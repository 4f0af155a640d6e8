// Running sums, products, maxima, minima and logarithms of sums of exponentials along one axis of a dense tensor.
#pragma once

#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/element_type.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

namespace scan {
#define SCAN_TYPE(NAME) TUFF_##NAME,
inline constexpr ElementTypes kTypes = {
#include "kernels/scan/scan.def"
};

inline constexpr ElementTypes kLogTypes = kFloatTypes | ElementTypes{TUFF_F64};  // of cumlogsumexp

// The type that values are computed in and kept as between dispatches.
inline int32_t value_type(int32_t dtype) {
  return dtype_size(dtype) < 4 && !kFloatTypes.has(dtype) ? TUFF_I32 : computed_type(dtype);
}
}  // namespace scan

enum class ScanOp : uint8_t { sum = 1, product = 2, maximum = 3, minimum = 4, log_sum_exp = 5 };
inline const char* name_of(ScanOp op) {
  constexpr const char* kNames[] = {"cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"};
  return kNames[static_cast<int>(op) - 1];
}

struct ScanArgs {
  ScanOp op;
  int32_t dtype;
  const Buffer *input, *output;
  const uint64_t* shape;
  uint32_t rank, axis;
  bool exclusive, reverse;

  auto arrays() { return std::tuple(counted(shape, rank)); }
};

void record_scan(Recorder& recorder, const ScanArgs& args);

namespace operations {
extern const OperationOf<ScanArgs> cumsum;
extern const OperationOf<ScanArgs> cumprod;
extern const OperationOf<ScanArgs> cummax;
extern const OperationOf<ScanArgs> cummin;
extern const OperationOf<ScanArgs> cumlogsumexp;
}  // namespace operations

}  // namespace tuff
