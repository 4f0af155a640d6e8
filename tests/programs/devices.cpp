// A process that devices_test.cpp starts in a given environment: devices list | open [DEVICE] | auto | both. It prints
// errors as "error STATUS message".
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tuff/tuff.hpp"

namespace {

// The usual notation: 8, 4, 4, 4 and 12 digits.
std::string uuid_of(const tuff::DeviceProperties& device) {
  std::string text;
  for (int i = 0; i < 16; ++i) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%s%02X", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", device.uuid[i]);
    text += digits;
  }
  return text;
}

// "device INDEX UUID gpu|cpu NAME"
void list() {
  for (uint32_t i = 0, count = tuff::device_count(); i < count; ++i) {
    const tuff::DeviceProperties device = tuff::device_info(i);
    std::printf("device %u %s %s %s\n", i, uuid_of(device).c_str(), device.type == TUFF_DEVICE_CPU ? "cpu" : "gpu",
                device.name);
  }
}

void open(const char* backend, const char* device) {
  tuff::ContextOptions options;
  options.backend = backend;
  options.device = device;
  const tuff::Context context = tuff::Context::create(options);
  const tuff::DeviceProperties opened = context.info();
  std::printf("opened %s %s %s\n", opened.backend, uuid_of(opened).c_str(), opened.name);
}

tuff::Context open_number(const char* index) {
  tuff::ContextOptions options;
  options.device = index;
  return tuff::Context::create(options);
}

// Computes -(-i) on both devices at once, thirty times; then copies across and back.
bool both() {
  constexpr size_t kCount = 300'000;
  std::vector<float> values(kCount);
  for (size_t i = 0; i < kCount; ++i) values[i] = static_cast<float>(i % 1000);
  tuff::Context contexts[2] = {open_number("0"), open_number("1")};
  std::vector<float> results[2] = {std::vector<float>(kCount), std::vector<float>(kCount)};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      tuff::Buffer buffer = contexts[i].upload(values);
      for (int round = 0; round < 30; ++round) {
        contexts[i].unary(tuff::DType::f32, tuff::Unary::neg, buffer, buffer, kCount);
      }
      buffer.download(results[i]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (results[0] != values || results[1] != values) return false;
  tuff::Buffer first = contexts[0].upload(values), second = contexts[1].alloc<float>(kCount);
  second.copy_from_peer(first, kCount * sizeof(float));
  contexts[1].unary(tuff::DType::f32, tuff::Unary::neg, second, second, kCount);
  first.copy_from_peer(second, kCount * sizeof(float));
  contexts[0].unary(tuff::DType::f32, tuff::Unary::abs, first, first, kCount);
  first.download(results[0]);
  second.download(results[1]);
  for (float& value : results[1]) value = -value;
  for (const tuff::Context& context : contexts) {
    if (context.stats().validation_messages != 0) return false;
  }
  return results[0] == values && results[1] == values;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  int result = 0;
  try {
    if (command == "list") list();
    if (command == "open") open("vulkan", argc > 2 ? argv[2] : nullptr);
    if (command == "auto") open("auto", nullptr);
    if (command == "both") std::printf("%s\n", both() ? "right" : "wrong");
  } catch (const tuff::Exception& error) {
    std::printf("error %s %s\n", tuff::status_name(error.status()), error.what());
    result = 1;
  }
  const std::string refusals = tuff::device_refusals();
  std::printf("refusals\n%s\n", refusals.c_str());
  return result;
}
