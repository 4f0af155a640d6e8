/* Registers the plug-in of counting.c, opens it by its name, computes on it, and reads what it has counted.
 * Usage: program <plug-in> */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuff/tuff.h"

static void check(tuff_status status) {
  char message[512];
  if (status == TUFF_OK) return;
  tuff_last_error(message, sizeof message, NULL);
  fprintf(stderr, "%s: %s\n", tuff_status_name(status), message);
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s <plug-in>\n", argv[0]);
    return 2;
  }
  check(tuff_backend_register(argv[1]));
  tuff_context_desc desc = {0};
  desc.struct_size = sizeof desc;
  desc.backend = "counting";
  tuff_context context;
  check(tuff_context_create(&desc, &context));
  tuff_device_properties device = {0};
  device.struct_size = sizeof device;
  check(tuff_context_info(context, &device));
  printf("%s, backend \"%s\"\n", device.name, device.backend);

  const float a[] = {1, 2, 3, 4}, b[] = {1, -1, 0, -1};
  float c[4];
  tuff_buffer da, db, dc;
  check(tuff_alloc(context, sizeof a, &da));
  check(tuff_alloc(context, sizeof b, &db));
  check(tuff_alloc(context, sizeof c, &dc));
  check(tuff_copy_htod(context, da, 0, a, sizeof a));
  check(tuff_copy_htod(context, db, 0, b, sizeof b));
  check(tuff_gemm(context, TUFF_F32, TUFF_NO_TRANS, TUFF_NO_TRANS, 2, 2, 2, 1.0, da, 2, db, 2, 0.0, dc, 2));
  check(tuff_unary(context, TUFF_F32, TUFF_UNARY_NEG, dc, dc, 4));  /* left to Tuff */
  check(tuff_unary(context, TUFF_F32, TUFF_UNARY_RELU, dc, dc, 4)); /* computed by the plug-in */
  check(tuff_copy_dtoh(context, c, dc, 0, sizeof c));
  check(tuff_context_destroy(context));

  const float expected[] = {0, 3, 0, 7}; /* relu(-a * b), with a * b = {1 -3; 3 -7} */
  void* library = dlopen(argv[1], RTLD_NOW);
  const uint64_t* totals = library != NULL ? (const uint64_t*)dlsym(library, "counting_totals") : NULL;
  if (totals == NULL) {
    fprintf(stderr, "the plug-in is not loaded\n");
    return 1;
  }
  printf("%llu gemm, %llu unary calls of %llu elements\n", (unsigned long long)totals[0], (unsigned long long)totals[1],
         (unsigned long long)totals[2]);
  const int right = memcmp(c, expected, sizeof c) == 0 && totals[0] == 1 && totals[1] == 2 && totals[2] == 8;
  printf("%s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
