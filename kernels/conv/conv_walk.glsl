// Steps from tap to tap without divisions or branches. Included after conv_params.glsl.
struct Walk {
  uint c, t, r, s;     // channel, and position in the window
  uint dz, dy, dx;     // offsets from the window's start, in input pixels
  // Parameters that steps need, read once: a driver would reload push constants after each store.
  uint channels, T, R, S;
  uint dilation_z, dilation_y, dilation_x;
  TUFF_INDEX row, channel;  // elements of a row of the input, and of all channels or of a channel
  uint height;
};

Walk walk_from(uint tap) {
  Walk walk;
  walk.channels = push.channels;
  walk.T = CONV_T;
  walk.R = push.R;
  walk.S = push.S;
  walk.dilation_y = low(push.dilation);
  walk.dilation_x = high(push.dilation);
  walk.row = push.W;
  walk.height = push.H;
#if CHANNELS_LAST
  walk.channel = all_channels();
  const uint place = quotient(tap, walk.channels);
  walk.c = tap - place * walk.channels;
#else
  walk.channel = input_pixels();
  const uint places = walk.T * walk.R * walk.S;
  walk.c = quotient(tap, places);
  const uint place = tap - walk.c * places;
#endif
  walk.r = quotient(place, walk.S);
  walk.s = place - walk.r * walk.S;
#if DEPTH
  walk.dilation_z = high(push.depth);
  walk.t = quotient(walk.r, walk.R);
  walk.r -= walk.t * walk.R;
  walk.dz = walk.t * walk.dilation_z;
#else
  walk.dilation_z = walk.t = walk.dz = 0;
#endif
  walk.dy = walk.r * walk.dilation_y;
  walk.dx = walk.s * walk.dilation_x;
  return walk;
}

// The tap's offset from a window's start in the input, in elements.
TUFF_INDEX walk_offset(Walk walk) {
#if DEPTH
  const uint line = walk.dz * walk.height + walk.dy;
#else
  const uint line = walk.dy;
#endif
#if CHANNELS_LAST
  return (line * walk.row + walk.dx) * walk.channel + walk.c;
#else
  return walk.c * walk.channel + line * walk.row + walk.dx;
#endif
}

// Moves to the next tap; with CHANNELS_LAST by `step` channels, which divides the number of channels.
void walk_on(inout Walk walk, uint step) {
#if CHANNELS_LAST
  walk.c += step;
  const bool next_s = walk.c == walk.channels;
  walk.c = next_s ? 0 : walk.c;
#else
  const bool next_s = true;
#endif
  walk.s += next_s ? 1 : 0;
  const bool next_r = walk.s == walk.S;
  walk.r += next_r ? 1 : 0;
  const bool next_t = walk.r == walk.R;
#if DEPTH
  walk.t += next_t ? 1 : 0;
  const bool ends = walk.t == walk.T;
  walk.dz = ends ? 0 : next_t ? walk.dz + walk.dilation_z : walk.dz;
  walk.t = ends ? 0 : walk.t;
#else
  const bool ends = next_t;
#endif
  walk.dx = next_r ? 0 : next_s ? walk.dx + walk.dilation_x : walk.dx;
  walk.dy = next_t ? 0 : next_r ? walk.dy + walk.dilation_y : walk.dy;
  walk.s = next_r ? 0 : walk.s;
  walk.r = next_t ? 0 : walk.r;
#if !CHANNELS_LAST
  walk.c += ends ? 1 : 0;
#endif
}

// Moves n taps on, where step is walk_from(n).
void walk_far(inout Walk walk, Walk step) {
#if CHANNELS_LAST
  walk.c += step.c;
  const bool next_s = walk.c >= walk.channels;
  walk.c -= next_s ? walk.channels : 0;
  walk.s += step.s + (next_s ? 1 : 0);
#else
  walk.s += step.s;
#endif
  const bool next_r = walk.s >= walk.S;
  walk.s -= next_r ? walk.S : 0;
  walk.r += step.r + (next_r ? 1 : 0);
  const bool next_t = walk.r >= walk.R;
  walk.r -= next_t ? walk.R : 0;
#if DEPTH
  walk.t += step.t + (next_t ? 1 : 0);
  const bool ends = walk.t >= walk.T;
  walk.t -= ends ? walk.T : 0;
#else
  const bool ends = next_t;
#endif
#if !CHANNELS_LAST
  walk.c += step.c + (ends ? 1 : 0);
#endif
  walk.dz = walk.t * walk.dilation_z;
  walk.dy = walk.r * walk.dilation_y;
  walk.dx = walk.s * walk.dilation_x;
}
