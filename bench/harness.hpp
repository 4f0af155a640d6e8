// Shared by all benchmark families: one context, tables of shapes, and timing that waits for the device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tuff/tuff.hpp"

namespace bench {

using tuff::DType;

// The arithmetic and memory traffic of one call; each that is not zero becomes a rate.
struct Work {
  double flops = 0;
  double bytes = 0;
};

using Repeat = std::function<void()>;

// Adds a benchmark of Tuff. prepare creates the buffers and returns a function that makes `calls` calls. Skipped if
// memory_bytes exceeds half of the device's memory, or if one call is expected to take too long.
void add(const std::string& name, Work work, uint64_t memory_bytes, std::function<Repeat(const tuff::Context&)> prepare,
         uint64_t calls = 1);

const tuff::DeviceProperties& device_properties();

// True for CPU devices and the host backend, which gain nothing from large batches and 16-bit types.
bool on_cpu();

// Adds a peer: the same work by something else in the same process, such as OpenBLAS.
void add_peer(const std::string& name, Work work, std::function<Repeat()> prepare);
// A peer whose calls are asynchronous: `finish` waits for all of them.
struct Begun {
  Repeat begin, finish;
};
void add_peer(const std::string& name, Work work, uint64_t calls, std::function<Begun()> prepare);

// A buffer of `count` values between -1 and 1, or of zeros, shared with the repetitions that use it.
std::shared_ptr<tuff::Buffer> random_buffer(const tuff::Context& context, uint64_t count, DType dtype = DType::f32);
std::shared_ptr<tuff::Buffer> empty_buffer(const tuff::Context& context, uint64_t count);
std::vector<float> random_values(uint64_t count);
// Row indices of a table in scattered order.
std::vector<uint32_t> scattered_indices(uint64_t count, uint64_t entries);

// The rows of shapes/<name>.txt, split into words; '#' begins a comment.
std::vector<std::vector<std::string>> read_table(const std::string& name);
uint64_t to_number(const std::string& word);  // "4096", or "2^28"

// Word `at` of a row as a type, such as "f16" or "bf16"; f32 if the row is shorter.
bool is_dtype(const std::string& word);
DType to_dtype(const std::vector<std::string>& row, size_t at);
uint64_t element_bytes(DType dtype);
std::string dtype_suffix(DType dtype);  // for a benchmark's name: "/f16", empty for f32

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
