// Preloaded before oneDNN: every other product and primitive fails as it does without memory, with its result spoilt
// where it may be written by then. The tests of operations have to pass on the CPU plug-in all the same.
#include <dlfcn.h>
#include <dnnl.h>
#include <omp.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

struct Failures {
  std::atomic<uint64_t> calls{0};
  bool next() { return calls.fetch_add(1) % 2 == 1; }
  ~Failures() {
    if (calls < 2) std::fputs("no function of oneDNN has failed\n", stderr);
  }
} failures;

template <typename Function>
Function* next_of(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

constexpr int kNan = 0xff;  // of each byte

// On several threads, some have written their parts of C when another finds no memory. One thread allocates first.
void spoil(dnnl_dim_t m, dnnl_dim_t n, float* c, dnnl_dim_t ldc) {
  if (omp_in_parallel() != 0 || omp_get_max_threads() == 1) return;
  for (dnnl_dim_t i = 0; i < m; i += 2) std::memset(c + i * ldc, kNan, static_cast<size_t>(n) * sizeof(float));
}

void spoil(const dnnl_exec_arg_t& argument) {
  void* data = nullptr;
  const dnnl_memory_desc_t* description = nullptr;
  if (argument.arg != DNNL_ARG_DST || dnnl_memory_get_data_handle(argument.memory, &data) != dnnl_success ||
      dnnl_memory_get_memory_desc(argument.memory, &description) != dnnl_success) {
    return;
  }
  std::memset(data, kNan, dnnl_memory_desc_get_size(description));
}

}  // namespace

extern "C" dnnl_status_t dnnl_sgemm(char ta, char tb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k, float alpha,
                                    const float* a, dnnl_dim_t lda, const float* b, dnnl_dim_t ldb, float beta,
                                    float* c, dnnl_dim_t ldc) {
  static auto* const real = next_of<decltype(dnnl_sgemm)>("dnnl_sgemm");
  if (!failures.next()) return real(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  spoil(m, n, c, ldc);
  return dnnl_out_of_memory;
}

extern "C" dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int count,
                                                const dnnl_exec_arg_t* arguments) {
  static auto* const real = next_of<decltype(dnnl_primitive_execute)>("dnnl_primitive_execute");
  if (!failures.next()) return real(primitive, stream, count, arguments);
  for (int i = 0; i < count; ++i) spoil(arguments[i]);
  return dnnl_runtime_error;  // for which Tuff computes the call
}
