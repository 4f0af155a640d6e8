// relu(A @ B) on the best device, with tuff.hpp.
#include <cstdio>
#include <exception>
#include <tuff/tuff.hpp>
#include <vector>

int main() try {
  constexpr uint64_t m = 2, n = 2, k = 3;
  const auto context = tuff::Context::create();
  const auto a = context.upload({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f});
  const auto b = context.upload({-2.0f, 1.0f, -1.0f, -1.0f, 1.5f, 1.0f});
  const auto c = context.alloc<float>(m * n);
  std::vector<float> result(m * n);

  context.gemm(tuff::DType::f32, tuff::Transpose::no, tuff::Transpose::no, m, n, k, 1.0, a, k, b, n, 0.0, c, n);
  context.unary(tuff::DType::f32, tuff::Unary::relu, c, c, m * n);
  c.download(result);

  std::printf("relu(A @ B), A 2x3, B 3x2:\n");
  for (uint64_t row = 0; row < m; ++row) std::printf("  %.1f  %.1f\n", result[row * n], result[row * n + 1]);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
