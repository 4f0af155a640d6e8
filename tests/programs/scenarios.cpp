#include "programs/scenarios.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "support/call_table.hpp"

namespace tuff_test {

const char* backend = "vulkan";
Failures* failures = nullptr;

bool made(const char* what, const std::function<tuff_status()>& call, tuff_status expected, Then then) {
  tuff_status status = call();
  if (status == expected) return true;
  if (!failures->excuses(what, status, then)) {
    problem("%s answers %s", what, tuff_status_name(status));
    return false;
  }
  status = call();
  if (status != expected) problem("%s, repeated, answers %s", what, tuff_status_name(status));
  return status == expected;
}

tuff_context new_context(int32_t prewarm) {
  auto desc = sized<tuff_context_desc>();
  desc.backend = backend;
  desc.prewarm = prewarm;
  tuff_context context = 0;
  MADE(tuff_context_create(&desc, &context));
  return context;
}

namespace {

bool vulkan() { return std::strcmp(backend, "vulkan") == 0; }

class Context {
 public:
  explicit Context(int32_t prewarm = 0) : handle_(new_context(prewarm)) {}
  ~Context() { MADE_OR_LEFT(tuff_context_destroy(handle_)); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  operator tuff_context() const { return handle_; }  // NOLINT(google-explicit-constructor)

 private:
  tuff_context handle_;
};

class Buffer {
 public:
  Buffer(tuff_context context, uint64_t bytes, uint32_t flags = 0, const char* name = nullptr) {
    auto desc = sized<tuff_alloc_desc>();
    desc.bytes = bytes, desc.flags = flags, desc.name = name;
    MADE(tuff_alloc_ex(context, &desc, &handle_));
  }
  explicit Buffer(tuff_buffer handle) : handle_(handle) {}
  ~Buffer() { free(); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  operator tuff_buffer() const { return handle_; }  // NOLINT(google-explicit-constructor)
  void free() {
    MADE_OR_LEFT(tuff_free(handle_));
    handle_ = TUFF_NULL_HANDLE;
  }

 private:
  tuff_buffer handle_ = TUFF_NULL_HANDLE;
};

// A buffer for each operand of any row of buffer_calls().
class Operands {
 public:
  explicit Operands(tuff_context context) {
    for (tuff_buffer& handle : handles_) handle = own_.emplace_back(context, kCallBytes);
  }
  const tuff_buffer* data() const { return handles_; }
  tuff_buffer operator[](size_t i) const { return handles_[i]; }
  const tuff_buffer* begin() const { return std::begin(handles_); }
  const tuff_buffer* end() const { return std::end(handles_); }

 private:
  std::deque<Buffer> own_;
  tuff_buffer handles_[kCallBuffers];
};

void fill(tuff_stream stream, tuff_buffer buffer, uint64_t bytes, float value) {
  MADE(tuff_fill(stream, buffer, 0, bytes, &value, sizeof value));
}

void expect_all(tuff_stream stream, tuff_buffer buffer, size_t count, float wanted, const char* what) {
  std::vector<float> values(count, -1234.0f);
  MADE(tuff_copy_dtoh(stream, values.data(), buffer, 0, count * sizeof(float)));
  for (size_t i = 0; i < count; ++i) {
    if (values[i] == wanted) continue;
    return problem("%s: element %zu is %g and not %g", what, i, static_cast<double>(values[i]),
                   static_cast<double>(wanted));
  }
}

// --- the work -----------------------------------------------------------------------------------------------

constexpr uint64_t kCount = kCallBytes / sizeof(float);

// Calls a function that takes buffers, with the operands reset before each call. The results must be those of a call
// without failures.
void one_call(tuff_context context, size_t row) {
  static std::map<size_t, std::vector<unsigned char>> results;
  static std::map<size_t, std::vector<std::vector<uint8_t>>> contents;
  const BufferCall& call = buffer_calls()[row];
  std::deque<Buffer> own;
  std::vector<tuff_buffer> operands;
  const auto [given, first] = contents.try_emplace(row);
  if (first) given->second = call.contents([] { return 0.5; });
  for (const std::vector<uint8_t>& bytes : given->second) {
    operands.push_back(own.emplace_back(context, kCallBytes));
    MADE(tuff_copy_htod(context, operands.back(), 0, bytes.data(), kCallBytes));
  }
  bool failed = false;
  failures->begin();
  made(call.function, [&] {
    const tuff_status status = call.call(context, operands.data());
    failed = failed || status != TUFF_OK;
    return status;
  });
  failures->end();
  // Several dispatches change a matrix in place; if memory runs out between them, its contents are undefined
  // (docs/linear-algebra.md).
  const std::string_view name = call.function;
  if (failed &&
      (name == "tuff_lu" || name == "tuff_cholesky" || name == "tuff_lu_solve" || name == "tuff_triangular_solve")) {
    return;
  }
  std::vector<unsigned char> all(operands.size() * kCallBytes);
  for (size_t i = 0; i < operands.size(); ++i) {
    MADE(tuff_copy_dtoh(context, all.data() + i * kCallBytes, operands[i], 0, kCallBytes));
  }
  if (std::strcmp(call.function, "tuff_copy_htod") == 0) return;  // its bytes were downloaded by another row
  if (failures->counting()) {
    results[row] = all;
  } else if (results[row] != all) {
    problem("%s computes something else", call.function);
  }
}

void buffers(tuff_context context) {
  constexpr uint64_t kSizes[] = {64, 5000, 300, 70'000, 3'000'000, 1, 20'000'000};
  std::vector<tuff_buffer> all;
  for (const uint64_t bytes : kSizes) {
    tuff_buffer buffer = 0;
    if (MADE(tuff_alloc(context, bytes, &buffer))) all.push_back(buffer);
  }
  tuff_buffer view = 0;
  uint64_t bytes = 0;
  MADE(tuff_view(all[3], 400, 800, &view));
  MADE(tuff_buffer_size(view, &bytes));
  fill(context, view, 800, 3);
  expect_all(context, view, 200, 3, "a view");
  MADE(tuff_fill(context, view, 1, 5, "x", 1));  // not whole words
  for (const size_t i : {0, 2, 4, 1, 6, 3, 5}) MADE(tuff_free(all[i]));
  MADE(tuff_free(view));
  MADE(tuff_synchronize(context));
  const Buffer visible(context, 4096, TUFF_ALLOC_HOST_VISIBLE, "a name that is longer than a short string is");
  for (int round = 0; round < 2; ++round) {
    void* pointer = nullptr;
    MADE(tuff_map(visible, &pointer));
    if (pointer != nullptr) std::memset(pointer, 1, 4096);
    REFUSED(tuff_map(visible, &pointer), TUFF_ERROR_INVALID_ARGUMENT);
    MADE(tuff_unmap(visible));
  }
  {
    const Buffer mapped(context, 4096, TUFF_ALLOC_HOST_VISIBLE);
    void* pointer = nullptr;
    MADE(tuff_map(mapped, &pointer));
  }
  auto memory = sized<tuff_memory_stats>();
  MADE(tuff_context_memory(context, &memory));
  MADE(tuff_context_reset_peak(context));
  MADE(tuff_context_trim(context));
}

// Large enough for staging in chunks, and for threads that help with copies.
void transfers(tuff_context context) {
  constexpr uint64_t kBytes = 6u << 20;
  const Buffer buffer(context, kBytes), other(context, kBytes);
  std::vector<unsigned char> data(kBytes, 7), back(kBytes);
  MADE(tuff_copy_htod(context, buffer, 0, data.data(), kBytes));
  MADE(tuff_copy_dtod(context, other, 0, buffer, 0, kBytes));
  MADE(tuff_copy_htod(context, buffer, 100, back.data(), 1000));
  MADE(tuff_copy_dtoh(context, back.data(), other, 0, kBytes));
  if (back != data) problem("a copy has the wrong contents");
}

// Work whose result would differ if a failed call had taken effect.
void accumulate(tuff_context context) {
  constexpr uint64_t kSide = 96;
  const uint64_t bytes = kSide * kSide * sizeof(float);
  const Buffer a(context, bytes), b(context, bytes), c(context, bytes);
  fill(context, a, bytes, 1);
  fill(context, b, bytes, 2);
  fill(context, c, bytes, 5);
  for (int i = 0; i < 3; ++i) {
    MADE(tuff_gemm(context, TUFF_F32, TUFF_NO_TRANS, TUFF_TRANS, kSide, kSide, kSide, 1, a, kSide, b, kSide, 1, c,
                   kSide));
    MADE(tuff_binary(context, TUFF_F32, TUFF_BINARY_ADD, c, a, c, kSide * kSide));
  }
  expect_all(context, c, kSide * kSide, 5 + 3 * (2 * kSide + 1), "a sum of products");
}

void streams(tuff_context context) {
  auto named = sized<tuff_stream_desc>();
  named.name = "a stream with a name of some length";
  tuff_stream stream = 0, other = 0;
  tuff_event first = 0, second = 0;
  MADE(tuff_stream_create(context, &named, &stream));
  MADE(tuff_stream_create(context, nullptr, &other));
  MADE(tuff_event_create(context, nullptr, &first));
  MADE(tuff_event_create(context, nullptr, &second));
  const Buffer pinned(context, kCallBytes, TUFF_ALLOC_HOST_PINNED), x(context, kCallBytes), y(context, kCallBytes);
  void* memory = nullptr;
  MADE(tuff_map(pinned, &memory));
  auto* floats = static_cast<float*>(memory);
  std::fill_n(floats, kCount, 4.0f);
  MADE(tuff_event_record(stream, first));
  MADE(tuff_copy_htod_async(stream, x, 0, floats, kCallBytes));
  MADE(tuff_event_record(stream, second));
  MADE(tuff_stream_wait_event(other, second));
  MADE(tuff_unary(other, TUFF_F32, TUFF_UNARY_NEG, x, y, kCount));
  MADE(tuff_copy_dtoh_async(other, floats, y, 0, kCallBytes));
  MADE(tuff_synchronize(other));
  if (floats[17] != -4) problem("asynchronous copies brought %g", static_cast<double>(floats[17]));
  int32_t done = 0;
  double milliseconds = 0;
  MADE(tuff_event_query(second, &done));
  MADE(tuff_event_wait(second));
  MADE(tuff_event_elapsed(first, second, &milliseconds));
  REFUSED(tuff_copy_htod_async(stream, x, 0, &done, 4), TUFF_ERROR_INVALID_ARGUMENT);
  MADE(tuff_event_destroy(first));
  MADE(tuff_unary(stream, TUFF_F32, TUFF_UNARY_NEG, x, y, kCount));
  MADE(tuff_stream_destroy(stream));
  MADE(tuff_stream_destroy(other));
  MADE(tuff_event_destroy(second));
}

const char* const kKernel =
    "#version 450\n"
    "layout(local_size_x = 64) in;\n"
    "layout(binding = 0) readonly buffer X { float x[]; };\n"
    "layout(binding = 1) writeonly buffer Y { float y[]; };\n"
    "layout(push_constant) uniform P { float by; };\n"
    "void main() { y[gl_GlobalInvocationID.x] = by * x[gl_GlobalInvocationID.x]; }\n";

tuff_kernel new_kernel(tuff_context context) {
  auto desc = sized<tuff_kernel_desc>();
  desc.source = kKernel;
  desc.name = "a kernel with a name of some length.comp";
  tuff_kernel kernel = 0;
  MADE(tuff_kernel_create(context, &desc, &kernel));
  return kernel;
}

void kernels(tuff_context context) {
  if (!vulkan()) return;
  const tuff_kernel kernel = new_kernel(context);
  auto info = sized<tuff_kernel_properties>();
  MADE(tuff_kernel_info(kernel, &info));
  const Buffer x(context, kCallBytes), y(context, kCallBytes);
  fill(context, x, kCallBytes, 3);
  const tuff_buffer operands[] = {x, y};
  const float by = 2;
  MADE(tuff_kernel_launch(context, kernel, operands, 2, &by, sizeof by, kCount / 64, 1, 1));
  REFUSED(tuff_kernel_launch(context, kernel, operands, 1, &by, sizeof by, 1, 1, 1), TUFF_ERROR_INVALID_ARGUMENT);
  MADE(tuff_kernel_destroy(kernel));
  expect_all(context, y, kCount, 6, "a kernel's output");
}

void expressions(tuff_context context) {
  const tuff_expr_variable inputs[] = {{"a_name_of_some_length", TUFF_F32, 0}, {"s", TUFF_F32, TUFF_EXPR_SCALAR}};
  const tuff_expr_variable output{"y", TUFF_F32, 0};
  auto desc = sized<tuff_expr_desc>();
  desc.formula = "t = a_name_of_some_length * s; t > 0 ? t + 1 : exp(t)";
  desc.inputs = inputs, desc.input_count = 2, desc.outputs = &output, desc.output_count = 1;
  tuff_expr expr = 0;
  MADE(tuff_expr_create(context, &desc, &expr));
  const Buffer x(context, kCallBytes), y(context, kCallBytes);
  fill(context, x, kCallBytes, 3);
  tuff_expr_operand operands[2]{}, result{};
  operands[0].buffer = x, operands[1].value = 2, result.buffer = y;
  auto run = sized<tuff_expr_run_desc>();
  run.rank = 1, run.shape[0] = kCount;
  run.inputs = operands, run.input_count = 2, run.outputs = &result, run.output_count = 1;
  MADE(tuff_expr_run(context, expr, &run));
  run.input_count = 1;
  REFUSED(tuff_expr_run(context, expr, &run), TUFF_ERROR_INVALID_ARGUMENT);
  MADE(tuff_expr_destroy(expr));
  expect_all(context, y, kCount, 7, "an expression's output");
}

void graphs(tuff_context context) {
  if (!vulkan()) return;
  const tuff_kernel kernel = new_kernel(context);
  const Operands operands(context);
  const Buffer pinned(context, kCallBytes, TUFF_ALLOC_HOST_PINNED), sum(context, kCallBytes);
  const Buffer replacement(context, kCallBytes);
  void* memory = nullptr;
  MADE(tuff_map(pinned, &memory));
  for (const tuff_buffer operand : operands) fill(context, operand, kCallBytes, 0.5f);
  fill(context, sum, kCallBytes, 0);
  fill(context, replacement, kCallBytes, 0);
  tuff_graph graph = 0;
  MADE(tuff_graph_begin(context));
  for (const BufferCall& row : buffer_calls()) {
    const std::string function = row.function;
    if (!row.has_stream || function == "tuff_copy_htod" || function == "tuff_copy_dtoh") continue;
    made(row.function, [&] { return row.call(context, operands.data()); });
  }
  const float by = 2;
  fill(context, operands[0], kCallBytes, 3);
  MADE(tuff_kernel_launch(context, kernel, operands.data(), 2, &by, sizeof by, kCount / 64, 1, 1));
  MADE(tuff_binary(context, TUFF_F32, TUFF_BINARY_ADD, sum, operands[1], sum, kCount));
  MADE(tuff_copy_dtoh_async(context, memory, sum, 0, kCallBytes));
  MADE(tuff_graph_end(context, &graph));
  MADE(tuff_kernel_destroy(kernel));
  for (int i = 0; i < 2; ++i) MADE(tuff_graph_launch(context, graph));
  expect_all(context, sum, kCount, 12, "a graph's sum");
  if (static_cast<float*>(memory)[5] != 12) problem("a graph's copy has the wrong contents");
  MADE(tuff_graph_bind(graph, sum, replacement));
  MADE(tuff_graph_launch(context, graph));
  expect_all(context, replacement, kCount, 6, "a graph's sum in another buffer");
  expect_all(context, sum, kCount, 12, "the buffer that was replaced");
  MADE(tuff_graph_bind(graph, sum, sum));
  MADE(tuff_graph_destroy(graph));
}

void peers(tuff_context context) {
  constexpr uint64_t kBytes = 1u << 20;
  const Context other;
  {
    const Buffer x(context, kBytes), y(other, kBytes);
    fill(context, x, kBytes, 6);
    for (const uint64_t bytes : {uint64_t{4096}, kBytes, kBytes}) {
      MADE(tuff_copy_peer(other, y, 0, context, x, 0, bytes));
    }
    expect_all(other, y, kBytes / 4, 6, "a copy between contexts");
    MADE(tuff_context_trim(other));
    MADE(tuff_copy_peer(context, x, 0, other, y, 0, kBytes));
    MADE(tuff_context_trim(context));
  }
}

void profiles(tuff_context context) {
  const Buffer x(context, kCallBytes);
  fill(context, x, kCallBytes, 1);
  MADE(tuff_profile_begin(context));
  for (int i = 0; i < 3; ++i) MADE(tuff_unary(context, TUFF_F32, TUFF_UNARY_NEG, x, x, kCount));
  const Buffer visible(context, 4096, TUFF_ALLOC_HOST_VISIBLE);
  void* pointer = nullptr;
  MADE(tuff_map(visible, &pointer));
  MADE(tuff_unmap(visible));
  tuff_stream stream = 0;
  MADE(tuff_stream_create(context, nullptr, &stream));
  MADE(tuff_binary(stream, TUFF_F32, TUFF_BINARY_ADD, x, x, x, kCount));
  char text[4096];
  MADE(tuff_profile_table(context, text, sizeof text, nullptr));
  MADE(tuff_profile_end(context));
  REFUSED(tuff_profile_end(context), TUFF_ERROR_INVALID_ARGUMENT);
  const struct Trace {
    std::string path = (std::filesystem::temp_directory_path() / ("tuff-trace-" + std::to_string(getpid()))).string();
    ~Trace() { unlink(path.c_str()); }
  } trace;
  MADE(tuff_profile_write(context, trace.path.c_str()));
  MADE(tuff_stream_destroy(stream));
  expect_all(context, x, kCount, -2, "what was profiled");
}

void sharing(tuff_context context) {
  int32_t exports = 0, imports = 0;
  MADE(tuff_supports(context, "memory_fd", &exports));
  MADE(tuff_supports(context, "import_host", &imports));
  if (exports != 0) {
    Buffer shared(context, 8192, TUFF_ALLOC_EXPORTABLE);
    auto info = sized<tuff_memory_fd>();
    tuff_buffer handle = 0;
    MADE(tuff_buffer_export_fd(shared, &info));
    const struct Descriptor {
      int number;
      ~Descriptor() { close(number); }
    } descriptor{info.fd};
    MADE(tuff_buffer_import_fd(context, &info, &handle));
    Buffer imported(handle);
    fill(context, imported, 8192, 9);
    MADE(tuff_synchronize(context));
    shared.free();
    expect_all(context, imported, 2048, 9, "shared memory");
    imported.free();
    MADE(tuff_synchronize(context));
  }
  if (imports != 0) {
    alignas(65536) static unsigned char pages[65536];
    tuff_buffer handle = 0;
    MADE(tuff_buffer_import_host(context, pages, sizeof pages, &handle));
    Buffer imported(handle);
    fill(context, imported, sizeof pages, 2);
    expect_all(context, imported, sizeof pages / 4, 2, "imported pages");
    imported.free();
    MADE(tuff_synchronize(context));
  }
}

void errors(tuff_context context) {
  tuff_buffer buffer = 0;
  float value = 0;
  REFUSED(tuff_free(12345), TUFF_ERROR_INVALID_HANDLE);
  REFUSED(tuff_unary(context, TUFF_F32, 999, 1, 1, 1), TUFF_ERROR_INVALID_HANDLE);
  REFUSED(tuff_alloc(context, uint64_t{1} << 60, &buffer), TUFF_ERROR_LIMIT_EXCEEDED);
  REFUSED(tuff_context_set_tuning(context, "{"), vulkan() ? TUFF_ERROR_INVALID_ARGUMENT : TUFF_ERROR_UNSUPPORTED);
  const Buffer x(context, 64);
  REFUSED(tuff_unary(context, TUFF_F32, 999, x, x, 1), TUFF_ERROR_INVALID_ARGUMENT);
  REFUSED(tuff_copy_dtoh(context, &value, x, 64, 4), TUFF_ERROR_INVALID_ARGUMENT);
  char message[64];
  uint64_t length = 0;
  MADE(tuff_last_error(message, sizeof message, &length));
  auto limits = sized<tuff_limits>();
  limits.memory_bytes = 1 << 20;
  MADE(tuff_context_set_limits(context, &limits));
  MADE(tuff_context_set_memory_callback(
      context, [](void*, const tuff_memory_pressure*) {}, nullptr));
  Buffer large(context, 600'000);
  REFUSED(tuff_alloc(context, 600'000, &buffer), TUFF_ERROR_LIMIT_EXCEEDED);
  large.free();
  MADE(tuff_context_set_memory_callback(context, nullptr, nullptr));
  limits.memory_bytes = 0;
  MADE(tuff_context_set_limits(context, &limits));
}

uint64_t messages = 0;
void listen(void*, int32_t, const char*) { ++messages; }

void logs(tuff_context context) {
  MADE(tuff_set_log(listen, nullptr, TUFF_LOG_DISPATCH));
  accumulate(context);
  MADE(tuff_set_log(nullptr, nullptr, TUFF_LOG_OFF));
}

void information(tuff_context context) {
  uint32_t count = 0;
  uint64_t length = 0;
  auto properties = sized<tuff_device_properties>();
  auto stats = sized<tuff_stats>();
  MADE(tuff_device_count(&count));
  if (vulkan()) MADE(tuff_device_info(0, &properties));
  MADE(tuff_device_refusals(nullptr, 0, &length));
  MADE(tuff_context_info(context, &properties));
  MADE(tuff_context_stats(context, &stats));
  if (vulkan()) {
    const Buffer x(context, kCallBytes);
    auto desc = sized<tuff_batched_gemm_desc>();
    desc.dtype = TUFF_F32, desc.m = desc.n = desc.k = 4, desc.alpha = 1, desc.batch_count = 1;
    desc.a = desc.b = x;
    const Buffer y(context, kCallBytes);
    desc.c = y;
    char json[4096];
    MADE(tuff_batched_gemm_variants(context, &desc, json, sizeof json, &length));
  }
}

// Destroying a context destroys everything in it.
void leave_open(tuff_context context) {
  tuff_buffer buffer = 0;
  tuff_stream stream = 0;
  tuff_event event = 0;
  MADE(tuff_alloc(context, 4096, &buffer));
  MADE(tuff_stream_create(context, nullptr, &stream));
  MADE(tuff_event_create(context, nullptr, &event));
  if (vulkan()) {
    MADE(tuff_graph_begin(stream));
    MADE(tuff_unary(stream, TUFF_F32, TUFF_UNARY_NEG, buffer, buffer, 100));
  }
  MADE(tuff_unary(context, TUFF_F32, TUFF_UNARY_NEG, buffer, buffer, 100));
}

}  // namespace

// Each scenario runs in a context that has run it before, and in one that runs it for the first time.
std::vector<Scenario> all_scenarios() {
  using In = Scenario::In;
  std::vector<Scenario> all = {
      {"context", In::nothing, [](tuff_context) { const Context context; }},
      {"prewarm", In::nothing, [](tuff_context) { const Context context(1); }},
      {"left_open", In::fresh_context, leave_open},
  };
  const auto add = [&](const std::string& name, const std::function<void(tuff_context)>& run, bool marks = false) {
    all.push_back({name, In::shared_context, run, marks});
    all.push_back({"fresh_" + name, In::fresh_context, run, marks});
  };
  add("buffers", buffers);
  add("transfers", transfers);
  add("accumulate", accumulate);
  add("streams", streams);
  add("kernels", kernels);
  add("expressions", expressions);
  add("graphs", graphs);
  add("peers", peers);
  add("profiles", profiles);
  add("sharing", sharing);
  add("errors", errors);
  add("logs", logs);
  add("information", information);
  for (size_t row = 0; row < buffer_calls().size(); ++row) {
    add(
        std::string(buffer_calls()[row].function) + "_" + std::to_string(row),
        [row](tuff_context context) { one_call(context, row); }, true);
  }
  return all;
}

}  // namespace tuff_test
