// A case: a function with its options (a request, for which kernels are compiled), sizes, offsets and elements. All of
// it follows from the seed, the variant's name and two numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/draft.hpp"
#include "sweeps/variants.hpp"

namespace tuff_sweep {

inline constexpr uint64_t kLargest = 33;         // of an extent
inline constexpr uint64_t kMaxOffset = 20;       // in bytes
inline constexpr uint64_t kRequestCases = 2176;  // cases of a request: 64 times the sizes of one extent

class Cases {
 public:
  // `pool`: requests are taken from so many; 0: from all. `lengths`: one case in so many has a size beyond kLargest;
  // 0: none.
  Cases(const Forced& forced, uint64_t seed, uint64_t pool, uint64_t lengths)
      : forced_(forced), seed_(seed), pool_(pool), lengths_(lengths) {}

  struct Request {
    const tuff_fuzz::Description* description = nullptr;
    uint64_t number = 0, shapes = 0;  // `shapes` is the seed of its options
    uint64_t device = 0;              // the seed of a limited device's limits
    size_t extents = 0;               // how many sizes it has
  };
  Request request(uint64_t number) const;

  struct Case {
    std::unique_ptr<tuff_fuzz::Draft> draft;
    std::unique_ptr<tuff_fuzz::Extents> extents;
    std::vector<uint64_t> offsets;  // of each operand, in bytes
    std::string name;               // --only NAME repeats it
  };
  // `turn` says which size is swept and what value it has; those of a run follow each other.
  Case at(const Request& request, uint64_t turn) const;

 private:
  const Forced& forced_;
  uint64_t seed_, pool_, lengths_;
};

// The sizes of GEMM in a turn that has some, seven of eight: a permutation of all 34^3.
inline constexpr uint64_t kTriples = (kLargest + 1) * (kLargest + 1) * (kLargest + 1);
uint64_t triple_of(uint64_t turn);

uint64_t mix(uint64_t a, uint64_t b);

}  // namespace tuff_sweep
