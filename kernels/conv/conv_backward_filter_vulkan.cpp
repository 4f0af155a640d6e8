// Plans the gradients of a convolution by its filter and bias: sums over all images and positions.
//
// By plain GEMM where a window is one pixel or the whole image; otherwise as a GEMM whose right-hand side, the patches
// of the input, is gathered into shared memory by a kernel in PTX, or stored piece by piece (CPU devices and matrix
// units), or gathered into shared memory (other GPUs); and with few filters or taps in a group, as in depthwise
// convolutions, with the sums of each lane in its registers. The columns, over which
// is summed, are cut into slices where that gives more cores work; their sums are added in their order.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/common/loop_limit.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/conv/conv_backward.hpp"
#include "kernels/conv/conv_plan.hpp"
#include "kernels/gemm/implicit_gemm.hpp"
#include "kernels/reduce/reduce.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "shaders/conv_backward_lanes.hpp"
#include "shaders/conv_backward_tile.hpp"

namespace tuff {
namespace {

using conv::kMaxColumns;

bool is_all(const ConvExtents& extents, uint64_t value) {
  return std::all_of(extents.begin(), extents.end(), [&](uint64_t x) { return x == value; });
}

uint64_t columns_of(const ConvArgs& args) { return args.batch() * args.out_shape.pixels(); }

// C = 0 for m x n elements, or the sum of `slices` matrices of f32.
void record_sum(Recorder& recorder, int32_t dtype, const Buffer* c, uint64_t m, uint64_t n, const Buffer* partials,
                uint64_t slices) {
  if (m == 0 || n == 0) return;
  GemmArgs sum{};
  sum.a_type = sum.b_type = sum.c_type = dtype;
  sum.alpha = 1;
  sum.c = c;
  sum.m = m;
  sum.n = sum.ldc = n;
  sum.stride_c = m * n;
  gemm::record_finish(recorder, sum, partials, slices);
}

// --- by GEMM

GemmArgs product(const ConvBackwardArgs& args, uint64_t m, uint64_t n, uint64_t k) {
  GemmArgs gemm{};
  gemm.a_type = gemm.b_type = gemm.c_type = args.conv.dtype;
  gemm.accumulate = TUFF_F32;
  gemm.alpha = 1;
  gemm.a = args.doutput;
  gemm.b = args.conv.input;
  gemm.c = args.dfilter;
  gemm.m = m;
  gemm.n = gemm.ldc = n;
  gemm.k = k;
  return gemm;
}

constexpr uint64_t kMaxImageSums = uint64_t{1} << 24;  // of products whose images are summed apart
constexpr uint64_t kLeastPixels = 64;                  // of an image for its own product

// Without patches, if the window is one pixel or the whole image. Products of several images are sums of f32 each.
std::optional<GemmArgs> as_gemm(const ConvBackwardArgs& args) {
  const ConvArgs& conv = args.conv;
  if (!is_all(conv.padding, 0) || !is_all(conv.padding_end, 0)) return std::nullopt;
  const uint64_t filters = conv.filters(), channels = conv.channels(), pixels = conv.out_shape.pixels();
  const uint64_t batch = conv.batch();
  if (batch * pixels >= kMaxColumns / 2) return std::nullopt;  // GEMM would compute longer sums in pieces
  if (conv.taps() == conv.in() && conv.groups == 1) {          // doutput [batch][filters], input [batch][taps]
    GemmArgs gemm = product(args, filters, channels * conv.filter_shape.pixels(), batch);
    gemm.ta = TUFF_TRANS;
    gemm.lda = gemm.m;
    gemm.ldb = gemm.n;
    return gemm;
  }
  if (!is_all(conv.taps(), 1) || !is_all(conv.stride, 1)) return std::nullopt;
  if (conv.channels_last()) {  // doutput [columns][filters], input [columns][channels]
    if (conv.groups != 1) return std::nullopt;
    GemmArgs gemm = product(args, filters, channels, batch * pixels);
    gemm.ta = TUFF_TRANS;
    gemm.lda = gemm.m;
    gemm.ldb = gemm.n;
    return gemm;
  }
  // doutput [filters][pixels], input [channels][pixels] of each image, or of each group of one image
  if (batch != 1 && (conv.groups != 1 || pixels < kLeastPixels ||
                     batch > kMaxImageSums / std::max<uint64_t>(filters * channels, 1))) {
    return std::nullopt;
  }
  GemmArgs gemm = product(args, conv.group_filters(), conv.group_channels(), pixels);
  gemm.tb = TUFF_TRANS;
  gemm.lda = gemm.ldb = pixels;
  gemm.batch_count = batch != 1 ? batch : conv.groups;
  gemm.stride_a = gemm.m * pixels;
  gemm.stride_b = gemm.n * pixels;
  gemm.stride_c = gemm.m * gemm.n;
  return gemm;
}

void record_as_gemm(Recorder& recorder, const ConvBackwardArgs& args, GemmArgs gemm) {
  log(TUFF_LOG_DISPATCH, "conv backward filter as gemm: m={} n={} k={} batch={}", gemm.m, gemm.n, gemm.k,
      gemm.batch_count);
  if (gemm.batch_count == 1 || args.conv.groups != 1) return record_gemm(recorder, gemm);
  const Buffer sums = recorder.scratch(gemm.batch_count * gemm.stride_c * sizeof(float), Scratch::outermost);
  gemm.c = &sums;
  gemm.c_type = TUFF_F32;
  record_gemm(recorder, gemm);
  record_sum(recorder, args.conv.dtype, args.dfilter, gemm.m, gemm.n, &sums, gemm.batch_count);
}

// --- by implicit GEMM in PTX, whose rows of k are windows

struct WindowProduct {
  GemmArgs gemm;
  gemm::Windows windows;
};

// dfilter [filters][taps][channels] = doutput [columns][filters] transposed * the columns' windows
std::optional<WindowProduct> as_windows(const ConvBackwardArgs& args) {
  const ConvArgs& conv = args.conv;
  const uint64_t columns = columns_of(conv), channels = conv.channels();
  if (!conv.channels_last() || !conv.flat() || conv.groups != 1 || columns >= kMaxColumns) return std::nullopt;
  if (conv.filter_shape.pixels() > gemm::kMaxTaps || conv.dilation[1] != 1 || conv.dilation[2] != 1) {
    return std::nullopt;
  }
  // Strides between windows of which there is only one may be any number.
  const auto stride = [&](uint32_t axis) { return conv.out()[axis] > 1 ? conv.stride[axis] : 1; };
  const auto word = [](uint64_t x) { return static_cast<uint32_t>(std::min<uint64_t>(x, ~0u)); };
  WindowProduct result;
  GemmArgs& gemm = result.gemm;
  gemm = product(args, conv.filters(), conv.filter_shape.pixels() * channels, columns);
  gemm.ta = TUFF_TRANS;
  gemm.lda = gemm.m;
  gemm.ldb = stride(1) * conv.in()[2] * channels;
  gemm.stride_b = conv.in()[1] * conv.in()[2] * channels;
  gemm.batch_count = 1;
  gemm::Windows& windows = result.windows;
  windows.of_k = windows.padded = true;
  windows.elements = conv.in_shape.elements();
  windows.per_image = word(conv.out_shape.pixels());
  windows.width = word(conv.out()[2]);
  windows.step = word(stride(2) * channels);
  windows.channels = windows.pixel = word(channels);
  windows.taps = word(conv.taps()[2]);
  windows.tap_rows = word(conv.taps()[1]);
  windows.dilation = 1;
  windows.tap_row = word(conv.in()[2] * channels);
  for (uint32_t axis = 0; axis < 2; ++axis) {
    windows.extents[axis] = word(conv.in()[axis + 1]);
    windows.before[axis] = word(conv.padding[axis + 1]);
    windows.strides[axis] = word(stride(axis + 1));
  }
  return result;
}

// Returns false and has recorded nothing if no kernel computes it here.
bool record_by_windows(Recorder& recorder, const ConvBackwardArgs& args) {
  const std::optional<WindowProduct> made = as_windows(args);
  if (!made || !gemm::runs_windows(recorder.traits(), made->gemm, made->windows)) return false;
  log(TUFF_LOG_DISPATCH, "conv backward filter as implicit gemm: m={} n={} k={}", made->gemm.m, made->gemm.n,
      made->gemm.k);
  return gemm::record_windows(recorder, made->gemm, made->windows);
}

// --- by GEMM with stored patches

// Elements of one piece, which bounds scratch memory: on CPU devices what their caches hold, on GPUs enough to fill
// them.
uint64_t max_patches(const DeviceTraits& traits) { return uint64_t{1} << (traits.cpu ? 23 : 27); }
constexpr uint64_t kLeastColumns = 64;  // of a piece

uint64_t patch_rows(const ConvArgs& args) { return args.channels() * args.filter_shape.pixels(); }

// On GPUs patches have 16 bits, as matrix units multiply them; on CPU devices the packed GEMM takes f32.
int32_t patch_type(const DeviceTraits& traits, const ConvArgs& args) { return traits.cpu ? TUFF_F32 : args.dtype; }

bool runs_patches(const DeviceTraits& traits, const ConvArgs& args) {
  return patch_rows(args) + args.filters() <= max_patches(traits) / kLeastColumns;
}

bool suits_patches(const DeviceTraits& traits, const ConvArgs& args) {
  // With fewer sums in a group than these, what is stored costs more than GEMM saves. On GPUs only matrix units do.
  constexpr uint64_t kMinFilters = 8, kMinTaps = 16, kMinMatrix = 32;
  const uint64_t filters = args.group_filters(), taps = conv::taps_of(args);
  if (!runs_patches(traits, args)) return false;
  if (traits.cpu) return filters >= kMinFilters && taps >= kMinTaps;
  return dtype_size(args.dtype) == 2 && traits.matrix_shape_count != 0 && filters >= kMinMatrix && taps >= kMinMatrix;
}

// The gradients of the output as the input of a convolution whose patches are its channels.
ConvArgs slopes_of(const ConvBackwardArgs& args) {
  ConvArgs slopes = args.conv;
  slopes.input = args.doutput;
  slopes.in_shape = slopes.out_shape;
  slopes.filter_shape.outer = {slopes.filters(), slopes.filters()};
  slopes.filter_shape.extents = slopes.stride = slopes.dilation = {1, 1, 1};
  slopes.padding = slopes.padding_end = {};
  slopes.groups = 1;
  return slopes;
}

// The products of a piece's columns. slopes: [filters][columns of the piece], of the patches' type, or null: doutput in
// place.
void record_piece(Recorder& recorder, const ConvBackwardArgs& args, const conv::Columns& piece, const Buffer* slopes,
                  const Buffer& patches, int32_t stored, const Buffer& sums) {
  const ConvArgs& conv = args.conv;
  const bool last = conv.channels_last();
  const uint64_t taps = conv::taps_of(conv), channels = conv.group_channels(), filters = conv.group_filters();
  const Buffer in_place = moved(args.doutput, piece.first * (last ? conv.filters() : 1), conv.dtype);
  GemmArgs gemm = product(args, filters, taps, piece.count);
  gemm.a = slopes != nullptr ? slopes : &in_place;
  gemm.b = &patches;
  gemm.c = &sums;
  if (slopes != nullptr) gemm.a_type = stored;
  gemm.b_type = stored;
  gemm.c_type = TUFF_F32;
  gemm.beta = piece.first == 0 ? 0 : 1;
  gemm.ta = slopes == nullptr && last ? TUFF_TRANS : TUFF_NO_TRANS;
  gemm.tb = TUFF_TRANS;
  gemm.lda = slopes != nullptr ? piece.pitch() : last ? conv.filters() : conv.out_shape.pixels();
  gemm.ldb = piece.pitch();
  gemm.batch_count = conv.groups;
  gemm.stride_a = gemm.ta == TUFF_TRANS ? filters : filters * gemm.lda;
  gemm.stride_b = taps * gemm.ldb;
  gemm.stride_c = filters * taps;
  if (!last || conv.groups == 1) return record_gemm(recorder, gemm);
  // With channels last, the patches of a position in the window are those of all groups' channels.
  gemm.n = channels;
  gemm.stride_b = channels * gemm.ldb;
  for (uint64_t place = 0; place < conv.filter_shape.pixels(); ++place) {
    const Buffer b = moved(&patches, place * conv.channels() * gemm.ldb, stored);
    const Buffer c = moved(&sums, place * channels, TUFF_F32);
    gemm.b = &b;
    gemm.c = &c;
    record_gemm(recorder, gemm);
  }
}

void record_by_patches(Recorder& recorder, const ConvBackwardArgs& args) {
  const ConvArgs& conv = args.conv;
  const uint64_t columns = columns_of(conv), filters = conv.filters(), sums = conv.filter_shape.elements();
  const bool in_place = conv.channels_last() || conv.batch() == 1, finish = conv.dtype != TUFF_F32;
  const uint64_t rows = patch_rows(conv), slope_rows = in_place ? 0 : filters;
  const int32_t stored = patch_type(recorder.traits(), conv);
  const uint64_t fitting =
      std::max(max_patches(recorder.traits()) / (rows + slope_rows) / kLeastColumns, uint64_t{1}) * kLeastColumns;
  const uint64_t most = std::min(ceil_div(columns, 4) * 4, fitting);
  const auto aligned = [](uint64_t elements, int32_t dtype) {
    return ceil_div(elements * dtype_size(dtype), 256) * 256;
  };
  const uint64_t patch_bytes = aligned(rows * most, stored), slope_bytes = aligned(slope_rows * most, stored);
  Buffer patches = recorder.scratch(patch_bytes + slope_bytes + (finish ? aligned(sums, TUFF_F32) : 0), Scratch::outer);
  const auto after = [](const Buffer& buffer, uint64_t bytes) {
    Buffer result = buffer;
    result.offset += bytes;
    result.bytes -= bytes;
    return result;
  };
  const Buffer slopes = after(patches, patch_bytes);
  const Buffer total = finish ? after(slopes, slope_bytes) : *args.dfilter;
  log(TUFF_LOG_DISPATCH, "conv backward filter patches {} filters={} groups={} columns={} taps={}: {} at once",
      dtype_name(conv.dtype), filters, conv.groups, columns, rows, most);
  for (uint64_t first = 0; first < columns; first += most) {
    const conv::Columns piece{first, std::min(most, columns - first)};
    conv::record_gather(recorder, conv, piece, patches, stored);
    if (!in_place) conv::record_gather(recorder, slopes_of(args), piece, slopes, stored);
    record_piece(recorder, args, piece, in_place ? nullptr : &slopes, patches, stored, total);
  }
  if (finish) record_sum(recorder, conv.dtype, args.dfilter, filters, conv::taps_of(conv), &total, 1);
}

// --- implicit GEMM

// A workgroup's part of the sums.
struct Tile {
  bool shared;  // conv_backward_tile.comp, otherwise conv_backward_lanes.comp
  uint32_t filters, taps, invocations;
  // Columns that an invocation's loop takes at a time.
  uint64_t columns() const { return shared ? 16 : invocations; }
};

bool runs_tiles(const DeviceTraits& traits) {
  constexpr uint32_t kInvocations = 256;
  const uint32_t shared_bytes = 16 * (128 + 4) * 2 * 4 + 128 * 28 + 2 * 16 * 32;
  return traits.max_invocations >= kInvocations && max_along_x(traits) >= kInvocations &&
         traits.shared_bytes >= shared_bytes;
}

Tile tile_of(const DeviceTraits& traits, const ConvArgs& args) {
  const std::optional<std::string>& forced = forced_variant<"TUFF_CONV_VARIANT">();
  const uint64_t filters = args.group_filters(), taps = conv::taps_of(args);
  const bool wanted = forced && forced->starts_with("tile_") ? true : !traits.cpu && filters >= 16 && taps >= 16;
  if (wanted && runs_tiles(traits) && !(forced && forced->starts_with("subgroup_"))) {
    // The larger tile where it wastes nothing and leaves enough of them, which slices multiply by.
    const auto side = [](uint64_t n) { return n > 64 && ceil_div(n, 128) * 128 <= n + n / 4 ? 128u : 64u; };
    return {true, side(filters), side(taps), 256};
  }
  const uint64_t parts = ceil_div(taps, 9), each = ceil_div(taps, parts);
  const StreamDevice device = stream_device(traits, {}, sizeof(float));
  const uint32_t width = device.cpu ? device.subgroup : std::min(std::bit_floor(device.workgroup), 64u);
  return {false, static_cast<uint32_t>(std::min<uint64_t>(std::bit_floor(filters), 4)), static_cast<uint32_t>(each),
          std::min(width, 256u)};
}

// The sums of columns [first, first + slices * each) of some images are stored, or added to those stored.
void record_slices(Recorder& recorder, const ConvBackwardArgs& args, const Tile& tile, const Buffer& sums,
                   uint64_t first_slice, uint64_t slices, uint64_t each, bool adds) {
  const DeviceTraits& traits = recorder.traits();
  const ConvArgs& conv = args.conv;
  conv::Product product;
  product.args = conv;
  for (uint32_t axis = 0; axis < kConvAxes; ++axis) product.padding[axis] = static_cast<int64_t>(conv.padding[axis]);
  auto push = conv::push_of<false, false>(product);
  push.slices = static_cast<uint32_t>(slices);
  push.slice_taps = static_cast<uint32_t>(each);
  push.first_slice = static_cast<uint32_t>(first_slice);
  shaders::ConvParams geometry = conv::geometry_of(product);
  geometry.tap_mask = false;  // a column's window serves few taps
  KernelRequest kernel = tile.shared ? shaders::ConvBackwardTile::request(
                                           {.adds = adds, .bm = tile.filters, .bn = tile.taps, .geometry = geometry})
                                     : shaders::ConvBackwardLanes::request({.adds = adds,
                                                                            .filters = tile.filters,
                                                                            .geometry = geometry,
                                                                            .taps = tile.taps,
                                                                            .width = tile.invocations});
  if (!tile.shared) kernel.streaming();
  const uint64_t size = dtype_size(conv.dtype), in = conv.in_shape.elements(), out = conv.out_shape.elements();
  const uint64_t results = slices * conv.filter_shape.elements();
  kernel.wide(needs_wide(in) || needs_wide(out) || needs_wide(results));
  const uint64_t groups =
      slices * conv.groups * ceil_div(conv.group_filters(), tile.filters) * ceil_div(conv::taps_of(conv), tile.taps);
  log(TUFF_LOG_DISPATCH, "conv backward filter {} {}x{} {} filters={} groups={} columns={} taps={} slices={} wide={}",
      tile.shared ? "tile" : "lanes", tile.filters, tile.taps, dtype_name(conv.dtype), conv.filters(), conv.groups,
      columns_of(conv), conv::taps_of(conv), slices, kernel.is_wide());
  Dispatch dispatch("conv backward filter");
  dispatch.operand(conv.input, 0, in * size, Access::read)
      .operand(args.doutput, 0, out * size, Access::read)
      .operand(&sums, 0, results * sizeof(float), adds ? Access::read_write : Access::write)
      .operand(nullptr, 0, 0, Access::read)
      .operand(nullptr, 0, 0, Access::read)
      .push(push)
      .groups_linear(groups, traits)
      .work(static_cast<double>((in + out) * size + results * sizeof(float)),
            2.0 * static_cast<double>(out) * static_cast<double>(conv::taps_of(conv)))
      .variant(tile.shared ? "tile" : "lanes");
  recorder.dispatch(kernel, dispatch);
}

void record_by_tiles(Recorder& recorder, const ConvBackwardArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  const ConvArgs& conv = args.conv;
  const Tile tile = tile_of(traits, conv);
  const uint64_t pixels = conv.out_shape.pixels(), filters = conv.filters(), taps = conv::taps_of(conv);
  const uint64_t images = std::clamp<uint64_t>((kMaxColumns - 1) / pixels, 1, conv.batch());
  // Slices, so that every core has work, and no invocation's loop is too long for a CPU device.
  const uint64_t tiles = conv.groups * ceil_div(conv.group_filters(), tile.filters) * ceil_div(taps, tile.taps),
                 columns = images * pixels;
  const uint64_t cores = traits.cores == 0 ? 16 : traits.cores, wanted = (traits.cpu ? 4 : 8) * cores;
  const uint64_t least = tile.columns() * 16;
  uint64_t each = ceil_div(columns, std::clamp<uint64_t>(wanted / tiles, 1, std::max<uint64_t>(columns / least, 1)));
  if (traits.cpu) each = std::min<uint64_t>(each, kMaxLoopIterationsCpu / 2 * tile.columns());
  each = ceil_div(each, tile.columns()) * tile.columns();
  const uint64_t slices = ceil_div(columns, each);
  const uint64_t stored = conv::stored_slices(slices, conv.filter_shape.elements(), conv::kMaxStoredSums);
  const Buffer sums = recorder.scratch(stored * conv.filter_shape.elements() * sizeof(float), Scratch::outermost);
  for (uint64_t first = 0; first < conv.batch(); first += images) {
    ConvBackwardArgs piece = args;
    const uint64_t count = std::min(images, conv.batch() - first);
    piece.conv.in_shape.outer[0] = piece.conv.out_shape.outer[0] = count;
    const Buffer input = moved(conv.input, first * (conv.in_shape.elements() / conv.batch()), conv.dtype);
    const Buffer doutput = moved(args.doutput, first * (conv.out_shape.elements() / conv.batch()), conv.dtype);
    piece.conv.input = &input;
    piece.doutput = &doutput;
    const uint64_t own = ceil_div(count * pixels, each);
    for (uint64_t slice = 0; slice < own; slice += stored) {
      record_slices(recorder, piece, tile, sums, slice, std::min(stored, own - slice), each, first + slice != 0);
    }
  }
  record_sum(recorder, conv.dtype, args.dfilter, filters, taps, &sums, stored);
}

// --- the bias

constexpr uint64_t kMaxImages = 1024;  // whose sums are added by the second pass of a GEMM

void record_bias(Recorder& recorder, const ConvBackwardArgs& args) {
  const ConvArgs& conv = args.conv;
  const uint64_t batch = conv.batch(), filters = conv.filters(), pixels = conv.out_shape.pixels();
  if (conv.channels_last() || batch == 1) {
    const uint64_t shape[2] = {conv.channels_last() ? batch * pixels : filters,
                               conv.channels_last() ? filters : pixels};
    return record_reduce(
        recorder, {conv.dtype, TUFF_REDUCE_SUM, args.doutput, args.dbias, shape, 2, conv.channels_last() ? 0u : 1u});
  }
  // The sums of each image's filters in f32, then those of all images.
  Buffer sums = recorder.scratch((batch + 1) * filters * sizeof(float), Scratch::outermost);
  const uint64_t planes[2] = {batch * filters, pixels}, images[2] = {batch, filters};
  record_reduce(recorder, {conv.dtype, TUFF_REDUCE_SUM, args.doutput, &sums, planes, 2, 1, 0, TUFF_F32});
  if (batch <= kMaxImages) return record_sum(recorder, conv.dtype, args.dbias, 1, filters, &sums, batch);
  const Buffer total = moved(&sums, batch * filters, TUFF_F32);
  record_reduce(recorder, {TUFF_F32, TUFF_REDUCE_SUM, &sums, &total, images, 2, 0});
  record_sum(recorder, conv.dtype, args.dbias, 1, filters, &total, 1);
}

// UNSUPPORTED, before anything is recorded, for what the kernels cannot hold.
void check_sizes(const ConvArgs& args) {
  conv::check_positions(args);
  if (args.out_shape.pixels() >= kMaxColumns) {
    fail(TUFF_ERROR_UNSUPPORTED, "out_shape has {} outputs of an image, must be below {}", args.out_shape.pixels(),
         kMaxColumns);
  }
  conv::Product one;
  one.args = args;
  one.args.in_shape.outer[0] = one.args.out_shape.outer[0] = 1;
  conv::check_dense_phase(one);
}

}  // namespace

void record_conv_backward_filter(Recorder& recorder, const ConvBackwardArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  const ConvArgs& conv = args.conv;
  require_storage(traits, conv.dtype);
  const uint64_t filters = conv.filters(), taps = conv.group_channels() * conv.filter_shape.pixels();
  const bool sums = args.dfilter != nullptr && conv.filter_shape.elements() != 0;
  const bool empty = conv.in_shape.elements() == 0 || conv.out_shape.elements() == 0;
  const std::optional<std::string>& forced = forced_variant<"TUFF_CONV_VARIANT">();
  const std::optional<GemmArgs> gemm = sums && !empty && !forced ? as_gemm(args) : std::nullopt;
  if (sums && !empty && !gemm) check_sizes(conv);
  // Before anything is recorded: what one of the dispatches could not take.
  const uint64_t most = uint64_t{1} << 32, rows = conv.batch() * std::max(conv.out_shape.pixels(), filters);
  if (sums && conv.filter_shape.elements() >= most) {
    fail(TUFF_ERROR_UNSUPPORTED, "filter_shape has {} elements, must be below 2^32", conv.filter_shape.elements());
  }
  if (args.dbias != nullptr && conv.out_shape.elements() != 0 && rows >= most - 0x10000) {
    fail(TUFF_ERROR_UNSUPPORTED, "dbias adds up {} pixels or planes, must be below 2^32 - 2^16", rows);
  }
  if (args.dbias != nullptr && filters != 0) {
    if (conv.out_shape.elements() == 0) {
      record_sum(recorder, conv.dtype, args.dbias, 1, filters, nullptr, 0);
    } else {
      record_bias(recorder, args);
    }
  }
  if (!sums) return;
  if (empty) return record_sum(recorder, conv.dtype, args.dfilter, filters, taps, nullptr, 0);
  if (gemm) return record_as_gemm(recorder, args, *gemm);
  if ((!forced || *forced == "matrices") && record_by_windows(recorder, args)) return;
  const bool patches = columns_of(conv) < kMaxColumns &&
                       (forced ? *forced == "patches" && runs_patches(traits, conv) : suits_patches(traits, conv));
  if (patches) return record_by_patches(recorder, args);
  record_by_tiles(recorder, args);
}

}  // namespace tuff
