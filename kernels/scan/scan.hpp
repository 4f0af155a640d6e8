// Running sums and products along one axis of a dense tensor.
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
}  // namespace scan

enum class ScanOp : uint8_t { sum = 1, product = 2 };
inline const char* name_of(ScanOp op) { return op == ScanOp::sum ? "cumsum" : "cumprod"; }

struct ScanArgs {
  ScanOp op;
  int32_t dtype;
  const Buffer *input, *output;
  const uint64_t* shape;
  uint32_t rank, axis;
  bool exclusive, reverse;
};

void record_scan(Recorder& recorder, const ScanArgs& args);

namespace operations {
extern const OperationOf<ScanArgs> cumsum;
extern const OperationOf<ScanArgs> cumprod;
}  // namespace operations

}  // namespace tuff
