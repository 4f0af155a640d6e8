// Gather: argument check and reference implementation.
#include <cstring>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/shape/shape.hpp"

namespace tuff {
namespace {

// Index i as a position along the axis; the axis' size or more if it is out of range.
uint64_t index_at(const GatherArgs& args, uint64_t i) {
  constexpr uint64_t kNone = ~uint64_t{0};  // negative: beyond any axis
  if (dtype_size(args.index_type) == 8) {
    const uint64_t index = args.indices->host<uint64_t>()[i];
    return args.index_type == TUFF_I64 && index >> 63 != 0 ? kNone : index;
  }
  const uint32_t index = args.indices->host<uint32_t>()[i];
  return args.index_type == TUFF_I32 && index >> 31 != 0 ? kNone : index;
}

uint64_t results_of(const GatherArgs& args) {
  if (args.index_shape != nullptr) return checked_product({args.index_shape, args.rank}, "index_shape");
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  return checked_mul(checked_mul(view.outer, args.count, "count"), view.inner, "count");
}

}  // namespace

void check_gather(const GatherArgs& args) {
  const uint64_t size = dtype_size(args.dtype);
  check_known_type(args.index_type, "index_type");
  constexpr ElementTypes kIndexTypes = {TUFF_I32, TUFF_U32, TUFF_I64, TUFF_U64};
  if (!kIndexTypes.has(args.index_type)) {
    fail(TUFF_ERROR_UNSUPPORTED, "index_type is {}, needs {}", dtype_name(args.index_type), names_of(kIndexTypes));
  }
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  for (uint32_t i = 0; args.index_shape != nullptr && i < args.rank; ++i) {
    require(i == args.axis || args.index_shape[i] <= args.shape[i], "index_shape[{}] is {}, at most shape[{}]={}", i,
            args.index_shape[i], i, args.shape[i]);
  }
  const uint64_t inputs = checked_product({args.shape, args.rank}, "shape"), results = results_of(args);
  const uint64_t indices = args.index_shape != nullptr ? results : args.count;
  if (results == 0) return;
  const uint64_t bytes = checked_mul(results, size, "output");
  const auto detail = [&] { return fmt::format("{} indices along {} elements", indices, view.axis); };
  check_operand(args.input, "input", inputs, args.dtype, detail);
  check_operand(args.indices, "indices", indices, args.index_type, detail);
  check_operand(args.output, "output", results, args.dtype, detail);
  check_overlap(args.output, "output", bytes, args.input, "input", inputs * size, false);
  check_overlap(args.output, "output", bytes, args.indices, "indices", indices * dtype_size(args.index_type), false);
}

void host_gather(const GatherArgs& args) {
  const uint64_t results = results_of(args), size = dtype_size(args.dtype);
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  for (uint64_t i = 0; i < results; ++i) {
    uint64_t from = 0, index = 0;
    if (args.index_shape == nullptr) {
      index = index_at(args, i / view.inner % args.count);
      from = (i / view.inner / args.count * view.axis + index) * view.inner + i % view.inner;
    } else {
      index = index_at(args, i);
      uint64_t rest = i, stride = 1;
      for (uint32_t d = args.rank; d-- > 0; rest /= args.index_shape[d], stride *= args.shape[d]) {
        from += (d == args.axis ? index : rest % args.index_shape[d]) * stride;
      }
    }
    std::byte* target = args.output->host<std::byte>() + i * size;
    if (index < view.axis) {
      std::memcpy(target, args.input->host<std::byte>() + from * size, size);
    } else {
      std::memset(target, 0, size);
    }
  }
}

}  // namespace tuff
