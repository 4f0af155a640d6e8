// Binary search in ascending numbers of 32 bits.
#define FIRST_NOT_BELOW(name, number, count, result)          \
  {                                                           \
    uint tuff_low = 0u, tuff_high = count;                    \
    while (tuff_low < tuff_high) {                            \
      const uint tuff_middle = (tuff_low + tuff_high) / 2u;   \
      if (TUFF_AT(name, TUFF_INDEX(tuff_middle)) < (number)) { \
        tuff_low = tuff_middle + 1u;                          \
      } else {                                                \
        tuff_high = tuff_middle;                              \
      }                                                       \
    }                                                         \
    result = tuff_low;                                        \
  }
