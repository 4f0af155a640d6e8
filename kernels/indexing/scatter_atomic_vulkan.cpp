// Scatter of 32-bit integers by atomics, which add, or keep the larger or smaller one, in any order with the same
// result.
#include <algorithm>
#include <string>

#include "kernels/common/scratch_parts.hpp"
#include "kernels/indexing/scatter_plan.hpp"
#include "planning/log.hpp"
#include "shaders/scatter_atomic.hpp"

namespace tuff {
namespace {

constexpr uint64_t kMostColumnsCpu = 8;     // on a CPU, longer rows are combined without atomics
constexpr uint64_t kMostOfTableCpu = 4096;  // updates that a lane takes, if a workgroup has a table
constexpr uint64_t kGroupsPerCore = 8;      // of workgroups with tables, on a GPU
constexpr uint64_t kUpdatesPerPlace = 4;    // a table is worth it where a workgroup has as many updates

// Updates that a lane of a workgroup with a table takes; 0: no table is worth it.
uint64_t run_of_table(const ScatterTask& task, const ScatterBatch& batch, const ScatterRows& part) {
  const DeviceTraits& traits = task.recorder.traits();
  const auto most = static_cast<uint64_t>(shaders::ScatterAtomic::places({}));
  if (!part.single() || batch.places > most || traits.shared_bytes < 4 * most) return 0;
  const StreamDevice& device = task.device;
  const uint64_t n = part.units();
  const uint64_t run = device.cpu
                           ? device.items_each(n, kMostOfTableCpu)
                           : few_values(ceil_div(n, device.workgroup * kGroupsPerCore * device.cores), 1, 1u << 16);
  return run * device.workgroup >= kUpdatesPerPlace * batch.places ? run : 0;
}

void record_part(const ScatterTask& task, const ScatterBatch& batch, const Buffer& keys, const ScatterRows& part) {
  const DeviceTraits& traits = task.recorder.traits();
  const StreamDevice& device = task.device;
  const uint64_t n = part.units(), of_table = run_of_table(task, batch, part);
  const bool table = of_table != 0;
  const uint64_t run = table ? of_table : device.cpu ? device.items_each(n, 128) : 4;
  const bool joins = !table && !device.cpu && part.single() && traits.subgroup_arithmetic && traits.subgroup_ballot;
  KernelRequest kernel = shaders::ScatterAtomic::request({.join = joins,
                                                          .op = task.args.op,
                                                          .run = table ? 0 : device.fixed_run(run),
                                                          .sign = task.args.dtype == TUFF_I32,
                                                          .single = part.single(),
                                                          .table = table});
  kernel.streaming().wide(part.wide()).constant(0, device.workgroup);
  Dispatch dispatch("scatter");
  dispatch.operand(task.args.updates, part.from * 4, part.from_span * 4, Access::read)
      .operand(&keys, part.row * 4, part.rows * 4, Access::read)
      .operand(nullptr, 0, 0, Access::read)
      .operand(task.args.output, part.to * 4, part.to_span * 4, Access::read_write)
      .push(part.push(batch.none(), run))
      .groups_linear(ceil_div(n, device.workgroup * run), traits)
      .work(static_cast<double>(8 * n), static_cast<double>(n));
  log(TUFF_LOG_DISPATCH, "scatter n={}: atomics{}, rows of {}, {} lanes, {} each", n, table ? " in tables" : "",
      part.inner, device.workgroup, run);
  task.recorder.dispatch(kernel, dispatch);
}

}  // namespace

bool combines_by_atomics(const ScatterTask& task) {
  const ScatterArgs& args = task.args;
  const bool integers = args.dtype == TUFF_I32 || args.dtype == TUFF_U32;
  const bool ordered = args.op == TUFF_SCATTER_SET || args.op == TUFF_SCATTER_MUL;
  return integers && !ordered && (!task.device.cpu || task.view.outer * task.view.inner <= kMostColumnsCpu);
}

void record_atomics(const ScatterTask& task, const ScatterBatch& batch) {
  const Buffer keys = task.recorder.scratch(batch.n * 4, Scratch::outer);
  record_places(task.recorder, "scatter", task.args.index,
                {batch.first, batch.n, batch.window, batch.none(), &keys, 4, nullptr});
  for_each_part(task, batch, task.view.inner, [&](const ScatterRows& part) { record_part(task, batch, keys, part); });
}

}  // namespace tuff
