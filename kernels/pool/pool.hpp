// The largest value or the mean of windows, in one to three spatial axes.
#pragma once

#include <array>
#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

struct PoolArgs {
  int32_t dtype;
  bool maximum;                            // else the mean
  const Buffer *input, *output, *indices;  // indices may be null
  uint64_t batch, channels;
  uint32_t spatial;                                                                // axes, 1 to 3
  std::array<uint64_t, 3> in_shape, out_shape, kernel, stride, padding, dilation;  // of which `spatial` are given
  int32_t ceil_mode, count_include_pad, adaptive;
};

void check_pool(const PoolArgs& args);
void host_pool(const PoolArgs& args);
void record_pool(Recorder& recorder, const PoolArgs& args);

// The same as depth, height and width, missing ones in front, with what 0 stands for filled in; and, for a window as
// large as the plane, adaptive with one output.
struct PoolShape {
  uint64_t planes;
  std::array<uint64_t, 3> in, out, kernel, stride, padding, dilation;
  bool adaptive;
  uint64_t inputs() const { return in[0] * in[1] * in[2]; }  // of a plane
  uint64_t outputs() const { return out[0] * out[1] * out[2]; }
  bool global() const { return adaptive && outputs() == 1; }
};
PoolShape pool_shape(const PoolArgs& args);

namespace operations {
extern const OperationOf<PoolArgs> max_pool, avg_pool;
}  // namespace operations

}  // namespace tuff
