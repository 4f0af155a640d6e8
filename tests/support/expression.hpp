// Expressions for tests: created from a formula and lists of names, run on buffers.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "support/harness.hpp"

namespace tuff_test {

struct Named {
  const char* name;
  int32_t dtype;
  uint32_t flags = 0;
};

inline tuff_status create_expr(tuff_context context, const char* formula, const std::vector<Named>& inputs,
                               const std::vector<Named>& outputs, tuff_expr* expr) {
  std::vector<tuff_expr_variable> in, out;
  for (const Named& row : inputs) in.push_back({row.name, row.dtype, row.flags});
  for (const Named& row : outputs) out.push_back({row.name, row.dtype, row.flags});
  tuff_expr_desc desc{};
  desc.struct_size = sizeof desc;
  desc.formula = formula;
  desc.inputs = in.data(), desc.input_count = static_cast<uint32_t>(in.size());
  desc.outputs = out.data(), desc.output_count = static_cast<uint32_t>(out.size());
  return tuff_expr_create(context, &desc, expr);
}

class OwnExpr {
 public:
  OwnExpr(tuff_context context, const char* formula, const std::vector<Named>& inputs,
          const std::vector<Named>& outputs)
      : inputs_(static_cast<uint32_t>(inputs.size())), outputs_(static_cast<uint32_t>(outputs.size())) {
    EXPECT_OK(create_expr(context, formula, inputs, outputs, &handle_)) << formula;
  }
  ~OwnExpr() { EXPECT_OK(tuff_expr_destroy(handle_)); }
  OwnExpr(const OwnExpr&) = delete;
  OwnExpr& operator=(const OwnExpr&) = delete;
  operator tuff_expr() const { return handle_; }  // NOLINT(google-explicit-constructor)

  tuff_status run(tuff_stream stream, const std::vector<uint64_t>& shape, const std::vector<tuff_expr_operand>& inputs,
                  const std::vector<tuff_expr_operand>& outputs) const {
    tuff_expr_run_desc desc{};
    desc.struct_size = sizeof desc;
    desc.rank = static_cast<uint32_t>(shape.size());
    std::copy(shape.begin(), shape.end(), desc.shape);
    desc.inputs = inputs.data(), desc.input_count = inputs_;
    desc.outputs = outputs.data(), desc.output_count = outputs_;
    return tuff_expr_run(stream, handle_, &desc);
  }

 private:
  tuff_expr handle_ = 0;
  uint32_t inputs_, outputs_;
};

inline tuff_expr_operand dense(tuff_buffer buffer, uint64_t first = 0) {
  tuff_expr_operand operand{};
  operand.buffer = buffer, operand.first = first;
  return operand;
}
inline tuff_expr_operand strided(tuff_buffer buffer, uint64_t first, const std::vector<int64_t>& strides) {
  tuff_expr_operand operand = dense(buffer, first);
  operand.strided = 1;
  std::copy(strides.begin(), strides.end(), operand.strides);
  return operand;
}
inline tuff_expr_operand scalar(double value) {
  tuff_expr_operand operand{};
  operand.value = value;
  return operand;
}
inline tuff_expr_operand whole(int64_t integer) {
  tuff_expr_operand operand{};
  operand.integer = integer;
  return operand;
}

// Where an operand's elements are.
struct OperandLayout {
  uint64_t first = 0;
  std::vector<int64_t> strides;
  uint64_t elements = 0;  // of the buffer
};

// A random layout of the axes whose bit is set: in any order, with gaps, reversed, or, if it `repeats` some, with the
// stride 0. The other axes are repeated.
inline OperandLayout draw_layout(const std::vector<uint64_t>& shape, uint32_t axes, bool repeats,
                                 std::mt19937_64& random) {
  OperandLayout layout{random() % 5, std::vector<int64_t>(shape.size()), 0};
  std::vector<size_t> order(shape.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (random() % 3 == 0) std::shuffle(order.begin(), order.end(), random);
  std::reverse(order.begin(), order.end());
  if (random() % 2 == 0) layout.first = random() % 2 * 4;  // blocks of four elements begin there
  int64_t next = random() % 5 == 0 ? 2 : 1, before = 0;
  for (const size_t axis : order) {
    if ((axes >> axis & 1) == 0 || (repeats && random() % 5 == 0)) continue;
    layout.strides[axis] = next;
    next *= static_cast<int64_t>(shape[axis]);
    if (random() % 6 == 0) next += static_cast<int64_t>(random() % 4);
    if (random() % 6 == 0) {
      before += layout.strides[axis] * (static_cast<int64_t>(shape[axis]) - 1);
      layout.strides[axis] = -layout.strides[axis];
    }
  }
  layout.first += static_cast<uint64_t>(before);
  layout.elements = layout.first + static_cast<uint64_t>(next) + 3;
  return layout;
}

inline bool computes_int64(tuff_context context) {
  int32_t yes = 0;
  EXPECT_OK(tuff_supports(context, "i64", &yes));
  return yes != 0;
}

template <typename T>
constexpr int32_t type_of() {
  if constexpr (std::is_same_v<T, float>) return TUFF_F32;
  if constexpr (std::is_same_v<T, double>) return TUFF_F64;
  if constexpr (std::is_same_v<T, int8_t>) return TUFF_I8;
  if constexpr (std::is_same_v<T, int16_t>) return TUFF_I16;
  if constexpr (std::is_same_v<T, int32_t>) return TUFF_I32;
  if constexpr (std::is_same_v<T, int64_t>) return TUFF_I64;
  if constexpr (std::is_same_v<T, uint8_t>) return TUFF_U8;
  if constexpr (std::is_same_v<T, uint16_t>) return TUFF_U16;
  if constexpr (std::is_same_v<T, uint32_t>) return TUFF_U32;
  return TUFF_U64;
}

template <typename T>
std::vector<T> edge_integers(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values(count);
  constexpr T kMax = std::numeric_limits<T>::max(), kLeast = std::numeric_limits<T>::min();
  const T edges[] = {0, 1, static_cast<T>(-1), kMax, kLeast, static_cast<T>(kMax - 1), static_cast<T>(kLeast + 1),
                     2, 7};
  for (T& value : values) {
    const uint64_t bits = random();
    value = bits % 3 == 0   ? edges[random() % std::size(edges)]
            : bits % 3 == 1 ? static_cast<T>(random() % 13)
                            : static_cast<T>(random());
  }
  return values;
}

}  // namespace tuff_test
