// Convolutions that are products of matrices, and the pass that follows all of them: bias, residual and activation.
//
// Channels first, an image is a matrix of channels x pixels, and a 1 x 1 filter multiplies it where it is. If the
// filter skips pixels, those that it reads are copied first. An image of few pixels becomes rows instead: what the
// filter reads for each pixel, in the order of the filter's own elements, so that rows are multiplied by rows
// (rows.hpp). That saves oneDNN's copy of the filter, which takes longer than the products if the pixels are few.
#include "backends/cpu/conv.hpp"
#include "backends/cpu/rows.hpp"

namespace tuff_cpu {
namespace {

using Call = tuff_backend_conv;

constexpr uint64_t kFewPixels = 64;

uint64_t pixels_of(const uint64_t (&shape)[5]) { return shape[2] * shape[3] * shape[4]; }

bool channels_first(const Call& call) {
  return call.transposed != 1 && call.groups == 1 && call.layout == TUFF_LAYOUT_NCHW;
}

// A 1 x 1 filter on pixels of the image alone.
bool is_pointwise(const Call& call) {
  for (uint32_t i = 0; i < 3; ++i) {
    if (call.filter_shape[2 + i] != 1 || call.padding[i] != 0 || call.padding_end[i] != 0) return false;
  }
  return channels_first(call);
}

bool is_whole(const Call& call) { return call.stride[0] == 1 && call.stride[1] == 1 && call.stride[2] == 1; }

// Whether images become rows: a 1 x 1 filter if sgemm has too few columns, others if all images together have so few
// pixels that oneDNN's copy of the filter costs more than rows of patches do.
bool takes_rows(const Call& call) {
  constexpr uint64_t kShortest = 192, kFewOfAll = 128;
  const uint64_t pixels = pixels_of(call.out_shape), taps = pixels_of(call.filter_shape);
  if (!channels_first(call) || pixels > kFewPixels || call.in_shape[1] * taps < kShortest) return false;
  if (taps > kFewPixels || !has_row_products()) return false;
  return is_pointwise(call) || call.out_shape[0] * pixels <= kFewOfAll;
}

// Where a pixel's taps are in a channel of the input; padding is kPadding.
constexpr uint64_t kPadding = UINT64_MAX;

void find_taps(const Call& call, uint64_t pixel, uint64_t* places) {
  const uint64_t x = pixel % call.out_shape[4], y = pixel / call.out_shape[4] % call.out_shape[3];
  const uint64_t first[] = {pixel / call.out_shape[4] / call.out_shape[3] * call.stride[0], y * call.stride[1],
                            x * call.stride[2]};
  for (uint64_t t = 0; t < pixels_of(call.filter_shape); ++t) {
    const uint64_t tap[] = {t / call.filter_shape[4] / call.filter_shape[3],
                            t / call.filter_shape[4] % call.filter_shape[3], t % call.filter_shape[4]};
    uint64_t place = 0;
    for (uint32_t i = 0; i < 3; ++i) {
      // Positions before the image are huge, as unsigned numbers.
      const uint64_t position = first[i] + tap[i] * call.dilation[i] - call.padding[i];
      place =
          place == kPadding || position >= call.in_shape[2 + i] ? kPadding : place * call.in_shape[2 + i] + position;
    }
    places[t] = place;
  }
}

// rows[pixel][channel][tap]
void fill_rows(const Call& call, const float* image, float* rows) {
  const uint64_t taps = pixels_of(call.filter_shape), channels = call.in_shape[1], plane = pixels_of(call.in_shape);
  for_each(pixels_of(call.out_shape), channels * taps, [&](uint64_t pixel) {
    uint64_t places[kFewPixels];
    find_taps(call, pixel, places);
    float* row = rows + pixel * channels * taps;
    for (uint64_t c = 0; c < channels; ++c) {
      const float* of_channel = image + c * plane;
      for (uint64_t t = 0; t < taps; ++t) *row++ = places[t] == kPadding ? 0.0F : of_channel[places[t]];
    }
  });
}

// read[channel][pixel] of a filter that skips pixels.
void skip_pixels(const Call& call, const float* image, float* read) {
  const uint64_t plane = pixels_of(call.in_shape), pixels = pixels_of(call.out_shape);
  for_each(call.in_shape[1], pixels, [&](uint64_t c) {
    float* to = read + c * pixels;
    for (uint64_t z = 0; z < call.out_shape[2]; ++z) {
      for (uint64_t y = 0; y < call.out_shape[3]; ++y) {
        const float* from =
            image + c * plane + (z * call.stride[0] * call.in_shape[3] + y * call.stride[1]) * call.in_shape[4];
        for (uint64_t x = 0; x < call.out_shape[4]; ++x) *to++ = from[x * call.stride[2]];
      }
    }
  });
}

// y = sums + bias + residual. y may be either. -0 takes the place of a bias that is missing: it changes no number.
void add_bias_and_residual(const float* sums, const float* bias, bool repeated, const float* residual, float* y,
                           uint64_t n) {
  if (bias != nullptr && !repeated) {
    if (residual != nullptr) {
      for (uint64_t i = 0; i < n; ++i) y[i] = sums[i] + bias[i] + residual[i];
    } else {
      for (uint64_t i = 0; i < n; ++i) y[i] = sums[i] + bias[i];
    }
    return;
  }
  const float b = bias != nullptr ? *bias : -0.0F;
  if (residual != nullptr) {
    for (uint64_t i = 0; i < n; ++i) y[i] = sums[i] + b + residual[i];
  } else if (b != 0 || sums != y) {
    for (uint64_t i = 0; i < n; ++i) y[i] = sums[i] + b;
  }
}

// In parts of one channel or, channels last, of one pixel.
template <typename T>
void finish(const Call& call, const float* sums, uint64_t first_image, uint64_t images) {
  const uint64_t channels = call.out_shape[1], pixels = pixels_of(call.out_shape);
  const bool last = call.layout == TUFF_LAYOUT_NHWC;
  const T* bias = call.bias != 0 ? at<const T>(call.bias) : nullptr;
  const T* residual = call.residual != 0 ? at<const T>(call.residual) : nullptr;
  T* output = at<T>(call.output);
  constexpr uint64_t kBlock = 1024;
  const auto part = [&](uint64_t first, uint64_t count, uint64_t channel) {
    if constexpr (std::is_same_v<T, float>) {
      add_bias_and_residual(sums + first, bias != nullptr ? bias + channel : nullptr, !last,
                            residual != nullptr ? residual + first : nullptr, output + first, count);
      activate(call.activation, output + first, count);
    } else {
      float value[kBlock], other[kBlock];
      if (bias != nullptr) widen(bias + channel, other, last ? count : 1);
      add_bias_and_residual(sums + first, bias != nullptr ? other : nullptr, !last, nullptr, value, count);
      if (residual != nullptr) {
        widen(residual + first, other, count);
        add_bias_and_residual(value, nullptr, false, other, value, count);
      }
      activate(call.activation, value, count);
      narrow(value, output + first, count);
    }
  };
  const uint64_t row = last ? channels : pixels, rows = last ? pixels : channels;
  for_each(images * rows, row, [&](uint64_t i) {
    const uint64_t r = first_image * rows + i;
    for (uint64_t j = 0; j < row; j += kBlock) {
      part(r * row + j, std::min(kBlock, row - j), last ? j : r % channels);
    }
  });
}

}  // namespace

bool is_product(const Call& call) { return is_pointwise(call) || takes_rows(call); }

void multiply_images(const Call& call, const ConvOperands& operands) {
  const bool by_rows = takes_rows(call), copied = by_rows || !is_whole(call);
  const uint64_t channels = call.in_shape[1], filters = call.out_shape[1], pixels = pixels_of(call.out_shape);
  const uint64_t terms = channels * pixels_of(call.filter_shape), image = channels * pixels_of(call.in_shape);
  const Scratch<float> copy = copied ? Scratch<float>(terms * pixels) : Scratch<float>();
  for (uint64_t n = 0; n < call.in_shape[0]; ++n) {
    const float* input = operands.input + n * image;
    float* sums = operands.sums + n * filters * pixels;
    if (by_rows) {
      fill_rows(call, input, copy.get());
      multiply_rows_on_threads(
          {'N', 'T', filters, pixels, terms, 1, operands.filter, terms, copy.get(), terms, 0, sums, pixels});
    } else {
      if (copied) skip_pixels(call, input, copy.get());
      multiply_matrices({'N', 'N', filters, pixels, channels, 1, operands.filter, channels, copied ? copy.get() : input,
                         pixels, 0, sums, pixels});
    }
    finish_images(call, operands.sums, n, 1);
  }
}

void finish_images(const Call& call, const float* sums, uint64_t first, uint64_t count) {
  const bool plain = call.bias == 0 && call.residual == 0 && call.activation == TUFF_ACTIVATION_NONE;
  if (plain && sums == at<const float>(call.output)) return;
  with_float(call.dtype, [&]<typename T>(T) { finish<T>(call, sums, first, count); });
}

}  // namespace tuff_cpu
