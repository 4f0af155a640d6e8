// Planner of gradient norms: a dispatch of gradient_norm for each part of the list (tensor_list.hpp), and one of
// gradient_norm_end for all. TUFF_OPTIMIZER_VARIANT forces the shapes of a kind of device, for tests.
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/optimizer/optimizer.hpp"
#include "kernels/optimizer/tensor_list.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "shaders/gradient_norm.hpp"
#include "shaders/gradient_norm_end.hpp"

namespace tuff {
namespace {

constexpr uint64_t kSumBytes = 3 * sizeof(float);  // of a workgroup
constexpr double kFlops = 12;                      // rough operations for each element

}  // namespace

void record_gradient_norm(Recorder& recorder, const GradientNormArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  require_storage(traits, args.dtype);
  const uint64_t element = dtype_size(args.dtype);
  const StreamDevice device = stream_device(traits, forced_variant<"TUFF_OPTIMIZER_VARIANT">(), sizeof(float));
  const optimizer::TensorList list(traits, device, args.sizes, 4 * block_parts(args.dtype),
                                   [&](size_t i) { return aligned16(args.gradients[i]); });
  const bool shared = device.workgroup > device.subgroup;
  const uint64_t bytes = list.groups() * kSumBytes;
  const Buffer* const sums = bytes != 0 ? &recorder.scratch(bytes) : nullptr;
  list.for_each_piece([&](const optimizer::Piece& piece) {
    const optimizer::Part& part = piece.part;
    const bool listed = piece.listed();
    KernelRequest kernel = shaders::GradientNorm::request({.exact_arithmetic = traits.cpu,
                                                           .lanes = device.workgroup,
                                                           .list = listed,
                                                           .parts = block_parts(args.dtype),
                                                           .shared = shared,
                                                           .type = args.dtype,
                                                           .vector = vector_mode(traits, part.aligned)});
    kernel.streaming().constant(0, device.workgroup);
    const shaders::GradientNorm::Push push{
        .n = narrow(listed ? part.count : piece.elements), .groups = narrow(piece.groups), .run = narrow(list.run())};
    Dispatch dispatch("gradient_norm");
    optimizer::TensorList::Arrays arrays;
    arrays.add(dispatch, list, piece, args.gradients, element, Access::read);
    list.add_table(dispatch, recorder, part);
    const auto elements = static_cast<double>(list.elements(piece));
    dispatch.operand(sums, piece.first_group * kSumBytes, piece.groups * kSumBytes, Access::write)
        .push(push)
        .groups_linear(piece.groups, traits)
        .work(elements * static_cast<double>(element), elements * kFlops);
    define_each(kernel, dispatch);
    log(TUFF_LOG_DISPATCH, "gradient_norm {}: {} tensors of {} elements, {} workgroups of {} lanes, {} blocks each",
        dtype_name(args.dtype), part.count, list.elements(piece), piece.groups, device.workgroup, list.run());
    recorder.dispatch(kernel, dispatch);
  });
  KernelRequest kernel = shaders::GradientNormEnd::request({.accumulate = args.accumulate,
                                                            .exact_arithmetic = traits.cpu,
                                                            .factor = args.factor != nullptr,
                                                            .factor_in = args.gradient_factor != nullptr,
                                                            .found = args.found != nullptr,
                                                            .lanes = device.workgroup,
                                                            .norm = args.norm != nullptr,
                                                            .shared = shared});
  kernel.streaming().constant(0, device.workgroup);
  const shaders::GradientNormEnd::Push push{.n = narrow(list.groups()),
                                            .scale = static_cast<float>(args.gradient_scale),
                                            .limit = static_cast<float>(args.limit)};
  const Access kept = args.accumulate != 0 ? Access::read_write : Access::write;
  Dispatch dispatch("gradient_norm");
  dispatch.operand(sums, 0, bytes, Access::read);
  optimizer::add_number(dispatch, args.gradient_factor, Access::read);
  optimizer::add_number(dispatch, args.norm, kept);
  optimizer::add_number(dispatch, args.factor, Access::write);
  optimizer::add_number(dispatch, args.found, kept);
  dispatch.push(push).groups(1).work(static_cast<double>(bytes), static_cast<double>(bytes));
  recorder.dispatch(kernel, dispatch);
}

}  // namespace tuff
