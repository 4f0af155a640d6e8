// Plans implicit GEMM: chooses a tile by device and shape, and splits the taps (split-K) if one invocation cannot loop
// over all of them, or if there are too few tiles to fill the device.
//
// TUFF_CONV_VARIANT=<name> in the environment forces a variant in the table below, for tests and measurements. Forcing
// one that the device cannot run is an error.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "kernels/common/loop_limit.hpp"
#include "kernels/conv/conv_plan.hpp"
#include "kernels/gemm/implicit_gemm.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/status.hpp"
#include "shaders/conv_subgroup.hpp"
#include "shaders/conv_tile.hpp"

namespace tuff::conv {
namespace {

// A tile of filters x columns. Shared-memory tiles take `taps` taps at a time and have thread_filters x thread_columns
// sums per invocation. Subgroup tiles count filters and columns in units of the subgroup size.
struct Variant {
  const char* name;
  bool shared;
  uint32_t filters, columns, taps, thread_filters, thread_columns;

  uint32_t invocations() const { return filters / thread_filters * (columns / thread_columns); }
  uint32_t shared_bytes() const { return taps * (filters + 4 + columns + 4) * 4 + taps * 2 * 20; }
};

// Within each kind the largest comes first.
constexpr Variant kVariants[] = {
    {"tile_256x128", true, 256, 128, 16, 16, 8}, {"tile_128x128", true, 128, 128, 16, 8, 8},
    {"tile_64x128", true, 64, 128, 16, 8, 4},    {"tile_64x64", true, 64, 64, 16, 4, 4},
    {"tile_32x64", true, 32, 64, 16, 4, 4},      {"tile_32x32", true, 32, 32, 16, 4, 4},
    {"subgroup_4x4", false, 4, 4, 0, 0, 0},      {"subgroup_2x4", false, 2, 4, 0, 0, 0},
    {"subgroup_1x4", false, 1, 4, 0, 0, 0},      {"subgroup_1x8", false, 1, 8, 0, 0, 0},
};

// The maximum number of taps of one invocation. An iteration of the kernel's loop takes 4 of them, or variant.taps.
uint64_t taps_at_once(const Variant& variant, const DeviceTraits& traits) {
  if (!traits.cpu) return ~uint64_t{0};
  // Before that loop, finding out which taps of a window are inside the input (TAP_MASK) takes at most 31 iterations
  // per column.
  constexpr uint32_t kMaxColumns = 8, kMaskIterations = kMaxColumns * 40;
  return (kMaxLoopIterationsCpu - kMaskIterations) / 16 * 16 * uint64_t{variant.shared ? variant.taps : 4};
}

bool runs_on(const Variant& variant, const DeviceTraits& traits) {
  if (!variant.shared) return traits.subgroup_shuffle;
  return variant.invocations() <= traits.max_invocations && variant.invocations() <= traits.max_local_size[0] &&
         variant.shared_bytes() <= traits.shared_bytes;
}

uint64_t cores_of(const DeviceTraits& traits) { return traits.cores == 0 ? 16 : traits.cores; }

uint64_t columns_of(const ConvArgs& args) { return args.batch() * args.out_shape.pixels(); }

// Workgroups of one split-K part.
uint64_t groups_of(const Variant& variant, const DeviceTraits& traits, const ConvArgs& args) {
  const uint32_t unit = variant.shared ? 1 : traits.subgroup_size;
  return ceil_div(args.group_filters(), variant.filters * unit) * ceil_div(columns_of(args), variant.columns * unit) *
         args.groups;
}

// Chooses the largest tile that wastes little on few filters and gives every core work.
const Variant& choose(const DeviceTraits& traits, const ConvArgs& args) {
  const std::optional<std::string>& forced = forced_variant<"TUFF_CONV_VARIANT">();
  if (forced && *forced != "patches" && *forced != "matrices" && !is_winograd(*forced)) {
    for (const Variant& variant : kVariants) {
      if (*forced != variant.name) continue;
      if (!runs_on(variant, traits)) {
        fail(TUFF_ERROR_UNSUPPORTED, "TUFF_CONV_VARIANT={} does not run on this device", *forced);
      }
      return variant;
    }
    fail(TUFF_ERROR_INVALID_ARGUMENT, "TUFF_CONV_VARIANT={} is not a variant of a convolution", *forced);
  }
  const uint32_t unit = traits.cpu ? traits.subgroup_size : 1;
  const uint64_t filters = args.group_filters();
  const Variant* last = nullptr;
  for (const Variant& variant : kVariants) {
    if (variant.shared == traits.cpu || !runs_on(variant, traits)) continue;
    last = &variant;
    const uint64_t tile_filters = uint64_t{variant.filters} * unit;
    const bool wasteful = tile_filters >= 2 * filters || ceil_div(filters, tile_filters) * tile_filters > 2 * filters;
    if (!wasteful && groups_of(variant, traits, args) >= cores_of(traits)) return variant;
  }
  if (last == nullptr) fail(TUFF_ERROR_UNSUPPORTED, "no variant of a convolution runs on this device");
  return *last;
}

// Which operands can be read as vec4: the filter's rows, and with channels last the input's pixels.
struct Vectors {
  bool filter, channels;
};

Vectors vectors_of(const ConvArgs& args, uint64_t taps) {
  const uint64_t bytes = 4 * dtype_size(args.dtype);
  const auto aligned = [&](const Buffer* buffer) { return buffer == nullptr || buffer->offset % bytes == 0; };
  Vectors vectors{};
  vectors.filter = taps != 0 && taps % 4 == 0 && aligned(args.filter);
  vectors.channels = args.channels_last() && vectors.filter && args.group_channels() % 4 == 0 && aligned(args.input);
  return vectors;
}

// Positions are computed in 32 bits, and a value beyond every extent stands for "outside".
constexpr uint64_t kMaxExtent = uint64_t{1} << 30;

// The phases of a transposed convolution begin at most its padding within the input, which was checked before.
void check_product(const ConvArgs& args, uint64_t taps) {
  check_positions(args);
  if (taps >= kMaxExtent || args.filters() >= kMaxExtent || args.channels() >= kMaxExtent) {
    fail(TUFF_ERROR_UNSUPPORTED,
         "{} filters of {} taps and channels, of {} channels: beyond the limits of this version", args.filters(), taps,
         args.channels());
  }
}

}  // namespace

void check_positions(const ConvArgs& args) {
  static constexpr const char* kNames[] = {"depth", "height", "width"};
  for (uint32_t axis = 0; axis < kConvAxes; ++axis) {
    const uint64_t largest = std::max({args.in()[axis], args.padding[axis], args.padding_end[axis]});
    // The sum of numbers that large may not fit into 64 bits.
    const uint64_t span =
        largest >= kMaxExtent ? largest : args.in()[axis] + args.padding[axis] + args.padding_end[axis];
    if (span >= kMaxExtent) {
      fail(TUFF_ERROR_UNSUPPORTED, "the padded input's {} is {}, must be below {}", kNames[axis], span, kMaxExtent);
    }
    if (!args.transposed) continue;
    // Strides and dilations that are only multiplied by 0 count as 1.
    const uint64_t stride = args.in()[axis] <= 1 && args.out()[axis] <= 1 ? 1 : args.stride[axis];
    const uint64_t dilation = args.taps()[axis] <= 1 ? 1 : args.dilation[axis];
    const uint64_t reach = std::max({stride, dilation, args.taps()[axis], args.out()[axis]});
    if (reach >= kMaxExtent || dilation * args.taps()[axis] >= kMaxExtent) {
      fail(TUFF_ERROR_UNSUPPORTED,
           "the {} of a transposed convolution with stride {}, dilation {} and {} taps is {}: beyond the limits of "
           "this version",
           kNames[axis], stride, dilation, args.taps()[axis], args.out()[axis]);
    }
  }
}

uint32_t packed(const ConvArgs& args, const char* name, const ConvExtents& steps, const ConvExtents& counts,
                uint32_t low_axis, uint32_t high_axis) {
  uint32_t result = 0;
  for (const uint32_t axis : {low_axis, high_axis}) {
    // A step that is only multiplied by 0 may be any number.
    const uint64_t step = counts[axis] <= 1 ? 1 : steps[axis];
    if (step > 0xffff) {
      fail(TUFF_ERROR_UNSUPPORTED, "{}[{}] is {}, must be below 65,536", name, axis - (kConvAxes - args.rank), step);
    }
    result |= static_cast<uint32_t>(step) << (axis == low_axis ? 0 : 16);
  }
  return result;
}

template <bool patches, bool spaced>
ProductPush<patches, spaced> push_of(const Product& product) {
  const ConvArgs& args = product.args;
  const ConvExtents &in = args.in(), &window = args.taps(), &out = args.out();
  const uint64_t taps = taps_of(args);
  const auto number = [](uint64_t x) { return static_cast<uint32_t>(x); };
  check_product(args, taps);
  ProductPush<patches, spaced> push{.filters = number(args.group_filters()),
                                    .channels = taps == 0 ? 0 : number(args.group_channels()),
                                    .groups = number(args.groups),
                                    .columns = number(columns_of(args)),
                                    .P = number(out[1]),
                                    .Q = number(out[2]),
                                    .H = number(in[1]),
                                    .W = number(in[2]),
                                    .R = number(window[1]),
                                    .S = number(window[2]),
                                    .stride = packed(args, "stride", args.stride, out, 1, 2),
                                    .dilation = packed(args, "dilation", args.dilation, window, 1, 2),
                                    .pad_y = static_cast<int32_t>(product.padding[1]),
                                    .pad_x = static_cast<int32_t>(product.padding[2])};
  if constexpr (!patches) {
    push.slices = number(product.slices);
    push.slice_taps = number(product.partials != nullptr ? product.slice_taps : taps);
    push.first_slice = number(product.first_slice);
  }
  if constexpr (spaced) {
    push.out_image = number(product.out_image);
    push.out_row = number(product.out_row);
    push.out_step = packed(args, "stride", {1, product.out_step[0], product.out_step[1]}, out, 1, 2);
  } else {
    push.D = number(in[0]);
    push.O = number(out[0]);
    push.T = number(window[0]);
    push.pad_z = static_cast<int32_t>(product.padding[0]);
    push.depth = packed(args, "stride", args.stride, out, 0, 0) | packed(args, "dilation", args.dilation, window, 0, 0)
                                                                      << 16;
  }
  return push;
}

template ProductPush<true, false> push_of<true, false>(const Product&);
template ProductPush<false, false> push_of<false, false>(const Product&);

void check_phase(const Product& product) { push_of<false, true>(product); }
void check_dense_phase(const Product& product) { push_of<false, false>(product); }

shaders::ConvParams geometry_of(const Product& product) {
  const ConvArgs& args = product.args;
  const ConvExtents& window = args.taps();
  return {.channels_last = args.channels_last(),
          .depth = !args.flat() || product.padding[0] != 0,  // the phase of a gradient may begin behind the only plane
          .spaced = product.spaced,
          .tap_mask = window[0] + window[1] + window[2] <= 31,
          .type = args.dtype};
}

shaders::ConvStore store_of(const ConvArgs& args, const DeviceTraits& traits, bool sliced) {
  return {.activation = sliced ? TUFF_ACTIVATION_NONE : args.activation,
          .bias = !sliced && args.bias != nullptr,
          .exact_arithmetic = traits.cpu,
          .residual = !sliced && args.residual != nullptr};
}

void slice_taps(Product& product, const DeviceTraits& traits) {
  const ConvArgs& args = product.args;
  const Variant& variant = choose(traits, args);
  const uint64_t taps = taps_of(args), groups = groups_of(variant, traits, args);
  const uint64_t wanted = (traits.cpu ? 1 : 2) * cores_of(traits), least = traits.cpu ? 512 : 256;
  const uint64_t slices = std::clamp<uint64_t>(std::min(wanted / groups, taps / least), 1, 64);
  product.slice_taps = std::min(ceil_div(ceil_div(taps, slices), 16) * 16, taps_at_once(variant, traits));
  product.slices = product.slice_taps == 0 ? 1 : ceil_div(taps, product.slice_taps);
}

void record_product(Recorder& recorder, const Product& product) {
  const DeviceTraits& traits = recorder.traits();
  const ConvArgs& args = product.args;
  const uint64_t taps = taps_of(args);
  const Variant& variant = choose(traits, args);
  const bool sliced = product.partials != nullptr, adds = product.first_slice != 0;
  const Vectors vectors = vectors_of(args, taps);

  KernelRequest kernel = variant.shared ? shaders::ConvTile::request({.bk = variant.taps,
                                                                      .bm = variant.filters,
                                                                      .bn = variant.columns,
                                                                      .geometry = geometry_of(product),
                                                                      .sliced = sliced ? (adds ? 2 : 1) : 0,
                                                                      .store = store_of(args, traits, sliced),
                                                                      .tm = variant.thread_filters,
                                                                      .tn = variant.thread_columns,
                                                                      .vec_channels = vectors.channels,
                                                                      .vec_filter = vectors.filter})
                                        : shaders::ConvSubgroup::request({.filter_blocks = variant.filters,
                                                                          .geometry = geometry_of(product),
                                                                          .pairs = traits.addresses,
                                                                          .pixel_blocks = variant.columns,
                                                                          .sliced = sliced ? (adds ? 2 : 1) : 0,
                                                                          .store = store_of(args, traits, sliced),
                                                                          .tail = taps % 4 != 0,
                                                                          .vec_channels = vectors.channels,
                                                                          .vec_filter = vectors.filter,
                                                                          .width = traits.subgroup_size});
  // A subgroup's loads are gathers, like those of streaming kernels, and the same binding is twice as fast as the
  // other.
  if (!variant.shared) kernel.streaming();
  const uint64_t in_elements = args.in_shape.elements(), filter_elements = args.filter_shape.elements();
  const uint64_t out_images = product.spaced ? product.out_image : args.out_shape.pixels();
  const uint64_t out_elements = args.batch() * args.filters() * out_images * product.slices;
  kernel.wide(needs_wide(in_elements) || needs_wide(filter_elements) || needs_wide(out_elements));

  log(TUFF_LOG_DISPATCH,
      "conv {} {} filters={} groups={} columns={} taps={} parts={} vec_filter={} vec_channels={} wide={}", variant.name,
      dtype_name(args.dtype), args.filters(), args.groups, columns_of(args), taps, product.slices, vectors.filter,
      vectors.channels, kernel.is_wide());
  const uint64_t size = dtype_size(args.dtype), out_size = sliced ? 4 : size;
  // The output operand starts at the first output.
  const uint64_t skip = product.out_first * out_size, out_bytes = out_elements * out_size - skip;
  const bool reads = taps > 0;
  Dispatch dispatch("conv");
  dispatch.operand(reads ? args.input : nullptr, 0, reads ? in_elements * size : 0, Access::read)
      .operand(reads ? args.filter : nullptr, 0, reads ? filter_elements * size : 0, Access::read)
      .operand(sliced ? product.partials : args.output, skip, out_bytes, adds ? Access::read_write : Access::write)
      .operand(sliced ? nullptr : args.bias, 0, sliced || args.bias == nullptr ? 0 : args.filters() * size,
               Access::read)
      .operand(sliced ? nullptr : args.residual, skip, sliced || args.residual == nullptr ? 0 : out_bytes, Access::read)
      .groups_linear(groups_of(variant, traits, args) * product.slices, traits)
      .work(static_cast<double>((in_elements + filter_elements) * size) +
                static_cast<double>(args.out_shape.elements() * out_size),
            2.0 * static_cast<double>(args.out_shape.elements()) * static_cast<double>(taps))
      .variant(variant.name);
  if (product.spaced) {
    dispatch.push(push_of<false, true>(product));
  } else {
    dispatch.push(push_of<false, false>(product));
  }
  recorder.dispatch(kernel, dispatch);
}

void record_slices(Recorder& recorder, const ConvArgs& args, const Buffer& partials, uint64_t slices) {
  GemmArgs sum{};
  sum.a_type = sum.b_type = sum.c_type = args.dtype;
  sum.alpha = 1;
  sum.c = args.output;
  // With channels last the whole output is one matrix.
  const uint64_t pixels = args.out_shape.pixels(), filters = args.filters();
  const bool last = args.channels_last();
  sum.m = last ? args.batch() * pixels : filters;
  sum.n = sum.ldc = last ? filters : pixels;
  sum.batch_count = last ? 1 : args.batch();
  sum.stride_c = sum.m * sum.n;
  sum.epilogue.activation = args.activation;
  if (args.bias != nullptr) sum.epilogue.bias_axis = last ? TUFF_BIAS_COLUMNS : TUFF_BIAS_ROWS;
  sum.epilogue.bias = args.bias;
  sum.epilogue.residual = args.residual;
  sum.epilogue.ld_residual = sum.ldc;
  sum.epilogue.stride_residual = sum.stride_c;
  gemm::record_finish(recorder, sum, &partials, slices);
}

}  // namespace tuff::conv
