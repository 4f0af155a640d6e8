#include "runtime/peer_copy.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <future>
#include <new>
#include <optional>
#include <system_error>
#include <vector>

#include "planning/log.hpp"
#include "planning/status.hpp"
#include "platform/mutex.hpp"
#include "platform/never_destroyed.hpp"
#include "platform/platform.hpp"

namespace tuff {
namespace {

// Up to this size, synchronising both sides costs more than the detour through plain memory, which needs one wait.
constexpr uint64_t kSmall = 256 << 10;
// Sizes of the halves of shared memory. Waiting for a GPU takes as long as copying tens of megabytes within it, or one
// megabyte over a bus.
constexpr uint64_t kMinHalf = 4 << 20, kMaxHalfOnDevice = 32 << 20, kMaxHalfOnHost = 16 << 20;
constexpr uint64_t kPageAlignment = 64 << 10;  // the largest alignment that a device may require of imported memory

enum class Way { device, host };

// TUFF_PEER_VARIANT, for tests, allows only one of device, host and download.
bool allowed(std::string_view way) {
  const auto& forced = platform::environment_once<"TUFF_PEER_VARIANT">();
  const bool known = forced && (*forced == "device" || *forced == "host" || *forced == "download");
  return !known || *forced == way;
}

// The same memory as a buffer of each backend.
struct SharedPiece {
  Way way = Way::host;
  uint64_t half = 0;
  Buffer of_source, of_target;
};

bool same_device(const ComputeBackend& a, const ComputeBackend& b) {
  tuff_device_properties of_a{}, of_b{};
  a.capabilities(of_a);
  b.capabilities(of_b);
  return std::memcmp(of_a.uuid, of_b.uuid, sizeof of_a.uuid) == 0 &&
         std::memcmp(of_a.driver_uuid, of_b.driver_uuid, sizeof of_a.driver_uuid) == 0;
}

bool both_support(const char* feature, const PeerEnd& to, const PeerEnd& from) {
  return to.backend.supports(feature) && from.backend.supports(feature);
}

uint64_t half_for(uint64_t bytes, uint64_t most) {
  return std::clamp(std::bit_ceil(std::min(bytes, 2 * most) / 2), kMinHalf, most);
}

SharedPiece share_device_memory(const PeerEnd& to, const PeerEnd& from, uint64_t bytes) {
  SharedPiece piece;
  piece.way = Way::device;
  piece.half = half_for(bytes, kMaxHalfOnDevice);
  AllocOptions options;
  options.bytes = 2 * piece.half, options.exportable = true, options.zeroed = false;
  options.name = "peer copies";
  piece.of_source = from.backend.alloc(options);
  tuff_memory_fd info{};
  from.backend.export_fd(piece.of_source, info);
  struct Close {
    int descriptor;
    ~Close() { platform::close_descriptor(descriptor); }
  } const close{info.fd};
  piece.of_target = to.backend.import_fd(info);
  return piece;
}

SharedPiece share_host_memory(const PeerEnd& to, const PeerEnd& from, uint64_t bytes) {
  SharedPiece piece;
  piece.way = Way::host;
  piece.half = half_for(bytes, kMaxHalfOnHost);
  const std::shared_ptr<void> pages(std::aligned_alloc(kPageAlignment, 2 * piece.half), std::free);
  if (pages == nullptr) throw std::bad_alloc();
  piece.of_source = from.backend.import_host(pages.get(), 2 * piece.half, pages);
  piece.of_target = to.backend.import_host(pages.get(), 2 * piece.half, pages);
  return piece;
}

std::optional<SharedPiece> share(Way way, const PeerEnd& to, const PeerEnd& from, uint64_t bytes) {
  try {
    return way == Way::device ? share_device_memory(to, from, bytes) : share_host_memory(to, from, bytes);
  } catch (const Error& error) {
    if (error.code() == TUFF_ERROR_DEVICE_LOST) throw;
    log(TUFF_LOG_DEBUG, "peer copy: no memory that both devices can use: {}", error.what());
    return std::nullopt;
  }
}

// The pieces kept between copies. A copy takes its piece out, so that concurrent copies in one direction have one each.
class Shelf {
 public:
  std::optional<SharedPiece> take(const PeerEnd& to, const PeerEnd& from, uint64_t bytes) {
    std::optional<SharedPiece> piece;
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::find_if(kept_.begin(), kept_.end(),
                                      [&](const Kept& kept) { return kept.to == to.owner && kept.from == from.owner; });
      if (found == kept_.end()) return std::nullopt;
      piece = std::move(found->piece);
      kept_.erase(found);
    }
    const uint64_t wanted = half_for(bytes, piece->way == Way::device ? kMaxHalfOnDevice : kMaxHalfOnHost);
    if (piece->half < wanted) piece.reset();
    return piece;
  }

  // The piece is dropped if there is no memory to keep it; the copy is finished already.
  void put(const PeerEnd& to, const PeerEnd& from, SharedPiece piece) noexcept {
    const std::lock_guard lock(mutex_);
    const bool there = std::any_of(kept_.begin(), kept_.end(),
                                   [&](const Kept& kept) { return kept.to == to.owner && kept.from == from.owner; });
    if (there) return;
    try {
      kept_.push_back({to.owner, from.owner, std::move(piece)});
    } catch (const std::bad_alloc&) {
    }
  }

  void forget(const void* owner) noexcept {
    const std::lock_guard lock(mutex_);
    std::erase_if(kept_, [owner](const Kept& kept) { return kept.to == owner || kept.from == owner; });
  }

 private:
  struct Kept {
    const void *to, *from;
    SharedPiece piece;
  };
  Mutex mutex_{LockRank::peer_copies};
  std::vector<Kept> kept_;
};

Shelf& shelf() {
  static NeverDestroyed<Shelf> shelf;  // never destroyed: devices do not survive process exit
  return *shelf;
}

// Runs work on another thread, or right here if no thread can be started.
template <typename Work>
std::future<void> start(Work work) {
  try {
    const platform::SignalsBlocked blocked;  // as in CopyTeam
    return std::async(std::launch::async, work);
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
  work();
  return {};
}

// fetch(half, done, part) fills a half with `part` bytes from offset `done`; deliver(half, done, part) empties it. Both
// return when they are finished. The next half is fetched while one is delivered.
template <typename Fetch, typename Deliver>
void by_halves(uint64_t bytes, uint64_t half_bytes, Fetch fetch, Deliver deliver) {
  std::future<void> delivery;  // its destructor waits too
  for (uint64_t done = 0, half = 0; done < bytes; done += half_bytes, half ^= 1) {
    const uint64_t part = std::min(half_bytes, bytes - done);
    fetch(half, done, part);
    if (delivery.valid()) delivery.get();
    if (done + part == bytes) {
      deliver(half, done, part);
    } else {
      delivery = start([=] { deliver(half, done, part); });
    }
  }
}

void copy_through(const SharedPiece& piece, const PeerEnd& to, const PeerEnd& from, uint64_t bytes) {
  by_halves(
      bytes, piece.half,
      [&](uint64_t half, uint64_t done, uint64_t part) {
        from.stream.copy_dtod(piece.of_source, half * piece.half, from.buffer, from.offset + done, part);
        if (piece.way == Way::device) {
          from.stream.synchronize();
        } else {
          from.backend.map(piece.of_source);  // waits, and makes the writes visible outside the device
        }
      },
      [&](uint64_t half, uint64_t done, uint64_t part) {
        to.stream.copy_dtod(to.buffer, to.offset + done, piece.of_target, half * piece.half, part);
        to.stream.synchronize();
      });
}

void copy_through_host(const PeerEnd& to, const PeerEnd& from, uint64_t bytes) {
  const uint64_t half_bytes = std::min(bytes, half_for(bytes, kMaxHalfOnHost));
  std::vector<std::byte> halves[2];
  by_halves(
      bytes, half_bytes,
      [&](uint64_t half, uint64_t done, uint64_t part) {
        halves[half].resize(part);
        from.stream.copy_dtoh(halves[half].data(), from.buffer, from.offset + done, part);
      },
      [&](uint64_t half, uint64_t done, uint64_t part) {
        to.stream.copy_htod(to.buffer, to.offset + done, halves[half].data(), part);
      });
}

}  // namespace

void peer_copy(const PeerEnd& to, const PeerEnd& from, uint64_t bytes) {
  if (bytes <= kSmall) return copy_through_host(to, from, bytes);
  auto piece = shelf().take(to, from, bytes);
  if (!piece && allowed("device") && both_support("memory_fd", to, from) && same_device(to.backend, from.backend)) {
    piece = share(Way::device, to, from, bytes);
  }
  if (!piece && allowed("host") && both_support("import_host", to, from)) piece = share(Way::host, to, from, bytes);
  log(TUFF_LOG_DEBUG, "peer copy: {} bytes, {}", bytes,
      !piece                      ? "downloaded and uploaded"
      : piece->way == Way::device ? "through device memory"
                                  : "through host memory that both devices use");
  if (!piece) return copy_through_host(to, from, bytes);
  copy_through(*piece, to, from, bytes);
  shelf().put(to, from, std::move(*piece));
}

void forget_peer(const void* owner) noexcept { shelf().forget(owner); }

}  // namespace tuff
