#include "support/size_table.hpp"

#include <initializer_list>
#include <set>
#include <string_view>
#include <type_traits>

#include "fuzz/example.hpp"

namespace tuff_test {
namespace {

constexpr int32_t kF32 = TUFF_F32;
using Numbers = std::vector<SizeNumber>;
unsigned char host_words[2 * kSizeBytes];

// name[0], name[1], …
Numbers array(const std::string& name, std::initializer_list<uint64_t> values) {
  Numbers numbers;
  for (const uint64_t value : values) numbers.push_back({name + "[" + std::to_string(numbers.size()) + "]", value});
  return numbers;
}

Numbers all(std::initializer_list<Numbers> parts) {
  Numbers numbers;
  for (const Numbers& part : parts) numbers.insert(numbers.end(), part.begin(), part.end());
  return numbers;
}

template <typename T>
T sized(int32_t dtype = kF32) {
  T desc{};
  desc.struct_size = sizeof(T);
  if constexpr (requires { desc.dtype; }) desc.dtype = dtype;
  return desc;
}

// Assigns successive values to fields, in the order in which they are named.
class Values {
 public:
  explicit Values(const uint64_t* values) : next_(values) {}
  template <typename... T>
  void into(T&... fields) {
    (put(fields), ...);
  }
  template <typename T>
  void put(T& field) {
    if constexpr (std::is_array_v<T>) {
      for (auto& one : field) put(one);
    } else {
      field = static_cast<T>(*next_++);
    }
  }
  template <typename T>
  void some(T* fields, size_t count) {
    for (size_t i = 0; i < count; ++i) put(fields[i]);
  }

 private:
  const uint64_t* next_;
};

template <typename Desc>
Desc convolution(const tuff_buffer* x) {
  auto desc = sized<Desc>();
  desc.input = x[0], desc.filter = x[1], desc.output = x[2], desc.bias = x[3];
  return desc;
}

template <typename Desc>
void convolution_numbers(Desc& desc, const uint64_t* v) {
  Values values(v);
  values.into(desc.in_shape, desc.filter_shape, desc.out_shape, desc.stride, desc.padding);
  values.into(desc.dilation, desc.padding_end, desc.groups);
}

const Numbers kConv2d = all({array("in_shape", {1, 2, 6, 5}),
                             array("filter_shape", {4, 1, 3, 2}),
                             array("out_shape", {1, 4, 6, 4}),
                             array("stride", {1, 1}),
                             array("padding", {1, 0}),
                             array("dilation", {1, 1}),
                             array("padding_end", {1, 0}),
                             {{"groups", 2}}});
const Numbers kPool = all({{{"batch", 2}, {"channels", 3}},
                           array("in_shape", {5, 4, 6}),
                           array("out_shape", {3, 2, 3}),
                           array("kernel", {3, 2, 2}),
                           array("stride", {2, 2, 2}),
                           array("padding", {1, 0, 0}),
                           array("dilation", {1, 1, 1}),
                           {{"spatial", 3}}});

tuff_pool_desc pool(const tuff_buffer* x, const uint64_t* v) {
  auto desc = sized<tuff_pool_desc>();
  desc.input = x[0], desc.output = x[1];
  Values values(v);
  values.into(desc.batch, desc.channels, desc.in_shape, desc.out_shape, desc.kernel, desc.stride);
  values.into(desc.padding, desc.dilation, desc.spatial);
  return desc;
}

// Forms to which single tests add extreme numbers.
std::vector<SizeCall> windows() {
  return {
      {"tuff_conv2d_ex", kConv2d,
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = convolution<tuff_conv2d_desc>(x);
         desc.asymmetric = 1;
         convolution_numbers(desc, v);
         return tuff_conv2d_ex(s, &desc);
       }},
      {"tuff_conv2d_ex", kConv2d,
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = convolution<tuff_conv2d_desc>(x);
         desc.asymmetric = 1, desc.layout = TUFF_LAYOUT_NHWC, desc.precision = TUFF_PRECISION_ALLOW_WINOGRAD;
         convolution_numbers(desc, v);
         return tuff_conv2d_ex(s, &desc);
       }},
      {"tuff_conv_transpose2d_ex",
       all({array("in_shape", {2, 2, 3, 3}),
            array("filter_shape", {2, 3, 2, 2}),
            array("out_shape", {2, 3, 6, 6}),
            array("stride", {2, 2}),
            array("padding", {0, 0}),
            array("output_padding", {0, 0}),
            array("dilation", {1, 1}),
            {{"groups", 1}}}),
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = convolution<tuff_conv_transpose2d_desc>(x);
         Values values(v);
         values.into(desc.in_shape, desc.filter_shape, desc.out_shape, desc.stride, desc.padding);
         values.into(desc.output_padding, desc.dilation, desc.groups);
         return tuff_conv_transpose2d_ex(s, &desc);
       }},
      {"tuff_max_pool", kPool,
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = pool(x, v);
         desc.indices = x[2];
         return tuff_max_pool(s, &desc);
       }},
      {"tuff_avg_pool", kPool,
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = pool(x, v);
         desc.count_include_pad = 1;
         return tuff_avg_pool(s, &desc);
       }},
      {"tuff_avg_pool",
       all({{{"batch", 2}, {"channels", 3}}, array("in_shape", {5, 6}), array("out_shape", {3, 4}), {{"spatial", 2}}}),
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = sized<tuff_pool_desc>();
         desc.input = x[0], desc.output = x[1], desc.adaptive = 1;
         Values values(v);
         values.into(desc.batch, desc.channels);
         values.some(desc.in_shape, 2), values.some(desc.out_shape, 2), values.put(desc.spatial);
         return tuff_avg_pool(s, &desc);
       }},
      {"tuff_max_pool",
       {{"channels", 3}, {"in_shape[0]", 5}, {"out_shape[0]", 3}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         auto desc = sized<tuff_pool_desc>();
         desc.input = x[0], desc.output = x[1], desc.indices = x[2], desc.adaptive = 1, desc.batch = desc.spatial = 1;
         Values values(v);
         values.into(desc.channels), values.some(desc.in_shape, 1), values.some(desc.out_shape, 1);
         return tuff_max_pool(s, &desc);
       }},
  };
}

// Functions that are no operations.
std::vector<SizeCall> copies() {
  return {
      {"tuff_view",
       {{"offset", 4}, {"bytes", 8}},
       [](tuff_stream, const tuff_buffer* x, const uint64_t* v) {
         tuff_buffer view = 0;
         const tuff_status status = tuff_view(x[0], v[0], v[1], &view);
         if (status == TUFF_OK) tuff_free(view);
         return status;
       }},
      {"tuff_fill",
       {{"offset", 4}, {"bytes", 8}, {"pattern_bytes", 4}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         return tuff_fill(s, x[0], v[0], v[1], "0123456789abcdef", v[2]);
       }},
      {"tuff_copy_htod",
       {{"dst_offset", 4}, {"bytes", 8}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         return tuff_copy_htod(s, x[0], v[0], host_words, v[1]);
       }},
      {"tuff_copy_dtoh",
       {{"src_offset", 4}, {"bytes", 8}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         static unsigned char target[2 * kSizeBytes];
         return tuff_copy_dtoh(s, target, x[0], v[0], v[1]);
       }},
      {"tuff_copy_dtod",
       {{"dst_offset", 4}, {"src_offset", 8}, {"bytes", 12}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         return tuff_copy_dtod(s, x[0], v[0], x[1], v[1], v[2]);
       }},
      {"tuff_copy_peer",
       {{"dst_offset", 64}, {"src_offset", 8}, {"bytes", 12}},
       [](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
         return tuff_copy_peer(s, x[0], v[0], s, x[0], v[1], v[2]);
       }},
  };
}

// How many of the call's sizes, strides and other integers are not zero; an array counts as one.
double numbers_in_use(const tuff_fuzz::Draft& draft) {
  const std::span<const tuff_fuzz::Place> places = draft.call.function().places;
  double used = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const tuff_fuzz::Slot& slot = draft.call.slot(i);
    bool zero = true;
    for (size_t j = 0; j < slot.count; ++j) zero = zero && draft.call.value(i, j) == 0;
    used += places[i].kind == tuff_fuzz::Kind::number && !slot.null && !zero;
  }
  return used;
}

// Every operation with as many of its operands and numbers as possible, and with three axes if it takes any number.
const std::vector<tuff_fuzz::Example>& all_operands() {
  static const std::vector<tuff_fuzz::Example> examples = tuff_fuzz::best_examples([](const tuff_fuzz::Draft& draft) {
    if (!fits(draft, kSizeBuffers, kSizeBytes)) return tuff_fuzz::kUnusable;
    std::set<std::string_view> names;
    for (const tuff_fuzz::Operand& operand : draft.operands) names.insert(operand.name);
    const bool axes = !draft.has("rank") || draft.call.get("rank") == 3;
    return 1000.0 * static_cast<double>(names.size()) + (axes ? 500 : 0) + 30 * numbers_in_use(draft) +
           plainness(draft);
  });
  return examples;
}

}  // namespace

const std::vector<SizeCall>& size_calls() {
  static const std::vector<SizeCall> calls = [] {
    std::vector<SizeCall> result;
    for (const auto& part : {windows(), copies()}) result.insert(result.end(), part.begin(), part.end());
    for (const tuff_fuzz::Example& example : all_operands()) {
      std::vector<SizeNumber> numbers;
      std::vector<uint64_t> all;
      std::vector<size_t> varied;
      for (const tuff_fuzz::Example::Number& number : example.numbers()) {
        // Says what a buffer holds: with other contents results are not specified.
        if (number.name != "levels_ready") {
          varied.push_back(all.size());
          numbers.push_back({number.name, number.value});
        }
        all.push_back(number.value);
      }
      result.push_back({example.function(), numbers,
                        [&example, all, varied](tuff_stream s, const tuff_buffer* x, const uint64_t* v) {
                          std::vector<uint64_t> values = all;
                          for (size_t i = 0; i < varied.size(); ++i) values[varied[i]] = v[i];
                          return example.call(s, x, values.data());
                        }});
    }
    return result;
  }();
  return calls;
}

}  // namespace tuff_test
