// A device of the same driver that the library uses, inside tuff-compile.
#pragma once

#include <memory>

#include "runtime/custom/custom_kernel.hpp"

namespace tuff {

class DriverCompiler {
 public:
  // Starts the driver and has it compile an empty kernel, after which it has loaded everything it needs. Throws
  // UNSUPPORTED if the driver does not start here.
  explicit DriverCompiler(const DriverTrial& trial);
  ~DriverCompiler();
  DriverCompiler(const DriverCompiler&) = delete;
  DriverCompiler& operator=(const DriverCompiler&) = delete;

  // Compiles to machine code without running it. Throws COMPILE_FAILED with the driver's message.
  void compile(const DriverTrial& trial);

 private:
  struct Objects;
  std::unique_ptr<Objects> objects_;
};

}  // namespace tuff
