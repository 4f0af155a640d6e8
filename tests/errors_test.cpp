// Invalid input to every function: its status, a message that names the function and the argument, and no effect.
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string_view>

#include "support/call_table.hpp"
#include "support/tensor.hpp"

namespace tuff_test::errors_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT, kHandle = TUFF_ERROR_INVALID_HANDLE,
                      kUnsupported = TUFF_ERROR_UNSUPPORTED;
constexpr uint64_t kHuge = ~uint64_t{0};

class Errors : public OnBackend {
 protected:
  // Poisoned buffers, enough and large enough for every row of buffer_calls().
  void SetUp() override {
    for (OwnBuffer& buffer : buffers_) {
      buffer = OwnBuffer(context(), kCallBytes);
      ASSERT_OK(tuff_fill(context(), buffer, 0, kCallBytes, &kPoison, 4));
    }
    ASSERT_OK(tuff_synchronize(context()));
    before_ = stats_of(context());
  }
  // Nothing was recorded, created or written.
  void TearDown() override {
    const tuff_stats after = stats_of(context());
    EXPECT_EQ(after.dispatches, before_.dispatches);
    EXPECT_EQ(after.live_buffers, before_.live_buffers);
    EXPECT_EQ(after.allocations, before_.allocations);
    EXPECT_EQ(after.bytes_uploaded, before_.bytes_uploaded);
    for (const OwnBuffer& buffer : buffers_) {
      std::vector<uint32_t> words(kCallBytes / 4);
      EXPECT_OK(tuff_copy_dtoh(context(), words.data(), buffer, 0, kCallBytes));
      EXPECT_EQ(words, std::vector<uint32_t>(words.size(), kPoison));
    }
  }
  std::vector<tuff_buffer> operands() const { return {buffers_.begin(), buffers_.end()}; }

  std::array<OwnBuffer, kCallBuffers> buffers_;
  tuff_stats before_{};
};

// Checks that the rows of the table are valid calls; otherwise the tests below would prove nothing.
class ErrorsTable : public OnBackend {};
TEST_P(ErrorsTable, CallsAreValid) {
  std::vector<OwnBuffer> buffers;
  std::vector<tuff_buffer> operands;
  for (size_t i = 0; i < kCallBuffers; ++i) operands.push_back(buffers.emplace_back(context(), kCallBytes));
  for (const BufferCall& row : buffer_calls()) EXPECT_OK(row.call(context(), operands.data())) << row.function;
}
TUFF_ON_BACKENDS(ErrorsTable);

// Every operation has a row, and each of its buffers is in one: otherwise the tests below would say nothing of it.
TEST(ErrorsTableRows, ShowEveryOperand) {
  std::map<std::string_view, std::set<std::string>> shown;
  for (const BufferCall& row : buffer_calls()) {
    EXPECT_LE(row.buffers.size(), kCallBuffers) << row.function;
    for (const CallBuffer& buffer : row.buffers) {
      const std::string name = buffer.name;
      shown[row.function].insert(name.substr(0, name.find('[')));
    }
  }
  for (const tuff_fuzz::Description& description : tuff_fuzz::descriptions()) {
    for (const tuff_fuzz::Place& place : tuff_fuzz::function_of(description.function).places) {
      const std::string_view name = place.name;
      if (place.kind != tuff_fuzz::Kind::handle || name == "stream") continue;
      if (name == "indices" && std::string_view(description.function) == "tuff_avg_pool") continue;  // max_pool's
      // Each gradient of a convolution has operands of its own.
      const std::string_view function = description.function;
      if (function == "tuff_conv_backward_data" && (name == "input" || name == "dfilter" || name == "dbias")) continue;
      if (function == "tuff_conv_backward_filter" && (name == "filter" || name == "dinput")) continue;
      EXPECT_TRUE(shown[description.function].contains(place.name)) << description.function << " " << place.name;
    }
  }
}

// --- handles ---------------------------------------------------------------------------------------------

// Buffers for which 0 means "none".
bool may_be_null(std::string_view function, std::string_view buffer) {
  if (function == "tuff_lu_determinant") return buffer != "a" && buffer != "pivots";
  if (function == "tuff_qr") return buffer == "q";
  if (function == "tuff_eigh" || function == "tuff_eig" || function == "tuff_svd")
    return buffer != "a" && buffer != "values";
  if (function == "tuff_rnn" || function == "tuff_rnn_backward") return buffer != "x" && buffer != "w" && buffer != "r";
  if (function == "tuff_optimizer_step" || function == "tuff_gradient_norm") {
    return buffer.find('[') == std::string_view::npos;  // those that are not in a list
  }
  if (function == "tuff_attention_backward")
    return buffer == "dq" || buffer == "dk" || buffer == "dv" || buffer == "dbias";
  if (function == "tuff_cross_entropy") return buffer != "logits" && buffer != "labels";
  if (function == "tuff_norm_backward") return buffer != "input" && buffer != "output_gradient";
  if (function == "tuff_batch_norm_training") return buffer != "input";
  if (function == "tuff_sparse_convert") return buffer == "count";
  if (function == "tuff_sddmm") return buffer == "scales";
  if (function == "tuff_spgemm") return buffer == "count" || buffer == "terms";
  if (function == "tuff_sparse_triangular_solve") return buffer == "levels";
  if (function == "tuff_sort") return buffer == "values" || buffer == "indices";
  if (function == "tuff_select") return buffer == "output" || buffer == "indices" || buffer == "count";
  return (function == "tuff_scatter" && buffer == "input") || buffer == "info";
}

TEST_P(Errors, BufferHandles) {
  OwnContext other(GetParam());
  const OwnBuffer foreign(other, kCallBytes);
  tuff_buffer stale = 0;
  ASSERT_OK(tuff_alloc(context(), kCallBytes, &stale));
  ASSERT_OK(tuff_free(stale));
  ++before_.allocations;
  const tuff_buffer good = buffers_[0];
  const struct {
    const char* what;
    tuff_buffer handle;
    bool alone;  // also invalid in calls without a stream that determines the context
  } bad[] = {
      {"null", TUFF_NULL_HANDLE, true},
      {"stale", stale, true},
      {"forged: another slot", good + 1'000'003, true},
      {"forged: another generation", good ^ (uint64_t{1} << 33), true},
      {"forged: another kind", good ^ (uint64_t{1} << 61), true},
      {"forged: bit 63", good | (uint64_t{1} << 63), true},
      {"forged: all ones", kHuge, true},
      {"forged: small number", 3, true},
      {"a context", context(), true},
      {"of another context", foreign, false},
  };
  for (const BufferCall& row : buffer_calls()) {
    for (size_t i = 0; i < row.buffers.size(); ++i) {
      for (const auto& [what, handle, alone] : bad) {
        if (!alone && !row.has_stream) continue;
        const CallBuffer& buffer = row.buffers[i];
        if (handle == TUFF_NULL_HANDLE && (buffer.optional || may_be_null(row.function, buffer.name))) continue;
        auto arguments = operands();
        arguments[i] = handle;
        SCOPED_TRACE(std::string(row.function) + " " + buffer.name + ": " + what);
        // 0 is the handle for "none", which these operands cannot be: where a buffer is required it is invalid.
        const tuff_status status = row.call(context(), arguments.data());
        if (handle == TUFF_NULL_HANDLE && status == kArgument) {
          EXPECT_FAILS(status, kArgument, row.function, buffer.name);
        } else {
          EXPECT_FAILS(status, kHandle, row.function, buffer.name);
        }
      }
    }
  }
}

TEST_P(Errors, StreamHandles) {
  tuff_context stale = 0;
  {
    OwnContext ended(GetParam());
    stale = ended;
  }
  auto arguments = operands();
  const tuff_stream good = context();
  for (const tuff_stream handle : {uint64_t{0}, stale, good + 12'345, good ^ (uint64_t{1} << 34),
                                   good | (uint64_t{1} << 63), kHuge, static_cast<uint64_t>(buffers_[0])}) {
    SCOPED_TRACE(handle);
    for (const BufferCall& row : buffer_calls()) {
      if (!row.has_stream) continue;
      EXPECT_FAILS(row.call(handle, arguments.data()), kHandle, row.function, "stream");
    }
    EXPECT_FAILS(tuff_synchronize(handle), kHandle, "tuff_synchronize", "stream");
    tuff_buffer buffer = 77;
    EXPECT_FAILS(tuff_alloc(handle, 4, &buffer), kHandle, "tuff_alloc", "context");
    EXPECT_EQ(buffer, 77u);
    tuff_alloc_desc alloc{};
    alloc.struct_size = sizeof alloc;
    EXPECT_FAILS(tuff_alloc_ex(handle, &alloc, &buffer), kHandle, "tuff_alloc_ex", "context");
    tuff_device_properties info{};
    info.struct_size = sizeof info;
    EXPECT_FAILS(tuff_context_info(handle, &info), kHandle, "tuff_context_info", "context");
    tuff_stats stats{};
    stats.struct_size = sizeof stats;
    EXPECT_FAILS(tuff_context_stats(handle, &stats), kHandle, "tuff_context_stats", "context");
    tuff_limits limits{};
    limits.struct_size = sizeof limits;
    EXPECT_FAILS(tuff_context_set_limits(handle, &limits), kHandle, "tuff_context_set_limits", "context");
    tuff_memory_stats memory{};
    memory.struct_size = sizeof memory;
    EXPECT_FAILS(tuff_context_memory(handle, &memory), kHandle, "tuff_context_memory", "context");
    EXPECT_FAILS(tuff_context_trim(handle), kHandle, "tuff_context_trim", "context");
    EXPECT_FAILS(tuff_context_reset_peak(handle), kHandle, "tuff_context_reset_peak", "context");
    EXPECT_FAILS(tuff_context_set_memory_callback(handle, nullptr, nullptr), kHandle,
                 "tuff_context_set_memory_callback", "context");
    int32_t yes = 5;
    EXPECT_FAILS(tuff_supports(handle, "f32", &yes), kHandle, "tuff_supports", "context");
    EXPECT_EQ(yes, 5);
    EXPECT_FAILS(tuff_context_destroy(handle), kHandle, "tuff_context_destroy", "context");
  }
}

TEST_P(Errors, FreeAndMapHandles) {
  EXPECT_OK(tuff_free(TUFF_NULL_HANDLE));
  tuff_buffer buffer = 0;
  ASSERT_OK(tuff_alloc(context(), 16, &buffer));
  ++before_.allocations;
  ASSERT_OK(tuff_free(buffer));
  for (const tuff_buffer handle : {buffer, static_cast<tuff_buffer>(context()), uint64_t{5}, kHuge}) {
    EXPECT_FAILS(tuff_free(handle), kHandle, "tuff_free", "buffer");
    void* pointer = &buffer;
    EXPECT_FAILS(tuff_map(handle, &pointer), kHandle, "tuff_map", "buffer");
    EXPECT_EQ(pointer, &buffer);
    EXPECT_FAILS(tuff_unmap(handle), kHandle, "tuff_unmap", "buffer");
  }
}

// --- one bad argument at a time --------------------------------------------------------------------------

struct BadCall {
  const char* function;
  const char* word;  // must be in the message
  tuff_status status;
  std::function<tuff_status(tuff_context, const tuff_buffer*)> call;
};

constexpr int32_t F = TUFF_F32, N = TUFF_NO_TRANS, T = TUFF_TRANS;

std::vector<BadCall> null_pointers() {
  return {
      {"tuff_set_log", "level", kArgument, [](auto, auto) { return tuff_set_log(nullptr, nullptr, 99); }},
      {"tuff_set_log", "level", kArgument, [](auto, auto) { return tuff_set_log(nullptr, nullptr, -1); }},
      {"tuff_last_error", "buffer", kArgument, [](auto, auto) { return tuff_last_error(nullptr, 5, nullptr); }},
      {"tuff_device_count", "count", kArgument, [](auto, auto) { return tuff_device_count(nullptr); }},
      {"tuff_device_info", "info", kArgument, [](auto, auto) { return tuff_device_info(0, nullptr); }},
      {"tuff_device_info", "index", kArgument,
       [](auto, auto) {
         tuff_device_properties info{};
         info.struct_size = sizeof info;
         return tuff_device_info(10'000, &info);
       }},
      {"tuff_device_refusals", "buffer", kArgument,
       [](auto, auto) { return tuff_device_refusals(nullptr, 5, nullptr); }},
      {"tuff_backend_register", "path", kArgument, [](auto, auto) { return tuff_backend_register(nullptr); }},
      {"tuff_backend_register", "path", TUFF_ERROR_IO,
       [](auto, auto) { return tuff_backend_register("/nowhere/libtuff-none.so"); }},
      {"tuff_backend_count", "count", kArgument, [](auto, auto) { return tuff_backend_count(nullptr); }},
      {"tuff_backend_info", "info", kArgument, [](auto, auto) { return tuff_backend_info(0, nullptr); }},
      {"tuff_backend_info", "index", kArgument,
       [](auto, auto) {
         tuff_device_properties info{};
         info.struct_size = sizeof info;
         return tuff_backend_info(10'000, &info);
       }},
      {"tuff_backend_refusals", "buffer", kArgument,
       [](auto, auto) { return tuff_backend_refusals(nullptr, 5, nullptr); }},
      {"tuff_context_create", "context", kArgument, [](auto, auto) { return tuff_context_create(nullptr, nullptr); }},
      {"tuff_context_create", "backend", kArgument,
       [](auto, auto) {
         tuff_context_desc desc{};
         desc.struct_size = sizeof desc;
         desc.backend = "abacus";
         tuff_context made = 0;
         return tuff_context_create(&desc, &made);
       }},
      {"tuff_context_create", "validation", kArgument,
       [](auto, auto) {
         tuff_context_desc desc{};
         desc.struct_size = sizeof desc;
         desc.backend = "host";
         desc.validation = 7;
         tuff_context made = 0;
         return tuff_context_create(&desc, &made);
       }},
      {"tuff_context_info", "info", kArgument, [](auto c, auto) { return tuff_context_info(c, nullptr); }},
      {"tuff_context_stats", "stats", kArgument, [](auto c, auto) { return tuff_context_stats(c, nullptr); }},
      {"tuff_context_memory", "stats", kArgument, [](auto c, auto) { return tuff_context_memory(c, nullptr); }},
      {"tuff_context_set_limits", "limits", kArgument,
       [](auto c, auto) { return tuff_context_set_limits(c, nullptr); }},
      {"tuff_context_set_limits", "reserved", kArgument,
       [](auto c, auto) {
         tuff_limits limits{};
         limits.struct_size = sizeof limits;
         limits.reserved = 1;
         return tuff_context_set_limits(c, &limits);
       }},
      {"tuff_supports", "feature", kArgument,
       [](auto c, auto) {
         int32_t yes;
         return tuff_supports(c, nullptr, &yes);
       }},
      {"tuff_supports", "yes", kArgument, [](auto c, auto) { return tuff_supports(c, "f32", nullptr); }},
      {"tuff_alloc", "buffer", kArgument, [](auto c, auto) { return tuff_alloc(c, 4, nullptr); }},
      {"tuff_alloc_ex", "desc", kArgument,
       [](auto c, auto) {
         tuff_buffer made;
         return tuff_alloc_ex(c, nullptr, &made);
       }},
      {"tuff_alloc_ex", "buffer", kArgument,
       [](auto c, auto) {
         tuff_alloc_desc desc{};
         desc.struct_size = sizeof desc;
         return tuff_alloc_ex(c, &desc, nullptr);
       }},
      {"tuff_alloc_ex", "flags", kArgument,
       [](auto c, auto) {
         tuff_alloc_desc desc{};
         desc.struct_size = sizeof desc;
         desc.flags = 0x100;
         tuff_buffer made;
         return tuff_alloc_ex(c, &desc, &made);
       }},
      {"tuff_view", "view", kArgument, [](auto, auto x) { return tuff_view(x[0], 0, 4, nullptr); }},
      {"tuff_buffer_size", "bytes", kArgument, [](auto, auto x) { return tuff_buffer_size(x[0], nullptr); }},
      {"tuff_map", "pointer", kArgument, [](auto, auto x) { return tuff_map(x[0], nullptr); }},
      {"tuff_copy_htod", "src", kArgument, [](auto c, auto x) { return tuff_copy_htod(c, x[0], 0, nullptr, 4); }},
      {"tuff_copy_dtoh", "dst", kArgument, [](auto c, auto x) { return tuff_copy_dtoh(c, nullptr, x[0], 0, 4); }},
      {"tuff_fill", "pattern", kArgument, [](auto c, auto x) { return tuff_fill(c, x[0], 0, 4, nullptr, 4); }},
      {"tuff_gemm_ex", "desc", kArgument, [](auto c, auto) { return tuff_gemm_ex(c, nullptr); }},
      {"tuff_batched_gemm_ex", "desc", kArgument, [](auto c, auto) { return tuff_batched_gemm_ex(c, nullptr); }},
      {"tuff_conv2d_ex", "desc", kArgument, [](auto c, auto) { return tuff_conv2d_ex(c, nullptr); }},
      {"tuff_attention_ex", "desc", kArgument, [](auto c, auto) { return tuff_attention_ex(c, nullptr); }},
      {"tuff_attention_backward", "desc", kArgument, [](auto c, auto) { return tuff_attention_backward(c, nullptr); }},
      {"tuff_reduce_ex", "desc", kArgument, [](auto c, auto) { return tuff_reduce_ex(c, nullptr); }},
      {"tuff_unary_ex", "desc", kArgument, [](auto c, auto) { return tuff_unary_ex(c, nullptr); }},
      {"tuff_binary_ex", "desc", kArgument, [](auto c, auto) { return tuff_binary_ex(c, nullptr); }},
      {"tuff_softmax_ex", "desc", kArgument, [](auto c, auto) { return tuff_softmax_ex(c, nullptr); }},
      {"tuff_reduce", "shape", kArgument,
       [](auto c, auto x) { return tuff_reduce(c, F, TUFF_REDUCE_SUM, x[0], x[1], nullptr, 2, 0); }},
      {"tuff_softmax", "shape", kArgument,
       [](auto c, auto x) { return tuff_softmax(c, F, x[0], x[1], nullptr, 2, 0); }},
  };
}

std::vector<BadCall> buffer_ranges() {
  const auto row = [](const char* function, const char* word, auto call) {
    return BadCall{function, word, kArgument, call};
  };
  return {
      row("tuff_view", "buffer",
          [](auto, auto x) {
            tuff_buffer v;
            return tuff_view(x[0], kCallBytes + 1, 0, &v);
          }),
      row("tuff_view", "buffer",
          [](auto, auto x) {
            tuff_buffer v;
            return tuff_view(x[0], 1, kCallBytes, &v);
          }),
      row("tuff_view", "buffer",
          [](auto, auto x) {
            tuff_buffer v;
            return tuff_view(x[0], 8, kHuge - 4, &v);
          }),
      row("tuff_copy_htod", "dst",
          [](auto c, auto x) {
            char b[8] = {};
            return tuff_copy_htod(c, x[0], kCallBytes - 7, b, 8);
          }),
      row("tuff_copy_htod", "dst",
          [](auto c, auto x) {
            char b[8] = {};
            return tuff_copy_htod(c, x[0], kHuge, b, 8);
          }),
      row("tuff_copy_htod", "dst",
          [](auto c, auto x) {
            char b[8] = {};
            return tuff_copy_htod(c, x[0], 8, b, kHuge);
          }),
      row("tuff_copy_dtoh", "src",
          [](auto c, auto x) {
            char b[8] = {};
            return tuff_copy_dtoh(c, b, x[0], kCallBytes - 7, 8);
          }),
      row("tuff_copy_dtoh", "src",
          [](auto c, auto x) {
            char b[8] = {};
            return tuff_copy_dtoh(c, b, x[0], kHuge - 3, 8);
          }),
      row("tuff_copy_dtod", "dst", [](auto c, auto x) { return tuff_copy_dtod(c, x[0], kCallBytes, x[1], 0, 1); }),
      row("tuff_copy_dtod", "src", [](auto c, auto x) { return tuff_copy_dtod(c, x[0], 0, x[1], kHuge, 1); }),
      row("tuff_copy_dtod", "src", [](auto c, auto x) { return tuff_copy_dtod(c, x[0], 0, x[0], 10, 11); }),
      row("tuff_copy_dtod", "src", [](auto c, auto x) { return tuff_copy_dtod(c, x[0], 4, x[0], 4, 4); }),
      row("tuff_fill", "bytes", [](auto c, auto x) { return tuff_fill(c, x[0], 4, kCallBytes, "abcd", 4); }),
      row("tuff_fill", "bytes", [](auto c, auto x) { return tuff_fill(c, x[0], 0, 6, "abcd", 4); }),
      row("tuff_fill", "offset", [](auto c, auto x) { return tuff_fill(c, x[0], 2, 8, "abcd", 4); }),
      row("tuff_fill", "pattern_bytes", [](auto c, auto x) { return tuff_fill(c, x[0], 0, 12, "abcdef", 3); }),
      row("tuff_fill", "pattern_bytes", [](auto c, auto x) { return tuff_fill(c, x[0], 0, 12, "abcdef", 0); }),
      row("tuff_fill", "pattern_bytes", [](auto c, auto x) { return tuff_fill(c, x[0], 0, 64, "abcdef", 32); }),
      row("tuff_map", "buffer",
          [](auto, auto x) {
            void* p;
            return tuff_map(x[0], &p);
          }),
      row("tuff_unmap", "buffer", [](auto, auto x) { return tuff_unmap(x[0]); }),
  };
}

tuff_status gemm(tuff_context c, const tuff_buffer* x, int32_t dtype, int32_t ta, int32_t tb, uint64_t m, uint64_t n,
                 uint64_t k, uint64_t lda, uint64_t ldb, uint64_t ldc) {
  return tuff_gemm(c, dtype, ta, tb, m, n, k, 1, x[0], lda, x[1], ldb, 0, x[2], ldc);
}

tuff_status batched(tuff_context c, const tuff_buffer* x, uint64_t stride_a, uint64_t stride_b, uint64_t stride_c,
                    uint64_t count) {
  return tuff_batched_gemm(c, F, N, N, 4, 4, 4, 1, x[0], 4, stride_a, x[1], 4, stride_b, 0, x[2], 4, stride_c, count);
}

std::vector<BadCall> products() {
  const auto row = [](const char* word, auto call, tuff_status status = kArgument) {
    return BadCall{"tuff_gemm", word, status, call};
  };
  const auto batch = [](const char* word, auto call) { return BadCall{"tuff_batched_gemm", word, kArgument, call}; };
  return {
      row("dtype", [](auto c, auto x) { return gemm(c, x, 0, N, N, 2, 2, 2, 2, 2, 2); }),
      row("dtype", [](auto c, auto x) { return gemm(c, x, 99, N, N, 2, 2, 2, 2, 2, 2); }),
      row(
          "dtype", [](auto c, auto x) { return gemm(c, x, TUFF_U8, N, N, 2, 2, 2, 2, 2, 2); }, kUnsupported),
      row("ta", [](auto c, auto x) { return gemm(c, x, F, 3, N, 2, 2, 2, 2, 2, 2); }),
      row("tb", [](auto c, auto x) { return gemm(c, x, F, N, -1, 2, 2, 2, 2, 2, 2); }),
      row("lda", [](auto c, auto x) { return gemm(c, x, F, N, N, 4, 5, 6, 5, 5, 5); }),
      row("lda", [](auto c, auto x) { return gemm(c, x, F, T, N, 4, 5, 6, 3, 5, 5); }),
      row("ldb", [](auto c, auto x) { return gemm(c, x, F, N, N, 4, 5, 6, 6, 4, 5); }),
      row("ldb", [](auto c, auto x) { return gemm(c, x, F, N, T, 4, 5, 6, 6, 5, 5); }),
      row("ldc", [](auto c, auto x) { return gemm(c, x, F, N, N, 4, 5, 6, 6, 5, 4); }),
      row("a", [](auto c, auto x) { return gemm(c, x, F, N, N, 200, 5, 6, 6, 5, 5); }),
      row("b", [](auto c, auto x) { return gemm(c, x, F, N, N, 4, 300, 6, 6, 300, 300); }),
      row("c", [](auto c, auto x) { return gemm(c, x, F, N, N, 40, 40, 2, 2, 40, 40); }),
      row("c", [](auto c, auto x) { return gemm(c, x, F, N, N, 4, 4, 4, 4, 4, 400); }),
      // sizes that overflow 2^64 bytes, by a product or by a sum
      row("a",
          [](auto c, auto x) {
            return gemm(c, x, F, N, N, uint64_t{1} << 32, 1, uint64_t{1} << 32, uint64_t{1} << 32, 1, 1);
          }),
      row("a", [](auto c, auto x) { return gemm(c, x, F, N, N, 3, 2, 2, uint64_t{1} << 63, 2, 2); }),
      row("b", [](auto c, auto x) { return gemm(c, x, F, N, N, 2, 2, 2, 2, kHuge - 1, 2); }),
      row("c", [](auto c, auto x) { return gemm(c, x, F, N, N, 2, 2, 2, 2, 2, kHuge / 4); }),
      batch("a", [](auto c, auto x) { return batched(c, x, 1000, 0, 16, 3); }),
      batch("b", [](auto c, auto x) { return batched(c, x, 0, 1000, 16, 3); }),
      batch("c", [](auto c, auto x) { return batched(c, x, 0, 0, 1000, 3); }),
      batch("stride_c", [](auto c, auto x) { return batched(c, x, 16, 16, 15, 3); }),
      batch("stride_c", [](auto c, auto x) { return batched(c, x, 16, 16, 0, 2); }),
      batch("a", [](auto c, auto x) { return batched(c, x, uint64_t{1} << 62, 0, 16, 5); }),
      batch("b", [](auto c, auto x) { return batched(c, x, 0, kHuge, 16, 3); }),
      batch("c", [](auto c, auto x) { return batched(c, x, 0, 0, kHuge / 4, 6); }),
  };
}

using Four = std::array<uint64_t, 4>;
using Two = std::array<uint64_t, 2>;

BadCall conv(const char* word, Four in, Four filter, Four out, Two stride = {1, 1}, Two padding = {0, 0},
             int32_t dtype = F, tuff_status status = kArgument) {
  return {"tuff_conv2d", word, status, [=](tuff_context c, const tuff_buffer* x) {
            return tuff_conv2d(c, dtype, x[0], in.data(), x[1], filter.data(), x[2], out.data(), stride.data(),
                               padding.data());
          }};
}

std::vector<BadCall> convolutions() {
  const Four in{1, 2, 6, 5}, filter{3, 2, 3, 2}, out{1, 3, 4, 4};
  std::vector<BadCall> rows = {
      conv("dtype", in, filter, out, {1, 1}, {0, 0}, -3),
      conv("dtype", in, filter, out, {1, 1}, {0, 0}, TUFF_F64, kUnsupported),
      conv("out_shape", in, filter, {1, 3, 5, 4}),
      conv("out_shape", in, filter, {1, 3, 4, 3}),
      conv("out_shape", in, filter, {1, 3, 4, 4}, {2, 1}),
      conv("out_shape", in, filter, {1, 3, 4, 4}, {1, 1}, {1, 0}),
      conv("out_shape", in, filter, {2, 3, 4, 4}),
      conv("out_shape", in, filter, {1, 4, 4, 4}),
      conv("filter_shape", in, {3, 4, 3, 2}, out),
      conv("stride", in, filter, out, {0, 1}),
      conv("stride", in, filter, out, {1, 0}),
      conv("filter_shape", {1, 2, 2, 5}, {3, 2, 3, 2}, {1, 3, 1, 4}),
      conv("filter_shape", {1, 2, 6, 1}, {3, 2, 3, 4}, {1, 3, 4, 1}, {1, 1}, {0, 1}),
      conv("input", {1, 2, 40, 50}, {3, 2, 39, 50}, {1, 3, 2, 1}),
      conv("filter", {1, 30, 6, 5}, {6, 30, 3, 2}, {1, 6, 4, 4}),
      conv("output", {1, 2, 20, 20}, {10, 2, 3, 3}, {1, 10, 18, 18}),
      // beyond 2^64
      conv("in_shape", {kHuge, 2, kHuge, 5}, {3, 2, 3, 2}, {kHuge, 3, kHuge - 2, 4}),
      conv("padding", in, filter, out, {1, 1}, {kHuge, 0}),
      conv("padding", in, filter, out, {1, 1}, {0, uint64_t{1} << 63}),
      conv("filter_shape", {1, kHuge, 1, 1}, {kHuge, kHuge, 1, 1}, {1, kHuge, 1, 1}),
  };
  const struct {
    const char* word;
    bool in, filter, out, stride, padding;
  } nulls[] = {{"in_shape", true, false, false, false, false},
               {"filter_shape", false, true, false, false, false},
               {"out_shape", false, false, true, false, false},
               {"stride", false, false, false, true, false},
               {"padding", false, false, false, false, true}};
  for (const auto& null : nulls) {
    rows.push_back({"tuff_conv2d", null.word, kArgument, [=](tuff_context c, const tuff_buffer* x) {
                      const uint64_t ones[2] = {1, 1}, zeros[2] = {0, 0};
                      return tuff_conv2d(c, F, x[0], null.in ? nullptr : in.data(), x[1],
                                         null.filter ? nullptr : filter.data(), x[2], null.out ? nullptr : out.data(),
                                         null.stride ? nullptr : ones, null.padding ? nullptr : zeros);
                    }});
  }
  return rows;
}

BadCall attention(const char* word, uint64_t batch, uint64_t heads, uint64_t seq_q, uint64_t seq_kv, uint64_t head_dim,
                  double scale = 0.5, int32_t causal = 0, int32_t dtype = F, tuff_status status = kArgument) {
  return {"tuff_attention", word, status, [=](tuff_context c, const tuff_buffer* x) {
            return tuff_attention(c, dtype, x[0], x[1], x[2], x[3], batch, heads, seq_q, seq_kv, head_dim, scale,
                                  causal);
          }};
}

std::vector<BadCall> attentions() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {
      attention("dtype", 1, 1, 2, 2, 2, 0.5, 0, 1234),
      attention("dtype", 1, 1, 2, 2, 2, 0.5, 0, TUFF_F64, kUnsupported),
      attention("causal", 1, 1, 2, 2, 2, 0.5, 3),
      attention("causal", 1, 1, 2, 2, 2, 0.5, -1),
      attention("scale", 1, 1, 2, 2, 2, NAN),
      attention("scale", 1, 1, 2, 2, 2, 0),
      attention("scale", 1, 1, 2, 2, 2, -1),
      attention("scale", 1, 1, 2, 2, 2, kInfinity),
      attention("scale", 1, 1, 2, 2, 2, -kInfinity),
      attention("scale", 1, 1, 2, 2, 2, 1e300),   // infinite in f32
      attention("scale", 1, 1, 2, 2, 2, 1e-300),  // zero in f32
      attention("seq_q", 1, 1, 0, 2, 2),
      attention("seq_kv", 1, 1, 2, 0, 2),
      attention("head_dim", 1, 1, 2, 2, 0),
      attention("head_dim", 1, 1, 1, 1, 1025, 0.5, 0, F, kUnsupported),
      attention("q", 2, 2, 100, 2, 4),
      attention("k", 2, 2, 2, 100, 4),
      attention("q", kHuge, 2, 3, 4, 5),
      attention("q", 1, 1, uint64_t{1} << 62, 1, 4),
  };
}

BadCall reduce(const char* word, std::vector<uint64_t> shape, uint32_t axis, int32_t op = TUFF_REDUCE_SUM,
               int32_t dtype = F, tuff_status status = kArgument) {
  return {"tuff_reduce", word, status, [=](tuff_context c, const tuff_buffer* x) {
            const uint64_t none = 0;  // so that the rank of 0 is the error, not a missing shape
            return tuff_reduce(c, dtype, op, x[0], x[1], shape.empty() ? &none : shape.data(),
                               static_cast<uint32_t>(shape.size()), axis);
          }};
}

BadCall softmax(const char* word, std::vector<uint64_t> shape, uint32_t axis, int32_t dtype = F,
                tuff_status status = kArgument) {
  return {"tuff_softmax", word, status, [=](tuff_context c, const tuff_buffer* x) {
            const uint64_t none = 0;
            return tuff_softmax(c, dtype, x[0], x[1], shape.empty() ? &none : shape.data(),
                                static_cast<uint32_t>(shape.size()), axis);
          }};
}

std::vector<BadCall> axes() {
  const std::vector<uint64_t> nine(9, 1);
  return {
      reduce("dtype", {2, 3}, 0, TUFF_REDUCE_SUM, 77),
      reduce("dtype", {2, 3}, 0, TUFF_REDUCE_SUM, TUFF_F8_E4M3, kUnsupported),
      reduce("op", {2, 3}, 0, 0),
      reduce("op", {2, 3}, 0, 99),
      reduce("axis", {2, 3}, 2),
      reduce("axis", {2, 3}, 0xffffffffu),
      reduce("rank", {}, 0),
      reduce("rank", nine, 0),
      reduce("input", {40, 50}, 0),
      reduce("shape", {uint64_t{1} << 40, uint64_t{1} << 40}, 0),
      reduce("input", {uint64_t{1} << 31, uint64_t{1} << 31}, 0),
      softmax("dtype", {2, 3}, 0, 0),
      softmax("dtype", {2, 3}, 0, TUFF_U8, kUnsupported),
      softmax("axis", {2, 3}, 2),
      softmax("rank", {}, 0),
      softmax("rank", nine, 0),
      softmax("input", {40, 50}, 0),
      softmax("shape", {kHuge, 3}, 0),
  };
}

std::vector<BadCall> elementwise() {
  const auto unary = [](const char* word, int32_t dtype, int32_t op, uint64_t n, tuff_status status = kArgument) {
    return BadCall{"tuff_unary", word, status,
                   [=](tuff_context c, const tuff_buffer* x) { return tuff_unary(c, dtype, op, x[0], x[1], n); }};
  };
  const auto binary = [](const char* word, int32_t dtype, int32_t op, uint64_t n, tuff_status status = kArgument) {
    return BadCall{"tuff_binary", word, status, [=](tuff_context c, const tuff_buffer* x) {
                     return tuff_binary(c, dtype, op, x[0], x[1], x[2], n);
                   }};
  };
  return {
      unary("dtype", 0, TUFF_UNARY_NEG, 5),
      unary("dtype", TUFF_I8, TUFF_UNARY_NEG, 5, kUnsupported),
      unary("op", F, 0, 5),
      unary("op", F, -7, 5),
      unary("op", F, 1000, 5),
      unary("input", F, TUFF_UNARY_NEG, kCallBytes / 4 + 1),
      unary("n", F, TUFF_UNARY_NEG, kHuge),
      unary("n", F, TUFF_UNARY_NEG, uint64_t{1} << 62),
      binary("dtype", 18, TUFF_BINARY_ADD, 5),
      binary("dtype", TUFF_U32, TUFF_BINARY_ADD, 5, kUnsupported),
      binary("op", F, 0, 5),
      binary("op", F, 1000, 5),
      binary("a", F, TUFF_BINARY_ADD, kCallBytes / 4 + 1),
      binary("n", F, TUFF_BINARY_ADD, (uint64_t{1} << 62) + 5),
  };
}

void run(tuff_context context, const std::vector<BadCall>& rows, const std::vector<tuff_buffer>& operands) {
  size_t number = 0;
  for (const BadCall& row : rows) {
    SCOPED_TRACE(testing::Message() << row.function << ", row " << number++);
    EXPECT_FAILS(row.call(context, operands.data()), row.status, row.function, row.word);
  }
}

TEST_P(Errors, NullPointersAndPlainArguments) { run(context(), null_pointers(), operands()); }
TEST_P(Errors, BufferRanges) { run(context(), buffer_ranges(), operands()); }
TEST_P(Errors, Gemm) { run(context(), products(), operands()); }
TEST_P(Errors, Conv2d) { run(context(), convolutions(), operands()); }
TEST_P(Errors, Attention) { run(context(), attentions(), operands()); }
TEST_P(Errors, ReduceAndSoftmax) { run(context(), axes(), operands()); }
TEST_P(Errors, UnaryAndBinary) { run(context(), elementwise(), operands()); }

// One operand of each operation at a time is smaller than the call needs.
TEST_P(Errors, OperandsThatAreTooSmall) {
  for (const BufferCall& row : buffer_calls()) {
    for (size_t i = 0; i < row.buffers.size(); ++i) {
      tuff_buffer small = 0;
      ASSERT_OK(tuff_view(buffers_[i], 0, std::min<uint64_t>(8, row.buffers[i].bytes - 1), &small));
      auto arguments = operands();
      arguments[i] = small;
      if (std::string(row.function) != "tuff_buffer_size") {
        const bool fill = std::string(row.function) == "tuff_fill";
        EXPECT_FAILS(row.call(context(), arguments.data()), kArgument, row.function,
                     fill ? "bytes" : row.buffers[i].name);
      }
      ASSERT_OK(tuff_free(small));
    }
  }
}

// Elements must start at a multiple of their size.
TEST_P(Errors, OperandsThatAreMisaligned) {
  for (const BufferCall& row : buffer_calls()) {
    const std::string function = row.function;
    if (function.starts_with("tuff_copy") || function == "tuff_view" || function == "tuff_buffer_size" ||
        function == "tuff_fill") {
      continue;  // these accept any byte offset
    }
    for (size_t i = 0; i < row.buffers.size(); ++i) {
      if (row.buffers[i].element == 1) continue;
      const uint64_t offset = row.buffers[i].element / 2;
      tuff_buffer odd = 0;
      ASSERT_OK(tuff_view(buffers_[i], offset, kCallBytes - offset, &odd));
      auto arguments = operands();
      arguments[i] = odd;
      EXPECT_FAILS(row.call(context(), arguments.data()), kArgument, row.function, row.buffers[i].name);
      ASSERT_OK(tuff_free(odd));
    }
  }
}

TUFF_ON_BACKENDS(Errors);

}  // namespace
}  // namespace tuff_test::errors_test
