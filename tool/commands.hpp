// The subcommands of tuff. Each prints its result and returns the process's exit code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tuff/tuff.hpp"

namespace tool {

struct InfoOptions {
  std::string device;
  bool json = false;
};

struct SelftestOptions {
  std::string device;  // empty: every device
  std::string filter;  // a part of an operation's name
  uint64_t seed = 1;
  bool json = false;
  bool verbose = false;
};

struct BenchOptions {
  std::string device;
  std::string backend;
  std::string filter;
  std::string trace;     // a file; empty: none
  double seconds = 0.2;  // for each measurement
  bool json = false;
};

struct TuneOptions {
  std::string device;
  std::string types;     // "f32,f16"; empty: what the device is good at
  std::string shapes;    // a file; empty: the list that is built in
  std::string output;    // empty: where the library looks
  double budget = 60;    // seconds
  bool again = false;    // what is done already too
  bool dry_run = false;  // measures, and writes nothing
  bool list = false;     // measures nothing
  bool json = false;
};

struct CacheOptions {
  enum class Action { list, clear, prewarm };
  Action action = Action::list;
  std::string device;     // to prewarm
  std::string kind;       // to clear; empty: all that can be made anew
  double older_than = 0;  // days
  bool stale = false;     // only what is of no use here
  bool tuning = false;    // the tuned choices too
  bool json = false;
};

int run_info(const InfoOptions& options);
int run_selftest(const SelftestOptions& options);
int run_bench(const BenchOptions& options);
int run_tune(const TuneOptions& options);
int run_cache(const CacheOptions& options);

const char* device_type_name(int32_t type);
// "name (driver)", folded.
std::string heading(const tuff::DeviceProperties& device);

// Empty: the default. Throws a UsageError for a device that is not there, with those that are.
tuff::Context open_context(const std::string& device, const std::string& backend, bool prewarm = false);

// What tuff_supports() knows as operations: the names that tuff info lists, and that filters take.
const std::vector<std::string>& operations();

}  // namespace tool
