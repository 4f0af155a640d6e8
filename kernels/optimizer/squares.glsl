// Sums of squares that do not leave the range of f32 (Blue's algorithm, ACM TOMS 4, 1978): numbers are squared as they
// are, multiplied by a power of two, in three sums by their magnitude. Bounds, for at most 2^40 numbers: a small one is
// below 2^-44, 2^36 after its scaling, so that its sum is below 2^112, and the smallest that is not denormal has the square
// 2^-92. Those in the middle have squares from 2^-88 to 2^84. A large one is below 2^28 after its scaling. So a sum is
// infinite or NaN only if a number was.
#define TUFF_SMALL 5.6843418860808015e-14  // 2^-44
#define TUFF_LARGE 4398046511104.0  // 2^42
#define TUFF_RAISED 1.2089258196146292e24  // 2^80
#define TUFF_LOWERED 7.888609052210118e-31  // 2^-100

struct Squares {
  vec4 small, middle, large;
};

Squares no_squares() { return Squares(vec4(0.0), vec4(0.0), vec4(0.0)); }

void add_squares(inout Squares s, vec4 x) {
  const vec4 magnitude = abs(x);
  const bvec4 small = lessThan(magnitude, vec4(TUFF_SMALL)), large = greaterThanEqual(magnitude, vec4(TUFF_LARGE));
  // NaN is neither, and reaches the sum in the middle.
  const vec4 scaled = x * mix(mix(vec4(1.0), vec4(TUFF_RAISED), small), vec4(TUFF_LOWERED), large);
  const vec4 square = scaled * scaled;
  s.small += mix(vec4(0.0), square, small);
  s.large += mix(vec4(0.0), square, large);
  s.middle += mix(mix(square, vec4(0.0), small), vec4(0.0), large);
}

void add_squares(inout Squares s, Squares more) {
  s.small += more.small;
  s.middle += more.middle;
  s.large += more.large;
}

// The square root of three sums, as a number and the factor that it is to be multiplied by.
struct Root {
  float root, factor;
};
Root root_of(float small, float middle, float large) {
  // Of two adjacent sums, the lower counts only if it is not far below the upper: 2^-160 and 2^-200 times it.
  Root r;
  const bool lowest = middle == 0.0 && large == 0.0;
  const float sum = lowest ? small : large == 0.0 ? middle + small / TUFF_RAISED / TUFF_RAISED
                                                  : large + middle * TUFF_LOWERED * TUFF_LOWERED;
  r.factor = lowest ? 1.0 / TUFF_RAISED : large == 0.0 ? 1.0 : 1.0 / TUFF_LOWERED;
  r.root = tuff_sqrt(vec4(sum)).x;
  return r;
}

// Makes `sums`, which are zeros, the totals of the `count` numbers in Sums of each workgroup from begin to end. All lanes
// take part. Numbers of 32 are added to those before, so that chains of additions stay short.
#define TUFF_ADD_SUMS(sums, count, begin, end) \
  { \
    float part[count] = sums; \
    uint step = 0; \
    [[dont_unroll]] for (uint i = (begin) + lane; i < (end); i += TUFF_LANES, ++step) { \
      [[unroll]] for (uint s = 0; s < count; ++s) part[s] += TUFF_AT(Sums, count * i + s); \
      if ((step & 31u) == 31u) { \
        [[unroll]] for (uint s = 0; s < count; ++s) sums[s] += part[s], part[s] = 0.0; \
      } \
    } \
    [[unroll]] for (uint s = 0; s < count; ++s) sums[s] = tree_sum(sums[s] + part[s]); \
  }
