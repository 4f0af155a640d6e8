/* Linked into every program that tests a device: on a Vulkan device that is the processor, its kernels are tested, not
 * the plug-in's functions, unless TUFF_CPU_PLUGIN asks for these. */
#include <stdlib.h>

__attribute__((constructor)) static void test_kernels(void) { setenv("TUFF_CPU_PLUGIN", "off", 0); }
