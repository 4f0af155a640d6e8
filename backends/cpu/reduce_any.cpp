// Reductions of integers, and those of floats that are no plain sums, maxima or minima (reduce.cpp). Integers wrap modulo
// 2^64; floats are accumulated in double precision. Long axes are cut into parts of a fixed size, which are put together in
// order, so the result does not depend on the number of threads.
#include "backends/cpu/vector_math.hpp"

#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "backends/cpu/device.hpp"

namespace tuff_cpu {
namespace {

using Call = tuff_reduce_desc;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr uint64_t kPart = 1 << 16;  // elements along the axis
constexpr uint64_t kColumns = 64;    // results that are accumulated at a time, with elements apart

struct Truth {
  uint8_t byte;
};
template <typename T>
auto value_of(T x) {
  if constexpr (std::is_same_v<T, Truth>) {
    return static_cast<int32_t>(x.byte != 0 ? 1 : 0);
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>) {
    return wide(x);
  } else {
    return x;
  }
}
template <typename T>
using ValueOf = decltype(value_of(T{}));

// Calls body(T{}) with the type of elements. False if there is none.
template <typename Body>
bool with_element(int32_t dtype, const Body& body) {
  switch (dtype) {
    case TUFF_F32: body(float{}); return true;
    case TUFF_F16: body(Half{}); return true;
    case TUFF_BF16: body(Bfloat{}); return true;
    case TUFF_F64: body(double{}); return true;
    case TUFF_I8: body(int8_t{}); return true;
    case TUFF_U8: body(uint8_t{}); return true;
    case TUFF_I16: body(int16_t{}); return true;
    case TUFF_U16: body(uint16_t{}); return true;
    case TUFF_I32: body(int32_t{}); return true;
    case TUFF_U32: body(uint32_t{}); return true;
    case TUFF_I64: body(int64_t{}); return true;
    case TUFF_U64: body(uint64_t{}); return true;
    case TUFF_BOOL: body(Truth{}); return true;
    default: return false;
  }
}

// Kinds of accumulation: start(result), add(state, value, place), merge(state, that of later elements).
struct WrappingSum {
  int32_t op;
  using State = uint64_t;
  State start(uint64_t) const { return op == TUFF_REDUCE_PROD ? 1 : 0; }
  template <typename V>
  void add(State& state, V value, uint64_t) const {
    const auto whole = static_cast<uint64_t>(value);
    switch (op) {
      case TUFF_REDUCE_PROD: state *= whole; break;
      case TUFF_REDUCE_SUM_SQUARES: state += whole * whole; break;
      case TUFF_REDUCE_L1: state += std::is_signed_v<V> && value < 0 ? 0 - whole : whole; break;
      default: state += whole;
    }
  }
  void merge(State& state, State later) const { op == TUFF_REDUCE_PROD ? state *= later : state += later; }
};

template <typename V>
struct Extreme {
  bool largest;
  using State = V;
  State start(uint64_t) const {
    return largest ? std::numeric_limits<V>::lowest() : std::numeric_limits<V>::max();
  }
  void add(State& state, V value, uint64_t) const {
    state = (largest ? value > state : value < state) ? value : state;
  }
  void merge(State& state, State later) const { add(state, later, 0); }
};

// The first largest or smallest element, or the first NaN.
template <typename V>
struct Place {
  bool largest;
  struct State {
    V best;
    uint64_t place;
  };
  static constexpr uint64_t kNone = ~uint64_t{0};
  State start(uint64_t) const { return {V{}, kNone}; }
  void add(State& state, V value, uint64_t place) const {
    const bool better = value != value || (largest ? value > state.best : value < state.best);
    if (state.place == kNone || (better && state.best == state.best)) state = {value, place};
  }
  void merge(State& state, const State& later) const {
    if (later.place != kNone) add(state, later.best, later.place);
  }
};

struct Count {
  using State = uint64_t;
  State start(uint64_t) const { return 0; }
  template <typename V>
  void add(State& state, V value, uint64_t) const {
    state += value != 0 ? 1 : 0;
  }
  void merge(State& state, State later) const { state += later; }
};

// Of numbers that are rounded to f32 first.
struct RealSum {
  enum What : uint8_t { plain, squares, distances, exponentials, product, largest } what;
  const double* centers;  // of each result
  struct State {
    double value, center;
  };
  State start(uint64_t result) const {
    return {what == product ? 1.0 : what == largest ? -kInfinity : 0.0, centers != nullptr ? centers[result] : 0.0};
  }
  template <typename V>
  void add(State& state, V value, uint64_t) const {
    const auto x = static_cast<double>(static_cast<float>(value));
    const double apart = x - state.center;
    switch (what) {
      case plain: state.value += x; break;
      case squares: state.value += x * x; break;
      case distances: state.value += apart * apart; break;
      case exponentials: state.value += std::exp(apart); break;
      case product: state.value *= x; break;
      case largest: state.value = state.value != state.value || state.value > x ? state.value : x;
    }
  }
  void merge(State& state, const State& later) const {
    if (what == product) {
      state.value *= later.value;
    } else if (what == largest) {
      if (state.value == state.value && !(state.value > later.value)) state.value = later.value;
    } else {
      state.value += later.value;
    }
  }
};

// finish(result, state) for each result.
template <typename T, typename Kind, typename Finish>
void accumulate(const Call& call, const AxisView& view, const Kind& kind, const Finish& finish) {
  using State = typename Kind::State;
  const T* x = at<const T>(call.input);
  const uint64_t parts = (view.axis + kPart - 1) / kPart, strips = (view.inner + kColumns - 1) / kColumns;
  const uint64_t results = view.outer * view.inner;
  std::vector<State> states(parts > 1 ? parts * results : 0);
  for_each(view.outer * parts * strips, std::min(view.axis, kPart) * std::min(view.inner, kColumns), [&](uint64_t i) {
    const uint64_t strip = i % strips, part = i / strips % parts, outer = i / strips / parts;
    const uint64_t first = part * kPart, rows = std::min(kPart, view.axis - first);
    const uint64_t column = strip * kColumns, columns = std::min(kColumns, view.inner - column);
    const T* from = x + (outer * view.axis + first) * view.inner + column;
    const uint64_t result = outer * view.inner + column;
    State buffer[kColumns];
    for (uint64_t j = 0; j < columns; ++j) buffer[j] = kind.start(result + j);
    if (view.inner == 1) {
      State state = buffer[0];
      for (uint64_t r = 0; r < rows; ++r) kind.add(state, value_of(from[r]), first + r);
      buffer[0] = state;
    } else {
      for (uint64_t r = 0; r < rows; ++r) {
        for (uint64_t j = 0; j < columns; ++j) kind.add(buffer[j], value_of(from[r * view.inner + j]), first + r);
      }
    }
    for (uint64_t j = 0; j < columns; ++j) {
      if (parts > 1) {
        states[part * results + result + j] = buffer[j];
      } else {
        finish(result + j, buffer[j]);
      }
    }
  });
  if (parts == 1) return;
  for_each(results, parts, [&](uint64_t i) {
    State state = states[i];
    for (uint64_t part = 1; part < parts; ++part) kind.merge(state, states[part * results + i]);
    finish(i, state);
  });
}

// An integer's low bits.
void store_integer(const Call& call, uint64_t result, uint64_t value) {
  switch (size_of(call.output_type)) {
    case 8: at<uint64_t>(call.output)[result] = value; break;
    case 4: at<uint32_t>(call.output)[result] = static_cast<uint32_t>(value); break;
    case 2: at<uint16_t>(call.output)[result] = static_cast<uint16_t>(value); break;
    default: at<uint8_t>(call.output)[result] = static_cast<uint8_t>(value);
  }
}
void store_real(const Call& call, uint64_t result, double value) {
  with_float(call.output_type,
             [&]<typename Y>(Y) { round_to(static_cast<float>(value), at<Y>(call.output)[result]); });
}

bool is_integer(int32_t dtype) { return dtype != TUFF_F64 && !is_float(dtype); }

enum class Form : uint8_t { none, wrapping, extreme, place, count, real };
Form form_of(const Call& call) {
  const bool integers = is_integer(call.dtype), doubles = call.dtype == TUFF_F64;
  switch (call.op) {
    case TUFF_REDUCE_ARGMAX:
    case TUFF_REDUCE_ARGMIN: return Form::place;
    case TUFF_REDUCE_ANY:
    case TUFF_REDUCE_ALL:
    case TUFF_REDUCE_COUNT_NONZERO: return Form::count;
    case TUFF_REDUCE_MAX:
    case TUFF_REDUCE_MIN: return integers ? Form::extreme : Form::none;
    case TUFF_REDUCE_SUM:
    case TUFF_REDUCE_SUM_SQUARES:
    case TUFF_REDUCE_L1: return integers && is_integer(call.output_type) ? Form::wrapping : Form::none;
    case TUFF_REDUCE_PROD:
      if (integers) return is_integer(call.output_type) ? Form::wrapping : Form::none;
      return is_float(call.output_type) && !doubles ? Form::real : Form::none;
    case TUFF_REDUCE_MEAN:
    case TUFF_REDUCE_L2:
    case TUFF_REDUCE_VAR:
    case TUFF_REDUCE_STD:
    case TUFF_REDUCE_LOGSUMEXP: return is_float(call.output_type) && !doubles ? Form::real : Form::none;
    default: return Form::none;
  }
}

template <typename T>
void reduce_reals(const Call& call, const AxisView& view) {
  const auto count = static_cast<double>(view.axis);
  std::vector<double> centers;
  const auto center_by = [&](RealSum::What what, const auto& finish) {
    centers.resize(view.outer * view.inner);
    accumulate<T>(call, view, RealSum{what, nullptr},
                  [&](uint64_t result, const RealSum::State& state) { centers[result] = finish(state.value); });
  };
  const auto reduce_by = [&](RealSum::What what, const auto& finish) {
    accumulate<T>(call, view, RealSum{what, centers.empty() ? nullptr : centers.data()},
                  [&](uint64_t result, const RealSum::State& state) { store_real(call, result, finish(state)); });
  };
  switch (call.op) {
    case TUFF_REDUCE_PROD: return reduce_by(RealSum::product, [](const auto& state) { return state.value; });
    case TUFF_REDUCE_MEAN: return reduce_by(RealSum::plain, [&](const auto& state) { return state.value / count; });
    case TUFF_REDUCE_L2: return reduce_by(RealSum::squares, [](const auto& state) { return std::sqrt(state.value); });
    case TUFF_REDUCE_LOGSUMEXP:
      center_by(RealSum::largest, [](double value) { return std::isinf(value) ? 0.0 : value; });
      return reduce_by(RealSum::exponentials,
                       [](const auto& state) { return std::log(state.value) + state.center; });
    default: break;
  }
  center_by(RealSum::plain, [&](double value) { return value / count; });
  const double divisor = count - call.correction;
  reduce_by(RealSum::distances, [&](const auto& state) {
    const double value = divisor > 0       ? state.value / divisor
                         : state.value > 0 ? kInfinity
                                           : std::numeric_limits<double>::quiet_NaN();
    return call.op == TUFF_REDUCE_STD ? std::sqrt(value) : value;
  });
}

template <typename T>
void reduce_form(const Call& call, const AxisView& view, Form form) {
  using V = ValueOf<T>;
  const auto integer = [&](uint64_t result, uint64_t value) { store_integer(call, result, value); };
  if (form == Form::place) {
    accumulate<T>(call, view, Place<V>{call.op == TUFF_REDUCE_ARGMAX},
                  [&](uint64_t result, const auto& state) { integer(result, state.place); });
  } else if (form == Form::count) {
    accumulate<T>(call, view, Count{}, [&](uint64_t result, uint64_t count) {
      integer(result, call.op == TUFF_REDUCE_ANY   ? count != 0
                      : call.op == TUFF_REDUCE_ALL ? count == view.axis
                                                   : count);
    });
  } else if (form == Form::real) {
    if constexpr (!std::is_same_v<T, double>) reduce_reals<T>(call, view);
  } else if constexpr (std::is_integral_v<V>) {
    if (form == Form::wrapping) {
      accumulate<T>(call, view, WrappingSum{call.op}, integer);
    } else {
      accumulate<T>(call, view, Extreme<V>{call.op == TUFF_REDUCE_MAX},
                    [&](uint64_t result, V value) { integer(result, static_cast<uint64_t>(value)); });
    }
  }
}

}  // namespace

tuff_status reduce_any(Device& device, const tuff_reduce_desc& call) {
  const Form form = form_of(call);
  const AxisView view(call.shape, call.rank, call.axis, call.axis_count);
  if (form == Form::none || view.axis == 0 || size_of(call.dtype) == 0) return TUFF_ERROR_UNSUPPORTED;
  if (device.asked) return with_element(call.dtype, [](auto) {}) ? TUFF_OK : TUFF_ERROR_UNSUPPORTED;
  const bool known = with_element(call.dtype, [&]<typename T>(T) { reduce_form<T>(call, view, form); });
  return known ? TUFF_OK : TUFF_ERROR_UNSUPPORTED;
}

}  // namespace tuff_cpu
