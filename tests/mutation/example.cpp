// A small program for rewriter_test.py: one place of each kind that the rewriter changes, some that it must not change,
// and a test of all of them.
#include <cstdint>
#include <stdexcept>

constexpr uint64_t kLimit = 2 * 4;  // a constant expression

void require(bool condition, const char*) {
  if (!condition) throw std::invalid_argument("wrong");
}

void check_count(uint64_t count, uint64_t limit) {
  require(count <= limit, "count");
  if (count == 7 && limit != 7) [[unlikely]] {
    throw std::invalid_argument("wrong");
  }
}

template <typename T>
bool below(T a, T b) {
  static_assert(sizeof(T) > 1);
  return a < b || a == 100;
}

uint64_t tiles(uint64_t extent, uint64_t size) {
  const uint64_t whole[kLimit + 1] = {extent / size * 2};
  switch (extent) {
    case 1 + 1: return 3;
    default: return whole[0] + (extent % size > 0 ? 1 : 0) - 1;
  }
}

bool throws(uint64_t count, uint64_t limit) {
  try {
    check_count(count, limit);
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

int test_all() {
  int failures = 0;
  failures += throws(8, 8);
  failures += !throws(9, 8);
  failures += !throws(7, 8);
  failures += throws(7, 7);
  failures += !below(1, 2) + below(2, 2) + !below(100, 2) + below(3, 2);
  failures += tiles(2, 1) != 3;
  failures += tiles(12, 4) != 5;
  failures += tiles(13, 4) != 6;
  return failures;
}

int main() { return test_all() == 0 ? 0 : 1; }
