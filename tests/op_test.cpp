// Registered operations: what they compute on both backends, in graphs and in profiles, and how misuse of the
// declaration and of calls is refused.
#include <cmath>
#include <functional>
#include <limits>

#include "support/kernel.hpp"
#include "support/profile.hpp"
#include "support/stream.hpp"
#include "support/threads.hpp"

namespace tuff_test::op_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// y[i] = a * x[i] + y[i] for i below n.
constexpr const char* kSource = R"(#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform Parameters { uint n; float a; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
)";

void saxpy_host(void* user, const tuff_op_operand* arguments, uint32_t count, tuff_status* status) {
  if (user != nullptr) *status = *static_cast<tuff_status*>(user);
  if (*status != TUFF_OK) return;
  EXPECT_EQ(count, 4u);
  EXPECT_EQ(arguments[0].data, nullptr);
  const auto* x = static_cast<const float*>(arguments[2].data);
  auto* y = static_cast<float*>(arguments[3].data);
  for (int64_t i = 0; i < arguments[0].integer; ++i) y[i] += static_cast<float>(arguments[1].real) * x[i];
}

// A declaration that tests change before they register it.
struct Declaration {
  std::vector<tuff_op_argument> arguments = {
      {"n", TUFF_OP_SCALAR, TUFF_U32, 0, 0, nullptr, 0, 1e6},
      {"a", TUFF_OP_SCALAR, TUFF_F32, 0, 0, nullptr, 0, 0},
      {"x", TUFF_OP_BUFFER, TUFF_F32, TUFF_OP_READ, 0, "n", 0, 0},
      {"y", TUFF_OP_BUFFER, TUFF_F32, TUFF_OP_READ_WRITE, 0, "n", 0, 0},
  };
  tuff_kernel_desc kernel = glsl(kSource);
  tuff_op_desc desc{};
  tuff_op_host host = saxpy_host;
  void* user = nullptr;

  Declaration() {
    desc.struct_size = sizeof desc;
    desc.name = "test.saxpy";
    desc.kernel = &kernel;
    desc.invocations = "n";
    desc.flops = "2 * n";
  }
  Declaration(const Declaration&) = delete;
  Declaration& operator=(const Declaration&) = delete;

  tuff_status add(tuff_context context, tuff_op& op) {
    desc.arguments = arguments.data();
    desc.argument_count = static_cast<uint32_t>(arguments.size());
    return tuff_op_register(context, &desc, host, user, &op);
  }
};

using OwnOp = OwnHandle<tuff_op_destroy>;

OwnOp make_op(tuff_context context, Declaration& declaration) {
  tuff_op op = TUFF_NULL_HANDLE;
  EXPECT_OK(declaration.add(context, op));
  return OwnOp(op);
}

tuff_op_value integer(int64_t value) { return {TUFF_NULL_HANDLE, value, 0}; }
tuff_op_value real(double value) { return {TUFF_NULL_HANDLE, 0, value}; }
tuff_op_value buffer(tuff_buffer value) { return {value, 0, 0}; }
tuff_status run(tuff_stream stream, tuff_op op, const std::vector<tuff_op_value>& values) {
  return tuff_op_run(stream, op, values.data(), static_cast<uint32_t>(values.size()));
}

std::vector<float> ramp(size_t count, float step) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = step * static_cast<float>(i);
  return values;
}

class Ops : public OnBackend {};

// Small integers, so every value is exact.
TEST_P(Ops, Compute) {
  Declaration declaration;
  const OwnOp op = make_op(context(), declaration);
  for (const size_t n : {size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{1000}}) {
    const OwnBuffer x = uploaded(context(), ramp(n, 1)), y = uploaded(context(), ramp(n, -2));
    ASSERT_OK(run(context(), op, {integer(static_cast<int64_t>(n)), real(5), buffer(x), buffer(y)}));
    EXPECT_EQ(downloaded<float>(context(), y, n), ramp(n, 3)) << n;
    EXPECT_EQ(downloaded<float>(context(), x, n), ramp(n, 1)) << n;
  }
}

TEST_P(Ops, WriteOnlyWhatTheScalarsSay) {
  Declaration declaration;
  const OwnOp op = make_op(context(), declaration);
  const OwnBuffer x = uploaded(context(), ramp(100, 1)), y = uploaded(context(), std::vector<float>(100, 0));
  ASSERT_OK(run(context(), op, {integer(40), real(1), buffer(x), buffer(y)}));
  std::vector<float> expected = ramp(100, 1);
  std::fill(expected.begin() + 40, expected.end(), 0.0f);
  EXPECT_EQ(downloaded<float>(context(), y, 100), expected);
}

TEST_P(Ops, NothingIsLaunchedForZeroElements) {
  Declaration declaration;
  const OwnOp op = make_op(context(), declaration);
  const OwnBuffer x = uploaded(context(), ramp(4, 1));
  ASSERT_OK(run(context(), op, {integer(0), real(1), buffer(TUFF_NULL_HANDLE), buffer(TUFF_NULL_HANDLE)}));
  ASSERT_OK(run(context(), op, {integer(0), real(1), buffer(x), buffer(TUFF_NULL_HANDLE)}));
  EXPECT_FAILS(run(context(), op, {integer(1), real(1), buffer(x), buffer(TUFF_NULL_HANDLE)}),
               TUFF_ERROR_INVALID_ARGUMENT, "tuff_op_run", "y");
  EXPECT_EQ(downloaded<float>(context(), x, 4), ramp(4, 1));
}

TEST_P(Ops, AreFoundAndListed) {
  const OwnContext own(GetParam());
  tuff_op found = 0;
  EXPECT_FAILS(tuff_op_find(own, "test.saxpy", &found), TUFF_ERROR_INVALID_ARGUMENT, "tuff_op_find", "name");
  const auto listed = [&] {
    uint64_t length = 0;
    EXPECT_OK(tuff_op_list(own, nullptr, 0, &length));
    std::string text(length, '\0');
    EXPECT_OK(tuff_op_list(own, text.data(), length + 1, &length));
    return text;
  };
  const auto supported = [&](const char* name) {
    int32_t yes = -1;
    EXPECT_OK(tuff_supports(own, name, &yes));
    return yes;
  };
  EXPECT_EQ(listed(), "");
  EXPECT_EQ(supported("test.saxpy"), 0);
  Declaration declaration;
  tuff_op first = 0, second = 0;
  ASSERT_OK(declaration.add(own, first));
  EXPECT_EQ(supported("test.saxpy"), 1);
  EXPECT_FAILS(declaration.add(own, second), TUFF_ERROR_INVALID_ARGUMENT, "tuff_op_register", "has already");
  declaration.desc.name = "another.one.2";
  declaration.arguments[0].minimum = 1;
  ASSERT_OK(declaration.add(own, second));
  EXPECT_EQ(listed(),
            "another.one.2(n: u32 1..1000000, a: f32, x: read f32[n], y: read_write f32[n])\n"
            "test.saxpy(n: u32 0..1000000, a: f32, x: read f32[n], y: read_write f32[n])");
  ASSERT_OK(tuff_op_find(own, "another.one.2", &found));
  EXPECT_EQ(found, second);
  char cut[8] = "#######";
  uint64_t length = 0;
  ASSERT_OK(tuff_op_list(own, cut, sizeof cut, &length));
  EXPECT_STREQ(cut, "another");
  ASSERT_OK(tuff_op_destroy(second));
  EXPECT_EQ(supported("another.one.2"), 0);
  EXPECT_FAILS(tuff_op_destroy(second), TUFF_ERROR_INVALID_HANDLE, "tuff_op_destroy", "op");
  EXPECT_FAILS(run(own, second, {}), TUFF_ERROR_INVALID_HANDLE, "tuff_op_run", "op");
  // Its name is free again.
  ASSERT_OK(declaration.add(own, second));
  ASSERT_OK(tuff_op_destroy(TUFF_NULL_HANDLE));
}

TEST_P(Ops, BelongToTheirContext) {
  Declaration declaration;
  const OwnOp op = make_op(context(), declaration);
  const OwnContext other(GetParam());
  const OwnBuffer x(other, 400), y(other, 400), mine(context(), 400);
  EXPECT_FAILS(run(other, op, {integer(1), real(1), buffer(x), buffer(y)}), TUFF_ERROR_INVALID_HANDLE, "tuff_op_run",
               "op");
  EXPECT_FAILS(run(context(), op, {integer(1), real(1), buffer(mine), buffer(y)}), TUFF_ERROR_INVALID_HANDLE,
               "tuff_op_run", "y");
  EXPECT_FAILS(run(context(), op, {integer(1), real(1), buffer(12345), buffer(mine)}), TUFF_ERROR_INVALID_HANDLE,
               "tuff_op_run", "x");
}

struct BadCall {
  const char* word;  // in the message
  std::function<void(std::vector<tuff_op_value>&)> spoil;
};

TEST_P(Ops, MisuseNamesTheArgument) {
  Declaration declaration;
  declaration.arguments[1].minimum = -10;
  declaration.arguments[1].maximum = 10;
  const OwnOp op = make_op(context(), declaration);
  const OwnBuffer x = uploaded(context(), ramp(100, 1)), y = uploaded(context(), ramp(100, 1));
  tuff_buffer shifted_handle = 0, misaligned_handle = 0;
  ASSERT_OK(tuff_view(y, 4, 200, &shifted_handle));
  ASSERT_OK(tuff_view(x, 2, 200, &misaligned_handle));
  const OwnBuffer shifted(shifted_handle), misaligned(misaligned_handle), small(context(), 399);
  const std::vector<tuff_op_value> good = {integer(50), real(1), buffer(x), buffer(y)};
  const BadCall rows[] = {
      {"n", [](auto& v) { v[0] = integer(1'000'001); }},
      {"n", [](auto& v) { v[0] = integer(-1); }},
      {"n", [](auto& v) { v[0] = integer(int64_t{1} << 32); }},
      {"n", [](auto& v) { v[0] = real(50); }},
      {"n", [&](auto& v) { v[0] = buffer(x); }},
      {"a", [](auto& v) { v[1] = real(10.5); }},
      {"a", [](auto& v) { v[1] = real(kNan); }},
      {"a", [](auto& v) { v[1] = real(-INFINITY); }},
      {"a", [](auto& v) { v[1] = integer(3); }},
      {"a", [&](auto& v) { v[1] = buffer(x); }},
      {"x", [](auto& v) { v[2] = buffer(TUFF_NULL_HANDLE); }},
      {"x", [](auto& v) { v[2] = integer(1); }},
      {"x", [](auto& v) { v[0] = integer(101); }},
      {"x", [&](auto& v) { v[0] = integer(100), v[2] = buffer(small); }},  // the last element is cut
      {"x", [&](auto& v) { v[2] = buffer(misaligned); }},
      {"y", [&](auto& v) { v[2].buffer = v[3].buffer; }},
      {"y", [&](auto& v) { v[2] = buffer(shifted); }},
      {"y", [](auto& v) { v[3].real = 1; }},
      {"count", [](auto& v) { v.pop_back(); }},
      {"count", [](auto& v) { v.push_back(v[0]); }},
  };
  for (size_t i = 0; i < std::size(rows); ++i) {
    std::vector<tuff_op_value> values = good;
    rows[i].spoil(values);
    EXPECT_FAILS(run(context(), op, values), TUFF_ERROR_INVALID_ARGUMENT, "tuff_op_run", rows[i].word) << "row " << i;
  }
  EXPECT_FAILS(tuff_op_run(context(), op, nullptr, 4), TUFF_ERROR_INVALID_ARGUMENT, "tuff_op_run", "arguments");
  // None of these has had an effect.
  EXPECT_EQ(downloaded<float>(context(), y, 100), ramp(100, 1));
  EXPECT_OK(run(context(), op, good));
}

TEST_P(Ops, MappedBuffersAreRefused) {
  Declaration declaration;
  const OwnOp op = make_op(context(), declaration);
  tuff_alloc_desc desc{};
  desc.struct_size = sizeof desc;
  desc.flags = TUFF_ALLOC_HOST_VISIBLE;
  desc.bytes = 400;
  tuff_buffer handle = 0;
  ASSERT_OK(tuff_alloc_ex(context(), &desc, &handle));
  const OwnBuffer x(handle), y(context(), 400);
  void* memory = nullptr;
  ASSERT_OK(tuff_map(x, &memory));
  EXPECT_FAILS(run(context(), op, {integer(1), real(1), buffer(x), buffer(y)}), TUFF_ERROR_INVALID_ARGUMENT,
               "tuff_op_run", "x");
  ASSERT_OK(tuff_unmap(x));
  EXPECT_OK(run(context(), op, {integer(1), real(1), buffer(x), buffer(y)}));
}

struct BadDeclaration {
  const char* word;
  std::function<void(Declaration&)> spoil;
};

TEST_P(Ops, FaultyDeclarationsAreRefused) {
  const std::string long_name = "a." + std::string(70, 'b'), deep = std::string(40, '(') + "n" + std::string(40, ')');
  const BadDeclaration rows[] = {
      {"name", [](auto& d) { d.desc.name = nullptr; }},
      {"name", [](auto& d) { d.desc.name = ""; }},
      {"name", [](auto& d) { d.desc.name = "saxpy"; }},
      {"name", [](auto& d) { d.desc.name = "acme..saxpy"; }},
      {"name", [](auto& d) { d.desc.name = ".saxpy"; }},
      {"name", [](auto& d) { d.desc.name = "acme.saxpy."; }},
      {"name", [](auto& d) { d.desc.name = "Acme.saxpy"; }},
      {"name", [](auto& d) { d.desc.name = "gemm.mine"; }},
      {"name", [](auto& d) { d.desc.name = "bf16.mine"; }},
      {"name", [&](auto& d) { d.desc.name = long_name.c_str(); }},
      {"argument_count", [](auto& d) { d.arguments.clear(); }},
      {"argument_count", [](auto& d) { d.arguments.resize(65, d.arguments[0]); }},
      {"name", [](auto& d) { d.arguments[1].name = nullptr; }},
      {"name", [](auto& d) { d.arguments[1].name = "1a"; }},
      {"name", [](auto& d) { d.arguments[1].name = "n"; }},
      {"name", [](auto& d) { d.arguments[1].name = "ceil_div"; }},
      {"kind", [](auto& d) { d.arguments[1].kind = 3; }},
      {"dtype", [](auto& d) { d.arguments[2].dtype = 99; }},
      {"dtype", [](auto& d) { d.arguments[1].dtype = TUFF_F16; }},
      {"access", [](auto& d) { d.arguments[2].access = 0; }},
      {"access", [](auto& d) { d.arguments[2].access = 4; }},
      {"access", [](auto& d) { d.arguments[0].access = TUFF_OP_READ; }},
      {"reserved", [](auto& d) { d.arguments[0].reserved = 1; }},
      {"range", [](auto& d) { d.arguments[0].minimum = 2e6; }},
      {"range", [](auto& d) { d.arguments[0].maximum = kNan; }},
      {"range", [](auto& d) { d.arguments[2].maximum = 1; }},
      {"elements", [](auto& d) { d.arguments[2].elements = ""; }},
      {"elements", [](auto& d) { d.arguments[2].elements = "m"; }},
      {"elements", [](auto& d) { d.arguments[2].elements = "a"; }},
      {"elements", [](auto& d) { d.arguments[2].elements = "n +"; }},
      {"elements", [](auto& d) { d.arguments[2].elements = "(n"; }},
      {"elements", [](auto& d) { d.arguments[2].elements = "n n"; }},
      {"elements", [](auto& d) { d.arguments[2].elements = "max(n)"; }},
      {"elements", [](auto& d) { d.arguments[2].elements = "-1"; }},
      {"elements", [](auto& d) { d.arguments[2].elements = "1.5"; }},
      {"elements", [](auto& d) { d.arguments[2].elements = "18446744073709551616"; }},
      {"elements", [&](auto& d) { d.arguments[2].elements = deep.c_str(); }},
      {"invocations", [](auto& d) { d.desc.invocations = "n // 2"; }},
      {"invocations", [](auto& d) { d.desc.groups = "1"; }},
      {"invocations", [](auto& d) { d.desc.invocations = "1,2,3,4"; }},
      {"invocations", [](auto& d) { d.desc.invocations = "n,"; }},
      {"invocations", [](auto& d) { d.desc.invocations = ""; }},
      {"invocations", [](auto& d) { d.desc.invocations = "n),(n"; }},
      {"groups", [](auto& d) { d.desc.invocations = nullptr; }},
      {"flops", [](auto& d) { d.desc.flops = "2 n"; }},
      {"struct_size", [](auto& d) { d.desc.struct_size = 12; }},
  };
  const OwnContext own(GetParam());
  for (size_t i = 0; i < std::size(rows); ++i) {
    Declaration declaration;
    rows[i].spoil(declaration);
    tuff_op op = 77;
    EXPECT_FAILS(declaration.add(own, op), TUFF_ERROR_INVALID_ARGUMENT, "tuff_op_register", rows[i].word)
        << "row " << i;
    EXPECT_EQ(op, 77u);
  }
  uint64_t length = 77;
  ASSERT_OK(tuff_op_list(own, nullptr, 0, &length));
  EXPECT_EQ(length, 0u);
}

// How many elements a call needs of x shows what the formula gives.
TEST(OpDeclarations, FormulasAreExact) {
  struct Row {
    const char* formula;
    int64_t n, m;
    uint64_t elements;
  };
  const Row rows[] = {
      {"n", 7, 0, 7},
      {"n * m", 3, 5, 15},
      {"n + m * 2", 3, 5, 13},
      {"(n + m) * 2", 3, 5, 16},
      {"n - m - 1", 9, 3, 5},
      {"n / m", 17, 5, 3},
      {"n % m + 1", 17, 5, 3},
      {"ceil_div(n, m)", 17, 5, 4},
      {"ceil_div(n, m)", 15, 5, 3},
      {"min(n, m) + max(n, 2)", 3, 5, 6},
      {" max( n ,m )\t", 3, 5, 5},
      {"y / 2", 0, 0, 8},  // y holds 16 elements
      {"((((n))))", 4, 0, 4},
      {"18446744073709551615 - 18446744073709551610", 0, 0, 5},
  };
  for (const Row& row : rows) {
    Declaration declaration;
    declaration.arguments.push_back({"m", TUFF_OP_SCALAR, TUFF_I64, 0, 0, nullptr, 0, 0});
    declaration.arguments[0].dtype = TUFF_I32;
    declaration.arguments[0].maximum = 0;
    declaration.arguments[2].elements = row.formula;
    declaration.arguments[3].elements = nullptr;
    declaration.desc.kernel = nullptr;
    declaration.desc.name = "test.formula";
    declaration.host = [](void*, const tuff_op_operand*, uint32_t, tuff_status*) {};
    const OwnContext host("host");
    const OwnOp op = make_op(host, declaration);
    const OwnBuffer enough(host, 4 * row.elements), less(host, 4 * row.elements - 1), y(host, 64);
    const auto call = [&](tuff_buffer x) {
      return run(host, op, {integer(row.n), real(0), buffer(x), buffer(y), integer(row.m)});
    };
    EXPECT_OK(call(enough)) << row.formula;
    EXPECT_FAILS(call(less), TUFF_ERROR_INVALID_ARGUMENT, "tuff_op_run", "x") << row.formula;
  }
}

TEST(OpDeclarations, FormulasOutOfRangeAreRefused) {
  struct Row {
    const char* formula;
    int64_t n, m;
    const char* says;
  };
  const int64_t large = std::numeric_limits<int64_t>::max();
  const Row rows[] = {{"n - m", 3, 5, "3 - 5 is below 0"},       {"n * m * 4", large, 2, "is beyond 2^64"},
                      {"n + m + m", large, large, "is beyond"},  {"n / m", 1, 0, "1 is divided by 0"},
                      {"n % m", 1, 0, "divided by 0"},           {"ceil_div(n, m)", 1, 0, "divided by 0"},
                      {"n", -1, 0, "n is negative, with n = -1"}};
  const OwnContext host("host");
  for (const Row& row : rows) {
    Declaration declaration;
    declaration.arguments = {{"n", TUFF_OP_SCALAR, TUFF_I64, 0, 0, nullptr, 0, 0},
                             {"m", TUFF_OP_SCALAR, TUFF_I64, 0, 0, nullptr, 0, 0},
                             {"x", TUFF_OP_BUFFER, TUFF_U8, TUFF_OP_READ, 0, row.formula, 0, 0}};
    declaration.desc.kernel = nullptr;
    declaration.desc.flops = nullptr;
    declaration.desc.invocations = nullptr;
    declaration.host = [](void*, const tuff_op_operand*, uint32_t, tuff_status*) { ADD_FAILURE(); };
    const OwnOp op = make_op(host, declaration);
    const OwnBuffer x(host, 100);
    EXPECT_FAILS(run(host, op, {integer(row.n), integer(row.m), buffer(x)}), TUFF_ERROR_INVALID_ARGUMENT, "tuff_op_run",
                 "elements")
        << row.formula;
    EXPECT_NE(last_error().find(row.says), std::string::npos) << last_error();
  }
}

TEST(OpDeclarations, FormulasOutOfRangeNameEachValueOnce) {
  Declaration declaration;
  declaration.arguments = {{"kn", TUFF_OP_SCALAR, TUFF_I64, 0, 0, nullptr, 0, 0},
                           {"n", TUFF_OP_SCALAR, TUFF_I64, 0, 0, nullptr, 0, 0},
                           {"x", TUFF_OP_BUFFER, TUFF_U8, TUFF_OP_READ, 0, "kn + n - 9 * kn", 0, 0}};
  declaration.desc.kernel = nullptr;
  declaration.desc.flops = nullptr;
  declaration.desc.invocations = nullptr;
  declaration.host = [](void*, const tuff_op_operand*, uint32_t, tuff_status*) { ADD_FAILURE(); };
  const OwnContext host("host");
  const OwnOp op = make_op(host, declaration);
  const OwnBuffer x(host, 100);
  // "kn = 10" contains "n = 1".
  EXPECT_FAILS(run(host, op, {integer(10), integer(1), buffer(x)}), TUFF_ERROR_INVALID_ARGUMENT, "tuff_op_run",
               "elements");
  const std::string ending = "11 - 90 is below 0, with kn = 10, n = 1";
  EXPECT_TRUE(last_error().ends_with(ending)) << last_error();
}

// Integers next to the bounds of their types and ranges.
TEST(OpDeclarations, ScalarsKeepEveryBit) {
  struct Seen {
    std::vector<int64_t> integers;
    std::vector<double> reals;
  } seen;
  Declaration declaration;
  declaration.arguments = {{"i", TUFF_OP_SCALAR, TUFF_I32, 0, 0, nullptr, 0, 0},
                           {"u", TUFF_OP_SCALAR, TUFF_U64, 0, 0, nullptr, 0, 0},
                           {"l", TUFF_OP_SCALAR, TUFF_I64, 0, 0, nullptr, -0x1p62, 0x1p62},
                           {"d", TUFF_OP_SCALAR, TUFF_F64, 0, 0, nullptr, 0, 0}};
  declaration.desc.kernel = nullptr;
  declaration.desc.flops = declaration.desc.invocations = nullptr;
  declaration.user = &seen;
  declaration.host = [](void* user, const tuff_op_operand* arguments, uint32_t count, tuff_status*) {
    for (uint32_t i = 0; i < count; ++i) {
      static_cast<Seen*>(user)->integers.push_back(arguments[i].integer);
      static_cast<Seen*>(user)->reals.push_back(arguments[i].real);
    }
  };
  const OwnContext host("host");
  const OwnOp op = make_op(host, declaration);
  const int64_t bound = int64_t{1} << 62;
  ASSERT_OK(tuff_profile_begin(host));
  ASSERT_OK(run(host, op, {integer(INT32_MIN), integer(-1), integer(-bound), real(0.1)}));
  ASSERT_OK(tuff_profile_end(host));
  const std::string shown = trace_of(host).dump();
  EXPECT_NE(shown.find("i=-2147483648 u=18446744073709551615"), std::string::npos) << shown;
  EXPECT_EQ(seen.integers, (std::vector<int64_t>{INT32_MIN, -1, -bound, 0}));
  EXPECT_EQ(seen.reals, (std::vector<double>{0, 0, 0, 0.1}));
  EXPECT_FAILS(run(host, op, {integer(int64_t{INT32_MIN} - 1), integer(0), integer(0), real(0)}),
               TUFF_ERROR_INVALID_ARGUMENT, "tuff_op_run", "i");
  EXPECT_FAILS(run(host, op, {integer(0), integer(0), integer(bound + 1), real(0)}), TUFF_ERROR_INVALID_ARGUMENT,
               "tuff_op_run", "l");
  EXPECT_FAILS(run(host, op, {integer(0), integer(0), integer(-bound - 1), real(0)}), TUFF_ERROR_INVALID_ARGUMENT,
               "tuff_op_run", "l");
}

TEST_P(Ops, WithoutWhatTheContextNeedsTheyAreUnsupported) {
  Declaration declaration;
  tuff_op op = 0;
  declaration.host = nullptr;
  if (vulkan()) declaration.desc.kernel = nullptr;
  EXPECT_FAILS(declaration.add(context(), op), TUFF_ERROR_UNSUPPORTED, "tuff_op_register", "test.saxpy");
}

// A host function computes a call in one piece, so nothing limits the workgroups that a kernel would have.
TEST_P(Ops, AHostFunctionHasNoWorkgroups) {
  if (vulkan()) GTEST_SKIP() << "a device does not call it";
  struct Row {
    const char *groups, *invocations;
    int64_t n;
    int calls;
  };
  const Row rows[] = {{nullptr, "n", 5'000'000'000, 1},
                      {"n", nullptr, 5'000'000'000, 1},
                      {nullptr, "1, n", 5'000'000'000, 1},
                      {nullptr, nullptr, 5'000'000'000, 1},
                      {nullptr, "n", 0, 0},
                      {"1, 1, n", nullptr, 0, 0}};
  for (const Row& row : rows) {
    int calls = 0;
    Declaration declaration;
    declaration.arguments = {{"n", TUFF_OP_SCALAR, TUFF_I64, 0, 0, nullptr, 0, 0},
                             {"x", TUFF_OP_BUFFER, TUFF_F32, TUFF_OP_WRITE, 0, "1", 0, 0}};
    declaration.desc.kernel = nullptr;
    declaration.desc.groups = row.groups;
    declaration.desc.invocations = row.invocations;
    declaration.host = [](void* user, const tuff_op_operand*, uint32_t, tuff_status*) { ++*static_cast<int*>(user); };
    declaration.user = &calls;
    const OwnOp op = make_op(context(), declaration);
    const OwnBuffer x(context(), 4);
    EXPECT_OK(run(context(), op, {integer(row.n), buffer(x)}));
    EXPECT_EQ(calls, row.calls) << row.n;
  }
}

TEST_P(Ops, AHostFunctionsStatusIsTheCalls) {
  if (vulkan()) GTEST_SKIP() << "a device does not call it";
  tuff_status wanted = TUFF_ERROR_LIMIT_EXCEEDED;
  Declaration declaration;
  declaration.user = &wanted;
  const OwnOp op = make_op(context(), declaration);
  const OwnBuffer x(context(), 4), y(context(), 4);
  EXPECT_FAILS(run(context(), op, {integer(1), real(1), buffer(x), buffer(y)}), TUFF_ERROR_LIMIT_EXCEEDED,
               "tuff_op_run", "test.saxpy");
  const OwnGraph graph = capture(context(), [&] {
    EXPECT_OK(run(context(), op, {integer(1), real(1), buffer(x), buffer(y)}));  // not called yet
  });
  EXPECT_FAILS(tuff_graph_launch(context(), graph), TUFF_ERROR_LIMIT_EXCEEDED, "tuff_graph_launch", "test.saxpy");
  wanted = TUFF_OK;
  EXPECT_OK(tuff_graph_launch(context(), graph));
  EXPECT_OK(run(context(), op, {integer(1), real(1), buffer(x), buffer(y)}));
}

TEST_P(Ops, ProfilesShowTheirNames) {
  const OwnContext own(GetParam());
  Declaration declaration;
  const OwnOp op = make_op(own, declaration);
  const OwnBuffer x = uploaded(own, ramp(100, 1)), y = uploaded(own, ramp(100, 1));
  ASSERT_OK(tuff_profile_begin(own));
  ASSERT_OK(run(own, op, {integer(100), real(2), buffer(x), buffer(y)}));
  ASSERT_OK(tuff_profile_end(own));
  const std::vector<Json> calls = events(trace_of(own), "call");
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0]["name"], "test.saxpy");
  EXPECT_NE(calls[0].dump().find("n=100 a=2 x[100] y[100]"), std::string::npos) << calls[0].dump();
}

TEST_P(Ops, ManyThreadsCallOne) {
  Declaration declaration;
  const OwnOp op = make_op(context(), declaration);
  constexpr int kThreads = 4, kCalls = 50;
  std::vector<OwnBuffer> sums;
  const OwnBuffer x = uploaded(context(), ramp(64, 1));
  for (int i = 0; i < kThreads; ++i) sums.push_back(uploaded(context(), std::vector<float>(64, 0)));
  on_threads(kThreads, [&](int i) {
    for (int call = 0; call < kCalls; ++call) {
      EXPECT_OK(run(context(), op, {integer(64), real(1), buffer(x), buffer(sums[static_cast<size_t>(i)])}));
    }
  });
  for (const OwnBuffer& sum : sums) EXPECT_EQ(downloaded<float>(context(), sum, 64), ramp(64, kCalls));
}

TEST_P(Ops, GraphsCaptureThem) {
  const std::vector<float> zeros(100, 0);
  const OwnBuffer x = uploaded(context(), ramp(100, 1)), y = uploaded(context(), zeros), z = uploaded(context(), zeros);
  tuff_graph graph = 0;
  {
    Declaration declaration;
    const OwnOp op = make_op(context(), declaration);
    ASSERT_OK(tuff_graph_begin(context()));
    EXPECT_OK(run(context(), op, {integer(100), real(2), buffer(x), buffer(y)}));
    EXPECT_FAILS(run(context(), op, {integer(101), real(2), buffer(x), buffer(y)}), TUFF_ERROR_INVALID_ARGUMENT,
                 "tuff_op_run", "x");
    EXPECT_OK(run(context(), op, {integer(100), real(1), buffer(y), buffer(z)}));
    ASSERT_OK(tuff_graph_end(context(), &graph));
  }  // the graph keeps working without the operation
  EXPECT_EQ(downloaded<float>(context(), z, 100), zeros);
  for (int launch = 0; launch < 3; ++launch) ASSERT_OK(tuff_graph_launch(context(), graph));
  EXPECT_EQ(downloaded<float>(context(), y, 100), ramp(100, 6));
  EXPECT_EQ(downloaded<float>(context(), z, 100), ramp(100, 12));  // 2 + 4 + 6
  ASSERT_OK(tuff_profile_begin(context()));
  ASSERT_OK(tuff_graph_launch(context(), graph));
  ASSERT_OK(tuff_profile_end(context()));
  if (vulkan()) {
    EXPECT_NE(trace_of(context()).dump().find("n=100 a=2 x[100] y[100]"), std::string::npos);
  }
  ASSERT_OK(tuff_graph_destroy(graph));
}

TUFF_ON_BACKENDS(Ops);

class OpKernel : public OnVulkan {};

TEST_F(OpKernel, MustBeTheOneThatIsDeclared) {
  const BadDeclaration rows[] = {
      {"bindings", [](auto& d) { d.arguments.pop_back(); }},
      {"bindings",
       [](auto& d) {
         d.arguments.push_back({"z", TUFF_OP_BUFFER, TUFF_F32, TUFF_OP_READ, 0, "n", 0, 0});
       }},
      {"push constants", [](auto& d) { d.arguments[0].dtype = TUFF_U64; }},
      {"push constants",
       [](auto& d) {
         d.arguments.push_back({"z", TUFF_OP_SCALAR, TUFF_F32, 0, 0, nullptr, 0, 0});
       }},
      {"writes binding 1", [](auto& d) { d.arguments[3].access = TUFF_OP_READ; }},
      {"reads binding 1", [](auto& d) { d.arguments[3].access = TUFF_OP_WRITE; }},
      {"reads binding 0", [](auto& d) { d.arguments[2].access = TUFF_OP_WRITE; }},
  };
  for (const BadDeclaration& row : rows) {
    Declaration declaration;
    row.spoil(declaration);
    tuff_op op = 0;
    EXPECT_FAILS(declaration.add(context(), op), TUFF_ERROR_INVALID_ARGUMENT, "tuff_op_register", "test.saxpy");
    EXPECT_NE(last_error().find(row.word), std::string::npos) << last_error();
  }
  Declaration declaration;
  declaration.kernel = glsl("#version 450\nvoid main() { nonsense; }\n");
  tuff_op op = 0;
  EXPECT_FAILS(declaration.add(context(), op), TUFF_ERROR_COMPILE_FAILED, "tuff_op_register", "nonsense");
}

TEST_F(OpKernel, WorkgroupsFollowFromTheArguments) {
  // How many invocations there are, and how many workgroups in x and y.
  constexpr const char* kCount = R"(#version 450
layout(local_size_x = 8, local_size_y = 4) in;
layout(binding = 0) buffer Count { uint count[]; };
layout(push_constant) uniform Parameters { uint rows; uint columns; };
void main() { atomicAdd(count[0], 1); atomicMax(count[1], gl_NumWorkGroups.x); atomicMax(count[2], gl_NumWorkGroups.y); }
)";
  struct Row {
    const char *groups, *invocations;
    uint32_t x, y;
  };
  const Row rows[] = {{"columns, rows", nullptr, 20, 10},
                      {"1,rows * 2", nullptr, 1, 20},
                      {nullptr, "columns,rows", 3, 3},
                      {nullptr, "min(columns, 17), max((rows), ceil_div(1, 2)), 1", 3, 3},
                      {nullptr, "columns - 3", 3, 1}};
  for (const Row& row : rows) {
    Declaration declaration;
    declaration.kernel = glsl(kCount);
    declaration.arguments = {{"rows", TUFF_OP_SCALAR, TUFF_U32, 0, 0, nullptr, 0, 0},
                             {"columns", TUFF_OP_SCALAR, TUFF_U32, 0, 0, nullptr, 0, 0},
                             {"count", TUFF_OP_BUFFER, TUFF_U32, TUFF_OP_READ_WRITE, 0, "3", 0, 0}};
    declaration.desc.flops = nullptr;
    declaration.desc.groups = row.groups;
    declaration.desc.invocations = row.invocations;
    const OwnOp op = make_op(context(), declaration);
    const OwnBuffer count(context(), 12);
    ASSERT_OK(run(context(), op, {integer(10), integer(20), buffer(count)}));
    EXPECT_EQ(download<uint32_t>(count, 3), (std::vector<uint32_t>{32 * row.x * row.y, row.x, row.y}));
  }
}

TEST_F(OpKernel, TooManyWorkgroupsAreRefused) {
  Declaration declaration;
  declaration.arguments[2].elements = declaration.arguments[3].elements = "1";
  declaration.arguments[0].maximum = 0;
  declaration.desc.invocations = nullptr;
  declaration.desc.groups = "n * n";
  const OwnOp op = make_op(context(), declaration);
  const OwnBuffer x(context(), 4), y(context(), 4);
  EXPECT_FAILS(run(context(), op, {integer(UINT32_MAX), real(1), buffer(x), buffer(y)}), TUFF_ERROR_LIMIT_EXCEEDED,
               "tuff_op_run", "groups");
}

TEST_F(OpKernel, ViewsBeginWhereTheDeviceBinds) {
  Declaration declaration;
  const OwnOp op = make_op(context(), declaration);
  const uint64_t alignment = properties_of(context()).min_storage_alignment;
  const OwnBuffer x = upload(ramp(1000, 1)), y = upload(std::vector<float>(1000, 0));
  tuff_buffer part = 0, odd = 0;
  ASSERT_OK(tuff_view(x, 256, 400, &part));
  ASSERT_OK(tuff_view(x, 4, 400, &odd));
  const OwnBuffer view(part), misaligned(odd);
  ASSERT_OK(run(context(), op, {integer(100), real(1), buffer(view), buffer(y)}));
  std::vector<float> expected = ramp(164, 1);
  expected.erase(expected.begin(), expected.begin() + 64);
  EXPECT_EQ(download<float>(y, 100), expected);
  if (alignment > 4) {
    EXPECT_FAILS(run(context(), op, {integer(100), real(1), buffer(misaligned), buffer(y)}),
                 TUFF_ERROR_INVALID_ARGUMENT, "tuff_op_run", "x");
  }
}

TEST_F(OpKernel, FlopsCountAsUsage) {
  const OwnContext own("vulkan");
  Declaration declaration;
  const OwnOp op = make_op(own, declaration);
  const OwnBuffer x = uploaded(own, ramp(100, 1)), y = uploaded(own, ramp(100, 1));
  ASSERT_OK(tuff_synchronize(own));
  const tuff_usage before = usage_of(own);
  ASSERT_OK(run(own, op, {integer(100), real(2), buffer(x), buffer(y)}));
  const tuff_usage after = usage_of(own);
  EXPECT_EQ(after.flops - before.flops, 200);
  EXPECT_EQ(after.bytes_moved - before.bytes_moved, 800);
  EXPECT_EQ(after.calls - before.calls, 1u);
  EXPECT_EQ(after.dispatches - before.dispatches, 1u);
}

}  // namespace
}  // namespace tuff_test::op_test
