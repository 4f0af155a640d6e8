// What kernels for NVIDIA's Hopper GPUs share: rings of stages in shared memory, whose barriers tell groups of warps
// that a stage has arrived or is free; descriptors of matrices in shared memory; and exchanges between four threads.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/native/ptx.hpp"

namespace tuff::ptx {

constexpr uint32_t kWarp = 32, kGroup = 128;   // threads of a warp, and of a warp group, which wgmma needs
constexpr uint32_t kRowBytes = 128;            // of a matrix in shared memory
constexpr uint32_t kSharedBytes = 227 * 1024;  // that a block can have
constexpr uint32_t kSharedAlignment = 1024;    // of a matrix in shared memory
constexpr uint32_t kBarrierBytes = 8;

// The start of the dynamic shared memory, at a multiple of kSharedAlignment.
U32 aligned_memory(Writer& w);

// The stage in use, and the parity of the number of times that the ring was gone through.
struct Ring {
  U32 stage, parity;
};
Ring make_ring(Writer& w, uint32_t parity);
void advance(const Ring& ring, uint32_t stages);

void make_barrier(const U32& barrier, uint32_t arrivals);
// Waits until the barrier's phase of this parity is complete.
void wait_at(const U32& barrier, const U32& parity);
// `barriers` is the address of the first stage's barrier.
inline void wait_at(const U32& barriers, const Ring& ring) { wait_at(barriers + (ring.stage << 3), ring.parity); }
void arrive_at(const U32& barrier, const Guard& guard = {});

// A matrix in shared memory with rows of 128 bytes, whose eight pieces of 16 bytes are permuted by the row's number
// ("128-byte swizzle"): the low word of its descriptor is its address / 16, and in bits 16 to 29 the distance / 16 of
// blocks of 64 elements if rows run along m or n. The high word is constant.
constexpr uint32_t kMatrixHigh = (1024 / 16) | 1u << 30;  // the distance of eight rows / 16, the kind of permutation
U64 matrix(const U32& low, const U32& high);

// Thread i of four has v[j] of columns 2 * i + 8 * j and the next, as 16-bit pairs. Afterwards it has columns 8 * i to
// 8 * i + 7. `odd` and `high` are bits 0 and 1 of i.
void transpose_in_four(std::array<U32, 4>& v, const Pred& odd, const Pred& high);

}  // namespace tuff::ptx
