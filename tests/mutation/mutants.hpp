// Included before each rewritten source (rewrite.py): selects the active mutant at run time.
#pragma once

namespace tuff_mutants {

// Read from the environment when the library is loaded (mutants.cpp).
extern int selected;            // TUFF_MUTANT; 0: none
extern unsigned char* reached;  // [mutant], shared through the file TUFF_MUTANTS_REACHED; null if it is not set

inline bool active(int number) {
  if (reached != nullptr) [[unlikely]] {
    reached[number] = 1;
  }
  return selected == number;
}

#define TUFF_MUTANT_OPERATION(name, operation, other)      \
  template <typename A, typename B>                        \
  inline auto name(int number, const A& a, const B& b) {   \
    return active(number) ? (a other b) : (a operation b); \
  }
TUFF_MUTANT_OPERATION(less, <, <=)
TUFF_MUTANT_OPERATION(less_equal, <=, <)
TUFF_MUTANT_OPERATION(greater, >, >=)
TUFF_MUTANT_OPERATION(greater_equal, >=, >)
TUFF_MUTANT_OPERATION(equal, ==, !=)
TUFF_MUTANT_OPERATION(not_equal, !=, ==)
TUFF_MUTANT_OPERATION(plus, +, -)
TUFF_MUTANT_OPERATION(minus, -, +)
TUFF_MUTANT_OPERATION(times, *, /)
TUFF_MUTANT_OPERATION(divided, /, *)

template <typename T>
inline T next(int number, T literal) {
  return active(number) ? literal + 1 : literal;
}

}  // namespace tuff_mutants
