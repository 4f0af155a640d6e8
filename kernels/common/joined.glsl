// A number of 64 bits in the push block, as `name` and `name##_high`, of which only wide kernels read the upper half.
#if TUFF_WIDE
#define JOINED(name) (uint64_t(push.name##_high) << 32 | uint64_t(push.name))
#else
#define JOINED(name) push.name
#endif
