// struct_size of every structure, with all its possible values, including a tail that this version does not know.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "fuzz/plausible_call.hpp"
#include "support/harness.hpp"

namespace tuff_test::structures_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;
constexpr int32_t F = TUFF_F32;

class Structures : public OnBackend {};

// A structure's bytes at the very end of mapped memory: accesses beyond them fault.
class AtTheEnd {
 public:
  AtTheEnd() : pages_(mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (pages_ == MAP_FAILED || mprotect(end(), kPage, PROT_NONE) != 0) throw std::runtime_error("no guard page");
  }
  ~AtTheEnd() { munmap(pages_, 3 * kPage); }
  AtTheEnd(const AtTheEnd&) = delete;
  AtTheEnd& operator=(const AtTheEnd&) = delete;

  // `bytes` bytes of this value.
  unsigned char* place(size_t bytes, unsigned char value) {
    std::memset(end() - bytes, value, bytes);
    return end() - bytes;
  }

 private:
  static constexpr size_t kPage = 65536;  // a whole number of pages everywhere
  unsigned char* end() const { return static_cast<unsigned char*>(pages_) + 2 * kPage; }
  void* pages_;
};

// `call` succeeds on a valid structure. `earlier`: sizes of the structure in earlier versions of the library, before it
// last grew. Tests every possible size, so that none cuts a field in two, as a size 4 bytes below that of
// tuff_batched_gemm_desc did with c_array.
template <typename T, typename Call>
void expect_checked(const char* function, const T& good, bool output, Call call,
                    const std::vector<size_t>& earlier = {}) {
  SCOPED_TRACE(function);
  AtTheEnd memory;
  const auto place = [&](uint32_t size) {
    unsigned char* bytes = memory.place(std::max<size_t>(size, sizeof size), 0);
    std::memcpy(bytes, &good, std::min<size_t>(size, sizeof(T)));
    std::memcpy(bytes, &size, sizeof size);
    return bytes;
  };
  const auto call_at = [&](unsigned char* bytes) { return call(reinterpret_cast<T*>(bytes)); };
  std::string sizes = ", needs ";
  for (const size_t size : earlier) sizes += std::to_string(size) + " or ";
  sizes += std::to_string(sizeof(T)) + ",";
  for (uint32_t size = 0; size < sizeof(T) + 64; ++size) {
    SCOPED_TRACE(size);
    unsigned char* bytes = place(size);
    if (size < sizeof(T) && std::find(earlier.begin(), earlier.end(), size) == earlier.end()) {
      EXPECT_FAILS(call_at(bytes), kArgument, function, "struct_size");
      EXPECT_NE(last_error().find("is " + std::to_string(size) + sizes), std::string::npos) << last_error();
      continue;
    }
    if (output && size > sizeof(T)) std::memset(bytes + sizeof(T), 0xa5, size - sizeof(T));  // may hold anything
    EXPECT_OK(call_at(bytes));
    uint32_t left = 0;
    std::memcpy(&left, bytes, sizeof left);
    EXPECT_EQ(left, size);
    for (size_t i = sizeof(T); i < size; ++i) EXPECT_EQ(bytes[i], 0) << "byte " << i;
    if (output) continue;
    for (size_t i = sizeof(T); i<size; i += size - sizeof(T)> 1 ? size - sizeof(T) - 1 : 1) {
      bytes[i] = 1;  // the first and the last byte that this version does not know
      EXPECT_FAILS(call_at(bytes), kArgument, function, "struct_size");
      bytes[i] = 0;
    }
  }
  EXPECT_OK(call_at(place(sizeof(T) + 4096)));
  for (const uint32_t size : {static_cast<uint32_t>(sizeof(T) + 4097), 0x80000000u, 0xffffffffu}) {
    unsigned char* bytes = place(sizeof(T));
    std::memcpy(bytes, &size, sizeof size);
    EXPECT_FAILS(call_at(bytes), kArgument, function, "struct_size");
  }
}

template <typename T>
T sized() {
  T desc{};
  desc.struct_size = sizeof(T);
  return desc;
}

TEST_P(Structures, OutputStructures) {
  uint32_t devices = 0;
  ASSERT_OK(tuff_device_count(&devices));
  const auto properties = sized<tuff_device_properties>();
  const size_t first_properties = offsetof(tuff_device_properties, max_workgroup_size);
  if (devices > 0) {
    expect_checked("tuff_device_info", properties, true,
                   [](tuff_device_properties* info) { return tuff_device_info(0, info); }, {first_properties});
  }
  expect_checked("tuff_context_info", properties, true,
                 [&](tuff_device_properties* info) { return tuff_context_info(context(), info); }, {first_properties});
  expect_checked("tuff_context_stats", sized<tuff_stats>(), true,
                 [&](tuff_stats* stats) { return tuff_context_stats(context(), stats); }, {120, 152});
  expect_checked("tuff_context_memory", sized<tuff_memory_stats>(), true,
                 [&](tuff_memory_stats* stats) { return tuff_context_memory(context(), stats); });
  expect_checked("tuff_context_compact", sized<tuff_compaction>(), true,
                 [&](tuff_compaction* report) { return tuff_context_compact(context(), nullptr, report); });
  auto report = sized<tuff_compaction>();
  expect_checked("tuff_context_compact", sized<tuff_compact_desc>(), false,
                 [&](const tuff_compact_desc* desc) { return tuff_context_compact(context(), desc, &report); });
  expect_checked("tuff_context_usage", sized<tuff_usage>(), true,
                 [&](tuff_usage* usage) { return tuff_context_usage(context(), usage); });
  if (devices > 0) {
    expect_checked("tuff_device_read_sensors", sized<tuff_device_sensors>(), true,
                   [](tuff_device_sensors* sensors) { return tuff_device_read_sensors(0, sensors); });
  }
}

TEST_P(Structures, Operations) {
  const tuff_op_argument argument{"x", TUFF_OP_BUFFER, TUFF_F32, TUFF_OP_READ_WRITE, 0, nullptr, 0, 0};
  auto kernel = sized<tuff_kernel_desc>();
  kernel.source = "#version 450\nlayout(binding = 0) buffer X { float x[]; };\nvoid main() { x[0] += 1; }\n";
  auto desc = sized<tuff_op_desc>();
  desc.name = "test.structure";
  desc.arguments = &argument;
  desc.argument_count = 1;
  desc.kernel = &kernel;
  desc.groups = "1";
  const tuff_op_host host = [](void*, const tuff_op_operand*, uint32_t, tuff_status*) {};
  expect_checked("tuff_op_register", desc, false, [&](const tuff_op_desc* d) {
    tuff_op made = 0;
    const tuff_status status = tuff_op_register(context(), d, host, nullptr, &made);
    if (status == TUFF_OK) {
      EXPECT_OK(tuff_op_destroy(made));
    }
    return status;
  });
}

TEST_P(Structures, ContextStructures) {
  auto desc = sized<tuff_context_desc>();
  desc.backend = "host";
  expect_checked("tuff_context_create", desc, false,
                 [](const tuff_context_desc* d) {
                   tuff_context made = 0;
                   const tuff_status status = tuff_context_create(d, &made);
                   if (status == TUFF_OK) tuff_context_destroy(made);
                   return status;
                 },
                 {32});
  expect_checked("tuff_context_set_limits", sized<tuff_limits>(), false,
                 [&](const tuff_limits* l) { return tuff_context_set_limits(context(), l); }, {24});
  auto alloc = sized<tuff_alloc_desc>();
  alloc.bytes = 64;
  expect_checked("tuff_alloc_ex", alloc, false, [&](const tuff_alloc_desc* d) {
    tuff_buffer made = 0;
    const tuff_status status = tuff_alloc_ex(context(), d, &made);
    if (status == TUFF_OK) {
      EXPECT_OK(tuff_free(made));
    }
    return status;
  });
}

// The structures of exported memory, where the device supports it.
TEST_P(Structures, MemoryStructures) {
  int32_t yes = 0;
  ASSERT_OK(tuff_supports(context(), "memory_fd", &yes));
  auto alloc = sized<tuff_alloc_desc>();
  alloc.bytes = 64, alloc.flags = TUFF_ALLOC_EXPORTABLE;
  tuff_buffer made = 0;
  if (yes == 0) {
    EXPECT_EQ(tuff_alloc_ex(context(), &alloc, &made), TUFF_ERROR_UNSUPPORTED);
    return;
  }
  ASSERT_OK(tuff_alloc_ex(context(), &alloc, &made));
  const OwnBuffer buffer(made);
  auto info = sized<tuff_memory_fd>();
  expect_checked("tuff_buffer_export_fd", info, true, [&](tuff_memory_fd* f) {
    const tuff_status status = tuff_buffer_export_fd(buffer, f);
    if (status != TUFF_OK) return status;
    int32_t made_fd = -1;  // f may have any alignment
    std::memcpy(&made_fd, reinterpret_cast<const char*>(f) + offsetof(tuff_memory_fd, fd), sizeof made_fd);
    close(made_fd);
    return status;
  });
  ASSERT_OK(tuff_buffer_export_fd(buffer, &info));
  expect_checked("tuff_buffer_import_fd", info, false, [&](const tuff_memory_fd* f) {
    tuff_buffer imported = 0;
    const tuff_status status = tuff_buffer_import_fd(context(), f, &imported);
    if (status == TUFF_OK) {
      EXPECT_OK(tuff_free(imported));
    }
    return status;
  });
  close(info.fd);
}

// Operations without elements: valid descriptors that change nothing.
TEST_P(Structures, OperationStructures) {
  const auto operation = []<typename T>(T desc) {
    desc.struct_size = sizeof(T);
    desc.dtype = F;
    return desc;
  };
  expect_checked("tuff_gemm_ex", operation(tuff_gemm_desc{}), false,
                 [&](const tuff_gemm_desc* d) { return tuff_gemm_ex(context(), d); }, {104, 160});
  expect_checked("tuff_batched_gemm_ex", operation(tuff_batched_gemm_desc{}), false,
                 [&](const tuff_batched_gemm_desc* d) { return tuff_batched_gemm_ex(context(), d); }, {136, 232});
  auto product = operation(tuff_gemm_desc{});
  product.reserved = 1;
  EXPECT_FAILS(tuff_gemm_ex(context(), &product), kArgument, "tuff_gemm_ex", "reserved");
  auto batch = operation(tuff_batched_gemm_desc{});
  batch.reserved = -1;
  EXPECT_FAILS(tuff_batched_gemm_ex(context(), &batch), kArgument, "tuff_batched_gemm_ex", "reserved");
  auto conv = operation(tuff_conv2d_desc{});
  for (int i = 1; i < 4; ++i) conv.in_shape[i] = conv.filter_shape[i] = conv.out_shape[i] = 1;
  conv.filter_shape[0] = 1;
  expect_checked("tuff_conv2d_ex", conv, false, [&](const tuff_conv2d_desc* d) { return tuff_conv2d_ex(context(), d); },
                 {176});
  conv.precision = 4;
  EXPECT_FAILS(tuff_conv2d_ex(context(), &conv), kArgument, "tuff_conv2d_ex", "precision");
  auto line = operation(tuff_conv1d_desc{});
  for (int i = 1; i < 3; ++i) line.in_shape[i] = line.filter_shape[i] = line.out_shape[i] = 1;
  line.filter_shape[0] = 1;
  line.reserved = 1;
  EXPECT_FAILS(tuff_conv1d_ex(context(), &line), kArgument, "tuff_conv1d_ex", "reserved");
  line.reserved = 0;
  expect_checked("tuff_conv1d_ex", line, false,
                 [&](const tuff_conv1d_desc* d) { return tuff_conv1d_ex(context(), d); });
  auto volume = operation(tuff_conv3d_desc{});
  for (int i = 1; i < 5; ++i) volume.in_shape[i] = volume.filter_shape[i] = volume.out_shape[i] = 1;
  volume.filter_shape[0] = 1;
  expect_checked("tuff_conv3d_ex", volume, false,
                 [&](const tuff_conv3d_desc* d) { return tuff_conv3d_ex(context(), d); });
  auto back = operation(tuff_conv_transpose2d_desc{});
  for (int i = 1; i < 4; ++i) back.in_shape[i] = back.filter_shape[i] = back.out_shape[i] = 1;
  back.filter_shape[0] = 1;
  expect_checked("tuff_conv_transpose2d_ex", back, false,
                 [&](const tuff_conv_transpose2d_desc* d) { return tuff_conv_transpose2d_ex(context(), d); });
  auto gradient = operation(tuff_conv_backward_desc{});  // of no images by no filters
  gradient.spatial = 1, gradient.in_shape[2] = gradient.filter_shape[2] = gradient.out_shape[2] = 1;
  expect_checked("tuff_conv_backward_data", gradient, false,
                 [&](const tuff_conv_backward_desc* d) { return tuff_conv_backward_data(context(), d); });
  expect_checked("tuff_conv_backward_filter", gradient, false,
                 [&](const tuff_conv_backward_desc* d) { return tuff_conv_backward_filter(context(), d); });
  gradient.reserved = 1;
  EXPECT_FAILS(tuff_conv_backward_data(context(), &gradient), kArgument, "tuff_conv_backward_data", "reserved");
  auto attend = operation(tuff_attention_desc{});
  attend.seq_q = attend.seq_kv = attend.head_dim = 1;
  expect_checked("tuff_attention_ex", attend, false,
                 [&](const tuff_attention_desc* d) { return tuff_attention_ex(context(), d); }, {96});
  attend.reserved = 1;
  EXPECT_FAILS(tuff_attention_ex(context(), &attend), kArgument, "tuff_attention_ex", "reserved");
  auto attend_backward = operation(tuff_attention_backward_desc{});
  attend_backward.seq_q = attend_backward.seq_kv = attend_backward.head_dim = 1;
  expect_checked("tuff_attention_backward", attend_backward, false,
                 [&](const tuff_attention_backward_desc* d) { return tuff_attention_backward(context(), d); });
  auto reduction = operation(tuff_reduce_desc{});
  reduction.op = TUFF_REDUCE_SUM, reduction.rank = 2, reduction.axis = 1, reduction.shape[1] = 5;
  expect_checked("tuff_reduce_ex", reduction, false,
                 [&](const tuff_reduce_desc* d) { return tuff_reduce_ex(context(), d); }, {104});
  reduction.reserved = 1;
  EXPECT_FAILS(tuff_reduce_ex(context(), &reduction), kArgument, "tuff_reduce_ex", "reserved");
  auto unary = operation(tuff_unary_desc{});
  unary.op = TUFF_UNARY_NEG;
  expect_checked("tuff_unary_ex", unary, false, [&](const tuff_unary_desc* d) { return tuff_unary_ex(context(), d); },
                 {40});
  unary.reserved = 1;
  EXPECT_FAILS(tuff_unary_ex(context(), &unary), kArgument, "tuff_unary_ex", "reserved");
  auto binary = operation(tuff_binary_desc{});
  binary.op = TUFF_BINARY_ADD;
  expect_checked("tuff_binary_ex", binary, false,
                 [&](const tuff_binary_desc* d) { return tuff_binary_ex(context(), d); }, {48});
  binary.reserved = 1;
  EXPECT_FAILS(tuff_binary_ex(context(), &binary), kArgument, "tuff_binary_ex", "reserved");
  auto normalise = operation(tuff_softmax_desc{});
  normalise.rank = 2, normalise.axis = 1, normalise.shape[1] = 5;
  expect_checked("tuff_softmax_ex", normalise, false,
                 [&](const tuff_softmax_desc* d) { return tuff_softmax_ex(context(), d); }, {96});
  auto layer = operation(tuff_layer_norm_desc{});
  layer.cols = 1;
  expect_checked("tuff_layer_norm_ex", layer, false,
                 [&](const tuff_layer_norm_desc* d) { return tuff_layer_norm_ex(context(), d); });
  layer.reserved = 1;
  EXPECT_FAILS(tuff_layer_norm_ex(context(), &layer), kArgument, "tuff_layer_norm_ex", "reserved");
  auto rms = operation(tuff_rms_norm_desc{});
  rms.cols = 1;
  expect_checked("tuff_rms_norm_ex", rms, false,
                 [&](const tuff_rms_norm_desc* d) { return tuff_rms_norm_ex(context(), d); });
  rms.reserved = 1;
  EXPECT_FAILS(tuff_rms_norm_ex(context(), &rms), kArgument, "tuff_rms_norm_ex", "reserved");
  auto group = operation(tuff_group_norm_desc{});
  group.channels = group.inner = 1;
  expect_checked("tuff_group_norm_ex", group, false,
                 [&](const tuff_group_norm_desc* d) { return tuff_group_norm_ex(context(), d); });
  group.reserved = 1;
  EXPECT_FAILS(tuff_group_norm_ex(context(), &group), kArgument, "tuff_group_norm_ex", "reserved");
  auto stored = operation(tuff_batch_norm_desc{});
  expect_checked("tuff_batch_norm_ex", stored, false,
                 [&](const tuff_batch_norm_desc* d) { return tuff_batch_norm_ex(context(), d); });
  stored.reserved = 1;
  EXPECT_FAILS(tuff_batch_norm_ex(context(), &stored), kArgument, "tuff_batch_norm_ex", "reserved");
  auto permuted = operation(tuff_permute_desc{});
  permuted.rank = 2, permuted.order[0] = 1, permuted.shape[1] = 5;
  expect_checked("tuff_permute_ex", permuted, false,
                 [&](const tuff_permute_desc* d) { return tuff_permute_ex(context(), d); });
  permuted.reserved = 1;
  EXPECT_FAILS(tuff_permute_ex(context(), &permuted), kArgument, "tuff_permute_ex", "reserved");
  auto cast = tuff_cast_desc{};
  cast.struct_size = sizeof cast, cast.input_type = F, cast.output_type = TUFF_I8;
  expect_checked("tuff_cast_ex", cast, false, [&](const tuff_cast_desc* d) { return tuff_cast_ex(context(), d); });
  cast.reserved = 1;
  EXPECT_FAILS(tuff_cast_ex(context(), &cast), kArgument, "tuff_cast_ex", "reserved");
  auto slice = operation(tuff_slice_desc{});
  slice.rank = 2, slice.shape[1] = 5;
  expect_checked("tuff_slice_ex", slice, false, [&](const tuff_slice_desc* d) { return tuff_slice_ex(context(), d); });
  slice.reserved = 1;
  EXPECT_FAILS(tuff_slice_ex(context(), &slice), kArgument, "tuff_slice_ex", "reserved");
  auto concat = operation(tuff_concat_desc{});
  concat.rank = 2, concat.axis = 1, concat.shape[0] = 5;
  expect_checked("tuff_concat_ex", concat, false,
                 [&](const tuff_concat_desc* d) { return tuff_concat_ex(context(), d); });
  concat.reserved = 1;
  EXPECT_FAILS(tuff_concat_ex(context(), &concat), kArgument, "tuff_concat_ex", "reserved");
  auto gather = operation(tuff_gather_desc{});
  gather.rank = 2, gather.index_type = TUFF_U32, gather.shape[1] = 5;
  expect_checked("tuff_gather_ex", gather, false,
                 [&](const tuff_gather_desc* d) { return tuff_gather_ex(context(), d); }, {184});
  gather.elementwise = 2;
  EXPECT_FAILS(tuff_gather_ex(context(), &gather), kArgument, "tuff_gather_ex", "elementwise");
  gather.elementwise = 0, gather.negative = 2;
  EXPECT_FAILS(tuff_gather_ex(context(), &gather), kArgument, "tuff_gather_ex", "negative");
  auto scatter = operation(tuff_scatter_desc{});
  scatter.rank = 2, scatter.index_type = TUFF_U32, scatter.op = TUFF_SCATTER_ADD, scatter.shape[1] = 5;
  expect_checked("tuff_scatter", scatter, false,
                 [&](const tuff_scatter_desc* d) { return tuff_scatter(context(), d); });
  scatter.reserved = 1;
  EXPECT_FAILS(tuff_scatter(context(), &scatter), kArgument, "tuff_scatter", "reserved");
  auto pad = operation(tuff_pad_desc{});
  pad.rank = 2, pad.shape[1] = 5;
  expect_checked("tuff_pad", pad, false, [&](const tuff_pad_desc* d) { return tuff_pad(context(), d); });
  auto strided = operation(tuff_copy_strided_desc{});
  strided.rank = 2, strided.shape[1] = 5;
  expect_checked("tuff_copy_strided", strided, false,
                 [&](const tuff_copy_strided_desc* d) { return tuff_copy_strided(context(), d); });
  strided.reserved = 1;
  EXPECT_FAILS(tuff_copy_strided(context(), &strided), kArgument, "tuff_copy_strided", "reserved");
  auto rope = operation(tuff_rope_desc{});
  rope.head_dim = 4;
  expect_checked("tuff_rope_ex", rope, false, [&](const tuff_rope_desc* d) { return tuff_rope_ex(context(), d); });
  rope.reserved = 1;
  EXPECT_FAILS(tuff_rope_ex(context(), &rope), kArgument, "tuff_rope_ex", "reserved");
  auto pool = operation(tuff_pool_desc{});
  pool.spatial = 1, pool.in_shape[0] = pool.out_shape[0] = pool.kernel[0] = 1;
  expect_checked("tuff_max_pool", pool, false, [&](const tuff_pool_desc* d) { return tuff_max_pool(context(), d); });
  expect_checked("tuff_avg_pool", pool, false, [&](const tuff_pool_desc* d) { return tuff_avg_pool(context(), d); });
  auto pool_backward = operation(tuff_pool_backward_desc{});
  pool_backward.spatial = 1, pool_backward.in_shape[0] = pool_backward.out_shape[0] = pool_backward.kernel[0] = 1;
  expect_checked("tuff_pool_backward", pool_backward, false,
                 [&](const tuff_pool_backward_desc* d) { return tuff_pool_backward(context(), d); });
  pool_backward.reserved = 1;
  EXPECT_FAILS(tuff_pool_backward(context(), &pool_backward), kArgument, "tuff_pool_backward", "reserved");
  auto scan = operation(tuff_scan_desc{});
  scan.rank = 1;
  expect_checked("tuff_cumsum", scan, false, [&](const tuff_scan_desc* d) { return tuff_cumsum(context(), d); });
  expect_checked("tuff_cumprod", scan, false, [&](const tuff_scan_desc* d) { return tuff_cumprod(context(), d); });
  expect_checked("tuff_cummax", scan, false, [&](const tuff_scan_desc* d) { return tuff_cummax(context(), d); });
  expect_checked("tuff_cummin", scan, false, [&](const tuff_scan_desc* d) { return tuff_cummin(context(), d); });
  expect_checked("tuff_cumlogsumexp", scan, false,
                 [&](const tuff_scan_desc* d) { return tuff_cumlogsumexp(context(), d); });
  auto sort = operation(tuff_sort_desc{});
  sort.rank = 1;
  expect_checked("tuff_sort", sort, false, [&](const tuff_sort_desc* d) { return tuff_sort(context(), d); });
  auto random = operation(tuff_random_desc{});
  random.distribution = TUFF_RANDOM_NORMAL;
  expect_checked("tuff_random", random, false, [&](const tuff_random_desc* d) { return tuff_random(context(), d); });
  random.reserved = 1;
  EXPECT_FAILS(tuff_random(context(), &random), kArgument, "tuff_random", "reserved");
  auto dropout = operation(tuff_dropout_desc{});
  expect_checked("tuff_dropout", dropout, false,
                 [&](const tuff_dropout_desc* d) { return tuff_dropout(context(), d); });
  auto fft = operation(tuff_fft_desc{});
  fft.kind = TUFF_FFT_COMPLEX, fft.rank = 2, fft.shape[1] = 1;
  expect_checked("tuff_fft", fft, false, [&](const tuff_fft_desc* d) { return tuff_fft(context(), d); });
  fft.reserved = 1;
  EXPECT_FAILS(tuff_fft(context(), &fft), kArgument, "tuff_fft", "reserved");
  auto rnn = operation(tuff_rnn_desc{});
  rnn.input_size = rnn.hidden_size = 1;
  expect_checked("tuff_rnn", rnn, false, [&](const tuff_rnn_desc* d) { return tuff_rnn(context(), d); });
  auto rnn_backward = operation(tuff_rnn_backward_desc{});
  rnn_backward.input_size = rnn_backward.hidden_size = 1;
  expect_checked("tuff_rnn_backward", rnn_backward, false,
                 [&](const tuff_rnn_backward_desc* d) { return tuff_rnn_backward(context(), d); });
  tuff_optimizer_desc optimizer{};
  optimizer.struct_size = sizeof optimizer;
  optimizer.dtype = TUFF_F32;
  expect_checked("tuff_optimizer_step", optimizer, false,
                 [&](const tuff_optimizer_desc* d) { return tuff_optimizer_step(context(), d); });
  auto cross_entropy = operation(tuff_cross_entropy_desc{});
  cross_entropy.label_type = TUFF_I32, cross_entropy.rank = 2, cross_entropy.axis = 1;
  expect_checked("tuff_cross_entropy", cross_entropy, false,
                 [&](const tuff_cross_entropy_desc* d) { return tuff_cross_entropy(context(), d); });
  auto softmax_backward = operation(tuff_softmax_backward_desc{});
  softmax_backward.rank = 2;
  expect_checked("tuff_softmax_backward", softmax_backward, false,
                 [&](const tuff_softmax_backward_desc* d) { return tuff_softmax_backward(context(), d); });
  tuff_norm_backward_desc norm_backward{};
  norm_backward.struct_size = sizeof norm_backward;
  norm_backward.dtype = TUFF_F32, norm_backward.kind = TUFF_NORM_BATCH;
  expect_checked("tuff_norm_backward", norm_backward, false,
                 [&](const tuff_norm_backward_desc* d) { return tuff_norm_backward(context(), d); });
  tuff_batch_norm_training_desc norm_training{};
  norm_training.struct_size = sizeof norm_training;
  norm_training.dtype = TUFF_F32;
  expect_checked("tuff_batch_norm_training", norm_training, false,
                 [&](const tuff_batch_norm_training_desc* d) { return tuff_batch_norm_training(context(), d); });
  const OwnBuffer norm(context(), 4);
  tuff_gradient_norm_desc gradient_norm{};
  gradient_norm.struct_size = sizeof gradient_norm;
  gradient_norm.dtype = TUFF_F32, gradient_norm.norm = norm;
  expect_checked("tuff_gradient_norm", gradient_norm, false,
                 [&](const tuff_gradient_norm_desc* d) { return tuff_gradient_norm(context(), d); });
  auto quantize = operation(tuff_quantize_desc{});
  quantize.format = TUFF_QUANT_I8, quantize.rank = 2, quantize.shape[1] = 1;
  expect_checked("tuff_quantize", quantize, false,
                 [&](const tuff_quantize_desc* d) { return tuff_quantize(context(), d); });
  auto dequantize = operation(tuff_dequantize_desc{});
  dequantize.format = TUFF_QUANT_I8, dequantize.rank = 2, dequantize.shape[1] = 1;
  expect_checked("tuff_dequantize", dequantize, false,
                 [&](const tuff_dequantize_desc* d) { return tuff_dequantize(context(), d); });
  tuff_qgemm_desc qgemm{};
  qgemm.struct_size = sizeof qgemm;
  qgemm.format = TUFF_QUANT_I8, qgemm.a_type = TUFF_F32;
  expect_checked("tuff_qgemm", qgemm, false, [&](const tuff_qgemm_desc* d) { return tuff_qgemm(context(), d); });
  auto resize = operation(tuff_resize_desc{});
  resize.spatial = 1, resize.in_shape[0] = resize.out_shape[0] = 1;
  expect_checked("tuff_resize", resize, false, [&](const tuff_resize_desc* d) { return tuff_resize(context(), d); });
  auto cholesky = operation(tuff_cholesky_desc{});
  expect_checked("tuff_cholesky", cholesky, false,
                 [&](const tuff_cholesky_desc* d) { return tuff_cholesky(context(), d); });
  expect_checked("tuff_lu", operation(tuff_lu_desc{}), false,
                 [&](const tuff_lu_desc* d) { return tuff_lu(context(), d); });
  expect_checked("tuff_triangular_solve", operation(tuff_triangular_solve_desc{}), false,
                 [&](const tuff_triangular_solve_desc* d) { return tuff_triangular_solve(context(), d); });
  expect_checked("tuff_lu_solve", operation(tuff_lu_solve_desc{}), false,
                 [&](const tuff_lu_solve_desc* d) { return tuff_lu_solve(context(), d); });
  expect_checked("tuff_lu_determinant", operation(tuff_lu_determinant_desc{}), false,
                 [&](const tuff_lu_determinant_desc* d) { return tuff_lu_determinant(context(), d); });
  expect_checked("tuff_qr", operation(tuff_qr_desc{}), false,
                 [&](const tuff_qr_desc* d) { return tuff_qr(context(), d); });
  expect_checked("tuff_eigh", operation(tuff_eigh_desc{}), false,
                 [&](const tuff_eigh_desc* d) { return tuff_eigh(context(), d); });
  auto spmm = operation(tuff_spmm_desc{});
  spmm.index_type = TUFF_I32;
  expect_checked("tuff_spmm", spmm, false, [&](const tuff_spmm_desc* d) { return tuff_spmm(context(), d); });
  spmm.reserved = 1;
  EXPECT_FAILS(tuff_spmm(context(), &spmm), kArgument, "tuff_spmm", "reserved");
  auto convert = operation(tuff_sparse_convert_desc{});
  convert.index_type = TUFF_I32, convert.from_format = convert.to_format = TUFF_SPARSE_COO;
  expect_checked("tuff_sparse_convert", convert, false,
                 [&](const tuff_sparse_convert_desc* d) { return tuff_sparse_convert(context(), d); });
  convert.reserved = 1;
  EXPECT_FAILS(tuff_sparse_convert(context(), &convert), kArgument, "tuff_sparse_convert", "reserved");
  auto sddmm = operation(tuff_sddmm_desc{});
  sddmm.index_type = TUFF_I32, sddmm.place_format = TUFF_SPARSE_COO;
  expect_checked("tuff_sddmm", sddmm, false, [&](const tuff_sddmm_desc* d) { return tuff_sddmm(context(), d); });
  sddmm.reserved = 1;
  EXPECT_FAILS(tuff_sddmm(context(), &sddmm), kArgument, "tuff_sddmm", "reserved");
  const OwnBuffer no_entries(context(), 4);
  auto spgemm = operation(tuff_spgemm_desc{});
  spgemm.index_type = TUFF_I32, spgemm.c_offsets = no_entries;
  expect_checked("tuff_spgemm", spgemm, false, [&](const tuff_spgemm_desc* d) { return tuff_spgemm(context(), d); });
  spgemm.reserved = 1;
  EXPECT_FAILS(tuff_spgemm(context(), &spgemm), kArgument, "tuff_spgemm", "reserved");
  auto triangular = operation(tuff_sparse_triangular_solve_desc{});
  triangular.index_type = TUFF_I32;
  expect_checked("tuff_sparse_triangular_solve", triangular, false, [&](const tuff_sparse_triangular_solve_desc* d) {
    return tuff_sparse_triangular_solve(context(), d);
  });
  triangular.reserved = 1;
  EXPECT_FAILS(tuff_sparse_triangular_solve(context(), &triangular), kArgument, "tuff_sparse_triangular_solve",
               "reserved");
  expect_checked("tuff_svd", operation(tuff_svd_desc{}), false,
                 [&](const tuff_svd_desc* d) { return tuff_svd(context(), d); });
}

// Calls that create objects, which are destroyed again.
TEST_P(Structures, StreamStructures) {
  expect_checked("tuff_stream_create", sized<tuff_stream_desc>(), false, [&](const tuff_stream_desc* d) {
    tuff_stream made = 0;
    const tuff_status status = tuff_stream_create(context(), d, &made);
    if (status == TUFF_OK) {
      EXPECT_OK(tuff_stream_destroy(made));
    }
    return status;
  });
  expect_checked("tuff_event_create", sized<tuff_event_desc>(), false, [&](const tuff_event_desc* d) {
    tuff_event made = 0;
    const tuff_status status = tuff_event_create(context(), d, &made);
    if (status == TUFF_OK) {
      EXPECT_OK(tuff_event_destroy(made));
    }
    return status;
  });
}

TEST_P(Structures, KernelStructures) {
  auto desc = sized<tuff_kernel_desc>();
  desc.source = "#version 450\nvoid main() {}\n";
  tuff_kernel kernel = TUFF_NULL_HANDLE;
  if (!vulkan()) {
    EXPECT_FAILS(tuff_kernel_create(context(), &desc, &kernel), TUFF_ERROR_UNSUPPORTED, "tuff_kernel_create", "host");
    return;
  }
  expect_checked("tuff_kernel_create", desc, false, [&](const tuff_kernel_desc* d) {
    tuff_kernel made = 0;
    const tuff_status status = tuff_kernel_create(context(), d, &made);
    if (status == TUFF_OK) {
      EXPECT_OK(tuff_kernel_destroy(made));
    }
    return status;
  });
  ASSERT_OK(tuff_kernel_create(context(), &desc, &kernel));
  expect_checked("tuff_kernel_info", sized<tuff_kernel_properties>(), true,
                 [&](tuff_kernel_properties* info) { return tuff_kernel_info(kernel, info); });
  EXPECT_OK(tuff_kernel_destroy(kernel));
}

TEST_P(Structures, ExpressionStructures) {
  const tuff_expr_variable input{"a", TUFF_F32, 0}, output{"y", TUFF_F32, 0};
  auto desc = sized<tuff_expr_desc>();
  desc.formula = "a + 1";
  desc.inputs = &input, desc.input_count = 1, desc.outputs = &output, desc.output_count = 1;
  expect_checked("tuff_expr_create", desc, false, [&](const tuff_expr_desc* d) {
    tuff_expr made = 0;
    const tuff_status status = tuff_expr_create(context(), d, &made);
    if (status == TUFF_OK) {
      EXPECT_OK(tuff_expr_destroy(made));
    }
    return status;
  });
  const OwnBuffer buffer(context(), 4);
  tuff_expr_operand operand{};
  operand.buffer = buffer;
  auto run = sized<tuff_expr_run_desc>();
  run.inputs = run.outputs = &operand, run.input_count = run.output_count = 1;
  tuff_expr expr = 0;
  ASSERT_OK(tuff_expr_create(context(), &desc, &expr));
  expect_checked("tuff_expr_run", run, false,
                 [&](const tuff_expr_run_desc* d) { return tuff_expr_run(context(), expr, d); });
  EXPECT_OK(tuff_expr_destroy(expr));
}

// Every function of the ABI that takes a structure and handles, with plausible arguments: whatever else is wrong with
// them, a size is refused exactly if no version of the structure ends there.
TEST_P(Structures, SizesOfEveryFunction) {
  using namespace tuff_fuzz;
  const OwnContext own(GetParam());
  const OwnBuffer buffer(own, 256);
  tuff_stream stream = 0;
  tuff_event event = 0;
  ASSERT_OK(tuff_stream_create(own, nullptr, &stream));
  ASSERT_OK(tuff_event_create(own, nullptr, &event));
  const auto handle_at = [&](const Place& place) -> uint64_t {
    const std::string type = handle_types()[static_cast<size_t>(place.group)];
    return type == "tuff_context"  ? static_cast<tuff_context>(own)
           : type == "tuff_stream" ? stream
           : type == "tuff_event"  ? event
           : type == "tuff_buffer" ? static_cast<tuff_buffer>(buffer)
                                   : 0;
  };
  AtTheEnd memory;
  const auto others = std::make_unique<CallMemory>();
  size_t tried = 0;
  for (const Function& function : functions()) {
    const bool can_call = std::any_of(function.places.begin(), function.places.end(),
                                      [](const Place& place) { return place.kind == Kind::handle; }) &&
                          std::all_of(function.places.begin(), function.places.end(), [&](const Place& place) {
                            return place.kind != Kind::handle || place.in_structure || handle_at(place) != 0;
                          });
    for (size_t i = 0; can_call && i < function.arguments.size(); ++i) {
      const Argument& argument = function.arguments[i];
      if (argument.structure < 0) continue;
      ++tried;
      const Structure& structure = structures()[static_cast<size_t>(argument.structure)];
      for (uint32_t size = 0; size < structure.size + 40; ++size) {
        const bool released = std::find(structure.sizes.begin(), structure.sizes.end(), size) != structure.sizes.end();
        for (const bool tail : {false, true}) {
          if (tail && size <= structure.size) continue;
          unsigned char* bytes = memory.place(std::max<size_t>(size, sizeof size), 0);
          if (tail) bytes[size - 1] = 1;
          const PlacedStructure placed{i, bytes, size};
          const tuff_status status = call_plausibly(function, *others, handle_at, &placed);
          const bool names_size =
              status == TUFF_ERROR_INVALID_ARGUMENT && last_error().find("struct_size") != std::string::npos;
          const bool refused = (size < structure.size && !released) || (tail && argument.way == Way::in);
          EXPECT_EQ(names_size, refused) << function.name << ", " << size << " bytes of " << structure.name << ": "
                                         << tuff_status_name(status) << ", " << last_error();
        }
      }
    }
  }
  EXPECT_GE(tried, 37u);
  EXPECT_OK(tuff_event_destroy(event));
  EXPECT_OK(tuff_stream_destroy(stream));
}
TUFF_ON_BACKENDS(Structures);

}  // namespace
}  // namespace tuff_test::structures_test
