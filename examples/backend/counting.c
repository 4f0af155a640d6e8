/* A plug-in that counts calls, computes relu, and leaves the rest to Tuff: the smallest complete one. To accelerate another
 * operation, its function would compute the call here and return TUFF_OK.
 *
 * docs/backends.md shows this file, and program.c uses it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tuff/backend.h"

typedef struct counting_device {
  uint64_t gemms, unaries, elements;
} counting_device;

/* For all devices that were opened; the program reads it. */
TUFF_BACKEND_EXPORT uint64_t counting_totals[3];

static tuff_status count_gemm(void* device, const void* call) {
  const tuff_batched_gemm_desc* gemm = (const tuff_batched_gemm_desc*)call;
  ((counting_device*)device)->gemms += gemm->batch_count;
  return TUFF_ERROR_UNSUPPORTED; /* Tuff computes it */
}

static tuff_status count_unary(void* device, const void* call) {
  const tuff_unary_desc* unary = (const tuff_unary_desc*)call;
  counting_device* counts = (counting_device*)device;
  counts->unaries += 1;
  counts->elements += unary->n;
  if (unary->dtype != TUFF_F32 || unary->op != TUFF_UNARY_RELU) return TUFF_ERROR_UNSUPPORTED;
  /* This one it computes. */
  const float* x = (const float*)(uintptr_t)unary->input;
  float* y = (float*)(uintptr_t)unary->output;
  for (uint64_t i = 0; i < unary->n; ++i) y[i] = x[i] < 0 ? 0 : x[i];
  return TUFF_OK;
}

static tuff_status describe(tuff_device_properties* properties) {
  strcpy(properties->name, "Counting processor");
  strcpy(properties->vendor, "Example");
  strcpy(properties->driver, "counts calls");
  return TUFF_OK;
}

static tuff_status open_device(void** device) {
  *device = calloc(1, sizeof(counting_device));
  return *device != NULL ? TUFF_OK : TUFF_ERROR_OUT_OF_HOST_MEMORY;
}

static void close_device(void* device) {
  const counting_device* counts = (const counting_device*)device;
  counting_totals[0] += counts->gemms;
  counting_totals[1] += counts->unaries;
  counting_totals[2] += counts->elements;
  free(device);
}

static tuff_backend_function function_for(void* device, const char* operation) {
  (void)device;
  if (strcmp(operation, "gemm") == 0 || strcmp(operation, "batched_gemm") == 0) return count_gemm;
  if (strcmp(operation, "unary") == 0) return count_unary;
  return NULL;
}

const tuff_backend* tuff_backend_entry(void) {
  static const tuff_backend backend = {sizeof(tuff_backend), TUFF_BACKEND_ABI_VERSION,
                                       "counting",           describe,
                                       open_device,          close_device,
                                       function_for,         NULL,
                                       NULL,                 NULL};
  return &backend;
}
