// Binary search in the numbers of 32 bits from `first` to before `end`, which ascend; `end` if all are below.
#define FIRST_NOT_BELOW(name, number, first, end, result)     \
  {                                                           \
    uint tuff_low = first, tuff_high = end;                   \
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
