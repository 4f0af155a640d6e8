// Shared by the planners of convolutions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "kernels/conv/conv.hpp"
#include "kernels/gemm/gemm.hpp"
#include "planning/recorder.hpp"
#include "shaders/conv_params.hpp"
#include "shaders/conv_store.hpp"

namespace tuff::conv {

// One dispatch's worth of implicit GEMM: a convolution whose outputs may have steps between them. Fewer than 2^31
// columns (images times output pixels).
struct Product {
  ConvArgs args;                             // in, taps, out, stride and dilation are those of this dispatch
  std::array<int64_t, kConvAxes> padding{};  // before; negative: the window begins inside the input
  // One phase of a transposed convolution: output (p, q) is stored at (p, q) * out_step in an image of the output.
  bool spaced = false;
  uint64_t out_image = 0, out_row = 0;  // elements
  std::array<uint64_t, 2> out_step = {1, 1};
  uint64_t out_first = 0;  // the first element of output and residual
  // Split-K: the sums of each part of the taps, for a second pass. A dispatch computes `slices` parts from first_slice
  // on, and adds them to the sums that are stored there unless they are the first.
  const Buffer* partials = nullptr;
  uint64_t slices = 1, slice_taps = 0, first_slice = 0;
};

// Limit on the columns of an implicit GEMM, and on the items of the depthwise kernel, in one dispatch: quotient() in
// conv_numbers.glsl divides numbers below it.
inline constexpr uint64_t kMaxColumns = uint64_t{1} << 31;

// The maximum number of split-K sums in scratch memory. If a convolution's parts have more, they are computed one after
// the other.
inline constexpr uint64_t kMaxStoredSums = uint64_t{1} << 26;

// How many split-K parts of a convolution with this many outputs are stored at a time.
inline uint64_t stored_slices(uint64_t slices, uint64_t outputs, uint64_t max_sums) {
  return std::clamp<uint64_t>(max_sums / std::max<uint64_t>(outputs, 1), 1, slices);
}

// A range of columns of a GEMM whose right-hand side is stored.
struct Columns {
  uint64_t first, count;
  uint64_t pitch() const { return ceil_div(count, 4) * 4; }  // elements from one row to the next
};

// Length of a filter's sum; 0 if no input is read at all.
inline uint64_t taps_of(const ConvArgs& args) {
  return args.in_shape.elements() == 0 ? 0 : args.group_channels() * args.filter_shape.pixels();
}

// UNSUPPORTED unless each tap's position in the padded input fits into the kernels' 32 bits.
void check_positions(const ConvArgs& args);

// Two steps (strides or dilations) in 16 bits each. UNSUPPORTED if one that is actually applied does not fit.
uint32_t packed(const ConvArgs& args, const char* name, const ConvExtents& steps, const ConvExtents& counts,
                uint32_t low_axis, uint32_t high_axis);

// The defines and push constants of conv_params.glsl.
shaders::ConvParams geometry_of(const Product& product);
template <bool patches, bool spaced>
using ProductPush = shaders::conv_params_push::Push<patches, spaced>;
// For conv_patches.comp without the range of columns.
template <bool patches, bool spaced>
ProductPush<patches, spaced> push_of(const Product& product);

// The defines of conv_store.glsl; with `sliced` the epilogue is left to the second pass.
shaders::ConvStore store_of(const ConvArgs& args, const DeviceTraits& traits, bool sliced = false);

// conv_product_vulkan.cpp: implicit GEMM for any groups and windows. slice_taps() sets the number of split-K
// parts that suits it; products that share `partials` have to use the maximum of theirs.
void slice_taps(Product& product, const DeviceTraits& traits);
// Throws UNSUPPORTED if the kernels cannot hold one of the numbers of a transposed convolution's phase. All phases are
// checked first, so that a refused call has recorded nothing.
void check_phase(const Product& product);
void check_dense_phase(const Product& product);
void record_product(Recorder& recorder, const Product& product);
// conv_vulkan.cpp: a whole convolution by implicit GEMM.
void record_products(Recorder& recorder, const ConvArgs& args, uint64_t max_sums = kMaxStoredSums);
void record_products(Recorder& recorder, Product product, uint64_t max_sums = kMaxStoredSums);
// Second pass of a whole convolution: adds up the split-K parts that are stored.
void record_slices(Recorder& recorder, const ConvArgs& args, const Buffer& partials, uint64_t slices);

// conv_transpose_vulkan.cpp
void record_transposed(Recorder& recorder, const ConvArgs& args, uint64_t max_sums = kMaxStoredSums);
// The same in up to three dimensions, each phase by the kernels of ordinary convolutions, in scratch memory unless
// there is only one.
void record_dense_phases(Recorder& recorder, const ConvArgs& args);
// Whether that is possible for these sizes, and expected to be faster.
bool runs_dense_phases(const ConvArgs& args);
bool suits_dense_phases(const DeviceTraits& traits, const ConvArgs& args);

// conv_patches_vulkan.cpp: GEMM with patches stored in memory. runs_…: whether it is possible; suits_…: whether it is
// expected to be the fastest.
bool runs_patches(const DeviceTraits& traits, const ConvArgs& args);
bool suits_patches(const DeviceTraits& traits, const ConvArgs& args);
// Whether an f32 GEMM of this size is computed with packed operands on this device (gemm_panels_vulkan.cpp).
bool packs_products(const DeviceTraits& traits, uint64_t m, uint64_t n, uint64_t k);
void record_patches(Recorder& recorder, const ConvArgs& args);
// Stores a range of columns' patches: [channels and taps][columns' pitch], of all groups, in f32 or in the input's
// type.
void record_gather(Recorder& recorder, const ConvArgs& args, const Columns& columns, const Buffer& patches,
                   int32_t stored);

// conv_matrix_vulkan.cpp: implicit GEMM by cooperative matrices, likewise.
bool runs_matrices(const DeviceTraits& traits, const ConvArgs& args);
bool suits_matrices(const DeviceTraits& traits, const ConvArgs& args);
void record_matrices(Recorder& recorder, const ConvArgs& args);
// The filter of a gradient by inputs as it is stored, from its last tap on: [channels][taps][filters], where `step` and
// `row` are the distances of taps and of rows of them, in the order that is the reverse of the convolution's.
struct StoredFilter {
  Buffer buffer;
  uint64_t elements, channel, step, row;
};
// A convolution with such a filter. Returns false and has recorded nothing if no kernel computes it here.
bool record_stored_filter(Recorder& recorder, const ConvArgs& args, const StoredFilter& filter);

// conv_winograd_vulkan.cpp: Winograd's minimal filtering, if the caller allows it and it is expected to be faster.
// Returns false if nothing was recorded.
bool record_winograd(Recorder& recorder, const ConvArgs& args);
bool is_winograd(std::string_view variant);

// conv_depthwise_vulkan.cpp
bool is_depthwise(const ConvArgs& args);
void record_depthwise(Recorder& recorder, const ConvArgs& args);

// conv_rows_vulkan.cpp
bool suits_rows(const DeviceTraits& traits, const ConvArgs& args);
void record_rows(Recorder& recorder, const ConvArgs& args);

}  // namespace tuff::conv
