// Winograd's minimal filtering (Lavin and Gray 2015) computes TILE x TILE outputs of a 3 x 3 window from SPAN x SPAN
// inputs with SPAN * SPAN multiplications instead of 9 * TILE * TILE: 16 instead of 36, or 36 instead of 144. An input
// tile, a filter, and the sums of their products over the channels are each transformed along both axes, a line at a
// time. The multiplications are SPAN * SPAN GEMMs: filters x channels by channels x tiles.
//
//# TILE : 2|4 : outputs along each axis
#include "kernels/common/types.glsl"
#define SPAN (TILE + 2)
#include "kernels/conv/conv_numbers.glsl"

#if TILE == 2
void input_line(inout float x[SPAN]) {
  const float a = x[0] - x[2], b = x[1] + x[2], c = x[2] - x[1];
  x[3] = x[1] - x[3];
  x[0] = a, x[1] = b, x[2] = c;
}
void filter_line(float a, float b, float c, out float u[SPAN]) {
  u[0] = a;
  u[1] = 0.5 * ((a + c) + b);
  u[2] = 0.5 * ((a + c) - b);
  u[3] = c;
}
void output_line(float m[SPAN], out float y[TILE]) {
  y[0] = m[0] + m[1] + m[2];
  y[1] = m[1] - m[2] - m[3];
}
#else
void input_line(inout float x[SPAN]) {
  const float even = fma(-4.0, x[2], x[4]), odd = fma(-4.0, x[1], x[3]);
  const float far = x[4] - x[2], near = 2.0 * (x[3] - x[1]);
  x[0] = fma(4.0, x[0], fma(-5.0, x[2], x[4]));
  x[5] = fma(4.0, x[1], fma(-5.0, x[3], x[5]));
  x[1] = even + odd;
  x[2] = even - odd;
  x[3] = far + near;
  x[4] = far - near;
}
void filter_line(float a, float b, float c, out float u[SPAN]) {
  const float sixth = 1.0 / 6.0, twelfth = 1.0 / 12.0;
  const float outer = -sixth * (a + c), inner = fma(sixth, c, 0.5 * twelfth * a);
  u[0] = 0.25 * a;
  u[1] = fma(-sixth, b, outer);
  u[2] = fma(sixth, b, outer);
  u[3] = fma(twelfth, b, inner);
  u[4] = fma(-twelfth, b, inner);
  u[5] = c;
}
void output_line(float m[SPAN], out float y[TILE]) {
  const float near = m[1] + m[2], step = m[1] - m[2], far = m[3] + m[4], stride = m[3] - m[4];
  y[0] = m[0] + near + far;
  y[1] = fma(2.0, stride, step);
  y[2] = fma(4.0, far, near);
  y[3] = fma(8.0, stride, step) + m[5];
}
#endif

// The position of a tile's first output.
struct Place {
  uint image, y, x;
};
Place tile_place(uint tile, uint tiles_y, uint tiles_x) {
  const uint row = quotient(tile, tiles_x), image = quotient(row, tiles_y);
  return Place(image, (row - image * tiles_y) * TILE, (tile - row * tiles_x) * TILE);
}
