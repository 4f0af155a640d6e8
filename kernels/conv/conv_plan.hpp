// What the planners of convolutions share.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "kernels/conv/conv.hpp"
#include "kernels/gemm/gemm.hpp"
#include "planning/recorder.hpp"
#include "shaders/conv_params.hpp"
#include "shaders/conv_store.hpp"

namespace tuff::conv {

// One dispatch's worth of an implicit product: a convolution whose outputs may be apart from one another. Fewer than
// 2^31 columns (images times output pixels).
struct Product {
  ConvArgs args;                             // in, taps, out, stride and dilation are the product's own
  std::array<int64_t, kConvAxes> padding{};  // in front; negative: the window begins within the input
  // One phase of a transposed convolution: output (p, q) lies at (p, q) * step in an image of the output.
  bool spaced = false;
  uint64_t out_image = 0, out_row = 0;  // elements
  std::array<uint64_t, 2> out_step = {1, 1};
  uint64_t out_first = 0;  // element of output and residual that is the first
  // Sums by slice of the taps, left to a second pass.
  const Buffer* partials = nullptr;
  uint64_t slices = 1, slice_taps = 0;
};

// Some columns of a product whose right-hand side is stored.
struct Columns {
  uint64_t first, count;
  uint64_t pitch() const { return ceil_div(count, 4) * 4; }  // of a row
};

// 0 where no input is read at all.
inline uint64_t taps_of(const ConvArgs& args) {
  return args.in_shape.elements() == 0 ? 0 : args.group_channels() * args.filter_shape.pixels();
}

// UNSUPPORTED unless kernels, which have 32 bits for it, can say where each tap lies in the padded input.
void check_positions(const ConvArgs& args);

// A distance of more than 16 bits along an axis is UNSUPPORTED, unless it is never gone.
uint32_t packed(const ConvArgs& args, const char* name, const ConvExtents& steps, const ConvExtents& counts,
                uint32_t low_axis, uint32_t high_axis);

// What conv_params.glsl is compiled by, and told.
shaders::ConvParams geometry_of(const Product& product);
template <bool patches, bool spaced>
using ProductPush = shaders::conv_params_push::Push<patches, spaced>;
// Of conv_patches.comp without the columns.
template <bool patches, bool spaced>
ProductPush<patches, spaced> push_of(const Product& product);

// What conv_store.glsl is compiled by; where sums are left to a second pass, nothing happens to them.
shaders::ConvStore store_of(const ConvArgs& args, const DeviceTraits& traits, bool sliced = false);

// conv_product_vulkan.cpp: an implicit product of any group and window. slice_taps() sets how many slices it wants;
// products that share `partials` have to agree on the most.
void slice_taps(Product& product, const DeviceTraits& traits);
// UNSUPPORTED where a number of it is beyond the kernels: for who records several, and none where one is refused.
void check_product(const Product& product);
void record_product(Recorder& recorder, const Product& product);
// Adds up the slices of a whole convolution.
void record_slices(Recorder& recorder, const ConvArgs& args, const Buffer& partials, uint64_t slices);

// conv_transpose_vulkan.cpp
void record_transposed(Recorder& recorder, const ConvArgs& args);

// conv_patches_vulkan.cpp: a product with patches stored in memory, where it can be, and where that is thought best.
bool runs_patches(const DeviceTraits& traits, const ConvArgs& args);
bool suits_patches(const DeviceTraits& traits, const ConvArgs& args);
// Whether a product of f32 is one that is packed first on this device (gemm_panels_vulkan.cpp).
bool packs_products(const DeviceTraits& traits, uint64_t m, uint64_t n, uint64_t k);
void record_patches(Recorder& recorder, const ConvArgs& args);

// conv_matrix_vulkan.cpp: a product on matrix units, likewise.
bool runs_matrices(const DeviceTraits& traits, const ConvArgs& args);
bool suits_matrices(const DeviceTraits& traits, const ConvArgs& args);
void record_matrices(Recorder& recorder, const ConvArgs& args);

// conv_winograd_vulkan.cpp: by Winograd's minimal filtering where the caller allows it, and it is thought to be faster.
// False: nothing was recorded.
bool record_winograd(Recorder& recorder, const ConvArgs& args);
bool is_winograd(std::string_view variant);

// conv_depthwise_vulkan.cpp
bool is_depthwise(const ConvArgs& args);
void record_depthwise(Recorder& recorder, const ConvArgs& args);

}  // namespace tuff::conv
