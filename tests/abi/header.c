/* The header alone, for every language standard that it promises; compiled as C and as C++. */
#include "tuff/tuff.h"

int main(void) { return tuff_version() == TUFF_VERSION ? 0 : 1; }
