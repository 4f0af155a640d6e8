// Describes the submissions in progress, for the error message of a wait that timed out.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "platform/mutex.hpp"

namespace tuff {

class SubmissionNotes {
 public:
  // Notes the open command buffer's first operation and its kernel, which may be empty. The caller holds the context's
  // lock; nothing is allocated.
  void begin(std::string_view operation, std::string_view kernel) noexcept;
  // The command buffer was submitted with this many operations.
  void submitted(uint64_t number, uint32_t operations) noexcept;

  // "3 submissions are in flight, the first with 2 operations, from gemm (gemm_cpu.comp) on": the submissions after
  // `completed`. Needs no lock.
  std::string describe(uint64_t completed) const;

 private:
  // More than a ring holds. If more graph launches than that are in progress, the first is not named.
  static constexpr size_t kKept = 64;
  struct Note {
    uint64_t number = 0;
    uint32_t operations = 0;
    std::array<char, 64> text{};
  };

  std::array<char, 64> open_{};
  mutable Mutex mutex_{LockRank::submission_notes};  // guards what follows
  std::array<Note, kKept> notes_{};
  uint64_t last_ = 0;
};

}  // namespace tuff
