// Calls of a stream that are recorded whole or not at all.
//
// A call may need several commands. If the second failed, for lack of memory or because its kernel cannot be built, the
// first would have changed operands already; and a call in place cannot be repeated then. So a call's first command is
// held back until the call ends, which most do then, or until the second comes. If a call with the same two commands
// has been recorded before, what this one needs is there. Otherwise it is rehearsed: the call's other commands record
// nothing, and only make what they need. Then all of it is recorded.
#pragma once

#include <array>
#include <cstdint>

#include "planning/log.hpp"
#include "runtime/vulkan/bound_command.hpp"

namespace tuff {

class WholeCalls {
 public:
  enum class Pass : uint8_t {
    none,       // commands are no part of a call: each is recorded as it comes
    first,      // of a call without commands so far
    held,       // the first command is held back
    rehearsal,  // nothing is recorded
    recording,  // everything is there
  };
  Pass pass() const noexcept { return pass_; }
  // Whether the last command was not recorded.
  bool withholds() const noexcept { return pass_ == Pass::held || pass_ == Pass::rehearsal; }
  void begin() noexcept {
    pass_ = Pass::first;
    key_ = 0;
  }
  void hold() noexcept { pass_ = Pass::held; }
  void rehearse() noexcept { pass_ = Pass::rehearsal; }
  void record() noexcept { pass_ = Pass::recording; }
  // After a call that was recorded.
  void learn() noexcept {
    if (key_ != 0) known_[key_ % known_.size()] = key_;
  }
  void end() noexcept { pass_ = Pass::none; }
  // What is held back was to be part of the submission that is made now.
  void submitting() noexcept {
    if (pass_ == Pass::held) pass_ = Pass::rehearsal;
  }

  // Whether a call with these first two commands was recorded since something that such calls need was given up, of
  // which `given_up` counts a part.
  bool knows(uint64_t first, uint64_t second, uint64_t given_up) noexcept {
    if (given_up != given_up_) forget();
    given_up_ = given_up;
    key_ = mixed(first, second) | 1;
    return known_[key_ % known_.size()] == key_;
  }
  void forget() noexcept { known_ = {}; }

  // What tells a command from others: all but where in memory its operands are.
  static uint64_t signature(const BoundDispatch& dispatch) noexcept;
  static uint64_t signature(const BoundCopy& copy) noexcept;
  static uint64_t signature(const BoundFill& fill) noexcept { return mixed(mixed(3, fill.bytes), fill.offset % 256); }

  // Commands for something else, as long as it exists: a measurement that the call needs first.
  class Aside {
   public:
    explicit Aside(WholeCalls& calls) noexcept : calls_(calls), pass_(calls.pass_) { calls_.pass_ = Pass::none; }
    ~Aside() { calls_.pass_ = pass_ == Pass::held ? Pass::rehearsal : pass_; }
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;

   private:
    WholeCalls& calls_;
    Pass pass_;
  };

 private:
  static constexpr uint64_t mixed(uint64_t sum, uint64_t number) noexcept {
    sum = (sum ^ number) * 0x9e3779b97f4a7c15u;
    return sum ^ sum >> 29;
  }

  Pass pass_ = Pass::none;
  uint64_t key_ = 0;  // of the call's first two commands; 0: it has fewer so far
  uint64_t given_up_ = 0;
  std::array<uint64_t, 256> known_{};
};

}  // namespace tuff
