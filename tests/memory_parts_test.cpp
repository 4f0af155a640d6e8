// Calls that are computed in parts, one after another or by several threads, on backends that compute while they are
// called: whichever of the call's allocations fails, no part is written.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "support/allocation_count.hpp"
#include "support/call_table.hpp"
#include "support/harness.hpp"
#include "support/stream.hpp"

namespace tuff_test::memory_parts_test {
namespace {

using Bytes = std::vector<uint8_t>;

template <typename T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Small integers, whose sums are exact, so that all ways of computing them give the same bits.
Bytes numbers(size_t count, float last = 1) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i * 7 % 11) - 5;
  values.back() = last;
  return bytes_of(values);
}

struct PartedCall {
  const char* name;
  std::vector<Bytes> operands;
  std::function<tuff_status(tuff_stream stream, const tuff_buffer* operands)> call;
};

// Matrices of size x size. C is read, and with `with_residual` holds no sums.
PartedCall gemms(const char* name, uint64_t size, uint64_t count, bool with_residual) {
  const auto matrices = [&] { return numbers(size * size * count); };
  return {name, {matrices(), matrices(), matrices(), matrices()}, [=](tuff_stream stream, const tuff_buffer* x) {
            auto desc = described<tuff_batched_gemm_desc>();
            desc.m = desc.n = desc.k = size, desc.alpha = 1, desc.beta = 2;
            desc.a = x[0], desc.b = x[1], desc.c = x[2], desc.batch_count = count;
            desc.stride_a = desc.stride_b = desc.stride_c = size * size;
            if (with_residual) desc.residual = x[3], desc.stride_residual = size * size;
            return tuff_batched_gemm_ex(stream, &desc);
          }};
}

// Several tiles for each of the heads. A value that is not finite comes last, in a tile of its own.
PartedCall heads(const char* name, float last_value) {
  constexpr uint64_t kBatch = 2, kHeads = 3, kRows = 150, kDim = 16, kCount = kBatch * kHeads * kRows * kDim;
  return {name,
          {numbers(kCount), numbers(kCount), numbers(kCount, last_value), numbers(kCount),
           numbers(kBatch * kHeads * kRows)},
          [](tuff_stream stream, const tuff_buffer* x) {
            auto desc = described<tuff_attention_desc>();
            desc.batch = kBatch, desc.heads = kHeads, desc.seq_q = desc.seq_kv = kRows, desc.head_dim = kDim;
            desc.q = x[0], desc.k = x[1], desc.v = x[2], desc.o = x[3], desc.lse = x[4];
            return tuff_attention_ex(stream, &desc);
          }};
}

PartedCall convolution(const char* name, uint64_t taps, int32_t layout) {
  constexpr uint64_t kImages = 3, kChannels = 16, kPixels = 12 * 12;
  return {name,
          {numbers(kImages * kChannels * kPixels), numbers(kChannels * kChannels * taps * taps),
           numbers(kImages * kChannels * kPixels)},
          [=](tuff_stream stream, const tuff_buffer* x) {
            auto desc = described<tuff_conv2d_desc>();
            desc.input = x[0], desc.filter = x[1], desc.output = x[2];
            for (uint64_t* shape : {desc.in_shape, desc.out_shape}) {
              shape[0] = kImages, shape[1] = kChannels, shape[2] = shape[3] = 12;
            }
            desc.filter_shape[0] = desc.filter_shape[1] = kChannels;
            desc.filter_shape[2] = desc.filter_shape[3] = taps;
            desc.padding[0] = desc.padding[1] = taps / 2;
            desc.layout = layout;
            return tuff_conv2d_ex(stream, &desc);
          }};
}

PartedCall sparse_product() {
  constexpr uint64_t kRows = 600, kEach = 10, kEntries = kRows * kEach, kCapacity = kEntries * kEach;
  std::vector<int32_t> offsets(kRows + 1), indices(kEntries);
  for (size_t i = 0; i <= kRows; ++i) offsets[i] = static_cast<int32_t>(i * kEach);
  for (size_t i = 0; i < kEntries; ++i) indices[i] = static_cast<int32_t>((i * 37 + i / kEach) % kRows);
  return {"spgemm",
          {bytes_of(offsets), bytes_of(indices), numbers(kEntries), numbers(kRows + 1), numbers(kCapacity),
           numbers(kCapacity), numbers(2), numbers(2)},
          [](tuff_stream stream, const tuff_buffer* x) {
            auto desc = described<tuff_spgemm_desc>();
            desc.index_type = TUFF_I32, desc.rows = desc.inner = desc.columns = kRows;
            desc.a_nnz = desc.b_nnz = kEntries, desc.max_terms = desc.capacity = kCapacity;
            desc.a_offsets = desc.b_offsets = x[0], desc.a_indices = desc.b_indices = x[1];
            desc.a_values = desc.b_values = x[2];
            desc.c_offsets = x[3], desc.c_indices = x[4], desc.c_values = x[5], desc.count = x[6], desc.terms = x[7];
            return tuff_spgemm(stream, &desc);
          }};
}

PartedCall triangle() {
  constexpr uint64_t kRows = 50, kColumns = 40;
  std::vector<int32_t> offsets(kRows + 1), indices(kRows);
  for (size_t i = 0; i <= kRows; ++i) offsets[i] = static_cast<int32_t>(i);
  for (size_t i = 0; i < kRows; ++i) indices[i] = static_cast<int32_t>(i == 0 ? 0 : i - 1);
  return {"sparse triangular solve",
          {bytes_of(offsets), bytes_of(indices), numbers(kRows), numbers(kRows * kColumns), numbers(kRows * kColumns),
           numbers(2 * kRows + 1)},
          [](tuff_stream stream, const tuff_buffer* x) {
            auto desc = described<tuff_sparse_triangular_solve_desc>();
            desc.index_type = TUFF_I32, desc.triangle = TUFF_TRIANGLE_LOWER, desc.transpose = TUFF_NO_TRANS;
            desc.unit_diagonal = 1, desc.rows = desc.nnz = kRows, desc.n = kColumns, desc.alpha = 1;
            desc.offsets = x[0], desc.indices = x[1], desc.values = x[2], desc.b = x[3], desc.x = x[4];
            desc.levels = x[5];
            return tuff_sparse_triangular_solve(stream, &desc);
          }};
}

std::vector<PartedCall> parted_calls() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return {gemms("small matrices", 12, 3, true),
          gemms("many small matrices", 40, 30, true),
          gemms("large matrices", 120, 2, true),
          gemms("large matrices, sums in C", 120, 2, false),
          heads("attention", 1),
          heads("attention with an infinite value", kInfinity),
          convolution("convolution of 1 x 1", 1, TUFF_LAYOUT_NCHW),
          convolution("convolution, channels first", 3, TUFF_LAYOUT_NCHW),
          convolution("convolution, channels last", 3, TUFF_LAYOUT_NHWC),
          sparse_product(),
          triangle()};
}

class MemoryParts : public OnBackend {
 protected:
  void SetUp() override {
    if (!counts_allocations()) GTEST_SKIP() << "the sanitizer has operator new";
    if (vulkan()) GTEST_SKIP() << "its calls record dispatches: MemoryExhausted, MemoryWholeCalls";
  }

  // Makes the allocations of a call fail in turn. Of many, some of the later ones.
  template <typename Call>
  void fail_in_turn(const std::vector<Bytes>& operands, uint64_t bytes, const Call& call) {
    std::vector<OwnBuffer> buffers;
    std::vector<tuff_buffer> handles(std::max<size_t>(kCallBuffers, operands.size()), TUFF_NULL_HANDLE);
    for (size_t i = 0; i < operands.size(); ++i) {
      handles[i] = buffers.emplace_back(context(), std::max<uint64_t>(bytes, operands[i].size()));
    }
    const auto store = [&] {
      for (size_t i = 0; i < operands.size(); ++i) {
        ASSERT_OK(tuff_copy_htod(context(), handles[i], 0, operands[i].data(), operands[i].size()));
      }
    };
    const auto load = [&] {
      std::vector<Bytes> all;
      for (size_t i = 0; i < operands.size(); ++i) {
        all.push_back(downloaded<uint8_t>(context(), handles[i], operands[i].size()));
      }
      return all;
    };
    store();
    ASSERT_OK(call(context(), handles.data()));
    const std::vector<Bytes> results = load();
    constexpr uint64_t kMax = 1'000'000;
    for (uint64_t n = 1; n <= kMax; n += 1 + n / 20) {
      SCOPED_TRACE("allocation " + std::to_string(n));
      store();
      tuff_status status = TUFF_OK;
      bool failed = false;
      {
        const FailingAllocations failing(n);
        status = call(context(), handles.data());
        failed = failing.failed();
      }
      if (status != TUFF_OK) {
        ++failures_;
        ASSERT_EQ(status, TUFF_ERROR_OUT_OF_HOST_MEMORY) << last_error();
        ASSERT_TRUE(load() == operands);
        ASSERT_OK(call(context(), handles.data())) << "there is memory again";
      }
      ASSERT_TRUE(load() == results);
      if (!failed) return;
    }
    FAIL() << "more than " << kMax << " allocations";
  }
  uint64_t failures() const { return failures_; }

 private:
  uint64_t failures_ = 0;
};

TEST_P(MemoryParts, CallsThatFailChangeNothing) {
  for (const PartedCall& row : parted_calls()) {
    SCOPED_TRACE(row.name);
    fail_in_turn(row.operands, 0, row.call);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(failures(), 5u);
}

// Every call of the ABI on operands.
TEST_P(MemoryParts, CallsOfTheTableThatFailChangeNothing) {
  for (const BufferCall& row : buffer_calls()) {
    if (!row.has_stream) continue;
    SCOPED_TRACE(row.function);
    int place = 0;
    fail_in_turn(row.contents([&] { return 0.25 * (++place % 7) - 0.5; }), kCallBytes, row.call);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(failures(), 100u);
}
TUFF_ON_BACKENDS(MemoryParts);

// Launches of graphs, as a whole. A plug-in's promise nothing.
class MemoryGraphs : public OnBackend {
 protected:
  void SetUp() override {
    if (!counts_allocations()) GTEST_SKIP() << "the sanitizer has operator new";
    if (GetParam() != "host") GTEST_SKIP() << "a device's graph is recorded before; a plug-in's calls are not kept";
  }
  void TearDown() override { EXPECT_TRUE(IsSkipped() || failures_ > 100) << failures_ << " launches failed"; }

  // Several calls in one graph, each with buffers of its own.
  void fail_in_turn(size_t first, size_t end) {
    std::vector<OwnBuffer> buffers;
    std::vector<Bytes> contents;
    std::vector<std::vector<tuff_buffer>> handles;
    const OwnStream stream = make_stream(context());
    ASSERT_OK(tuff_graph_begin(stream));
    for (size_t row = first; row < end; ++row) {
      const BufferCall& call = buffer_calls()[row];
      if (!call.has_stream) continue;
      int place = 0;
      const size_t before = buffers.size();
      std::vector<tuff_buffer> operands(kCallBuffers, TUFF_NULL_HANDLE);
      const auto initial = call.contents([&] { return 0.25 * (++place % 7) - 0.5; });
      for (size_t i = 0; i < initial.size(); ++i) {
        operands[i] = buffers.emplace_back(context(), kCallBytes);
        contents.push_back(initial[i]);
      }
      const tuff_status status = call.call(stream, operands.data());
      if (status != TUFF_OK) {  // what cannot be captured
        ASSERT_EQ(status, TUFF_ERROR_UNSUPPORTED) << call.function << ": " << last_error();
        while (buffers.size() > before) buffers.pop_back(), contents.pop_back();
      }
    }
    tuff_graph handle = TUFF_NULL_HANDLE;
    ASSERT_OK(tuff_graph_end(stream, &handle));
    const OwnGraph graph(handle);
    const auto store = [&] {
      for (size_t i = 0; i < buffers.size(); ++i) {
        const Bytes clear(kCallBytes, 0xa5);
        ASSERT_OK(tuff_copy_htod(context(), buffers[i], 0, clear.data(), clear.size()));
        ASSERT_OK(tuff_copy_htod(context(), buffers[i], 0, contents[i].data(), contents[i].size()));
      }
    };
    const auto load = [&] {
      std::vector<Bytes> all;
      for (const OwnBuffer& buffer : buffers) all.push_back(downloaded<uint8_t>(context(), buffer, kCallBytes));
      return all;
    };
    store();
    const std::vector<Bytes> before = load();
    ASSERT_OK(tuff_graph_launch(stream, graph));
    const std::vector<Bytes> results = load();
    constexpr uint64_t kMax = 1'000'000;
    for (uint64_t n = 1; n <= kMax; n += 1 + n / 10) {
      SCOPED_TRACE("allocation " + std::to_string(n));
      store();
      tuff_status status = TUFF_OK;
      bool failed = false;
      {
        const FailingAllocations failing(n);
        status = tuff_graph_launch(stream, graph);
        failed = failing.failed();
      }
      if (status != TUFF_OK) {
        ++failures_;
        ASSERT_EQ(status, TUFF_ERROR_OUT_OF_HOST_MEMORY) << last_error();
        ASSERT_TRUE(load() == before);
        ASSERT_OK(tuff_graph_launch(stream, graph)) << "there is memory again";
      }
      ASSERT_TRUE(load() == results);
      if (!failed) return;
    }
    FAIL() << "more than " << kMax << " allocations";
  }

 private:
  uint64_t failures_ = 0;
};

TEST_P(MemoryGraphs, LaunchesThatFailChangeNothing) {
  constexpr size_t kTogether = 8;
  for (size_t first = 0; first < buffer_calls().size(); first += kTogether) {
    SCOPED_TRACE("calls from " + std::to_string(first) + ", " + buffer_calls()[first].function);
    fail_in_turn(first, std::min(first + kTogether, buffer_calls().size()));
    if (HasFatalFailure()) return;
  }
}
TUFF_ON_BACKENDS(MemoryGraphs);

}  // namespace
}  // namespace tuff_test::memory_parts_test
