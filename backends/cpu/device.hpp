// What the operations of the CPU plug-in share: its device, threads, and the form of a function.
//
// Results do not depend on the number of threads: sums are cut into parts by sizes alone, and each element is computed
// by one thread. oneDNN's own primitives run with the number of threads that the device was opened with.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <dnnl.hpp>
#include <memory>
#include <new>
#include <utility>

#include "backends/cpu/elements.hpp"
#include "backends/cpu/product.hpp"
#include "tuff/backend.h"

namespace tuff_cpu {

class ConvCache;
class Programs;

struct Device {
  int threads = omp_get_max_threads();
  bool asked = false;  // whether a function would compute its call: it returns before it touches an operand
  std::shared_ptr<ConvCache> convolutions;
  std::shared_ptr<Programs> programs;  // of expressions
};

// The number of threads of the calling thread's parallel regions, in its scope.
class Threads {
 public:
  explicit Threads(int count) : before_(omp_get_max_threads()), count_(count) { omp_set_num_threads(count); }
  ~Threads() { omp_set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  int count() const { return count_; }

 private:
  int before_, count_;
};

// A tuff_backend_function of a function that takes its call's type. No exception leaves it. Calls of another version's
// structure are left to Tuff.
template <typename Call, tuff_status (*compute)(Device&, const Call&)>
tuff_status entry(void* device, const void* call) {
  auto& opened = *static_cast<Device*>(device);
  const auto& described = *static_cast<const Call*>(call);
  if (described.struct_size != sizeof(Call)) return TUFF_ERROR_UNSUPPORTED;
  const Threads threads(opened.threads);
  try {
    return compute(opened, described);
  } catch (const std::bad_alloc&) {
    return TUFF_ERROR_OUT_OF_HOST_MEMORY;
  } catch (const dnnl::error& error) {
    // What oneDNN lacks, Tuff computes.
    return error.status == dnnl_out_of_memory ? TUFF_ERROR_OUT_OF_HOST_MEMORY : TUFF_ERROR_UNSUPPORTED;
  } catch (...) {
    // Containers and locks throw others while a call is prepared, before anything is written.
    return TUFF_ERROR_UNSUPPORTED;
  }
}

// Work of fewer elements than this is not worth waking other threads for.
constexpr uint64_t kFewElements = 16384;

// Multiplications that take about ten microseconds: one thread computes fewer.
constexpr double kFewProducts = 1 << 20;

// Calls body(first, count) for parts of 0 ... n - 1, each of `part` elements but the last, on all threads.
template <typename Body>
void in_parts(uint64_t n, uint64_t part, const Body& body) {
  const auto parts = static_cast<int64_t>((n + part - 1) / part);
#pragma omp parallel for schedule(static) if (n >= kFewElements)
  for (int64_t i = 0; i < parts; ++i) {
    const uint64_t first = static_cast<uint64_t>(i) * part;
    body(first, std::min(part, n - first));
  }
}

// Calls body(i) for 0 ... n - 1 on all threads; each costs about `work` elements.
template <typename Body>
void for_each(uint64_t n, uint64_t work, const Body& body) {
#pragma omp parallel for schedule(static) if (n * work >= kFewElements)
  for (int64_t i = 0; i < static_cast<int64_t>(n); ++i) body(static_cast<uint64_t>(i));
}

// Memory for the duration of a call.
template <typename T>
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(uint64_t n) : data_(static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{64}))) {}
  ~Scratch() { ::operator delete (data_, std::align_val_t{64}); }
  Scratch(Scratch&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  Scratch& operator=(Scratch&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  T* get() const { return data_; }

 private:
  T* data_ = nullptr;
};

// Memory of each thread for the parallel regions of a call. It is allocated before the first of them, because a call
// that has begun to write must not fail.
template <typename T>
class PerThread {
 public:
  PerThread() = default;
  PerThread(int threads, uint64_t each) : each_((each + kLine - 1) / kLine * kLine) {
    if (each != 0) data_ = Scratch<T>(each_ * static_cast<uint64_t>(threads));
  }
  T* mine() const { return data_.get() + each_ * static_cast<uint64_t>(omp_get_thread_num()); }

 private:
  static constexpr uint64_t kLine = 64 / sizeof(T);  // threads do not share cache lines
  uint64_t each_ = 0;
  Scratch<T> data_;
};

// A dense operand as f32: itself, or a converted copy.
class Widened {
 public:
  Widened(tuff_buffer address, int32_t dtype, uint64_t n) : data_(at<const float>(address)) {
    if (dtype == TUFF_F32 || address == 0) return;
    copy_ = Scratch<float>(n);
    data_ = copy_.get();
    with_float(dtype, [&]<typename T>(T) {
      in_parts(n, 4096, [&](uint64_t first, uint64_t count) {
        widen(at<const T>(address) + first, copy_.get() + first, count);
      });
    });
  }
  const float* get() const { return data_; }

 private:
  Scratch<float> copy_;
  const float* data_;
};

// A dense tensor as [outer][axis][inner], where `axis` is `count` neighbouring axes.
struct AxisView {
  uint64_t outer = 1, axis = 1, inner = 1;
  AxisView(const uint64_t* shape, uint32_t rank, uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i < rank; ++i) (i < first ? outer : i - first < count ? axis : inner) *= shape[i];
  }
};

// Whether oneDNN may be called: not while the process ends. What is asked does not depend on it: then the host backend
// computes the call, rather than a driver that may be about to end, too, and has no kernel for it yet.
bool onednn_available();

// Computes it by oneDNN's sgemm on the calling thread's number of threads. It cannot fail: what oneDNN does not
// compute, a loop does.
void multiply_matrices(const Product& product);

tuff_status gemm(Device& device, const tuff_batched_gemm_desc& call);
tuff_status convolution(Device& device, const tuff_backend_conv& call);
tuff_status attention(Device& device, const tuff_attention_desc& call);
tuff_status reduce(Device& device, const tuff_reduce_desc& call);
tuff_status reduce_any(Device& device, const tuff_reduce_desc& call);  // what that does not know
tuff_status softmax(Device& device, const tuff_softmax_desc& call);
tuff_status unary(Device& device, const tuff_unary_desc& call);
tuff_status binary(Device& device, const tuff_binary_desc& call);
tuff_status max_pool(Device& device, const tuff_pool_desc& call);
tuff_status avg_pool(Device& device, const tuff_pool_desc& call);
tuff_status layer_norm(Device& device, const tuff_layer_norm_desc& call);
tuff_status rms_norm(Device& device, const tuff_rms_norm_desc& call);
tuff_status group_norm(Device& device, const tuff_group_norm_desc& call);
tuff_status batch_norm(Device& device, const tuff_batch_norm_desc& call);
tuff_status permute(Device& device, const tuff_permute_desc& call);
tuff_status cast(Device& device, const tuff_cast_desc& call);
tuff_status gather(Device& device, const tuff_backend_gather& call);
tuff_status expression(Device& device, const tuff_backend_expr& call);
tuff_status spmm(Device& device, const tuff_spmm_desc& call);
tuff_status spgemm(Device& device, const tuff_spgemm_desc& call);
tuff_status sparse_triangular_solve(Device& device, const tuff_sparse_triangular_solve_desc& call);

// Whether `activate` knows an activation (TUFF_ACTIVATION_*).
bool is_activation(int32_t activation);
// Applies it to n elements in place: the same bits as the unary operation.
void activate(int32_t activation, float* x, uint64_t n);

// The functions above, for entry.cpp.
tuff_status open_device(void** device);
void close_device(void* device);
tuff_backend_function function_for(const char* operation);
tuff_status accepts(void* device, tuff_backend_function function, const void* call);

}  // namespace tuff_cpu
