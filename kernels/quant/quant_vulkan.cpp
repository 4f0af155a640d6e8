// Planner of quantize and dequantize: a lane has items of eight elements, one or, on CPU devices, a run of them.
//
// TUFF_QUANT_VARIANT=gpu or cpu in the environment forces the shapes of that kind of device, for tests.
#include <algorithm>

#include "kernels/common/check.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/quant/quant.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/dequantize.hpp"
#include "shaders/dequantize_blocks.hpp"
#include "shaders/quantize.hpp"

namespace tuff {
namespace {

using quant::Format;
using quant::Places;

// Pieces are whole items, and whole blocks of ggml's formats.
constexpr uint64_t kUnit = 256;

uint64_t piece_of(const StreamDevice& device) { return std::max(device.piece / kUnit, uint64_t{1}) * kUnit; }

// Whether eight neighbours from a multiple of eight on always have one scale.
bool shared_by_eight(const Places& places) {
  if (places.granularity == TUFF_QUANT_PER_TENSOR) return true;
  if (places.granularity == TUFF_QUANT_PER_AXIS) return places.inner % 8 == 0;
  return places.inner == 1 && places.axis % 8 == 0 && places.block % 8 == 0;
}

// What is the same in quantize's and dequantize's dispatches: the places of elements from `begin` on.
template <typename Push>
struct Piece {
  Push push{};
  uint64_t scale = 0, scales = 1;  // first scale, and how many from it on
  uint64_t zero = 0, zeros = 0;    // bytes
};

template <typename Push>
Piece<Push> piece_at(const Places& places, const Format& format, uint64_t begin, uint64_t count, uint64_t run) {
  Piece<Push> piece;
  piece.push.n = static_cast<uint32_t>(count);
  piece.push.run = static_cast<uint32_t>(run);
  if (places.granularity != TUFF_QUANT_PER_TENSOR) {
    const uint64_t row = begin / places.inner, outer = row / places.axis;
    piece.push.axis = static_cast<uint32_t>(places.axis);
    piece.push.inner = static_cast<uint32_t>(places.inner);
    // A block may be longer than the axis.
    piece.push.block = static_cast<uint32_t>(std::min(places.block, places.axis));
    piece.push.blocks = static_cast<uint32_t>(places.blocks);
    piece.push.first_i = static_cast<uint32_t>(begin % places.inner);
    piece.push.first_a = static_cast<uint32_t>(row % places.axis);
    piece.scales = places.scales();
    if (places.granularity == TUFF_QUANT_PER_BLOCK) {
      const uint64_t each = places.blocks * places.inner, last = (begin + count - 1) / places.inner / places.axis;
      piece.scale = outer * each;
      piece.scales = (last - outer + 1) * each;
    }
  }
  const uint64_t zero = piece.scale / format.block, end = piece.scale + piece.scales;
  piece.push.first_zero = static_cast<uint32_t>(piece.scale % format.block);
  piece.zero = zero;
  piece.zeros = ceil_div(end, format.block) - zero;
  return piece;
}

template <typename Push>
void add_scales(Dispatch& dispatch, const QuantArgs& args, const Piece<Push>& piece) {
  const uint64_t size = dtype_size(args.scale_type);
  dispatch.operand(args.scales, piece.scale * size, piece.scales * size, Access::read)
      .operand(args.zero_points, args.zero_points != nullptr ? piece.zero : 0, piece.zeros, Access::read);
}

bool aligned_to(const Buffer* buffer, uint64_t bytes) { return buffer->offset % bytes == 0; }

void require_devices(const DeviceTraits& traits, const QuantArgs& args) {
  require_storage(traits, args.dtype);
  if (!quant::format_of(args.format).integers()) return require_storage(traits, TUFF_F16);
  require_storage(traits, args.scale_type);
  require_storage(traits, TUFF_U8);
}

// A dispatch for each piece: body(begin, count, run).
template <typename Body>
void each_piece(const StreamDevice& device, uint64_t elements, const Body& body) {
  const uint64_t most = piece_of(device);
  for (uint64_t begin = 0; begin < elements; begin += most) {
    const uint64_t count = std::min(most, elements - begin);
    body(begin, count, device.cpu ? device.items_each(ceil_div(count, 8), 64) : 1);
  }
}

void record_blocks(Recorder& recorder, const QuantArgs& args, const StreamDevice& device, uint64_t elements) {
  const DeviceTraits& traits = recorder.traits();
  const Format& format = quant::format_of(args.format);
  const uint64_t size = dtype_size(args.dtype);
  each_piece(device, elements, [&](uint64_t begin, uint64_t count, uint64_t run) {
    KernelRequest kernel = shaders::DequantizeBlocks::request({.format = args.format,
                                                               .parts = 2,
                                                               .run = device.fixed_run(run),
                                                               .type = args.dtype,
                                                               .vector = vector_mode(traits, aligned16(args.values))});
    kernel.streaming().constant(0, device.workgroup);
    const uint64_t items = count / 8, bytes = quant::stored_bytes(format, count);
    Dispatch dispatch("dequantize");
    dispatch.operand(args.quantised, quant::stored_bytes(format, begin), bytes, Access::read)
        .operand(args.values, begin * size, count * size, Access::write)
        .push(shaders::DequantizeBlocks::Push{static_cast<uint32_t>(items), static_cast<uint32_t>(run)})
        .groups_linear(ceil_div(items, device.workgroup * run), traits)
        .work(static_cast<double>(bytes + count * size), 4.0 * static_cast<double>(count));
    log(TUFF_LOG_DISPATCH, "dequantize {} to {} n={}: {} lanes, {} times eight each", format.name,
        dtype_name(args.dtype), count, device.workgroup, run);
    recorder.dispatch(kernel, dispatch);
  });
}

}  // namespace

void record_quantize(Recorder& recorder, const QuantArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  require_devices(traits, args);
  const Places places = quant::places_of(args);
  const uint64_t elements = places.elements(), size = dtype_size(args.dtype);
  if (elements == 0) return;
  const Format& format = quant::format_of(args.format);
  const StreamDevice device = stream_device(traits, forced_variant<"TUFF_QUANT_VARIANT">(), sizeof(float));
  const bool aligned = aligned16(args.values) && aligned_to(args.quantised, format.bits());
  each_piece(device, elements, [&](uint64_t begin, uint64_t count, uint64_t run) {
    const auto piece = piece_at<shaders::Quantize::Push>(places, format, begin, count, run);
    KernelRequest kernel = shaders::Quantize::request({.bits = format.bits(),
                                                       .exact_arithmetic = traits.cpu,
                                                       .granularity = args.granularity,
                                                       .negative = format.least < 0,
                                                       .parts = 2,
                                                       .quotient = args.quotient_type,
                                                       .run = device.fixed_run(run),
                                                       .scale = args.scale_type,
                                                       .shared = shared_by_eight(places),
                                                       .type = args.dtype,
                                                       .vector = vector_mode(traits, aligned),
                                                       .zeros = args.zero_points != nullptr});
    kernel.streaming().constant(0, device.workgroup).wide(needs_wide(piece.scales));
    Dispatch dispatch("quantize");
    dispatch.operand(args.values, begin * size, count * size, Access::read);
    add_scales(dispatch, args, piece);
    const uint64_t bytes = quant::stored_bytes(format, count);
    dispatch.operand(args.quantised, begin / format.block, bytes, Access::write)
        .push(piece.push)
        .groups_linear(ceil_div(ceil_div(count, 8), device.workgroup * run), traits)
        .work(static_cast<double>(bytes + count * size), 30.0 * static_cast<double>(count));
    log(TUFF_LOG_DISPATCH, "quantize {} to {} n={}: {} lanes, {} times eight each{}", dtype_name(args.dtype),
        format.name, count, device.workgroup, run, aligned ? "" : ", element by element");
    recorder.dispatch(kernel, dispatch);
  });
}

void record_dequantize(Recorder& recorder, const QuantArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  require_devices(traits, args);
  const Places places = quant::places_of(args);
  const uint64_t elements = places.elements(), size = dtype_size(args.dtype);
  if (elements == 0) return;
  const Format& format = quant::format_of(args.format);
  const StreamDevice device = stream_device(traits, forced_variant<"TUFF_QUANT_VARIANT">(), sizeof(float));
  if (!format.integers()) return record_blocks(recorder, args, device, elements);
  const bool aligned = aligned16(args.values) && aligned_to(args.quantised, format.bits());
  each_piece(device, elements, [&](uint64_t begin, uint64_t count, uint64_t run) {
    const auto piece = piece_at<shaders::Dequantize::Push>(places, format, begin, count, run);
    KernelRequest kernel = shaders::Dequantize::request({.bits = format.bits(),
                                                         .granularity = args.granularity,
                                                         .negative = format.least < 0,
                                                         .parts = 2,
                                                         .run = device.fixed_run(run),
                                                         .scale = args.scale_type,
                                                         .shared = shared_by_eight(places),
                                                         .type = args.dtype,
                                                         .vector = vector_mode(traits, aligned),
                                                         .zeros = args.zero_points != nullptr});
    kernel.streaming().constant(0, device.workgroup).wide(needs_wide(piece.scales));
    const uint64_t bytes = quant::stored_bytes(format, count);
    Dispatch dispatch("dequantize");
    dispatch.operand(args.quantised, begin / format.block, bytes, Access::read);
    add_scales(dispatch, args, piece);
    dispatch.operand(args.values, begin * size, count * size, Access::write)
        .push(piece.push)
        .groups_linear(ceil_div(ceil_div(count, 8), device.workgroup * run), traits)
        .work(static_cast<double>(bytes + count * size), 4.0 * static_cast<double>(count));
    log(TUFF_LOG_DISPATCH, "dequantize {} to {} n={}: {} lanes, {} times eight each{}", format.name,
        dtype_name(args.dtype), count, device.workgroup, run, aligned ? "" : ", element by element");
    recorder.dispatch(kernel, dispatch);
  });
}

}  // namespace tuff
