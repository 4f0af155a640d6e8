// Running sums and products along one axis of a dense tensor.
#pragma once

#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

enum class ScanOp : uint8_t { sum = 1, product = 2 };

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
