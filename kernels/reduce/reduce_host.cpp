// One loop for each output, in double precision.
#include <cmath>

#include "kernels/common/check.hpp"
#include "kernels/common/elements.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/reduce/reduce_ops.hpp"

namespace tuff {

void host_reduce(const ReduceArgs& args) {
  const reduce::Op& op = *reduce::find(args.op);
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  if (view.outer == 0 || view.inner == 0) return;
  with_float_type(args.dtype, [&]<typename T>(T) {
    const T* input = view.axis > 0 ? args.input->host<T>() : nullptr;
    T* output = args.output->host<T>();
    for (uint64_t o = 0; o < view.outer; ++o) {
      for (uint64_t i = 0; i < view.inner; ++i) {
        double value = op.identity;
        if (reduce::names_a_place(args.op)) {
          uint64_t place = 0;
          value = input[o * view.axis * view.inner + i];
          for (uint64_t r = 1; r < view.axis; ++r) {
            const double x = input[(o * view.axis + r) * view.inner + i];
            // The value so far stays where it is as good.
            if (std::isnan(value) || (!std::isnan(x) && op.combine(value, x) == value)) continue;
            value = x, place = r;
          }
          args.output->host<uint32_t>()[o * view.inner + i] = static_cast<uint32_t>(place);
          continue;
        }
        for (uint64_t r = 0; r < view.axis; ++r) {
          value = op.combine(value, input[(o * view.axis + r) * view.inner + i]);
        }
        if (op.mean) value /= static_cast<double>(view.axis);
        output[o * view.inner + i] = T(value);
      }
    }
  });
}

}  // namespace tuff
