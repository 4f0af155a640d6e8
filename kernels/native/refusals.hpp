// Kernels that the driver has refused: they are not offered again in this process.
#pragma once

#include <atomic>
#include <cstdint>

#include "planning/recorder.hpp"
#include "planning/status.hpp"

namespace tuff {

// For a table of variants with at most 32 rows.
class Refusals {
 public:
  bool has(uint32_t row) const { return (rows_.load(std::memory_order_relaxed) >> row & 1) != 0; }
  // Records the dispatch. If the driver refuses the kernel, returns false; the first time, that is logged.
  bool dispatch(Recorder& recorder, const KernelRequest& kernel, const Dispatch& dispatch, const char* family,
                uint32_t row);
  // For those that find out otherwise: the driver has refused this kernel.
  void add(uint32_t row, const char* family, const char* variant, const Error& error);

 private:
  std::atomic<uint32_t> rows_{0};
};

}  // namespace tuff
