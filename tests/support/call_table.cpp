#include "support/call_table.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <set>
#include <string_view>

#include "fuzz/numbers.hpp"

namespace tuff_test {
namespace {

// Each thread's own: tests make these calls from several threads at once.
thread_local uint64_t result_size;
thread_local unsigned char host_bytes[64];

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

// Every operation with the operands that it requires, and with the others.
const std::vector<tuff_fuzz::Example>& described_calls() {
  static const std::vector<tuff_fuzz::Example> examples =
      tuff_fuzz::covering_examples([](const tuff_fuzz::Draft& draft) {
        if (!fits(draft, kCallBuffers, kCallBytes - 2)) return tuff_fuzz::kUnusable;
        std::set<std::string_view> names;
        double few = 0;
        bool writes = false;
        for (const tuff_fuzz::Operand& operand : draft.operands) {
          few += operand.elements <= 2;
          writes = writes || operand.written;
          names.insert(operand.name);
        }
        if (!writes) return tuff_fuzz::kUnusable;
        const double arrays = std::min<double>(static_cast<double>(draft.operands.size()), 4);
        return -1e5 * few - 1000.0 * static_cast<double>(names.size()) + arrays + plainness(draft);
      });
  return examples;
}

}  // namespace

CallBuffer::CallBuffer(const tuff_fuzz::Example::Buffer& described)
    : name(described.name.c_str()), element(tuff_fuzz::size_of(described.dtype)), bytes(described.elements * element) {}

std::vector<std::vector<uint8_t>> BufferCall::contents(const std::function<double()>& number) const {
  if (example != nullptr) return example->contents(kCallBytes, number);
  std::vector<std::vector<uint8_t>> all;
  for (size_t i = 0; i < buffers.size(); ++i) {
    std::vector<float> values(kCallBytes / 4);
    for (float& value : values) value = static_cast<float>(number());
    std::memcpy(all.emplace_back(kCallBytes).data(), values.data(), kCallBytes);
  }
  return all;
}

const std::vector<BufferCall>& buffer_calls() {
  static const std::vector<BufferCall> calls = [] {
    std::vector<BufferCall> all = written_calls();
    std::map<std::string_view, std::set<std::string_view>> required;  // by function: the buffers of its first row
    for (const tuff_fuzz::Example& example : described_calls()) {
      BufferCall row{
          example.function(), {}, true, [&example](tuff_stream s, const tuff_buffer* x) { return example.call(s, x); }};
      for (const tuff_fuzz::Example::Buffer& buffer : example.buffers()) row.buffers.emplace_back(buffer);
      std::set<std::string_view>& names = required[row.function];
      row.first = names.empty();
      row.example = &example;
      for (CallBuffer& buffer : row.buffers) {
        if (row.first) names.insert(buffer.name);
        buffer.optional = !names.contains(buffer.name);
      }
      all.push_back(std::move(row));
    }
    return all;
  }();
  return calls;
}

}  // namespace tuff_test
