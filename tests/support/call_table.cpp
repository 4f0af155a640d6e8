#include "support/call_table.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>

#include "fuzz/example.hpp"

namespace tuff_test {
namespace {

uint64_t result_size;
unsigned char host_bytes[64];

template <typename T>
T operation() {
  T desc{};
  desc.struct_size = sizeof(T);
  desc.dtype = TUFF_F32;
  return desc;
}

// Functions that are no operations, and forms of operations with other required operands.
std::vector<BufferCall> written_calls() {
  return {
      {"tuff_view",
       {"buffer"},
       false,
       [](tuff_stream, const tuff_buffer* x) {
         tuff_buffer view = 0;
         const tuff_status status = tuff_view(x[0], 4, 8, &view);
         if (status == TUFF_OK) tuff_free(view);
         return status;
       }},
      {"tuff_buffer_size",
       {"buffer"},
       false,
       [](tuff_stream, const tuff_buffer* x) { return tuff_buffer_size(x[0], &result_size); }},
      {"tuff_copy_htod",
       {"dst"},
       true,
       [](tuff_stream s, const tuff_buffer* x) { return tuff_copy_htod(s, x[0], 4, host_bytes, 8); }},
      {"tuff_copy_dtoh",
       {"src"},
       true,
       [](tuff_stream s, const tuff_buffer* x) { return tuff_copy_dtoh(s, host_bytes, x[0], 4, 8); }},
      {"tuff_copy_dtod",
       {"dst", "src"},
       true,
       [](tuff_stream s, const tuff_buffer* x) { return tuff_copy_dtod(s, x[0], 4, x[1], 8, 12); }},
      {"tuff_fill",
       {"buffer"},
       true,
       [](tuff_stream s, const tuff_buffer* x) { return tuff_fill(s, x[0], 4, 8, "abcd", 4); }},
      {"tuff_batched_gemm_ex",
       {"a_array[0]", "b_array[0]", "c_array[0]"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_batched_gemm_desc>();
         desc.m = 3, desc.n = 4, desc.k = 5, desc.alpha = 1;
         desc.a_array = x, desc.b_array = x + 1, desc.c_array = x + 2, desc.batch_count = 1;
         return tuff_batched_gemm_ex(s, &desc);
       }},
      {"tuff_layer_norm_ex",
       {"input", "residual", "output"},
       true,
       [](tuff_stream s, const tuff_buffer* x) {
         auto desc = operation<tuff_layer_norm_desc>();
         desc.rows = 3, desc.cols = 8, desc.epsilon = 1e-5;
         desc.input = x[0], desc.residual = x[1], desc.output = x[2];
         // Without a residual the call would be valid too; a sum without a residual is not.
         if (x[1] == TUFF_NULL_HANDLE) desc.sum = x[3];
         return tuff_layer_norm_ex(s, &desc);
       }},
  };
}

// Every operation with its required operands only.
const std::vector<tuff_fuzz::Example>& required_operands() {
  static const std::vector<tuff_fuzz::Example> examples = tuff_fuzz::best_examples([](const tuff_fuzz::Draft& draft) {
    // A view that is 2 bytes shorter or only 8 bytes long must fit in one way and not in the other.
    if (!fits(draft, kCallBuffers, kCallBytes - 2)) return tuff_fuzz::kUnusable;
    std::set<std::string_view> names;
    for (const tuff_fuzz::Operand& operand : draft.operands) {
      if (operand.elements <= 2) return tuff_fuzz::kUnusable;
      names.insert(operand.name);
    }
    return -1000.0 * static_cast<double>(names.size()) + static_cast<double>(draft.operands.size()) + plainness(draft);
  });
  return examples;
}

}  // namespace

const std::vector<BufferCall>& buffer_calls() {
  static const std::vector<BufferCall> calls = [] {
    std::vector<BufferCall> all = written_calls();
    for (const tuff_fuzz::Example& example : required_operands()) {
      std::vector<const char*> names;
      for (const tuff_fuzz::Example::Buffer& buffer : example.buffers()) names.push_back(buffer.name.c_str());
      all.push_back({example.function(), names, true,
                     [&example](tuff_stream s, const tuff_buffer* x) { return example.call(s, x); }});
    }
    return all;
  }();
  return calls;
}

}  // namespace tuff_test
