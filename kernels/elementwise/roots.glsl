// Powers and roots of f32 on vec4.
vec4 tuff_square(vec4 x) {
  precise vec4 y = x * x;
  return y;
}

vec4 tuff_cube(vec4 x) {
  precise vec4 y = x * x * x;
  return y;
}

vec4 tuff_reciprocal(vec4 x) { return tuff_divide(vec4(1.0), x); }

vec4 tuff_rsqrt(vec4 x) { return tuff_divide(vec4(1.0), tuff_sqrt(x)); }

// |x| = 2^(3 k) m with m in [1, 8). A third of m's bits is its cube root within 4 percent (W. Kahan). Halley's step
// cubes an error, so the second one has a result of 12 bits, whose cube is subtracted exactly, to correct.
vec4 tuff_cbrt(vec4 x) {
  uvec4 size = floatBitsToUint(x) & 0x7fffffffu;
  bvec4 tiny = lessThan(size, uvec4(0x00800000u));  // as in tuff_log: bits * 2^-149
  uvec4 scaled = mix(size, floatBitsToUint(vec4(ivec4(size))), tiny);
  // The biased exponent plus 2 is 3 * third + what remains, and 129 is 3 * 43; 149 + 1 is divisible by 3.
  uvec4 exponent = (scaled >> 23) + mix(uvec4(2u), uvec4(3u), tiny);
  uvec4 third = (exponent * 21846u) >> 16;
  uvec4 m_bits = (scaled & 0x007fffffu) | ((exponent - 3u * third + 127u) << 23);
  ivec4 k = ivec4(third) - mix(ivec4(43), ivec4(93), tiny);
  precise vec4 m = uintBitsToFloat(m_bits);
  precise vec4 y = uintBitsToFloat(m_bits / 3u + 709958130u);
  precise vec4 cube = y * y * y;
  precise vec4 step = y * ((m - cube) / (2.0 * cube + m));
  precise vec4 head = tuff_head(y + step);
  precise vec4 square = head * head;
  precise vec4 square_head = tuff_head(square);
  precise vec4 rest = (m - square_head * head) - (square - square_head) * head;
  precise vec4 correction = head * (rest / (2.0 * (square * head) + m));
  y = (head + correction) * intBitsToFloat((k << 23) + 0x3f800000);
  y = mix(y, uintBitsToFloat(size), equal(size, uvec4(0u)));
  y = mix(y, uintBitsToFloat(size), greaterThanEqual(size, uvec4(0x7f800000u)));
  return tuff_with_sign(y, x);
}
