// Graphs of the host backend: copies of the captured calls, which a launch computes one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "platform/mutex.hpp"
#include "runtime/host/host_command.hpp"

namespace tuff {

class HostGraph final : public ComputeGraph {
 public:
  HostGraph(Mutex& mutex, HostCommands& commands) : mutex_(mutex), commands_(std::move(commands)) {}

  void bind(const Buffer& captured, const Buffer& replacement) override;

  // The functions below need the context's lock. Throws INVALID_ARGUMENT if an operand is mapped.
  void check_launch();
  const HostCommands& commands() const { return commands_; }
  // Keeps what the commands may write that others follow, and puts it back: a launch in which one fails, as for lack of
  // memory, has changed nothing. Saves everything or throws.
  void save();
  void restore() noexcept;
  void forget() noexcept;  // after a launch

 private:
  struct Replacement {
    Buffer from, to;
  };
  bool uses(const Buffer& memory);
  std::vector<Replacement> replaced(const Buffer& captured, const Buffer& replacement) const;
  void apply(const std::vector<Replacement>& replacements);
  void check_conflicts();

  struct Range {
    std::byte* data;
    uint64_t bytes;
  };
  void find_at_risk();

  Mutex& mutex_;  // the context's
  HostCommands commands_;
  std::vector<Replacement> replacements_;
  std::optional<std::vector<Range>> at_risk_;  // see save(); apart and in order; null after bind()
  std::unique_ptr<std::byte[]> saved_;         // their contents, one after the other
  uint64_t saved_bytes_ = 0;                   // its size
};

}  // namespace tuff
