// Plans a convolution by cooperative matrices: an implicit GEMM of the filters with windows of the image, whose
// channels must be contiguous. If they are not, the image with its padding, and the filters, are first copied into that
// order in scratch memory. That moves each byte of the image once, which is little beside a window's worth of
// multiplications for each.
#include <algorithm>
#include <optional>

#include "kernels/common/stream_device.hpp"
#include "kernels/common/workgroup.hpp"
#include "kernels/conv/conv_plan.hpp"
#include "kernels/gemm/implicit_gemm.hpp"
#include "kernels/shape/shape.hpp"
#include "planning/log.hpp"
#include "shaders/conv_few_channels.hpp"
#include "shaders/conv_pixels.hpp"

namespace tuff::conv {
namespace {

constexpr uint64_t kUnit = 32;          // the smallest step of k with cooperative matrices, in 16-bit elements
constexpr uint64_t kPiece = 8;          // elements loaded at once
constexpr uint64_t kMinChannels = 16;   // of pixels whose channels are padded with zeros to a step of k
constexpr uint64_t kMaxZeros = 4;       // maximum ratio of k with zeros to k without, if rows of taps are padded
constexpr double kMinOperations = 1e7;  // for fewer this variant is not chosen
constexpr uint64_t kMaxPixelBytes = uint64_t{1} << 29;  // of a piece's images in scratch memory
// Whether groups are chosen by default: not before a GPU has run them. TUFF_CONV_VARIANT=matrices forces them.
constexpr bool kChoosesGroups = false;
constexpr uint64_t kMaxInImage = uint64_t{1} << 28;  // elements of one image, with its padding, for 32-bit indices

// The layout of an image with its padding, from which windows are read.
struct Pixels {
  uint64_t height, width, channels;
  uint64_t tap;       // contiguous elements along k before the next tap
  uint64_t valid;     // how many of them belong to the window
  bool joined;        // a tap is a whole row of the window's pixels
  uint64_t every[2];  // for windows of one pixel: the strides; pixels that no window reads are left out
  bool as_they_are;   // the caller's image can be used in place
  bool padded;        // … and the kernel counts pixels outside it as zeros
  uint64_t image() const { return height * width * channels; }
  uint64_t k(const ConvArgs& args) const { return args.taps()[1] * (joined ? 1 : args.taps()[2]) * tap; }
};

// With few channels, whole rows of the window are joined if their pixels are contiguous: then a row is padded with
// zeros instead of each pixel.
Pixels pixels_of(const ConvArgs& args) {
  Pixels pixels{};
  const uint64_t taps = args.taps()[2], few = args.channels() <= 4 && args.stride[2] % 2 == 0 ? 4 : kPiece;
  const uint64_t joined_channels = round_up(args.channels(), few), filled_channels = round_up(args.channels(), kUnit);
  const uint64_t joined_tap = round_up(taps * joined_channels, kUnit);  // the filter's taps too, in whole pixels
  pixels.joined =
      taps > 1 && args.dilation[2] == 1 && joined_tap % joined_channels == 0 && joined_tap < taps * filled_channels;
  pixels.channels = pixels.joined ? joined_channels : filled_channels;
  pixels.valid = pixels.joined ? taps * pixels.channels : pixels.channels;
  pixels.tap = round_up(pixels.valid, kUnit);
  pixels.height = args.in()[1] + args.padding[1] + args.padding_end[1];
  pixels.width = args.in()[2] + args.padding[2] + args.padding_end[2];
  pixels.every[0] = pixels.every[1] = 1;
  pixels.as_they_are = args.channels_last() && pixels.channels == args.channels() && pixels.tap == pixels.valid &&
                       pixels.height == args.in()[1] && pixels.width == args.in()[2] && args.input->offset % 16 == 0;
  if (pixels.as_they_are) return pixels;
  if (args.filter_shape.pixels() == 1) {
    pixels.height = args.out()[1];
    pixels.width = args.out()[2];
    for (int i = 0; i < 2; ++i) {  // the stride of a single output may be any number
      if (args.out()[1 + i] > 1) pixels.every[i] = args.stride[1 + i];
    }
  }
  pixels.width = round_up(pixels.width * pixels.channels, kPiece) / pixels.channels;
  return pixels;
}

bool is_float(const ConvArgs& args) { return args.dtype == TUFF_F32; }

// Groups and f32: no other kernel computes them.
bool only_padded(const ConvArgs& args) { return args.groups != 1 || is_float(args); }

// Whether each tap has whole pieces, and enough of them.
bool taps_are_whole(const ConvArgs& args) {
  const uint64_t channels = args.group_channels();
  return args.groups == 1 ? channels % kUnit == 0 : channels % kPiece == 0 && channels >= kUnit;
}

// An image whose padding the kernel adds; nothing if there is none. With 16 bits it is the caller's, in place; with f32
// it is ordered first unless its channels are last, and the planner of GEMM asks what its taps must be.
std::optional<Pixels> padded_pixels_of(const DeviceTraits& traits, const ConvArgs& args) {
  Pixels pixels{};
  pixels.height = args.in()[1];
  pixels.width = args.in()[2];
  pixels.channels = args.channels();
  pixels.tap = pixels.valid = args.group_channels();
  pixels.every[0] = pixels.every[1] = 1;
  pixels.as_they_are = args.channels_last();
  pixels.padded = true;
  const bool suits = is_float(args) ? args.groups == 1 : pixels.as_they_are && taps_are_whole(args);
  const bool fits = traits.hopper && suits && (!pixels.as_they_are || args.input->offset % 16 == 0) &&
                    args.dilation[1] == 1 && args.dilation[2] == 1;
  return fits ? std::optional(pixels) : std::nullopt;
}

// The layout of the filters, likewise: each is an image.
Pixels taps_of(const ConvArgs& args, const Pixels& pixels) {
  Pixels taps{};
  taps.height = args.taps()[1];
  taps.width = pixels.joined ? pixels.tap / pixels.channels : args.taps()[2];
  taps.channels = pixels.channels;
  taps.every[0] = taps.every[1] = 1;
  return taps;
}

bool filters_serve(const ConvArgs& args, const Pixels& pixels) {
  const bool ordered = args.channels_last() || args.filter_shape.pixels() == 1;
  if (is_float(args)) return ordered;
  return ordered && pixels.channels == args.channels() && pixels.tap == pixels.valid && args.filter->offset % 16 == 0;
}

// Elements past the last window's last tap that are read although they do not count.
uint64_t behind(const Pixels& pixels) { return pixels.tap - pixels.valid; }

gemm::Windows windows_of(const ConvArgs& args, const Pixels& pixels) {
  const auto word = [](uint64_t x) { return static_cast<uint32_t>(std::min<uint64_t>(x, ~0u)); };
  gemm::Windows windows;
  windows.of_a = args.channels_last();
  windows.elements = args.batch() * pixels.image() + behind(pixels);
  windows.width = word(args.out()[2]);
  const uint64_t step = args.out()[2] > 1 ? args.stride[2] / pixels.every[1] : 1;  // irrelevant for a single column
  windows.step = word(step * pixels.channels);
  windows.channels = word(pixels.tap);
  windows.valid = pixels.valid == pixels.tap ? 0 : word(pixels.valid);
  windows.taps = pixels.joined ? 1 : word(args.taps()[2]);
  windows.dilation = pixels.joined ? 1 : word(args.dilation[2]);
  windows.pixel = word(pixels.channels);
  windows.groups = word(args.groups);
  windows.tap_row = word(args.dilation[1] * pixels.width * pixels.channels);
  if (pixels.padded) {
    windows.padded = true;
    windows.tap_rows = word(args.taps()[1]);
    for (uint32_t axis = 0; axis < 2; ++axis) {
      windows.extents[axis] = word(args.in()[axis + 1]);
      windows.before[axis] = word(args.padding[axis + 1]);
      windows.strides[axis] = word(args.stride[axis + 1]);
    }
  }
  return windows;
}

// output [filters][pixels] = filter * windows^T; with channels last, output [pixels][filters] = windows * filter^T.
GemmArgs product_of(const ConvArgs& args, const Pixels& pixels, const Buffer* input, const Buffer* filter) {
  const bool last = args.channels_last();
  GemmArgs gemm{};
  gemm.a_type = gemm.b_type = gemm.c_type = args.dtype;
  gemm.accumulate = TUFF_F32;
  gemm.alpha = 1;
  gemm.ta = TUFF_NO_TRANS;
  gemm.tb = TUFF_TRANS;
  gemm.k = pixels.k(args);
  gemm.m = last ? args.out_shape.pixels() : args.filters();
  gemm.n = last ? args.group_filters() : args.out_shape.pixels();
  gemm.a = last ? input : filter;
  gemm.b = last ? filter : input;
  const uint64_t step = args.out()[1] > 1 ? args.stride[1] / pixels.every[0] : 1;  // irrelevant for a single row
  const uint64_t window_row = step * pixels.width * pixels.channels;
  gemm.lda = last ? window_row : gemm.k;
  gemm.ldb = last ? gemm.k : window_row;
  (last ? gemm.stride_a : gemm.stride_b) = pixels.image();
  gemm.batch_count = args.batch();
  gemm.c = args.output;
  gemm.ldc = gemm.epilogue.ld_residual = gemm.n * args.groups;
  gemm.stride_c = gemm.epilogue.stride_residual = gemm.m * gemm.ldc;
  gemm.epilogue.activation = args.activation;
  gemm.epilogue.bias = args.bias;
  if (args.bias != nullptr) gemm.epilogue.bias_axis = last ? TUFF_BIAS_COLUMNS : TUFF_BIAS_ROWS;
  gemm.epilogue.residual = args.residual;
  return gemm;
}

// Copies [images][channels][extents], or channels last, to the layout `all`: contiguous channels, with padding around.
void record_pixels(Recorder& recorder, const ConvArgs& args, const Buffer* from, const ConvShape& shape,
                   const Pixels& all, const ConvExtents& first, const Buffer& to) {
  const auto word = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const bool few = all.channels % kPiece != 0;
  const uint64_t pixel_tiles =
      few ? ceil_div(all.height * all.width * all.channels, kPiece * 256) : ceil_div(all.height * all.width, 64);
  const uint64_t channel_tiles = few ? 1 : ceil_div(all.channels, 64);
  const uint64_t elements = shape.elements(), all_elements = shape.outer[0] * all.image();
  const bool dense = !args.channels_last() && all.height == shape.extents[1] && all.width == shape.extents[2] &&
                     all.every[0] == 1 && all.every[1] == 1 && all.height * all.width <= 64;
  KernelRequest kernel = few ? shaders::ConvFewChannels::request({.channels_last = args.channels_last()})
                             : shaders::ConvPixels::request({.channels_last = args.channels_last(), .dense = dense});
  kernel.streaming().wide(needs_wide(elements) || needs_wide(all_elements));
  Dispatch dispatch("conv pixels");
  dispatch.operand(from, 0, elements * 2, Access::read)
      .operand(&to, 0, all_elements * 2, Access::write)
      .push(shaders::ConvPixels::Push{.images = word(shape.outer[0]),
                                      .channels = word(shape.outer[1]),
                                      .H = word(shape.extents[1]),
                                      .W = word(shape.extents[2]),
                                      .all_channels = word(all.channels),
                                      .all_H = word(all.height),
                                      .all_W = word(all.width),
                                      .first_y = static_cast<int32_t>(first[1]),
                                      .first_x = static_cast<int32_t>(first[2]),
                                      .every_y = word(all.every[0]),
                                      .every_x = word(all.every[1]),
                                      .pixel_tiles = word(pixel_tiles),
                                      .channel_tiles = word(channel_tiles)})
      .groups_linear(shape.outer[0] * pixel_tiles * channel_tiles, recorder.traits())
      .work(static_cast<double>((elements + all_elements) * 2), 0);
  recorder.dispatch(kernel, dispatch);
}

// [images][channels][pixels] of f32 with channels last.
void record_channels_last(Recorder& recorder, const Buffer* from, const ConvShape& shape, const Buffer& to) {
  const uint64_t sizes[3] = {shape.outer[0], shape.outer[1], shape.pixels()};
  constexpr uint32_t kOrder[3] = {0, 2, 1};
  record_permute(recorder,
                 {.dtype = TUFF_F32, .input = from, .output = &to, .shape = sizes, .order = kOrder, .rank = 3});
}

// How many images are computed at once, in pieces of nearly the same size: indices within a piece must fit into 32
// bits, and its pixels into scratch memory.
uint64_t images_at_once(const ConvArgs& args, const Pixels& pixels) {
  const uint64_t max_elements =
      (uint64_t{1} << 30) / std::max(pixels.image(), args.out_shape.elements() / args.batch());
  const uint64_t most = pixels.as_they_are
                            ? max_elements
                            : std::min(max_elements, kMaxPixelBytes / (pixels.image() * dtype_size(args.dtype)));
  const uint64_t pieces = ceil_div(args.batch(), std::clamp<uint64_t>(most, 1, args.batch()));
  return ceil_div(args.batch(), pieces);
}

bool runs_windows_of(const DeviceTraits& traits, const ConvArgs& args, const Pixels& pixels) {
  if (pixels.height >= kMaxInImage || pixels.width >= kMaxInImage || pixels.tap >= 1u << 16 ||
      pixels.height * pixels.width >= kMaxInImage || pixels.image() >= kMaxInImage) {
    return false;
  }
  ConvArgs one = args;
  // Whether f32 is faster this way depends on how much there is.
  one.in_shape.outer[0] = one.out_shape.outer[0] = is_float(args) ? images_at_once(args, pixels) : 1;
  return gemm::runs_windows(traits, product_of(one, pixels, args.input, args.filter), windows_of(one, pixels));
}

// Returns false and has recorded nothing if the driver refuses the kernel; it is then the only dispatch.
bool record_windows_of(Recorder& recorder, const ConvArgs& args, const Pixels& pixels) {
  const Pixels taps = taps_of(args, pixels);
  const uint64_t size = dtype_size(args.dtype), image_bytes = pixels.image() * size;
  const uint64_t most = images_at_once(args, pixels);
  const uint64_t filter_bytes =
      filters_serve(args, pixels) ? 0 : ceil_div(args.filters() * taps.image() * size, 256) * 256;
  const uint64_t pixel_bytes = pixels.as_they_are ? 0 : most * image_bytes + behind(pixels) * size;
  Buffer ordered_filter, ordered_pixels;
  if (filter_bytes + pixel_bytes != 0) {
    ordered_filter = ordered_pixels = recorder.scratch(filter_bytes + pixel_bytes, Scratch::outer);
    ordered_pixels.offset += filter_bytes;
    ordered_pixels.bytes -= filter_bytes;
  }
  const auto order = [&](const Buffer* from, const ConvShape& shape, const Pixels& all, const ConvExtents& padding,
                         const Buffer& to) {
    if (is_float(args)) return record_channels_last(recorder, from, shape, to);
    record_pixels(recorder, args, from, shape, all, padding, to);
  };
  if (filter_bytes != 0) order(args.filter, args.filter_shape, taps, {}, ordered_filter);
  for (uint64_t first = 0; first < args.batch(); first += most) {
    ConvArgs piece = args;
    piece.in_shape.outer[0] = piece.out_shape.outer[0] = std::min(most, args.batch() - first);
    const Buffer input = moved(args.input, first * (args.in_shape.elements() / args.batch()), args.dtype);
    const uint64_t out_at = first * (args.out_shape.elements() / args.batch());
    const Buffer output = moved(args.output, out_at, args.dtype), residual = moved(args.residual, out_at, args.dtype);
    piece.output = &output;
    if (args.residual != nullptr) piece.residual = &residual;
    if (!pixels.as_they_are) {
      order(&input, piece.in_shape, pixels, args.padding, ordered_pixels);
    }
    const GemmArgs gemm = product_of(piece, pixels, pixels.as_they_are ? &input : &ordered_pixels,
                                     filter_bytes == 0 ? args.filter : &ordered_filter);
    log(TUFF_LOG_DISPATCH, "conv by cooperative matrices: {}, {} images, m={} n={} k={}{}, {}{}",
        dtype_name(args.dtype), piece.batch(), gemm.m, gemm.n, gemm.k, pixels.joined ? " (rows of taps)" : "",
        pixels.padded        ? "in place with padding"
        : pixels.as_they_are ? "in place"
                             : "pixels ordered first",
        filter_bytes != 0 ? ", filters too" : "");
    if (!gemm::record_windows(recorder, gemm, windows_of(piece, pixels))) return false;
  }
  return true;
}

}  // namespace

bool runs_matrices(const DeviceTraits& traits, const ConvArgs& args) {
  if (args.transposed || (!is_float(args) && dtype_size(args.dtype) != 2) || max_along_x(traits) < 256) return false;
  if (!args.flat() || args.in_shape.elements() == 0) return false;
  if (only_padded(args)) {
    const std::optional<Pixels> padded = padded_pixels_of(traits, args);
    return padded && runs_windows_of(traits, args, *padded);
  }
  const Pixels pixels = pixels_of(args);
  const bool worth = pixels.joined ? pixels.k(args) <= kMaxZeros * args.filter_shape.pixels() * args.channels()
                                   : args.channels() >= kMinChannels;
  return worth && runs_windows_of(traits, args, pixels);
}

bool suits_matrices(const DeviceTraits& traits, const ConvArgs& args) {
  const double operations = 2.0 * static_cast<double>(args.out_shape.elements()) * static_cast<double>(taps_of(args));
  return operations >= kMinOperations && (args.groups == 1 || kChoosesGroups) && runs_matrices(traits, args);
}

bool record_stored_filter(Recorder& recorder, const ConvArgs& args, const StoredFilter& filter) {
  const DeviceTraits& traits = recorder.traits();
  if (!args.flat() || args.groups != 1 || dtype_size(args.dtype) != 2) return false;
  const std::optional<Pixels> padded = padded_pixels_of(traits, args);
  if (!padded || args.batch() * std::max(padded->image(), args.out_shape.elements() / args.batch()) >= 1u << 30) {
    return false;
  }
  GemmArgs gemm = product_of(args, *padded, args.input, &filter.buffer);
  gemm.tb = TUFF_NO_TRANS;
  gemm.ldb = filter.channel;
  gemm::Windows windows = windows_of(args, *padded);
  windows.filter = {filter.elements, filter.step, filter.row};
  if (!gemm::runs_windows(traits, gemm, windows)) return false;
  log(TUFF_LOG_DISPATCH, "conv by matrix units: {}, {} images, m={} n={} k={}, in place with padding, the filter too",
      dtype_name(args.dtype), args.batch(), gemm.m, gemm.n, gemm.k);
  return gemm::record_windows(recorder, gemm, windows);
}

void record_matrices(Recorder& recorder, const ConvArgs& args) {
  const std::optional<Pixels> padded = padded_pixels_of(recorder.traits(), args);
  if (padded && runs_windows_of(recorder.traits(), args, *padded) && record_windows_of(recorder, args, *padded)) return;
  if (only_padded(args)) return record_products(recorder, args);  // the driver has refused the kernel
  if (!record_windows_of(recorder, args, pixels_of(args))) {
    fail(TUFF_ERROR_UNSUPPORTED, "no variant of implicit GEMM for cooperative matrices runs on this device");
  }
}

}  // namespace tuff::conv
