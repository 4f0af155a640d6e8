// A Vulkan loader in front of the real one. A program that is linked with it has it found by whoever opens
// libvulkan.so.1. Each function that returns a VkResult and that the library calls comes by here: it can be made to
// fail, objects are counted, and what the specification forbids is written down.
#pragma once

#include <cstdint>
#include <string>

namespace tuff_test::faulty_vulkan {

struct Function {
  const char* name;
  const int32_t* codes;  // those that it can be made to return
  uint32_t code_count;
  bool of_instance;  // called while the instance is made and devices are looked at
};

// In the order of their numbers.
uint32_t function_count();
const Function& function(uint32_t number);
const char* code_name(int32_t code);

// From now on the n-th call of the function returns the code, and with `on` each one after it too. What a call that
// fails would have written is filled with nonsense, as nothing may be read from it. The work of a device that is to be
// lost is waited for first.
void arm(uint32_t function, uint64_t n, int32_t code, bool on);
// Ends that. Returns how many calls have failed.
uint64_t disarm();
// Since arm(): all functions are counted, whichever was to fail.
uint64_t calls(uint32_t function);

// Of objects that the program has made and not destroyed.
uint64_t live_objects();
std::string live_by_type();
// The first thing that was done and is forbidden since the last question: an object that is destroyed twice or was
// never made, one that outlives its device, a command buffer that is submitted and is not executable. Empty: nothing.
std::string forbidden();

}  // namespace tuff_test::faulty_vulkan
