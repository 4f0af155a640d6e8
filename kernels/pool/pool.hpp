// The maximum or the mean of windows, along one to three spatial axes.
#pragma once

#include <array>
#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

struct PoolArgs {
  int32_t dtype;
  bool maximum;                            // otherwise the mean
  const Buffer *input, *output, *indices;  // indices may be null
  uint64_t batch, channels;
  uint32_t spatial;                                                                // axes, 1 to 3
  std::array<uint64_t, 3> in_shape, out_shape, kernel, stride, padding, dilation;  // `spatial` entries each are set
  int32_t ceil_mode, count_include_pad, adaptive;
};

void check_pool_windows(const PoolArgs& args);  // all but the operands
void check_pool(const PoolArgs& args);
void host_pool(const PoolArgs& args);
void record_pool(Recorder& recorder, const PoolArgs& args);
tuff_status offer_pool(const PluginFunction& function, const PoolArgs& args);

// The arguments as depth, height and width: missing axes are added in front, and zeros are replaced by what they stand
// for. A window as large as the plane becomes adaptive pooling with one output.
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
