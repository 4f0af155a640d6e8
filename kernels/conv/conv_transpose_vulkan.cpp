// Plans the transposed convolution as a gather. Outputs that are a stride apart (a phase) use the same taps of their
// windows, so each phase is an ordinary convolution of stride 1 whose outputs have a step between them. No
// multiplications with zeros between pixels are needed, and no output is written twice.
//
// Along an axis, output p uses tap r with input y if p + padding = y * stride + r * dilation. With
// g = gcd(stride, dilation), the taps of p's phase are r0, r0 + stride / g, …, and y decreases by dilation / g from one
// to the next: in reverse order they are the taps of a window with that dilation.
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string>

#include "kernels/common/stream_device.hpp"
#include "kernels/conv/conv_plan.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "shaders/conv_interleave.hpp"
#include "shaders/conv_transpose_filter.hpp"

namespace tuff::conv {
namespace {

// The outputs first, first + stride, … of one axis.
struct Phase {
  uint64_t first, outputs;
  uint64_t tap, taps;  // the lowest tap, and their number; without taps these outputs depend on no input
  uint64_t dilation;
  int64_t padding;
};

uint64_t tap_step(const ConvArgs& args, uint32_t axis) {
  return args.stride[axis] / std::gcd(args.stride[axis], args.dilation[axis]);
}

uint64_t phase_count(const ConvArgs& args, uint32_t axis) { return std::min(args.stride[axis], args.out()[axis]); }
uint64_t phases_of(const ConvArgs& args) { return phase_count(args, 0) * phase_count(args, 1) * phase_count(args, 2); }

Phase phase_of(const ConvArgs& args, uint32_t axis, uint64_t first) {
  const auto stride = static_cast<int64_t>(args.stride[axis]), dilation = static_cast<int64_t>(args.dilation[axis]);
  const uint64_t step = tap_step(args, axis), taps = args.taps()[axis], out = args.out()[axis];
  Phase phase{};
  phase.first = first;
  phase.outputs = (out - 1 - first) / args.stride[axis] + 1;
  phase.dilation = args.dilation[axis] / std::gcd(args.stride[axis], args.dilation[axis]);
  for (uint64_t tap = 0; tap < std::min(step, taps); ++tap) {
    const int64_t reach = static_cast<int64_t>(first + args.padding[axis]) - static_cast<int64_t>(tap) * dilation;
    if (reach % stride != 0) continue;
    phase.tap = tap;
    phase.taps = (taps - 1 - tap) / step + 1;
    phase.padding = static_cast<int64_t>((phase.taps - 1) * phase.dilation) - reach / stride;
    break;
  }
  return phase;
}

uint64_t taps_before(uint64_t taps, uint64_t step, uint64_t first) {
  return first * (taps / step) + std::min(first, taps % step);
}

// Along depth, height and width.
using Phases = std::array<Phase, kConvAxes>;

bool is_empty(const Phases& phases) {
  return std::any_of(phases.begin(), phases.end(), [](const Phase& phase) { return phase.taps == 0; });
}

// The start of a phase's filter, in units of K * C / groups elements, as written by conv_transpose_filter.comp.
uint64_t filter_place(const ConvArgs& args, const Phases& phases) {
  const auto before = [&](uint32_t axis) {
    return taps_before(args.taps()[axis], tap_step(args, axis), phases[axis].tap);
  };
  const auto& [z, y, x] = phases;
  return (before(0) * args.taps()[1] + z.taps * before(1)) * args.taps()[2] + z.taps * y.taps * before(2);
}

// The start of a phase's outputs in scratch memory, in units of a pixel's channels of all images, likewise.
uint64_t output_place(const ConvArgs& args, const Phases& phases) {
  const auto before = [&](uint32_t axis) {
    return taps_before(args.out()[axis], args.stride[axis], phases[axis].first);
  };
  const auto& [z, y, x] = phases;
  return (before(0) * args.out()[1] + z.outputs * before(1)) * args.out()[2] + z.outputs * y.outputs * before(2);
}

// Channels and filters are transposed through shared memory where loads and stores that are not along rows are slow.
bool transposes_in_tiles(const DeviceTraits& traits, const ConvArgs& args) {
  constexpr uint64_t kLeast = 32, kSharedBytes = 64 * 65 * 4;
  const std::optional<std::string>& forced = forced_variant<"TUFF_CONV_VARIANT">();
  const bool wanted = !traits.cpu || (forced && forced->starts_with("tile_"));
  return wanted && args.channels_last() && args.groups == 1 && args.channels() >= kLeast && args.filters() >= kLeast &&
         traits.shared_bytes >= kSharedBytes;
}

void record_filter(Recorder& recorder, const ConvArgs& args, const Buffer& ordered) {
  const DeviceTraits& traits = recorder.traits();
  const StreamDevice device = stream_device(traits, {}, sizeof(float));
  const uint64_t elements = args.filter_shape.elements(), bytes = dtype_size(args.dtype);
  const auto number = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const shaders::ConvTransposeFilter::Push push{.items = number(elements),
                                                .filters = number(args.group_filters()),
                                                .channels = number(args.group_channels()),
                                                .T = number(args.taps()[0]),
                                                .R = number(args.taps()[1]),
                                                .S = number(args.taps()[2]),
                                                .step_z = number(std::min(tap_step(args, 0), args.taps()[0])),
                                                .step_y = number(std::min(tap_step(args, 1), args.taps()[1])),
                                                .step_x = number(std::min(tap_step(args, 2), args.taps()[2]))};
  const bool tiled = transposes_in_tiles(traits, args);
  KernelRequest kernel =
      shaders::ConvTransposeFilter::request({.bytes = bytes, .channels_last = args.channels_last(), .tiled = tiled});
  kernel.streaming().constant(0, device.workgroup);
  constexpr uint64_t kSide = 64;
  const uint64_t groups =
      tiled ? args.filter_shape.pixels() * ceil_div(args.filters(), kSide) * ceil_div(args.channels(), kSide)
            : ceil_div(elements, device.workgroup);
  Dispatch dispatch("conv transpose filter");
  dispatch.operand(args.filter, 0, elements * bytes, Access::read)
      .operand(&ordered, 0, elements * bytes, Access::write)
      .push(push)
      .groups_linear(groups, traits)
      .work(2.0 * static_cast<double>(elements * bytes), static_cast<double>(elements));
  recorder.dispatch(kernel, dispatch);
}

void check_filter(uint64_t elements) {
  if (elements >= uint64_t{1} << 31) {
    fail(TUFF_ERROR_UNSUPPORTED, "filter_shape has {} elements, must be below 2^31", elements);
  }
}

// The implicit GEMM of one phase, without its filter buffer, which the caller sets. Its outputs are neighbours.
Product product_of(const ConvArgs& args, const Phases& phases) {
  Product product;
  product.args = args;
  ConvArgs& phase = product.args;
  phase.transposed = false;
  phase.filter_shape.outer = {args.filters(), args.group_channels()};
  phase.stride = {1, 1, 1};
  for (uint32_t axis = 0; axis < kConvAxes; ++axis) {
    phase.filter_shape.extents[axis] = phases[axis].taps;
    phase.out_shape.extents[axis] = phases[axis].outputs;
    phase.dilation[axis] = phases[axis].dilation;
    product.padding[axis] = phases[axis].padding;
    phase.padding[axis] = static_cast<uint64_t>(std::max<int64_t>(product.padding[axis], 0));
    phase.padding_end[axis] = 0;
  }
  if (is_empty(phases)) {  // a sum over no channels
    phase.in_shape.outer[1] = 0;
    phase.filter_shape.extents = {1, 1, 1};
  }
  return product;
}

// The same, for outputs that are a stride apart.
Product spaced_product_of(const ConvArgs& args, const Phases& phases) {
  Product product = product_of(args, phases);
  product.spaced = true;
  product.out_image = args.out_shape.pixels();
  product.out_row = args.out()[2];
  product.out_step = {args.stride[1], args.stride[2]};
  product.out_first =
      (phases[1].first * product.out_row + phases[2].first) * (args.channels_last() ? args.filters() : 1);
  return product;
}

template <typename Body>
void for_each_phase(const ConvArgs& args, const Body& body) {
  for (uint64_t z = 0; z < phase_count(args, 0); ++z) {
    for (uint64_t y = 0; y < phase_count(args, 1); ++y) {
      for (uint64_t x = 0; x < phase_count(args, 2); ++x) {
        body(Phases{phase_of(args, 0, z), phase_of(args, 1, y), phase_of(args, 2, x)});
      }
    }
  }
}

// The convolution of a phase as a caller would describe it; nothing if its windows begin or end within the input, some
// of which they do not read.
std::optional<ConvArgs> convolution_of(const Product& product) {
  ConvArgs conv = product.args;
  if (taps_of(conv) == 0) return std::nullopt;
  for (uint32_t axis = 0; axis < kConvAxes; ++axis) {
    if (product.padding[axis] < 0) return std::nullopt;
    const uint64_t reach = conv.out()[axis] + conv.dilation[axis] * (conv.taps()[axis] - 1);
    const uint64_t before = conv.in()[axis] + conv.padding[axis];
    if (reach < before) return std::nullopt;
    conv.padding_end[axis] = reach - before;
  }
  return conv;
}

// The only phase with taps, if there is but one of several and nothing is added to the sums: the outputs of the others
// are zeros, which are not stored.
std::optional<Phases> only_phase(const ConvArgs& args) {
  if (args.bias != nullptr || args.residual != nullptr || args.activation != TUFF_ACTIVATION_NONE) return std::nullopt;
  if (phases_of(args) == 1) return std::nullopt;
  Phases only{};
  for (uint32_t axis = 0; axis < kConvAxes; ++axis) {
    uint64_t found = 0;
    for (uint64_t first = 0; first < phase_count(args, axis) && found < 2; ++first) {
      const Phase phase = phase_of(args, axis, first);
      if (phase.taps == 0) continue;
      only[axis] = phase;
      ++found;
    }
    if (found != 1) return std::nullopt;
  }
  return only;
}

// Copies the outputs of all phases, as they lie in scratch memory, with room for so many images, to where they belong.
void record_interleave(Recorder& recorder, const ConvArgs& args, const Buffer& phases, uint64_t images) {
  const DeviceTraits& traits = recorder.traits();
  const StreamDevice device = stream_device(traits, {}, sizeof(float));
  const uint64_t elements = args.out_shape.elements(), bytes = dtype_size(args.dtype);
  const auto number = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const bool last = args.channels_last();
  constexpr uint64_t kPieceBytes = 16;
  const bool pieces = last && args.filters() * bytes % kPieceBytes == 0 && args.output->offset % kPieceBytes == 0;
  const uint64_t unit = pieces ? kPieceBytes / bytes : 1;  // elements that are moved as one
  const std::optional<Phases> only = only_phase(args);
  const uint64_t pixel = images * args.filters();
  const uint64_t before = only ? output_place(args, *only) * pixel : 0;
  const uint64_t stored =
      only ? (*only)[0].outputs * (*only)[1].outputs * (*only)[2].outputs * pixel : images * (elements / args.batch());
  const shaders::ConvInterleave::Push push{.items = number(elements / unit),
                                           .images = number(last ? images : images * args.filters()),
                                           .each = number(last ? args.filters() / unit : 1),
                                           .D = number(args.out()[0]),
                                           .H = number(args.out()[1]),
                                           .W = number(args.out()[2]),
                                           .step_z = number(phase_count(args, 0)),
                                           .step_y = number(phase_count(args, 1)),
                                           .step_x = number(phase_count(args, 2)),
                                           .only_z = only ? number((*only)[0].first) : ~0u,
                                           .only_y = only ? number((*only)[1].first) : ~0u,
                                           .only_x = only ? number((*only)[2].first) : ~0u,
                                           .skip = number(before / unit)};
  KernelRequest kernel = shaders::ConvInterleave::request({.bytes = bytes * unit});
  kernel.streaming().constant(0, device.workgroup);
  Dispatch dispatch("conv interleave");
  dispatch.operand(&phases, before * bytes, stored * bytes, Access::read)
      .operand(args.output, 0, elements * bytes, Access::write)
      .push(push)
      .groups_linear(ceil_div(elements / unit, device.workgroup), traits)
      .work(2.0 * static_cast<double>(elements * bytes), 0);
  recorder.dispatch(kernel, dispatch);
}

// With a window of one pixel, the only phase that has a tap is a product with the filter as it is stored, unless some
// outputs or inputs have no part in it.
std::optional<GemmArgs> as_gemm(const ConvArgs& args, const Product& product) {
  const ConvArgs& phase = product.args;
  if (args.filter_shape.pixels() != 1 || args.groups != 1 || taps_of(phase) == 0) return std::nullopt;
  if (product.padding != std::array<int64_t, kConvAxes>{} || phase.in() != phase.out()) return std::nullopt;
  const bool last = args.channels_last();
  const uint64_t pixels = phase.out_shape.pixels(), batch = phase.batch();
  GemmArgs gemm{};
  gemm.a_type = gemm.b_type = gemm.c_type = args.dtype;
  gemm.accumulate = TUFF_F32;
  gemm.alpha = 1;
  gemm.c = phase.output;
  gemm.k = args.channels();
  gemm.m = last ? batch * pixels : args.filters();
  gemm.n = gemm.ldc = last ? args.filters() : pixels;
  if (last) {  // output [pixels][filters] = input [pixels][channels] * filter [channels][filters]
    gemm.a = phase.input;
    gemm.b = args.filter;
    gemm.lda = gemm.k;
    gemm.ldb = gemm.n;
  } else {  // output [filters][pixels] = filter transposed * input [channels][pixels], for each image
    gemm.a = args.filter;
    gemm.b = phase.input;
    gemm.ta = TUFF_TRANS;
    gemm.lda = gemm.m;
    gemm.ldb = gemm.n;
    gemm.batch_count = batch;
    gemm.stride_b = gemm.k * gemm.n;
    gemm.stride_c = gemm.m * gemm.n;
  }
  return gemm;
}

// Whether phases are computed so where they can be. CPU devices gather an input once, whatever the filters, which only
// GEMM with packed operands is faster than.
bool suits_gemm(const DeviceTraits& traits, const ConvArgs& args) {
  if (forced_variant<"TUFF_CONV_VARIANT">().has_value()) return false;
  const uint64_t pixels = args.in_shape.pixels() * (args.channels_last() ? args.batch() : 1);
  return !traits.cpu || (args.dtype == TUFF_F32 && packs_products(traits, args.filters(), pixels, args.channels()));
}

// A phase's filter where the caller has it.
StoredFilter stored_filter(const ConvArgs& args, const Phases& phases) {
  const uint64_t filters = args.filters(), width = args.taps()[2];
  const uint64_t first = (phases[1].tap * width + phases[2].tap) * filters;
  return {.buffer = moved(args.filter, first, args.dtype),
          .elements = args.filter_shape.elements() - first,
          .channel = args.filter_shape.pixels() * filters,
          .step = tap_step(args, 2) * filters,
          .row = tap_step(args, 1) * width * filters};
}

// The filter of a call, which is put into the phases' order when a phase first needs it so.
class OrderedFilter {
 public:
  OrderedFilter(Recorder& recorder, const ConvArgs& args, const Buffer& memory)
      : recorder_(recorder), args_(args), memory_(memory), plain_(suits_gemm(recorder.traits(), args)) {
    const std::optional<std::string>& forced = forced_variant<"TUFF_CONV_VARIANT">();
    stored_ = args.channels_last() && args.groups == 1 && (!forced || *forced == "matrices");
  }
  bool plain() const { return plain_; }    // products with it as the caller stores it
  bool stored() const { return stored_; }  // convolutions, likewise
  Buffer of(const Phases& phases) {
    if (!ordered_) record_filter(recorder_, args_, memory_);
    ordered_ = true;
    return moved(&memory_, filter_place(args_, phases) * args_.filters() * args_.group_channels(), args_.dtype);
  }

 private:
  Recorder& recorder_;
  const ConvArgs& args_;
  const Buffer& memory_;
  bool plain_, stored_ = false, ordered_ = false;
};

void record_phase(Recorder& recorder, const ConvArgs& args, const Phases& phases, Product& product,
                  OrderedFilter& filter) {
  if (const std::optional<GemmArgs> gemm = as_gemm(args, product); gemm && filter.plain()) {
    return record_gemm(recorder, *gemm);
  }
  const std::optional<ConvArgs> conv = convolution_of(product);
  if (conv && filter.stored() && record_stored_filter(recorder, *conv, stored_filter(args, phases))) return;
  const Buffer own = is_empty(phases) ? Buffer{} : filter.of(phases);
  product.args.filter = &own;
  if (!conv) return record_products(recorder, product);
  ConvArgs ordered = *conv;
  ordered.filter = &own;
  record_conv(recorder, ordered);
}

// Records the phases of some images. Scratch memory has room for `images` of each phase, which the last piece of a
// batch may have fewer of.
void record_images(Recorder& recorder, const ConvArgs& args, OrderedFilter& filter, const Buffer* phases,
                   uint64_t images) {
  const bool only = phases != nullptr && only_phase(args).has_value();
  for_each_phase(args, [&](const Phases& phase) {
    if (only && is_empty(phase)) return;
    Product product = product_of(args, phase);
    Buffer output;
    if (phases != nullptr) {
      output = moved(phases, output_place(args, phase) * images * args.filters(), args.dtype);
      product.args.output = &output;
    }
    record_phase(recorder, args, phase, product, filter);
  });
  if (phases != nullptr) record_interleave(recorder, args, *phases, images);
}

constexpr uint64_t kMaxPhaseElements = uint64_t{1} << 27;  // of images in scratch memory at a time
// Elements of one image: the kernel divides numbers below 2^31.
constexpr uint64_t kMaxPhaseImage = uint64_t{1} << 30;

}  // namespace

void record_transposed(Recorder& recorder, const ConvArgs& args, uint64_t max_sums) {
  const bool empty = args.in_shape.elements() == 0;
  const uint64_t size = dtype_size(args.dtype), elements = empty ? 0 : args.filter_shape.elements();
  check_filter(elements);
  uint64_t slices = 1, max_taps = 0;
  for_each_phase(args, [&](const Phases& phases) {
    Product product = spaced_product_of(args, phases);
    check_phase(product);
    slice_taps(product, recorder.traits());
    slices = std::max(slices, product.slices);
    max_taps = std::max(max_taps, taps_of(product.args));
  });
  log(TUFF_LOG_DISPATCH, "conv transpose: {} x {} phases", phase_count(args, 1), phase_count(args, 2));
  // Scratch memory: the filter in the phases' order, then the sums of the split-K parts.
  const uint64_t filter_bytes = ceil_div(elements * size, 256) * 256;
  const uint64_t stored = stored_slices(slices, args.out_shape.elements(), max_sums);
  const uint64_t sum_bytes = slices == 1 ? 0 : stored * args.out_shape.elements() * sizeof(float);
  Buffer filter, partials;
  if (filter_bytes + sum_bytes != 0) {
    filter = partials = recorder.scratch(filter_bytes + sum_bytes);
    partials.offset += filter_bytes;
    partials.bytes -= filter_bytes;
  }
  if (!empty) record_filter(recorder, args, filter);
  for_each_phase(args, [&](const Phases& phases) {
    Product product = spaced_product_of(args, phases);
    const Buffer own = moved(&filter, filter_place(args, phases) * args.filters() * args.group_channels(), args.dtype);
    product.args.filter = &own;
    if (slices == 1) return record_product(recorder, product);
    product.partials = &partials;
    product.slice_taps = ceil_div(ceil_div(max_taps, slices), 16) * 16;
    for (product.first_slice = 0; product.first_slice < slices; product.first_slice += stored) {
      if (product.first_slice != 0 && product.first_slice * product.slice_taps >= taps_of(product.args)) break;
      product.slices = std::min(stored, slices - product.first_slice);
      record_product(recorder, product);
    }
  });
  if (slices > 1) record_slices(recorder, args, partials, stored);
}

bool runs_dense_phases(const ConvArgs& args) {
  return phases_of(args) == 1 || args.out_shape.elements() / args.batch() < kMaxPhaseImage;
}

bool suits_dense_phases(const DeviceTraits& traits, const ConvArgs& args) {
  if (!args.flat() || phases_of(args) == 1) return true;
  if (!runs_dense_phases(args)) return false;
  bool suits = false;
  for_each_phase(args, [&](const Phases& phases) {
    const Product product = product_of(args, phases);
    if (const std::optional<ConvArgs> conv = convolution_of(product); conv && !suits) {
      suits = is_depthwise(*conv) || suits_patches(traits, *conv) || suits_matrices(traits, *conv);
    }
  });
  return suits;
}

void record_dense_phases(Recorder& recorder, const ConvArgs& args) {
  const uint64_t size = dtype_size(args.dtype), elements = args.filter_shape.elements(), batch = args.batch();
  check_filter(elements);
  check_positions(args);
  const uint64_t image = args.out_shape.elements() / batch, phases = phases_of(args);
  if (!runs_dense_phases(args)) {
    fail(TUFF_ERROR_UNSUPPORTED, "an image has {} elements, with strides at most 2^30 - 1 are computed", image);
  }
  const uint64_t most = phases == 1 ? batch : std::clamp<uint64_t>(kMaxPhaseElements / image, 1, batch);
  // Images at a time, so that none of the phases' kernels has too many columns.
  const uint64_t pixels = std::max(args.out_shape.pixels() * args.filters(), args.in_shape.pixels());
  if (args.out_shape.pixels() >= kMaxColumns) {
    fail(TUFF_ERROR_UNSUPPORTED, "in_shape has {} pixels, must be below {}", args.out_shape.pixels(), kMaxColumns);
  }
  const uint64_t at_once = std::clamp<uint64_t>((kMaxColumns - 1) / std::max<uint64_t>(pixels, 1), 1, most);
  for_each_phase(args, [&](const Phases& phase) {
    Product product = product_of(args, phase);
    product.args.in_shape.outer[0] = product.args.out_shape.outer[0] = at_once;
    check_dense_phase(product);
    slice_taps(product, recorder.traits());
  });
  log(TUFF_LOG_DISPATCH, "conv transpose: {} phases, {} images at a time", phases, at_once);
  const uint64_t filter_bytes = ceil_div(elements * size, 256) * 256;
  Buffer filter = recorder.scratch(filter_bytes + (phases == 1 ? 0 : at_once * image * size), Scratch::outermost);
  Buffer outputs = filter;
  outputs.offset += filter_bytes;
  outputs.bytes -= filter_bytes;
  OrderedFilter ordered(recorder, args, filter);
  for (uint64_t first = 0; first < batch; first += at_once) {
    ConvArgs piece = args;
    piece.in_shape.outer[0] = piece.out_shape.outer[0] = std::min(at_once, batch - first);
    const Buffer input = moved(args.input, first * (args.in_shape.elements() / batch), args.dtype);
    const Buffer output = moved(args.output, first * image, args.dtype);
    piece.input = &input;
    piece.output = &output;
    record_images(recorder, piece, ordered, phases == 1 ? nullptr : &outputs, at_once);
  }
}

}  // namespace tuff::conv
