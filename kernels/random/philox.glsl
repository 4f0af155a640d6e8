#ifndef TUFF_PHILOX_GLSL
#define TUFF_PHILOX_GLSL
// Philox4x32-10 (Salmon et al. 2011): the four words of a counter, with a key of two.
uvec4 tuff_philox(uvec4 c, uvec2 k) {
  for (uint i = 0; i < 10; ++i) {
    uint high0, low0, high1, low1;
    umulExtended(0xD2511F53u, c.x, high0, low0);
    umulExtended(0xCD9E8D57u, c.z, high1, low1);
    c = uvec4(high1 ^ c.y ^ k.x, low1, high0 ^ c.w ^ k.y, low0);
    k += uvec2(0x9E3779B9u, 0xBB67AE85u);
  }
  return c;
}
#endif
