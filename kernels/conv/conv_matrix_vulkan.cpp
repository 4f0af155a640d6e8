// Plans a convolution on the device's matrix units: a product of the filters with windows of the image, whose channels
// lie side by side. Where they do not, an image with its padding, and the filters, are put in that order in scratch
// memory first: as many bytes moved as the image has, against a window's worth of multiplications for each of them.
#include <algorithm>

#include "kernels/common/stream_device.hpp"
#include "kernels/conv/conv_plan.hpp"
#include "kernels/gemm/gemm_plan.hpp"
#include "runtime/log.hpp"
#include "shaders.hpp"

namespace tuff::conv {
namespace {

constexpr uint64_t kChannelUnit = 32;    // the least step of k on matrix units, in 16-bit elements
constexpr uint64_t kLeastChannels = 16;  // fewer would multiply zeros more often than not
constexpr double kLeastOperations = 1e7;
constexpr uint64_t kMostPixelBytes = uint64_t{1} << 29;  // of a piece's images in scratch memory
constexpr uint64_t kMostInImage = uint64_t{1} << 28;     // elements of one image, with its padding

// Extents of the images with their padding, and of a pixel.
struct Pixels {
  uint64_t height, width, channels;
  bool as_they_are;  // the caller's own serve
  uint64_t image() const { return height * width * channels; }
};

Pixels pixels_of(const ConvArgs& args) {
  Pixels pixels{};
  pixels.height = args.in()[1] + args.padding[1] + args.padding_end[1];
  pixels.width = args.in()[2] + args.padding[2] + args.padding_end[2];
  pixels.channels = ceil_div(args.channels(), kChannelUnit) * kChannelUnit;
  pixels.as_they_are = args.channels_last() && pixels.channels == args.channels() && pixels.height == args.in()[1] &&
                       pixels.width == args.in()[2] && args.input->offset % 16 == 0;
  return pixels;
}

bool filters_serve(const ConvArgs& args, const Pixels& pixels) {
  return (args.channels_last() || args.filter_shape.pixels() == 1) && pixels.channels == args.channels() &&
         args.filter->offset % 16 == 0;
}

gemm::Windows windows_of(const ConvArgs& args, const Pixels& pixels) {
  gemm::Windows windows;
  windows.of_a = args.channels_last();
  windows.elements = args.batch() * pixels.image();
  windows.width = static_cast<uint32_t>(std::min<uint64_t>(args.out()[2], ~0u));
  windows.step = static_cast<uint32_t>(std::min<uint64_t>(args.stride[2] * pixels.channels, ~0u));
  windows.channels = static_cast<uint32_t>(std::min<uint64_t>(pixels.channels, ~0u));
  windows.taps = static_cast<uint32_t>(std::min<uint64_t>(args.taps()[2], ~0u));
  windows.dilation = static_cast<uint32_t>(std::min<uint64_t>(args.dilation[2], ~0u));
  windows.tap_row = static_cast<uint32_t>(std::min<uint64_t>(args.dilation[1] * pixels.width * pixels.channels, ~0u));
  return windows;
}

// output [filters][pixels] = filter * windows^T, or channels last output [pixels][filters] = windows * filter^T.
GemmArgs product_of(const ConvArgs& args, const Pixels& pixels, const Buffer* input, const Buffer* filter) {
  const bool last = args.channels_last();
  GemmArgs gemm{};
  gemm.a_type = gemm.b_type = gemm.c_type = args.dtype;
  gemm.accumulate = TUFF_F32;
  gemm.alpha = 1;
  gemm.ta = TUFF_NO_TRANS;
  gemm.tb = TUFF_TRANS;
  gemm.k = args.filter_shape.pixels() * pixels.channels;
  gemm.m = last ? args.out_shape.pixels() : args.filters();
  gemm.n = last ? args.filters() : args.out_shape.pixels();
  gemm.a = last ? input : filter;
  gemm.b = last ? filter : input;
  const uint64_t window_row = args.stride[1] * pixels.width * pixels.channels;
  gemm.lda = last ? window_row : gemm.k;
  gemm.ldb = last ? gemm.k : window_row;
  (last ? gemm.stride_a : gemm.stride_b) = pixels.image();
  gemm.batch_count = args.batch();
  gemm.c = args.output;
  gemm.ldc = gemm.epilogue.ld_residual = gemm.n;
  gemm.stride_c = gemm.epilogue.stride_residual = gemm.m * gemm.n;
  gemm.epilogue.activation = args.activation;
  gemm.epilogue.bias = args.bias;
  if (args.bias != nullptr) gemm.epilogue.bias_axis = last ? TUFF_BIAS_COLUMNS : TUFF_BIAS_ROWS;
  gemm.epilogue.residual = args.residual;
  return gemm;
}

// From [images][channels][extents], or channels last, to pixels of all their channels with padding around them.
void record_pixels(Recorder& recorder, const ConvArgs& args, const Buffer* from, const ConvShape& shape,
                   const Pixels& all, const ConvExtents& first, const Buffer& to) {
  struct Push {
    uint32_t images, channels, height, width, all_channels, all_height, all_width;
    int32_t first_y, first_x;
    uint32_t pixel_tiles, channel_tiles;
  };
  const auto word = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const uint64_t pixel_tiles = ceil_div(all.height * all.width, 64), channel_tiles = ceil_div(all.channels, 64);
  const uint64_t elements = shape.elements(), all_elements = shape.outer[0] * all.image();
  KernelRequest kernel(shaders::conv_pixels);
  kernel.streaming().wide(needs_wide(elements) || needs_wide(all_elements));
  kernel.define("CHANNELS_LAST", args.channels_last());
  Dispatch dispatch("conv pixels");
  dispatch.operand(from, 0, elements * 2, Access::read)
      .operand(&to, 0, all_elements * 2, Access::write)
      .push(Push{word(shape.outer[0]), word(shape.outer[1]), word(shape.extents[1]), word(shape.extents[2]),
                 word(all.channels), word(all.height), word(all.width), static_cast<int32_t>(first[1]),
                 static_cast<int32_t>(first[2]), word(pixel_tiles), word(channel_tiles)})
      .groups_linear(shape.outer[0] * pixel_tiles * channel_tiles, recorder.traits())
      .work(static_cast<double>((elements + all_elements) * 2), 0);
  recorder.dispatch(kernel, dispatch);
}

}  // namespace

bool runs_matrices(const DeviceTraits& traits, const ConvArgs& args) {
  if (args.transposed || args.groups != 1 || dtype_size(args.dtype) != 2 || traits.max_invocations < 256) return false;
  if (args.in()[0] != 1 || args.taps()[0] != 1 || args.out()[0] != 1 || args.in_shape.elements() == 0) return false;
  const Pixels pixels = pixels_of(args);
  if (args.channels() < kLeastChannels || pixels.height >= kMostInImage || pixels.width >= kMostInImage ||
      pixels.channels >= 1u << 16 || pixels.height * pixels.width >= kMostInImage || pixels.image() >= kMostInImage) {
    return false;
  }
  ConvArgs one = args;
  one.in_shape.outer[0] = one.out_shape.outer[0] = 1;
  return gemm::runs_windows(traits, product_of(one, pixels, args.input, args.filter), windows_of(one, pixels));
}

bool suits_matrices(const DeviceTraits& traits, const ConvArgs& args) {
  const double operations = 2.0 * static_cast<double>(args.out_shape.elements()) * static_cast<double>(taps_of(args));
  return operations >= kLeastOperations && runs_matrices(traits, args);
}

void record_matrices(Recorder& recorder, const ConvArgs& args) {
  const Pixels pixels = pixels_of(args);
  const Pixels taps{args.taps()[1], args.taps()[2], pixels.channels, false};
  const uint64_t image_bytes = pixels.image() * 2;
  // A piece's indices have 32 bits.
  const uint64_t most = std::clamp<uint64_t>(
      pixels.as_they_are ? (uint64_t{1} << 30) / std::max(pixels.image(), args.out_shape.elements() / args.batch())
                         : kMostPixelBytes / image_bytes,
      1, args.batch());
  const uint64_t filter_bytes =
      filters_serve(args, pixels) ? 0 : ceil_div(args.filters() * taps.image() * 2, 256) * 256;
  const uint64_t pixel_bytes = pixels.as_they_are ? 0 : most * image_bytes;
  Buffer ordered_filter, ordered_pixels;
  if (filter_bytes + pixel_bytes != 0) {
    ordered_filter = ordered_pixels = recorder.scratch(filter_bytes + pixel_bytes, Scratch::outer);
    ordered_pixels.offset += filter_bytes;
    ordered_pixels.bytes -= filter_bytes;
  }
  if (filter_bytes != 0) record_pixels(recorder, args, args.filter, args.filter_shape, taps, {}, ordered_filter);
  for (uint64_t first = 0; first < args.batch(); first += most) {
    ConvArgs piece = args;
    piece.in_shape.outer[0] = piece.out_shape.outer[0] = std::min(most, args.batch() - first);
    const Buffer input = moved(args.input, first * (args.in_shape.elements() / args.batch()), args.dtype);
    const uint64_t out_at = first * (args.out_shape.elements() / args.batch());
    const Buffer output = moved(args.output, out_at, args.dtype), residual = moved(args.residual, out_at, args.dtype);
    piece.output = &output;
    if (args.residual != nullptr) piece.residual = &residual;
    if (!pixels.as_they_are) {
      record_pixels(recorder, args, &input, piece.in_shape, pixels, args.padding, ordered_pixels);
    }
    const GemmArgs gemm = product_of(piece, pixels, pixels.as_they_are ? &input : &ordered_pixels,
                                     filter_bytes == 0 ? args.filter : &ordered_filter);
    log(TUFF_LOG_DISPATCH, "conv on matrix units: {}, {} images, m={} n={} k={}, {}{}", dtype_name(args.dtype),
        piece.batch(), gemm.m, gemm.n, gemm.k, pixels.as_they_are ? "in place" : "pixels ordered first",
        filter_bytes != 0 ? ", filters too" : "");
    gemm::record_windows(recorder, gemm, windows_of(piece, pixels));
  }
}

}  // namespace tuff::conv
