// Plans a convolution on a Vulkan device: choose a tile by the device and the shape, record one dispatch,
// or several where one shader invocation could not loop over all taps.
//
// TUFF_CONV_VARIANT=<name> in the environment forces a row of the table below, for tests and measurements;
// one that the device cannot run is refused.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>

#include "kernels/common/loop_limit.hpp"
#include "kernels/conv/conv.hpp"
#include "runtime/log.hpp"
#include "runtime/platform/platform.hpp"
#include "runtime/status.hpp"
#include "runtime/vulkan/recorder.hpp"
#include "shaders.hpp"

namespace tuff {
namespace {

// A tile of filters x columns. Shared-memory tiles have 16 taps in flight and thread_filters x
// thread_columns sums for each invocation; subgroup tiles count both in subgroups.
struct Variant {
  const char* name;
  bool shared;
  uint32_t filters, columns, taps, thread_filters, thread_columns;

  uint32_t invocations() const { return filters / thread_filters * (columns / thread_columns); }
  uint32_t shared_bytes() const { return taps * (filters + 4 + columns) * 4 + taps * 2 * 16; }
};

// In each kind: largest first.
constexpr Variant kVariants[] = {
    {"tile_256x128", true, 256, 128, 16, 16, 8}, {"tile_128x128", true, 128, 128, 16, 8, 8},
    {"tile_64x128", true, 64, 128, 16, 8, 4},    {"tile_64x64", true, 64, 64, 16, 4, 4},
    {"tile_32x64", true, 32, 64, 16, 4, 4},      {"tile_32x32", true, 32, 32, 16, 4, 4},
    {"subgroup_4x4", false, 4, 4, 0, 0, 0},      {"subgroup_2x4", false, 2, 4, 0, 0, 0},
    {"subgroup_1x4", false, 1, 4, 0, 0, 0},      {"subgroup_1x8", false, 1, 8, 0, 0, 0},
};

// Mirrors Push in conv2d_params.glsl, behind the bases.
struct ConvPush {
  uint32_t K, H, W, P, Q, S, RS, taps;
  uint32_t stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x;
  uint32_t filter_tiles;
  uint32_t rs_multiplier, rs_shift, s_multiplier, s_shift;
  uint32_t columns_low, columns_high, channels;
  uint32_t tap_begin, tap_end;
};

// The most taps of one dispatch: one turn of the kernel's loop adds 4 of them, or variant.taps.
uint64_t taps_at_once(const Variant& variant, const DeviceTraits& traits) {
  if (!traits.cpu) return ~uint64_t{0};
  // The bits of an invocation's columns (TAP_MASK) come first: 32 taps each, every one a turn of two nested loops
  // at worst, and some for their ends.
  constexpr uint32_t kMostColumns = 8, kMaskIterations = kMostColumns * 256;
  return (kMaxLoopIterationsCpu - kMaskIterations) * uint64_t{variant.shared ? variant.taps : 4};
}

struct Divider {
  uint32_t multiplier, shift;
};

// n / d = (mulhi(n, multiplier) + n) >> shift for n < 2^31.
Divider divider(uint32_t d) {
  const uint32_t shift = static_cast<uint32_t>(std::bit_width(d - 1u));
  return {static_cast<uint32_t>((((uint64_t{1} << shift) - d) << 32) / d + 1), shift};
}

bool runs_on(const Variant& variant, const DeviceTraits& traits) {
  if (!variant.shared) return traits.subgroup_ballot;
  return variant.invocations() <= traits.max_invocations && variant.invocations() <= traits.max_local_size[0] &&
         variant.shared_bytes() <= traits.shared_bytes;
}

uint64_t groups_of(const Variant& variant, const DeviceTraits& traits, uint64_t filters, uint64_t columns) {
  const uint32_t unit = variant.shared ? 1 : traits.subgroup_size;
  return ceil_div(filters, variant.filters * unit) * ceil_div(columns, variant.columns * unit);
}

// The largest tile that wastes little on few filters and leaves work for every core.
const Variant& choose(const DeviceTraits& traits, uint64_t filters, uint64_t columns) {
  static const std::optional<std::string> forced = platform::environment("TUFF_CONV_VARIANT");
  if (forced) {
    for (const Variant& variant : kVariants) {
      if (*forced != variant.name) continue;
      if (!runs_on(variant, traits)) {
        fail(TUFF_ERROR_UNSUPPORTED, "TUFF_CONV_VARIANT={} does not run on this device", *forced);
      }
      return variant;
    }
    fail(TUFF_ERROR_INVALID_ARGUMENT, "TUFF_CONV_VARIANT={} is no variant of conv2d", *forced);
  }
  const uint32_t unit = traits.cpu ? traits.subgroup_size : 1;
  const uint64_t cores = traits.cores == 0 ? 16 : traits.cores;
  const Variant* last = nullptr;
  for (const Variant& variant : kVariants) {
    if (variant.shared == traits.cpu || !runs_on(variant, traits)) continue;
    last = &variant;
    const uint64_t tile_filters = uint64_t{variant.filters} * unit;
    const bool wasteful = tile_filters >= 2 * filters || ceil_div(filters, tile_filters) * tile_filters > 2 * filters;
    if (!wasteful && groups_of(variant, traits, filters, columns) >= cores) return variant;
  }
  if (last == nullptr) fail(TUFF_ERROR_UNSUPPORTED, "no variant of conv2d runs on this device");
  return *last;
}

}  // namespace

void record_conv2d(Recorder& recorder, const Conv2dArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  const auto [N, C, H, W] = args.in_shape;
  const auto [K, filter_channels, R, S] = args.filter_shape;
  const uint64_t P = args.out_shape[2], Q = args.out_shape[3];
  if (N == 0 || K == 0) return;

  // Positions are computed with 32 bits, and a value beyond every extent stands for "outside".
  constexpr uint64_t kMaxExtent = uint64_t{1} << 30;
  for (int axis = 0; axis < 2; ++axis) {
    if (args.in_shape[2 + axis] + 2 * args.padding[axis] >= kMaxExtent) {
      fail(TUFF_ERROR_UNSUPPORTED, "the padded input's {} is {}, must be below {}", axis == 0 ? "height" : "width",
           args.in_shape[2 + axis] + 2 * args.padding[axis], kMaxExtent);
    }
  }
  // No channel, or no pixel: every sum is empty and the inputs are not touched.
  const uint64_t taps = H == 0 || W == 0 ? 0 : C * R * S;
  if (taps >= kMaxExtent || K >= kMaxExtent || N * P * Q / 32 >= uint64_t{1} << 32) {
    fail(TUFF_ERROR_UNSUPPORTED, "filter_shape {}x{}x{}x{} with out_shape {}x{}x{}x{} is beyond this version", K, C, R,
         S, N, K, P, Q);
  }

  const uint64_t columns = N * P * Q;
  const Variant& variant = choose(traits, K, columns);
  const uint64_t in_elements = N * C * H * W, filter_elements = K * C * R * S, out_elements = columns * K;
  const bool tap_mask = R * S <= 32;
  const bool vec_filter = taps % 4 == 0 && aligned16(args.filter);
  const uint32_t unit = variant.shared ? 1 : traits.subgroup_size;
  const Divider by_rs = divider(static_cast<uint32_t>(taps == 0 ? 1 : R * S));
  const Divider by_s = divider(static_cast<uint32_t>(taps == 0 ? 1 : S));

  ConvPush push{};
  push.K = static_cast<uint32_t>(K);
  push.H = static_cast<uint32_t>(H);
  push.W = static_cast<uint32_t>(W);
  push.P = static_cast<uint32_t>(P);
  push.Q = static_cast<uint32_t>(Q);
  push.S = static_cast<uint32_t>(S);
  push.RS = static_cast<uint32_t>(R * S);
  push.taps = static_cast<uint32_t>(taps);
  // What is multiplied by 0 alone may be larger than 32 bits.
  push.stride_y = P == 1 ? 1 : static_cast<uint32_t>(args.stride[0]);
  push.stride_x = Q == 1 ? 1 : static_cast<uint32_t>(args.stride[1]);
  push.pad_y = static_cast<uint32_t>(args.padding[0]);
  push.pad_x = static_cast<uint32_t>(args.padding[1]);
  push.dilation_y = R == 1 ? 1 : static_cast<uint32_t>(args.dilation[0]);
  push.dilation_x = S == 1 ? 1 : static_cast<uint32_t>(args.dilation[1]);
  push.filter_tiles = static_cast<uint32_t>(ceil_div(K, uint64_t{variant.filters} * unit));
  push.rs_multiplier = by_rs.multiplier;
  push.rs_shift = by_rs.shift;
  push.s_multiplier = by_s.multiplier;
  push.s_shift = by_s.shift;
  push.columns_low = static_cast<uint32_t>(columns);
  push.columns_high = static_cast<uint32_t>(columns >> 32);
  push.channels = static_cast<uint32_t>(C);
  const uint64_t at_once = std::min(taps, taps_at_once(variant, traits));
  const bool pieces = at_once < taps;

  KernelRequest kernel(variant.shared ? shaders::conv2d_tile : shaders::conv2d_subgroup);
  if (variant.shared) {
    kernel.define("BM", variant.filters).define("BN", variant.columns).define("BK", variant.taps);
    kernel.define("TM", variant.thread_filters).define("TN", variant.thread_columns);
  } else {
    kernel.define("WIDTH", traits.subgroup_size);
    kernel.define("FILTER_BLOCKS", variant.filters).define("PIXEL_BLOCKS", variant.columns);
    kernel.define("TAIL", taps % 4 != 0).define("PAIRS", traits.addresses);
  }
  kernel.define("TAP_MASK", tap_mask).define("VEC_FILTER", vec_filter).define("PIECES", pieces);
  kernel.wide(needs_wide(in_elements) || needs_wide(filter_elements) || needs_wide(out_elements));

  log(TUFF_LOG_DISPATCH, "conv2d {} filters={} columns={} taps={} at_once={} tap_mask={} vec_filter={} wide={}",
      variant.name, K, columns, taps, at_once, tap_mask, vec_filter, kernel.is_wide());
  // The first piece writes the output, and each further one goes on from it: one chain of sums, as in one piece.
  const bool reads = taps > 0;
  const double share = pieces ? static_cast<double>(at_once) / static_cast<double>(taps) : 1.0;
  do {
    push.tap_end = static_cast<uint32_t>(std::min(taps, push.tap_begin + at_once));
    Dispatch dispatch("conv2d");
    dispatch.operand(reads ? args.input : nullptr, 0, reads ? in_elements * 4 : 0, Access::read)
        .operand(reads ? args.filter : nullptr, 0, reads ? filter_elements * 4 : 0, Access::read)
        .operand(args.output, 0, out_elements * 4, pieces ? Access::read_write : Access::write)
        .push(push)
        .groups_linear(groups_of(variant, traits, K, columns), traits)
        .work(4.0 * (share * static_cast<double>(in_elements + filter_elements) + static_cast<double>(out_elements)),
              2.0 * share * static_cast<double>(out_elements) * static_cast<double>(taps));
    recorder.dispatch(kernel, dispatch);
    push.tap_begin = push.tap_end;
  } while (push.tap_end < taps);
}

}  // namespace tuff
