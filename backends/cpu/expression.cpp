// Expressions. A program is compiled once from the nodes: a step for each of them, which computes a block of elements
// (elementwise.hpp) from the blocks of its operands. A block takes all steps before the next one begins, so that all
// blocks stay in the processor's cache, and no code is generated.
#include "backends/cpu/vector_math.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "backends/cpu/device.hpp"
#include "backends/cpu/elementwise.hpp"

namespace tuff_cpu {
namespace {

using Call = tuff_backend_expr;
using Node = tuff_backend_expr_node;
using Operand = tuff_backend_expr_operand;

// How blocks hold values: i32 also i8 and i16; u32 also u8, u16 and bool, which is 0 or 1. body(T{}) with that type.
template <typename Body>
auto with_held(int32_t type, const Body& body) {
  switch (type) {
    case TUFF_F32: return body(float{});
    case TUFF_F64: return body(double{});
    case TUFF_I64: return body(int64_t{});
    case TUFF_U64: return body(uint64_t{});
    case TUFF_I8:
    case TUFF_I16:
    case TUFF_I32: return body(int32_t{});
    default: return body(uint32_t{});
  }
}

bool is_known(int32_t type) {
  switch (type) {
    case TUFF_F32:
    case TUFF_F64:
    case TUFF_I8:
    case TUFF_I16:
    case TUFF_I32:
    case TUFF_I64:
    case TUFF_U8:
    case TUFF_U16:
    case TUFF_U32:
    case TUFF_U64:
    case TUFF_BOOL: return true;
    default: return false;
  }
}
constexpr uint64_t kBlockBytes = kBlock * sizeof(double);
// A block of any values.
struct alignas(64) Block {
  std::byte bytes[kBlockBytes];
};

struct Step {
  void (*run)(const Step& step, const void* const* args, void* y) = nullptr;
  int32_t type = 0;       // of the result
  uint32_t width = 0;     // bits of an integer operand
  double number = 0;      // a function's alpha
  UnaryBlock unary = nullptr;
  uint32_t args[3] = {};  // slots
  uint32_t arg_count = 0;
  uint32_t slot = 0;
};
using Run = decltype(Step::run);

// y[i] = F(step, a[i], b[i]).
template <typename T, typename R, typename F>
void one(const Step& step, const void* const* args, void* y) {
  const T* a = static_cast<const T*>(args[0]);
  R* result = static_cast<R*>(y);
#pragma omp simd
  for (uint64_t i = 0; i < kBlock; ++i) result[i] = F{}(step, a[i]);
}
template <typename T, typename R, typename F>
void two(const Step& step, const void* const* args, void* y) {
  const T *a = static_cast<const T*>(args[0]), *b = static_cast<const T*>(args[1]);
  R* result = static_cast<R*>(y);
#pragma omp simd
  for (uint64_t i = 0; i < kBlock; ++i) result[i] = F{}(step, a[i], b[i]);
}
template <typename T>
void select(const Step&, const void* const* args, void* y) {
  const auto* which = static_cast<const uint32_t*>(args[0]);
  const T *a = static_cast<const T*>(args[1]), *b = static_cast<const T*>(args[2]);
  T* result = static_cast<T*>(y);
#pragma omp simd
  for (uint64_t i = 0; i < kBlock; ++i) result[i] = which[i] != 0 ? a[i] : b[i];
}
void unary_of_block(const Step& step, const void* const* args, void* y) {
  step.unary(static_cast<const float*>(args[0]), static_cast<float*>(y), step.number);
}
void power_of_blocks(const Step&, const void* const* args, void* y) {
  power_block()(static_cast<const float*>(args[0]), static_cast<const float*>(args[1]), static_cast<float*>(y));
}

// Arithmetic that wraps.
template <typename T>
auto whole(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return x;
  } else {
    return static_cast<std::make_unsigned_t<T>>(x);
  }
}
template <typename T>
T quotient(T a, T b) {  // towards minus infinity
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return static_cast<T>(-whole(a));
    const T towards_zero = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? towards_zero - 1 : towards_zero;
  } else {
    return a / b;
  }
}
template <typename T>
T rest(T a, T b) {  // with the sign of a
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return b == 0 ? 0 : a % b;
}
template <typename T>
bool in_width(const Step& step, T by) {
  if constexpr (std::is_signed_v<T>) {
    if (by < 0) return false;
  }
  return static_cast<uint64_t>(by) < step.width;
}

#define STEP_OF_ONE(Name, ...)              \
  struct Name {                             \
    template <typename T>                   \
    auto operator()(const Step&, T a) const \
        __VA_ARGS__                         \
  };
#define STEP_OF_TWO(Name, ...)                                 \
  struct Name {                                                \
    template <typename T>                                      \
    auto operator()([[maybe_unused]] const Step& s, T a, T b) const \
        __VA_ARGS__                                            \
  };
STEP_OF_TWO(Add, { return static_cast<T>(whole(a) + whole(b)); })
STEP_OF_TWO(Subtract, { return static_cast<T>(whole(a) - whole(b)); })
STEP_OF_TWO(Multiply, { return static_cast<T>(whole(a) * whole(b)); })
STEP_OF_TWO(Divide, { return a / b; })
STEP_OF_TWO(Largest, { return a != a || a > b ? a : b; })
STEP_OF_TWO(Smallest, { return a != a || a < b ? a : b; })
STEP_OF_TWO(CopySign, { return std::copysign(a, b); })
STEP_OF_TWO(Equal, { return a == b ? 1u : 0u; })
STEP_OF_TWO(Different, { return a != b ? 1u : 0u; })
STEP_OF_TWO(Less, { return a < b ? 1u : 0u; })
STEP_OF_TWO(LessOrEqual, { return a <= b ? 1u : 0u; })
STEP_OF_TWO(And, { return static_cast<T>(a & b); })
STEP_OF_TWO(Or, { return static_cast<T>(a | b); })
STEP_OF_TWO(ExclusiveOr, { return static_cast<T>(a ^ b); })
STEP_OF_TWO(Quotient, { return quotient(a, b); })
STEP_OF_TWO(Modulus, { return static_cast<T>(whole(a) - whole(quotient(a, b)) * whole(b)) * static_cast<T>(b != 0); })
STEP_OF_TWO(Rest, { return rest(a, b); })
STEP_OF_TWO(ShiftLeft, { return in_width(s, b) ? static_cast<T>(whole(a) << b) : T{0}; })
STEP_OF_TWO(ShiftRight, { return in_width(s, b) ? static_cast<T>(a >> b) : static_cast<T>(a < 0 ? -1 : 0); })
STEP_OF_TWO(Atan2, { return static_cast<T>(std::atan2(static_cast<double>(a), static_cast<double>(b))); })
STEP_OF_TWO(Hypotenuse, { return static_cast<T>(std::hypot(static_cast<double>(a), static_cast<double>(b))); })
STEP_OF_ONE(Negative, { return static_cast<T>(-whole(a)); })
STEP_OF_ONE(Magnitude, {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fabs(a);
  } else {
    return a < 0 ? static_cast<T>(-whole(a)) : a;
  }
})
STEP_OF_ONE(Sign, {
  if constexpr (std::is_floating_point_v<T>) {
    return a != a ? a : a == 0 ? T{0} : std::copysign(T{1}, a);
  } else {
    return static_cast<T>((a > 0 ? 1 : 0) - (a < 0 ? 1 : 0));
  }
})
STEP_OF_ONE(Root, { return std::sqrt(a); })
STEP_OF_ONE(Floor, { return std::floor(a); })
STEP_OF_ONE(Ceiling, { return std::ceil(a); })
STEP_OF_ONE(Truncated, { return std::trunc(a); })
STEP_OF_ONE(Rounded, { return std::nearbyint(a); })
STEP_OF_ONE(IsNan, { return a != a ? 1u : 0u; })
STEP_OF_ONE(IsInfinite, { return std::fabs(a) == std::numeric_limits<T>::infinity() ? 1u : 0u; })
STEP_OF_ONE(IsFinite, { return std::fabs(a) < std::numeric_limits<T>::infinity() ? 1u : 0u; })
STEP_OF_ONE(SignBit, { return std::signbit(a) ? 1u : 0u; })
STEP_OF_ONE(Complement, { return static_cast<T>(~a); })
struct Population {
  template <typename T>
  auto operator()(const Step& s, T a) const {
    const uint64_t mask = s.width == 64 ? ~uint64_t{0} : (uint64_t{1} << s.width) - 1;
    return static_cast<T>(std::popcount(static_cast<uint64_t>(a) & mask));
  }
};
#undef STEP_OF_ONE
#undef STEP_OF_TWO

struct Named {
  const char* name;
  Run run;
};
template <size_t count>
Run find(const Named (&table)[count], const char* name) {
  for (const Named& row : table) {
    if (std::strcmp(row.name, name) == 0) return row.run;
  }
  return nullptr;
}

// Numbers of every type.
template <typename T>
Run run_of_numbers(const char* name) {
  static constexpr Named kTable[] = {
      {"add", two<T, T, Add>},          {"sub", two<T, T, Subtract>},       {"mul", two<T, T, Multiply>},
      {"max", two<T, T, Largest>},      {"min", two<T, T, Smallest>},       {"neg", one<T, T, Negative>},
      {"abs", one<T, T, Magnitude>},    {"sign", one<T, T, Sign>},          {"eq", two<T, uint32_t, Equal>},
      {"ne", two<T, uint32_t, Different>}, {"lt", two<T, uint32_t, Less>}, {"le", two<T, uint32_t, LessOrEqual>},
  };
  return find(kTable, name);
}
template <typename T>
Run run_of_reals(const char* name) {
  static constexpr Named kTable[] = {
      {"div", two<T, T, Divide>},
      {"sqrt", one<T, T, Root>},
      {"floor", one<T, T, Floor>},
      {"ceil", one<T, T, Ceiling>},
      {"trunc", one<T, T, Truncated>},
      {"round", one<T, T, Rounded>},
      {"copysign", two<T, T, CopySign>},
      {"isnan", one<T, uint32_t, IsNan>},
      {"isinf", one<T, uint32_t, IsInfinite>},
      {"isfinite", one<T, uint32_t, IsFinite>},
      {"signbit", one<T, uint32_t, SignBit>},
  };
  return find(kTable, name);
}
template <typename T>
Run run_of_integers(const char* name) {
  static constexpr Named kTable[] = {
      {"floor_divide", two<T, T, Quotient>}, {"mod", two<T, T, Modulus>},     {"fmod", two<T, T, Rest>},
      {"bitand", two<T, T, And>},            {"bitor", two<T, T, Or>},        {"xor", two<T, T, ExclusiveOr>},
      {"bitnot", one<T, T, Complement>},     {"shl", two<T, T, ShiftLeft>},   {"shr", two<T, T, ShiftRight>},
      {"popcount", one<T, T, Population>},
  };
  return find(kTable, name);
}

// Null: another backend computes the expression. Of bool there are comparisons, and, or and xor only (backend.h), which
// give 0 and 1 for these.
Run run_of_call(const Node& node, int32_t type, Step& step) {
  const char* const name = node.function;
  const Run run = with_held(type, [&]<typename T>(T) {
    const Run any = run_of_numbers<T>(name);
    if (any != nullptr) return any;
    if constexpr (std::is_floating_point_v<T>) {
      return run_of_reals<T>(name);
    } else {
      return run_of_integers<T>(name);
    }
  });
  if (run != nullptr || type != TUFF_F32) return run;
  constexpr Named kTable[] = {
      {"pow", power_of_blocks}, {"atan2", two<float, float, Atan2>}, {"hypot", two<float, float, Hypotenuse>}};
  if (const Run own = find(kTable, name)) return own;
  step.unary = unary_block(name);
  return step.unary != nullptr ? unary_of_block : nullptr;
}

// The numbers of an integer type.
struct Bounds {
  int64_t least;
  uint64_t most;
};
Bounds bounds_of(int32_t type) {
  switch (type) {
    case TUFF_BOOL: return {0, 1};
    case TUFF_I8: return {INT8_MIN, INT8_MAX};
    case TUFF_I16: return {INT16_MIN, INT16_MAX};
    case TUFF_I32: return {INT32_MIN, INT32_MAX};
    case TUFF_I64: return {INT64_MIN, INT64_MAX};
    case TUFF_U8: return {0, UINT8_MAX};
    case TUFF_U16: return {0, UINT16_MAX};
    case TUFF_U32: return {0, UINT32_MAX};
    default: return {0, UINT64_MAX};
  }
}

// As tuff_cast(): integers saturate, NaN becomes 0.
template <typename R, typename T>
R saturated(T x, const Bounds& bounds) {
  if constexpr (std::is_floating_point_v<T>) {
    const auto number = static_cast<double>(x);
    if (number != number) return 0;
    if (number <= static_cast<double>(bounds.least)) return static_cast<R>(bounds.least);
    // Not below 2^63 and 2^64, which the largest numbers of 64 bits round to.
    if (number >= static_cast<double>(bounds.most)) return static_cast<R>(bounds.most);
    return static_cast<R>(number);
  } else if constexpr (std::is_signed_v<T>) {
    if (x < 0) return static_cast<R>(std::max<int64_t>(x, bounds.least));
    return static_cast<R>(std::min(static_cast<uint64_t>(x), bounds.most));
  } else {
    return static_cast<R>(std::min<uint64_t>(x, bounds.most));
  }
}
template <typename T, typename R>
void convert(const Step& step, const void* const* args, void* y) {
  const T* x = static_cast<const T*>(args[0]);
  R* result = static_cast<R*>(y);
  if constexpr (std::is_floating_point_v<R>) {
    for (uint64_t i = 0; i < kBlock; ++i) result[i] = static_cast<R>(x[i]);
  } else if (step.type == TUFF_BOOL) {
    for (uint64_t i = 0; i < kBlock; ++i) result[i] = x[i] != 0 ? 1 : 0;
  } else {
    const Bounds bounds = bounds_of(step.type);
    for (uint64_t i = 0; i < kBlock; ++i) result[i] = saturated<R>(x[i], bounds);
  }
}
template <typename Short>
void round_to_short(const Step&, const void* const* args, void* y) {
  Short rounded[kBlock];
  narrow(static_cast<const float*>(args[0]), rounded, kBlock);
  widen(rounded, static_cast<float*>(y), kBlock);
}

// To an integer type below 32 bits.
template <typename T, typename R>
void wrap_to(void* y) {
  R* values = static_cast<R*>(y);
  for (uint64_t i = 0; i < kBlock; ++i) values[i] = static_cast<T>(values[i]);
}
void wrap(int32_t type, void* y) {
  switch (type) {
    case TUFF_I8: return wrap_to<int8_t, int32_t>(y);
    case TUFF_I16: return wrap_to<int16_t, int32_t>(y);
    case TUFF_U8: return wrap_to<uint8_t, uint32_t>(y);
    case TUFF_U16: return wrap_to<uint16_t, uint32_t>(y);
    default: return;
  }
}

// A value that is the same for all elements.
void fill(int32_t type, double number, int64_t integer, Block& block) {
  with_held(type, [&]<typename T>(T) {
    T value;
    if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(number);
    } else {
      value = static_cast<T>(integer);
    }
    for (uint64_t i = 0; i < kBlock; ++i) std::memcpy(block.bytes + i * sizeof(T), &value, sizeof(T));
  });
}

// n elements of memory as values, and the reverse.
template <typename M, typename R>
void load_as(const std::byte* from, int64_t stride, std::byte* to, uint64_t n, bool truth) {
  const M* x = reinterpret_cast<const M*>(from);
  R* y = reinterpret_cast<R*>(to);
  if (truth) {
    for (uint64_t i = 0; i < n; ++i) y[i] = x[static_cast<int64_t>(i) * stride] != 0 ? 1 : 0;
  } else if (stride == 1) {
    for (uint64_t i = 0; i < n; ++i) y[i] = static_cast<R>(x[i]);
  } else {
    for (uint64_t i = 0; i < n; ++i) y[i] = static_cast<R>(x[static_cast<int64_t>(i) * stride]);
  }
}
template <typename Short>
void load_short(const std::byte* from, int64_t stride, std::byte* to, uint32_t n) {
  const Short* x = reinterpret_cast<const Short*>(from);
  float* y = reinterpret_cast<float*>(to);
  if (stride == 1) return widen(x, y, n);
  for (uint64_t i = 0; i < n; ++i) y[i] = wide(x[static_cast<int64_t>(i) * stride]);
}
void load(int32_t dtype, const std::byte* from, int64_t stride, std::byte* to, uint32_t n) {
  switch (dtype) {
    case TUFF_F16: return load_short<Half>(from, stride, to, n);
    case TUFF_BF16: return load_short<Bfloat>(from, stride, to, n);
    case TUFF_I8: return load_as<int8_t, int32_t>(from, stride, to, n, false);
    case TUFF_I16: return load_as<int16_t, int32_t>(from, stride, to, n, false);
    case TUFF_U8: return load_as<uint8_t, uint32_t>(from, stride, to, n, false);
    case TUFF_U16: return load_as<uint16_t, uint32_t>(from, stride, to, n, false);
    case TUFF_BOOL: return load_as<uint8_t, uint32_t>(from, stride, to, n, true);
    case TUFF_F64:
    case TUFF_I64:
    case TUFF_U64: return load_as<uint64_t, uint64_t>(from, stride, to, n, false);
    default: return load_as<uint32_t, uint32_t>(from, stride, to, n, false);
  }
}
template <typename R, typename M>
void store_as(const std::byte* from, std::byte* to, int64_t stride, uint64_t n) {
  const R* x = reinterpret_cast<const R*>(from);
  M* y = reinterpret_cast<M*>(to);
  if (stride == 1) {
    for (uint64_t i = 0; i < n; ++i) y[i] = static_cast<M>(x[i]);
  } else {
    for (uint64_t i = 0; i < n; ++i) y[static_cast<int64_t>(i) * stride] = static_cast<M>(x[i]);
  }
}
template <typename Short>
void store_short(const std::byte* from, std::byte* to, int64_t stride, uint32_t n) {
  const float* x = reinterpret_cast<const float*>(from);
  Short* y = reinterpret_cast<Short*>(to);
  if (stride == 1) return narrow(x, y, n);
  for (uint64_t i = 0; i < n; ++i) round_to(x[i], y[static_cast<int64_t>(i) * stride]);
}
void store(int32_t dtype, const std::byte* from, std::byte* to, int64_t stride, uint32_t n) {
  switch (size_of(dtype)) {
    case 8: return store_as<uint64_t, uint64_t>(from, to, stride, n);
    case 4: return store_as<uint32_t, uint32_t>(from, to, stride, n);
    case 1: return store_as<uint32_t, uint8_t>(from, to, stride, n);
    default: break;
  }
  if (dtype == TUFF_F16) return store_short<Half>(from, to, stride, n);
  if (dtype == TUFF_BF16) return store_short<Bfloat>(from, to, stride, n);
  store_as<uint32_t, uint16_t>(from, to, stride, n);
}
// Whether blocks hold elements as memory does.
bool held_as_stored(int32_t dtype) { return size_of(dtype) >= 4; }

constexpr uint32_t kNone = ~0u;

struct Program {
  bool known = false;
  std::vector<Step> steps;
  struct Constant {
    uint32_t slot, input;  // input: of a scalar; kNone: a literal
    int32_t type;
    double number;
    int64_t integer;
  };
  std::vector<Constant> constants;
  std::vector<uint32_t> inputs;   // slots; kNone: a scalar, or not used
  std::vector<uint32_t> results;  // slots of the outputs' values
  uint32_t slots = 0;
};

// Chooses the slots: one for each input and constant, and steps use those again that nobody reads any more.
class Compiler {
 public:
  explicit Compiler(const Call& call) : call_(call), slot_of_(call.node_count, kNone), last_(call.node_count, 0) {}

  Program compile() {
    program_.inputs.assign(call_.input_count, kNone);
    find_last_uses();
    for (uint32_t i = 0; i < call_.node_count; ++i) {
      if (!node(i)) return {};
    }
    for (uint32_t k = 0; k < call_.output_count; ++k) program_.results.push_back(slot_of_[call_.results[k]]);
    program_.known = true;
    return std::move(program_);
  }

 private:
  void find_last_uses() {
    for (uint32_t i = 0; i < call_.node_count; ++i) {
      for (uint32_t k = 0; k < call_.nodes[i].arg_count; ++k) last_[call_.nodes[i].args[k]] = i;
    }
    for (uint32_t k = 0; k < call_.output_count; ++k) last_[call_.results[k]] = kNone;
  }

  bool node(uint32_t i) {
    const Node& node = call_.nodes[i];
    if (!is_known(node.type)) return false;
    switch (node.kind) {
      case TUFF_BACKEND_EXPR_INPUT: {
        const bool scalar = call_.inputs[node.index].scalar != 0;
        if (scalar) {
          program_.constants.push_back({program_.slots, node.index, node.type, 0, 0});
          slot_of_[i] = program_.slots++;
        } else {
          uint32_t& slot = program_.inputs[node.index];
          if (slot == kNone) slot = program_.slots++;
          slot_of_[i] = slot;
        }
        return true;
      }
      case TUFF_BACKEND_EXPR_LITERAL:
        program_.constants.push_back({program_.slots, kNone, node.type, node.number, node.integer});
        slot_of_[i] = program_.slots++;
        return true;
      default: return step(i);
    }
  }

  bool step(uint32_t i) {
    const Node& node = call_.nodes[i];
    const int32_t of = call_.nodes[node.args[0]].type;
    Step step;
    step.type = node.type;
    step.number = node.number;
    step.width = static_cast<uint32_t>(8 * size_of(of));
    step.arg_count = node.arg_count;
    for (uint32_t k = 0; k < node.arg_count; ++k) step.args[k] = slot_of_[node.args[k]];
    switch (node.kind) {
      case TUFF_BACKEND_EXPR_CALL: step.run = run_of_call(node, of, step); break;
      case TUFF_BACKEND_EXPR_CONVERT:
        step.run = with_held(of, [&]<typename T>(T) {
          return with_held(node.type, []<typename R>(R) -> Run { return convert<T, R>; });
        });
        break;
      case TUFF_BACKEND_EXPR_SELECT:
        if (of != TUFF_BOOL) break;
        step.run = with_held(node.type, []<typename T>(T) -> Run { return select<T>; });
        break;
      case TUFF_BACKEND_EXPR_ROUND:
        if (of == TUFF_F32) {
          step.run = static_cast<int32_t>(node.index) == TUFF_F16 ? round_to_short<Half> : round_to_short<Bfloat>;
        }
        break;
      default: break;
    }
    if (step.run == nullptr) return false;
    step.slot = take_slot();
    slot_of_[i] = step.slot;
    program_.steps.push_back(step);
    for (uint32_t k = 0; k < node.arg_count; ++k) {
      const uint32_t arg = node.args[k];
      const int32_t kind = call_.nodes[arg].kind;
      if (last_[arg] != i || kind == TUFF_BACKEND_EXPR_INPUT || kind == TUFF_BACKEND_EXPR_LITERAL) continue;
      free_.push_back(slot_of_[arg]);
      last_[arg] = kNone;  // only once
    }
    if (last_[i] == 0) free_.push_back(step.slot);  // nobody reads it
    return true;
  }

  uint32_t take_slot() {
    if (free_.empty()) return program_.slots++;
    const uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }

  const Call& call_;
  Program program_;
  std::vector<uint32_t> slot_of_, last_, free_;
};

// The axes of all operands, outermost first: those that continue the enclosing one in each of them are merged with it.
struct Space {
  uint32_t rank = 0;
  uint64_t count = 1;
  uint64_t sizes[8];
  int64_t strides[TUFF_EXPR_MAX_INPUTS + TUFF_EXPR_MAX_OUTPUTS][8];

  explicit Space(const Call& call) {
    const uint32_t operands = call.input_count + call.output_count;
    for (uint32_t d = 0; d < call.rank; ++d) {
      const uint64_t size = call.shape[d];
      count *= size;
      if (size == 1) continue;
      bool merged = rank > 0;
      for (uint32_t o = 0; merged && o < operands; ++o) {
        const int64_t stride = of(call, o).strides[d];
        int64_t whole_axis;
        merged = !__builtin_mul_overflow(stride, static_cast<int64_t>(size), &whole_axis) &&
                 strides[o][rank - 1] == whole_axis;
      }
      if (!merged) ++rank;
      sizes[rank - 1] = merged ? sizes[rank - 1] * size : size;
      for (uint32_t o = 0; o < operands; ++o) strides[o][rank - 1] = of(call, o).strides[d];
    }
    if (rank == 0) {
      rank = 1;
      sizes[0] = 1;
      for (auto& each : strides) each[0] = 1;
    }
  }
  // Along each axis.
  void index_of(uint64_t element, uint64_t* index) const {
    for (uint32_t d = rank; d-- > 0; element /= sizes[d]) index[d] = element % sizes[d];
  }
  static const Operand& of(const Call& call, uint32_t o) {
    return o < call.input_count ? call.inputs[o] : call.outputs[o - call.input_count];
  }
};

// A block's elements, in pieces along the innermost axis: body(index, place in the block, elements).
template <typename Body>
void for_pieces(const Space& space, uint64_t first, uint64_t count, const Body& body) {
  uint64_t index[8];
  space.index_of(first, index);
  const uint32_t inner = space.rank - 1;
  for (uint64_t place = 0; place < count;) {
    const uint64_t piece = std::min(count - place, space.sizes[inner] - index[inner]);
    body(index, place, static_cast<uint32_t>(piece));
    place += piece;
    index[inner] += piece;
    for (uint32_t d = inner; d > 0 && index[d] == space.sizes[d]; --d) {
      index[d] = 0;
      ++index[d - 1];
    }
  }
}

class Execution {
 public:
  // The memory that a thread needs, which is there before the first result is written.
  static uint64_t bytes(const Program& program) { return program.slots * (sizeof(Block) + sizeof(const std::byte*)); }
  Execution(const Call& call, const Program& program, const Space& space, std::byte* memory)
      : call_(call),
        program_(program),
        space_(space),
        slots_(reinterpret_cast<Block*>(memory)),
        at_(reinterpret_cast<const std::byte**>(memory + program.slots * sizeof(Block))) {}

  void constants() {
    for (const Program::Constant& constant : program_.constants) {
      Block& block = slots_[constant.slot];
      if (constant.input == kNone) {
        fill(constant.type, constant.number, constant.integer, block);
      } else {
        const Operand& scalar = call_.inputs[constant.input];
        fill(constant.type, scalar.number, scalar.integer, block);
      }
    }
  }

  void block(uint64_t first, uint64_t count) {
    for (uint32_t slot = 0; slot < program_.slots; ++slot) at_[slot] = slots_[slot].bytes;
    for (uint32_t k = 0; k < call_.input_count; ++k) {
      if (program_.inputs[k] != kNone) at_[program_.inputs[k]] = input(k, first, count);
    }
    std::byte* const direct = place_of_result(first, count);
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const Step& step = program_.steps[i];
      const void* args[3];
      for (uint32_t k = 0; k < step.arg_count; ++k) args[k] = at_[step.args[k]];
      std::byte* const y = direct != nullptr && i + 1 == program_.steps.size() ? direct : slots_[step.slot].bytes;
      step.run(step, args, y);
      wrap(step.type, y);
    }
    if (direct != nullptr) return;
    for (uint32_t k = 0; k < call_.output_count; ++k) output(k, first, count);
  }

 private:
  std::byte* element(uint32_t operand, const uint64_t* index) const {
    const Operand& of = Space::of(call_, operand);
    int64_t place = 0;
    for (uint32_t d = 0; d < space_.rank; ++d) place += static_cast<int64_t>(index[d]) * space_.strides[operand][d];
    return at<std::byte>(of.first) + place * static_cast<int64_t>(size_of(of.dtype));
  }
  // Where all elements of a whole block are neighbours and held as they are stored; otherwise null.
  std::byte* neighbours(uint32_t operand, uint64_t first, uint64_t count) const {
    const uint32_t inner = space_.rank - 1;
    if (count != kBlock || space_.strides[operand][inner] != 1) return nullptr;
    if (!held_as_stored(Space::of(call_, operand).dtype)) return nullptr;
    uint64_t index[8];
    space_.index_of(first, index);
    return index[inner] + count <= space_.sizes[inner] ? element(operand, index) : nullptr;
  }
  const std::byte* input(uint32_t k, uint64_t first, uint64_t count) {
    if (const std::byte* memory = neighbours(k, first, count)) return memory;
    const Operand& operand = call_.inputs[k];
    Block& block = slots_[program_.inputs[k]];
    const uint64_t size = std::max<uint64_t>(size_of(operand.dtype), 4);  // as it is held
    if (count < kBlock) std::memset(block.bytes + count * size, 0, (kBlock - count) * size);
    for_pieces(space_, first, count, [&](const uint64_t* index, uint64_t place, uint32_t n) {
      load(operand.dtype, element(k, index), space_.strides[k][space_.rank - 1], block.bytes + place * size, n);
    });
    return block.bytes;
  }
  // Where the last step may write the only output, since nothing is read after that.
  std::byte* place_of_result(uint64_t first, uint64_t count) const {
    if (call_.output_count != 1 || program_.steps.empty()) return nullptr;
    if (program_.steps.back().slot != program_.results[0]) return nullptr;
    return neighbours(call_.input_count, first, count);
  }
  void output(uint32_t k, uint64_t first, uint64_t count) const {
    const Operand& operand = call_.outputs[k];
    const uint32_t number = call_.input_count + k;
    const std::byte* const values = at_[program_.results[k]];
    const uint64_t size = std::max<uint64_t>(size_of(operand.dtype), 4);
    for_pieces(space_, first, count, [&](const uint64_t* index, uint64_t place, uint32_t n) {
      store(operand.dtype, values + place * size, element(number, index), space_.strides[number][space_.rank - 1], n);
    });
  }

  const Call& call_;
  const Program& program_;
  const Space& space_;
  Block* slots_;
  const std::byte** at_;  // the values of each slot: there, or in an operand
};

}  // namespace

// Compiled expressions, by their numbers.
class Programs {
 public:
  const Program& find(const Call& call) {
    if (const auto found = all_.find(call.program); found != all_.end()) return found->second;
    constexpr size_t kMax = 1024;
    if (all_.size() >= kMax) all_.clear();
    return all_.emplace(call.program, Compiler(call).compile()).first->second;
  }

 private:
  std::unordered_map<uint64_t, Program> all_;
};

tuff_status expression(Device& device, const tuff_backend_expr& call) {
  if (device.programs == nullptr) device.programs = std::make_shared<Programs>();
  const Program& program = device.programs->find(call);
  if (!program.known) return TUFF_ERROR_UNSUPPORTED;
  if (device.asked) return TUFF_OK;
  const Space space(call);
  const PerThread<std::byte> slots(device.threads, Execution::bytes(program));
  constexpr uint64_t kPart = 64 * kBlock;
  in_parts(space.count, kPart, [&](uint64_t first, uint64_t count) {
    Execution execution(call, program, space, slots.mine());
    execution.constants();
    for (uint64_t i = 0; i < count; i += kBlock) execution.block(first + i, std::min(kBlock, count - i));
  });
  return TUFF_OK;
}

}  // namespace tuff_cpu
