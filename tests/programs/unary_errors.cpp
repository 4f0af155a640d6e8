// Measures the largest error of each element-wise function of f32 against double precision, in ULP: for unary
// operations over every N-th of all 2^32 arguments, for binary ones that are not exact over random pairs. The table in
// docs/accuracy.md comes from this program. The error of an exact operation is 0 if the result is correctly rounded;
// where an argument allows further ULP (lgamma, digamma), the error is reduced in proportion.
//
//   tuff_unary_errors [--every N] [--type f32|f16|bf16] [--op NAME]…
//
// --every 1 takes all arguments, which needs one to five minutes for each operation on two cores. Of f16 and bf16, for
// unary operations only, all 65,536 numbers are taken; errors are in units of the type's last place, and the count is
// that of results which are not the exact one rounded. The exit status is 1 if a function exceeds the library's
// promise.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/binary_operations.hpp"
#include "support/unary16.hpp"
#include "support/unary_operations.hpp"
#include "tuff/tuff.h"

namespace {

using tuff_test::denormal;
using tuff_test::error_in_ulp;

void check(tuff_status status) {
  if (status == TUFF_OK) return;
  char text[512] = "";
  tuff_last_error(text, sizeof text, nullptr);
  throw std::runtime_error(text);
}

// The worst results.
struct Worst {
  double share = 0;  // relative to the promised error
  double ulps = 0;
  float a = 0, b = 0, got = 0;
  double want = 0;
  uint64_t count = 0;

  void see(double error, double allowed, float x, float y, float result, double exact) {
    ++count;
    share = std::max(share, allowed > 0 ? error / allowed : error > 0 ? INFINITY : 0);
    if (error > ulps) ulps = error, a = x, b = y, got = result, want = exact;
  }
  void merge(const Worst& other) {
    const uint64_t all = count + other.count;
    const double largest = std::max(share, other.share);
    if (other.ulps > ulps) *this = other;
    count = all, share = largest;
  }
};

constexpr uint64_t kChunk = 1 << 22;

// A device with three operands of one chunk each.
class Device {
 public:
  Device() {
    check(tuff_context_create(nullptr, &context_));
    for (tuff_buffer* buffer : {&a_, &b_, &out_}) check(tuff_alloc(context_, kChunk * 4, buffer));
  }
  ~Device() { tuff_context_destroy(context_); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  std::vector<float> unary(int32_t op, const std::vector<float>& x) {
    check(tuff_copy_htod(context_, a_, 0, x.data(), x.size() * 4));
    check(tuff_unary(context_, TUFF_F32, op, a_, out_, x.size()));
    return result(x.size());
  }
  // The results for every number of a 16-bit type, in the order of their bits.
  std::vector<float> unary16(int32_t op, int32_t dtype, const tuff_test::Bytes& numbers) {
    const uint64_t count = numbers.size() / 2;
    check(tuff_copy_htod(context_, a_, 0, numbers.data(), numbers.size()));
    check(tuff_unary(context_, dtype, op, a_, out_, count));
    tuff_test::Bytes results(numbers.size());
    check(tuff_copy_dtoh(context_, results.data(), out_, 0, results.size()));
    return floats(dtype, results);
  }
  static std::vector<float> floats(int32_t dtype, const tuff_test::Bytes& bytes) {
    std::vector<float> values(bytes.size() / 2);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(tuff_test::element(dtype, bytes, i));
    return values;
  }
  std::vector<float> binary(int32_t op, const std::vector<float>& x, const std::vector<float>& y) {
    check(tuff_copy_htod(context_, a_, 0, x.data(), x.size() * 4));
    check(tuff_copy_htod(context_, b_, 0, y.data(), y.size() * 4));
    check(tuff_binary(context_, TUFF_F32, op, a_, b_, out_, x.size()));
    return result(x.size());
  }

 private:
  std::vector<float> result(size_t count) {
    std::vector<float> values(count);
    check(tuff_copy_dtoh(context_, values.data(), out_, 0, count * 4));
    return values;
  }
  tuff_context context_ = 0;
  tuff_buffer a_ = 0, b_ = 0, out_ = 0;
};

// Calls body(i, worst) for i < count, on all cores.
Worst over(size_t count, const std::function<void(size_t, Worst&)>& body) {
  const size_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<Worst> worst(threads);
  std::vector<std::thread> running;
  for (size_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      for (size_t i = count * t / threads; i < count * (t + 1) / threads; ++i) body(i, worst[t]);
    });
  }
  for (std::thread& thread : running) thread.join();
  for (size_t t = 1; t < threads; ++t) worst[0].merge(worst[t]);
  return worst[0];
}

Worst measure(Device& device, const tuff_test::Operation& operation, uint64_t every) {
  Worst worst;
  constexpr uint64_t kAll = uint64_t{1} << 32;
  std::vector<float> x;
  for (uint64_t first = 0; first < kAll; first += kChunk * every) {
    x.resize(std::min(kChunk, (kAll - first + every - 1) / every));
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::bit_cast<float>(static_cast<uint32_t>(first + i * every));
    const std::vector<float> got = device.unary(operation.op, x);
    worst.merge(over(x.size(), [&](size_t i, Worst& seen) {
      double argument = x[i], want = operation.reference(argument), error = error_in_ulp(want, got[i]);
      if (error > 0 && denormal(argument)) {  // may have been flushed to zero
        const double flushed = std::copysign(0.0, argument), other = operation.reference(flushed);
        if (error_in_ulp(other, got[i]) < error) argument = flushed, want = other, error = error_in_ulp(want, got[i]);
      }
      const double allowed = operation.allowed(argument);
      if (operation.ulps == 0 && got[i] == static_cast<float>(want)) error = 0;
      if (allowed > operation.ulps) error *= operation.ulps / allowed;
      seen.see(error, operation.ulps, x[i], 0, got[i], want);
    }));
  }
  return worst;
}

// Any two normal numbers; for pow, a base in [2^-16, 2^16) and an exponent that keeps the result in f32's range.
Worst measure_pairs(Device& device, const tuff_test::BinaryOperation& operation, uint64_t count) {
  uint64_t state = 1;
  const auto next = [&] {  // splitmix64
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  };
  const auto number = [&](uint32_t least, uint32_t most) {  // exponents, biased
    const uint64_t random = next();
    return std::bit_cast<float>(static_cast<uint32_t>(random & 0x7fffff) |
                                (least + static_cast<uint32_t>(random >> 32) % (most - least)) << 23);
  };
  std::vector<float> x(count), y(count);
  for (uint64_t i = 0; i < count; ++i) {
    if (operation.op != TUFF_BINARY_POW) {
      x[i] = number(1, 255), y[i] = number(1, 255);
    } else {
      x[i] = number(111, 143);
      const double most = 126 / std::max(std::fabs(std::log2(double{x[i]})), 1e-3);
      y[i] = static_cast<float>(most * (static_cast<double>(next() >> 11) * 0x1p-52 - 1));
    }
  }
  const std::vector<float> got = device.binary(operation.op, x, y);
  return over(count, [&](size_t i, Worst& seen) {
    const double want = operation.reference(x[i], y[i]);
    seen.see(error_in_ulp(want, got[i]), operation.ulps, x[i], y[i], got[i], want);
  });
}

// One unit in the last place of a 16-bit type at a value; below its normal range, the smallest denormal.
double unit16(int32_t dtype, double value) {
  const int digits = dtype == TUFF_F16 ? 11 : 8, least = dtype == TUFF_F16 ? -24 : -133;
  int exponent;
  std::frexp(value, &exponent);  // its magnitude is in [2^(e-1), 2^e)
  return std::ldexp(1.0, std::max(exponent - digits, least));
}

// Prints a line; whether all results are as promised.
bool measure16(Device& device, const tuff_test::Operation& operation, int32_t dtype) {
  tuff_test::Bytes numbers(2 << 16);
  for (uint32_t i = 0; i < 1 << 16; ++i) {
    numbers[2 * i] = static_cast<unsigned char>(i), numbers[2 * i + 1] = static_cast<unsigned char>(i >> 8);
  }
  const std::vector<float> x = Device::floats(dtype, numbers), got = device.unary16(operation.op, dtype, numbers);
  double largest = 0, worst_at = 0;
  uint64_t not_rounded = 0, beyond = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!tuff_test::acceptable16(operation, dtype, x[i], got[i])) {
      if (++beyond <= 3) std::printf("  %s(%.9g) is %.9g\n", operation.name, double{x[i]}, double{got[i]});
      continue;
    }
    const double want = operation.reference(x[i]);
    if (!std::isfinite(want) || !std::isfinite(got[i]) || denormal(want) || denormal(x[i])) continue;
    not_rounded += got[i] != tuff_test::rounded(dtype, want);
    const double error = std::fabs(got[i] - want) / unit16(dtype, want);
    if (error > largest) largest = error, worst_at = x[i];
  }
  std::printf("%-12s %10.6f   %8llu   %-15.9g %llu\n", operation.name, largest,
              static_cast<unsigned long long>(not_rounded), worst_at, static_cast<unsigned long long>(beyond));
  std::fflush(stdout);
  return beyond == 0;
}

bool print(const char* name, const Worst& worst) {
  std::printf("%-12s %8.3f   %11llu   %-15.9g %-15.9g %-15.9g %.12g%s\n", name, worst.ulps,
              static_cast<unsigned long long>(worst.count), static_cast<double>(worst.a), static_cast<double>(worst.b),
              static_cast<double>(worst.got), worst.want, worst.share > 1 ? "   BEYOND THE PROMISE" : "");
  std::fflush(stdout);
  return worst.share <= 1;
}

int run(int argc, char** argv) {
  uint64_t every = 61;
  int32_t type = TUFF_F32;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    char* end = nullptr;
    const unsigned long long number = std::strtoull(value.c_str(), &end, 10);
    const bool whole = !value.empty() && *end == '\0' && value[0] != '-';
    if (option == "--every" && whole && number > 0 && number < uint64_t{1} << 32) {
      every = number, ++i;
    } else if (option == "--type" && (value == "f32" || value == "f16" || value == "bf16")) {
      type = value == "f32" ? TUFF_F32 : value == "f16" ? TUFF_F16 : TUFF_BF16, ++i;
    } else if (option == "--op" && !value.empty()) {
      wanted.push_back(value), ++i;
    } else {
      std::fprintf(stderr, "usage: %s [--every N] [--type f32|f16|bf16] [--op NAME]...\n", argv[0]);
      return 2;
    }
  }
  const auto takes = [&](const std::string& name) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
  };
  for (const std::string& name : wanted) {
    const auto is_it = [&](const auto& operation) { return name == operation.name; };
    const bool known =
        std::any_of(std::begin(tuff_test::kOperations), std::end(tuff_test::kOperations), is_it) ||
        std::any_of(std::begin(tuff_test::kBinaryOperations), std::end(tuff_test::kBinaryOperations), is_it);
    if (!known) {
      std::fprintf(stderr, "--op %s is not an operation\n", name.c_str());
      return 2;
    }
  }
  Device device;
  if (type != TUFF_F32) {
    std::printf("%-12s %10s   %8s   %-15s %s\n", "function", "error", "not so", "worst at", "beyond the promise");
    bool kept = true;
    for (const tuff_test::Operation& operation : tuff_test::kOperations) {
      if (takes(operation.name)) kept = measure16(device, operation, type) && kept;
    }
    return kept ? 0 : 1;
  }
  std::printf("%-12s %8s   %11s   %-15s %-15s %-15s %s\n", "function", "ULP", "arguments", "worst at", "and", "is",
              "instead of");
  bool good = true;
  for (const tuff_test::Operation& operation : tuff_test::kOperations) {
    if (takes(operation.name)) good = print(operation.name, measure(device, operation, every)) && good;
  }
  for (const tuff_test::BinaryOperation& operation : tuff_test::kBinaryOperations) {
    if (operation.ulps == 0 || !takes(operation.name)) continue;
    good = print(operation.name, measure_pairs(device, operation, 1 << 20)) && good;
  }
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
