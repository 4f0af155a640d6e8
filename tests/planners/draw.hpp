// Random calls of every operation, on random devices.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "planners/memory.hpp"
#include "planners/recorder.hpp"
#include "planning/element_type.hpp"
#include "planning/operation.hpp"
#include "planning/tuning_table.hpp"

namespace tuff_test {

// The random numbers of case `index` of a seed.
class Numbers {
 public:
  Numbers(uint64_t seed, uint64_t index) : state_(mixed(seed) ^ mixed(index * 2 + 1)) {}
  uint64_t next() { return mixed(state_ += 0x9e3779b97f4a7c15u); }
  uint64_t below(uint64_t n) { return next() % n; }
  bool coin(uint64_t of = 2) { return below(of) == 0; }  // true once in `of` calls, on average
  template <typename T>
  T one_of(std::initializer_list<T> all) {
    return all.begin()[below(all.size())];
  }

 private:
  static uint64_t mixed(uint64_t x);  // the mixing function of SplitMix64
  uint64_t state_;
};

TestDevice draw_device(Numbers& numbers);

// The maximum size of an operand, in bytes: more than any machine has.
inline constexpr uint64_t kMaxOperandBytes = uint64_t{1} << 50;

uint64_t times(uint64_t a, uint64_t b);  // 2^64 - 1 if the product is larger
uint64_t plus(uint64_t a, uint64_t b);
uint64_t product(std::span<const uint64_t> sizes);

// A call with its operands. It is checked and recorded as a stream would do it.
class Call {
 public:
  // large: half of the sizes are so large that operands exceed 2^31 and 2^32 bytes or elements.
  Call(Numbers& own_numbers, bool tells, bool large) : numbers(own_numbers), tells_(tells), large_(large) {}

  Numbers& numbers;
  std::function<void()> check;  // throws if arguments are invalid
  std::function<void(tuff::Recorder&)> record;
  std::function<void(const tuff::Recorder&)> describe;  // what profiles request; may be empty
  std::unique_ptr<tuff::TuningTable> tuned;
  // Replaces the call, which has been checked, by a copy as graphs keep one, and overwrites all that it was copied
  // from.
  std::function<void()> replace_by_copy;

  uint64_t size();
  // Whether no size that has been drawn and no operand is large.
  bool is_small() const { return largest_ <= kSmall && bytes() <= kSmallBytes; }
  int32_t float_type();
  int32_t any_type();
  int32_t type_of(tuff::ElementTypes types);
  template <size_t n>
  std::array<uint64_t, n> sizes(uint64_t rank = n) {
    std::array<uint64_t, n> result;
    result.fill(1);
    for (uint64_t i = 0; i < rank; ++i) result[i] = size();
    return result;
  }

  // An operand with this many elements and, most of the time, no further byte. Its offset may or may not be a multiple
  // of 16 bytes. By default dispatches must read all of it; read_partly() is for operands with gaps or unused parts.
  const tuff::Buffer* input(const char* name, uint64_t elements, uint64_t element) {
    return operand(name, elements, element, false);
  }
  // By default the call must write all elements from the first to the last; has_to_be() names other ranges.
  const tuff::Buffer* output(const char* name, uint64_t elements, uint64_t element, bool whole = true);
  void has_to_be(const tuff::Buffer* output, uint64_t first, uint64_t elements);
  // A new output, or `same` for an operation in place.
  const tuff::Buffer* output_or(const tuff::Buffer* same, const char* name, uint64_t elements, uint64_t element,
                                bool whole = true);
  const tuff::Buffer* perhaps(const char* name, uint64_t elements, uint64_t element) {
    return numbers.coin() ? nullptr : input(name, elements, element);
  }

  void read_partly(const tuff::Buffer* input);
  // These elements of an operand with gaps must be read: its first row and its last.
  void has_to_read(const tuff::Buffer* input, uint64_t first, uint64_t elements);
  void not_used(const tuff::Buffer* operand);  // the call neither reads nor checks it

  template <typename T>
  void tell(const char* name, const T& value) {
    if (tells_) text += fmt::format(" {}={}", name, value);
  }
  std::string text;

  uint64_t bytes() const;         // of all operands
  std::string unwritten() const;  // the output that a complete recording did not write; empty: none
  std::string unread() const;     // the same for inputs
  // Changes one operand of the valid call at a time and checks it again: one byte too short, beginning between two
  // elements, overlapping an output by one element. Returns what the check accepts and must not, or the reverse.
  std::string misused();

  // Memory for arguments.
  template <typename T>
  T& keep(T value) {
    auto kept = std::make_shared<T>(std::move(value));
    T& result = *kept;
    forgets_.push_back([&result] { overwrite(result); });
    kept_.push_back(std::move(kept));
    return result;
  }
  void forget() {
    for (const auto& forget : forgets_) forget();
    for (tuff::Buffer& buffer : buffers_) ++buffer.offset;
  }

 private:
  const tuff::Buffer* operand(const char* name, uint64_t elements, uint64_t element, bool output);

  // Elements of lists too; other objects, such as expressions, stay.
  template <typename T>
  static void overwrite(T& value) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      void* const memory = &value;
      std::memset(memory, 0xa5, sizeof value);
    } else if constexpr (requires { value.begin(), value.end(); }) {
      for (auto& element : value) overwrite(element);
    }
  }
  std::string accepted(const char* what, const Memory& memory, bool should);

  static constexpr uint64_t kSmall = 1024, kSmallBytes = 1u << 16;
  uint64_t draw_size();

  bool tells_, large_;
  bool aligned_ = false;  // all operands begin at multiples of 16 bytes, as kernels in PTX need them
  uint64_t largest_ = 0;
  std::deque<tuff::Buffer> buffers_;
  std::vector<std::shared_ptr<void>> kept_;
  std::vector<std::function<void()>> forgets_;
};

// The operation of a call. Sometimes it is described, too.
template <typename Args>
void set(Call& call, const tuff::OperationOf<Args>& operation, Args& args) {
  const tuff::OperationInfo& info = operation.info();
  call.check = [&info, &args] { info.check(&args); };
  call.record = [&info, &args](tuff::Recorder& recorder) { info.record(recorder, &args); };
  if (call.numbers.coin(16)) {
    call.describe = [&info, &args](const tuff::Recorder& recorder) {
      (void)info.describe(&args);
      if (info.variants != nullptr) (void)info.variants(recorder, &args);
    };
  }
  call.replace_by_copy = [&call, &info, &args] {
    const auto copy = std::make_shared<tuff::CallCopy>(tuff::Operation(info, &args));
    call.forget();
    call.check = [copy] { copy->operation().check(); };
    call.record = [copy](tuff::Recorder& recorder) { copy->operation().record(recorder); };
    if (!call.describe) return;
    call.describe = [copy, &info](const tuff::Recorder& recorder) {
      (void)copy->operation().describe();
      if (info.variants != nullptr) (void)copy->operation().variants(recorder);
    };
  };
}

// A shape in which one to three axes have any size and the others are small.
struct Shape {
  std::array<uint64_t, 8> sizes{};
  uint32_t rank = 1, axis = 0;
  std::span<const uint64_t> span() const { return {sizes.data(), rank}; }
  uint64_t elements() const { return product(span()); }
};
Shape& draw_shape(Call& call, uint32_t rank = 0);

struct DrawnOperation {
  const char* name;
  uint32_t weight;
  void (*draw)(Call& call);
};
std::span<const DrawnOperation> drawn_operations();

// operations_rows.cpp
void draw_reduce(Call& call);
void draw_scan(Call& call);
void draw_sort(Call& call);
void draw_random(Call& call);
void draw_dropout(Call& call);
void draw_variates(Call& call);
void draw_fft(Call& call);
void draw_dct(Call& call);
void draw_expression(Call& call);
void draw_softmax(Call& call);
void draw_norm(Call& call);
void draw_batch_norm(Call& call);
void draw_norm_backward(Call& call);
void draw_batch_norm_training(Call& call);

// operations_moves.cpp
void draw_permute(Call& call);
void draw_slice(Call& call);
void draw_concat(Call& call);
void draw_gather(Call& call);
void draw_scatter(Call& call);
void draw_select(Call& call);
void draw_pad(Call& call);
void draw_copy_strided(Call& call);
void draw_cast(Call& call);

// operations_quant.cpp
void draw_quantize(Call& call);
void draw_dequantize(Call& call);
void draw_qgemm(Call& call);

// operations_linalg.cpp
void draw_cholesky(Call& call);
void draw_lu(Call& call);
void draw_triangular_solve(Call& call);
void draw_lu_solve(Call& call);
void draw_lu_determinant(Call& call);
void draw_qr(Call& call);
void draw_eigh(Call& call);
void draw_eig(Call& call);
void draw_svd(Call& call);

// operations_recurrent.cpp
void draw_rnn(Call& call);
void draw_rnn_backward(Call& call);

// operations_training.cpp
void draw_optimizer_step(Call& call);
void draw_gradient_norm(Call& call);
void draw_cross_entropy(Call& call);
void draw_softmax_backward(Call& call);

// operations_sparse.cpp
void draw_spmm(Call& call);
void draw_sparse_convert(Call& call);
void draw_sddmm(Call& call);
void draw_spgemm(Call& call);
void draw_sparse_triangular_solve(Call& call);

}  // namespace tuff_test
