#ifndef TUFF_VARIATES_GLSL
#define TUFF_VARIATES_GLSL
// Numbers of distributions that need rejection, and those whose parameters differ from element to element.
//
// Element e has 64 blocks of four random words: Philox4x32-10 of the counters (2^62 + 2^56 b + e, sequence), b < 64.
// Counters of tuff_random() are below 2^62, or from 2^63 to 2^63 + 2^62, so no word serves both. An element's number
// therefore depends on nothing but its parameters, the seed, the sequence and e.
//
// An attempt takes two words, or a block. Of 128 attempts of two words each is rejected with a probability of at most 0.76
// (at each loop), so all are with one below 2^-50; of 64 of a block, of which each is rejected with at most 0.05, below
// 2^-270. Then the last proposal is taken.
//
// variates_host.cpp includes this file as C++, in a class whose members are what is `element` and the like here.

const int VARIATES_GAMMA = 1, VARIATES_LOG_GAMMA = 2, VARIATES_VONMISES = 3;  // TUFF_VARIATES_* of tuff.h
const int VARIATES_POISSON = 4, VARIATES_BINOMIAL = 5, VARIATES_HYPERGEOMETRIC = 6, VARIATES_ZIPF = 7;

const uint BLOCKS = 64u;

uint element_low, element_high;  // the element's number, below 2^56
uint sequence_low, sequence_high, key_low, key_high;

uvec4 words_of(uint block) {
  return tuff_philox(uvec4(element_low, element_high | 0x40000000u | block << 24, sequence_low, sequence_high),
                     uvec2(key_low, key_high));
}

uvec2 pair_of(uint attempt) {
  const uvec4 words = words_of(attempt / 2u);
  return attempt % 2u == 0u ? uvec2(words.x, words.y) : uvec2(words.z, words.w);
}

uint word_of(uvec4 words, uint i) { return i == 0u ? words.x : i == 1u ? words.y : i == 2u ? words.z : words.w; }

// The middle of one of 2^24 equal parts of 0 to 1.
float uniform_of(uint w) {
  precise float u = float(w >> 8) * 5.9604644775390625e-8f + 2.98023223876953125e-8f;
  return u;
}

// Newton's method from an estimate by the bits, of 1.5 * 2^-126 < x < 2^125: 12 % become 2, 0.04, 2e-5 % and then less.
float reciprocal_of(float x) {
  precise float y = uintBitsToFloat(0x7ef311c7u - floatBitsToUint(x));
  y = y * (2.0f - x * y);
  y = y * (2.0f - x * y);
  y = y * (2.0f - x * y);
  y = y * (2.0f - x * y);
  return y;
}

// For positive normal numbers.
float log_of(float x) {
  const uint bits = floatBitsToUint(x), m = bits & 0x7fffffu;
  const bool upper = m > 0x3504f3u;
  precise float f = uintBitsToFloat(m | (upper ? 0x3f000000u : 0x3f800000u)) - 1.0f;
  return log_of_parts(f, float(int(bits >> 23) - 127 + (upper ? 1 : 0)));
}

// ln(1 + x) for -0.5 <= x <= 1: 2 artanh(y) with y = x / (2 + x), |y| <= 1/3. The first term left out is y^17 / 17, below
// 2e-9 of the first.
float log1p_of(float x) {
  precise float y = x * reciprocal_of(2.0f + x);
  precise float z = y * y;
  precise float p = 0.0666666667f;
  p = p * z + 0.0769230769f;
  p = p * z + 0.0909090909f;
  p = p * z + 0.111111111f;
  p = p * z + 0.142857143f;
  p = p * z + 0.2f;
  p = p * z + 0.333333333f;
  precise float result = 2.0f * y + 2.0f * y * z * p;
  return result;
}

// e^r - 1 for |r| <= 0.35: Taylor's series. The first term left out is r^8 / 8!, below 2e-8 of r.
float expm1_of_small(float r) {
  precise float p = 1.98412698e-4f;
  p = p * r + 1.38888889e-3f;
  p = p * r + 8.33333333e-3f;
  p = p * r + 0.0416666667f;
  p = p * r + 0.166666667f;
  p = p * r + 0.5f;
  precise float result = r + r * r * p;
  return result;
}

// For -87 <= x <= 88.
float exp_of(float x) {
  precise float n = floor(x * 1.44269504f + 0.5f);
  precise float r = x - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  precise float result = (1.0f + expm1_of_small(r)) * uintBitsToFloat(uint(int(n) + 127) << 23);
  return result;
}

// An exponentially distributed number of mean 1: -ln((2 w + 1) / 2^33). Near 0 it keeps all bits of w.
float exponential_of(uint w) {
  if (w < 0x80000000u) return minus_log(w);
  precise float v = (float(0xffffffffu - w) + 0.5f) * 2.3283064365386963e-10f;
  return -log1p_of(-v);
}

// ln(x!) - ((x + 1/2) ln x - x + ln(2 pi) / 2) for whole x >= 1: Stirling's series, whose first term left out is below 1e-10
// for x >= 10.
float stirling_of(float x) {
  if (x < 1.5f) return 0.0810614668f;
  if (x < 2.5f) return 0.0413406960f;
  if (x < 3.5f) return 0.0276779257f;
  if (x < 4.5f) return 0.0207906721f;
  if (x < 5.5f) return 0.0166446912f;
  if (x < 6.5f) return 0.0138761288f;
  if (x < 7.5f) return 0.0118967099f;
  if (x < 8.5f) return 0.0104112653f;
  if (x < 9.5f) return 0.00925546218f;
  precise float r = reciprocal_of(x);
  precise float z = r * r;
  precise float result = r * (0.0833333333f - z * (0.00277777778f - z * 7.93650794e-4f));
  return result;
}

// The logarithm of the Poisson probability of x = mean + d, where d is more exact than the difference of the two: Loader's
// saddle-point form (2000), -D - ln(2 pi x) / 2 - stirling(x) with D = x ln(x / mean) + mean - x. Sums of it are the
// logarithms of binomial and hypergeometric probabilities but for a constant, because their terms with the means cancel.
float poisson_log(float x, float mean, float d) {
  if (x < 0.5f) return -mean;
  precise float sum = x + mean;
  precise float deviance;
  if (abs(d) < 0.1f * sum) {
    precise float v = d * reciprocal_of(sum);
    precise float z = v * v;
    precise float p = 0.0909090909f;
    p = p * z + 0.111111111f;
    p = p * z + 0.142857143f;
    p = p * z + 0.2f;
    p = p * z + 0.333333333f;
    deviance = d * v + 2.0f * x * v * z * p;
  } else {
    precise float ratio = x * reciprocal_of(mean);
    deviance = x * log_of(ratio) - d;
  }
  precise float around = 6.28318531f * x;
  precise float result = -deviance - 0.5f * log_of(around) - stirling_of(x);
  return result;
}

// Gamma: Marsaglia and Tsang 2000. An attempt is rejected with a probability below 0.05.
//
// A shape a below 1 is that of a + 1 times U^(1/a). With h = c x, the condition ln U < x^2 / 2 + d (1 - v^3 + ln v^3) is
// -ln U > d r with r = h^3 - 3/2 h^2 + 3 h - 3 ln(1 + h), which the series computes without cancellation.
float gamma_rest(float h, float log_v) {
  if (abs(h) < 0.25f) {
    precise float p = -0.0769230769f;
    p = p * h + 0.0833333333f;
    p = p * h - 0.0909090909f;
    p = p * h + 0.1f;
    p = p * h - 0.111111111f;
    p = p * h + 0.125f;
    p = p * h - 0.142857143f;
    p = p * h + 0.166666667f;
    p = p * h - 0.2f;
    p = p * h + 0.25f;
    precise float series = 3.0f * h * h * h * h * p;
    return series;
  }
  precise float r = h * (h * (h - 1.5f) + 3.0f) - 3.0f * log_v;
  return r;
}

float gamma_of(float shape, bool logarithm) {
  if (shape >= 1.26765060e30f) return logarithm ? log_of(shape) : shape;  // 2^100: all digits of f32 are the mean's
  const bool small_shape = shape < 1.0f;
  precise float d = shape + (small_shape ? 0.666666667f : -0.333333333f);
  precise float c = 0.333333333f * root(reciprocal_of(d));
  precise float number = d;
  precise float log_v = 0.0f;
  precise float less = 0.0f;  // of the logarithm
  for (uint attempt = 0u; attempt < BLOCKS; ++attempt) {
    const uvec4 words = words_of(attempt);
    if (attempt == 0u && small_shape) {
      // A shape below 2^-100 gives what 2^-100 gives: no number of f32 but 0 is as small.
      less = exponential_of(words.w) * reciprocal_of(max(shape, 7.88860905e-31f));
    }
    const vec2 way = direction(words.y);
    precise float twice = 2.0f * minus_log(words.x);
    precise float h = c * root(twice) * way.x;
    precise float v = 1.0f + h;
    if (v <= 0.0f) continue;
    if (abs(h) < 0.5f) {  // keeps all digits of h
      log_v = log1p_of(h);
      number = d + d * h * (3.0f + h * (3.0f + h));
    } else {
      log_v = log_of(v);
      number = d * v * v * v;
    }
    precise float rest = d * gamma_rest(h, log_v);
    if (exponential_of(words.z) >= rest) break;
  }
  if (logarithm) {
    precise float result = log_of(d) + 3.0f * log_v - less;
    return result;
  }
  if (less > 100.0f) return 0.0f;  // number is below 100
  if (less > 0.0f) {
    precise float half_way = exp_of(-0.5f * less);
    number = number * half_way * half_way;
  }
  return number < 1.17549435e-38f ? 0.0f : number;  // devices may flush numbers below
}

// The angle of von Mises's distribution around 0: wrapped Cauchy proposals, as of Best and Fisher 1979. With f = cos(angle)
// and c = kappa (r - f), the ratio of densities is at most that of c = 1, so -ln U >= c - 1 - ln c accepts, for any r > 1.
// Here s = kappa (r - 1) falls from 1 to 1/2, which rejects at most 0.35.
// tan(angle / 2) = sqrt((r - 1) / (r + 1)) tan(phi / 2) with phi uniform keeps small angles exact.
float arctangent_of(float x) {  // 0 <= x <= 1; Cephes, within 2e-8
  const bool far = x > 0.414213562f;
  precise float t = far ? (x - 1.0f) * reciprocal_of(x + 1.0f) : x;
  precise float z = t * t;
  precise float y = ((8.05374449538e-2f * z - 0.138776856032f) * z + 0.199777106478f) * z - 0.333329491539f;
  precise float result = (far ? 0.785398163f : 0.0f) + (y * z * t + t);
  return result;
}

float vonmises_of(float concentration) {
  const float kappa = min(concentration, 1e30f);
  precise float s = 0.5f + 0.5f * reciprocal_of(1.0f + kappa);
  precise float slope = s * reciprocal_of(s + 2.0f * kappa);  // squared
  precise float twice = 2.0f * kappa * slope;
  precise float tangent = root(slope);
  vec2 way = vec2(1.0f, 0.0f);
  for (uint attempt = 0u; attempt < 2u * BLOCKS; ++attempt) {
    const uvec2 words = pair_of(attempt);
    way = direction(words.x);
    precise float sines = way.y * way.y;
    precise float c = s + twice * sines * reciprocal_of(slope * sines + way.x * way.x);
    precise float least = c - 1.0f - log_of(c);
    if (exponential_of(words.y) >= least) break;
  }
  precise float over = tangent * abs(way.y);
  const float under = abs(way.x);
  precise float ratio = over < under ? over * reciprocal_of(under) : under * reciprocal_of(over);
  precise float angle = arctangent_of(ratio);
  if (over >= under) angle = 1.57079633f - angle;
  precise float result = 2.0f * angle;
  return (way.x < 0.0f) != (way.y < 0.0f) ? -result : result;
}

// Poisson. A rate below 10: how many exponential times of mean 1 fit into it; that these are 252 and more, the words of all
// attempts, has a probability below 1e-200. From 10: Hörmann's PTRS (1993), which rejects at most 0.35. Numbers are
// relative to the rate's whole part, so that those of a rate of 2^30 are exact too.
int poisson_of(float rate) {
  if (rate < 10.0f) {
    precise float time = 0.0f;
    for (uint block = 0u; block < BLOCKS; ++block) {
      const uvec4 words = words_of(block);
      for (uint i = 0u; i < 4u; ++i) {
        time = time + exponential_of(word_of(words, i));
        if (time > rate) return int(4u * block + i);
      }
    }
    return int(4u * BLOCKS);
  }
  precise float b = 0.931f + 2.53f * root(rate);
  precise float a = -0.059f + 0.02483f * b;
  precise float squeeze = 0.9277f - 3.6224f * reciprocal_of(b - 2.0f);
  precise float inverse_alpha = 1.1239f + 1.1328f * reciprocal_of(b - 3.4f);
  precise float whole = floor(rate);
  precise float part = rate - whole;
  int k = int(whole);
  for (uint attempt = 0u; attempt < 2u * BLOCKS; ++attempt) {
    const uvec2 words = pair_of(attempt);
    precise float u = uniform_of(words.x) - 0.5f;
    precise float us = 0.5f - abs(u);
    precise float place = (2.0f * a * reciprocal_of(us) + b) * u + part + 0.43f;
    if (abs(place) >= 1048575.0f) continue;  // beyond 22 deviations of the largest rate
    precise float step = floor(place);
    if (whole + step < 0.0f) continue;
    k = int(whole) + int(step);
    const float v = uniform_of(words.y);
    if (us >= 0.07f && v <= squeeze) break;
    if (us < 0.013f && v > us) continue;
    precise float height = inverse_alpha * us * us * reciprocal_of(a + b * us * us);
    precise float least = log_of(height) - poisson_log(float(k), rate, step - part);
    if (exponential_of(words.y) >= least) break;
  }
  return k;
}

// Binomial of p <= 1/2. A mean below 10: the second waiting time method (Devroye 1986, X.4.3), of which the words of all
// attempts are enough as above. From 10: Hörmann's BTRS (1993), which rejects at most 0.35.
int binomial_of_half(int trials, float p) {
  const float n = float(trials);
  precise float mean = n * p;
  if (mean < 10.0f) {
    precise float limit = -log1p_of(-p);
    precise float time = 0.0f;
    for (uint block = 0u; block < BLOCKS; ++block) {
      const uvec4 words = words_of(block);
      for (uint i = 0u; i < 4u; ++i) {
        const int done = int(4u * block + i);
        if (done == trials) return trials;
        time = time + exponential_of(word_of(words, i)) * reciprocal_of(float(trials - done));
        if (time > limit) return done;
      }
    }
    return int(4u * BLOCKS);
  }
  precise float others = n - mean;
  precise float deviation = root(mean * (1.0f - p));
  precise float b = 1.15f + 2.53f * deviation;
  precise float a = -0.0873f + 0.0248f * b + 0.01f * p;
  precise float inverse_b = reciprocal_of(b);
  precise float squeeze = 0.92f - 4.2f * inverse_b;
  precise float alpha = (2.83f + 5.1f * inverse_b) * deviation;
  precise float whole = floor(mean);
  precise float part = mean - whole;
  precise float mode = part + p >= 1.0f ? 1.0f : 0.0f;  // relative to the mean's whole part
  precise float mode_apart = mode - part;
  const int middle = int(whole) + int(mode);
  precise float highest =
      poisson_log(float(middle), mean, mode_apart) + poisson_log(float(trials - middle), others, -mode_apart);
  int k = middle;
  for (uint attempt = 0u; attempt < 2u * BLOCKS; ++attempt) {
    const uvec2 words = pair_of(attempt);
    precise float u = uniform_of(words.x) - 0.5f;
    precise float us = 0.5f - abs(u);
    precise float place = (2.0f * a * reciprocal_of(us) + b) * u + part + 0.5f;
    if (abs(place) >= 1048575.0f) continue;
    precise float step = floor(place);
    const int found = int(whole) + int(step);
    if (found < 0 || found > trials) continue;
    k = found;
    if (us >= 0.07f && uniform_of(words.y) <= squeeze) break;
    precise float apart = step - part;
    precise float height = alpha * us * us * reciprocal_of(a + b * us * us);
    precise float least = log_of(height) + highest - poisson_log(float(k), mean, apart) -
                          poisson_log(float(trials - k), others, -apart);
    if (exponential_of(words.y) >= least) break;
  }
  return k;
}

int binomial_of(int trials, float p) {
  if (p <= 0.5f) return binomial_of_half(trials, p);
  return trials - binomial_of_half(trials, 1.0f - p);
}

// Hypergeometric: how many of `sample` draws without replacement are good. Up to 9 draws are made one by one. From 10:
// Stadlober's ratio of uniforms HRUA (1990), of the draws or of what is left of all, whichever are fewer, and of the rarer
// kind. It rejects at most 0.76: 1 - 1 / (2 w) for the width w = 2.11 of a variance of 0.
int urn_of(int good, int total, int draws) {
  uvec4 words = words_of(0u);
  int found = 0;
  for (int i = 0; i < draws; ++i) {
    if (i % 4 == 0) words = words_of(uint(i) / 4u);
    const uint word = i % 4 == 0 ? words.x : i % 4 == 1 ? words.y : i % 4 == 2 ? words.z : words.w;
    uint place, ignored;
    umulExtended(word, uint(total - i), place, ignored);
    if (place < uint(good - found)) ++found;
  }
  return found;
}

float hypergeometric_log(int k, int rare, int total, int draws, float mean, float apart) {
  precise float rare_left = float(rare) - mean;
  precise float draws_left = float(draws) - mean;
  precise float neither = float(total - rare) - draws_left;
  precise float result = poisson_log(float(k), mean, apart) + poisson_log(float(rare - k), rare_left, -apart) +
                         poisson_log(float(draws - k), draws_left, -apart) +
                         poisson_log(float(total - rare - draws + k), neither, apart);
  return result;
}

int ratio_of_uniforms_of(int rare, int total, int draws) {
  // The mean, draws * rare / total, as a whole number and a part, from products of 64 bits.
  precise float inverse = reciprocal_of(float(total));
  precise float share = float(rare) * inverse;
  precise float whole = floor(float(draws) * share);
  uint high, low, other_high, other_low, borrow;
  umulExtended(uint(draws), uint(rare), high, low);
  umulExtended(uint(int(whole)), uint(total), other_high, other_low);
  low = usubBorrow(low, other_low, borrow);
  high = high - other_high - borrow;
  const bool negative = (high & 0x80000000u) != 0u;
  if (negative) {
    high = ~high + (low == 0u ? 1u : 0u);
    low = ~low + 1u;
  }
  precise float part = (float(high) * 4294967296.0f + float(low)) * inverse;
  if (negative) part = -part;
  precise float mean = whole + part;
  precise float variance = mean * (1.0f - share) * (float(total - draws) * reciprocal_of(float(total) - 1.0f));
  precise float width = 1.71552777f * root(variance + 0.5f) + 0.898916162f;
  const int most = min(draws, rare);
  precise float mode =
      floor((float(draws) + 1.0f) * ((float(rare) + 1.0f) * reciprocal_of(float(total) + 2.0f)) - whole);
  int k = min(max(int(whole) + int(mode), 0), most);
  precise float apart = float(k - int(whole)) - part;
  precise float highest = hypergeometric_log(k, rare, total, draws, mean, apart);
  for (uint attempt = 0u; attempt < 2u * BLOCKS; ++attempt) {
    const uvec2 words = pair_of(attempt);
    const float minus = exponential_of(words.x);  // -ln U
    precise float place = part + 0.5f + width * (uniform_of(words.y) - 0.5f) * exp_of(minus);
    if (abs(place) >= 1048575.0f) continue;
    precise float jump = floor(place);
    const int found = int(whole) + int(jump);
    if (found < 0 || found > most) continue;
    k = found;
    apart = jump - part;
    precise float least = 0.5f * (highest - hypergeometric_log(k, rare, total, draws, mean, apart));
    if (minus >= least) break;
  }
  return k;
}

int hypergeometric_of(int good, int bad, int draws) {
  const int total = good + bad, rare = min(good, bad), fewer = min(draws, total - draws);
  int k = 0;  // of the rarer kind, in the smaller one of what is drawn and what is left
  if (fewer < 10) {
    k = urn_of(rare, total, fewer);
  } else if (rare < 10) {
    k = urn_of(fewer, total, rare);  // good and drawn change places
  } else {
    k = ratio_of_uniforms_of(rare, total, fewer);
  }
  if (good > bad) k = fewer - k;
  return fewer < draws ? good - k : k;
}

// Zipf: Devroye's rejection from the whole part of U^(-1 / (a - 1)) (1986, X.6.1), which rejects at most 0.66. Numbers
// beyond 2^31 - 1 become that.
int zipf_of(float a) {
  precise float less = a - 1.0f;
  if (less >= 60.0f) return 1;
  precise float inverse = reciprocal_of(less);
  precise float z = less * 0.693147181f;
  precise float b_less = z <= 0.35f ? expm1_of_small(z) : exp_of(z) - 1.0f;
  precise float b = 1.0f + b_less;
  int k = 1;
  for (uint attempt = 0u; attempt < 2u * BLOCKS; ++attempt) {
    const uvec2 words = pair_of(attempt);
    precise float logarithm = exponential_of(words.x) * inverse;
    precise float product = less;  // x (t - 1) and t - 1, here of an infinite x
    precise float t_less = 0.0f;
    k = 2147483647;
    if (logarithm < 21.4875f) {
      precise float x = floor(exp_of(logarithm));
      k = int(x);
      precise float slope = less * log1p_of(reciprocal_of(x));
      t_less = slope <= 0.35f ? expm1_of_small(slope) : exp_of(slope) - 1.0f;
      product = x * t_less;
    }
    precise float left = uniform_of(words.y) * product * b;
    precise float right = (1.0f + t_less) * b_less;
    if (left <= right) break;
  }
  return k;
}

// Whether a parameter's bits are those of a number from 0 to a positive number of f32, whose bits are `most`: no NaN, and
// -0 counts as 0. By integers, because not every device keeps NaN.
bool is_to(uint bits, uint most) { return bits <= most || bits == 0x80000000u; }

// The bits of a number of a distribution of tuff.h with these parameters. Parameters out of range give NaN, or -1.
uint variate_of(int distribution, uint first, uint second, uint third) {
  const float parameter = uintBitsToFloat(first == 0x80000000u ? 0u : first);
  if (distribution <= VARIATES_VONMISES) {
    const bool zero = parameter < 1.17549435e-38f;  // or what a device may flush to it
    if (!is_to(first, 0x7f7fffffu)) return 0x7fc00000u;
    if (distribution == VARIATES_VONMISES) return floatBitsToUint(vonmises_of(zero ? 0.0f : parameter));
    const bool logarithm = distribution == VARIATES_LOG_GAMMA;
    if (zero) return logarithm ? 0xff800000u : 0u;
    return floatBitsToUint(gamma_of(parameter, logarithm));
  }
  const uint none = 0xffffffffu;
  if (distribution == VARIATES_POISSON) return is_to(first, 0x4effe000u) ? uint(poisson_of(parameter)) : none;
  if (distribution == VARIATES_ZIPF) {
    return first > 0x3f800000u && first <= 0x7f800000u ? uint(zipf_of(parameter)) : none;
  }
  if (distribution == VARIATES_BINOMIAL) {
    const float p = uintBitsToFloat(second == 0x80000000u ? 0u : second);
    return int(first) >= 0 && is_to(second, 0x3f800000u) ? uint(binomial_of(int(first), p)) : none;
  }
  const bool in_range = int(first) >= 0 && int(second) >= 0 && int(third) >= 0 && first + second <= 0x7fffffffu;
  return in_range && third <= first + second ? uint(hypergeometric_of(int(first), int(second), int(third))) : none;
}
#endif
