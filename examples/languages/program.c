/* relu(A @ B) on the best device. The library is loaded at run time with dlopen; Tuff is not linked.
 * cc program.c -ldl -I../../include && TUFF_LIBRARY=../../build/release/libtuff.so ./a.out */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <tuff/tuff.h>

#define M 2
#define N 2
#define K 3

/* Declares a function pointer of the function's type and looks it up. */
#define LOAD(name)                           \
  __typeof__(&name) name##_;                 \
  *(void**)&name##_ = dlsym(library, #name); \
  if (!name##_) return fprintf(stderr, #name " is missing\n"), 1

#define CHECK(call)                                  \
  if ((call) != TUFF_OK) {                           \
    char message[512];                               \
    tuff_last_error_(message, sizeof message, NULL); \
    return fprintf(stderr, "%s\n", message), 1;      \
  }

int main(void) {
  const char* path = getenv("TUFF_LIBRARY");
  void* library = dlopen(path ? path : "libtuff.so.1", RTLD_NOW);
  if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
  LOAD(tuff_last_error);
  LOAD(tuff_context_create);
  LOAD(tuff_context_destroy);
  LOAD(tuff_alloc);
  LOAD(tuff_copy_htod);
  LOAD(tuff_copy_dtoh);
  LOAD(tuff_gemm);
  LOAD(tuff_unary);

  const float a[M * K] = {1, 2, 3, 4, 5, 6}, b[K * N] = {-2, 1, -1, -1, 1.5f, 1};
  float c[M * N];
  tuff_context ctx;
  tuff_buffer da, db, dc;
  CHECK(tuff_context_create_(NULL, &ctx));
  CHECK(tuff_alloc_(ctx, sizeof a, &da));
  CHECK(tuff_alloc_(ctx, sizeof b, &db));
  CHECK(tuff_alloc_(ctx, sizeof c, &dc));
  CHECK(tuff_copy_htod_(ctx, da, 0, a, sizeof a));
  CHECK(tuff_copy_htod_(ctx, db, 0, b, sizeof b));
  CHECK(tuff_gemm_(ctx, TUFF_F32, TUFF_NO_TRANS, TUFF_NO_TRANS, M, N, K, 1.0, da, K, db, N, 0.0, dc, N));
  CHECK(tuff_unary_(ctx, TUFF_F32, TUFF_UNARY_RELU, dc, dc, M * N));
  CHECK(tuff_copy_dtoh_(ctx, c, dc, 0, sizeof c));

  printf("relu(A @ B), A 2x3, B 3x2:\n");
  for (int row = 0; row < M; ++row) printf("  %.1f  %.1f\n", c[row * N], c[row * N + 1]);
  CHECK(tuff_context_destroy_(ctx)); /* frees the buffers too */
  return 0;
}
