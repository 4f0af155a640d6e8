// Softmax along an axis, in double precision.
#include "backends/cpu/vector_math.hpp"

#include <limits>

#include "backends/cpu/device.hpp"
#include "backends/cpu/exponentials.hpp"

namespace tuff_cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr uint64_t kMaxColumns = 64, kMaxElements = 1 << 16;  // of a strip

// Neighbouring slices of one index before the axis: all have the same elements of the axis in turn, so that memory is
// read along its rows. z is [axis][columns].
template <typename T>
class Strip {
 public:
  Strip(const tuff_softmax_desc& call, const AxisView& view, uint64_t outer, uint64_t first, uint64_t columns,
        double* z)
      : call_(call), view_(view), first_(outer * view.axis * view.inner + first), columns_(columns), z_(z) {
    if (call.mask != 0) mask_first_ = outer / call.mask_repeat % call.mask_rows * view.axis * view.inner + first;
  }

  void compute() {
    load();
    std::fill_n(nothing_, columns_, 0);
    if (call_.mask != 0) apply_mask();
    // z may exceed f32, where it is infinite. A NaN may or may not become the maximum; the sum is NaN either way.
    if (columns_ == 1 && call_.logarithm == 0) return finish_one();
    double largest[kMaxColumns], sums[kMaxColumns] = {};
    std::fill_n(largest, columns_, -kInfinity);
    for_elements([&](double& z, uint64_t j) { largest[j] = z > largest[j] ? z : largest[j]; });
    for_elements([&](double& z, uint64_t j) { z -= largest[j]; });
    if (call_.logarithm != 0) {
      sum_logarithms(sums);
    } else {
      exponentials_of_all(z_, sums);
      for_elements([&](double& z, uint64_t j) { z = nothing_[j] != 0 ? 0 : z / sums[j]; });
    }
    store();
  }

 private:
  // Of a strip with one column, whose elements are neighbours.
  void finish_one() {
    const uint64_t n = view_.axis;
    double largest = -kInfinity, sum = 0;
#pragma omp simd reduction(max : largest)
    for (uint64_t i = 0; i < n; ++i) largest = z_[i] > largest ? z_[i] : largest;
    for (uint64_t i = 0; i < n; i += kExpBlock) sum += exponentials(z_ + i, std::min(kExpBlock, n - i), largest);
    if (nothing_[0] != 0) {
      std::fill_n(z_, n, 0.0);
    } else {
      const double part = 1 / sum;
#pragma omp simd
      for (uint64_t i = 0; i < n; ++i) z_[i] *= part;
    }
    store();
  }

  // For z[i][j], with the column j.
  template <typename Body>
  void for_elements(const Body& body) {
    for (uint64_t i = 0; i < view_.axis; ++i) {
      for (uint64_t j = 0; j < columns_; ++j) body(z_[i * columns_ + j], j);
    }
  }

  void load() {
    constexpr uint64_t kRow = 1024;
    float row[kRow];
    if (columns_ == view_.inner) {  // dense
      const uint64_t n = view_.axis * columns_;
      for (uint64_t i = 0; i < n; i += kRow) {
        const uint64_t count = std::min(kRow, n - i);
        widen(at<const T>(call_.input) + first_ + i, row, count);
        for (uint64_t k = 0; k < count; ++k) z_[i + k] = call_.scale * static_cast<double>(row[k]);
      }
      return;
    }
    for (uint64_t i = 0; i < view_.axis; ++i) {
      widen(at<const T>(call_.input) + first_ + i * view_.inner, row, columns_);
      for (uint64_t j = 0; j < columns_; ++j) z_[i * columns_ + j] = call_.scale * static_cast<double>(row[j]);
    }
  }

  void apply_mask() {
    if (call_.mask_type != TUFF_U8) {
      const T* mask = at<const T>(call_.mask) + mask_first_;
      for (uint64_t i = 0; i < view_.axis; ++i) {
        for (uint64_t j = 0; j < columns_; ++j) {
          z_[i * columns_ + j] += static_cast<double>(wide(mask[i * view_.inner + j]));
        }
      }
      return;
    }
    const auto* mask = at<const uint8_t>(call_.mask) + mask_first_;
    std::fill_n(nothing_, columns_, 1);
    for (uint64_t i = 0; i < view_.axis; ++i) {
      for (uint64_t j = 0; j < columns_; ++j) {
        if (mask[i * view_.inner + j] == 0) {
          z_[i * columns_ + j] = -kInfinity;
        } else {
          nothing_[j] = 0;
        }
      }
    }
  }

  // Replaces all elements by their exponentials, whose sums are by column.
  void exponentials_of_all(double* z, double* sums) {
    const uint64_t n = view_.axis * columns_;
    if (columns_ == 1) {
      for (uint64_t i = 0; i < n; i += kExpBlock) sums[0] += exponentials(z + i, std::min(kExpBlock, n - i));
      return;
    }
    for (uint64_t i = 0; i < n; i += kExpBlock) exponentials(z + i, std::min(kExpBlock, n - i));
    for (uint64_t i = 0; i < view_.axis; ++i) {
      for (uint64_t j = 0; j < columns_; ++j) sums[j] += z[i * columns_ + j];
    }
  }

  // z becomes the logarithm of the result.
  void sum_logarithms(double* sums) {
    double block[kExpBlock];
    const uint64_t n = view_.axis * columns_;
    for (uint64_t i = 0; i < n; i += kExpBlock) {
      const uint64_t count = std::min(kExpBlock, n - i);
      std::copy_n(z_ + i, count, block);
      const double sum = exponentials(block, count);
      if (columns_ == 1) {
        sums[0] += sum;
      } else {
        for (uint64_t k = 0; k < count; ++k) sums[(i + k) % columns_] += block[k];
      }
    }
    for (uint64_t j = 0; j < columns_; ++j) sums[j] = std::log(sums[j]);
    for_elements([&](double& z, uint64_t j) { z = nothing_[j] != 0 ? -kInfinity : z - sums[j]; });
  }

  void store() {
    float row[1024];
    T* output = at<T>(call_.output) + first_;
    const uint64_t length = columns_ == view_.inner ? view_.axis * columns_ : columns_;
    const uint64_t rows = columns_ == view_.inner ? 1 : view_.axis;
    for (uint64_t r = 0; r < rows; ++r) {
      for (uint64_t i = 0; i < length; i += 1024) {
        const uint64_t count = std::min<uint64_t>(1024, length - i);
        for (uint64_t k = 0; k < count; ++k) row[k] = static_cast<float>(z_[r * length + i + k]);
        narrow(row, output + r * view_.inner + i, count);
      }
    }
  }

  const tuff_softmax_desc& call_;
  const AxisView& view_;
  const uint64_t first_, columns_;
  uint64_t mask_first_ = 0;
  double* z_;
  uint8_t nothing_[kMaxColumns];  // 1: the mask hides the whole slice
};

}  // namespace

tuff_status softmax(Device& device, const tuff_softmax_desc& call) {
  if (!is_float(call.dtype)) return TUFF_ERROR_UNSUPPORTED;
  if (call.mask != 0 && call.mask_type != call.dtype && call.mask_type != TUFF_U8) return TUFF_ERROR_UNSUPPORTED;
  const AxisView view(call.shape, call.rank, call.axis, 1);
  constexpr uint64_t kLongest = uint64_t{1} << 26;  // a whole slice is held in double precision, for each thread
  if (view.axis > kLongest) return TUFF_ERROR_UNSUPPORTED;
  if (device.asked) return TUFF_OK;
  const uint64_t columns = std::clamp<uint64_t>(kMaxElements / view.axis, 1, std::min(kMaxColumns, view.inner));
  const uint64_t strips = (view.inner + columns - 1) / columns, size = view.axis * columns;
  const PerThread<double> values(device.threads, size);
  with_float(call.dtype, [&]<typename T>(T) {
    for_each(view.outer * strips, size, [&](uint64_t i) {
      const uint64_t first = i % strips * columns;
      Strip<T>(call, view, i / strips, first, std::min(columns, view.inner - first), values.mine()).compute();
    });
  });
  return TUFF_OK;
}

}  // namespace tuff_cpu
