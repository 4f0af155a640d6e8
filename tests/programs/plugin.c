/* A plug-in with one fault, which the build chooses by a macro. Without one it computes relu and allocates memory. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tuff/backend.h"

#ifdef FAULT_NO_ENTRY
TUFF_BACKEND_EXPORT int something_else;
#else

/* What `allocate` has given out and not taken back. */
TUFF_BACKEND_EXPORT int64_t plugin_live_bytes;

static tuff_status unary(void* device, const void* call) {
  const tuff_unary_desc* desc = (const tuff_unary_desc*)call;
  (void)device;
#if defined(FAULT_NO_MEMORY)
  return TUFF_ERROR_OUT_OF_HOST_MEMORY;
#elif defined(FAULT_WRONG_STATUS)
  return TUFF_ERROR_DEVICE_LOST;
#endif
  if (desc->op != TUFF_UNARY_RELU || desc->dtype != TUFF_F32) return TUFF_ERROR_UNSUPPORTED;
  const float* x = (const float*)(uintptr_t)desc->input;
  float* y = (float*)(uintptr_t)desc->output;
  /* 42 in place of negative numbers shows who has computed it. */
  for (uint64_t i = 0; i < desc->n; ++i) y[i] = x[i] < 0 ? 42 : x[i];
  return TUFF_OK;
}

static tuff_status describe(tuff_device_properties* properties) {
#if defined(FAULT_UNUSABLE)
  strcpy(properties->name, "it wants a blue processor");
  return TUFF_ERROR_UNSUPPORTED;
#elif defined(FAULT_NO_DEVICE_NAME)
  (void)properties;
#elif defined(FAULT_NO_MEMORY)
  strcpy(properties->name, "Processor 0000 @ 2.40GHz"); /* like a device's number and a UUID */
#else
  strcpy(properties->name, "Plug-in of the tests");
  properties->compute_units = 3;
#endif
  return TUFF_OK;
}

static tuff_status open_device(void** device) {
#ifdef FAULT_NO_OPEN_DEVICE
  (void)device;
  return TUFF_ERROR_UNSUPPORTED;
#else
  *device = malloc(1);
  return *device != NULL ? TUFF_OK : TUFF_ERROR_OUT_OF_HOST_MEMORY;
#endif
}

static void close_device(void* device) { free(device); }

static tuff_backend_function function_for(void* device, const char* operation) {
  (void)device;
  return strcmp(operation, "unary") == 0 ? unary : NULL;
}

static void* allocate(void* device, uint64_t bytes, int32_t zeroed) {
  void* memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
  (void)device;
  if (memory == NULL) return NULL;
  memset(memory, zeroed == 1 ? 0 : 0xa5, bytes);
  plugin_live_bytes += (int64_t)bytes;
  return memory;
}

static void release(void* device, void* memory, uint64_t bytes) {
  (void)device;
  plugin_live_bytes -= (int64_t)bytes;
  free(memory);
}

const tuff_backend* tuff_backend_entry(void) {
  static tuff_backend backend;
  backend.struct_size = sizeof backend;
  backend.abi_version = TUFF_BACKEND_ABI_VERSION;
#if defined(FAULT_WRONG_STATUS)
  backend.name = "test-status";
#elif defined(FAULT_NO_MEMORY)
  backend.name = "test-memory";
#elif defined(FAULT_NO_OPEN_DEVICE)
  backend.name = "test-open";
#elif defined(FAULT_BAD_NAME)
  backend.name = "Test plug-in!";
#elif defined(FAULT_OWN_NAME)
  backend.name = "vulkan";
#elif !defined(FAULT_NO_NAME)
  backend.name = "test";
#endif
  backend.describe = describe;
  backend.open = open_device;
  backend.close = close_device;
  backend.function = function_for;
  backend.allocate = allocate;
  backend.release = release;
#if defined(FAULT_NULL_ENTRY)
  return NULL;
#elif defined(FAULT_OLD_ABI)
  backend.abi_version = 0;
#elif defined(FAULT_SHORT)
  backend.struct_size = 8;
#elif defined(FAULT_NO_DESCRIBE)
  backend.describe = NULL;
#elif defined(FAULT_NO_FUNCTION)
  backend.function = NULL;
#elif defined(FAULT_ONE_OF_MEMORY)
  backend.release = NULL;
#endif
  return &backend;
}
#endif
