// Extreme arguments: each size, stride and offset of each call is replaced by values at which arithmetic wraps. Nothing
// may crash or hang, both backends must give the same status, and where both compute, the same result.
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/harness.hpp"
#include "support/sample.hpp"
#include "support/size_table.hpp"

namespace tuff_test::semantics_sizes_test {
namespace {

constexpr uint64_t kMax = ~uint64_t{0};
constexpr uint64_t bit(int n) { return uint64_t{1} << n; }
const std::vector<uint64_t> kSuspects = {0,           1,           2,           3,           bit(16) - 1, bit(16),
                                         bit(16) + 1, bit(22) - 1, bit(23) - 1, bit(29),     bit(30) - 1, bit(30),
                                         bit(31) - 1, bit(31),     bit(31) + 1, bit(32) - 1, bit(32),     bit(32) + 1,
                                         bit(33),     bit(61),     bit(62),     bit(62) + 1, bit(63) - 1, bit(63),
                                         bit(63) + 1, kMax / 3,    kMax - 1,    kMax};

// The buffers of a row on one backend, filled with small integers.
class Side {
 public:
  explicit Side(const std::string& backend) : name(backend), context(shared_context(backend)) {
    for (size_t i = 0; i < kSizeBuffers; ++i) {
      buffers_.emplace_back(context, kSizeBytes);
      handles_.push_back(buffers_.back());
    }
    reset();
  }

  void reset() {
    for (size_t i = 0; i < kSizeBuffers; ++i) {
      std::vector<float> values(kSizeBytes / 4);
      for (size_t j = 0; j < values.size(); ++j) values[j] = given(i, j);
      EXPECT_OK(tuff_copy_htod(context, handles_[i], 0, values.data(), kSizeBytes));
    }
  }

  static float given(size_t buffer, size_t j) { return static_cast<float>((7 * j + 3 * buffer + j / 11) % 5 + 1); }

  struct Answer {
    tuff_status status;
    std::string message;
  };
  Answer ask(const SizeCall& row, const std::vector<uint64_t>& values) {
    const auto begin = std::chrono::steady_clock::now();
    const tuff_status status = row.call(context, handles_.data(), values.data());
    std::string message = status == TUFF_OK ? "" : last_error();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    // Compiling a kernel takes a second or two on a busy CPU.
    EXPECT_LT(took.count(), 30) << "a call without end";
    return {status, std::move(message)};
  }

  std::vector<float> contents() const {
    std::vector<float> all(kSizeBuffers * kSizeBytes / 4);
    for (size_t i = 0; i < kSizeBuffers; ++i) {
      EXPECT_OK(tuff_copy_dtoh(context, all.data() + i * kSizeBytes / 4, handles_[i], 0, kSizeBytes));
    }
    return all;
  }

  const std::string name;
  const tuff_context context;

 private:
  std::vector<OwnBuffer> buffers_;
  std::vector<tuff_buffer> handles_;
};

std::string text_of(const SizeCall& row, const std::vector<uint64_t>& values) {
  std::string text = row.function;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != row.numbers[i].value) text += " " + row.numbers[i].name + "=" + std::to_string(values[i]);
  }
  return text;
}

// An error message names the function, and says something about the argument.
void expect_told(const SizeCall& row, const Side::Answer& answer) {
  const std::string begins = std::string(row.function) + ": ";
  EXPECT_EQ(answer.message.rfind(begins, 0), 0u) << answer.message;
  EXPECT_GT(answer.message.size(), begins.size() + 10) << answer.message;
}

// The same operands on all backends; the first is the reference.
class Sides {
 public:
  static constexpr bool kReferenceOnly = true;
  explicit Sides(bool reference_only = false) {
    sides_.emplace_back("host");  // always, as the reference
    if (reference_only) return;
    for (const std::string& backend : backends()) {
      if (backend != "host") sides_.emplace_back(backend);
    }
  }

  // Returns the reference's status. `everywhere`: every device must support the call.
  tuff_status compare(const SizeCall& row, const std::vector<uint64_t>& values, bool everywhere = false) {
    SCOPED_TRACE(text_of(row, values));
    std::vector<Side::Answer> answers;
    for (Side& side : sides_) answers.push_back(side.ask(row, values));
    bool computed = false;
    for (size_t i = 0; i < answers.size(); ++i) {
      const tuff_status status = answers[i].status, first = answers[0].status;
      computed = computed || status == TUFF_OK;
      if (status != TUFF_OK) expect_told(row, answers[i]);
      // A device may not support sizes that the reference computes, if it says so.
      const bool beyond =
          !everywhere && first == TUFF_OK && (status == TUFF_ERROR_UNSUPPORTED || status == TUFF_ERROR_LIMIT_EXCEEDED);
      EXPECT_TRUE(status == first || beyond)
          << sides_[0].name << " " << tuff_status_name(first) << " " << answers[0].message << "\n"
          << sides_[i].name << " " << tuff_status_name(status) << " " << answers[i].message;
      if (i == 0) {
        EXPECT_TRUE(status == TUFF_OK || status == TUFF_ERROR_INVALID_ARGUMENT || status == TUFF_ERROR_UNSUPPORTED)
            << tuff_status_name(status) << " " << answers[i].message;
      }
    }
    if (computed) compare_results(answers, has_one_result(row.function));
    return answers[0].status;
  }

 private:
  // Sums have at most 1,024 terms, all of one sign where a relative error matters: gamma(1024) is 6e-5, and functions
  // are within a few ULP. The numbers are 1 to 5, so a wrong element is far outside the tolerance.
  static bool alike(float x, float y) {
    if (std::bit_cast<uint32_t>(x) < bit(16) && std::bit_cast<uint32_t>(y) < bit(16)) return x == y;  // indices
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    return x == y || std::fabs(x - y) <= 1e-4f * std::max(1.0f, std::fabs(x));
  }

  // Where a function has several right results, it may write other numbers in the same places. They may happen to be
  // those that were there: at most a sixteenth of them in a buffer.
  void compare_results(const std::vector<Side::Answer>& answers, bool one_result) {
    const std::vector<float> wanted = sides_[0].contents();
    for (size_t i = 1; i < sides_.size(); ++i) {
      if (answers[i].status != answers[0].status) continue;
      const std::vector<float> got = sides_[i].contents();
      size_t wrong = 0, at = 0;
      std::array<size_t, kSizeBuffers> written{}, kept{};  // on the host; of these, left as they were here
      for (size_t j = 0; j < got.size(); ++j) {
        const size_t buffer = j / (kSizeBytes / 4);
        const float given = Side::given(buffer, j % (kSizeBytes / 4));
        written[buffer] += wanted[j] != given;
        if (alike(wanted[j], got[j])) continue;
        if (!one_result && wanted[j] != given) {
          kept[buffer] += got[j] == given;
          continue;
        }
        if (wrong++ == 0) at = j;
      }
      for (size_t buffer = 0; buffer < kSizeBuffers; ++buffer) {
        EXPECT_LE(16 * kept[buffer], written[buffer])
            << "elements of buffer " << buffer << " that " << sides_[i].name << " did not write";
      }
      EXPECT_EQ(wrong, 0u) << "buffer " << at / (kSizeBytes / 4) << " element " << at % (kSizeBytes / 4) << " is "
                           << got[at] << " on " << sides_[i].name << ", " << wanted[at] << " on " << sides_[0].name;
    }
    for (Side& side : sides_) side.reset();
  }

  std::deque<Side> sides_;  // a deque, so that they are not moved
};

std::vector<uint64_t> valid(const SizeCall& row) {
  std::vector<uint64_t> values;
  for (const SizeNumber& number : row.numbers) values.push_back(number.value);
  return values;
}

TEST(SemanticsSizes, EveryRowOfTheTableSucceeds) {
  Sides sides;
  size_t number = 0;
  for (const SizeCall& row : size_calls()) {
    // A device needs a kernel or two for each.
    if (!in_sample(row.function + (" " + std::to_string(number++)), 5)) continue;
    EXPECT_EQ(sides.compare(row, valid(row)), TUFF_OK) << row.function;
  }
}

TEST(SemanticsSizes, AnyNumberInAnyPlaceIsAnsweredAlike) {
  Sides sides;
  for (const SizeCall& row : size_calls()) {
    for (size_t place = 0; place < row.numbers.size(); ++place) {
      for (const uint64_t suspect : kSuspects) {
        std::vector<uint64_t> values = valid(row);
        values[place] = suspect;
        if (!in_sample(text_of(row, values), 12)) continue;
        sides.compare(row, values);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// One size is 0, another is huge: what is not computed needs no memory, and no time. The reference used to allocate by
// sizes of operands that such a call does not read.
TEST(SemanticsSizes, NothingBesideMuchIsComputedAtOnce) {
  Sides sides(Sides::kReferenceOnly);
  for (const SizeCall& row : size_calls()) {
    for (size_t none = 0; none < row.numbers.size(); ++none) {
      for (size_t much = 0; much < row.numbers.size(); ++much) {
        for (const uint64_t size : {bit(31) - 1, bit(40), bit(62) + 1}) {
          std::vector<uint64_t> values = valid(row);
          values[none] = 0;
          if (much != none) values[much] = size;
          if (in_sample(text_of(row, values) + " nothing", 4)) sides.compare(row, values);
        }
      }
    }
  }
}

// Replaces two to four arguments at once. TUFF_TEST_SEED chooses others.
TEST(SemanticsSizes, AnyNumbersInSeveralPlacesAreAnsweredAlike) {
  const char* const given = std::getenv("TUFF_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20;
  SCOPED_TRACE("TUFF_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  Sides sides;
  for (const SizeCall& row : size_calls()) {
    for (int turn = 0; turn < (reduced() ? 50 : 400); ++turn) {
      std::vector<uint64_t> values = valid(row);
      const size_t count = 2 + below(3);
      const bool same = below(2) != 0;  // one value in all places, as for kernels and paddings of three axes
      const uint64_t suspect = kSuspects[below(kSuspects.size())];
      for (size_t i = 0; i < count; ++i) {
        values[below(values.size())] = same ? suspect : kSuspects[below(kSuspects.size())];
      }
      if (!in_sample(text_of(row, values) + " together", 6)) continue;
      sides.compare(row, values);
    }
  }
}

// ---- legal calls with extreme distances -------------------------------------------------------------

const SizeCall& row_of(const char* function, size_t which = 0) {
  for (const SizeCall& row : size_calls()) {
    if (std::strcmp(row.function, function) == 0 && which-- == 0) return row;
  }
  throw std::runtime_error("no such row");
}

void set(const SizeCall& row, std::vector<uint64_t>& values, const std::string& name, uint64_t value) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (row.numbers[i].name == name) {
      values[i] = value;
      return;
    }
  }
  throw std::runtime_error("no number " + name);
}

void set_axes(const SizeCall& row, std::vector<uint64_t>& values, const std::string& name, size_t first,
              std::initializer_list<uint64_t> sizes) {
  for (const uint64_t size : sizes) set(row, values, name + "[" + std::to_string(first++) + "]", size);
}

// The product of the three sizes used to be 2^66. It wrapped to 0, which was divided by, or to more than a CPU driver's
// loop limit, with a loop over the padding.
TEST(SemanticsSizes, PoolingWindowsThatMultiplyBeyond64Bits) {
  Sides sides;
  for (const char* function : {"tuff_max_pool", "tuff_avg_pool"}) {
    const SizeCall& row = row_of(function);
    for (const uint64_t kernel : {bit(23) - 1, bit(21) + 1, bit(29) + 1}) {
      for (const uint64_t in : {uint64_t{1}, uint64_t{2}}) {
        std::vector<uint64_t> values = valid(row);
        const uint64_t padding = kernel / 2;
        set(row, values, "channels", 50);
        set_axes(row, values, "in_shape", 0, {in, 1, 1});
        set_axes(row, values, "kernel", 0, {kernel, kernel, kernel});
        set_axes(row, values, "stride", 0, {1, 1, 1});
        set_axes(row, values, "padding", 0, {padding, padding, padding});
        set_axes(row, values, "out_shape", 0, {in, 1, 1});
        EXPECT_EQ(sides.compare(row, values, true), TUFF_OK);
      }
    }
  }
}

TEST(SemanticsSizes, PoolingOfDilatedWindowsFarInFrontOfTheInput) {
  Sides sides;
  const SizeCall& row = row_of("tuff_max_pool");
  for (const uint64_t kernel : {uint64_t{3}, uint64_t{31}, uint64_t{35}, uint64_t{201}, bit(20) + 1}) {
    for (const uint64_t dilation : {uint64_t{2}, uint64_t{3}, uint64_t{7}}) {
      std::vector<uint64_t> values = valid(row);
      const uint64_t padding = dilation * (kernel / 2);
      set(row, values, "channels", 2);
      set_axes(row, values, "in_shape", 0, {2, 5, 7});
      set_axes(row, values, "out_shape", 0, {2, 5, 7});
      set_axes(row, values, "kernel", 0, {kernel, 1, kernel});
      set_axes(row, values, "dilation", 0, {dilation, 1, dilation});
      set_axes(row, values, "padding", 0, {padding, 0, padding});
      set_axes(row, values, "stride", 0, {1, 1, 1});
      EXPECT_EQ(sides.compare(row, values, true), TUFF_OK);
    }
  }
}

TEST(SemanticsSizes, PoolingOf100000ChannelsInWindowsBeyond64Bits) {
  for (const std::string& backend : backends()) {
    SCOPED_TRACE(backend);
    const tuff_context context = shared_context(backend);
    constexpr uint64_t kChannels = 100000;
    const OwnBuffer input(context, 4 * kChannels), output(context, 4 * kChannels);
    std::vector<float> values(kChannels), got(kChannels);
    for (size_t i = 0; i < kChannels; ++i) values[i] = static_cast<float>(i) - 500;
    ASSERT_OK(tuff_copy_htod(context, input, 0, values.data(), 4 * kChannels));
    tuff_pool_desc desc{};
    desc.struct_size = sizeof desc, desc.dtype = TUFF_F32, desc.spatial = 3;
    desc.input = input, desc.output = output, desc.batch = 1, desc.channels = kChannels;
    for (int i = 0; i < 3; ++i) {
      desc.in_shape[i] = desc.out_shape[i] = desc.stride[i] = 1;
      desc.kernel[i] = bit(23) - 1, desc.padding[i] = bit(22) - 1;
    }
    ASSERT_OK(tuff_max_pool(context, &desc));
    ASSERT_OK(tuff_copy_dtoh(context, got.data(), output, 0, 4 * kChannels));
    EXPECT_EQ(got, values);
  }
}

TEST(SemanticsSizes, AdaptivePoolingToTheLargestNumberIsRefused) {
  Sides sides;
  for (const auto& [function, which] : {std::pair{"tuff_avg_pool", 1}, {"tuff_max_pool", 1}}) {
    const SizeCall& row = row_of(function, static_cast<size_t>(which));
    std::vector<uint64_t> values = valid(row);
    set(row, values, "out_shape[0]", kMax);  // used to be incremented and divided by
    EXPECT_EQ(sides.compare(row, values), TUFF_ERROR_INVALID_ARGUMENT);
  }
}

// Windows with taps, strides and paddings that are far apart, over inputs of a few elements. Each is legal. A device
// that does not support one must return UNSUPPORTED rather than compute with values truncated to 32 bits.
TEST(SemanticsSizes, ConvolutionsAndPoolsThatReachFarBeyondTheirInput) {
  Sides sides;
  for (const uint64_t far : {bit(16) - 1, bit(16) + 1, bit(28), bit(29), bit(30) + 1, bit(31) + 1, bit(32), bit(32) + 1,
                             bit(33), bit(40), bit(61)}) {
    // Two taps, `far` apart, around an element of the input, or strides beyond it.
    struct Form {
      uint64_t taps, stride, dilation, padding;
    };
    for (const Form& form : {Form{3, 1, far, far},
                             {2, far, 1, far / 2},
                             {1, far, 1, far},
                             {1, far, 1, 0},
                             {3, far, far, far},
                             {2, 1, far, far / 2 + 1}}) {
      const uint64_t in = 2, span = form.dilation * (form.taps - 1) + 1, padded = in + 2 * form.padding;
      if (span > padded) continue;
      const uint64_t out = (padded - span) / form.stride + 1;
      if (out > 6) continue;
      // With one group, with several (depthwise), and channels last.
      for (const auto& [which, groups] : {std::pair{0, 1}, {0, 2}, {1, 2}}) {
        const SizeCall& row = row_of("tuff_conv2d_ex", static_cast<size_t>(which));
        std::vector<uint64_t> values = valid(row);
        const uint64_t channels = 2 / static_cast<uint64_t>(groups);
        set_axes(row, values, "in_shape", 0, {1, 2, in, in});
        set_axes(row, values, "filter_shape", 0, {4, channels, form.taps, form.taps});
        set_axes(row, values, "out_shape", 0, {1, 4, out, out});
        set_axes(row, values, "stride", 0, {form.stride, form.stride});
        set_axes(row, values, "padding", 0, {form.padding, form.padding});
        set_axes(row, values, "padding_end", 0, {form.padding, form.padding});
        set_axes(row, values, "dilation", 0, {form.dilation, form.dilation});
        set(row, values, "groups", static_cast<uint64_t>(groups));
        EXPECT_EQ(sides.compare(row, values), TUFF_OK);
      }
      if (2 * form.padding > span || span > 0x3fffffff || form.stride > 0x3fffffff) continue;
      const SizeCall& row = row_of("tuff_max_pool");
      std::vector<uint64_t> values = valid(row);
      set_axes(row, values, "in_shape", 0, {in, in, in});
      set_axes(row, values, "kernel", 0, {form.taps, form.taps, form.taps});
      set_axes(row, values, "out_shape", 0, {out, out, out});
      set_axes(row, values, "stride", 0, {form.stride, form.stride, form.stride});
      set_axes(row, values, "padding", 0, {form.padding, form.padding, form.padding});
      set_axes(row, values, "dilation", 0, {form.dilation, form.dilation, form.dilation});
      EXPECT_EQ(sides.compare(row, values), TUFF_OK);
    }
  }
}

// The padding used to be truncated to 32 bits, so that 2^32 or more became almost none.
TEST(SemanticsSizes, DepthwiseConvolutionWithPaddingBeyond32Bits) {
  constexpr uint64_t kStride = 65535, kStep = 65538, kPadding = kStride * kStep;
  for (const std::string& backend : backends()) {
    SCOPED_TRACE(backend);
    const tuff_context context = shared_context(backend);
    constexpr uint64_t kRows = 2 * kStep + 1;
    const OwnBuffer input(context, 8), filter(context, 8), output(context, 8 * kRows);
    const float values[2] = {3, 5}, weights[2] = {7, 2};
    ASSERT_OK(tuff_copy_htod(context, input, 0, values, 8));
    ASSERT_OK(tuff_copy_htod(context, filter, 0, weights, 8));
    tuff_conv2d_desc desc{};
    desc.struct_size = sizeof desc, desc.dtype = TUFF_F32, desc.groups = 2;
    desc.input = input, desc.filter = filter, desc.output = output;
    for (int i = 0; i < 4; ++i) desc.in_shape[i] = desc.filter_shape[i] = desc.out_shape[i] = 1;
    desc.in_shape[1] = desc.filter_shape[0] = desc.out_shape[1] = 2, desc.out_shape[2] = kRows;
    desc.stride[0] = kStride, desc.padding[0] = kPadding;
    const tuff_status status = tuff_conv2d_ex(context, &desc);
    if (status == TUFF_ERROR_UNSUPPORTED && backend != "host") continue;
    ASSERT_OK(status);
    std::vector<float> wanted(2 * kRows), got(2 * kRows);
    wanted[kStep] = 21, wanted[kRows + kStep] = 10;  // all other windows are in the padding
    ASSERT_OK(tuff_copy_dtoh(context, got.data(), output, 0, 8 * kRows));
    EXPECT_EQ(got, wanted);
  }
}

TEST(SemanticsSizes, TransposedConvolutionsThatReachFar) {
  Sides sides;
  const SizeCall& row = row_of("tuff_conv_transpose2d_ex");
  for (const uint64_t far :
       {bit(15), bit(16) + 1, bit(29), bit(30) + 1, bit(31) + 1, bit(32) + 1, bit(40), bit(62), bit(63) + 1, kMax}) {
    struct Form {
      uint64_t in, taps, stride, dilation, padding, further;
    };
    for (const Form& form : {Form{1, 2, 1, far, far / 2, 0},
                             {1, 1, far, 1, 0, 3},
                             {1, 1, 1, far, 0, 3},
                             {2, 1, far, 1, far / 2, 0},
                             {3, 2, far, 1, far, 0},
                             {1, 3, far, far, far, 0}}) {
      const __uint128_t whole =
          __uint128_t{form.in - 1} * form.stride + __uint128_t{form.taps - 1} * form.dilation + 1 + form.further;
      const __uint128_t around = __uint128_t{form.padding} * 2;
      if (whole > kMax || around > whole || whole - around > 8) continue;
      const auto out = static_cast<uint64_t>(whole - around);
      std::vector<uint64_t> values = valid(row);
      set_axes(row, values, "in_shape", 0, {1, 2, form.in, form.in});
      set_axes(row, values, "filter_shape", 0, {2, 3, form.taps, form.taps});
      set_axes(row, values, "out_shape", 0, {1, 3, out, out});
      set_axes(row, values, "stride", 0, {form.stride, form.stride});
      set_axes(row, values, "padding", 0, {form.padding, form.padding});
      set_axes(row, values, "dilation", 0, {form.dilation, form.dilation});
      set_axes(row, values, "output_padding", 0, {form.further, form.further});
      EXPECT_EQ(sides.compare(row, values), TUFF_OK);
    }
  }
}

TEST(SemanticsSizes, AllocationsOfWhatNoMachineHasAreRefused) {
  for (const std::string& backend : backends()) {
    SCOPED_TRACE(backend);
    const OwnContext context(backend);
    const auto refused = [&] {
      for (const uint64_t bytes : {bit(50), bit(62), bit(63) - 1, bit(63), kMax / 3, kMax - 4096, kMax - 255, kMax - 63,
                                   kMax - 62, kMax - 1, kMax}) {
        SCOPED_TRACE(bytes);
        tuff_buffer buffer = 0;
        std::vector<tuff_status> answers{tuff_alloc(context, bytes, &buffer)};
        for (const uint32_t flags : {TUFF_ALLOC_HOST_VISIBLE, TUFF_ALLOC_UNINITIALIZED, TUFF_ALLOC_HOST_PINNED}) {
          tuff_alloc_desc desc{};
          desc.struct_size = sizeof desc, desc.bytes = bytes, desc.flags = flags;
          answers.push_back(tuff_alloc_ex(context, &desc, &buffer));
        }
        for (const tuff_status status : answers) {
          EXPECT_TRUE(status == TUFF_ERROR_LIMIT_EXCEEDED || status == TUFF_ERROR_OUT_OF_DEVICE_MEMORY ||
                      status == TUFF_ERROR_OUT_OF_HOST_MEMORY)
              << tuff_status_name(status);
        }
        EXPECT_EQ(buffer, TUFF_NULL_HANDLE);
      }
    };
    refused();
    for (const uint64_t bytes : {kMax, kMax - 65535}) {  // more bytes than there are after any address
      alignas(65536) static unsigned char memory[65536];
      tuff_buffer buffer = 0;
      EXPECT_FAILS(tuff_buffer_import_host(context, memory, bytes, &buffer), TUFF_ERROR_INVALID_ARGUMENT,
                   "tuff_buffer_import_host", "bytes");
    }
    for (const uint64_t limit : kSuspects) {
      tuff_limits limits{};
      limits.struct_size = sizeof limits, limits.memory_bytes = limits.wait_milliseconds = limit;
      EXPECT_OK(tuff_context_set_limits(context, &limits));
      if (limit == 0 || limit == kMax || limit == bit(63)) refused();
      if (limit != 0 && limit < bit(22)) continue;
      const OwnBuffer buffer(context, 4096);
      EXPECT_OK(tuff_fill(context, buffer, 0, 4096, "abcd", 4));
      EXPECT_OK(tuff_synchronize(context));  // the limit in milliseconds must not wrap to none
    }
  }
}

}  // namespace
}  // namespace tuff_test::semantics_sizes_test
