// Attention of f32 by tensor cores of 16 bits, written in PTX: what a planner chooses (attention_planes.cpp).
#pragma once

#include <cstdint>

#include "kernels/attention/native/attention_wgmma.hpp"
#include "planning/kernel_request.hpp"
#include "tuff/tuff.h"

namespace tuff::attention {

// What the text of the kernel depends on: options of attention_wgmma.cpp, with which it shares what is around the
// multiplications. All tensors are f32.
struct Planes : Wgmma {
  static constexpr uint32_t kPiece = 4;   // elements of 16 bytes, by which tensors are read
  static constexpr uint32_t kPieceV = 8;  // of which head_dim_v is a multiple
  static constexpr uint32_t kMaxHeadDim = 128;
  static constexpr uint32_t kPlanes = 3;  // of 16 bits

  Planes() { type = TUFF_F32; }

  // With more, registers do not suffice.
  uint32_t max_keys() const;
  // Bytes in shared memory, of all planes.
  uint32_t q_bytes() const { return kPlanes * Wgmma::q_bytes(); }
  uint32_t k_bytes() const { return kPlanes * Wgmma::k_bytes(); }
  uint32_t v_bytes() const { return kPlanes * Wgmma::v_bytes(); }
  uint32_t stages() const;
  uint32_t shared_bytes() const;

  KernelRequest request() const;
  static Planes read(const KernelRequest& request);
};

extern const KernelSource planes_source;

}  // namespace tuff::attention
