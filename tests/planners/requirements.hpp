// What kernels state of their own defines (the lines `//#` of their GLSL), beyond the ranges that check_defines()
// knows.
#pragma once

#include <string>

#include "planning/dispatch.hpp"
#include "planning/kernel_request.hpp"

namespace tuff_test {

// What is wrong with the request; empty if nothing is.
std::string broken_requirement(const tuff::KernelRequest& kernel, const tuff::Dispatch& dispatch, uint32_t subgroup);

}  // namespace tuff_test
