// Plans a convolution on a Vulkan device: as a plain GEMM if it is one, by the depthwise kernel, or otherwise by
// implicit GEMM or one of its alternatives.
#include <algorithm>
#include <optional>
#include <string>

#include "kernels/common/stream_device.hpp"
#include "kernels/conv/conv_plan.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"

namespace tuff {
namespace {

using conv::kMaxColumns;

bool is_all(const ConvExtents& extents, uint64_t value) {
  return std::all_of(extents.begin(), extents.end(), [&](uint64_t x) { return x == value; });
}

bool is_unpadded(const ConvArgs& args) { return is_all(args.padding, 0) && is_all(args.padding_end, 0); }

// output = filter * input without patches, if the window is one pixel or the whole image.
std::optional<GemmArgs> as_gemm(const ConvArgs& args) {
  if (args.transposed || !is_unpadded(args) || args.in_shape.elements() == 0) return std::nullopt;
  const bool pointwise = is_all(args.taps(), 1) && is_all(args.stride, 1);
  const bool whole = args.taps() == args.in();  // then there is one output for each filter and image
  const uint64_t groups = args.groups, batch = args.batch(), pixels = args.out_shape.pixels();
  if (!pointwise && !whole) return std::nullopt;
  GemmArgs gemm{};
  gemm.a_type = gemm.b_type = gemm.c_type = args.dtype;
  gemm.accumulate = TUFF_F32;
  gemm.alpha = 1;
  gemm.c = args.output;
  gemm.epilogue.activation = args.activation;
  gemm.epilogue.bias = args.bias;
  gemm.epilogue.residual = args.residual;
  if (whole || args.channels_last()) {
    // output [pixels][filters] = input [pixels][channels] * filter^T
    if (groups != 1) return std::nullopt;
    gemm.m = whole ? batch : batch * pixels;
    gemm.n = args.filters();
    gemm.k = args.channels() * args.filter_shape.pixels();
    gemm.ta = TUFF_NO_TRANS;
    gemm.tb = TUFF_TRANS;
    gemm.a = args.input;
    gemm.b = args.filter;
    gemm.lda = gemm.ldb = gemm.k;
    if (args.bias != nullptr) gemm.epilogue.bias_axis = TUFF_BIAS_COLUMNS;
  } else {
    // output [filters][pixels] = filter * input [channels][pixels], for each image, or for each group of one image
    if (groups != 1 && batch != 1) return std::nullopt;
    gemm.m = args.group_filters();
    gemm.n = pixels;
    gemm.k = args.group_channels();
    gemm.ta = gemm.tb = TUFF_NO_TRANS;
    gemm.a = args.filter;
    gemm.b = args.input;
    gemm.lda = gemm.k;
    gemm.ldb = pixels;
    gemm.batch_count = groups != 1 ? groups : batch;
    gemm.stride_a = groups != 1 ? gemm.m * gemm.k : 0;
    gemm.stride_b = gemm.k * gemm.n;
    if (args.bias != nullptr) gemm.epilogue.bias_axis = TUFF_BIAS_ROWS;
    if (groups != 1) gemm.epilogue.stride_bias = gemm.m;
  }
  gemm.ldc = gemm.epilogue.ld_residual = gemm.n;
  gemm.stride_c = gemm.epilogue.stride_residual = gemm.m * gemm.n;
  return gemm;
}

// Whether a plain GEMM is the fastest way. A CPU device gathers an input once, whatever the filters, so that only GEMM
// with packed operands, which has no epilogue, is faster than implicit GEMM; so is GEMM with very few columns.
bool suits_gemm(const DeviceTraits& traits, const ConvArgs& args, const GemmArgs& gemm) {
  constexpr uint64_t kFewColumns = 32;
  // Kernels in PTX need rows that start at multiples of 16 bytes. Ordering the pixels first pays if other kernels would
  // load single elements (H200, 32 x 512 x 7 x 7, 2048 filters: 35 us, not 53; 32 x 256 x 14 x 14, 1024: 46, not 32).
  constexpr uint64_t kLoaded = 4;
  const bool uneven = gemm.b == args.input && gemm.ldb % kLoaded != 0;
  // In f32 rows may begin anywhere. There, images of few pixels leave much of a tile empty unless all are one matrix.
  constexpr uint64_t kTile = 128;
  const bool few = gemm.b == args.input && gemm.n * 10 < ceil_div(gemm.n, kTile) * kTile * 7;
  const bool orders = args.dtype == TUFF_F32 ? few && args.batch() > 1 : uneven;
  if (traits.hopper && orders && args.groups == 1 && conv::suits_matrices(traits, args)) return false;
  if (!traits.cpu || args.batch() * args.out_shape.pixels() < kFewColumns) return true;
  return args.dtype == TUFF_F32 && gemm.epilogue.none() && conv::packs_products(traits, gemm.m, gemm.n, gemm.k);
}

void record_images(Recorder& recorder, const ConvArgs& args) {
  const std::optional<std::string>& forced = forced_variant<"TUFF_CONV_VARIANT">();
  const DeviceTraits& traits = recorder.traits();
  if (!forced && conv::suits_rows(traits, args)) return conv::record_rows(recorder, args);
  if (conv::is_depthwise(args)) return conv::record_depthwise(recorder, args);
  if (args.transposed) return conv::record_transposed(recorder, args);
  if (conv::record_winograd(recorder, args)) return;
  const bool patches =
      forced ? *forced == "patches" && conv::runs_patches(traits, args) : conv::suits_patches(traits, args);
  if (patches) return conv::record_patches(recorder, args);
  const bool matrices =
      forced ? *forced == "matrices" && conv::runs_matrices(traits, args) : conv::suits_matrices(traits, args);
  if (matrices) return conv::record_matrices(recorder, args);
  conv::record_products(recorder, args);
}

// Records the convolution with at most `most` images at a time.
void record_cut(Recorder& recorder, const ConvArgs& args, uint64_t most) {
  for (uint64_t first = 0; first < args.batch(); first += most) {
    const uint64_t count = std::min(most, args.batch() - first);
    const uint64_t in_image = args.in_shape.elements() / args.batch();
    const uint64_t out_image = args.out_shape.elements() / args.batch();
    const Buffer input = moved(args.input, first * in_image, args.dtype);
    const Buffer output = moved(args.output, first * out_image, args.dtype);
    const Buffer residual = moved(args.residual, first * out_image, args.dtype);
    ConvArgs piece = args;
    if (args.input != nullptr) piece.input = &input;
    piece.output = &output;
    if (args.residual != nullptr) piece.residual = &residual;
    piece.in_shape.outer[0] = piece.out_shape.outer[0] = count;
    record_images(recorder, piece);
  }
}

}  // namespace

namespace conv {

void record_products(Recorder& recorder, const ConvArgs& args, uint64_t max_sums) {
  Product product;
  product.args = args;
  for (uint32_t axis = 0; axis < kConvAxes; ++axis) product.padding[axis] = static_cast<int64_t>(args.padding[axis]);
  record_products(recorder, product, max_sums);
}

void record_products(Recorder& recorder, Product product, uint64_t max_sums) {
  const ConvArgs& args = product.args;
  slice_taps(product, recorder.traits());
  if (product.slices == 1) return record_product(recorder, product);
  const uint64_t slices = product.slices, stored = stored_slices(slices, args.out_shape.elements(), max_sums);
  const Buffer partials = recorder.scratch(stored * args.out_shape.elements() * sizeof(float));
  product.partials = &partials;
  for (product.first_slice = 0; product.first_slice < slices; product.first_slice += stored) {
    product.slices = std::min(stored, slices - product.first_slice);
    record_product(recorder, product);
  }
  record_slices(recorder, args, partials, stored);
}

}  // namespace conv

void record_conv(Recorder& recorder, const ConvArgs& args) {
  require_storage(recorder.traits(), args.dtype);
  if (args.out_shape.elements() == 0) return;
  // A forced variant is used for all calls that it can compute, so it takes precedence over a plain GEMM.
  const bool forced = forced_variant<"TUFF_CONV_VARIANT">().has_value();
  if (const std::optional<GemmArgs> gemm = as_gemm(args);
      gemm && !forced && suits_gemm(recorder.traits(), args, *gemm)) {
    log(TUFF_LOG_DISPATCH, "conv as gemm: m={} n={} k={} batch={}", gemm->m, gemm->n, gemm->k, gemm->batch_count);
    return record_gemm(recorder, *gemm);
  }
  conv::check_positions(args);
  const uint64_t image =
      std::max<uint64_t>(args.out_shape.pixels() * (conv::is_depthwise(args) ? args.filters() : 1), 1);
  if (image >= kMaxColumns) {
    fail(TUFF_ERROR_UNSUPPORTED, "out_shape has {} outputs of an image, must be below {}", image, kMaxColumns);
  }
  const uint64_t most = (kMaxColumns - 1) / image;
  if (args.batch() <= most) return record_images(recorder, args);
  record_cut(recorder, args, most);
}

}  // namespace tuff
