// Permute: argument check, and its strided copy.
#include <array>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/shape/shape.hpp"
#include "kernels/shape/strided_copy.hpp"

namespace tuff {
namespace {

uint64_t count_of(const PermuteArgs& args) { return checked_product({args.shape, args.rank}, "shape"); }

StridedCopy copy_of(const PermuteArgs& args) {
  std::array<int64_t, 8> input{}, output{};
  int64_t inner = 1, outer = 1;
  for (uint32_t i = args.rank; i-- > 0;) {
    input[i] = inner;
    inner *= static_cast<int64_t>(args.shape[i]);
    output[i] = outer;
    outer *= static_cast<int64_t>(args.shape[args.order[i]]);
  }
  StridedCopy copy{"permute", dtype_size(args.dtype), args.input, args.output, 0, 0, {}};
  for (uint32_t i = 0; i < args.rank; ++i) {
    copy.axes.append(args.shape[args.order[i]], {input[args.order[i]], output[i]});
  }
  return copy;
}

}  // namespace

void check_permute(const PermuteArgs& args) {
  const uint64_t size = dtype_size(args.dtype);
  require(args.rank >= 1 && args.rank <= 8, "rank is {}, needs 1 to 8", args.rank);
  uint32_t seen = 0;
  for (uint32_t i = 0; i < args.rank; ++i) {
    require(args.order[i] < args.rank, "order[{}] is {}, needs to be below rank {}", i, args.order[i], args.rank);
    require((seen & (1u << args.order[i])) == 0, "order has axis {} twice", args.order[i]);
    seen |= 1u << args.order[i];
  }
  const uint64_t count = count_of(args), bytes = checked_mul(count, size, "shape");
  const auto detail = [&] { return fmt::format("{} elements", count); };
  check_operand(args.input, "input", count, args.dtype, detail);
  check_operand(args.output, "output", count, args.dtype, detail);
  check_overlap(args.output, "output", bytes, args.input, "input", bytes, false);
}

void host_permute(const PermuteArgs& args) {
  if (count_of(args) != 0) host_strided_copy(copy_of(args));
}

void record_permute(Recorder& recorder, const PermuteArgs& args) {
  if (count_of(args) != 0) record_strided_copy(recorder, copy_of(args));
}

}  // namespace tuff
