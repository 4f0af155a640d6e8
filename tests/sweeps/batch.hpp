// Runs cases on the host backend and on the Vulkan device, and compares all memory.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sweeps/cases.hpp"
#include "sweeps/limits.hpp"

namespace tuff_sweep {

// What has been tried; of each operand and each size of a function, which offsets and values.
struct Coverage {
  struct Bits {
    uint64_t tried = 0, possible = 0;
  };
  std::map<std::string, Bits> offsets, sizes;
  // Of GEMM, those that the variant computed or that are no work.
  std::vector<bool> triples = std::vector<bool>(kTriples);
  // Tried and possible, over all of them.
  static std::pair<uint64_t, uint64_t> count(const std::map<std::string, Bits>& all);
};

struct Tally {
  uint64_t cases = 0;     // compared
  uint64_t chosen = 0;    // of them, computed by the variant
  uint64_t nothing = 0;   // of them, without any dispatch
  uint64_t unjudged = 0;  // of them, with results that no bound is known for; the memory around them is compared
  uint64_t too_large = 0;
  uint64_t refused = 0;  // by a limited device
  // For each function: cases with a dispatch, and of them those whose messages told the kind of kernels.
  struct Messages {
    uint64_t dispatched = 0, told_kind = 0;
  };
  std::map<std::string, Messages> messages;
};

class Runner {
 public:
  // `host`: both sides are the host backend, which shows whether calls are valid.
  explicit Runner(const Forced& forced, bool host = false);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Runs these cases of the request, as many at a time as memory holds, and compares after each time. Returns what is
  // wrong, or an empty text. A variant that the device cannot run sets `absent`.
  std::string run(const Cases& cases, const Cases::Request& request, std::span<const uint64_t> turns);

  // From now on the device has the limits that this seed draws. It may then refuse calls. The host backend has none.
  void limit(uint64_t device);
  uint64_t kernels() const;
  // Whether the variant needs cooperative matrices, which this device lacks. GEMM and convolution then compute every
  // call by other variants.
  bool lacks_matrices() const;
  Tally tally;
  Coverage coverage;
  bool absent = false;
  bool verbose = false;
  // No further case begins after this.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();

 private:
  static constexpr uint64_t kBytes = 32 << 20;
  struct Placed;
  struct Side;

  bool place(Placed& placed);
  std::string run_placed(std::vector<Placed>& all);
  std::string call(Placed& placed);
  std::string compare(std::vector<Placed>& all);
  void note(const Placed& placed);
  std::string text_of(const Placed& placed) const;
  static void hear(void* user, int32_t level, const char* message);

  const Forced& forced_;
  const bool host_;
  std::optional<LimitedDevice> limited_;  // of a context that ends after it
  std::array<uint64_t, 2> contexts_{}, memories_{};
  std::vector<uint8_t> mirror_, written_;
  std::array<std::vector<uint8_t>, 2> read_;
  uint64_t used_ = 0;
  unsigned subgroup_ = 1;
  bool matrices_ = false;
  // What the messages of the current call said.
  bool told_ = false, told_kind_ = false, dispatched_ = false;
};

}  // namespace tuff_sweep
