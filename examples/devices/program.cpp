// The program of docs/devices.md: lists the devices and computes each half of a matrix product on its own context.
#include <cstdio>
#include <string>
#include <vector>

#include "tuff/tuff.hpp"

int main() {
  try {
    std::vector<tuff::Context> contexts;  // for the first two devices; with fewer, for the host backend
    for (uint32_t i = 0, count = tuff::device_count(); i < count && contexts.size() < 2; ++i) {
      const std::string index = std::to_string(i);
      contexts.push_back(tuff::Context::create({index.c_str(), "vulkan"}));
    }
    while (contexts.size() < 2) contexts.push_back(tuff::Context::create({nullptr, "host"}));
    for (const tuff::Context& context : contexts) std::printf("on %s\n", context.info().name);
    const std::string refusals = tuff::device_refusals();
    if (!refusals.empty()) std::printf("refused:\n%s\n", refusals.c_str());

    // C = A * B: both contexts have B, each computes half of the rows, and the first one receives all of C.
    constexpr uint64_t kSize = 256, kHalf = kSize / 2, kHalfBytes = kHalf * kSize * sizeof(float);
    const std::vector<float> ones(kSize * kSize, 1);
    const tuff::Buffer b = contexts[0].upload(ones);
    tuff::Buffer other_b = contexts[1].alloc<float>(kSize * kSize), c = contexts[0].alloc<float>(kSize * kSize);
    other_b.copy_from_peer(b, 2 * kHalfBytes);
    for (int i = 0; i < 2; ++i) {
      const std::vector<float> rows(kHalf * kSize, static_cast<float>(i + 1));
      const tuff::Buffer a = contexts[i].upload(rows);
      tuff::Buffer half = contexts[i].alloc<float>(kHalf * kSize);
      contexts[i].gemm(tuff::DType::f32, tuff::Transpose::no, tuff::Transpose::no, kHalf, kSize, kSize, 1, a, kSize,
                       i == 0 ? b : other_b, kSize, 0, half, kSize);
      c.copy_from_peer(half, kHalfBytes, i * kHalfBytes);
    }
    const std::vector<float> result = c.download_vector<float>(kSize * kSize);
    std::printf("C is %g in the first row, %g in the last\n", result.front(), result.back());
    return result.front() == kSize && result.back() == 2 * kSize ? 0 : 1;
  } catch (const tuff::Exception& error) {
    std::printf("%s\n%s\n", error.what(), error.hint());
    return 1;
  }
}
