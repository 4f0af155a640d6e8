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
  std::string filter;  // part of an operation's name
  std::string native;  // "on" or "off"; empty: as the environment says
  uint64_t seed = 1;
  bool json = false;
  bool verbose = false;
};

struct BenchOptions {
  std::string device;
  std::string backend;
  std::string filter;
  std::string native;    // "on" or "off"; empty: as the environment says
  std::string trace;     // a file; empty: no trace
  double seconds = 0.2;  // for each measurement
  bool json = false;
};

struct TuneOptions {
  std::string device;
  std::string types;     // "f32,f16"; empty: types that the device is good at
  std::string shapes;    // a file; empty: the built-in list
  std::string output;    // empty: the file that the library reads
  double budget = 60;    // seconds
  bool again = false;    // also measures what is already done
  bool dry_run = false;  // measures but writes nothing
  bool list = false;     // measures nothing
  bool json = false;
};

struct CacheOptions {
  enum class Action { list, clear, prewarm };
  Action action = Action::list;
  std::string device;     // to prewarm
  std::string kind;       // to clear; empty: everything that can be regenerated
  double older_than = 0;  // days
  bool stale = false;     // only entries that are useless here
  bool tuning = false;    // the tuned choices as well
  bool json = false;
};

struct TopOptions {
  double interval = 1;  // seconds between two refreshes, over which rates are taken
  bool once = false;
  bool json = false;
};

int run_info(const InfoOptions& options);
int run_selftest(const SelftestOptions& options);
int run_bench(const BenchOptions& options);
int run_tune(const TuneOptions& options);
int run_cache(const CacheOptions& options);
int run_top(const TopOptions& options);

const char* device_type_name(int32_t type);
// "name (driver)", folded to the output's width.
std::string heading(const tuff::DeviceProperties& device);

// An empty name means the default device. Throws UsageError, listing the devices, if the named one does not exist.
tuff::Context open_context(const std::string& device, const std::string& backend, bool prewarm = false);

// Sets TUFF_NATIVE for contexts opened later: "off" or "on"; empty leaves it as it is.
void set_native(const std::string& native);
// Why the context uses no kernels in PTX; empty if it uses them.
std::string reason_without_ptx(const tuff::Context& context);

// The operations that tuff_supports() knows: the names that tuff info lists and that filters accept.
const std::vector<std::string>& operations();

}  // namespace tool
