// Formulas of functions of complex numbers.
//
// Kahan, "Branch cuts for complex elementary functions, or much ado about nothing's sign bit" (1987), for the branches
// and the inverse functions; Baudin and Smith, "A robust complex division in Scilab" (2012); infinities, NaNs and signs
// of zeros are those of C99, Annex G. Errors: docs/expressions.md.
//
// `one`, `large`, `root` = sqrt(large), `small` = 1 / large and `down` = 1 / root are powers of two of the type of the
// parts: large is 1/8 of the largest one.
#include "kernels/expression/complex_functions.hpp"

#include <algorithm>
#include <iterator>

namespace tuff::expression {
namespace {

struct Row {
  std::string_view name, formula;
};

constexpr Row kRows[] = {
    {"real", "a"},
    {"imag", "b"},
    {"conj", "complex(a, -b)"},
    {"arg", "atan2(b, a)"},
    {"add", "complex(a + c, b + d)"},
    {"sub", "complex(a - c, b - d)"},
    {"neg", "complex(-a, -b)"},
    {"round", "complex(round(a), round(b))"},
    {"mul", "complex(a * c - b * d, a * d + b * c)"},
    {"square", "complex((a - b) * (a + b), 2 * a * b)"},
    // The numerator and the denominator are brought away from overflow and underflow first. An infinite denominator
    // becomes its direction, and the numerator 0.
    {"div",
     "infinite = isinf(c) || isinf(d);"
     "c1 = where(infinite, copysign(where(isinf(c), 1, 0), c), c);"
     "d1 = where(infinite, copysign(where(isinf(d), 1, 0), d), d);"
     "over = max(abs(a), abs(b)); under = max(abs(c1), abs(d1));"
     "k = where(over >= large, 0.125, where(over < 16 * small, large, one));"
     "l = where(under >= large, 0.125, where(under < 16 * small, large, one));"
     "a1 = where(infinite, 0 * a, a * k); b1 = where(infinite, 0 * b, b * k); c2 = c1 * l; d2 = d1 * l;"
     "first = abs(c2) >= abs(d2); p = where(first, c2, d2); q = where(first, d2, c2);"
     "r = q / p; s = p + q * r;"
     "ar = where(r == 0, q * (a1 / p), a1 * r); br = where(r == 0, q * (b1 / p), b1 * r);"
     "x = where(first, a1 + br, ar + b1) / s; y = where(first, b1 - ar, br - a1) / s;"
     "where(under == 0, complex(a / c, b / c), complex(x * (l / k), y * (l / k)))"},
    {"reciprocal", "complex(one, 0) / z"},
    {"eq", "a == c && b == d"},
    {"ne", "a != c || b != d"},
    {"isnan", "isnan(a) || isnan(b)"},
    {"isinf", "isinf(a) || isinf(b)"},
    {"isfinite", "isfinite(a) && isfinite(b)"},
    {"abs", "hypot(a, b)"},
    // z / |z|, of halves, whose magnitude does not overflow.
    {"sign",
     "k = where(max(abs(a), abs(b)) < small, large, 0.5); x = a * k; y = b * k; h = hypot(x, y);"
     "where(h == 0, complex(h, h), complex(x / h, y / h))"},
    {"sqrt",
     "m = max(abs(a), abs(b));"
     "k = where(m >= large, 0.0625, where(m < small, large, one));"
     "g = where(m >= large, 4, where(m < small, down, one));"
     "x = a * k; y = abs(b) * k;"
     "t = sqrt(0.5 * (abs(x) + hypot(x, y)));"
     "o = where(t == 0, t, y / t * 0.5);"
     "right = x >= 0;"
     "where(isinf(b), complex(abs(b), b), complex(where(right, t, o) * g, copysign(where(right, o, t) * g, b)))"},
    // e^a in two factors, so that it overflows or vanishes only where the product does.
    {"exp",
     "e = exp(0.5 * a); wild = isinf(a) && !isfinite(b);"
     "where(b == 0, complex(exp(a), b), where(wild, complex(where(a < 0, 0, a), where(a < 0, 0, b - b)),"
     " complex(e * cos(b) * e, e * sin(b) * e)))"},
    // Near |z| = 1 by (|z|^2 - 1) without cancellation in the larger part.
    {"log",
     "m = max(abs(a), abs(b)); n = min(abs(a), abs(b));"
     "k = where(m >= large, 0.0625, where(m < small, large, one));"
     "h = hypot(a * k, b * k);"
     "x = where(h > 0.5 && h < 2 && k == 1, 0.5 * log1p((m - 1) * (m + 1) + n * n), log(h) - log(k));"
     "complex(x, atan2(b, a))"},
    {"log2", "w1 = log(z); complex(real(w1) * 1.4426950408889634, imag(w1) * 1.4426950408889634)"},
    {"log10", "w1 = log(z); complex(real(w1) * 0.4342944819032518, imag(w1) * 0.4342944819032518)"},
    {"log1p",
     "w1 = log(complex(1 + a, b));"
     "where(max(abs(a), abs(b)) < 0.5, complex(0.5 * log1p(a * (2 + a) + b * b), atan2(b, 1 + a)), w1)"},
    {"expm1",
     "s = sin(0.5 * b); w1 = exp(z);"
     "where(abs(a) < 1 && isfinite(b), complex(where(a == 0, 0, expm1(a) * cos(b)) - 2 * s * s, exp(a) * sin(b)),"
     " complex(real(w1) - 1, imag(w1)))"},
    {"sinh",
     "x = sinh(a) * cos(b); y = cosh(a) * sin(b);"
     "complex(where(a == 0 || (isinf(a) && !isfinite(b)), a, x), where(b == 0, b, y))"},
    {"cosh",
     "x = cosh(a) * cos(b); y = sinh(a) * sin(b);"
     "complex(where(isinf(a) && !isfinite(b), abs(a), x),"
     " where((a == 0 && !isfinite(b)) || (b == 0 && !isfinite(a)),"
     " copysign(where(a == 0, a, b), where(signbit(a), -b, b)), y))"},
    // Kahan's: with t = tan b and s = sinh a.
    {"tanh",
     "t = tan(b); s = sinh(a); f = 1 + t * t; r = sqrt(1 + s * s); q = 1 + f * s * s; e = exp(-2 * abs(a));"
     "far = abs(a) > 20;"
     "x = where(far, copysign(one, a) + where(isinf(a), 0, b - b), f * r * s / q);"
     "y = where(far, 4 * sin(b) * cos(b) * e, t / q);"
     "complex(where(a == 0, a, x),"
     " where(b == 0, b, where(isinf(a), copysign(0 * e, b), y)))"},
    {"sin", "w1 = sinh(complex(-b, a)); complex(imag(w1), -real(w1))"},
    {"cos", "cosh(complex(-b, a))"},
    {"tan", "w1 = tanh(complex(-b, a)); complex(imag(w1), -real(w1))"},
    // Beyond `far` these are logarithms of 2 z, to all digits.
    {"asin",
     "u = sqrt(complex(1 - a, -b)); v = sqrt(complex(1 + a, b)); g = log(complex(abs(a), abs(b)));"
     "far = isinf(a) || isinf(b) || max(abs(a), abs(b)) > large;"
     "x = atan2(a, max(real(u) * real(v) - imag(u) * imag(v), 0));"
     "y = asinh(real(v) * imag(u) - imag(v) * real(u));"
     "complex(where(a == 0, a, where(far, atan2(a, abs(b)), x)),"
     " where(far, copysign(real(g) + 0.6931471805599453, b), -y))"},
    {"acos",
     "u = sqrt(complex(1 - a, -b)); v = sqrt(complex(1 + a, b)); g = log(complex(abs(a), abs(b)));"
     "far = isinf(a) || isinf(b) || max(abs(a), abs(b)) > large;"
     "x = 2 * atan2(real(u), real(v)); y = asinh(real(v) * imag(u) - imag(v) * real(u));"
     "complex(where(a == 0 && isnan(b), 1.5707963267948966, where(far, atan2(abs(b), a), x)),"
     " where(far, copysign(real(g) + 0.6931471805599453, -b), y))"},
    {"asinh", "w1 = asin(complex(-b, a)); complex(imag(w1), -real(w1))"},
    // i acos or -i acos, whichever has a real part of 0 or more.
    {"acosh", "w1 = acos(z); complex(abs(imag(w1)), where(isnan(imag(w1)), real(w1), copysign(real(w1), b)))"},
    {"atanh",
     "s = abs(a); n = (1 - s) * (1 - s) + b * b;"
     "x = where(s == 1 && abs(b) < down, 0.34657359027997264 - 0.5 * log(abs(b)), 0.25 * log1p(4 * s / n));"
     "y = 0.5 * atan2(2 * b, (1 - s) * (1 + s) - b * b);"
     "far = isinf(a) || isinf(b) || max(s, abs(b)) > root; unknown = isnan(a) && !isinf(b);"
     "complex(copysign(where(s == 0, s, where(far, where(unknown, a, 0), x)), a),"
     " where(far, where(isnan(b), b, copysign(1.5707963267948966, b)), y))"},
    {"atan", "w1 = atanh(complex(-b, a)); complex(imag(w1), -real(w1))"},
    {"pow",
     "w1 = exp(w * log(z));"
     "where(c == 0 && d == 0, complex(0 * c + 1, 0 * c), where(a == 0 && b == 0 && c > 0, complex(0 * c, 0 * c), w1))"},
};

}  // namespace

std::string_view complex_formula(std::string_view function) {
  const auto* found =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& row) { return row.name == function; });
  return found == std::end(kRows) ? std::string_view() : found->formula;
}

}  // namespace tuff::expression
