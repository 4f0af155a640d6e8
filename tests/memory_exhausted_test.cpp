// Allocations of the library that fail (defect 16 of 0.8.0). unit.allocations makes each of them fail by chance; these
// are the four that once ended the process or left something behind, and their siblings. Only allocations by
// operator new in the calling thread fail.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "support/allocation_count.hpp"
#include "support/call_table.hpp"
#include "support/kernel.hpp"
#include "support/sample.hpp"
#include "support/stream.hpp"
#include "support/tensor.hpp"

namespace tuff_test::memory_exhausted_test {
namespace {

class MemoryExhausted : public OnBackend {
 protected:
  void SetUp() override {
    if (!counts_allocations()) GTEST_SKIP() << "the sanitizer has operator new";
    if (validating()) GTEST_SKIP() << "allocations of the validation layer would fail, too";
  }
  // Makes the first allocation of a call fail, then the second, and so on, until it needs no more. `call` returns its
  // status; `after` runs with memory again, and is told whether the call has failed.
  template <typename Call, typename After>
  void each_allocation(Call call, After after) {
    constexpr uint64_t kMax = 10'000;
    for (uint64_t n = 1; n <= kMax; ++n) {
      SCOPED_TRACE("allocation " + std::to_string(n));
      tuff_status status = TUFF_OK;
      bool failed = false;
      {
        const FailingAllocations failing(n);
        status = call();
        failed = failing.failed();
      }
      if (status != TUFF_OK) {
        ASSERT_TRUE(failed);
        ASSERT_EQ(status, TUFF_ERROR_OUT_OF_HOST_MEMORY) << last_error();
      }
      after(status != TUFF_OK);
      if (HasFatalFailure()) return;
      if (!failed) {
        EXPECT_GT(n, 1u) << "the call allocates nothing: this test tests nothing";
        return;
      }
    }
    FAIL() << "more than " << kMax << " allocations";
  }
};

// MemoryPool::give_back joins a range to the free ranges of its block, of which there are more afterwards if both
// neighbours are in use.
TEST_P(MemoryExhausted, FreeingNeedsNone) {
  const OwnContext own(GetParam());
  constexpr size_t kBuffers = 600;
  for (const bool busy : {false, true}) {
    SCOPED_TRACE(busy ? "the device uses them" : "the device is done with them");
    std::vector<tuff_buffer> buffers(kBuffers);
    for (tuff_buffer& buffer : buffers) ASSERT_OK(tuff_alloc(own, 1000, &buffer));
    ASSERT_OK(tuff_synchronize(own));
    for (size_t first = 0; first < 2; ++first) {  // every second one, and then what is between them
      for (size_t i = first; i < kBuffers && busy; i += 2) {
        ASSERT_OK(tuff_unary(own, TUFF_F32, TUFF_UNARY_NEG, buffers[i], buffers[i], 250));
      }
      size_t refused = 0;
      bool allocated = false;
      for (size_t i = first; i < kBuffers; i += 2) {
        const FailingAllocations failing(1, true);
        refused += tuff_free(buffers[i]) != TUFF_OK;
        allocated = allocated || failing.failed();
      }
      EXPECT_EQ(refused, 0u);
      EXPECT_FALSE(allocated) << "and it does not even ask for memory";
    }
    ASSERT_OK(tuff_synchronize(own));
    EXPECT_EQ(stats_of(own).live_buffers, 0u);
  }
}

// tuff_context_destroy() calls forget_peer, which in the first context of a process must not need memory for the list
// of what is kept for copies. A process of its own therefore.
void destroy_the_first(const std::string& backend) {
  const tuff_context context = OwnContext(backend).release();
  tuff_status status = TUFF_OK;
  {
    const FailingAllocations failing(1, true);
    status = tuff_context_destroy(context);
  }
  std::exit(status == TUFF_OK ? 0 : 2);
}

TEST_P(MemoryExhausted, TheFirstContextIsDestroyed) {
  const std::string style = testing::GTEST_FLAG(death_test_style);
  testing::GTEST_FLAG(death_test_style) = "threadsafe";  // starts this program anew
  EXPECT_EXIT(destroy_the_first(GetParam()), testing::ExitedWithCode(0), "");
  testing::GTEST_FLAG(death_test_style) = style;
}

// GraphRecorder::use notes each operand in a list and in an index of it. When the second failed, the repeated call
// found an operand that the list did not have, or the reverse.
TEST_P(MemoryExhausted, ACapturedCallIsRepeated) {
  const OwnStream stream = make_stream(context());
  const std::vector<float> a(100, 2.0f), b(100, 3.0f);
  const auto add = [&](const Tensor& x, const Tensor& y, const Tensor& z) {
    return tuff_binary(stream, TUFF_F32, TUFF_BINARY_ADD, x, y, z, 100);
  };
  {
    const Tensor x(context(), a), y(context(), b), z(context(), 100);
    ASSERT_OK(add(x, y, z));  // compiles the kernel
    ASSERT_OK(tuff_synchronize(stream));
  }
  for (uint64_t n = 1; n < 1000; ++n) {
    SCOPED_TRACE("allocation " + std::to_string(n));
    const Tensor x(context(), a), y(context(), b), z(context(), 100), zz(context(), 100);
    ASSERT_OK(tuff_graph_begin(stream));
    tuff_status status = TUFF_OK;
    bool failed = false;
    {
      const FailingAllocations failing(n);
      status = add(x, y, z);
      failed = failing.failed();
    }
    if (status != TUFF_OK) {
      ASSERT_TRUE(failed);
      ASSERT_EQ(status, TUFF_ERROR_OUT_OF_HOST_MEMORY) << last_error();
      ASSERT_OK(add(x, y, z));
    }
    ASSERT_OK(add(z, x, zz));  // operands that are known by then
    tuff_graph graph = TUFF_NULL_HANDLE;
    ASSERT_OK(tuff_graph_end(stream, &graph));
    const OwnGraph owned(graph);
    ASSERT_OK(tuff_graph_launch(stream, graph));
    ASSERT_OK(tuff_synchronize(stream));
    expect_same_bits(z.read(), std::vector<float>(100, 5.0f));
    expect_same_bits(zz.read(), std::vector<float>(100, 7.0f));
    if (!failed) {
      EXPECT_GT(n, 3u) << "the captured call notes three operands";
      return;
    }
  }
  FAIL() << "the call always allocates";
}

// Context::adopt notes pinned buffers by their address. When that failed, the buffer was alive, and nobody had its
// handle.
TEST_P(MemoryExhausted, BuffersThatGetNoHandleAreFreed) {
  const OwnContext own(GetParam());
  const OwnBuffer parent(own, 4096);
  alignas(4096) static uint8_t pages[1 << 16];
  int32_t imports = 0;
  ASSERT_OK(tuff_supports(own, "import_host", &imports));
  tuff_buffer made = TUFF_NULL_HANDLE;
  const auto alloc = [&](uint32_t flags) {
    tuff_alloc_desc desc{};
    desc.struct_size = sizeof desc;
    desc.bytes = 5000;
    desc.flags = flags;
    return tuff_alloc_ex(own, &desc, &made);
  };
  const struct {
    const char* name;
    std::function<tuff_status()> call;
    bool possible;
  } rows[] = {
      {"plain", [&] { return alloc(0); }, true},
      {"pinned", [&] { return alloc(TUFF_ALLOC_HOST_PINNED | TUFF_ALLOC_HOST_VISIBLE); }, true},
      {"view", [&] { return tuff_view(parent, 256, 100, &made); }, true},
      {"import", [&] { return tuff_buffer_import_host(own, pages, sizeof pages, &made); }, imports == 1},
  };
  for (const auto& row : rows) {
    if (!row.possible) continue;
    SCOPED_TRACE(row.name);
    ASSERT_OK(row.call());
    ASSERT_OK(tuff_free(made));
    ASSERT_OK(tuff_synchronize(own));
    const tuff_stats before = stats_of(own);
    each_allocation(row.call, [&](bool failed) {
      if (!failed) {
        ASSERT_OK(tuff_free(made));
      }
      ASSERT_OK(tuff_synchronize(own));
      const tuff_stats after = stats_of(own);
      ASSERT_EQ(after.live_buffers, before.live_buffers);
      ASSERT_EQ(after.bytes_in_use, before.bytes_in_use);
    });
  }
}

// Moving buffers together copies one after the other: one that could not be copied stays, and none is lost.
TEST_P(MemoryExhausted, CompactionLosesNothing) {
  if (!vulkan()) GTEST_SKIP() << "the host backend moves nothing";
  constexpr size_t kWords = 5000, kBuffers = 40;
  const OwnContext own(GetParam());
  std::vector<OwnBuffer> buffers;
  const auto punch_holes = [&] {
    buffers.clear();
    std::vector<OwnBuffer> between;
    for (size_t i = 0; i < kBuffers; ++i) {
      const auto word = static_cast<uint32_t>(i + 1);
      buffers.emplace_back(own, 4 * kWords);
      between.emplace_back(own, 4 * kWords);
      ASSERT_OK(tuff_fill(own, buffers.back(), 0, 4 * kWords, &word, 4));
    }
    ASSERT_OK(tuff_synchronize(own));
  };
  tuff_compaction report{};
  report.struct_size = sizeof report;
  punch_holes();
  size_t failures = 0;
  each_allocation([&] { return tuff_context_compact(own, nullptr, &report); },
                  [&](bool failed) {
                    failures += failed;
                    std::vector<uint32_t> words(kWords);
                    for (size_t i = 0; i < kBuffers; ++i) {
                      ASSERT_OK(tuff_copy_dtoh(own, words.data(), buffers[i], 0, 4 * kWords));
                      ASSERT_EQ(std::count(words.begin(), words.end(), i + 1), static_cast<ptrdiff_t>(kWords));
                    }
                    punch_holes();
                  });
  EXPECT_GT(failures, kBuffers / 2) << "each move allocates";
}

// A step of LAMB for 100 tensors, which is several dispatches: those after the first could not be made up for.
class LambStep {
 public:
  explicit LambStep(tuff_context context) : steps_(uploaded<int32_t>(context, {0})), context_(context) {
    for (size_t i = 0; i < kTensors; ++i) {
      const size_t n = sizes_[i] = 10 + i;
      for (auto& handles : handles_) {
        tensors_.emplace_back(context, std::vector<float>(n, 0.5f + static_cast<float>(i)));
        handles[i] = tensors_.back();
      }
    }
    desc_.struct_size = sizeof desc_;
    desc_.dtype = TUFF_F32, desc_.algorithm = TUFF_OPTIMIZER_LAMB;
    desc_.count = kTensors, desc_.sizes = sizes_;
    desc_.parameters = handles_[0], desc_.gradients = handles_[1];
    desc_.first_moments = handles_[2], desc_.second_moments = handles_[3];
    desc_.rate = 0.125, desc_.beta1 = 0.5, desc_.beta2 = 0.5, desc_.epsilon = 0.5, desc_.weight_decay = 0.25;
    desc_.steps = steps_;
  }
  tuff_status run(tuff_stream stream) const { return tuff_optimizer_step(stream, &desc_); }
  int32_t steps() const { return downloaded<int32_t>(context_, steps_, 1)[0]; }
  std::vector<float> contents() const {
    std::vector<float> all;
    for (const Tensor& tensor : tensors_) {
      for (const float x : tensor.read()) all.push_back(x);
    }
    return all;
  }

 private:
  static constexpr size_t kTensors = 100;
  uint64_t sizes_[kTensors];
  tuff_buffer handles_[4][kTensors];
  std::vector<Tensor> tensors_;
  OwnBuffer steps_;
  tuff_optimizer_desc desc_{};
  tuff_context context_;
};

// In a context that has made no such step yet, whose kernels and tables are still to be made: the last of its
// allocations, when it is recorded, and some before, at even distances.
TEST_P(MemoryExhausted, AStepThatFailsChangesNothing) {
  uint64_t allocations = 0;
  std::vector<float> first, second;
  for (int i = 0; i < 2; ++i) {  // the first time its kernels may be no files yet, which takes more
    const OwnContext own(GetParam());
    const LambStep step(own);
    first = step.contents();
    const uint64_t before = allocation_count();
    ASSERT_OK(step.run(own));
    allocations = allocation_count() - before;
    second = step.contents();
  }
  if (!vulkan()) GTEST_SKIP() << "on the host a step is one call";
  ASSERT_GT(allocations, 40u);
  uint64_t failures = 0;
  for (uint64_t n = 1; n <= allocations; n += n + 24 < allocations ? allocations / 16 : 1) {
    SCOPED_TRACE("allocation " + std::to_string(n));
    const OwnContext own(GetParam());
    const LambStep step(own);
    ASSERT_OK(tuff_synchronize(own));
    tuff_status status = TUFF_OK;
    {
      const FailingAllocations failing(n);
      status = step.run(own);
    }
    if (status != TUFF_OK) {
      ++failures;
      ASSERT_EQ(status, TUFF_ERROR_OUT_OF_HOST_MEMORY) << last_error();
      ASSERT_EQ(step.steps(), 0);
      expect_same_bits(step.contents(), first);
      ASSERT_OK(step.run(own)) << "there is memory again";
    }
    ASSERT_EQ(step.steps(), 1);
    expect_same_bits(step.contents(), second);
  }
  EXPECT_GT(failures, 10u);
}

// Every call of the ABI on operands, in a context that has not made it yet: whichever of its allocations fails, no
// operand has changed, and the call can be repeated.
TEST_P(MemoryExhausted, CallsThatFailChangeNothing) {
  size_t failures = 0;
  const std::vector<uint64_t> some = {1, 3, 6, 11, 18, 30}, more = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30};
  for (const uint64_t n : vulkan() ? some : more) {
    const OwnContext own(GetParam());
    for (const BufferCall& row : buffer_calls()) {
      if (!row.has_stream || (vulkan() && !in_sample(row.function + (" " + std::to_string(n)), 8))) continue;
      SCOPED_TRACE(std::string(row.function) + ", allocation " + std::to_string(n));
      int place = 0;
      const auto contents = row.contents([&] { return 0.25 * (++place % 7) - 0.5; });
      std::vector<OwnBuffer> buffers;
      std::vector<tuff_buffer> operands(kCallBuffers, TUFF_NULL_HANDLE);
      for (size_t i = 0; i < contents.size(); ++i) {
        buffers.emplace_back(own, kCallBytes);
        operands[i] = buffers.back();
        ASSERT_OK(tuff_copy_htod(own, operands[i], 0, contents[i].data(), contents[i].size()));
      }
      ASSERT_OK(tuff_synchronize(own));
      tuff_status status = TUFF_OK;
      {
        const FailingAllocations failing(n);
        status = row.call(own, operands.data());
      }
      if (status == TUFF_OK) continue;
      ++failures;
      ASSERT_EQ(status, TUFF_ERROR_OUT_OF_HOST_MEMORY) << last_error();
      for (size_t i = 0; i < contents.size(); ++i) {
        EXPECT_TRUE(downloaded<uint8_t>(own, operands[i], contents[i].size()) == contents[i]) << row.buffers[i].name;
      }
      ASSERT_OK(row.call(own, operands.data())) << "there is memory again";
    }
  }
  EXPECT_GT(failures, 20u);
}

// A call of many commands that changes what it reads.
struct LongCall {
  const char* name;
  std::vector<std::vector<float>> operands;
  std::function<tuff_status(tuff_stream stream, const tuff_buffer* operands)> call;
};

std::vector<float> varied(size_t count) {
  std::vector<float> all(count);
  uint32_t state = 1;
  for (float& x : all) {
    state = state * 1664525u + 1013904223u;
    x = static_cast<float>(state >> 8) * 0x1p-23f - 1;
  }
  return all;
}

// Symmetric, and the diagonal is larger than the rest of its row.
std::vector<float> definite(size_t n) {
  std::vector<float> all = varied(n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < i; ++j) all[j * n + i] = all[i * n + j];
    all[i * n + i] = static_cast<float>(n);
  }
  return all;
}

std::vector<LongCall> factorisations() {
  constexpr size_t n = 150, k = 40;
  return {{"cholesky",
           {definite(n)},
           [](tuff_stream stream, const tuff_buffer* x) {
             auto desc = described<tuff_cholesky_desc>();
             desc.triangle = TUFF_TRIANGLE_LOWER, desc.n = n, desc.a = x[0], desc.batch_count = 1;
             return tuff_cholesky(stream, &desc);
           }},
          {"lu",
           {varied(n * n), varied(n)},
           [](tuff_stream stream, const tuff_buffer* x) {
             auto desc = described<tuff_lu_desc>();
             desc.m = desc.n = n, desc.a = x[0], desc.pivots = x[1], desc.batch_count = 1;
             return tuff_lu(stream, &desc);
           }},
          {"qr",
           {varied(n * n), varied(n * n)},
           [](tuff_stream stream, const tuff_buffer* x) {
             auto desc = described<tuff_qr_desc>();
             desc.m = desc.n = n, desc.a = x[0], desc.q = x[1], desc.batch_count = 1;
             return tuff_qr(stream, &desc);
           }},
          {"triangular solve",
           {definite(n), varied(n * k)},
           [](tuff_stream stream, const tuff_buffer* x) {
             auto desc = described<tuff_triangular_solve_desc>();
             desc.side = TUFF_SIDE_LEFT, desc.triangle = TUFF_TRIANGLE_LOWER, desc.transpose = TUFF_NO_TRANS;
             desc.m = n, desc.n = k, desc.a = x[0], desc.b = x[1], desc.batch_count = 1;
             return tuff_triangular_solve(stream, &desc);
           }},
          {"solve",
           {definite(n), std::vector<float>(n, 0), varied(n * k)},  // each row is exchanged with the first
           [](tuff_stream stream, const tuff_buffer* x) {
             auto desc = described<tuff_lu_solve_desc>();
             desc.transpose = TUFF_NO_TRANS, desc.n = n, desc.nrhs = k;
             desc.a = x[0], desc.pivots = x[1], desc.b = x[2], desc.batch_count = 1;
             return tuff_lu_solve(stream, &desc);
           }},
          {"eigh",
           {definite(k), varied(k), varied(k * k)},
           [](tuff_stream stream, const tuff_buffer* x) {
             auto desc = described<tuff_eigh_desc>();
             desc.triangle = TUFF_TRIANGLE_LOWER, desc.n = k, desc.a = x[0], desc.values = x[1], desc.vectors = x[2];
             desc.batch_count = 1;
             return tuff_eigh(stream, &desc);
           }},
          {"eig",
           {varied(k * k), varied(2 * k), varied(2 * k * k)},
           [](tuff_stream stream, const tuff_buffer* x) {
             auto desc = described<tuff_eig_desc>();
             desc.n = k, desc.a = x[0], desc.values = x[1], desc.vectors = x[2], desc.batch_count = 1;
             return tuff_eig(stream, &desc);
           }},
          {"svd", {varied(2 * k * k), varied(k), varied(2 * k * k)}, [](tuff_stream stream, const tuff_buffer* x) {
             auto desc = described<tuff_svd_desc>();
             desc.m = 2 * k, desc.n = k, desc.a = x[0], desc.values = x[1], desc.u = x[2], desc.batch_count = 1;
             return tuff_svd(stream, &desc);
           }}};
}

std::vector<LongCall> calls_of_many_elements() {
  constexpr size_t n = 400'000, rows = 3000;
  return {{"fft in place",
           {varied(1 << 17)},
           [](tuff_stream stream, const tuff_buffer* x) {
             auto desc = described<tuff_fft_desc>();
             desc.kind = TUFF_FFT_COMPLEX, desc.rank = 1, desc.shape[0] = 1 << 16, desc.input = desc.output = x[0];
             return tuff_fft(stream, &desc);
           }},
          {"cumsum in place",
           {varied(n)},
           [](tuff_stream stream, const tuff_buffer* x) {
             auto desc = described<tuff_scan_desc>();
             desc.rank = 1, desc.shape[0] = n, desc.input = desc.output = x[0];
             return tuff_cumsum(stream, &desc);
           }},
          {"sort",
           {varied(n), varied(n), varied(n)},
           [](tuff_stream stream, const tuff_buffer* x) {
             auto desc = described<tuff_sort_desc>();
             desc.rank = 1, desc.shape[0] = n, desc.input = x[0], desc.values = x[1], desc.indices = x[2];
             return tuff_sort(stream, &desc);
           }},
          {"scatter in place",
           {varied(rows * 16), std::vector<float>(rows, 0), varied(rows * 16)},  // all to the first row
           [](tuff_stream stream, const tuff_buffer* x) {
             auto desc = described<tuff_scatter_desc>();
             desc.index_type = TUFF_I32, desc.op = TUFF_SCATTER_ADD, desc.rank = 2;
             desc.shape[0] = rows, desc.shape[1] = 16, desc.count = rows;
             desc.output = x[0], desc.indices = x[1], desc.updates = x[2];
             return tuff_scatter(stream, &desc);
           }},
          {"select",
           {varied(n), varied(n), varied(n)},
           [](tuff_stream stream, const tuff_buffer* x) {
             auto desc = described<tuff_select_desc>();
             desc.op = TUFF_SELECT_UNIQUE, desc.n = desc.capacity = n;
             desc.input = x[0], desc.output = x[1], desc.indices = x[2];
             return tuff_select(stream, &desc);
           }},
          {"fill", {varied(1000)}, [](tuff_stream stream, const tuff_buffer* x) {
             return tuff_fill(stream, x[0], 5, 3001, "a", 1);  // parts of words at both ends
           }}};
}

class MemoryWholeCalls : public MemoryExhausted {
 protected:
  struct Operands {
    Operands(tuff_context context, const LongCall& call) {
      for (const auto& numbers : call.operands) {
        tensors.emplace_back(context, numbers);
        handles.push_back(tensors.back());
      }
    }
    void expect(const std::vector<std::vector<float>>& wanted) const {
      for (size_t i = 0; i < wanted.size(); ++i) expect_same_bits(tensors[i].read(), wanted[i]);
    }
    std::vector<Tensor> tensors;
    std::vector<tuff_buffer> handles;
  };

  void fail_in_turn(const LongCall& row) {
    uint64_t allocations = 0;
    std::vector<std::vector<float>> results;
    for (int i = 0; i < 2; ++i) {  // the first time its kernels may be no files yet, which takes more
      const OwnContext own(GetParam());
      const Operands operands(own, row);
      ASSERT_OK(tuff_synchronize(own));
      const uint64_t before = allocation_count();
      ASSERT_OK(row.call(own, operands.handles.data()));
      allocations = allocation_count() - before;
      results.clear();
      for (const Tensor& tensor : operands.tensors) results.push_back(tensor.read());
    }
    const uint64_t step = std::max<uint64_t>(allocations / 5, 1);
    for (uint64_t n = 1; n <= allocations; n += n + step < allocations ? step : 1 + allocations / 40) {
      SCOPED_TRACE("allocation " + std::to_string(n) + " of " + std::to_string(allocations));
      const OwnContext own(GetParam());
      const Operands operands(own, row);
      ASSERT_OK(tuff_synchronize(own));
      tuff_status status = TUFF_OK;
      {
        const FailingAllocations failing(n);
        status = row.call(own, operands.handles.data());
      }
      if (status != TUFF_OK) {
        ++failures_;
        ASSERT_EQ(status, TUFF_ERROR_OUT_OF_HOST_MEMORY) << last_error();
        operands.expect(row.operands);
        ASSERT_OK(row.call(own, operands.handles.data())) << "there is memory again";
      }
      operands.expect(results);
      if (HasFatalFailure()) return;
    }
  }
  void fail_in_turn(const std::vector<LongCall>& rows) {
    if (!vulkan()) GTEST_SKIP() << "on the host a call is one function";
    std::vector<const LongCall*> kept;
    for (const LongCall& row : rows) {
      if (in_sample(row.name, 5)) kept.push_back(&row);
    }
    if (kept.empty()) kept.push_back(&rows[sample().seed % rows.size()]);
    for (const LongCall* const row : kept) {
      SCOPED_TRACE(row->name);
      fail_in_turn(*row);
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(failures_, 0u);
  }

 private:
  size_t failures_ = 0;
};

TEST_P(MemoryWholeCalls, FactorisationsThatFailChangeNothing) { fail_in_turn(factorisations()); }
TEST_P(MemoryWholeCalls, CallsOfManyElementsThatFailChangeNothing) { fail_in_turn(calls_of_many_elements()); }

// --- siblings ------------------------------------------------------------------------------------------------------

// What else ends something while there is no memory.
TEST_P(MemoryExhausted, DestroyingNeedsNone) {
  const OwnContext own(GetParam());
  OwnStream stream = make_stream(own, "a stream with a name of some length");
  OwnEvent event = make_event(own, 0);
  const Tensor x(own, std::vector<float>(100, 2.0f)), y(own, 100);
  ASSERT_OK(tuff_unary(stream, TUFF_F32, TUFF_UNARY_NEG, x, y, 100));
  ASSERT_OK(tuff_event_record(stream, event));
  ASSERT_OK(tuff_synchronize(stream));
  tuff_graph graph = TUFF_NULL_HANDLE;
  if (vulkan()) {
    ASSERT_OK(tuff_graph_begin(stream));
    ASSERT_OK(tuff_unary(stream, TUFF_F32, TUFF_UNARY_NEG, x, y, 100));
    ASSERT_OK(tuff_graph_end(stream, &graph));
    ASSERT_OK(tuff_graph_launch(stream, graph));
  }
  OwnBuffer parent(own, 1000);
  tuff_buffer made = TUFF_NULL_HANDLE;
  ASSERT_OK(tuff_view(parent, 4, 100, &made));
  const auto expect_gone = [&](const char* what, tuff_status (*destroy)(uint64_t), uint64_t handle) {
    tuff_status status = TUFF_OK;
    {
      const FailingAllocations failing(1, true);
      status = destroy(handle);
    }
    EXPECT_EQ(status, TUFF_OK) << what;
  };
  expect_gone("graph", tuff_graph_destroy, graph);
  expect_gone("event", tuff_event_destroy, event.release());
  expect_gone("stream", tuff_stream_destroy, stream.release());
  expect_gone("parent", tuff_free, parent.release());
  expect_gone("view", tuff_free, made);
}
TUFF_ON_BACKENDS(MemoryExhausted);
TUFF_ON_BACKENDS(MemoryWholeCalls);

}  // namespace
}  // namespace tuff_test::memory_exhausted_test
