/* Typical errors, how a program detects them, and how it continues. */
#include <stdio.h>
#include <string.h>

#include "tuff/tuff.h"

/* Prints the error of a call, if any. Returns 1 if the status was expected. */
static int says(tuff_status status, tuff_status expected) {
  char message[1024];
  if (status != TUFF_OK) {
    tuff_last_error(message, sizeof message, NULL);
    printf("%s\n  %s\n  %s\n", tuff_status_name(status), message, tuff_status_hint(status));
  }
  return status == expected;
}

static tuff_status set_limits(tuff_context context, uint64_t memory_bytes, uint64_t wait_milliseconds) {
  tuff_limits limits = {0};
  limits.struct_size = sizeof limits;
  limits.memory_bytes = memory_bytes;
  limits.wait_milliseconds = wait_milliseconds;
  return tuff_context_set_limits(context, &limits);
}

static tuff_status make_kernel(tuff_context context, const char* source, tuff_kernel* kernel) {
  tuff_kernel_desc desc = {0};
  desc.struct_size = sizeof desc;
  desc.source = source;
  desc.name = "steps.comp";
  return tuff_kernel_create(context, &desc, kernel);
}

/* A wrong argument, a stale handle, a limit, a kernel that does not compile: each call fails without side effects. */
static int mistakes(tuff_context context, tuff_buffer buffer) {
  tuff_buffer freed = 0, huge = 0;
  tuff_kernel kernel = 0;
  int good = 1;
  good &= says(
      tuff_gemm(context, TUFF_F32, TUFF_NO_TRANS, TUFF_NO_TRANS, 16, 64, 32, 1, buffer, 32, buffer, 64, 0, buffer, 64),
      TUFF_ERROR_INVALID_ARGUMENT);
  good &= says(tuff_alloc(context, 1024, &freed), TUFF_OK) && says(tuff_free(freed), TUFF_OK);
  good &= says(tuff_free(freed), TUFF_ERROR_INVALID_HANDLE);
  good &= says(set_limits(context, 64u << 20, 0), TUFF_OK);
  good &= says(tuff_alloc(context, 128u << 20, &huge), TUFF_ERROR_LIMIT_EXCEEDED);
  good &= says(make_kernel(context, "#version 450\nvoid main() { x = 1; }\n", &kernel), TUFF_ERROR_COMPILE_FAILED);
  return good;
}

/* Work that takes longer than the wait limit. */
static int too_slow(tuff_context context, tuff_buffer buffer) {
  static const char* source =
      "#version 450\n"
      "layout(local_size_x = 64) in;\n"
      "layout(binding = 0) buffer X { uint x[]; };\n"
      "void main() {\n"
      "  uint v = x[gl_GlobalInvocationID.x];\n"
      "  for (uint i = 0; i < 60000; ++i) v = v * 1664525 + 1013904223;\n"
      "  x[gl_GlobalInvocationID.x] = v;\n"
      "}\n";
  tuff_kernel kernel = 0;
  tuff_status status = TUFF_OK;
  int good = says(make_kernel(context, source, &kernel), TUFF_OK), launches = 40, i;
  good &= says(tuff_synchronize(context), TUFF_OK);
  for (; status == TUFF_OK && launches <= 40 * 64; launches *= 4) { /* more work if the device finished in time */
    for (i = 0; i < launches; ++i) {
      good &= says(tuff_kernel_launch(context, kernel, &buffer, 1, NULL, 0, 16, 1, 1), TUFF_OK);
    }
    good &= says(set_limits(context, 0, 5), TUFF_OK);
    status = tuff_synchronize(context);
    good &= says(set_limits(context, 0, 0), TUFF_OK);
  }
  good &= says(status, TUFF_ERROR_TIMEOUT);
  /* Nothing is lost: the same call succeeds with a longer limit. */
  good &= says(tuff_synchronize(context), TUFF_OK);
  return good & says(tuff_kernel_destroy(kernel), TUFF_OK);
}

static tuff_status job(tuff_context context, int* good) {
  const uint32_t zero = 0;
  int32_t kernels = 0;
  tuff_buffer buffer = 0;
  tuff_status status = tuff_alloc(context, 4096, &buffer);
  if (status != TUFF_OK) return status;
  *good = mistakes(context, buffer);
  if ((status = tuff_supports(context, "custom_kernels", &kernels)) != TUFF_OK) return status;
  if (kernels) *good &= too_slow(context, buffer);
  return tuff_fill(context, buffer, 0, 4096, &zero, sizeof zero); /* the context still works after all these errors */
}

int main(void) {
  tuff_context context = 0;
  tuff_status status = TUFF_ERROR_DEVICE_LOST;
  int good = 0, attempt;
  /* A lost device affects only its context: the work can be restarted on a new one. */
  for (attempt = 0; attempt < 3 && status == TUFF_ERROR_DEVICE_LOST; ++attempt) {
    if (!says(tuff_context_create(NULL, &context), TUFF_OK)) return 1;
    status = job(context, &good);
    says(status, TUFF_OK);
    if (!says(tuff_context_destroy(context), TUFF_OK)) return 1;
  }
  return status == TUFF_OK && good ? 0 : 1;
}
