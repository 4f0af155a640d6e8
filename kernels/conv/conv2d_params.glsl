// What every conv2d kernel is told, and how it finds its way in the tensors. Mirrors ConvPush in
// conv_vulkan.cpp.
//
// A convolution is the product filter[K][L] * patches[L][columns] with L = C * R * S ("taps") and one
// column for each output pixel of each image; the patches are gathered while loading, never stored.
layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  uint K, H, W, P, Q, S;
  uint RS;                          // R * S
  uint taps;                        // C * R * S
  uint stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x;
  uint filter_tiles;                // tiles along K
  uint rs_multiplier, rs_shift;     // division by R * S
  uint s_multiplier, s_shift;       // division by S
  uint columns_low, columns_high;   // N * P * Q
  uint channels;                    // C
  uint tap_begin, tap_end;          // the taps to add; all, or with PIECES those from one to before the other
} push;

// PIECES 1: the taps come in several dispatches, each of which goes on from the sums that the one before it
// has left in the output.
#if PIECES
#define FIRST_TAP push.tap_begin
#define TUFF_OUTPUT(slot, name, type, size) TUFF_READ_WRITE(slot, name, type, size)
#else
#define FIRST_TAP 0u
#define TUFF_OUTPUT(slot, name, type, size) TUFF_WRITE(slot, name, type, size)
#endif

// n / d for n < 2^31, by one multiplication (Granlund and Montgomery 1994, "Division by invariant
// integers using multiplication", figure 4.1): shift = ceil(log2 d), multiplier = 2^32 (2^shift - d) / d + 1.
uint divide(uint n, uint multiplier, uint shift) {
  uint high, low;
  umulExtended(n, multiplier, high, low);
  return (high + n) >> shift;
}

TUFF_INDEX columns() {
#if TUFF_WIDE
  return (uint64_t(push.columns_high) << 32) | push.columns_low;
#else
  return push.columns_low;
#endif
}

// One column: where its patch starts in the input and where its outputs lie.
struct Column {
  TUFF_INDEX input_base;   // of input[n][0][y][x]; wraps around where y or x lie in the padding
  TUFF_INDEX output_base;  // of output[n][0][p][q]
  uint y, x;               // the patch's first input row and column; negative ones wrap
};

Column column_at(TUFF_INDEX column) {
  TUFF_INDEX image_pixels = TUFF_INDEX(push.P) * push.Q;
  TUFF_INDEX n = column / image_pixels;
  uint pixel = uint(column - n * image_pixels);
  uint p = pixel / push.Q;
  uint q = pixel - p * push.Q;
  Column result;
  result.y = p * push.stride_y - push.pad_y;
  result.x = q * push.stride_x - push.pad_x;
  result.input_base = (n * push.channels * push.H + TUFF_INDEX(int(result.y))) * push.W + TUFF_INDEX(int(result.x));
  result.output_base = n * push.K * image_pixels + pixel;
  return result;
}
