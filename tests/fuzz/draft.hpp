// A valid call of an operation while a description assembles it: its numbers, and the requirements of each operand.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "fuzz/call.hpp"
#include "fuzz/draw.hpp"

namespace tuff_fuzz {

// What an operand is filled with if the existing contents are unsuitable.
enum class Fill : uint8_t {
  integers,  // from -most to most
  positive,  // from 1 to most
  powers,    // -2, -1, 1, 2
  indices,   // integers from -1 to most: one beyond each end
  offsets,   // integers from 0 to most, in ascending order
  booleans,  // 0 and 1
  odd,       // any odd integers: products of them wrap, but do not become 0
  anything   // any bits at all
};

// Elements of a strided operand along one of its axes.
struct Axis {
  uint64_t count, stride;
};

// The range of an operand's values before the call.
struct Seen {
  double most = 0;       // the largest magnitude
  bool integral = true;  // all are finite integers
  bool positive = true;  // all are above zero
  double product = 1;    // of all magnitudes that are not zero
};

// The allowed difference from the host backend's result, which is `value`.
using Allowed = std::function<double(uint64_t index, double value)>;

struct Operand {
  const char* name;  // of its place in the call
  uint32_t index;    // in an array of handles
  int32_t dtype;
  uint64_t elements;  // the footprint; 0: it has none
  bool read, written;
  Fill fill = Fill::integers;
  double most = 4;
  std::vector<Axis> axes = {};  // the elements written, if those are not the whole footprint
  Allowed allowed = {};         // empty: bit-identical, except for signs of zeros and payloads of NaN
  bool moved = false;           // bit-identical without exceptions
  int same = -1;                // shares the place of this operand

  // Its place in memory.
  int object = -1, root = -1;
  uint64_t offset = 0, bytes = 0;
  Seen seen = {};
  std::vector<double> values = {};  // before the call, if a description requested them
  bool keep_values = false;
};

// Sizes that a test sets (tests/sweeps), instead of those that a description draws.
class Extents {
 public:
  static constexpr size_t kNone = ~size_t{0};
  std::vector<uint64_t> values;  // in the order in which the description asks; further ones are as drawn
  size_t swept = kNone;          // this one is as given; the others may be reduced to what is usual
  size_t asked = 0;              // how often the description has asked
};

class Draft {
 public:
  // `shapes` draws what kernels are compiled for, options and sizes; `rest` draws everything else.
  Draft(const Function& function, Draw shapes, Draw rest) : call(function), shape(shapes), free(rest) {}
  Draft(const Draft&) = delete;  // its members refer to each other
  Draft& operator=(const Draft&) = delete;

  bool has(std::string_view name) const { return call.has(name); }
  void set(std::string_view name, uint64_t value) { call.set(name, value); }
  void set(std::string_view name, int32_t value) { call.set(name, static_cast<uint64_t>(int64_t{value})); }
  void real(std::string_view name, double value) { call.set(name, value); }
  void list(std::string_view name, std::span<const uint64_t> values) { call.list(name, values); }
  void list(std::string_view name, const std::vector<uint64_t>& values) { call.list(name, std::span(values)); }

  Operand& input(const char* name, int32_t dtype, uint64_t elements, Fill fill = Fill::integers, double most = 4,
                 uint32_t index = 0) {
    Operand operand{name, index, dtype, elements, true, false};
    operand.fill = fill, operand.most = most;
    operands.push_back(std::move(operand));
    return operands.back();
  }
  Operand& output(const char* name, int32_t dtype, uint64_t elements, uint32_t index = 0) {
    operands.push_back({name, index, dtype, elements, false, true});
    return operands.back();
  }
  // A size: `drawn`, or the next that a test sets, which is at least `least`. Half of those that are not swept are at
  // most `usual`, if that is given.
  uint64_t extent(uint64_t drawn, uint64_t least = 0, uint64_t usual = 0);
  // Whether a test sweeps the size that was asked for last.
  bool sweeps() const { return extents != nullptr && extents->asked == extents->swept + 1; }
  // The product of so many sizes.
  uint64_t volume(uint64_t drawn, size_t axes);
  // Draws what no kernel is compiled for: gaps, positions, strides and paddings of windows. The fuzzer repeats these
  // with the shapes.
  Draw& loose() { return extents != nullptr ? free : shape; }
  const Operand& of(std::string_view name) const;
  int index_of(std::string_view name) const;

  Call call;
  Draw shape, free;
  std::vector<Operand> operands;
  Extents* extents = nullptr;
  // Whether the bounds hold for the operands' current values; empty: they hold for any.
  std::function<bool()> suits;
};

// The description of an operation. Every function of tuff.h that takes a stream and buffers has one.
struct Description {
  const char* function;
  const char* family;  // whose variants tests/sweeps forces: by TUFF_<FAMILY>_VARIANT, unless it says otherwise
  void (*draw)(Draft& draft);
};

// The families of operations, each in a separate file.
std::span<const Description> describe_products();
std::span<const Description> describe_images();
std::span<const Description> describe_rows();
std::span<const Description> describe_shapes();
std::span<const Description> describe_attention();
std::span<const Description> describe_linalg();
std::span<const Description> describe_recurrent();
std::span<const Description> describe_sparse();
std::span<const Description> describe_quant();
std::span<const Description> describe_training();
const std::vector<Description>& descriptions();

// Shared by the descriptions.
int32_t draw_float(Draw& draw);
// A shape of 1 to 8 axes and at most `most` elements, each axis of fewer than about `longest`.
std::vector<uint64_t> draw_shape(Draft& d, uint64_t most, uint64_t longest);

inline uint64_t product(std::span<const uint64_t> sizes) {
  uint64_t all = 1;
  for (const uint64_t size : sizes) all *= size;
  return all;
}
uint64_t draw_size(Draw& draw, uint64_t most);
uint64_t footprint(std::span<const Axis> axes);

}  // namespace tuff_fuzz
