// Operations that move elements without computing anything, such as permute, and the conversion of element types.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/indexing/places.hpp"
#include "planning/buffer.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

// Axis i of the output is axis order[i] of the input.
struct PermuteArgs {
  int32_t dtype;
  const Buffer *input, *output;
  const uint64_t* shape;  // of the input
  const uint32_t* order;
  uint32_t rank;

  auto arrays() { return std::tuple(counted(shape, rank), counted(order, rank)); }
};

struct CastArgs {
  int32_t from, to;  // dtypes
  const Buffer *input, *output;
  uint64_t n;
};

// output[…] = input[start + step * …] along every axis.
struct SliceArgs {
  int32_t dtype;
  const Buffer *input, *output;
  const uint64_t *shape, *start, *out_shape;
  const int64_t* step;
  uint32_t rank;

  auto arrays() {
    return std::tuple(counted(shape, rank), counted(start, rank), counted(out_shape, rank), counted(step, rank));
  }
};

// Joins the inputs along an axis. Input i has size sizes[i] along it, and the output's shape otherwise.
struct ConcatArgs {
  int32_t dtype;
  std::span<const Buffer* const> inputs;
  const uint64_t* sizes;
  const Buffer* output;
  const uint64_t* shape;
  uint32_t rank, axis;

  auto arrays() { return std::tuple(counted(sizes, inputs.size()), counted(shape, rank)); }
};

// Selects elements along an axis by indices. Rows: output[o][j][i] = input[o][indices[j]][i], where o stands for the
// axes before it and i for those after it. Element-wise: the indices have a shape of the same rank, which is also the
// output's. Coordinates: several axes are indexed at once (kernels/indexing/places.hpp).
struct GatherArgs {
  int32_t dtype, index_type;
  const Buffer *input, *indices, *output;
  const uint64_t* shape;  // of the input
  uint32_t rank, axis;
  uint64_t count;               // rows: the number of indices
  const uint64_t* index_shape;  // element-wise: the shape of the indices; null: rows
  uint32_t coordinates = 0;     // rows: axes that each index has a number for; 0 counts as 1
  bool negative = false;        // negative indices count from the end of their axis

  IndexArgs index() const {
    return {index_type, indices, shape, rank, axis, count, index_shape, coordinates, negative};
  }
  auto arrays() { return std::tuple(counted(shape, rank), counted(index_shape, rank)); }
};

// output[…] = input[…], between operands with strides in elements.
struct CopyStridedArgs {
  int32_t dtype;
  const Buffer *input, *output;
  uint64_t input_first, output_first;
  const int64_t *input_strides, *output_strides;
  const uint64_t* shape;
  uint32_t rank;

  auto arrays() {
    return std::tuple(counted(input_strides, rank), counted(output_strides, rank), counted(shape, rank));
  }
};

// Adds elements at the ends of axes, or removes them.
struct PadArgs {
  int32_t dtype, mode;  // mode: TUFF_PAD_*
  const Buffer *input, *output;
  const uint64_t* shape;  // of the input
  const int64_t *before, *after;
  uint32_t rank;
  double value;
  int64_t integer;

  auto arrays() { return std::tuple(counted(shape, rank), counted(before, rank), counted(after, rank)); }
};

// A cast as one of real numbers: element i of the input, or its real part, is number i * from_step, and so on. The
// other number of a complex element becomes 0; a bool is also true if that of the input is not 0.
struct CastParts {
  int32_t from, to;  // dtypes
  uint32_t from_step, to_step;
  uint64_t n;
};
CastParts cast_parts(const CastArgs& args);

void check_permute(const PermuteArgs& args);
void host_permute(const PermuteArgs& args);
void record_permute(Recorder& recorder, const PermuteArgs& args);
tuff_status offer_permute(const PluginFunction& function, const PermuteArgs& args);

void check_slice(const SliceArgs& args);
void host_slice(const SliceArgs& args);
void record_slice(Recorder& recorder, const SliceArgs& args);

void check_concat(const ConcatArgs& args);
void host_concat(const ConcatArgs& args);
void record_concat(Recorder& recorder, const ConcatArgs& args);
bool record_concat_at_once(Recorder& recorder,
                           const ConcatArgs& args);  // false: not suitable for this device or these sizes

void check_gather(const GatherArgs& args);
void host_gather(const GatherArgs& args);
void record_gather(Recorder& recorder, const GatherArgs& args);
tuff_status offer_gather(const PluginFunction& function, const GatherArgs& args);

void check_pad(const PadArgs& args);
void host_pad(const PadArgs& args);
void record_pad(Recorder& recorder, const PadArgs& args);

void check_copy_strided(const CopyStridedArgs& args);
void host_copy_strided(const CopyStridedArgs& args);
void record_copy_strided(Recorder& recorder, const CopyStridedArgs& args);

void check_cast(const CastArgs& args);
void host_cast(const CastArgs& args);
void record_cast(Recorder& recorder, const CastArgs& args);
tuff_status offer_cast(const PluginFunction& function, const CastArgs& args);

namespace operations {
extern const OperationOf<PermuteArgs> permute;
extern const OperationOf<CastArgs> cast;
extern const OperationOf<SliceArgs> slice;
extern const OperationOf<ConcatArgs> concat;
extern const OperationOf<GatherArgs> gather;
extern const OperationOf<PadArgs> pad;
extern const OperationOf<CopyStridedArgs> copy_strided;
}  // namespace operations

}  // namespace tuff
