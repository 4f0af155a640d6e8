// One product under measurement: its operands on the device, what could compute it, and how long each takes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tool/tune_file.hpp"
#include "tool/tune_products.hpp"
#include "tuff/tuff.hpp"

namespace tool {

// A variant with its slices of k; 0 slices: as the library thinks best. No name: what the library takes by itself.
struct Candidate {
  std::string variant;
  uint32_t slices = 0;
};

class Trial {
 public:
  Trial(tuff::Context& context, const Product& product, const TuneFile& file);

  // "operation", "form" and "sizes": what a table's choice is for.
  const TuneFile::Json& entry() const { return entry_; }
  // The built-in choice first, the rest as it is expected to do.
  const std::vector<std::string>& variants() const { return variants_; }

  // False if the library does not take it.
  bool choose(const Candidate& candidate);
  // Compiles what is chosen, and keeps the device at work: one that waits for a compiler lowers its clocks. The
  // seconds of the last call.
  double warm_up() const;
  // The mean of so many calls as take kSampleSeconds, or of one.
  double sample(double expected_seconds) const;

  static constexpr double kSampleSeconds = 0.01;

 private:
  TuneFile::Json ask() const;
  double elapsed(uint64_t calls) const;

  tuff::Context& context_;
  const TuneFile& file_;
  tuff::Buffer a_, b_, c_;
  tuff_batched_gemm_desc desc_{};
  TuneFile::Json entry_;
  std::vector<std::string> variants_;
};

struct Finding {
  Candidate built_in, best;
  double built_in_seconds = 0, best_seconds = 0;
  uint32_t measured = 0, candidates = 0;
  bool replaced = false;  // the best is faster than the built-in choice beyond the noise
  bool complete = false;  // all was measured that is worth it
  bool skipped = false;   // not even the built-in choice: one call takes too long
};

// Measures until `out_of_time` says so. See docs/tuning.md for how it judges.
Finding find_best(Trial& trial, double longest_call, const std::function<bool()>& out_of_time);

}  // namespace tool
