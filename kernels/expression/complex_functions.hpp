// What functions of complex numbers are, as formulas over real numbers.
#pragma once

#include <string_view>

namespace tuff::expression {

// The formula of a function by its name, or empty. It has z = a + b i, the first argument, and w = c + d i, the second;
// numbers of the type of the parts, which complex_functions.cpp explains; and its last statement is the value.
std::string_view complex_formula(std::string_view function);

}  // namespace tuff::expression
