// Copies of elements whose places follow from axes and strides. Permute, slice, concat and repetition are implemented
// by them.
#pragma once

#include <cstdint>

#include "kernels/common/strided_axes.hpp"
#include "planning/buffer.hpp"

namespace tuff {

class Recorder;

struct StridedCopy {
  const char* name;
  uint64_t element;  // bytes: 1, 2, 4 or 8
  const Buffer *input, *output;
  uint64_t input_first, output_first;  // the element at coordinates 0 of each
  StridedAxes<2> axes;                 // strides of input and output
};

void host_strided_copy(const StridedCopy& copy);
void record_strided_copy(Recorder& recorder, const StridedCopy& copy);
// Throws UNSUPPORTED if the device has no storage of the elements' size. A caller that records several copies checks
// all of them first, so that a refused call has recorded nothing.
void check_strided_copy(Recorder& recorder, const StridedCopy& copy);

}  // namespace tuff
