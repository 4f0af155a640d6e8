/* Conway's Game of Life on a torus with a custom kernel: a glider flies once around the torus and comes back. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tuff/tuff.h"

enum { SIDE = 16, CELLS = SIDE * SIDE };

static const char* const rule =
    "#version 450\n"
    "layout(local_size_x = 8, local_size_y = 8) in;\n"
    "layout(binding = 0) readonly buffer Now { uint now[]; };\n"
    "layout(binding = 1) writeonly buffer Next { uint next[]; };\n"
    "layout(push_constant) uniform Parameters { uint side; };\n"
    "void main() {\n"
    "  uvec2 at = gl_GlobalInvocationID.xy;\n"
    "  if (any(greaterThanEqual(at, uvec2(side)))) return;\n"
    "  uint neighbours = 0;\n"
    "  for (uint y = side - 1; y <= side + 1; ++y)\n"
    "    for (uint x = side - 1; x <= side + 1; ++x)\n"
    "      if (x != side || y != side) neighbours += now[(at.y + y) % side * side + (at.x + x) % side];\n"
    "  bool lives = now[at.y * side + at.x] == 1;\n"
    "  next[at.y * side + at.x] = uint(neighbours == 3 || (lives && neighbours == 2));\n"
    "}\n";

static int must(tuff_status status) {
  char message[1024];
  if (status == TUFF_OK) return 1;
  tuff_last_error(message, sizeof message, NULL);
  fprintf(stderr, "%s: %s\n", tuff_status_name(status), message);
  return 0;
}

static void show(const uint32_t* cells) {
  for (int y = 0; y < SIDE; ++y) {
    for (int x = 0; x < SIDE; ++x) putchar(cells[y * SIDE + x] ? '#' : '.');
    putchar('\n');
  }
  putchar('\n');
}

int main(void) {
  uint32_t start[CELLS] = {0}, cells[CELLS];
  start[0 * SIDE + 1] = start[1 * SIDE + 2] = start[2 * SIDE] = start[2 * SIDE + 1] = start[2 * SIDE + 2] = 1;

  tuff_context context;
  tuff_kernel kernel;
  tuff_buffer now, next;
  tuff_kernel_desc desc = {0};
  desc.struct_size = sizeof desc;
  desc.source = rule;
  desc.name = "life.comp";
  if (!must(tuff_context_create(NULL, &context))) return 1;
  if (!must(tuff_kernel_create(context, &desc, &kernel))) return 1;
  if (!must(tuff_alloc(context, sizeof start, &now))) return 1;
  if (!must(tuff_alloc(context, sizeof start, &next))) return 1;
  if (!must(tuff_copy_htod(context, now, 0, start, sizeof start))) return 1;

  const uint32_t side = SIDE;
  for (int generation = 1; generation <= 4 * SIDE; ++generation) {
    const tuff_buffer buffers[] = {now, next};
    if (!must(tuff_kernel_launch(context, kernel, buffers, 2, &side, sizeof side, 2, 2, 1))) return 1;
    next = now;
    now = buffers[1];
    if (generation % SIDE != 0) continue;
    if (!must(tuff_copy_dtoh(context, cells, now, 0, sizeof cells))) return 1;
    printf("Generation %d\n", generation);
    show(cells);
  }
  const int came_back = memcmp(cells, start, sizeof cells) == 0;
  printf("The glider %s.\n", came_back ? "is back where it began" : "is lost");
  must(tuff_context_destroy(context)); /* also frees the kernel and the buffers */
  return came_back ? 0 : 1;
}
