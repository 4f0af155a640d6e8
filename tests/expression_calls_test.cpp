// Calls of expressions: scalars, operands with strides and in place, graphs, and what is refused.
#include <numeric>
#include <random>
#include <string>

#include "support/expression.hpp"
#include "support/sample.hpp"

namespace tuff_test::expression_calls_test {
namespace {

class ExpressionCalls : public OnBackend {};

TEST_P(ExpressionCalls, ScalarsOfEveryType) {
  const std::vector<int32_t> a = {1, 2, 3, 4, 5};
  const OwnBuffer x = uploaded(context(), a), y(context(), 20), z(context(), 20);
  const OwnExpr expr(context(), "u = s * a + t; v = where(flag, a, c) + h",
                     {{"a", TUFF_I32},
                      {"s", TUFF_F32, TUFF_EXPR_SCALAR},
                      {"t", TUFF_F16, TUFF_EXPR_SCALAR},
                      {"flag", TUFF_BOOL, TUFF_EXPR_SCALAR},
                      {"c", TUFF_I8, TUFF_EXPR_SCALAR},
                      {"h", TUFF_U16, TUFF_EXPR_SCALAR}},
                     {{"u", TUFF_F32}, {"v", TUFF_I32}});
  for (const int64_t flag : {0, 1}) {
    ASSERT_OK(expr.run(context(), {5}, {dense(x), scalar(0.5), scalar(0.25), whole(flag), whole(-3), whole(65535)},
                       {dense(y), dense(z)}));
    EXPECT_EQ(downloaded<float>(context(), y, 5), (std::vector<float>{0.75f, 1.25f, 1.75f, 2.25f, 2.75f}));
    std::vector<int32_t> expected = {65536, 65537, 65538, 65539, 65540};
    if (flag == 0) expected.assign(5, 65532);
    EXPECT_EQ(downloaded<int32_t>(context(), z, 5), expected);
  }
  EXPECT_FAILS(expr.run(context(), {5}, {dense(x), scalar(0.5), scalar(0.25), whole(0), whole(128), whole(0)},
                        {dense(y), dense(z)}),
               TUFF_ERROR_INVALID_ARGUMENT, "tuff_expr_run", "i8");
}

TEST_P(ExpressionCalls, ScalarsOfOtherFloats) {
  const OwnBuffer x = uploaded<float>(context(), {1, 2, -3}), y(context(), 12);
  const OwnExpr expr(context(), "a * s", {{"a", TUFF_F32}, {"s", TUFF_BF16, TUFF_EXPR_SCALAR}}, {{"y", TUFF_F32}});
  ASSERT_OK(expr.run(context(), {3}, {dense(x), scalar(1.00390625)}, {dense(y)}));  // halfway: to the even number
  EXPECT_EQ(downloaded<float>(context(), y, 3), (std::vector<float>{1, 2, -3}));
  int32_t has_f64 = 0;
  ASSERT_OK(tuff_supports(context(), "f64", &has_f64));
  if (has_f64 == 0) return;
  const OwnExpr wider(context(), "a * s", {{"a", TUFF_F32}, {"s", TUFF_F64, TUFF_EXPR_SCALAR}}, {{"y", TUFF_F32}});
  ASSERT_OK(wider.run(context(), {3}, {dense(x), scalar(1 + 0x1p-30)}, {dense(y)}));
  EXPECT_EQ(downloaded<float>(context(), y, 3), (std::vector<float>{1, 2, -3}));
}

// --- Operands with strides

template <typename T>
void test_strides(tuff_context context, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> shape(random() % 9);
  uint64_t count = 1;
  for (uint64_t& size : shape) {
    size = count > 2000 ? 1 : random() % 3 == 0 ? 4 * (1 + random() % 3) : 1 + random() % 6;
    count *= size;
  }
  const uint32_t all = (1u << shape.size()) - 1;
  const OperandLayout la = draw_layout(shape, all, true, random), lb = draw_layout(shape, all, true, random),
                      ly = draw_layout(shape, all, false, random);
  const std::vector<T> a = edge_integers<T>(la.elements, seed + 1), b = edge_integers<T>(lb.elements, seed + 2);
  std::vector<T> expected(ly.elements, T{77});
  std::vector<uint64_t> index(shape.size());
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t rest = i;
    auto at_a = static_cast<int64_t>(la.first), at_b = static_cast<int64_t>(lb.first),
         at_y = static_cast<int64_t>(ly.first);
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) {
      const auto c = static_cast<int64_t>(rest % shape[d]);
      at_a += c * la.strides[d], at_b += c * lb.strides[d], at_y += c * ly.strides[d];
    }
    expected[static_cast<size_t>(at_y)] = static_cast<T>(static_cast<uint64_t>(a[static_cast<size_t>(at_a)]) * 3 +
                                                         static_cast<uint64_t>(b[static_cast<size_t>(at_b)]));
  }
  const OwnExpr expr(context, "a * 3 + b", {{"a", type_of<T>()}, {"b", type_of<T>()}}, {{"y", type_of<T>()}});
  const OwnBuffer x = uploaded(context, a), z = uploaded(context, b),
                  y = uploaded(context, std::vector<T>(ly.elements, T{77}));
  ASSERT_OK(expr.run(context, shape, {strided(x, la.first, la.strides), strided(z, lb.first, lb.strides)},
                     {strided(y, ly.first, ly.strides)}));
  ASSERT_EQ(downloaded<T>(context, y, ly.elements), expected) << "seed " << seed;
}

TEST_P(ExpressionCalls, Strides) {
  for (uint64_t seed = 0; seed < (vulkan() ? 40 : 100); ++seed) {
    if (vulkan() && !in_sample("strides " + std::to_string(seed), 3)) continue;  // each is a kernel of its own
    switch (seed % 4) {
      case 0: test_strides<int32_t>(context(), seed); break;
      case 1: test_strides<uint16_t>(context(), seed); break;
      case 2: test_strides<int8_t>(context(), seed); break;
      default:
        if (computes_int64(context())) test_strides<int64_t>(context(), seed);
    }
    if (HasFatalFailure()) return;
  }
}

TEST_P(ExpressionCalls, InPlaceAndShiftedViews) {
  std::vector<float> a(1001);
  std::iota(a.begin(), a.end(), 1.0f);
  const OwnExpr expr(context(), "a * a + 1", {{"a", TUFF_F32}}, {{"y", TUFF_F32}});
  const OwnBuffer x = uploaded(context(), a);
  // Reversed in place, from an odd element on.
  ASSERT_OK(expr.run(context(), {999}, {strided(x, 999, {-1})}, {strided(x, 999, {-1})}));
  // Odd elements from even ones of the same buffer.
  const OwnExpr copy(context(), "-a", {{"a", TUFF_F32}}, {{"y", TUFF_F32}});
  ASSERT_OK(copy.run(context(), {500}, {strided(x, 0, {2})}, {strided(x, 1, {2})}));
  const std::vector<float> y = downloaded<float>(context(), x, 1001);
  for (size_t i = 0; i < 1000; i += 2) {
    const float expected = i == 0 ? 1.0f : a[i] * a[i] + 1;
    ASSERT_EQ(y[i], expected) << i;
    ASSERT_EQ(y[i + 1], -expected) << i + 1;
  }
  EXPECT_EQ(y[1000], 1001.0f);
  EXPECT_FAILS(copy.run(context(), {500}, {dense(x)}, {dense(x, 1)}), TUFF_ERROR_INVALID_ARGUMENT, "tuff_expr_run",
               "input");
  EXPECT_FAILS(copy.run(context(), {4, 2}, {dense(x)}, {strided(x, 100, {0, 1})}), TUFF_ERROR_INVALID_ARGUMENT,
               "tuff_expr_run", "itself");
  EXPECT_FAILS(copy.run(context(), {3, 3}, {dense(x)}, {strided(x, 100, {1, 1})}), TUFF_ERROR_INVALID_ARGUMENT,
               "tuff_expr_run", "itself");
}

TEST_P(ExpressionCalls, SeveralOutputsAndLargeSizes) {
  const size_t count = vulkan() ? 300'007 : 5'003;
  std::vector<float> a(count), b(count);
  for (size_t i = 0; i < count; ++i) a[i] = static_cast<float>(i % 1013), b[i] = static_cast<float>(i % 7) - 3;
  const OwnBuffer x = uploaded(context(), a), z = uploaded(context(), b), sum(context(), 4 * count),
                  product(context(), 4 * count), mask(context(), count);
  const OwnExpr expr(context(), "t = a + b; s = t; p = t * b; m = p > 100;", {{"a", TUFF_F32}, {"b", TUFF_F32}},
                     {{"s", TUFF_F32}, {"p", TUFF_F32}, {"m", TUFF_BOOL}});
  ASSERT_OK(expr.run(context(), {count}, {dense(x), dense(z)}, {dense(sum), dense(product), dense(mask)}));
  const std::vector<float> s = downloaded<float>(context(), sum, count),
                           p = downloaded<float>(context(), product, count);
  const std::vector<uint8_t> m = downloaded<uint8_t>(context(), mask, count);
  for (size_t i = 0; i < count; ++i) {
    ASSERT_EQ(s[i], a[i] + b[i]) << i;
    ASSERT_EQ(p[i], s[i] * b[i]) << i;
    ASSERT_EQ(m[i], p[i] > 100 ? 1 : 0) << i;
  }
}

// Beyond the elements of one dispatch: 2^24 where a descriptor covers 2^27 bytes.
TEST_P(ExpressionCalls, SeveralDispatches) {
  if (!vulkan() || reduced()) GTEST_SKIP() << "the host backend has no such limit";
  const size_t rows = 3, columns = (1 << 23) + 5, count = rows * columns;
  std::vector<uint8_t> a(count);
  for (size_t i = 0; i < count; ++i) a[i] = static_cast<uint8_t>(i * 7 + i / 1000);
  const OwnBuffer x = uploaded(context(), a), y(context(), count);
  const OwnExpr expr(context(), "a + b", {{"a", TUFF_U8}, {"b", TUFF_U8}}, {{"y", TUFF_U8}});
  const auto width = static_cast<int64_t>(columns);
  // The first row, repeated, and all rows backwards.
  ASSERT_OK(
      expr.run(context(), {rows, columns}, {strided(x, 0, {0, 1}), strided(x, count - 1, {-width, -1})}, {dense(y)}));
  std::vector<uint8_t> result = downloaded<uint8_t>(context(), y, count);
  for (size_t i = 0; i < count; ++i) {
    ASSERT_EQ(result[i], static_cast<uint8_t>(a[i % columns] + a[count - 1 - i])) << i;
  }
  ASSERT_OK(expr.run(context(), {count}, {dense(x), dense(x)}, {dense(y)}));
  result = downloaded<uint8_t>(context(), y, count);
  for (size_t i = 0; i < count; ++i) ASSERT_EQ(result[i], static_cast<uint8_t>(2 * a[i])) << i;
}

TEST_P(ExpressionCalls, SteadyStateCreatesNothing) {
  const OwnExpr expr(context(), "gelu(a * s + 1)", {{"a", TUFF_F32}, {"s", TUFF_F32, TUFF_EXPR_SCALAR}},
                     {{"y", TUFF_F32}});
  const OwnBuffer x = uploaded(context(), std::vector<float>(100, 1)), y(context(), 400);
  ASSERT_OK(expr.run(context(), {100}, {dense(x), scalar(2)}, {dense(y)}));
  ASSERT_OK(tuff_synchronize(context()));
  const tuff_stats before = stats_of(context());
  for (int i = 0; i < 20; ++i) ASSERT_OK(expr.run(context(), {100}, {dense(x), scalar(i)}, {dense(y)}));
  ASSERT_OK(tuff_synchronize(context()));
  const tuff_stats after = stats_of(context());
  EXPECT_EQ(after.vulkan_objects_created, before.vulkan_objects_created);
  EXPECT_EQ(after.shaders_compiled, before.shaders_compiled);
}

TEST_P(ExpressionCalls, AGraphKeepsItsExpression) {
  const OwnBuffer x = uploaded(context(), std::vector<float>{1, 2, 3}), y(context(), 12);
  tuff_graph graph = 0;
  {
    const OwnExpr expr(context(), "a * s", {{"a", TUFF_F32}, {"s", TUFF_F32, TUFF_EXPR_SCALAR}}, {{"y", TUFF_F32}});
    ASSERT_OK(tuff_graph_begin(context()));
    EXPECT_OK(expr.run(context(), {3}, {dense(x), scalar(10)}, {dense(y)}));
    ASSERT_OK(tuff_graph_end(context(), &graph));
  }
  ASSERT_OK(tuff_graph_launch(context(), graph));
  EXPECT_EQ(downloaded<float>(context(), y, 3), (std::vector<float>{10, 20, 30}));
  EXPECT_OK(tuff_graph_destroy(graph));
}

// --- Errors

struct Wrong {
  const char* formula;
  tuff_status status;
  const char* message;  // after "tuff_expr_create: formula, "
};

TEST_P(ExpressionCalls, WrongFormulas) {
  constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;
  const Wrong rows[] = {
      {"a + bb * c", kArgument, "character 5: unknown name \"bb\" in \"a + bb * c\""},
      {"a +", kArgument, "character 4: expected a value, got the end in \"a +\""},
      {"(a", kArgument, "character 3: expected \")\", got the end in \"(a\""},
      {"a b", kArgument, "character 3: expected an operator or the end, got \"b\" in \"a b\""},
      {"", kArgument, "character 1: output \"y\" is not assigned in \"\""},
      {"a $ c", kArgument, "character 3: unexpected '$' in \"a $ c\""},
      {"a\xc3\xa4", kArgument, "character 2: unexpected byte 0xc3"},
      {"exp(a, c)", kArgument, "character 1: exp takes 1 argument, got 2 in \"exp(a, c)\""},
      {"where(a, c)", kArgument, "character 1: where takes 3 arguments, got 2"},
      {"1 + what(a)", kArgument, "character 5: unknown function \"what\""},
      {"exp", kArgument, "character 1: \"exp\" is a function: needs (…) behind it"},
      {"~a", kArgument, "character 1: ~ does not take f32 in \"~a\""},
      {"i << a", kArgument, "character 3: << does not take f32"},
      {"b + 300", kArgument, "character 3: 300 does not fit u8"},
      {"i + 1e400", kArgument, "character 5: a number beyond f64"},
      {"99999999999999999999", kArgument, "character 1: an integer beyond 64 bits"},
      {"0x", kArgument, "character 1: 0x without digits"},
      {"1.5e", kArgument, "character 1: a number's exponent has no digits"},
      {"3a", kArgument, "character 2: unexpected 'a' behind a number"},
      {"a = 3", kArgument, "character 1: \"a\" is an input"},
      {"y = a; y = c", kArgument, "character 8: output \"y\" is assigned twice"},
      {"t = a; t = c; t", kArgument, "character 8: \"t\" is assigned twice"},
      {"a ? c", kArgument, "character 6: expected \":\", got the end"},
      {"a; c", kArgument, "character 4: output \"y\" is assigned twice"},
      {"elu(a, c)", kArgument, "character 1: the second argument of elu needs to be a number"},
      {"(a c", kArgument, "character 4: expected \")\", got \"c\""},
      {"18446744073709551615 + 1", kArgument, "character 22: an integer beyond 64 bits"},
      {"a & 1", kArgument, "character 3: & does not take f32"},
      {"a | 1", kArgument, "character 3: | does not take f32"},
      {"i >> a", kArgument, "character 3: >> does not take f32"},
      {"z < z", kArgument, "character 3: < does not take c64"},
      {"z <= z", kArgument, "character 3: <= does not take c64"},
      {"l + m", kArgument, "character 3: no type holds both i64 and u64: convert one"},
  };
  for (const Wrong& row : rows) {
    tuff_expr expr = 7;
    EXPECT_EQ(create_expr(context(), row.formula,
                          {{"a", TUFF_F32},
                           {"b", TUFF_U8},
                           {"c", TUFF_F32},
                           {"i", TUFF_I32},
                           {"l", TUFF_I64},
                           {"m", TUFF_U64},
                           {"z", TUFF_C64}},
                          {{"y", TUFF_F32}}, &expr),
              row.status)
        << row.formula;
    EXPECT_TRUE(last_error().starts_with(std::string("tuff_expr_create: formula, ") + row.message))
        << row.formula << ": " << last_error();
    EXPECT_EQ(expr, 7u);
  }
  tuff_expr expr = 0;
  EXPECT_FAILS(create_expr(context(), "a", {{"a", TUFF_F32}}, {{"y", TUFF_F32}, {"z", TUFF_F32}}, &expr),
               TUFF_ERROR_INVALID_ARGUMENT, "tuff_expr_create", "a value without a name, and there are 2 outputs");
  EXPECT_EQ(create_expr(context(), "lgamma(a)", {{"a", TUFF_F64}}, {{"y", TUFF_F64}}, &expr), TUFF_ERROR_UNSUPPORTED);
  EXPECT_TRUE(last_error().find("lgamma does not take f64") != std::string::npos) << last_error();
}

TEST_P(ExpressionCalls, LimitsOfFormulas) {
  tuff_expr expr = 0;
  const auto create = [&](const std::string& formula) {
    return create_expr(context(), formula.c_str(), {{"a", TUFF_F32}}, {{"y", TUFF_F32}}, &expr);
  };
  const std::string deep = std::string(30, '(') + "a" + std::string(30, ')');
  ASSERT_OK(create(deep));
  EXPECT_OK(tuff_expr_destroy(expr));
  constexpr tuff_status kLimit = TUFF_ERROR_LIMIT_EXCEEDED;
  EXPECT_FAILS(create(std::string(60'000, '(')), kLimit, "tuff_expr_create", "nesting");
  EXPECT_FAILS(create(std::string(60'000, '-') + "a"), kLimit, "tuff_expr_create", "nesting");
  std::string power = "a", ternary = "a", sum = "a";
  for (int i = 0; i < 5'000; ++i) power += "^a", ternary += "?a:a", sum += "+a";
  EXPECT_FAILS(create(power), kLimit, "tuff_expr_create", "nesting");
  EXPECT_FAILS(create(ternary), kLimit, "tuff_expr_create", "nesting");
  EXPECT_FAILS(create(sum), kLimit, "tuff_expr_create", "operations");
  EXPECT_FAILS(create(std::string(70'000, ' ')), kLimit, "tuff_expr_create", "longer");
  std::vector<Named> inputs(17, {"a", TUFF_F32}), outputs(9, {"y", TUFF_F32});
  EXPECT_FAILS(create_expr(context(), "1", inputs, {{"y", TUFF_F32}}, &expr), kLimit, "tuff_expr_create",
               "input_count");
  EXPECT_FAILS(create_expr(context(), "1", {}, outputs, &expr), kLimit, "tuff_expr_create", "output_count");
  const char* names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
  inputs.clear();
  for (const char* name : names) inputs.push_back({name, TUFF_F32});
  EXPECT_FAILS(create_expr(context(), "1", inputs, {{"y", TUFF_F32}}, &expr), kLimit, "tuff_expr_create", "buffers");
}

TEST_P(ExpressionCalls, CreateRefuses) {
  constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;
  tuff_expr expr = 0;
  const auto create = [&](const std::vector<Named>& inputs, const std::vector<Named>& outputs) {
    return create_expr(context(), "1", inputs, outputs, &expr);
  };
  EXPECT_FAILS(create({{"a", 99}}, {{"y", TUFF_F32}}), kArgument, "tuff_expr_create", "dtype");
  EXPECT_FAILS(create({{"a", TUFF_F8_E4M3}}, {{"y", TUFF_F32}}), TUFF_ERROR_UNSUPPORTED, "tuff_expr_create", "dtype");
  EXPECT_FAILS(create({{"a", TUFF_F32, 2}}, {{"y", TUFF_F32}}), kArgument, "tuff_expr_create", "flags");
  EXPECT_FAILS(create({}, {{"y", TUFF_F32, TUFF_EXPR_SCALAR}}), kArgument, "tuff_expr_create", "flags");
  EXPECT_FAILS(create({}, {}), kArgument, "tuff_expr_create", "output_count");
  EXPECT_FAILS(create({{"y", TUFF_F32}}, {{"y", TUFF_F32}}), kArgument, "tuff_expr_create", "twice");
  EXPECT_FAILS(create({{"1a", TUFF_F32}}, {{"y", TUFF_F32}}), kArgument, "tuff_expr_create", "name");
  EXPECT_FAILS(create({{"", TUFF_F32}}, {{"y", TUFF_F32}}), kArgument, "tuff_expr_create", "name");
  EXPECT_FAILS(create({{nullptr, TUFF_F32}}, {{"y", TUFF_F32}}), kArgument, "tuff_expr_create", "name");
  EXPECT_FAILS(tuff_expr_create(context(), nullptr, &expr), kArgument, "tuff_expr_create", "desc");
  EXPECT_FAILS(create_expr(12345, "1", {}, {{"y", TUFF_F32}}, &expr), TUFF_ERROR_INVALID_HANDLE, "tuff_expr_create",
               "context");
  EXPECT_FAILS(create_expr(context(), nullptr, {}, {{"y", TUFF_F32}}, &expr), kArgument, "tuff_expr_create", "formula");
  EXPECT_FAILS(create_expr(context(), "1", {}, {{"y", TUFF_F32}}, nullptr), kArgument, "tuff_expr_create", "expr");
}

TEST_P(ExpressionCalls, RunRefuses) {
  constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT, kHandle = TUFF_ERROR_INVALID_HANDLE;
  const OwnExpr expr(context(), "a + b", {{"a", TUFF_F32}, {"b", TUFF_F32}}, {{"y", TUFF_F32}});
  const OwnBuffer x = uploaded(context(), std::vector<float>(64, 1)), y(context(), 256);
  const auto run = [&](const std::vector<uint64_t>& shape, const tuff_expr_operand& a,
                       const tuff_expr_operand& output) {
    return expr.run(context(), shape, {a, dense(x)}, {output});
  };
  ASSERT_OK(run({64}, dense(x), dense(y)));
  EXPECT_OK(run({0, 3}, dense(TUFF_NULL_HANDLE), dense(TUFF_NULL_HANDLE)));
  EXPECT_FAILS(run({64}, dense(x, 1), dense(y)), kArgument, "tuff_expr_run", "inputs[0]");
  EXPECT_FAILS(run({64}, strided(x, 0, {-1}), dense(y)), kArgument, "tuff_expr_run", "inputs[0]");
  EXPECT_FAILS(run({4}, strided(x, 3, {1ll << 62}), dense(y)), kArgument, "tuff_expr_run", "inputs[0]");
  EXPECT_FAILS(run({4}, strided(x, 3, {INT64_MIN}), dense(y)), kArgument, "tuff_expr_run", "inputs[0]");
  // In bytes these do not fit 64 bits, though the elements' numbers do.
  for (const int64_t stride : {1ll << 59, 1ll << 61, -(1ll << 61)}) {
    EXPECT_FAILS(run({2}, strided(x, 3, {stride}), dense(y)), kArgument, "tuff_expr_run", "inputs[0]");
  }
  EXPECT_FAILS(run({65}, dense(x), dense(y)), kArgument, "tuff_expr_run", "inputs[0]");
  EXPECT_FAILS(run({32}, dense(x), dense(y, 33)), kArgument, "tuff_expr_run", "outputs[0]");
  EXPECT_FAILS(run({64}, dense(TUFF_NULL_HANDLE), dense(y)), kHandle, "tuff_expr_run", "inputs[0]");
  EXPECT_FAILS(run({64}, dense(12345), dense(y)), kHandle, "tuff_expr_run", "inputs[0]");
  EXPECT_FAILS(run({1ull << 40, 1ull << 40}, dense(x), dense(y)), kArgument, "tuff_expr_run", "shape");
  tuff_expr_operand odd = dense(x);
  odd.strided = 2;
  EXPECT_FAILS(run({64}, odd, dense(y)), kArgument, "tuff_expr_run", "strided");
  tuff_expr_run_desc desc{};
  desc.struct_size = sizeof desc;
  const tuff_expr_operand operands[] = {dense(x), dense(x)}, output = dense(y);
  desc.inputs = operands, desc.outputs = &output, desc.input_count = 1, desc.output_count = 1;
  EXPECT_FAILS(tuff_expr_run(context(), expr, &desc), kArgument, "tuff_expr_run", "input_count");
  desc.input_count = 2, desc.rank = 9;
  EXPECT_FAILS(tuff_expr_run(context(), expr, &desc), kArgument, "tuff_expr_run", "rank");
  desc.rank = 0;
  EXPECT_OK(tuff_expr_run(context(), expr, &desc));
  desc.inputs = nullptr;
  EXPECT_FAILS(tuff_expr_run(context(), expr, &desc), kArgument, "tuff_expr_run", "inputs");
  EXPECT_FAILS(tuff_expr_run(context(), 999, &desc), kHandle, "tuff_expr_run", "expr");
  EXPECT_FAILS(tuff_expr_run(context(), expr, nullptr), kArgument, "tuff_expr_run", "desc");
  EXPECT_FAILS(tuff_expr_destroy(x), kHandle, "tuff_expr_destroy", "expr");
  EXPECT_FAILS(tuff_expr_destroy(999), kHandle, "tuff_expr_destroy", "expr");
  EXPECT_OK(tuff_expr_destroy(TUFF_NULL_HANDLE));
  const OwnContext other(GetParam());
  EXPECT_FAILS(tuff_expr_run(other, expr, &desc), kHandle, "tuff_expr_run", "expr");
}

TUFF_ON_BACKENDS(ExpressionCalls);

}  // namespace
}  // namespace tuff_test::expression_calls_test
