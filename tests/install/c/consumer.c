/* Uses an installed Tuff: the header and the library, which must have the same version. */
#include <stdio.h>
#include <tuff/tuff.h>

int main(void) {
  tuff_context_desc desc = {0};
  tuff_context context = TUFF_NULL_HANDLE;
  desc.struct_size = sizeof desc;
  desc.backend = "host";
  if (tuff_context_create(&desc, &context) != TUFF_OK || tuff_context_destroy(context) != TUFF_OK) return 1;
  printf("tuff %u.%u.%u\n", tuff_version() >> 16, (tuff_version() >> 8) & 0xff, tuff_version() & 0xff);
  return tuff_version() == TUFF_VERSION ? 0 : 1;
}
