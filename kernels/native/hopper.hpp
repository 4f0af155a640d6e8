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
// Those of stages, which so many warps fill and so many others empty.
void make_stage_barriers(const U32& full, const U32& empty, uint32_t stages, uint32_t fill, uint32_t leave);
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

// The address of a piece in a row of such a matrix at `base`.
U32 piece_at(const U32& base, const U32& row, const U32& piece);

// Makes what this warp's threads have written to shared memory visible to wgmma. One of them tells the stage's barrier.
void arrive_with_writes(const U32& barriers, const U32& stage, const Pred& elected);

// The stages that a group's threads fill by cp.async, with so many steps in flight while they start another one. The
// threads that wrote a stage make that visible to wgmma, and one of each warp tells: if each thread's copies told by
// themselves (cp.async.mbarrier.arrive) and the multiplying groups had the fence, a step would take a third longer.
class CopiedStages {
 public:
  // `full` is the address of the first stage's barrier.
  CopiedStages(const U32& thread, const U32& full, uint32_t stages, uint32_t in_flight);
  const Ring& ring() const { return ring_; }
  // After the copies to the ring's stage, and after the last ones.
  void started();
  void finish();

 private:
  // Tells that the stage filled so many steps ago has arrived.
  void arrived(uint32_t ago);

  uint32_t stages_, in_flight_;
  U32 full_;
  Ring ring_;
  Pred elected_;
  U32 issued_;
};

// sums += a * b by a warp, of 16 rows, 8 columns and 16 terms of f16 or bf16 (mma.sync, m16n8k16).
void multiply_16x8(int32_t dtype, const F32* sums, const std::array<U32, 4>& a, const U32& b0, const U32& b1);

// The sum of numbers in shared memory that are so many bytes apart, such as those of warps; neighbours are added first.
F32 sum_of_parts(const U32& at, uint32_t offset, uint32_t count, uint32_t distance);

// The value of the lane whose number differs by `distance` in its one bit.
template <Type type>
Value<type> from_neighbour(const Value<type>& x, uint32_t distance) {
  const Value<type> got = x.writer->template make<type>();
  x.writer->emit("shfl.sync.bfly.b32 {}, {}, {}, 31, 0xffffffff;", got.text, x.text, distance);
  return got;
}

// The block's first group loads, the others compute. The hardware moves registers from the former to the latter.
template <typename Load, typename Compute>
void divide_work(const U32& thread, uint32_t loader_registers, uint32_t computing_registers, const Load& load,
                 const Compute& compute, uint32_t loaders = kGroup) {
  Writer& w = *thread.writer;
  const Label computing = w.label(), end = w.label();
  w.jump_if(thread >= loaders, computing);
  w.emit("setmaxnreg.dec.sync.aligned.u32 {};", loader_registers);
  load();
  w.jump(end);
  w.place(computing);
  w.emit("setmaxnreg.inc.sync.aligned.u32 {};", computing_registers);
  compute();
  w.place(end);
}

// Thread i of four has v[j] of columns 2 * i + 8 * j and the next, as 16-bit pairs. Afterwards it has columns 8 * i to
// 8 * i + 7. `odd` and `high` are bits 0 and 1 of i.
void transpose_in_four(std::array<U32, 4>& v, const Pred& odd, const Pred& high);

}  // namespace tuff::ptx
