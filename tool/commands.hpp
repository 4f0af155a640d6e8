// The subcommands of tuff. Each prints its result and returns the process's exit code.
#pragma once

#include <cstdint>
#include <string>

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
  double seconds = 0.2;  // for each measurement
  bool json = false;
};

int run_info(const InfoOptions& options);
int run_selftest(const SelftestOptions& options);
int run_bench(const BenchOptions& options);

const char* device_type_name(int32_t type);

// Empty: the default.
tuff::Context open_context(const std::string& device, const std::string& backend);

}  // namespace tool
