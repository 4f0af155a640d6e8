// Declares the functions of which glibc has vector forms (libmvec), so that loops over them become vector code. glibc's
// own headers declare them only under -ffast-math, which would also change what NaN and infinity mean.
#pragma once

#include <cmath>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 35)
#define TUFF_VECTOR_FORM __attribute__((simd("notinbranch")))
extern "C" {
TUFF_VECTOR_FORM double acos(double) noexcept;
TUFF_VECTOR_FORM double acosh(double) noexcept;
TUFF_VECTOR_FORM double asin(double) noexcept;
TUFF_VECTOR_FORM double asinh(double) noexcept;
TUFF_VECTOR_FORM double atan(double) noexcept;
TUFF_VECTOR_FORM double atanh(double) noexcept;
TUFF_VECTOR_FORM double cbrt(double) noexcept;
TUFF_VECTOR_FORM double cos(double) noexcept;
TUFF_VECTOR_FORM double cosh(double) noexcept;
TUFF_VECTOR_FORM double erf(double) noexcept;
TUFF_VECTOR_FORM double erfc(double) noexcept;
TUFF_VECTOR_FORM double exp(double) noexcept;
TUFF_VECTOR_FORM double exp2(double) noexcept;
TUFF_VECTOR_FORM double expm1(double) noexcept;
TUFF_VECTOR_FORM double log(double) noexcept;
TUFF_VECTOR_FORM double log10(double) noexcept;
TUFF_VECTOR_FORM double log1p(double) noexcept;
TUFF_VECTOR_FORM double log2(double) noexcept;
TUFF_VECTOR_FORM double pow(double, double) noexcept;
TUFF_VECTOR_FORM double sin(double) noexcept;
TUFF_VECTOR_FORM double sinh(double) noexcept;
TUFF_VECTOR_FORM double tan(double) noexcept;
TUFF_VECTOR_FORM double tanh(double) noexcept;
}
#undef TUFF_VECTOR_FORM
#endif
#endif
