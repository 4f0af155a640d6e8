// Recurrent networks on the host: the equations of tuff.h, in doubles. Results are rounded once.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/common/elements.hpp"
#include "kernels/common/last_writes.hpp"
#include "kernels/elementwise/elementwise_ops.hpp"
#include "kernels/rnn/rnn.hpp"
#include "kernels/rnn/rnn_host.hpp"

namespace tuff {
namespace {

using Vector = std::vector<double>;

using elementwise::sigmoid;

// One direction of a layer, as numbers of type T.
template <typename T>
class Layer {
 public:
  Layer(const RnnArgs& args, uint64_t direction)
      : args_(args),
        direction_(direction),
        hidden_(args.hidden_size),
        width_(args.state_size()),
        places_(rnn::gate_places(args)),
        w_(parameter(args.w, direction * args.gate_rows() * args.input_size)),
        r_(parameter(args.r, direction * args.gate_rows() * width_)),
        bias_w_(parameter(args.bias_w, direction * args.bias_stride)),
        bias_r_(parameter(args.bias_r, direction * args.bias_stride)),
        peepholes_(parameter(args.peepholes, direction * 3 * hidden_)),
        projection_(parameter(args.projection, direction * width_ * hidden_)) {}

  void run(uint64_t sequence, LastWrites& writes) {
    const uint64_t row = direction_ * args_.batch + sequence;
    // Without steps there is no weight, so sizes may be any number: only what is stored takes memory.
    const bool any = args_.steps != 0;
    Vector h = rnn::loaded<T>(args_.h0, row * width_, any || args_.hn != nullptr ? width_ : 0),
           c = rnn::loaded<T>(args_.c0, row * hidden_, any || args_.cn != nullptr ? hidden_ : 0);
    const uint64_t length = any ? length_of(sequence) : 0;         // without steps, `lengths` may hold nothing
    Vector states(args_.y != nullptr ? args_.steps * width_ : 0);  // zeros beyond the sequence's length
    for (uint64_t i = 0; i < args_.steps; ++i) {
      const uint64_t t = args_.reversed(direction_) ? args_.steps - 1 - i : i;
      const bool active = t < length;
      if (active) step(rnn::elements_of<T>(args_.x, t * args_.x_strides[0] + sequence * args_.x_strides[1]), h, c);
      if (active && args_.y != nullptr) std::copy(h.begin(), h.end(), states.data() + t * width_);
    }
    writes.add([&args = args_, sequence, row, width = width_, hidden = hidden_, direction = direction_,
                h = std::move(h), c = std::move(c), states = std::move(states)] {
      for (uint64_t t = 0; t < args.steps && args.y != nullptr; ++t) {
        const uint64_t y = t * args.y_strides[0] + sequence * args.y_strides[1] + direction * args.y_strides[2];
        store(states.data() + t * width, width, args.y, y);
      }
      if (args.hn != nullptr) store(h.data(), h.size(), args.hn, row * width);
      if (args.cn != nullptr) store(c.data(), c.size(), args.cn, row * hidden);
    });
  }

 private:
  // Without steps or sequences there are no parameters, and sizes may be any number.
  const T* parameter(const Buffer* buffer, uint64_t first) const {
    return args_.steps == 0 || args_.batch == 0 ? nullptr : rnn::elements_of<T>(buffer, first);
  }
  static void store(const double* values, uint64_t count, const Buffer* buffer, uint64_t first) {
    T* to = buffer->host<T>() + first;
    for (uint64_t i = 0; i < count; ++i) to[i] = static_cast<T>(values[i]);
  }
  uint64_t length_of(uint64_t sequence) const {
    if (args_.lengths == nullptr) return args_.steps;
    return static_cast<uint64_t>(std::max(args_.lengths->host<int32_t>()[sequence], 0));
  }

  template <typename X>
  static double dot(const T* row, const X& x, uint64_t count) {
    double sum = 0;
    for (uint64_t i = 0; i < count; ++i) sum += static_cast<double>(row[i]) * static_cast<double>(x[i]);
    return sum;
  }
  // The parts of a gate's sum for unit j: of the input and of the state.
  double of_input(uint64_t gate, const T* x, uint64_t j) const {
    const uint64_t row = places_[gate] * hidden_ + j;
    return dot(w_ + row * args_.input_size, x, args_.input_size) + bias(bias_w_, row);
  }
  double of_state(uint64_t gate, const Vector& h, uint64_t j) const {
    const uint64_t row = places_[gate] * hidden_ + j;
    return dot(r_ + row * width_, h, width_) + bias(bias_r_, row);
  }
  static double bias(const T* numbers, uint64_t row) {
    return numbers == nullptr ? 0 : static_cast<double>(numbers[row]);
  }
  double peephole(uint64_t which, uint64_t j, double c) const {
    return peepholes_ == nullptr ? 0 : static_cast<double>(peepholes_[which * hidden_ + j]) * c;
  }
  double clipped(double sum) const { return args_.clip > 0 ? std::clamp(sum, -args_.clip, args_.clip) : sum; }

  void step(const T* x, Vector& h, Vector& c) const {
    switch (args_.cell) {
      case TUFF_RNN_CELL_LSTM: return lstm(x, h, c);
      case TUFF_RNN_CELL_GRU: return gru(x, h);
      default: return plain(x, h);
    }
  }
  void lstm(const T* x, Vector& h, Vector& c) const {
    Vector out(hidden_);
    for (uint64_t j = 0; j < hidden_; ++j) {
      const auto sum = [&](uint64_t gate) { return of_input(gate, x, j) + of_state(gate, h, j); };
      const double i = sigmoid(clipped(sum(0) + peephole(0, j, c[j]))),
                   f = sigmoid(clipped(sum(1) + peephole(2, j, c[j]))), g = std::tanh(clipped(sum(2)));
      c[j] = f * c[j] + i * g;
      out[j] = sigmoid(clipped(sum(3) + peephole(1, j, c[j]))) * std::tanh(c[j]);
    }
    if (args_.proj_size == 0) return h.swap(out);
    for (uint64_t j = 0; j < width_; ++j) h[j] = dot(projection_ + j * hidden_, out, hidden_);
  }
  void gru(const T* x, Vector& h) const {
    Vector r(hidden_), reset(hidden_), out(hidden_);
    for (uint64_t j = 0; j < hidden_; ++j) {
      r[j] = sigmoid(clipped(of_input(0, x, j) + of_state(0, h, j)));
      reset[j] = r[j] * h[j];
    }
    for (uint64_t j = 0; j < hidden_; ++j) {
      const double z = sigmoid(clipped(of_input(1, x, j) + of_state(1, h, j)));
      const double state = args_.linear_before_reset ? r[j] * of_state(2, h, j) : of_state(2, reset, j);
      out[j] = (1 - z) * std::tanh(clipped(of_input(2, x, j) + state)) + z * h[j];
    }
    h.swap(out);
  }
  void plain(const T* x, Vector& h) const {
    Vector out(hidden_);
    for (uint64_t j = 0; j < hidden_; ++j) {
      const double sum = clipped(of_input(0, x, j) + of_state(0, h, j));
      out[j] = args_.cell == TUFF_RNN_CELL_TANH ? std::tanh(sum) : elementwise::relu(sum);
    }
    h.swap(out);
  }

  const RnnArgs& args_;
  uint64_t direction_, hidden_, width_;
  std::array<uint32_t, 4> places_;
  const T *w_, *r_, *bias_w_, *bias_r_, *peepholes_, *projection_;
};

}  // namespace

void host_rnn(const RnnArgs& args) {
  const bool nothing_runs = args.steps == 0 && args.hn == nullptr && args.cn == nullptr;
  if (nothing_runs || (args.hidden_size == 0 && args.state_size() == 0)) return;
  LastWrites writes;
  with_float_type(args.dtype, [&]<typename T>(T) {
    for (uint64_t d = 0; d < args.directions(); ++d) {
      Layer<T> layer(args, d);
      for (uint64_t sequence = 0; sequence < args.batch; ++sequence) layer.run(sequence, writes);
    }
  });
  writes.run();
}

}  // namespace tuff
