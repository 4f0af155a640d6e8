// Uses an installed Tuff: the C++ header, which needs C++17.
#include <cstdio>
#include <tuff/tuff.hpp>
#include <vector>

int main() {
  try {
    tuff::ContextOptions options;
    options.backend = "host";
    const tuff::Context context = tuff::Context::create(options);
    const std::vector<float> values = {1, -2, 3};
    const tuff::Buffer buffer = context.upload(values);
    context.unary(tuff::DType::f32, tuff::Unary::neg, buffer, buffer, 3);
    return buffer.download_vector<float>(3) == std::vector<float>{-1, 2, -3} ? 0 : 1;
  } catch (const tuff::Exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
