#include "support/tensor.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace tuff_test {
namespace {

// Collects only the first few differences: nobody reads a million lines.
class Differences {
 public:
  explicit Differences(size_t total) : total_(total) {}
  template <typename... Parts>
  void add(size_t index, const Parts&... parts) {
    if (count_++ >= 5) return;
    text_ << "\n  [" << index << "]";
    (text_ << ... << parts);
  }
  void report(const char* what) const {
    if (count_ != 0) ADD_FAILURE() << count_ << " of " << total_ << " elements " << what << ":" << text_.str();
  }

 private:
  size_t total_, count_ = 0;
  std::ostringstream text_;
};

}  // namespace

Tensor::Tensor(tuff_context context, const std::vector<float>& values, uint64_t shift)
    : context_(context), count_(values.size()), shift_(shift) {
  const uint64_t before = kAround + shift, bytes = count_ * sizeof(float), behind = kInside + kAround;
  whole_ = OwnBuffer(context, before + bytes + behind);
  const std::vector<float> guards(std::max(before, behind) / sizeof(float), from_bits(kGuard));
  EXPECT_OK(tuff_copy_htod(context, whole_, 0, guards.data(), before));
  EXPECT_OK(tuff_copy_htod(context, whole_, before, values.data(), bytes));
  EXPECT_OK(tuff_copy_htod(context, whole_, before + bytes, guards.data(), behind));
  tuff_buffer view = 0;
  EXPECT_OK(tuff_view(whole_, before, bytes + kInside, &view));
  view_ = OwnBuffer(view);
}

Tensor::Tensor(tuff_context context, uint64_t count, uint64_t shift)
    : Tensor(context, std::vector<float>(count, poison()), shift) {}

std::vector<float> Tensor::read() const {
  const uint64_t before = (kAround + shift_) / sizeof(float);
  std::vector<float> all(before + count_ + (kInside + kAround) / sizeof(float));
  EXPECT_OK(tuff_copy_dtoh(context_, all.data(), whole_, 0, all.size() * sizeof(float)));
  Differences changed(all.size() - count_);
  for (size_t i = 0; i < all.size(); ++i) {
    if (i >= before && i < before + count_) continue;
    if (bits(all[i]) != kGuard)
      changed.add(i, " relative to the tensor ", static_cast<int64_t>(i - before), " of ", count_, ": ", all[i]);
  }
  changed.report("of the guards were written");
  all.resize(before + count_);  // in place: large tensors are slow to copy
  all.erase(all.begin(), all.begin() + static_cast<ptrdiff_t>(before));
  return all;
}

void Tensor::expect_unchanged(const std::vector<float>& values) const {
  const std::vector<float> now = read();
  Differences changed(now.size());
  for (size_t i = 0; i < now.size(); ++i) {
    if (bits(now[i]) != bits(values[i])) changed.add(i, " was ", values[i], ", is ", now[i]);
  }
  changed.report("changed");
}

void Tensor::expect_poisoned() const { expect_unchanged(std::vector<float>(count_, poison())); }

uint64_t Random::next() {  // splitmix64 (Steele, Lea, Flood 2014)
  uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

float Random::integer(int limit) {
  return static_cast<float>(static_cast<int>(next() % static_cast<uint64_t>(2 * limit + 1)) - limit);
}

float Random::uniform(float low, float high) {
  return low + (high - low) * (static_cast<float>(next() >> 40) * 0x1p-24f);
}

float Random::spread() {
  const uint64_t word = next();
  static constexpr float kPowers[] = {0x1p-6f, 0x1p-5f, 0x1p-4f, 0x1p-3f, 0x1p-2f, 0x1p-1f, 1, 2};
  const float magnitude = (1.0f + static_cast<float>(word & 0xffffff) * 0x1p-24f) * kPowers[(word >> 32) % 8];
  return (word >> 63) != 0 ? -magnitude : magnitude;
}

std::vector<float> integers(uint64_t count, int limit, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = random.integer(limit);
  return values;
}

std::vector<float> uniforms(uint64_t count, float low, float high, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = random.uniform(low, high);
  return values;
}

std::vector<float> spreads(uint64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = random.spread();
  return values;
}

void expect_matches(const std::vector<float>& got, const Expected& expected) {
  ASSERT_EQ(got.size(), expected.value.size());
  ASSERT_TRUE(expected.bound.empty() || expected.bound.size() == expected.value.size());
  Differences wrong(got.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const double want = expected.value[i], bound = expected.bound.empty() ? 0 : expected.bound[i];
    if (bits(got[i]) == kPoison) {
      wrong.add(i, " was not written, expected ", want);
    } else if (std::isnan(want) ? !std::isnan(got[i])
                                : !(static_cast<double>(got[i]) == want || std::fabs(got[i] - want) <= bound)) {
      wrong.add(i, " is ", got[i], ", expected ", want, " +- ", bound, " (off by ", std::fabs(got[i] - want), ")");
    }
  }
  wrong.report("are wrong");
}

void expect_same_bits(const std::vector<float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  Differences wrong(got.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (bits(got[i]) == bits(expected[i]) ||
        (std::isnan(expected[i]) && std::isnan(got[i]) && bits(got[i]) != kPoison)) {
      continue;
    }
    wrong.add(i, " is ", got[i], std::hex, " (0x", bits(got[i]), "), expected ", std::dec, expected[i], std::hex,
              " (0x", bits(expected[i]), ")", std::dec);
  }
  wrong.report("differ");
}

}  // namespace tuff_test
