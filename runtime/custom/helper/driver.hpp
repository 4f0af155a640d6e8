// A device of the driver that the library uses, in tuff-compile.
#pragma once

#include <memory>

#include "runtime/custom/custom_kernel.hpp"

namespace tuff {

class DriverCompiler {
 public:
  // Starts the driver and has it compile a kernel that does nothing, after which it has loaded what it needs.
  // Errors: UNSUPPORTED if it does not start here.
  explicit DriverCompiler(const DriverTrial& trial);
  ~DriverCompiler();
  DriverCompiler(const DriverCompiler&) = delete;
  DriverCompiler& operator=(const DriverCompiler&) = delete;

  // To machine code, without running it. Errors: COMPILE_FAILED with what the driver says.
  void compile(const DriverTrial& trial);

 private:
  struct Objects;
  std::unique_ptr<Objects> objects_;
};

}  // namespace tuff
