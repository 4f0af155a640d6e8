// What the families of benchmarks share: one context, tables of shapes, and a clock that waits for the device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tuff/tuff.hpp"

namespace bench {

using tuff::DType;

// What one call computes and moves; whichever is not zero becomes a rate.
struct Work {
  double flops = 0;
  double bytes = 0;
};

using Repeat = std::function<void()>;

// A benchmark of Tuff: prepare makes buffers and returns one call, or calls of them. Left out where the device
// has too little memory for so many bytes, or would take many seconds over one call.
void add(const std::string& name, Work work, uint64_t memory_bytes, std::function<Repeat(const tuff::Context&)> prepare,
         uint64_t calls = 1);

const tuff::DeviceProperties& device_properties();

// Whether the device is a processor, which large batches and types of 16 bits gain nothing on.
bool on_processor();

// The same work by something else in the same process, such as OpenBLAS.
void add_peer(const std::string& name, Work work, std::function<Repeat()> prepare);
// By something that only begins it: `finish` waits for all of it.
struct Begun {
  Repeat begin, finish;
};
void add_peer(const std::string& name, Work work, uint64_t calls, std::function<Begun()> prepare);

// A buffer of so many values between -1 and 1, or of zeros, as a repetition keeps it.
std::shared_ptr<tuff::Buffer> random_buffer(const tuff::Context& context, uint64_t count, DType dtype = DType::f32);
std::shared_ptr<tuff::Buffer> empty_buffer(const tuff::Context& context, uint64_t count);
std::vector<float> random_values(uint64_t count);
// Rows of a table in no order.
std::vector<uint32_t> scattered_indices(uint64_t count, uint64_t entries);

// The rows of shapes/<name>.txt, each split into words; '#' begins a comment.
std::vector<std::vector<std::string>> read_table(const std::string& name);
uint64_t to_number(const std::string& word);  // "4096", or "2^28"

// "f16" or "bf16" as word `at` of a row; f32 where the row is shorter.
bool is_dtype(const std::string& word);
DType to_dtype(const std::vector<std::string>& row, size_t at);
uint64_t element_bytes(DType dtype);
std::string dtype_suffix(DType dtype);  // for a benchmark's name: "/f16", nothing for f32

// Each family adds its rows.
void add_gemm();
void add_conv();
void add_attention();
void add_elementwise();
void add_reduce();
void add_norm();
void add_shape();
void add_memory();
void add_networks();
void add_calls();
void add_overlap();

}  // namespace bench
