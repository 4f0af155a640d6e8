#include "kernels/softmax/cross_entropy.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "kernels/common/check.hpp"
#include "kernels/common/describe.hpp"
#include "kernels/common/elements.hpp"
#include "kernels/softmax/softmax.hpp"

namespace tuff {

void check_cross_entropy(const CrossEntropyArgs& args) {
  check_type(args.dtype, softmax::kTypes, "cross_entropy");
  check_known_type(args.label_type, "label_type");
  if (constexpr ElementTypes kLabels = {TUFF_I32, TUFF_I64, TUFF_U32, TUFF_U64}; !kLabels.has(args.label_type)) {
    fail(TUFF_ERROR_UNSUPPORTED, "label_type is {}, needs {}", dtype_name(args.label_type), names_of(kLabels));
  }
  require_flag(args.ignores, "ignores");
  require(args.ignores != 0 || args.ignore_index == 0, "ignore_index is {}, and ignores is 0", args.ignore_index);
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  const uint64_t rows = checked_mul(view.outer, view.inner, "shape");
  const uint64_t elements = checked_mul(rows, view.axis, "shape");
  require(args.label_smoothing >= 0 && args.label_smoothing <= 1, "label_smoothing is {}, needs 0 to 1",
          args.label_smoothing);
  require(std::isfinite(static_cast<float>(args.gradient_scale)), "gradient_scale is {}, needs to be finite in f32",
          args.gradient_scale);
  require(args.loss != nullptr || args.gradient != nullptr || elements == 0,
          "loss and gradient are TUFF_NULL_HANDLE, needs one of them");
  if (args.gradient == nullptr && elements != 0) {
    require(args.gradient_factor == nullptr, "gradient_factor is given, and gradient is TUFF_NULL_HANDLE");
    require(args.loss_gradient == nullptr, "loss_gradient is given, and gradient is TUFF_NULL_HANDLE");
    require(args.gradient_scale == 1, "gradient_scale is {}, and gradient is TUFF_NULL_HANDLE", args.gradient_scale);
  }
  require(view.axis != 0 || rows == 0, "shape[{}] is 0: rows have no classes", args.axis);
  if (elements == 0) return;
  const auto detail = [&] { return fmt::format("outer={} classes={} inner={}", view.outer, view.axis, view.inner); };
  const uint64_t bytes = checked_mul(elements, dtype_size(args.dtype), "shape"),
                 label_bytes = checked_mul(rows, dtype_size(args.label_type), "shape"),
                 loss_bytes = checked_mul(rows, sizeof(float), "shape");
  check_operand(args.logits, "logits", elements, args.dtype, detail);
  check_operand(args.labels, "labels", rows, args.label_type, detail);
  if (args.loss != nullptr) {
    check_operand(args.loss, "loss", rows, TUFF_F32, detail);
    check_overlap(args.loss, "loss", loss_bytes, args.logits, "logits", bytes, false);
    check_overlap(args.loss, "loss", loss_bytes, args.labels, "labels", label_bytes, false);
  }
  if (args.gradient == nullptr) return;
  check_operand(args.gradient, "gradient", elements, args.dtype, detail);
  check_overlap(args.gradient, "gradient", bytes, args.logits, "logits", bytes, true);
  check_overlap(args.gradient, "gradient", bytes, args.labels, "labels", label_bytes, false);
  if (args.loss != nullptr) check_overlap(args.gradient, "gradient", bytes, args.loss, "loss", loss_bytes, false);
  // What a row's gradient reads may not be another row's loss, either.
  const auto reads = [&](const Buffer* buffer, const char* name, uint64_t count) {
    if (buffer == nullptr) return;
    check_operand(buffer, name, count, TUFF_F32, detail);
    check_overlap(args.gradient, "gradient", bytes, buffer, name, count * sizeof(float), false);
    if (args.loss != nullptr) {
      check_overlap(args.loss, "loss", loss_bytes, buffer, name, count * sizeof(float), false);
    }
  };
  reads(args.gradient_factor, "gradient_factor", 1);
  reads(args.loss_gradient, "loss_gradient", rows);
}

namespace {

// The class of a row; none if it is out of range or ignored.
struct Label {
  uint64_t place = 0;
  bool ignored = false, valid = false;
};

Label label_of(const CrossEntropyArgs& args, uint64_t row, uint64_t classes) {
  Label label;
  const auto read = [&](auto value) {
    // Compared as mathematical numbers.
    const bool negative = value < 0;
    const auto magnitude = static_cast<uint64_t>(value);
    label.ignored = args.ignores != 0 && negative == (args.ignore_index < 0) &&
                    magnitude == static_cast<uint64_t>(args.ignore_index);
    label.valid = !negative && magnitude < classes;
    label.place = label.valid ? magnitude : 0;
  };
  switch (args.label_type) {
    case TUFF_I32: read(int64_t{args.labels->host<int32_t>()[row]}); break;
    case TUFF_U32: read(uint64_t{args.labels->host<uint32_t>()[row]}); break;
    case TUFF_I64: read(args.labels->host<int64_t>()[row]); break;
    default: read(args.labels->host<uint64_t>()[row]); break;
  }
  return label;
}

}  // namespace

void host_cross_entropy(const CrossEntropyArgs& args) {
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  const uint64_t classes = view.axis;
  const double smoothing = static_cast<float>(args.label_smoothing), n = static_cast<double>(classes);
  with_float_type(args.dtype, [&]<typename T>(T) {
    for (uint64_t row = 0; row < view.outer * view.inner; ++row) {
      const uint64_t first = row / view.inner * classes * view.inner + row % view.inner;
      const T* x = args.logits->host<T>() + first;
      const auto at = [&](uint64_t j) { return double{x[j * view.inner]}; };
      const Label label = label_of(args, row, classes);
      double maximum = -std::numeric_limits<double>::infinity(), sum = 0, above = 0;
      for (uint64_t j = 0; j < classes; ++j) maximum = std::fmax(maximum, at(j));
      for (uint64_t j = 0; j < classes; ++j) {
        sum += std::exp(at(j) - maximum);
        above += at(j) - maximum;
      }
      const double nan = std::numeric_limits<double>::quiet_NaN();
      double loss = std::log(sum) - (1 - smoothing) * (at(label.place) - maximum);
      if (smoothing != 0) loss -= smoothing * (above / n);
      if (smoothing == 1) loss = std::log(sum) - above / n;
      if (!label.valid) loss = nan;
      double factor = args.gradient_scale;
      if (args.gradient_factor != nullptr) factor *= *args.gradient_factor->host<float>();
      if (args.loss_gradient != nullptr) factor *= args.loss_gradient->host<float>()[row];
      if (args.gradient != nullptr) {
        T* const gradient = args.gradient->host<T>() + first;
        for (uint64_t j = 0; j < classes; ++j) {
          const double target = (j == label.place ? 1 - smoothing : 0) + smoothing / n;
          const double slope = label.valid ? std::exp(at(j) - maximum) / sum - target : nan;
          gradient[j * view.inner] = T(label.ignored ? 0 : factor * slope);
        }
      }
      if (args.loss != nullptr) args.loss->host<float>()[row] = label.ignored ? 0 : static_cast<float>(loss);
    }
  });
}

namespace {
CallText describe(const CrossEntropyArgs& args) {
  return {fmt::format("{} {} axis {}{}{}", dtype_name(args.dtype), describe_sizes(args.shape, args.rank), args.axis,
                      args.loss != nullptr ? " loss" : "", args.gradient != nullptr ? " gradient" : ""),
          args.dtype};
}
}  // namespace

namespace operations {
const OperationOf<CrossEntropyArgs> cross_entropy =
    define_operation<CrossEntropyArgs, check_cross_entropy, host_cross_entropy, record_cross_entropy, describe>(
        "cross_entropy", softmax::kTypes);
}  // namespace operations

}  // namespace tuff
