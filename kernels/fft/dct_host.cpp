// The host's cosine and sine transforms, in doubles: every kind is a sum over j of x[j] times the cosine or the sine of
// 2 pi (j + a) (k + b) / N, with a and b of 0, 1/2 or 1, which is a part of
//   exp(-2 pi i (j + a) (k + b) / N) = exp(-2 pi i j b / N) exp(-2 pi i j k / N) exp(-2 pi i a (k + b) / N),
// so a Fourier transform of N numbers, of which the first n are not 0, between two products.
#include <numbers>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/common/elements.hpp"
#include "kernels/fft/dct.hpp"
#include "kernels/fft/fft_host.hpp"

namespace tuff {
namespace {

// The factors that a line's ends are multiplied by before and after.
struct Ends {
  double first_before = 1, last_before = 1, first_after = 1, last_after = 1;
};
Ends ends_of(int32_t kind, bool orthogonal) {
  const double more = orthogonal ? std::numbers::sqrt2 : 1, less = orthogonal ? std::numbers::sqrt2 / 2 : 1;
  Ends ends;
  // Sums are multiplied by 2, these terms by 1.
  if (kind == TUFF_DCT_1) ends = {more / 2, more / 2, less, less};
  if (kind == TUFF_DCT_2) ends.first_after = less;
  if (kind == TUFF_DCT_3) ends.first_before = more / 2;
  if (kind == TUFF_DST_2) ends.last_after = less;
  if (kind == TUFF_DST_3) ends.last_before = more / 2;
  return ends;
}

class Line {
 public:
  Line(const DctArgs& args, uint64_t n)
      : sine_(dct::is_sine(args.kind)),
        n_(n),
        size_(dct::norm_size(args.kind, n)),
        ends_(ends_of(args.kind, args.orthogonal != 0)),
        roots_(fft::roots_of(size_)),
        numbers_(size_),
        transformed_(size_) {
    // Twice a and b.
    static constexpr std::pair<uint64_t, uint64_t> kCosine[] = {{0, 0}, {1, 0}, {0, 1}, {1, 1}},
                                                   kSine[] = {{2, 2}, {1, 2}, {2, 1}, {1, 1}};
    const int32_t number = dct::number_of(args.kind) - 1;
    std::tie(a_, b_) = sine_ ? kSine[number] : kCosine[number];
  }

  void transform(double* x, uint64_t stride) {
    x[0] *= ends_.first_before;
    x[(n_ - 1) * stride] *= ends_.last_before;
    for (uint64_t j = 0; j < n_; ++j) numbers_[j] = x[j * stride] * fft::root_of(j * b_, 2 * size_);
    fft::transform(size_, numbers_.data(), 1, transformed_.data(), roots_);
    for (uint64_t k = 0; k < n_; ++k) {
      const fft::Number sum = transformed_[k] * fft::root_of(a_ * (2 * k + b_), 4 * size_);
      x[k * stride] = 2 * (sine_ ? -sum.imag() : sum.real());
    }
    x[0] *= ends_.first_after;
    x[(n_ - 1) * stride] *= ends_.last_after;
  }

 private:
  bool sine_;
  uint64_t n_, size_, a_ = 0, b_ = 0;
  Ends ends_;
  std::vector<fft::Number> roots_, numbers_, transformed_;
};

}  // namespace

void host_dct(const DctArgs& args) {
  const dct::Shape shape = dct::shape_of(args);
  if (shape.output.span == 0) return;
  std::vector<double> tensor;
  with_element_type(args.dtype, [&]<typename T>(T) {
    const T* const input = args.input->host<T>();
    T* const output = args.output->host<T>();
    fft::for_each_number(shape.input, args.rank,
                         [&](uint64_t, uint64_t place) { tensor.push_back(static_cast<double>(input[place])); });
    uint64_t inner = 1;
    for (uint32_t axis = args.rank; axis-- > 0;) {
      const uint64_t n = args.shape[axis];
      if ((shape.axes >> axis & 1) != 0) {
        Line line(args, n);
        for (uint64_t i = 0; i < tensor.size() / n; ++i) {
          line.transform(tensor.data() + i / inner * n * inner + i % inner, inner);
        }
      }
      inner *= n;
    }
    fft::for_each_number(shape.output, args.rank,
                         [&](uint64_t dense, uint64_t place) { output[place] = T(tensor[dense] * shape.scale); });
  });
}

}  // namespace tuff
