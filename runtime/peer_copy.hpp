// Copies between buffers of two backends: of two devices, of two contexts on one device, or of a device and the host.
//
// The data passes through intermediate memory of which each backend has a buffer. One backend fills it and the other
// empties it, in alternating halves, so that both work at once. It is device memory shared by file descriptor if both
// backends use the same device and driver, otherwise host pages that both import, otherwise plain memory that is
// downloaded to and uploaded from. It is kept for the next copy between the same backends. No backend's lock is held
// while the other is called.
#pragma once

#include <cstdint>

#include "runtime/compute_backend.hpp"

namespace tuff {

struct PeerEnd {
  const void* owner;  // identifies the backend to forget_peer()
  ComputeBackend& backend;
  ComputeStream& stream;
  const Buffer& buffer;
  uint64_t offset;
};

// Returns when `from` has been read, which happens after all earlier work of its stream. Later work on the stream of
// `to` runs after the copy. The ranges must be within their buffers, and the backends must differ.
void peer_copy(const PeerEnd& to, const PeerEnd& from, uint64_t bytes);

// Frees what is kept for copies from or to this owner. Call it before its backend is destroyed.
void forget_peer(const void* owner) noexcept;

}  // namespace tuff
