// Planner of cross-entropy (shared_rows.hpp). TUFF_SOFTMAX_VARIANT forces the shapes of a kind of device, for tests.
#include <limits>
#include <string>

#include "kernels/softmax/cross_entropy.hpp"
#include "kernels/softmax/shared_rows.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/cross_entropy.hpp"

namespace tuff {
namespace {

constexpr double kFlops = 60;  // rough cost per element
constexpr uint64_t kPartialBytes = 16;

// Whether a label of this type can be the ignored one.
bool may_ignore(const CrossEntropyArgs& args) {
  if (args.ignores == 0) return false;
  switch (args.label_type) {
    case TUFF_I32:
      return args.ignore_index >= std::numeric_limits<int32_t>::min() &&
             args.ignore_index <= std::numeric_limits<int32_t>::max();
    case TUFF_U32: return args.ignore_index >= 0 && args.ignore_index <= std::numeric_limits<uint32_t>::max();
    case TUFF_U64: return args.ignore_index >= 0;
    default: return true;
  }
}

void record_pass(Recorder& recorder, const CrossEntropyArgs& args, const softmax::SharedRows& shape, int mode,
                 uint64_t row, uint64_t rows, const Buffer* partials) {
  const DeviceTraits& traits = recorder.traits();
  const uint64_t elements = rows * shape.view.axis, first = row * shape.view.axis;
  const bool slopes = args.gradient != nullptr && mode != 1, losses = args.loss != nullptr && mode != 1;
  const double smoothing = static_cast<float>(args.label_smoothing);
  KernelRequest kernel = shaders::CrossEntropy::request(
      {.exact_arithmetic = traits.cpu,
       .factor = slopes && args.gradient_factor != nullptr,
       .gradient = slopes,
       .ignores = may_ignore(args),
       .label_bytes = dtype_size(args.label_type),
       .lanes = shape.lanes,
       .loss = losses,
       .mode = mode,
       .parts = block_parts(args.dtype),
       .peel = shape.peel,
       .rows_given = slopes && args.loss_gradient != nullptr,
       .shared = shape.lanes > shape.device.subgroup,
       .smoothing = smoothing == 0   ? 0
                    : smoothing == 1 ? 2
                                     : 1,
       .type = args.dtype,
       .unroll = block_parts(args.dtype) == 1 ? 4 : 2,
       .vector = vector_mode(traits, !shape.peel && aligned16(args.logits) && aligned16(args.gradient))});
  kernel.streaming().constant(0, shape.device.workgroup).wide(needs_wide(elements));
  const auto ignored = static_cast<uint64_t>(args.ignore_index);
  const shaders::CrossEntropy::Push push{.rows = static_cast<uint32_t>(rows),
                                         .extent = static_cast<uint32_t>(shape.view.axis),
                                         .inner = static_cast<uint32_t>(shape.view.inner),
                                         .segments = static_cast<uint32_t>(shape.segments.count),
                                         .segment = static_cast<uint32_t>(shape.segments.size),
                                         .scale = static_cast<float>(args.gradient_scale),
                                         .smoothing = static_cast<float>(args.label_smoothing),
                                         .ignored = {low_word(ignored), high_word(ignored)}};
  const uint64_t element = dtype_size(args.dtype), label = dtype_size(args.label_type);
  Dispatch dispatch("cross_entropy");
  const auto add = [&](const Buffer* buffer, bool wanted, uint64_t from, uint64_t count, uint64_t size, Access access) {
    dispatch.operand(wanted ? buffer : nullptr, wanted ? from * size : 0, wanted ? count * size : 0, access);
  };
  add(args.logits, true, first, elements, element, Access::read);
  add(args.labels, true, row, rows, label, Access::read);
  add(args.gradient_factor, slopes && args.gradient_factor != nullptr, 0, 1, 4, Access::read);
  add(args.loss_gradient, slopes && args.loss_gradient != nullptr, row, rows, 4, Access::read);
  add(args.loss, losses, row, rows, 4, Access::write);
  add(args.gradient, slopes, first, elements, element, Access::write);
  add(partials, partials != nullptr, 0, rows * shape.segments.count, kPartialBytes,
      mode == 1 ? Access::write : Access::read);
  dispatch.push(push)
      .groups_linear(shape.groups(rows), traits)
      .work((slopes ? 3.0 : 1.0) * static_cast<double>(elements * element), kFlops * static_cast<double>(elements));
  log(TUFF_LOG_DISPATCH, "cross_entropy {} rows={} classes={} inner={}: pass {}, {} lanes, {} segments of {}",
      dtype_name(args.dtype), rows, shape.view.axis, shape.view.inner, mode, shape.lanes, shape.segments.count,
      shape.segments.size);
  recorder.dispatch(kernel, dispatch);
}

}  // namespace

void record_cross_entropy(Recorder& recorder, const CrossEntropyArgs& args) {
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  require_storage(recorder.traits(), args.dtype);
  if (view.outer == 0 || view.axis == 0 || view.inner == 0) return;
  const softmax::SharedRows shape(recorder.traits(), args.dtype, view);
  const Buffer* const partials = shape.cut() ? &recorder.scratch(shape.most_segments() * kPartialBytes) : nullptr;
  shape.for_each_pass(
      [&](int mode, uint64_t row, uint64_t rows) { record_pass(recorder, args, shape, mode, row, rows, partials); });
}

}  // namespace tuff
