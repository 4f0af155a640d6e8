// Gather: argument check and reference implementation.
#include <cstring>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/shape/shape.hpp"

namespace tuff {
namespace {

uint64_t results_of(const IndexView& view) {
  return checked_mul(checked_mul(view.outer, view.count, "count"), view.inner, "count");
}

}  // namespace

void check_gather(const GatherArgs& args) {
  const uint64_t size = dtype_size(args.dtype);
  const IndexView view = check_indices(args.index());
  const uint64_t inputs = checked_product({args.shape, args.rank}, "shape"), results = results_of(view);
  const uint64_t indices = checked_mul(view.count, args.index().numbers(), "count");
  if (results == 0) return;
  const uint64_t bytes = checked_mul(results, size, "output");
  const auto detail = [&] { return fmt::format("{} indices along {} elements", view.count, args.shape[args.axis]); };
  check_operand(args.input, "input", inputs, args.dtype, detail);
  check_operand(args.indices, "indices", indices, args.index_type, detail);
  check_operand(args.output, "output", results, args.dtype, detail);
  check_overlap(args.output, "output", bytes, args.input, "input", inputs * size, false);
  check_overlap(args.output, "output", bytes, args.indices, "indices", indices * dtype_size(args.index_type), false);
}

void host_gather(const GatherArgs& args) {
  const IndexArgs index = args.index();
  const IndexView view = view_indices(index);
  const uint64_t results = results_of(view), size = dtype_size(args.dtype);
  for (uint64_t i = 0; i < results; ++i) {
    const uint64_t place = place_named(index, i / view.inner % view.count);
    const uint64_t from = (i / view.inner / view.count * view.places + place) * view.inner + i % view.inner;
    std::byte* target = args.output->host<std::byte>() + i * size;
    if (place < view.places) {
      std::memcpy(target, args.input->host<std::byte>() + from * size, size);
    } else {
      std::memset(target, 0, size);
    }
  }
}

}  // namespace tuff
