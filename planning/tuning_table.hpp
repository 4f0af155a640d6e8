// Tuned choices: which kernel variant was measured to be the fastest on a device, for an operation and approximate
// operand sizes. `tuff tune` writes them as JSON (docs/tuning.md describes the format); planners look them up.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tuff/tuff.h"

namespace tuff {

// Buckets sizes by half octaves: 2 * log2(size), rounded. A power of two is in the middle of its bucket; the sizes up
// to 4 have a bucket each.
uint8_t size_bucket(uint64_t size);

// What a choice applies to: an operation and everything that has to match exactly, as words ("gemm nn f32 f32 f32"),
// and sizes, of which only the buckets have to match. Its size is fixed, so that a look-up allocates nothing.
class TuningKey {
 public:
  static constexpr size_t kMaxText = 62, kMaxSizes = 8;

  explicit TuningKey(std::string_view operation) { append(operation); }

  TuningKey& word(std::string_view text) {
    append(" ");
    return append(text);
  }
  TuningKey& size(uint64_t value) {
    assert(sizes_ < kMaxSizes);
    buckets_[sizes_++] = static_cast<uint8_t>(size_bucket(value) + 1);  // 0 means that there is no such size
    return *this;
  }
  std::string_view text() const { return {text_.data(), length_}; }
  bool operator==(const TuningKey&) const noexcept = default;
  size_t hash() const noexcept;

 private:
  TuningKey& append(std::string_view text) {
    assert(length_ + text.size() <= kMaxText);
    text.copy(text_.data() + length_, text.size());
    length_ = static_cast<uint8_t>(length_ + text.size());
    return *this;
  }

  std::array<char, kMaxText> text_{};
  std::array<uint8_t, kMaxSizes> buckets_{};
  uint8_t length_ = 0, sizes_ = 0;
};

struct TunedChoice {
  std::string variant;
  uint32_t slices = 0;            // of split-K; 0: the planner decides
  mutable bool reported = false;  // the log already says that it does not fit; guarded by the context's lock
};

// What a table was measured on. Another device, driver or library version may have other best choices.
struct TuningDevice {
  std::string uuid, name, driver;
  uint32_t driver_version = 0;
  std::string library;  // "0.2.0"
};
TuningDevice tuning_device(const tuff_device_properties& properties, uint32_t library_version);

// The message says what is wrong with a table.
class TuningError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Parses a table and checks its structure: version, devices, and each device's identity. Throws TuningError.
nlohmann::json parse_tuning(std::string_view text);
// Whether an element of "devices" was measured on this device.
bool is_for(const nlohmann::json& section, const TuningDevice& device);
// The key of an element of a section's "choices"; `place` names that element in errors.
TuningKey tuning_key(const nlohmann::json& choice, const std::string& place);

class TuningTable {
 public:
  static constexpr uint64_t kMaxBytes = 4u << 20, kMaxSlices = 256;
  static constexpr uint32_t kVersion = 1;

  TuningTable() = default;
  // The text's choices for this device. Throws TuningError if the text is not a valid table or has no entry for the
  // device.
  TuningTable(std::string_view text, const TuningDevice& device);

  bool empty() const noexcept { return choices_.empty(); }
  size_t size() const noexcept { return choices_.size(); }
  const TunedChoice* find(const TuningKey& key) const noexcept;

 private:
  void read(const nlohmann::json& choices, const std::string& place);

  struct Hash {
    size_t operator()(const TuningKey& key) const noexcept { return key.hash(); }
  };
  std::unordered_map<TuningKey, TunedChoice, Hash> choices_;
};

}  // namespace tuff
