// struct_size of every structure, with all its possible values, including a tail that this version does not know.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
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

// The valid descriptors that change nothing below, each without elements. A function and its name:
#define NAMED(function) #function, function

template <typename T>
T operation(T desc) {
  desc.struct_size = sizeof(T);
  desc.dtype = F;
  return desc;
}

// Convolutions of no images, whose other sizes are 1.
template <typename T>
T of_no_images(T desc) {
  for (size_t i = 1; i < std::size(desc.in_shape); ++i) desc.in_shape[i] = desc.filter_shape[i] = desc.out_shape[i] = 1;
  desc.filter_shape[0] = 1;
  return desc;
}

class StructuresOfOperations : public OnBackend {
 protected:
  template <typename T>
  void expect_taken(const char* name, tuff_status (*call)(tuff_context, const T*), const T& desc,
                    const std::vector<size_t>& earlier = {}) {
    expect_checked(
        name, desc, false, [&](const T* d) { return call(context(), d); }, earlier);
  }
  template <typename T>
  void expect_reserved_refused(const char* name, tuff_status (*call)(tuff_context, const T*), T desc) {
    desc.reserved = 1;
    EXPECT_FAILS(call(context(), &desc), kArgument, name, "reserved");
  }
};

TEST_P(StructuresOfOperations, Products) {
  expect_taken(NAMED(tuff_gemm_ex), operation(tuff_gemm_desc{}), {104, 160});
  expect_taken(NAMED(tuff_batched_gemm_ex), operation(tuff_batched_gemm_desc{}), {136, 232});
  expect_reserved_refused(NAMED(tuff_gemm_ex), operation(tuff_gemm_desc{}));
  expect_reserved_refused(NAMED(tuff_batched_gemm_ex), operation(tuff_batched_gemm_desc{}));
  auto quantize = operation(tuff_quantize_desc{});
  quantize.format = TUFF_QUANT_I8, quantize.rank = 2, quantize.shape[1] = 1;
  expect_taken(NAMED(tuff_quantize), quantize);
  auto dequantize = operation(tuff_dequantize_desc{});
  dequantize.format = TUFF_QUANT_I8, dequantize.rank = 2, dequantize.shape[1] = 1;
  expect_taken(NAMED(tuff_dequantize), dequantize);
  auto qgemm = sized<tuff_qgemm_desc>();
  qgemm.format = TUFF_QUANT_I8, qgemm.a_type = TUFF_F32;
  expect_taken(NAMED(tuff_qgemm), qgemm);
}

TEST_P(StructuresOfOperations, Windows) {
  auto conv = of_no_images(operation(tuff_conv2d_desc{}));
  expect_taken(NAMED(tuff_conv2d_ex), conv, {176});
  conv.precision = 4;
  EXPECT_FAILS(tuff_conv2d_ex(context(), &conv), kArgument, "tuff_conv2d_ex", "precision");
  auto line = of_no_images(operation(tuff_conv1d_desc{}));
  expect_taken(NAMED(tuff_conv1d_ex), line);
  expect_reserved_refused(NAMED(tuff_conv1d_ex), line);
  expect_taken(NAMED(tuff_conv3d_ex), of_no_images(operation(tuff_conv3d_desc{})));
  expect_taken(NAMED(tuff_conv_transpose2d_ex), of_no_images(operation(tuff_conv_transpose2d_desc{})));
  auto gradient = operation(tuff_conv_backward_desc{});  // of no images by no filters
  gradient.spatial = 1, gradient.in_shape[2] = gradient.filter_shape[2] = gradient.out_shape[2] = 1;
  expect_taken(NAMED(tuff_conv_backward_data), gradient);
  expect_taken(NAMED(tuff_conv_backward_filter), gradient);
  expect_reserved_refused(NAMED(tuff_conv_backward_data), gradient);
  auto pool = operation(tuff_pool_desc{});
  pool.spatial = 1, pool.in_shape[0] = pool.out_shape[0] = pool.kernel[0] = 1;
  expect_taken(NAMED(tuff_max_pool), pool);
  expect_taken(NAMED(tuff_avg_pool), pool);
  auto pool_backward = operation(tuff_pool_backward_desc{});
  pool_backward.spatial = 1, pool_backward.in_shape[0] = pool_backward.out_shape[0] = pool_backward.kernel[0] = 1;
  expect_taken(NAMED(tuff_pool_backward), pool_backward);
  expect_reserved_refused(NAMED(tuff_pool_backward), pool_backward);
  auto resize = operation(tuff_resize_desc{});
  resize.spatial = 1, resize.in_shape[0] = resize.out_shape[0] = 1;
  expect_taken(NAMED(tuff_resize), resize);
}

TEST_P(StructuresOfOperations, Attention) {
  auto attend = operation(tuff_attention_desc{});
  attend.seq_q = attend.seq_kv = attend.head_dim = 1;
  expect_taken(NAMED(tuff_attention_ex), attend, {96, 328});
  expect_reserved_refused(NAMED(tuff_attention_ex), attend);
  auto attend_backward = operation(tuff_attention_backward_desc{});
  attend_backward.seq_q = attend_backward.seq_kv = attend_backward.head_dim = 1;
  expect_taken(NAMED(tuff_attention_backward), attend_backward);
  auto rope = operation(tuff_rope_desc{});
  rope.head_dim = 4;
  expect_taken(NAMED(tuff_rope_ex), rope);
  expect_reserved_refused(NAMED(tuff_rope_ex), rope);
  auto rnn = operation(tuff_rnn_desc{});
  rnn.input_size = rnn.hidden_size = 1;
  expect_taken(NAMED(tuff_rnn), rnn);
  auto rnn_backward = operation(tuff_rnn_backward_desc{});
  rnn_backward.input_size = rnn_backward.hidden_size = 1;
  expect_taken(NAMED(tuff_rnn_backward), rnn_backward);
}

TEST_P(StructuresOfOperations, Rows) {
  auto reduction = operation(tuff_reduce_desc{});
  reduction.op = TUFF_REDUCE_SUM, reduction.rank = 2, reduction.axis = 1, reduction.shape[1] = 5;
  expect_taken(NAMED(tuff_reduce_ex), reduction, {104});
  expect_reserved_refused(NAMED(tuff_reduce_ex), reduction);
  auto normalise = operation(tuff_softmax_desc{});
  normalise.rank = 2, normalise.axis = 1, normalise.shape[1] = 5;
  expect_taken(NAMED(tuff_softmax_ex), normalise, {96});
  auto layer = operation(tuff_layer_norm_desc{});
  layer.cols = 1;
  expect_taken(NAMED(tuff_layer_norm_ex), layer);
  expect_reserved_refused(NAMED(tuff_layer_norm_ex), layer);
  auto rms = operation(tuff_rms_norm_desc{});
  rms.cols = 1;
  expect_taken(NAMED(tuff_rms_norm_ex), rms);
  expect_reserved_refused(NAMED(tuff_rms_norm_ex), rms);
  auto group = operation(tuff_group_norm_desc{});
  group.channels = group.inner = 1;
  expect_taken(NAMED(tuff_group_norm_ex), group);
  expect_reserved_refused(NAMED(tuff_group_norm_ex), group);
  auto stored = operation(tuff_batch_norm_desc{});
  expect_taken(NAMED(tuff_batch_norm_ex), stored);
  expect_reserved_refused(NAMED(tuff_batch_norm_ex), stored);
  auto scan = operation(tuff_scan_desc{});
  scan.rank = 1;
  expect_taken(NAMED(tuff_cumsum), scan);
  expect_taken(NAMED(tuff_cumprod), scan);
  expect_taken(NAMED(tuff_cummax), scan);
  expect_taken(NAMED(tuff_cummin), scan);
  expect_taken(NAMED(tuff_cumlogsumexp), scan);
  auto sort = operation(tuff_sort_desc{});
  sort.rank = 1;
  expect_taken(NAMED(tuff_sort), sort);
  auto fft = operation(tuff_fft_desc{});
  fft.kind = TUFF_FFT_COMPLEX, fft.rank = 2, fft.shape[1] = 1;
  expect_taken(NAMED(tuff_fft), fft);
  expect_reserved_refused(NAMED(tuff_fft), fft);
  auto dct = operation(tuff_dct_desc{});
  dct.kind = TUFF_DCT_2, dct.rank = 2, dct.shape[1] = 1;
  expect_taken(NAMED(tuff_dct), dct);
  expect_reserved_refused(NAMED(tuff_dct), dct);
}

TEST_P(StructuresOfOperations, Elements) {
  auto unary = operation(tuff_unary_desc{});
  unary.op = TUFF_UNARY_NEG;
  expect_taken(NAMED(tuff_unary_ex), unary, {40});
  expect_reserved_refused(NAMED(tuff_unary_ex), unary);
  auto binary = operation(tuff_binary_desc{});
  binary.op = TUFF_BINARY_ADD;
  expect_taken(NAMED(tuff_binary_ex), binary, {48});
  expect_reserved_refused(NAMED(tuff_binary_ex), binary);
  auto cast = sized<tuff_cast_desc>();
  cast.input_type = F, cast.output_type = TUFF_I8;
  expect_taken(NAMED(tuff_cast_ex), cast);
  expect_reserved_refused(NAMED(tuff_cast_ex), cast);
  auto random = operation(tuff_random_desc{});
  random.distribution = TUFF_RANDOM_NORMAL;
  expect_taken(NAMED(tuff_random), random);
  expect_reserved_refused(NAMED(tuff_random), random);
  expect_taken(NAMED(tuff_dropout), operation(tuff_dropout_desc{}));
  auto variates = operation(tuff_variates_desc{});
  variates.distribution = TUFF_VARIATES_GAMMA;
  expect_taken(NAMED(tuff_variates), variates);
  expect_reserved_refused(NAMED(tuff_variates), variates);
}

TEST_P(StructuresOfOperations, Shapes) {
  auto permuted = operation(tuff_permute_desc{});
  permuted.rank = 2, permuted.order[0] = 1, permuted.shape[1] = 5;
  expect_taken(NAMED(tuff_permute_ex), permuted);
  expect_reserved_refused(NAMED(tuff_permute_ex), permuted);
  auto slice = operation(tuff_slice_desc{});
  slice.rank = 2, slice.shape[1] = 5;
  expect_taken(NAMED(tuff_slice_ex), slice);
  expect_reserved_refused(NAMED(tuff_slice_ex), slice);
  auto concat = operation(tuff_concat_desc{});
  concat.rank = 2, concat.axis = 1, concat.shape[0] = 5;
  expect_taken(NAMED(tuff_concat_ex), concat);
  expect_reserved_refused(NAMED(tuff_concat_ex), concat);
  auto gather = operation(tuff_gather_desc{});
  gather.rank = 2, gather.index_type = TUFF_U32, gather.shape[1] = 5;
  expect_taken(NAMED(tuff_gather_ex), gather, {184});
  gather.elementwise = 2;
  EXPECT_FAILS(tuff_gather_ex(context(), &gather), kArgument, "tuff_gather_ex", "elementwise");
  gather.elementwise = 0, gather.negative = 2;
  EXPECT_FAILS(tuff_gather_ex(context(), &gather), kArgument, "tuff_gather_ex", "negative");
  auto scatter = operation(tuff_scatter_desc{});
  scatter.rank = 2, scatter.index_type = TUFF_U32, scatter.op = TUFF_SCATTER_ADD, scatter.shape[1] = 5;
  expect_taken(NAMED(tuff_scatter), scatter);
  expect_reserved_refused(NAMED(tuff_scatter), scatter);
  auto select = operation(tuff_select_desc{});
  select.op = TUFF_SELECT_UNIQUE, select.capacity = 5;
  expect_taken(NAMED(tuff_select), select);
  auto pad = operation(tuff_pad_desc{});
  pad.rank = 2, pad.shape[1] = 5;
  expect_taken(NAMED(tuff_pad), pad);
  auto strided = operation(tuff_copy_strided_desc{});
  strided.rank = 2, strided.shape[1] = 5;
  expect_taken(NAMED(tuff_copy_strided), strided);
  expect_reserved_refused(NAMED(tuff_copy_strided), strided);
}

TEST_P(StructuresOfOperations, Training) {
  auto optimizer = sized<tuff_optimizer_desc>();
  optimizer.dtype = TUFF_F32;
  expect_taken(NAMED(tuff_optimizer_step), optimizer);
  auto cross_entropy = operation(tuff_cross_entropy_desc{});
  cross_entropy.label_type = TUFF_I32, cross_entropy.rank = 2, cross_entropy.axis = 1;
  expect_taken(NAMED(tuff_cross_entropy), cross_entropy);
  auto softmax_backward = operation(tuff_softmax_backward_desc{});
  softmax_backward.rank = 2;
  expect_taken(NAMED(tuff_softmax_backward), softmax_backward);
  auto norm_backward = sized<tuff_norm_backward_desc>();
  norm_backward.dtype = TUFF_F32, norm_backward.kind = TUFF_NORM_BATCH;
  expect_taken(NAMED(tuff_norm_backward), norm_backward);
  auto norm_training = sized<tuff_batch_norm_training_desc>();
  norm_training.dtype = TUFF_F32;
  expect_taken(NAMED(tuff_batch_norm_training), norm_training);
  const OwnBuffer norm(context(), 4);
  auto gradient_norm = sized<tuff_gradient_norm_desc>();
  gradient_norm.dtype = TUFF_F32, gradient_norm.norm = norm;
  expect_taken(NAMED(tuff_gradient_norm), gradient_norm);
}

TEST_P(StructuresOfOperations, LinearAlgebra) {
  expect_taken(NAMED(tuff_cholesky), operation(tuff_cholesky_desc{}));
  expect_taken(NAMED(tuff_lu), operation(tuff_lu_desc{}));
  expect_taken(NAMED(tuff_triangular_solve), operation(tuff_triangular_solve_desc{}));
  expect_taken(NAMED(tuff_lu_solve), operation(tuff_lu_solve_desc{}));
  expect_taken(NAMED(tuff_lu_determinant), operation(tuff_lu_determinant_desc{}));
  expect_taken(NAMED(tuff_qr), operation(tuff_qr_desc{}));
  expect_taken(NAMED(tuff_eigh), operation(tuff_eigh_desc{}));
  expect_taken(NAMED(tuff_eig), operation(tuff_eig_desc{}));
  expect_taken(NAMED(tuff_svd), operation(tuff_svd_desc{}));
}

TEST_P(StructuresOfOperations, SparseMatrices) {
  auto spmm = operation(tuff_spmm_desc{});
  spmm.index_type = TUFF_I32;
  expect_taken(NAMED(tuff_spmm), spmm);
  expect_reserved_refused(NAMED(tuff_spmm), spmm);
  auto convert = operation(tuff_sparse_convert_desc{});
  convert.index_type = TUFF_I32, convert.from_format = convert.to_format = TUFF_SPARSE_COO;
  expect_taken(NAMED(tuff_sparse_convert), convert);
  expect_reserved_refused(NAMED(tuff_sparse_convert), convert);
  auto sddmm = operation(tuff_sddmm_desc{});
  sddmm.index_type = TUFF_I32, sddmm.place_format = TUFF_SPARSE_COO;
  expect_taken(NAMED(tuff_sddmm), sddmm);
  expect_reserved_refused(NAMED(tuff_sddmm), sddmm);
  const OwnBuffer no_entries(context(), 4);
  auto spgemm = operation(tuff_spgemm_desc{});
  spgemm.index_type = TUFF_I32, spgemm.c_offsets = no_entries;
  expect_taken(NAMED(tuff_spgemm), spgemm);
  expect_reserved_refused(NAMED(tuff_spgemm), spgemm);
  auto triangular = operation(tuff_sparse_triangular_solve_desc{});
  triangular.index_type = TUFF_I32;
  expect_taken(NAMED(tuff_sparse_triangular_solve), triangular);
  expect_reserved_refused(NAMED(tuff_sparse_triangular_solve), triangular);
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
TUFF_ON_BACKENDS(StructuresOfOperations);

}  // namespace
}  // namespace tuff_test::structures_test
