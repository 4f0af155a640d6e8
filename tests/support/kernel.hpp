// Custom kernels in tests: a descriptor around a source text, and an owner for the resulting kernel.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "support/harness.hpp"

namespace tuff_test {

inline tuff_kernel_desc glsl(const char* source, const char* name = "test.comp") {
  tuff_kernel_desc desc{};
  desc.struct_size = sizeof desc;
  desc.source = source;
  desc.name = name;
  return desc;
}

inline tuff_kernel_desc spirv(const void* words, uint64_t bytes, const char* entry) {
  tuff_kernel_desc desc{};
  desc.struct_size = sizeof desc;
  desc.language = TUFF_KERNEL_SPIRV;
  desc.source = words;
  desc.source_bytes = bytes;
  desc.entry = entry;
  return desc;
}

class OwnKernel {
 public:
  OwnKernel(tuff_context context, const tuff_kernel_desc& desc) {
    EXPECT_OK(tuff_kernel_create(context, &desc, &handle_));
  }
  ~OwnKernel() { EXPECT_OK(tuff_kernel_destroy(handle_)); }
  OwnKernel(const OwnKernel&) = delete;
  OwnKernel& operator=(const OwnKernel&) = delete;
  operator tuff_kernel() const { return handle_; }  // NOLINT(google-explicit-constructor)

 private:
  tuff_kernel handle_ = TUFF_NULL_HANDLE;
};

inline tuff_kernel_properties info_of(tuff_kernel kernel) {
  tuff_kernel_properties info{};
  info.struct_size = sizeof info;
  EXPECT_OK(tuff_kernel_info(kernel, &info));
  return info;
}

// Custom kernels run only on Vulkan, so these tests are not repeated on the host backend.
class OnVulkan : public testing::Test {
 protected:
  void SetUp() override {
    bool there = false;
    for (const std::string& backend : backends()) there = there || backend == "vulkan";
    if (!there) GTEST_SKIP() << "of the Vulkan backend";
    context_ = shared_context("vulkan");
  }
  tuff_context context() const { return context_; }

  template <typename T>
  OwnBuffer upload(const std::vector<T>& values) {
    return uploaded(context_, values);
  }
  template <typename T>
  std::vector<T> download(tuff_buffer buffer, size_t count) {
    return downloaded<T>(context_, buffer, count);
  }
  tuff_status launch(tuff_kernel kernel, const std::vector<tuff_buffer>& buffers, uint32_t groups,
                     const void* push = nullptr, uint32_t push_bytes = 0) {
    return tuff_kernel_launch(context_, kernel, buffers.data(), static_cast<uint32_t>(buffers.size()), push, push_bytes,
                              groups, 1, 1);
  }

 private:
  tuff_context context_ = TUFF_NULL_HANDLE;
};

// y = a * x + y for n elements.
inline constexpr const char* kSaxpy = R"(#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer X { float x[]; };
layout(set = 0, binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform Parameters { float a; uint n; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
)";
struct Saxpy {
  float a;
  uint32_t n;
};

// out[i] = in[i] + 1, one element for each workgroup.
inline constexpr const char* kPlusOne = R"(#version 450
layout(binding = 0) buffer In { uint from[]; };
layout(binding = 1) buffer Out { uint to[]; };
void main() { to[gl_WorkGroupID.x] = from[gl_WorkGroupID.x] + 1; }
)";

// The same, 64 elements for each workgroup.
inline constexpr const char* kPlusOneEach = R"(#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer In { uint from[]; };
layout(binding = 1) buffer Out { uint to[]; };
void main() { to[gl_GlobalInvocationID.x] = from[gl_GlobalInvocationID.x] + 1; }
)";

}  // namespace tuff_test
