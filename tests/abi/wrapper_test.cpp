// Uses include/tuff/tuff.hpp as a program would; built with exceptions and without.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>
#include <vector>

#include "tuff/tuff.hpp"

namespace {

#define EXPECT(condition)                                         \
  do {                                                            \
    if (!(condition)) {                                           \
      std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                               \
    }                                                             \
  } while (false)

static_assert(!std::is_copy_constructible_v<tuff::Context> && !std::is_copy_assignable_v<tuff::Context>);
static_assert(!std::is_copy_constructible_v<tuff::Buffer> && !std::is_copy_assignable_v<tuff::Buffer>);
static_assert(std::is_nothrow_move_constructible_v<tuff::Context> && std::is_nothrow_move_assignable_v<tuff::Buffer>);

#ifdef TUFF_NO_EXCEPTIONS
// The code shared by both styles is written once: take() unwraps a result, done() a status, code_of() an error.
template <typename T>
T take(tuff::Result<T> result) {
  if (!result) std::printf("%s\n", result.message().c_str());
  EXPECT(result.ok());
  return std::move(*result);
}
void done(const tuff::Status& status) {
  if (!status) std::printf("%s\n", status.message().c_str());
  EXPECT(status.ok());
}
#define TAKE(call) take(call)
#define DONE(call) done(call)
#define EXPECT_STATUS(call, expected, function)                  \
  do {                                                           \
    const tuff::Status status = (call);                          \
    EXPECT(!status && status.code() == (expected));              \
    EXPECT(status.message().rfind(function ": ", 0) == 0);       \
    EXPECT(status.message() == tuff::last_error());              \
    EXPECT(status.name()[0] == 'T' && status.hint()[0] != '\0'); \
  } while (false)
#else
#define TAKE(call) (call)
#define DONE(call) (call)
#define EXPECT_STATUS(call, expected, function)                       \
  do {                                                                \
    bool thrown = false;                                              \
    try {                                                             \
      static_cast<void>(call);                                        \
    } catch (const tuff::Exception& error) {                          \
      thrown = true;                                                  \
      EXPECT(error.status() == (expected));                           \
      EXPECT(std::string(error.what()).rfind(function ": ", 0) == 0); \
      EXPECT(error.what() == tuff::last_error());                     \
      EXPECT(error.name()[0] == 'T' && error.hint()[0] != '\0');      \
    }                                                                 \
    EXPECT(thrown);                                                   \
  } while (false)
#endif

void ownership(const tuff::Context& context) {
  tuff::Buffer empty;
  EXPECT(!empty && empty.handle() == TUFF_NULL_HANDLE);
  tuff::Buffer buffer = TAKE(context.alloc<float>(8));
  const tuff_buffer handle = buffer.handle();
  EXPECT(TAKE(buffer.size_bytes()) == 32);
  EXPECT(TAKE(context.stats()).live_buffers == 1);
  tuff::Buffer moved = std::move(buffer);
  EXPECT(moved.handle() == handle && buffer.handle() == TUFF_NULL_HANDLE);  // NOLINT: what moving leaves is promised
  tuff::Buffer* const same = &moved;
  moved = std::move(*same);
  EXPECT(moved.handle() == handle);
  {
    tuff::Buffer part = TAKE(moved.view(8, 16));
    EXPECT(TAKE(context.stats()).live_buffers == 2);
  }
  EXPECT(TAKE(context.stats()).live_buffers == 1);
  const tuff_buffer released = moved.release();
  EXPECT(!moved && tuff_free(released) == TUFF_OK);
  EXPECT(TAKE(context.stats()).live_buffers == 0);
}

void copies(const tuff::Context& context) {
  const std::vector<float> x = {-1, 2, -3, 4};
  tuff::Buffer a = TAKE(context.upload(x)), b = TAKE(context.alloc<float>(4)), c = TAKE(context.upload({1.0f, 2.0f}));
  EXPECT(TAKE(c.size_bytes()) == 8);
  DONE(context.unary(tuff::DType::f32, tuff::Unary::relu, a, b, 4));
  std::array<float, 4> y{};
  DONE(b.download(y));
  EXPECT((y == std::array<float, 4>{0, 2, 0, 4}));
  DONE(b.upload_at(4, std::array<float, 2>{7, 8}));
  DONE(b.copy_from(a, 4, 12, 8));
  EXPECT((TAKE(b.download_vector<float>(4)) == std::vector<float>{0, 7, 8, -3}));
  DONE(b.fill<float>(5, 2, 8));
  float tail[2];
  DONE(b.download_at(8, tail));
  EXPECT(tail[0] == 5 && tail[1] == 5);

  tuff::AllocOptions options;
  options.host_visible = true;
  options.name = "mapped";
  tuff::Buffer visible = TAKE(context.alloc<float>(3, options));
  {
    auto mapping = TAKE(visible.map<float>());
    EXPECT(mapping.size() == 3);
    for (float& value : mapping) value = 2.5f;
    EXPECT_STATUS(visible.fill<float>(1, 3), TUFF_ERROR_INVALID_ARGUMENT, "tuff_fill");
  }
  EXPECT((TAKE(visible.download_vector<float>(3)) == std::vector<float>{2.5f, 2.5f, 2.5f}));
}

// Runs on a Vulkan device.
void kernels(const tuff::Context& context) {
  const char* source = R"(#version 450
layout(constant_id = 4) const float shift = 0;
layout(constant_id = 5) const int sign = 1;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Push { float a, b; };
void main() { y[gl_WorkGroupID.x] = FACTOR * sign * x[gl_WorkGroupID.x] + a + b + shift; }
)";
  tuff::KernelOptions options;
  options.name = "wrapper.comp";
  options.defines = {{"FACTOR", "10"}};
  options.constants = {tuff::constant(4, 0.5f), tuff::constant(5, -1)};
  tuff::Buffer x = TAKE(context.upload({1.0f, 2.0f})), y = TAKE(context.alloc<float>(2));
  struct Push {
    float a, b;
  };
  const tuff::Expr expr = TAKE(
      context.expression("x * s + 1", {{"x", TUFF_F32, 0}, {"s", TUFF_F32, TUFF_EXPR_SCALAR}}, {{"y", TUFF_F32, 0}}));
  tuff_expr_operand from = {}, scale = {}, to = {};
  from.buffer = x.handle(), scale.value = 3, to.buffer = y.handle();
  DONE(expr.run(context.handle(), {2}, {from, scale}, {to}));
  EXPECT((TAKE(y.download_vector<float>(2)) == std::vector<float>{4, 7}));
  EXPECT_STATUS(expr.run(context.handle(), {2}, {from}, {to}), TUFF_ERROR_INVALID_ARGUMENT, "tuff_expr_run");
  EXPECT_STATUS(context.expression("x", {}, {{"y", TUFF_F32, 0}}), TUFF_ERROR_INVALID_ARGUMENT, "tuff_expr_create");
  tuff::Kernel kernel = TAKE(context.kernel(source, options));
  EXPECT(TAKE(kernel.info()).push_bytes == sizeof(Push) && TAKE(kernel.info()).written == 2);
  DONE(kernel.launch({2, 1, 1}, {x, y}, Push{100, 200}));
  EXPECT((TAKE(y.download_vector<float>(2)) == std::vector<float>{290.5f, 280.5f}));
  EXPECT_STATUS(kernel.launch({2, 1, 1}, {x, y}), TUFF_ERROR_INVALID_ARGUMENT, "tuff_kernel_launch");
  EXPECT_STATUS(kernel.launch({2, 1, 1}, {x, nullptr}, Push{}), TUFF_ERROR_INVALID_ARGUMENT, "tuff_kernel_launch");
  EXPECT_STATUS(context.kernel("#version 450\nvoid main() { x }"), TUFF_ERROR_COMPILE_FAILED, "tuff_kernel_create");
  EXPECT_STATUS(context.kernel_spirv(std::vector<uint32_t>(8)), TUFF_ERROR_INVALID_ARGUMENT, "tuff_kernel_create");
  const tuff_op_argument arguments[] = {{"n", TUFF_OP_SCALAR, TUFF_I32, 0, 0, nullptr, 0, 100},
                                        {"a", TUFF_OP_SCALAR, TUFF_F32, 0, 0, nullptr, 0, 0},
                                        {"x", TUFF_OP_BUFFER, TUFF_F32, TUFF_OP_READ, 0, "n", 0, 0},
                                        {"y", TUFF_OP_BUFFER, TUFF_F32, TUFF_OP_WRITE, 0, "n", 0, 0}};
  tuff_op_desc desc = {};
  desc.name = "wrapper.scale";
  desc.arguments = arguments;
  desc.argument_count = 4;
  desc.groups = "n";
  const char* scaling = R"(#version 450
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Push { int n; float a; };
void main() { y[gl_WorkGroupID.x] = a * x[gl_WorkGroupID.x]; }
)";
  tuff::Op op = TAKE(context.register_op(desc, scaling));
  DONE(context.run(op, {2, 3.0f, x, y}));
  EXPECT((TAKE(y.download_vector<float>(2)) == std::vector<float>{3, 6}));
  EXPECT(TAKE(context.find_op("wrapper.scale")) == op.handle());
  EXPECT(TAKE(context.list_ops()) == "wrapper.scale(n: i32 0..100, a: f32, x: read f32[n], y: write f32[n])");
  EXPECT_STATUS(context.run(op, {2, 3, x, y}), TUFF_ERROR_INVALID_ARGUMENT, "tuff_op_run");
  EXPECT_STATUS(context.run(op, {2, 3.0, x, nullptr}), TUFF_ERROR_INVALID_ARGUMENT, "tuff_op_run");
  EXPECT_STATUS(context.register_op(desc), TUFF_ERROR_INVALID_ARGUMENT, "tuff_op_register");
  EXPECT_STATUS(context.find_op("wrapper.none"), TUFF_ERROR_INVALID_ARGUMENT, "tuff_op_find");
  EXPECT(TAKE(context.usage()).calls > 0);
  EXPECT(TAKE(tuff::device_sensors(0)).heap_bytes > 0);
  op.reset();
  EXPECT(TAKE(context.list_ops()).empty());
  tuff::Kernel moved = std::move(kernel);
  EXPECT(moved && !kernel);  // NOLINT: what moving leaves is promised
  moved.reset();
  EXPECT(!moved);
}

void memory(tuff::Context& context) {
  const tuff::MemoryStats before = TAKE(context.memory());
  tuff::AllocOptions options;
  options.host_pinned = true;
  tuff::Buffer pinned = TAKE(context.alloc<float>(4, options));
  EXPECT(TAKE(pinned.map<float>()).size() == 4);
  EXPECT(TAKE(context.memory()).live_allocations == before.live_allocations + 1);
  pinned.reset();
  DONE(context.reset_peak());
  EXPECT(TAKE(context.memory()).bytes_peak == before.bytes_in_use);
  EXPECT(TAKE(context.compact()).done == 1);
  DONE(context.trim());

  alignas(4096) static float host[1024] = {1, 2, 3};
  tuff::Buffer imported = TAKE(context.import_host(host, sizeof host));
  DONE(context.unary(tuff::DType::f32, tuff::Unary::neg, imported, imported, 3));
  DONE(context.synchronize());
  EXPECT(host[2] == -3);
  EXPECT_STATUS(context.import_host(host + 1, sizeof host), TUFF_ERROR_INVALID_ARGUMENT, "tuff_buffer_import_host");
  // The host backend has no memory descriptors.
  options.host_pinned = false, options.exportable = true;
  EXPECT_STATUS(context.alloc<float>(4, options), TUFF_ERROR_UNSUPPORTED, "tuff_alloc_ex");
  EXPECT_STATUS(imported.export_fd(), TUFF_ERROR_UNSUPPORTED, "tuff_buffer_export_fd");
  tuff::MemoryFd nothing = {};
  nothing.struct_size = sizeof(nothing);
  EXPECT_STATUS(context.import_fd(nothing), TUFF_ERROR_UNSUPPORTED, "tuff_buffer_import_fd");

  tuff::Limits limits = {};
  limits.memory_bytes = 1000;
  DONE(context.set_limits(limits));
  tuff::Buffer held = TAKE(context.alloc_bytes(800));
  const auto let_go = [](void* user, const tuff_memory_pressure*) { static_cast<tuff::Buffer*>(user)->reset(); };
  DONE(context.set_memory_callback(let_go, &held));
  tuff::Buffer wanted = TAKE(context.alloc_bytes(800));
  EXPECT(!held && wanted);
  DONE(context.set_memory_callback(nullptr, nullptr));
  DONE(context.set_limits({}));
}

void operations(const tuff::Context& context) {
  using tuff::DType;
  const std::vector<float> ones(64, 1.0f);
  tuff::Buffer a = TAKE(context.upload(ones)), b = TAKE(context.upload(ones)), c = TAKE(context.alloc<float>(64));
  const auto expect_all = [&](float value, size_t count) {
    for (float got : TAKE(c.download_vector<float>(count))) EXPECT(got == value);
  };
  DONE(context.gemm(DType::f32, tuff::Transpose::no, tuff::Transpose::yes, 8, 8, 8, 1, a, 8, b, 8, 0, c, 8));
  expect_all(8, 64);
  tuff_gemm_desc desc = {};
  desc.dtype = TUFF_F32;
  desc.m = desc.n = desc.k = 8;
  desc.alpha = 2;
  desc.a = a.handle(), desc.b = b.handle(), desc.c = c.handle();
  DONE(context.gemm(desc));
  expect_all(16, 64);
  desc.alpha = -1;
  desc.c_type = static_cast<int32_t>(DType::f32);
  desc.bias = b.handle(), desc.bias_axis = static_cast<int32_t>(tuff::BiasAxis::columns);
  desc.activation = static_cast<int32_t>(tuff::Activation::relu);
  desc.precision = static_cast<int32_t>(tuff::Precision::allow_bf16);
  DONE(context.gemm(desc));
  expect_all(0, 64);
  DONE(context.batched_gemm(DType::f32, tuff::Transpose::no, tuff::Transpose::no, 4, 4, 4, 1, a, 4, 16, b, 4, 0, 0, c,
                            4, 16, 4));
  expect_all(4, 64);
  DONE(context.conv2d(DType::f32, a, {1, 1, 8, 8}, b, {1, 1, 3, 3}, c, {1, 1, 6, 6}));
  expect_all(9, 36);
  DONE(context.attention(DType::f32, a, a, b, c, 1, 2, 4, 4, 8, 0.5, tuff::Causal::none));
  expect_all(1, 64);
  DONE(context.reduce(DType::f32, tuff::Reduce::sum, a, c, {8, 8}, 1));
  expect_all(8, 8);
  DONE(context.softmax(DType::f32, a, c, std::vector<uint64_t>{4, 16}, 0));
  expect_all(0.25f, 64);
  DONE(context.binary(DType::f32, tuff::Binary::add, a, b, c, 64));
  expect_all(2, 64);
  DONE(context.unary(DType::f32, tuff::Unary::neg, c, c, 64));
  expect_all(-2, 64);
  DONE(context.unary(DType::f32, tuff::Unary::neg, nullptr, nullptr, 0));
  // c is -2 throughout: a row of equal values has no deviation, and one of two opposite values is already normalised.
  DONE(context.layer_norm(DType::f32, c, nullptr, nullptr, c, 8, 8, 1e-5));
  expect_all(0, 64);
  DONE(context.rms_norm(DType::f32, a, b, c, 4, 16, 0));
  expect_all(1, 64);
  DONE(context.group_norm(DType::f32, a, nullptr, b, c, 2, 4, 8, 2, 1e-5));
  expect_all(1, 64);
  DONE(context.batch_norm(DType::f32, a, a, b, nullptr, b, c, 2, 4, 8, 0));
  expect_all(1, 64);
  DONE(context.permute(DType::f32, a, c, {4, 2, 8}, {2, 0, 1}));
  expect_all(1, 64);
  DONE(context.slice(DType::f32, a, c, {8, 8}, {1, 2}, {4, 6}));
  expect_all(1, 24);
  DONE(context.concat(DType::f32, {a, b}, {4, 4}, c, {8, 8}, 0));
  expect_all(1, 64);
  // The bits of 1.0f are out of range as an index.
  DONE(context.gather(DType::f32, DType::u32, a, b, c, {8, 4}, 0, 16));
  expect_all(0, 64);
  tuff_pool_desc pool = {};
  pool.dtype = TUFF_F32;
  pool.input = a.handle(), pool.output = c.handle();
  pool.batch = pool.channels = 1, pool.spatial = 2;
  for (int i = 0; i < 2; ++i) pool.in_shape[i] = 8, pool.out_shape[i] = 4, pool.kernel[i] = 2;
  DONE(context.max_pool(pool));
  expect_all(1, 16);
  DONE(context.avg_pool(pool));
  expect_all(1, 16);
  tuff_resize_desc resize = {};
  resize.dtype = TUFF_F32;
  resize.input = a.handle(), resize.output = c.handle();
  resize.batch = resize.channels = 1, resize.spatial = 2;
  for (int i = 0; i < 2; ++i) resize.in_shape[i] = 4, resize.out_shape[i] = 8;
  DONE(context.resize(resize));
  expect_all(1, 64);
  DONE(context.rope(DType::f32, a, c, 1, 2, 1, 32));
  expect_all(1, 64);
  DONE(context.cast(DType::f32, DType::i32, a, c, 64));
  DONE(context.cast(DType::i32, DType::f32, c, c, 64));
  expect_all(1, 64);
  DONE(context.synchronize());
}

// Runs on either backend.
void streams(const tuff::Context& context) {
  static_assert(!std::is_copy_constructible_v<tuff::Stream> && std::is_nothrow_move_assignable_v<tuff::Stream>);
  static_assert(!std::is_copy_constructible_v<tuff::Event> && !std::is_copy_constructible_v<tuff::Graph>);
  using tuff::DType;
  tuff::Stream first = TAKE(context.stream("first")), second = TAKE(context.stream());
  EXPECT(first && first.context() == context.handle() && first.handle() != second.handle());
  tuff::AllocOptions options;
  options.host_pinned = true;
  tuff::Buffer staging = TAKE(context.alloc<float>(4, options));
  tuff::Buffer x = TAKE(context.alloc<float>(4)), y = TAKE(context.alloc<float>(4));
  const auto host = TAKE(staging.map<float>());
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i);

  // Uploads on one stream, computes on the other, downloads on the first.
  const tuff::Event begin = TAKE(first.record());
  DONE(first.copy_htod_async(x, host));
  tuff::Event there = TAKE(context.event(false));
  DONE(first.record(there));
  DONE(second.wait(there));
  DONE(second.binary(DType::f32, tuff::Binary::add, x, x, y, 4));
  DONE(first.wait(TAKE(second.record(false))));
  DONE(first.copy_dtoh_async(host, y));
  const tuff::Event end = TAKE(first.record());
  DONE(end.wait());
  EXPECT(TAKE(end.query()) && TAKE(there.query()));
  EXPECT(host[0] == 0 && host[1] == 2 && host[2] == 4 && host[3] == 6);
  EXPECT(TAKE(begin.elapsed(end)) >= 0);
  EXPECT_STATUS(begin.elapsed(there), TUFF_ERROR_INVALID_ARGUMENT, "tuff_event_elapsed");

  // The other copies, with parts of buffers.
  DONE(second.copy_htod_async(x, 8, host.data() + 1, 2));
  DONE(second.fill<float>(x, 9, 1));
  DONE(second.copy_dtod(y, x, 4, 12, 8));
  DONE(second.copy_htod(x, std::array<float, 1>{5}, 4));
  std::array<float, 4> back{};
  DONE(second.copy_dtoh(back, x));
  EXPECT((back == std::array<float, 4>{9, 5, 2, 4}));
  DONE(second.copy_dtoh_async(host.data(), y, 12, 1));
  DONE(second.synchronize());
  EXPECT(host[0] == 2);
  EXPECT_STATUS(second.copy_dtoh_async(back, x), TUFF_ERROR_INVALID_ARGUMENT, "tuff_copy_dtoh_async");

  tuff::Stream moved = std::move(first);
  EXPECT(moved && !first);  // NOLINT: what moving leaves is promised
  moved.reset();
  EXPECT(!moved);
  EXPECT_STATUS(moved.synchronize(), TUFF_ERROR_INVALID_HANDLE, "tuff_synchronize");
  EXPECT_STATUS(tuff::Event().wait(), TUFF_ERROR_INVALID_HANDLE, "tuff_event_wait");
}

// Runs on a Vulkan device.
void graphs(const tuff::Context& context) {
  tuff::Stream stream = TAKE(context.stream("graphs"));
  tuff::Buffer x = TAKE(context.upload({1.0f, 2.0f})), y = TAKE(context.upload({10.0f, 20.0f}));
  const auto twice = [&] { DONE(stream.binary(tuff::DType::f32, tuff::Binary::add, x, x, x, 2)); };
  tuff::Graph graph = TAKE(stream.capture(twice));
  EXPECT((TAKE(x.download_vector<float>(2)) == std::vector<float>{1, 2}));
  DONE(stream.launch(graph));
  DONE(context.wait(TAKE(stream.record())));
  DONE(context.launch(graph));
  EXPECT((TAKE(x.download_vector<float>(2)) == std::vector<float>{4, 8}));
  DONE(graph.bind(x, y));
  DONE(context.launch(graph));
  EXPECT((TAKE(x.download_vector<float>(2)) == std::vector<float>{4, 8}));
  EXPECT((TAKE(y.download_vector<float>(2)) == std::vector<float>{20, 40}));

  EXPECT_STATUS(stream.end_graph(), TUFF_ERROR_INVALID_ARGUMENT, "tuff_graph_end");
  DONE(stream.begin_graph());
  EXPECT_STATUS(stream.capture(twice), TUFF_ERROR_INVALID_ARGUMENT, "tuff_graph_begin");
  twice();
  graph = TAKE(stream.end_graph());
  DONE(stream.launch(graph));
  DONE(stream.synchronize());
  EXPECT((TAKE(x.download_vector<float>(2)) == std::vector<float>{8, 16}));
#ifndef TUFF_NO_EXCEPTIONS
  bool thrown = false;
  try {
    static_cast<void>(stream.capture([&] {
      twice();
      throw 7;
    }));
  } catch (int) {
    thrown = true;
  }
  EXPECT(thrown);
  twice();  // the capture has ended, so this runs at once
  DONE(stream.synchronize());
  EXPECT((TAKE(x.download_vector<float>(2)) == std::vector<float>{16, 32}));
#endif
}

void errors(const tuff::Context& context) {
  tuff::Buffer small = TAKE(context.alloc<float>(2));
  EXPECT_STATUS(context.unary(tuff::DType::f32, tuff::Unary::neg, small, small, 3), TUFF_ERROR_INVALID_ARGUMENT,
                "tuff_unary");
  EXPECT_STATUS(small.view(4, 8), TUFF_ERROR_INVALID_ARGUMENT, "tuff_view");
  EXPECT_STATUS(small.upload(std::vector<float>(3)), TUFF_ERROR_INVALID_ARGUMENT, "tuff_copy_htod");
  EXPECT_STATUS(context.reduce(tuff::DType::f32, tuff::Reduce::sum, small, small, {1, 1, 1, 1, 1, 1, 1, 1, 1}, 0),
                TUFF_ERROR_INVALID_ARGUMENT, "tuff_reduce");
  tuff::ContextOptions wrong;
  wrong.backend = "abacus";
  EXPECT_STATUS(tuff::Context::create(wrong), TUFF_ERROR_INVALID_ARGUMENT, "tuff_context_create");
  EXPECT_STATUS(tuff::Context().synchronize(), TUFF_ERROR_INVALID_HANDLE, "tuff_synchronize");
  EXPECT_STATUS(tuff::Buffer().size_bytes(), TUFF_ERROR_INVALID_HANDLE, "tuff_buffer_size");
}

}  // namespace

void profiles(const tuff::Context& context) {
  const auto relu = [&](const tuff::Buffer& x) { DONE(context.unary(tuff::DType::f32, tuff::Unary::relu, x, x, 8)); };
  tuff::Buffer x = TAKE(context.alloc<float>(8));
  tuff::Profile empty;
  EXPECT(!empty);
  tuff::Profile profile = TAKE(context.profile());
  EXPECT(profile);
  EXPECT_STATUS(context.profile(), TUFF_ERROR_INVALID_ARGUMENT, "tuff_profile_begin");
  relu(x);
  DONE(profile.end());
  EXPECT(!profile);
  const std::string table = TAKE(profile.table());
  EXPECT(table.find("\nunary") != std::string::npos);
  EXPECT(table.find('\0') == std::string::npos);
  EXPECT_STATUS(profile.write("no such folder/trace.json"), TUFF_ERROR_IO, "tuff_profile_write");
  { const tuff::Profile scope = TAKE(context.profile()); }
  EXPECT(tuff_profile_end(context.handle()) == TUFF_ERROR_INVALID_ARGUMENT);  // the scope has ended it
}

void peers(tuff::Context& context, const tuff::Context& other) {
  const tuff::Buffer source = TAKE(other.upload({1.0f, 2.0f, 3.0f}));
  tuff::Buffer target = TAKE(context.alloc<float>(4));
  DONE(target.copy_from_peer(source, 8, 4, 4));
  EXPECT(TAKE(target.download_vector<float>(4)) == (std::vector<float>{0, 2, 3, 0}));
  EXPECT_STATUS(target.copy_from_peer(source, 16), TUFF_ERROR_INVALID_ARGUMENT, "tuff_copy_peer");
  static_cast<void>(TAKE(tuff::device_refusals()));
}

int main() {
  EXPECT(tuff::version() == TUFF_VERSION && tuff::abi_version() == TUFF_ABI_VERSION);
  static_cast<void>(TAKE(tuff::device_count()));
  tuff::ContextOptions options;
  options.backend = "host";
  tuff::Buffer outlives;
  {
    tuff::Context context = TAKE(tuff::Context::create(options));
    EXPECT(TAKE(context.info()).type == TUFF_DEVICE_HOST);
    EXPECT(TAKE(context.supports("gemm")) && !TAKE(context.supports("nonsense")));
    ownership(context);
    copies(context);
    memory(context);
    operations(context);
    streams(context);
    errors(context);
    profiles(context);
    peers(context, TAKE(tuff::Context::create(options)));
    outlives = TAKE(context.alloc<float>(1));
    tuff::Context moved = std::move(context);
    EXPECT(!context && moved);  // NOLINT: what moving leaves is promised
  }
  if (TAKE(tuff::device_count()) != 0) {
    const tuff::Context context = TAKE(tuff::Context::create());
    kernels(context);
    streams(context);
    graphs(context);
  }
  return 0;  // outlives' handle is stale by now; its destructor ignores that
}
