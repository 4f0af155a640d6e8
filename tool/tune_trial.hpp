// One GEMM under measurement: its operands on the device, the variants that can compute it, and how long each takes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tool/tune_file.hpp"
#include "tool/tune_products.hpp"
#include "tuff/tuff.hpp"

namespace tool {

// A variant and its number of split-K parts; 0: the library decides. An empty name: the library's own choice.
struct Candidate {
  std::string variant;
  uint32_t slices = 0;
};

class Trial {
 public:
  Trial(tuff::Context& context, const Product& product, const TuneFile& file);

  // "operation", "form" and "sizes": the key of a table's choice.
  const TuneFile::Json& entry() const { return entry_; }
  // The built-in choice first, then the others in order of expected speed.
  const std::vector<std::string>& variants() const { return variants_; }

  // Returns false if the library does not accept it.
  bool choose(const Candidate& candidate);
  // Compiles the chosen candidate and keeps the device busy, since a device that waits for a compiler lowers its
  // clocks. Returns the seconds of the last call.
  double warm_up() const;
  // The mean over as many calls as take kSampleSeconds, at least one.
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
  bool replaced = false;  // the best is faster than the built-in choice by more than the noise
  bool complete = false;  // everything worth measuring was measured
  bool skipped = false;   // one call of the built-in choice already takes too long
};

// Measures until `out_of_time` returns true. docs/tuning.md explains how candidates are judged.
Finding find_best(Trial& trial, double longest_call, const std::function<bool()>& out_of_time);

}  // namespace tool
