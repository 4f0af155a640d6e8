// Gradients of recurrent networks on the host: the chain rule for the equations of tuff.h, in doubles. Gradients are
// rounded once.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/common/elements.hpp"
#include "kernels/common/last_writes.hpp"
#include "kernels/elementwise/elementwise_ops.hpp"
#include "kernels/rnn/rnn_backward.hpp"
#include "kernels/rnn/rnn_host.hpp"

namespace tuff {
namespace {

using Vector = std::vector<double>;

using elementwise::sigmoid;

// The value of a gate and its derivative by the gate's sum.
struct Gate {
  Vector value, slope;
};

// What a step leaves for its gradients. gates: i, f, g, o; r, z, n; or the only one.
struct Step {
  Vector h_before, c_before, c, out;  // out: what an LSTM's projection multiplies
  Gate gates[4];
  Vector inner;  // GRU: what the reset gate multiplies; without linear_before_reset: r o h
};

template <typename T>
void store(const Vector& values, const Buffer* buffer, uint64_t first) {
  if (buffer == nullptr) return;
  for (uint64_t i = 0; i < values.size(); ++i) buffer->host<T>()[first + i] = static_cast<T>(values[i]);
}

// One direction of a layer, as numbers of type T.
template <typename T>
class Direction {
 public:
  Direction(const RnnBackwardArgs& args, uint64_t direction)
      : args_(args),
        layer_(args.layer),
        direction_(direction),
        hidden_(layer_.hidden_size),
        width_(layer_.state_size()),
        runs_(layer_.steps != 0 && layer_.batch != 0),
        places_(rnn::gate_places(layer_)),
        w_(parameter(layer_.w, direction * layer_.gate_rows() * layer_.input_size)),
        r_(parameter(layer_.r, direction * layer_.gate_rows() * width_)),
        bias_w_(parameter(layer_.bias_w, direction * layer_.bias_stride)),
        bias_r_(parameter(layer_.bias_r, direction * layer_.bias_stride)),
        peepholes_(parameter(layer_.peepholes, direction * 3 * hidden_)),
        projection_(parameter(layer_.projection, direction * width_ * hidden_)) {
    const uint64_t rows = layer_.gate_rows();
    // Without steps nothing has a gradient, and sizes may be any number.
    const auto zeros = [&](const Buffer* wanted, uint64_t count) {
      return Vector(runs_ || wanted != nullptr ? count : 0, 0);
    };
    dw_ = zeros(args.dw, rows * layer_.input_size), dr_ = zeros(args.dr, rows * width_);
    dbias_w_ = zeros(args.dbias_w, rows), dbias_r_ = zeros(args.dbias_r, rows);
    dpeepholes_ = zeros(args.dpeepholes, 3 * hidden_);
    dprojection_ = zeros(args.dprojection, layer_.proj_size * hidden_);
  }

  void run(uint64_t sequence, Vector* dx, LastWrites& writes) {
    const uint64_t row = direction_ * layer_.batch + sequence;
    const bool wants_h = runs_ || args_.dh0 != nullptr, wants_c = runs_ || args_.dc0 != nullptr;
    Vector h = rnn::loaded<T>(layer_.h0, row * width_, runs_ ? width_ : 0),
           c = rnn::loaded<T>(layer_.c0, row * hidden_, runs_ ? hidden_ : 0);
    Vector dh = rnn::loaded<T>(args_.dhn, row * width_, wants_h ? width_ : 0),
           dc = rnn::loaded<T>(args_.dcn, row * hidden_, wants_c ? hidden_ : 0);
    const uint64_t length = std::min(length_of(sequence), layer_.steps);
    const auto time_of = [&](uint64_t i) { return layer_.reversed(direction_) ? length - 1 - i : i; };
    std::vector<Step> steps(length);
    for (uint64_t i = 0; i < length; ++i) steps[i] = forward(x_of(time_of(i), sequence), h, c);
    for (uint64_t i = length; i-- > 0;) {
      const uint64_t t = time_of(i);
      if (args_.dy != nullptr) {
        const T* const dy = args_.dy->host<T>() + t * layer_.y_strides[0] + sequence * layer_.y_strides[1] +
                            direction_ * layer_.y_strides[2];
        for (uint64_t j = 0; j < width_; ++j) dh[j] += static_cast<double>(dy[j]);
      }
      backward(steps[i], x_of(t, sequence), dx != nullptr ? dx + t : nullptr, dh, dc);
    }
    if (args_.dh0 != nullptr) {
      writes.add([dh = std::move(dh), to = args_.dh0, first = row * width_] { store<T>(dh, to, first); });
    }
    if (args_.dc0 != nullptr) {
      writes.add([dc = std::move(dc), to = args_.dc0, first = row * hidden_] { store<T>(dc, to, first); });
    }
  }

  void store_weights() const {
    const auto all = [&](const Vector& gradient, const Buffer* wanted, uint64_t stride) {
      if (wanted != nullptr) store<T>(gradient, wanted, direction_ * stride);
    };
    all(dw_, args_.dw, dw_.size()), all(dr_, args_.dr, dr_.size());
    all(dbias_w_, args_.dbias_w, layer_.bias_stride), all(dbias_r_, args_.dbias_r, layer_.bias_stride);
    all(dpeepholes_, args_.dpeepholes, dpeepholes_.size());
    all(dprojection_, args_.dprojection, dprojection_.size());
  }

 private:
  const T* parameter(const Buffer* buffer, uint64_t first) const {
    return runs_ ? rnn::elements_of<T>(buffer, first) : nullptr;
  }
  const T* x_of(uint64_t t, uint64_t sequence) const {
    return rnn::elements_of<T>(layer_.x, t * layer_.x_strides[0] + sequence * layer_.x_strides[1]);
  }
  uint64_t length_of(uint64_t sequence) const {
    if (!runs_) return 0;
    if (layer_.lengths == nullptr) return layer_.steps;
    return static_cast<uint64_t>(std::max(layer_.lengths->host<int32_t>()[sequence], 0));
  }
  uint64_t row_of(uint64_t gate, uint64_t j) const { return places_[gate] * hidden_ + j; }
  template <typename X>
  static double dot(const T* row, const X& x, uint64_t count) {
    double sum = 0;
    for (uint64_t i = 0; i < count; ++i) sum += static_cast<double>(row[i]) * static_cast<double>(x[i]);
    return sum;
  }
  static double at(const T* numbers, uint64_t i) { return numbers == nullptr ? 0 : static_cast<double>(numbers[i]); }
  double of_input(uint64_t gate, const T* x, uint64_t j) const {
    const uint64_t row = row_of(gate, j);
    return dot(w_ + row * layer_.input_size, x, layer_.input_size) + at(bias_w_, row);
  }
  double of_state(uint64_t gate, const Vector& h, uint64_t j) const {
    const uint64_t row = row_of(gate, j);
    return dot(r_ + row * width_, h, width_) + at(bias_r_, row);
  }

  // For a sum: within the clip the function's slope, beyond it none.
  enum class Function : uint8_t { sigmoid, tanh, relu };
  void apply(Gate& gate, Function function, uint64_t j, double sum) const {
    const bool clipped = layer_.clip > 0 && std::fabs(sum) > layer_.clip;
    const double s = clipped ? std::copysign(layer_.clip, sum) : sum;
    const double value = function == Function::sigmoid ? sigmoid(s)
                         : function == Function::tanh  ? std::tanh(s)
                                                       : elementwise::relu(s);
    const double slope = function == Function::sigmoid ? value * (1 - value)
                         : function == Function::tanh  ? 1 - value * value
                                                       : (s > 0    ? 1.0
                                                          : s <= 0 ? 0.0
                                                                   : s);
    gate.value[j] = value, gate.slope[j] = clipped ? 0 : slope;
  }

  Step forward(const T* x, Vector& h, Vector& c) const {
    Step step;
    step.h_before = h, step.c_before = c;
    for (uint64_t gate = 0; gate < layer_.gates(); ++gate) {
      step.gates[gate].value.resize(hidden_), step.gates[gate].slope.resize(hidden_);
    }
    Vector out(hidden_);
    switch (layer_.cell) {
      case TUFF_RNN_CELL_LSTM: lstm(step, x, out, c); break;
      case TUFF_RNN_CELL_GRU: gru(step, x, out); break;
      default: {
        const Function function = layer_.cell == TUFF_RNN_CELL_TANH ? Function::tanh : Function::relu;
        for (uint64_t j = 0; j < hidden_; ++j) {
          apply(step.gates[0], function, j, of_input(0, x, j) + of_state(0, h, j));
          out[j] = step.gates[0].value[j];
        }
      }
    }
    h = out;
    if (layer_.proj_size != 0) {
      step.out = out;
      h.resize(width_);
      for (uint64_t j = 0; j < width_; ++j) h[j] = dot(projection_ + j * hidden_, out, hidden_);
    }
    return step;
  }
  void lstm(Step& step, const T* x, Vector& out, Vector& c) const {
    const Vector& h = step.h_before;
    for (uint64_t j = 0; j < hidden_; ++j) {
      const auto sum = [&](uint64_t gate) { return of_input(gate, x, j) + of_state(gate, h, j); };
      apply(step.gates[0], Function::sigmoid, j, sum(0) + at(peepholes_, j) * c[j]);
      apply(step.gates[1], Function::sigmoid, j, sum(1) + at(peepholes_, 2 * hidden_ + j) * c[j]);
      apply(step.gates[2], Function::tanh, j, sum(2));
      c[j] = step.gates[1].value[j] * c[j] + step.gates[0].value[j] * step.gates[2].value[j];
      apply(step.gates[3], Function::sigmoid, j, sum(3) + at(peepholes_, hidden_ + j) * c[j]);
      out[j] = step.gates[3].value[j] * std::tanh(c[j]);
    }
    step.c = c;
  }
  void gru(Step& step, const T* x, Vector& out) const {
    const Vector& h = step.h_before;
    step.inner.resize(hidden_);
    for (uint64_t gate = 0; gate < 2; ++gate) {
      for (uint64_t j = 0; j < hidden_; ++j) {
        apply(step.gates[gate], Function::sigmoid, j, of_input(gate, x, j) + of_state(gate, h, j));
      }
    }
    const Vector &r = step.gates[0].value, &z = step.gates[1].value;
    for (uint64_t j = 0; j < hidden_; ++j) step.inner[j] = layer_.linear_before_reset ? of_state(2, h, j) : r[j] * h[j];
    for (uint64_t j = 0; j < hidden_; ++j) {
      const double state = layer_.linear_before_reset ? r[j] * step.inner[j] : of_state(2, step.inner, j);
      apply(step.gates[2], Function::tanh, j, of_input(2, x, j) + state);
      out[j] = (1 - z[j]) * step.gates[2].value[j] + z[j] * h[j];
    }
  }

  // Given the gradient d by the sums of a gate: those by what its products with W and R multiply, and by these weights.
  void through_input(uint64_t gate, const Vector& d, const T* x, Vector* dx) {
    for (uint64_t j = 0; j < hidden_; ++j) {
      const uint64_t row = row_of(gate, j), first = row * layer_.input_size;
      dbias_w_[row] += d[j];
      for (uint64_t k = 0; k < layer_.input_size; ++k) {
        dw_[first + k] += d[j] * static_cast<double>(x[k]);
        if (dx != nullptr) (*dx)[k] += d[j] * static_cast<double>(w_[first + k]);
      }
    }
  }
  void through_state(uint64_t gate, const Vector& d, const Vector& h, Vector& dh) {
    for (uint64_t j = 0; j < hidden_; ++j) {
      const uint64_t row = row_of(gate, j), first = row * width_;
      dbias_r_[row] += d[j];
      for (uint64_t k = 0; k < width_; ++k) {
        dr_[first + k] += d[j] * h[k];
        dh[k] += d[j] * static_cast<double>(r_[first + k]);
      }
    }
  }
  void through_both(uint64_t gate, const Vector& d, const Step& step, const T* x, Vector* dx, Vector& dh) {
    through_input(gate, d, x, dx);
    through_state(gate, d, step.h_before, dh);
  }

  // dh and dc: by h and c after the step, which become those by h and c before it.
  void backward(const Step& step, const T* x, Vector* dx, Vector& dh, Vector& dc) {
    if (layer_.cell == TUFF_RNN_CELL_LSTM) return lstm_backward(step, x, dx, dh, dc);
    Vector before(width_, 0), d(hidden_);
    if (layer_.cell != TUFF_RNN_CELL_GRU) {
      for (uint64_t j = 0; j < hidden_; ++j) d[j] = dh[j] * step.gates[0].slope[j];
      through_both(0, d, step, x, dx, before);
      return dh.swap(before);
    }
    const Gate &r = step.gates[0], &z = step.gates[1], &n = step.gates[2];
    Vector dn(hidden_), dz(hidden_), dr(hidden_);
    for (uint64_t j = 0; j < hidden_; ++j) {
      dz[j] = dh[j] * (step.h_before[j] - n.value[j]) * z.slope[j];
      dn[j] = dh[j] * (1 - z.value[j]) * n.slope[j];
      before[j] = dh[j] * z.value[j];
    }
    through_input(2, dn, x, dx);
    if (layer_.linear_before_reset) {
      for (uint64_t j = 0; j < hidden_; ++j) dr[j] = dn[j] * step.inner[j] * r.slope[j], d[j] = dn[j] * r.value[j];
      through_state(2, d, step.h_before, before);
    } else {
      Vector of_reset(hidden_, 0);
      through_state(2, dn, step.inner, of_reset);
      for (uint64_t j = 0; j < hidden_; ++j) {
        dr[j] = of_reset[j] * step.h_before[j] * r.slope[j];
        before[j] += of_reset[j] * r.value[j];
      }
    }
    through_both(0, dr, step, x, dx, before);
    through_both(1, dz, step, x, dx, before);
    dh.swap(before);
  }
  void lstm_backward(const Step& step, const T* x, Vector* dx, Vector& dh, Vector& dc) {
    Vector du = dh;
    if (layer_.proj_size != 0) {
      du.assign(hidden_, 0);
      for (uint64_t i = 0; i < width_; ++i) {
        for (uint64_t j = 0; j < hidden_; ++j) {
          du[j] += dh[i] * static_cast<double>(projection_[i * hidden_ + j]);
          dprojection_[i * hidden_ + j] += dh[i] * step.out[j];
        }
      }
    }
    const Gate &i = step.gates[0], &f = step.gates[1], &g = step.gates[2], &o = step.gates[3];
    Vector d[4] = {Vector(hidden_), Vector(hidden_), Vector(hidden_), Vector(hidden_)}, before(width_, 0);
    for (uint64_t j = 0; j < hidden_; ++j) {
      const double of_c = std::tanh(step.c[j]);
      d[3][j] = du[j] * of_c * o.slope[j];
      const double all = dc[j] + du[j] * o.value[j] * (1 - of_c * of_c) + d[3][j] * at(peepholes_, hidden_ + j);
      d[0][j] = all * g.value[j] * i.slope[j];
      d[1][j] = all * step.c_before[j] * f.slope[j];
      d[2][j] = all * i.value[j] * g.slope[j];
      dc[j] = all * f.value[j] + d[0][j] * at(peepholes_, j) + d[1][j] * at(peepholes_, 2 * hidden_ + j);
      dpeepholes_[j] += d[0][j] * step.c_before[j];
      dpeepholes_[hidden_ + j] += d[3][j] * step.c[j];
      dpeepholes_[2 * hidden_ + j] += d[1][j] * step.c_before[j];
    }
    for (uint64_t gate = 0; gate < 4; ++gate) through_both(gate, d[gate], step, x, dx, before);
    dh.swap(before);
  }

  const RnnBackwardArgs& args_;
  const RnnArgs& layer_;
  uint64_t direction_, hidden_, width_;
  bool runs_;
  std::array<uint32_t, 4> places_;
  const T *w_, *r_, *bias_w_, *bias_r_, *peepholes_, *projection_;
  Vector dw_, dr_, dbias_w_, dbias_r_, dpeepholes_, dprojection_;
};

template <typename T>
void run(const RnnBackwardArgs& args) {
  const RnnArgs& layer = args.layer;
  std::vector<Direction<T>> directions;
  for (uint64_t d = 0; d < layer.directions(); ++d) directions.emplace_back(args, d);
  const bool wants_x = args.dx != nullptr && layer.steps != 0;
  // Without steps the initial states get what the final ones have.
  const bool any = layer.steps != 0 || args.dh0 != nullptr || args.dc0 != nullptr;
  LastWrites writes;
  for (uint64_t sequence = 0; any && sequence < layer.batch; ++sequence) {
    // Both directions add to the same rows.
    std::vector<Vector> dx;
    if (wants_x) dx.assign(layer.steps, Vector(layer.input_size, 0));
    for (Direction<T>& direction : directions) direction.run(sequence, wants_x ? dx.data() : nullptr, writes);
    writes.add([dx = std::move(dx), &args, first = sequence * args.dx_strides[1]] {
      for (uint64_t t = 0; t < dx.size(); ++t) store<T>(dx[t], args.dx, t * args.dx_strides[0] + first);
    });
  }
  writes.run();
  for (const Direction<T>& direction : directions) direction.store_weights();
}

}  // namespace

void host_rnn_backward(const RnnBackwardArgs& args) {
  with_float_type(args.layer.dtype, [&]<typename T>(T) { run<T>(args); });
}

}  // namespace tuff
