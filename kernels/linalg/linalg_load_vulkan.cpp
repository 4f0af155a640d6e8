// Matrices in scratch memory, scaled, for the planners of eigenvalues and singular values.
#include <algorithm>

#include "kernels/common/loop_limit.hpp"
#include "kernels/linalg/linalg_spectrum.hpp"
#include "shaders/linalg_load.hpp"

namespace tuff::linalg {

void integer_operand(const Batch& batch, Dispatch& dispatch, const View& view, uint64_t each, Access access) {
  dispatch.operand(view.buffer, view.first * batch.size(), batch.count * each * sizeof(int32_t), access);
}

void number_operand(const Batch& batch, Dispatch& dispatch, const View& view, uint64_t each, Access access) {
  dispatch.operand(view.buffer, view.first * batch.size(), batch.count * each * batch.size(), access);
}

uint32_t lanes_for(const Batch& batch, uint64_t extent) {
  const uint32_t most = batch.most_threads();
  uint32_t lanes = batch.threads(extent, most);
  while (extent / lanes > kMaxLoopIterationsCpu / 2 && lanes < most) lanes *= 2;
  return lanes;
}

uint64_t state_words() { return static_cast<uint64_t>(shaders::LinalgLoad::state_words({})); }

ScaledMemory take_scaled(Layout& layout, uint64_t rows) {
  return {layout.take(1, rows), layout.take(1, 1), layout.take(1, state_words())};
}

void record_scaled(const Batch& batch, const View& from, const View& to, uint64_t rows, uint64_t columns, int triangles,
                   const ScaledMemory& memory) {
  const bool wide = needs_wide(std::max(batch.span(from, rows, columns), batch.span(to, rows, columns)));
  for (int stage = 0; stage < 4; ++stage) {
    const bool by_row = stage % 2 == 0;
    const uint32_t lanes = lanes_for(batch, by_row ? columns : rows);
    KernelRequest kernel = shaders::LinalgLoad::request({.exact_arithmetic = batch.recorder.traits().cpu,
                                                         .lanes = lanes,
                                                         .shared = batch.shares(lanes),
                                                         .stage = stage,
                                                         .triangles = triangles,
                                                         .type = batch.dtype});
    kernel.constant(0, lanes).wide(wide);
    Dispatch dispatch(batch.name);
    const auto none = [&] { dispatch.operand(nullptr, 0, 0, Access::read); };
    by_row ? batch.operand(dispatch, from, rows, columns, Access::read) : none();
    stage == 2 ? batch.operand(dispatch, to, rows, columns, Access::write) : none();
    number_operand(batch, dispatch, memory.row_values, rows, by_row ? Access::write : Access::read);
    stage != 0
        ? integer_operand(batch, dispatch, memory.state, state_words(), stage == 2 ? Access::read : Access::write)
        : none();
    stage == 3 ? number_operand(batch, dispatch, memory.norm, 1, Access::write) : none();
    with_index(wide, [&](auto index) {
      using Index = decltype(index);
      dispatch.push(shaders::LinalgLoad::Push<Index>{.a_row = static_cast<Index>(from.row_stride()),
                                                     .a_column = static_cast<Index>(from.column_stride()),
                                                     .a_stride = static_cast<Index>(from.stride),
                                                     .x_row = static_cast<Index>(to.row_stride()),
                                                     .x_column = static_cast<Index>(to.column_stride()),
                                                     .x_stride = static_cast<Index>(to.stride),
                                                     .rows = static_cast<uint32_t>(rows),
                                                     .columns = static_cast<uint32_t>(columns),
                                                     .matrices = static_cast<uint32_t>(batch.count)});
    });
    const uint64_t elements = rows * (by_row ? columns : 1);
    batch.record(kernel, dispatch, by_row ? rows : 1, stage < 2 ? elements : 2 * elements, elements);
  }
}

}  // namespace tuff::linalg
