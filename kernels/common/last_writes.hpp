// Results on the host that are written at last, when all have been computed: a call that runs out of memory in between
// has changed none of its operands.
#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace tuff {

class LastWrites {
 public:
  // `write` owns what it writes, and allocates nothing.
  template <typename Write>
  void add(Write write) {
    writes_.emplace_back(std::move(write));
  }
  void run() const noexcept {
    for (const std::function<void()>& write : writes_) write();
  }

 private:
  std::vector<std::function<void()>> writes_;
};

}  // namespace tuff
