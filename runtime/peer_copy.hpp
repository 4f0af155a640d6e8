// Copies between the buffers of two backends: of two devices, of two contexts on one device, of a device and the host.
//
// What goes between is memory that both backends have as a buffer of their own, filled by the one and emptied by the
// other, half by half, so that both work at once: memory of the device where both are the same device's and
// driver's, by file descriptor; else pages of the host's that both import; else plain memory that is downloaded to and
// uploaded from. It is kept for the next copy from and to the same backends. No lock of a backend is held while the
// other is called.
#pragma once

#include <cstdint>

#include "runtime/compute_backend.hpp"

namespace tuff {

struct PeerEnd {
  const void* owner;  // of the backend: what forget_peer() is told
  ComputeBackend& backend;
  ComputeStream& stream;
  const Buffer& buffer;
  uint64_t offset;
};

// Returns when `from` has been read: after all that its stream was given before. What the stream of `to` is given
// afterwards comes after the copy. The ranges lie in their buffers; the two backends are not the same.
void peer_copy(const PeerEnd& to, const PeerEnd& from, uint64_t bytes);

// Gives back what is kept for copies from or to this one. To be called before its backend goes.
void forget_peer(const void* owner) noexcept;

}  // namespace tuff
