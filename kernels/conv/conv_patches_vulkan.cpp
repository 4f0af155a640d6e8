// Plans a convolution as a GEMM whose right-hand side, the patches, is stored in scratch memory piece by piece. For CPU
// devices, where a large GEMM with packed operands runs about twice as fast as implicit GEMM.
#include <algorithm>

#include "kernels/common/stream_device.hpp"
#include "kernels/conv/conv_plan.hpp"
#include "kernels/gemm/implicit_gemm.hpp"
#include "planning/log.hpp"
#include "shaders/conv_patches.hpp"

namespace tuff::conv {
namespace {

constexpr uint64_t kMaxPatches = uint64_t{1} << 23;  // elements of one piece, which bounds scratch memory
constexpr uint64_t kMaxSums = uint64_t{1} << 28;     // the same for the sums
constexpr uint64_t kLeastColumns = 64;               // of a piece
constexpr uint64_t kRun = 32;                        // rows of the patches that an invocation writes

// A range of columns, with scratch memory for their patches and, if a second pass follows, for their sums.
struct Piece : Columns {
  Buffer patches, sums;
};

// Whether the sums are stored for a second pass.
bool needs_finish(const ConvArgs& args) {
  return args.dtype != TUFF_F32 || args.bias != nullptr || args.residual != nullptr ||
         args.activation != TUFF_ACTIVATION_NONE;
}

// Computes a piece's columns of the output, from element `at` on: [filters][count] of an image, or [count][filters].
void record_multiply(Recorder& recorder, const ConvArgs& args, const Piece& piece, uint64_t at) {
  const bool last = args.channels_last(), finish = needs_finish(args);
  const uint64_t taps = args.group_channels() * args.filter_shape.pixels(), pixels = args.out_shape.pixels();
  const Buffer output = moved(args.output, at, args.dtype), residual = moved(args.residual, at, args.dtype);
  GemmArgs gemm{};
  gemm.a_type = last ? TUFF_F32 : args.dtype;
  gemm.b_type = last ? args.dtype : TUFF_F32;
  gemm.accumulate = TUFF_F32;
  gemm.ta = last ? TUFF_TRANS : TUFF_NO_TRANS;
  gemm.tb = last ? TUFF_TRANS : TUFF_NO_TRANS;
  gemm.m = last ? piece.count : args.group_filters();
  gemm.n = last ? args.filters() : piece.count;
  gemm.k = taps;
  gemm.alpha = 1;
  gemm.a = last ? &piece.patches : args.filter;
  gemm.b = last ? args.filter : &piece.patches;
  gemm.lda = last ? piece.pitch() : taps;
  gemm.ldb = last ? taps : piece.pitch();
  gemm.stride_a = gemm.m * taps;
  gemm.stride_b = taps * piece.pitch();
  gemm.batch_count = args.groups;
  GemmArgs end = gemm;
  gemm.c_type = TUFF_F32;
  gemm.c = finish ? &piece.sums : &output;
  gemm.ldc = finish ? gemm.n : last ? args.filters() : pixels;
  gemm.stride_c = gemm.m * gemm.ldc;
  record_gemm(recorder, gemm);
  if (!finish) return;
  end.a_type = end.b_type = end.c_type = args.dtype;
  end.c = &output;
  end.ldc = end.epilogue.ld_residual = last ? args.filters() : pixels;
  end.stride_c = end.epilogue.stride_residual = end.m * end.ldc;
  end.epilogue.activation = args.activation;
  end.epilogue.bias = args.bias;
  if (args.bias != nullptr) end.epilogue.bias_axis = last ? TUFF_BIAS_COLUMNS : TUFF_BIAS_ROWS;
  if (args.groups != 1) end.epilogue.stride_bias = end.m;
  end.epilogue.residual = args.residual != nullptr ? &residual : nullptr;
  gemm::record_finish(recorder, end, &piece.sums, 1);
}

}  // namespace

void record_gather(Recorder& recorder, const ConvArgs& args, const Columns& piece, const Buffer& patches,
                   int32_t stored) {
  const DeviceTraits& traits = recorder.traits();
  const StreamDevice device = stream_device(traits, {}, sizeof(float));
  const uint64_t rows = args.channels() * args.filter_shape.pixels(), size = dtype_size(args.dtype);
  // The channels of all groups are adjacent, so that their patches are those of a single group.
  Product all;
  all.args = args;
  all.args.groups = 1;
  for (uint32_t axis = 0; axis < kConvAxes; ++axis) all.padding[axis] = static_cast<int64_t>(args.padding[axis]);
  ProductPush<true, false> push = push_of<true, false>(all);
  push.first_column = static_cast<uint32_t>(piece.first);
  push.column_count = static_cast<uint32_t>(piece.count);
  const bool vec_channels = args.channels_last() && args.channels() % 4 == 0 && args.input->offset % (4 * size) == 0;
  KernelRequest kernel = shaders::ConvPatches::request({.geometry = geometry_of(all),
                                                        .pairs = traits.addresses,
                                                        .stored16 = stored != TUFF_F32,
                                                        .vec_channels = vec_channels});
  kernel.streaming().constant(0, device.workgroup).constant(1, kRun);
  const uint64_t in_elements = args.in_shape.elements();
  kernel.wide(needs_wide(in_elements));
  Dispatch dispatch("conv patches");
  dispatch.operand(args.input, 0, in_elements * size, Access::read)
      .operand(nullptr, 0, 0, Access::read)
      .operand(&patches, 0, rows * piece.pitch() * dtype_size(stored), Access::write)
      .operand(nullptr, 0, 0, Access::read)
      .operand(nullptr, 0, 0, Access::read)
      .push(push)
      .groups_linear(ceil_div(piece.pitch() / 4, device.workgroup) * ceil_div(rows, kRun), traits)
      .work(static_cast<double>(rows * piece.count * (size + dtype_size(stored))), 0);
  recorder.dispatch(kernel, dispatch);
}

bool runs_patches(const DeviceTraits& traits, const ConvArgs& args) {
  return traits.cpu && !args.transposed && taps_of(args) != 0 && (args.groups == 1 || !args.channels_last()) &&
         args.channels() * args.filter_shape.pixels() <= kMaxPatches &&
         (!needs_finish(args) || args.filters() <= kMaxSums / kLeastColumns);
}

bool packs_products(const DeviceTraits& traits, uint64_t m, uint64_t n, uint64_t k) {
  // The limits of gemm_panels_vulkan.cpp, except that kMin applies to k as well.
  constexpr uint64_t kMin = 96;
  constexpr double kMinOperations = 3e7;
  return traits.cpu && traits.addresses && std::min({m, n, k}) >= kMin &&
         2.0 * static_cast<double>(m * n) * static_cast<double>(k) >= kMinOperations;
}

bool suits_patches(const DeviceTraits& traits, const ConvArgs& args) {
  constexpr uint64_t kMinFilters = 384;  // from here on storing patches costs less than the faster GEMM saves
  const uint64_t pixels = args.out_shape.pixels() * (args.channels_last() ? args.batch() : 1);
  return runs_patches(traits, args) && args.dtype == TUFF_F32 && args.groups == 1 && args.filters() >= kMinFilters &&
         packs_products(traits, args.filters(), pixels, taps_of(args));
}

void record_patches(Recorder& recorder, const ConvArgs& args) {
  const uint64_t rows = args.channels() * args.filter_shape.pixels(), pixels = args.out_shape.pixels();
  const bool last = args.channels_last();
  // With channels last, images follow one another in the output as pixels do.
  const uint64_t images = last ? 1 : args.batch(), columns = last ? args.batch() * pixels : pixels;
  const bool finish = needs_finish(args);
  uint64_t fitting = kMaxPatches / rows;
  if (finish) fitting = std::min(fitting, kMaxSums / args.filters());
  const uint64_t whole = std::max(fitting / kLeastColumns * kLeastColumns, kLeastColumns);
  const uint64_t most = std::min(ceil_div(columns, 4) * 4, whole);
  const uint64_t patch_bytes = ceil_div(rows * most * sizeof(float), 256) * 256;
  const uint64_t sums_bytes = finish ? args.filters() * most * sizeof(float) : 0;
  Piece piece;
  piece.patches = piece.sums = recorder.scratch(patch_bytes + sums_bytes, Scratch::outer);
  piece.sums.offset += patch_bytes;
  piece.sums.bytes -= patch_bytes;
  log(TUFF_LOG_DISPATCH, "conv patches {} filters={} groups={} columns={} taps={}: {} at once", dtype_name(args.dtype),
      args.filters(), args.groups, images * columns, rows, most);
  for (uint64_t image = 0; image < images; ++image) {
    for (uint64_t first = 0; first < columns; first += most) {
      piece.first = image * columns + first;
      piece.count = std::min(most, columns - first);
      record_gather(recorder, args, piece, piece.patches, TUFF_F32);
      record_multiply(recorder, args, piece, last ? first * args.filters() : image * args.filters() * pixels + first);
    }
  }
}

}  // namespace tuff::conv
