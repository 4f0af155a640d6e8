// A Vulkan loader in front of the real one. In a program that is linked with it, opening libvulkan.so.1 yields this
// loader. It intercepts each function that the library calls and that returns a VkResult: it can make the function
// fail, counts objects, and records violations of the specification.
#pragma once

#include <cstdint>
#include <string>

namespace tuff_test::faulty_vulkan {

struct Function {
  const char* name;
  const int32_t* codes;  // the codes that it can return
  uint32_t code_count;
  bool of_instance;  // called while the instance is created and devices are inspected
};

// In the order of the functions' numbers.
uint32_t function_count();
const Function& function(uint32_t number);
const char* code_name(int32_t code);

// From now on the n-th call of the function returns the code; with `on`, all later calls return it too. The outputs of
// a failing call are filled with nonsense, because nothing may read them. Before a device is lost, its work is waited
// for.
void arm(uint32_t function, uint64_t n, int32_t code, bool on);
// Ends the injection. Returns how many calls have failed.
uint64_t disarm();
// The number of calls of any function since arm().
uint64_t calls(uint32_t function);

// The number of objects that have been created and not destroyed.
uint64_t live_objects();
std::string live_by_type();
// The first violation since the last call: an object that is destroyed twice or was never created, one that outlives
// its device, or a submitted command buffer that is not executable. Empty if there is none.
std::string forbidden();

}  // namespace tuff_test::faulty_vulkan
