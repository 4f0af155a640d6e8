// activation(x) of a GEMM's or a convolution's epilogue, for NUMBER float, double or int (none and relu only). For
// float it calls the function of the unary operation of the same name, so that both give the same bits.
//
//# ACTIVATION : 0..5 : TUFF_ACTIVATION_*: 0 none, 1 relu, 2 gelu, 3 gelu by tanh, 4 silu, 5 relu6
// Also depends on TUFF_EXACT_ARITHMETIC, see math.glsl.
#if ACTIVATION == 0
NUMBER gemm_activation(NUMBER x) { return x; }

#elif ACTIVATION == 1 || ACTIVATION == 5
// The bits are compared so that NaN stays NaN: a driver may assume that floats are never NaN.
bool gemm_negative(int x) { return x < 0; }
bool gemm_negative(float x) { return floatBitsToUint(x) - 0x80000001u < 0x7f800000u; }
#if C_TYPE == TUFF_F64
bool gemm_negative(double x) { return x < 0.0lf; }
#endif
#if ACTIVATION == 1
NUMBER gemm_activation(NUMBER x) { return gemm_negative(x) ? NUMBER(0) : x; }
#else
bool gemm_above_6(int x) { return x > 6; }
bool gemm_above_6(float x) { return floatBitsToUint(x) - 0x40c00001u < 0x3ec00000u; }
#if C_TYPE == TUFF_F64
bool gemm_above_6(double x) { return x > 6.0lf; }
#endif
NUMBER gemm_activation(NUMBER x) { return gemm_negative(x) ? NUMBER(0) : gemm_above_6(x) ? NUMBER(6) : x; }
#endif

#elif C_TYPE != TUFF_F64
#include "kernels/elementwise/math.glsl"
#include "kernels/elementwise/activations.glsl"
// The four components are equal, so that the compiler computes only one.
float gemm_activation(float x) {
#if ACTIVATION == 2
  return tuff_gelu(vec4(x)).x;
#elif ACTIVATION == 3
  return tuff_gelu_tanh(vec4(x)).x;
#else
  return tuff_silu(vec4(x)).x;
#endif
}

#else
// Below this value gelu and silu round to -0; computing them at -infinity would give NaN.
#define GEMM_ACTIVATION_ENDS -10000.0lf

// With x = n ln 2 + r, |r| <= ln(2) / 2: the Taylor series of e^r up to the 13th power, times 2^n as two factors.
double gemm_exp(double x) {
  const double c = clamp(x, -760.0lf, 720.0lf);
  const int n = int(c * 1.4426950408889634lf + (c < 0.0lf ? -0.5lf : 0.5lf));
  const double r = (c - double(n) * 0.693147180369123816490lf) - double(n) * 1.90821492927058770002e-10lf;
  double sum = 1.0lf;
  [[unroll]] for (int i = 13; i > 0; --i) sum = fma(sum, r / double(i), 1.0lf);
  const int first = n / 2;
  return sum * packDouble2x32(uvec2(0u, uint(first + 1023) << 20)) *
         packDouble2x32(uvec2(0u, uint(n - first + 1023) << 20));
}

#if ACTIVATION == 2
// GELU is x * Phi(x) with Phi(-|x|) = erfc(|x| / sqrt(2)) / 2, which avoids cancellation for negative x.
// erfc(z) = exp(-z * z) * P((z - 3) / (z + 3)) / (1 + 2 z), where P is a Chebyshev fit over all z >= 0 (Shepherd and
// Laframboise 1981), written in powers of its argument; the first omitted term is below the rounding error.
const double erfc_series[27] = {
    1.2530080582697296lf, -0.1356211061245812lf, -0.04756229435345109lf, 0.12964515870276475lf,
    -0.11927366341528019lf, 0.06830802734384506lf, -0.02377051491950784lf, 0.002529391818048912lf,
    0.0018886903717023511lf, -0.0007798322884934605lf, -0.00010515990116756993lf, 0.00012509943562367422lf,
    4.949989016683002e-06lf, -2.0100843252978628e-05lf, -7.331443012964539e-07lf, 3.4730244826443093e-06lf,
    3.6039317413267065e-07lf, -6.175621831238109e-07lf, -1.4683459342365174e-07lf, 1.0278033117791637e-07lf,
    4.695354474152974e-08lf, -1.3906334853053955e-08lf, -1.1735989929753627e-08lf, 1.202027323750615e-09lf,
    2.063151529328852e-09lf, -3.4521618834769844e-11lf, -1.8827147043043302e-10lf};
double gemm_activation(double x) {
  const double z = min(abs(x) * 0.70710678118654752440lf, 10000.0lf);  // erfc is 0 well before that
  const double s = (z - 3.0lf) / (z + 3.0lf);
  double series = erfc_series[erfc_series.length() - 1];
  [[unroll]] for (int i = erfc_series.length() - 2; i >= 0; --i) series = fma(series, s, erfc_series[i]);
  const double left = 0.5lf * gemm_exp(-0.5lf * x * x) * series / (1.0lf + 2.0lf * z);
  return x < GEMM_ACTIVATION_ENDS ? -0.0lf : x * (x < 0.0lf ? left : 1.0lf - left);
}

#else
double gemm_activation(double x) {
#if ACTIVATION == 3
  // (1 + tanh(y)) / 2 is the sigmoid of 2 y.
  const double y = 1.59576912160573071176lf * x * (1.0lf + 0.044715lf * x * x);
#else
  const double y = x;
#endif
  return x < GEMM_ACTIVATION_ENDS ? -0.0lf : x / (1.0lf + gemm_exp(-y));
}
#endif
#endif
