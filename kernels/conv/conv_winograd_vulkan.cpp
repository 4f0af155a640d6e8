// Plans a convolution by Winograd's minimal filtering, if the caller allows it. A range of input tiles at a time, and
// the filters, are transformed into scratch memory and multiplied as a batch of GEMMs; then the sums are transformed
// back.
#include <algorithm>
#include <iterator>

#include "kernels/common/stream_device.hpp"
#include "kernels/conv/conv_plan.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "shaders/conv_winograd_filter.hpp"
#include "shaders/conv_winograd_input.hpp"
#include "shaders/conv_winograd_output.hpp"

namespace tuff::conv {
namespace {

constexpr uint64_t kMinChannels = 16;      // and filters: with fewer, the transforms cost more than the GEMMs save
constexpr uint64_t kMaxExtent = 1u << 30;  // positions are computed in 32 bits
// Limits on scratch memory, in elements: of transformed tiles and their sums, on GPUs and CPU devices; of a filter.
constexpr uint64_t kMaxElements = 1u << 26, kMaxElementsCpu = 1u << 24, kMaxWindowElements = 1u << 28;

struct Form {
  const char* name;
  uint32_t tile;  // outputs along each axis
  uint64_t span() const { return tile + 2; }
  uint64_t matrices() const { return span() * span(); }
};
constexpr Form kForms[] = {{"winograd_4", 4}, {"winograd_2", 2}};

// An image's tiles, and how many tiles of all images are processed at once.
struct Tiles {
  Tiles(const DeviceTraits& traits, const ConvArgs& args, const Form& form)
      : down(ceil_div(args.out()[1], form.tile)),
        across(ceil_div(args.out()[2], form.tile)),
        all(args.batch() * down * across) {
    const uint64_t elements = traits.cpu ? kMaxElementsCpu : kMaxElements;
    const uint64_t fit = elements / (form.matrices() * (args.channels() + args.filters())) / 64 * 64;
    at_once = std::min(ceil_div(all, 4) * 4, std::max<uint64_t>(fit, 64));
  }
  uint64_t down, across, all, at_once;
};

// A device's costs, in multiplications: moving a number between the transforms and the GEMMs costs `moved`; implicit
// GEMM runs at `direct` times the rate of GEMM; GEMMs with few tiles take as long as with `min_tiles`. Measured on an
// H200 and on Mesa's CPU device.
struct Costs {
  double moved, direct, min_tiles;
};
constexpr Costs kGpu = {12, 0.85, 64}, kCpu = {120, 0.5, 32};
const Costs& costs_of(const DeviceTraits& traits) { return traits.cpu ? kCpu : kGpu; }

double winograd_cost(const DeviceTraits& traits, const ConvArgs& args, const Form& form) {
  const Costs& costs = costs_of(traits);
  const auto channels = static_cast<double>(args.channels()), filters = static_cast<double>(args.filters());
  const auto tiles = static_cast<double>(Tiles(traits, args, form).all);
  const double multiplied = std::max(tiles, costs.min_tiles) * channels * filters;
  const double moved = tiles * (channels + filters) + channels * filters / 2;
  return static_cast<double>(form.matrices()) * (multiplied + costs.moved * moved);
}

double direct_cost(const DeviceTraits& traits, const ConvArgs& args) {
  return static_cast<double>(args.out_shape.elements()) * static_cast<double>(args.channels() * 9) /
         costs_of(traits).direct;
}

struct Parts {
  Buffer windows, tiles, sums;
};

uint32_t word(uint64_t x) { return static_cast<uint32_t>(x); }

void record_windows(Recorder& recorder, const ConvArgs& args, const Form& form, const StreamDevice& device,
                    const Buffer& to) {
  const uint64_t items = args.filters() * args.channels(), size = dtype_size(args.dtype);
  Dispatch dispatch("conv winograd filter");
  dispatch.operand(args.filter, 0, items * 9 * size, Access::read)
      .operand(&to, 0, items * form.matrices() * sizeof(float), Access::write)
      .push(shaders::ConvWinogradFilter::Push{.items = word(items), .channels = word(args.channels())})
      .groups_linear(ceil_div(items, device.workgroup), recorder.traits())
      .work(static_cast<double>(items * (9 * size + form.matrices() * sizeof(float))), 0);
  KernelRequest kernel = shaders::ConvWinogradFilter::request(
      {.channels_last = args.channels_last(), .tile = form.tile, .type = args.dtype});
  kernel.streaming().constant(0, device.workgroup);
  recorder.dispatch(kernel, dispatch);
}

// Of the tiles' matrices, or of their products'. With channels last, tiles follow one another without padding.
uint64_t matrix_bytes(const ConvArgs& args, const Form& form, uint64_t channels, const Columns& some) {
  return form.matrices() * channels * (args.channels_last() ? some.count : some.pitch()) * sizeof(float);
}

void record_tiles(Recorder& recorder, const ConvArgs& args, const Form& form, const StreamDevice& device,
                  const Tiles& tiles, const Columns& some, const Buffer& to) {
  const uint64_t items = args.channels() * some.count, size = dtype_size(args.dtype);
  const uint64_t in_elements = args.in_shape.elements();
  const uint64_t to_bytes = matrix_bytes(args, form, args.channels(), some);
  KernelRequest kernel = shaders::ConvWinogradInput::request(
      {.channels_last = args.channels_last(), .tile = form.tile, .type = args.dtype});
  kernel.streaming().constant(0, device.workgroup).wide(needs_wide(in_elements));
  Dispatch dispatch("conv winograd input");
  dispatch.operand(args.input, 0, in_elements * size, Access::read)
      .operand(&to, 0, to_bytes, Access::write)
      .push(shaders::ConvWinogradInput::Push{.items = word(items),
                                             .channels = word(args.channels()),
                                             .H = word(args.in()[1]),
                                             .W = word(args.in()[2]),
                                             .tiles_y = word(tiles.down),
                                             .tiles_x = word(tiles.across),
                                             .first = word(some.first),
                                             .count = word(some.count),
                                             .pitch = word(some.pitch()),
                                             .pad_y = static_cast<int32_t>(args.padding[1]),
                                             .pad_x = static_cast<int32_t>(args.padding[2])})
      .groups_linear(ceil_div(items, device.workgroup), recorder.traits())
      .work(static_cast<double>(to_bytes + items * form.tile * form.tile * size), 0);
  recorder.dispatch(kernel, dispatch);
}

// sums[filters][tiles] = windows * tiles for each matrix; with channels last, sums[tiles][filters] = tiles * windows^T.
void record_products(Recorder& recorder, const ConvArgs& args, const Form& form, const Parts& parts,
                     const Columns& some) {
  const bool last = args.channels_last();
  GemmArgs gemm{};
  gemm.a_type = gemm.b_type = gemm.c_type = gemm.accumulate = TUFF_F32;
  gemm.ta = TUFF_NO_TRANS;
  gemm.tb = last ? TUFF_TRANS : TUFF_NO_TRANS;
  gemm.m = last ? some.count : args.filters();
  gemm.n = last ? args.filters() : some.count;
  gemm.k = args.channels();
  gemm.alpha = 1;
  gemm.a = last ? &parts.tiles : &parts.windows;
  gemm.b = last ? &parts.windows : &parts.tiles;
  gemm.c = &parts.sums;
  gemm.lda = gemm.k;
  gemm.ldb = last ? gemm.k : some.pitch();
  gemm.ldc = last ? gemm.n : some.pitch();
  gemm.stride_a = gemm.m * gemm.k;
  gemm.stride_b = last ? gemm.n * gemm.k : gemm.k * some.pitch();
  gemm.stride_c = gemm.m * gemm.ldc;
  gemm.batch_count = form.matrices();
  record_gemm(recorder, gemm);
}

void record_outputs(Recorder& recorder, const ConvArgs& args, const Form& form, const StreamDevice& device,
                    const Tiles& tiles, const Columns& some, const Buffer& sums) {
  const uint64_t items = args.filters() * some.count, size = dtype_size(args.dtype);
  const uint64_t out_elements = args.out_shape.elements();
  const uint64_t from_bytes = matrix_bytes(args, form, args.filters(), some);
  KernelRequest kernel = shaders::ConvWinogradOutput::request({.channels_last = args.channels_last(),
                                                               .store = store_of(args, recorder.traits()),
                                                               .tile = form.tile,
                                                               .type = args.dtype});
  kernel.streaming().constant(0, device.workgroup).wide(needs_wide(out_elements));
  Dispatch dispatch("conv winograd output");
  dispatch.operand(&sums, 0, from_bytes, Access::read)
      .operand(nullptr, 0, 0, Access::read)
      .operand(args.output, 0, out_elements * size, Access::write)
      .operand(args.bias, 0, args.bias != nullptr ? args.filters() * size : 0, Access::read)
      .operand(args.residual, 0, args.residual != nullptr ? out_elements * size : 0, Access::read)
      .push(shaders::ConvWinogradOutput::Push{.items = word(items),
                                              .filters = word(args.filters()),
                                              .P = word(args.out()[1]),
                                              .Q = word(args.out()[2]),
                                              .tiles_y = word(tiles.down),
                                              .tiles_x = word(tiles.across),
                                              .first = word(some.first),
                                              .count = word(some.count),
                                              .pitch = word(some.pitch())})
      .groups_linear(ceil_div(items, device.workgroup), recorder.traits())
      .work(static_cast<double>(from_bytes + items * form.tile * form.tile * size), 0);
  recorder.dispatch(kernel, dispatch);
}

bool runs_winograd(const ConvArgs& args) {
  const auto one = [](const ConvExtents& extents) { return extents == ConvExtents{1, 1, 1}; };
  const auto small = [](const ConvExtents& extents) { return std::max(extents[1], extents[2]) < kMaxExtent; };
  return args.precision == TUFF_PRECISION_ALLOW_WINOGRAD && !args.transposed && args.groups == 1 &&
         args.taps() == ConvExtents{1, 3, 3} && args.in()[0] == 1 && one(args.stride) && one(args.dilation) &&
         args.in_shape.elements() != 0 && small(args.in()) && small(args.padding) && small(args.out()) &&
         args.filters() * args.channels() * 36 <= kMaxWindowElements;
}

const Form* form_of(std::string_view name) {
  const Form* form = std::find_if(std::begin(kForms), std::end(kForms), [&](const Form& x) { return x.name == name; });
  return form != std::end(kForms) ? form : nullptr;
}

const Form* best_form(const DeviceTraits& traits, const ConvArgs& args) {
  // If the device has cooperative matrices for it, implicit GEMM is faster.
  if (std::min(args.channels(), args.filters()) < kMinChannels || suits_matrices(traits, args)) return nullptr;
  const Form& form = *std::min_element(std::begin(kForms), std::end(kForms), [&](const Form& x, const Form& y) {
    return winograd_cost(traits, args, x) < winograd_cost(traits, args, y);
  });
  return winograd_cost(traits, args, form) < direct_cost(traits, args) ? &form : nullptr;
}

}  // namespace

bool is_winograd(std::string_view variant) { return form_of(variant) != nullptr; }

bool record_winograd(Recorder& recorder, const ConvArgs& args) {
  if (!runs_winograd(args)) return false;
  const DeviceTraits& traits = recorder.traits();
  const std::optional<std::string>& forced = forced_variant<"TUFF_CONV_VARIANT">();
  const Form* form = forced ? form_of(*forced) : best_form(traits, args);
  if (form == nullptr) return false;
  const Tiles tiles(traits, args, *form);
  const StreamDevice device = stream_device(traits, {}, sizeof(float));
  const auto bytes = [&](uint64_t elements) {
    return ceil_div(form->matrices() * elements * sizeof(float), 256) * 256;
  };
  const uint64_t window_bytes = bytes(args.filters() * args.channels());
  const uint64_t tile_bytes = bytes(args.channels() * tiles.at_once);
  const uint64_t sum_bytes = bytes(args.filters() * tiles.at_once);
  Parts parts;
  parts.windows = parts.tiles = parts.sums = recorder.scratch(window_bytes + tile_bytes + sum_bytes, Scratch::outer);
  parts.tiles.offset += window_bytes;
  parts.tiles.bytes -= window_bytes;
  parts.sums.offset += window_bytes + tile_bytes;
  parts.sums.bytes -= window_bytes + tile_bytes;
  log(TUFF_LOG_DISPATCH, "conv {} {} filters={} channels={}: {} tiles, {} at once", form->name, dtype_name(args.dtype),
      args.filters(), args.channels(), tiles.all, tiles.at_once);
  record_windows(recorder, args, *form, device, parts.windows);
  for (uint64_t first = 0; first < tiles.all; first += tiles.at_once) {
    const Columns some{first, std::min(tiles.at_once, tiles.all - first)};
    record_tiles(recorder, args, *form, device, tiles, some, parts.tiles);
    record_products(recorder, args, *form, parts, some);
    record_outputs(recorder, args, *form, device, tiles, some, parts.sums);
  }
  return true;
}

}  // namespace tuff::conv
