/* A library that ships an operation of its own, signal.rolling_max, and a program that uses it: on the device, on the
 * host, and with a mistake. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tuff/tuff.h"

/* --- the library: results[i] is the largest of the samples i to i + width - 1 ------------------------------- */

static const char* const rolling_source =
    "#version 450\n"
    "layout(local_size_x = 64) in;\n"
    "layout(binding = 0) readonly buffer Samples { float samples[]; };\n"
    "layout(binding = 1) writeonly buffer Results { float results[]; };\n"
    "layout(push_constant) uniform Parameters { uint count; uint width; };\n"
    "void main() {\n"
    "  uint i = gl_GlobalInvocationID.x;\n"
    "  if (i >= count) return;\n"
    "  float most = samples[i];\n"
    "  for (uint j = 1; j < width; ++j) most = max(most, samples[i + j]);\n"
    "  results[i] = most;\n"
    "}\n";

static void rolling_host(void* user, const tuff_op_operand* arguments, uint32_t count, tuff_status* status) {
  const float* samples = arguments[2].data;
  float* results = arguments[3].data;
  (void)user, (void)count, (void)status;
  for (int64_t i = 0; i < arguments[0].integer; ++i) {
    results[i] = samples[i];
    for (int64_t j = 1; j < arguments[1].integer; ++j) {
      if (samples[i + j] > results[i]) results[i] = samples[i + j];
    }
  }
}

static tuff_status register_rolling(tuff_context context, tuff_op* op) {
  const tuff_op_argument arguments[] = {
      {.name = "count", .kind = TUFF_OP_SCALAR, .dtype = TUFF_U32},
      {.name = "width", .kind = TUFF_OP_SCALAR, .dtype = TUFF_U32, .minimum = 1, .maximum = 256},
      {.name = "samples", .kind = TUFF_OP_BUFFER, .dtype = TUFF_F32, .access = TUFF_OP_READ,
       .elements = "count + width - 1"},
      {.name = "results", .kind = TUFF_OP_BUFFER, .dtype = TUFF_F32, .access = TUFF_OP_WRITE, .elements = "count"},
  };
  tuff_kernel_desc kernel = {0};
  kernel.struct_size = sizeof kernel;
  kernel.source = rolling_source;
  tuff_op_desc desc = {0};
  desc.struct_size = sizeof desc;
  desc.name = "signal.rolling_max";
  desc.arguments = arguments;
  desc.argument_count = 4;
  desc.kernel = &kernel;
  desc.invocations = "count";
  desc.flops = "count * (width - 1)";
  return tuff_op_register(context, &desc, rolling_host, NULL, op);
}

/* --- the program ------------------------------------------------------------------------------------------- */

enum { COUNT = 1000, WIDTH = 7, SAMPLES = COUNT + WIDTH - 1 };

static int must(tuff_status status) {
  char message[1024];
  if (status == TUFF_OK) return 1;
  tuff_last_error(message, sizeof message, NULL);
  fprintf(stderr, "%s: %s\n", tuff_status_name(status), message);
  return 0;
}

static int compute(const char* backend, const float* samples, float* results) {
  tuff_context_desc options = {0};
  options.struct_size = sizeof options;
  options.backend = backend;
  tuff_context context;
  tuff_op rolling;
  tuff_buffer x, y;
  if (!must(tuff_context_create(&options, &context)) || !must(register_rolling(context, &rolling))) return 0;
  if (!must(tuff_alloc(context, SAMPLES * sizeof(float), &x))) return 0;
  if (!must(tuff_alloc(context, COUNT * sizeof(float), &y))) return 0;
  if (!must(tuff_copy_htod(context, x, 0, samples, SAMPLES * sizeof(float)))) return 0;

  char text[256];
  if (!must(tuff_op_list(context, text, sizeof text, NULL))) return 0;
  printf("%s: %s\n", backend, text);
  tuff_op_value arguments[] = {{.integer = COUNT}, {.integer = WIDTH}, {.buffer = x}, {.buffer = y}};
  if (!must(tuff_op_run(context, rolling, arguments, 4))) return 0;
  if (!must(tuff_copy_dtoh(context, results, y, 0, COUNT * sizeof(float)))) return 0;

  arguments[1].integer = WIDTH + 1; /* one sample more than there is */
  if (tuff_op_run(context, rolling, arguments, 4) != TUFF_ERROR_INVALID_ARGUMENT) return 0;
  tuff_last_error(text, sizeof text, NULL);
  printf("refused: %s\n", text);
  return must(tuff_context_destroy(context)); /* also frees the operation and the buffers */
}

int main(void) {
  float samples[SAMPLES], device[COUNT], host[COUNT];
  uint32_t state = 1;
  for (int i = 0; i < SAMPLES; ++i) {
    state = state * 1664525u + 1013904223u;
    samples[i] = (float)(state >> 8);
  }
  if (!compute("vulkan", samples, device) || !compute("host", samples, host)) return 1;
  const int same = memcmp(device, host, sizeof host) == 0;
  printf("Device and host %s.\n", same ? "agree" : "differ");
  return same ? 0 : 1;
}
