// Profiles a small network: prints a table of where the time went and writes a trace for https://ui.perfetto.dev.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "tuff/tuff.hpp"

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "trace.json";
  constexpr uint64_t rows = 256, inputs = 784, hidden = 512, classes = 10;
  using tuff::DType, tuff::Transpose, tuff::Unary;

  tuff::ContextOptions options;
  options.backend = "auto";
  const tuff::Context context = tuff::Context::create(options);
  const tuff::Buffer x = context.upload(std::vector<float>(rows * inputs, 0.5f));
  const tuff::Buffer w1 = context.upload(std::vector<float>(inputs * hidden, 0.01f));
  const tuff::Buffer w2 = context.upload(std::vector<float>(hidden * classes, 0.01f));
  const tuff::Buffer h = context.alloc<float>(rows * hidden), y = context.alloc<float>(rows * classes);
  const auto forward = [&] {
    context.gemm(DType::f32, Transpose::no, Transpose::no, rows, hidden, inputs, 1, x, inputs, w1, hidden, 0, h,
                 hidden);
    context.unary(DType::f32, Unary::gelu, h, h, rows * hidden);
    context.gemm(DType::f32, Transpose::no, Transpose::no, rows, classes, hidden, 1, h, hidden, w2, classes, 0, y,
                 classes);
    context.softmax(DType::f32, y, y, {rows, classes}, 1);
  };
  forward();  // the first run compiles the kernels
  context.synchronize();

  tuff::Profile profile = context.profile();
  for (int i = 0; i < 10; ++i) forward();
  profile.end();

  std::printf("%s", profile.table().c_str());
  profile.write(path);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
