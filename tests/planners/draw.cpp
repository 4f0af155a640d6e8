#include "planners/draw.hpp"

#include <algorithm>

#include "planning/element_type.hpp"
#include "planning/status.hpp"

namespace tuff_test {

uint64_t Numbers::mixed(uint64_t x) {
  const auto multiplied = [](uint64_t a, uint64_t b) {  // wraps around intentionally
    uint64_t result = 0;
    (void)__builtin_mul_overflow(a, b, &result);
    return result;
  };
  x = multiplied(x ^ (x >> 30), 0xbf58476d1ce4e5b9u);
  x = multiplied(x ^ (x >> 27), 0x94d049bb133111ebu);
  return x ^ (x >> 31);
}

uint64_t times(uint64_t a, uint64_t b) {
  uint64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? ~uint64_t{0} : result;
}

uint64_t plus(uint64_t a, uint64_t b) {
  uint64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? ~uint64_t{0} : result;
}

uint64_t product(std::span<const uint64_t> sizes) {
  uint64_t result = 1;
  for (const uint64_t size : sizes) {
    if (size == 0) return 0;
    result = times(result, size);
  }
  return result;
}

// A device that Vulkan permits and Tuff accepts (runtime/vulkan/device_requirements.cpp): each limit is at its minimum,
// or has a value of real devices.
TestDevice draw_device(Numbers& numbers) {
  TestDevice device;
  tuff::DeviceTraits& t = device.traits;
  t.cpu = numbers.coin(3);
  t.subgroup_size = numbers.one_of<uint32_t>({4, 8, 8, 16, 32, 32, 32, 64, 64, 128});
  t.subgroup_arithmetic = t.subgroup_shuffle = t.subgroup_ballot = true;  // Tuff requires all of them
  t.cores = numbers.one_of<uint32_t>({0, 1, 2, static_cast<uint32_t>(numbers.below(201)), 16, 100, 132, 200});
  t.max_invocations = numbers.one_of<uint32_t>({128, 128, 192, 256, 256, 384, 512, 896, 1024, 1024, 1024, 1536, 2048});
  const uint32_t x = numbers.one_of<uint32_t>({128, t.max_invocations, t.max_invocations, 1024, 2048});
  t.max_local_size[0] = std::max(x, 128u);
  t.max_local_size[1] = numbers.one_of<uint32_t>({128, 1024});
  t.max_local_size[2] = 64;
  const uint32_t groups = numbers.one_of<uint32_t>({65535, 65535, 0x7fffffff, 0xffffffff});
  t.max_groups[0] = groups;
  t.max_groups[1] = t.max_groups[2] = numbers.one_of<uint32_t>({65535, groups});
  t.shared_bytes =
      numbers.one_of<uint32_t>({16 << 10, 16 << 10, 32 << 10, 48 << 10, 48 << 10, 64 << 10, 100 << 10, 227 << 10});
  t.push_bytes = numbers.one_of<uint32_t>({128, 256});
  t.max_range = numbers.one_of<uint64_t>({1u << 27, 1u << 27, 1u << 30, 0x7fffffff, 0xffffffff});
  device.slack = numbers.one_of<uint64_t>({4, 16, 64, 256});
  t.addresses = !numbers.coin(4);
  if (t.addresses) {
    t.tiles_by_addresses = !t.cpu || numbers.coin();
    t.streams_by_addresses = !t.cpu || numbers.coin();
    t.packed_by_addresses = true;
    if (numbers.coin(8)) t.tiles_by_addresses = t.streams_by_addresses = t.packed_by_addresses = false;
  }
  t.streams_by_words = t.cpu && numbers.coin();
  t.storage16 = !numbers.coin(8);
  t.storage8 = !numbers.coin(8);
  t.f16 = t.storage16 && numbers.coin();
  t.rounds_f16 = t.f16 && numbers.coin();
  t.f64 = !numbers.coin(4);
  t.int64 = t.addresses || numbers.coin();
  const auto shape = [&](uint32_t m, uint32_t n, uint32_t k, int32_t in, int32_t out) {
    t.matrix_shapes[t.matrix_shape_count++] = {m, n, k, in, in, out};
  };
  if (numbers.coin()) {
    if (numbers.coin(4)) shape(8, 8, 16, TUFF_F16, TUFF_F32);
    if (numbers.coin(4)) shape(16, 8, 16, TUFF_F16, TUFF_F32);
    if (numbers.coin(4)) shape(16, 16, 16, TUFF_F16, TUFF_F16);
    if (!numbers.coin(4)) shape(16, 16, 16, TUFF_F16, TUFF_F32);
    if (numbers.coin()) shape(16, 16, 16, TUFF_BF16, TUFF_F32);
    if (numbers.coin()) shape(16, 16, 32, TUFF_I8, TUFF_I32);
    if (numbers.coin(4)) shape(16, 16, 16, TUFF_I8, TUFF_I32);
    if (numbers.coin(4)) shape(8, 8, 32, TUFF_I8, TUFF_I32);
  }
  t.hopper = !t.cpu && t.addresses && t.storage16 && numbers.coin(4);
  device.probes = numbers.coin();
  return device;
}

uint64_t Call::size() {
  const uint64_t size = draw_size();
  largest_ = std::max(largest_, size);
  return size;
}

uint64_t Call::draw_size() {
  if (large_ && numbers.coin()) {
    const uint64_t power = uint64_t{1} << (16 + numbers.below(22));
    return numbers.coin() ? power - 1 + numbers.below(3) : power / 2 * (2 + numbers.below(7));
  }
  const uint64_t kind = numbers.below(100);
  if (kind < 62) return numbers.below(34);
  if (kind < 84) {
    const uint64_t power = uint64_t{1} << numbers.below(15);
    return power - 1 + numbers.below(3);
  }
  if (kind < 94)
    return numbers.one_of<uint64_t>({37, 41, 61, 97, 127, 211, 509, 997, 1009, 4093, 9973, 65537, 100'003});
  if (kind < 97) return 1 + numbers.below(3000);
  const uint64_t power = uint64_t{1} << (15 + numbers.below(26));
  return numbers.coin()
             ? numbers.one_of<uint64_t>({uint64_t{1} << 31, (uint64_t{1} << 31) - 1, uint64_t{1} << 32,
                                         (uint64_t{1} << 32) + 1, (uint64_t{1} << 30) + 1, uint64_t{1} << 40})
             : power - 1 + numbers.below(3);
}

int32_t Call::float_type() { return numbers.one_of<int32_t>({TUFF_F32, TUFF_F16, TUFF_BF16}); }
int32_t Call::any_type() {
  return numbers.one_of<int32_t>({TUFF_F32, TUFF_F16, TUFF_BF16, TUFF_F64, TUFF_I32, TUFF_U32, TUFF_I8, TUFF_U8,
                                  TUFF_I64, TUFF_U64, TUFF_I16, TUFF_U16, TUFF_BOOL, TUFF_F8_E4M3, TUFF_F8_E5M2,
                                  TUFF_C64, TUFF_C128});
}

int32_t Call::type_of(tuff::ElementTypes types) {
  for (;;) {
    if (const int32_t dtype = any_type(); types.has(dtype)) return dtype;
  }
}

const tuff::Buffer* Call::operand(const char* name, uint64_t elements, uint64_t element, bool output) {
  const auto memory = std::make_shared<Memory>();
  tuff::Buffer& buffer = buffers_.emplace_back();
  uint64_t offset = 0;
  if (buffers_.size() == 1) aligned_ = numbers.coin(3);
  if (!aligned_ && numbers.coin()) offset = numbers.below(34) * element;
  if (numbers.coin(3)) offset += 16 * numbers.below(5);
  if (numbers.coin(32)) offset += uint64_t{1} << numbers.one_of({31, 32, 33});
  const uint64_t wanted = times(elements, element), bytes = std::min(wanted, kMaxOperandBytes);
  uint64_t slack = numbers.coin(4) ? numbers.below(40) : 0;
  if (bytes < wanted) slack = 0;  // the call is refused, and must not become valid by them
  memory->name = name;
  memory->begin = offset;
  // Bytes after the last element belong to the buffer, but no kernel may be told about them.
  memory->end = offset + bytes;
  memory->element = element;
  memory->output = output;
  memory->has_to_be_read = !output;
  buffer.allocation = memory;
  buffer.offset = offset;
  buffer.bytes = bytes + slack;
  if (tells_) {
    text += fmt::format(" {}=({} of {} bytes at {}{})", name, elements, element, offset,
                        slack != 0 ? fmt::format(", {} more", slack) : "");
  }
  return &buffer;
}

const tuff::Buffer* Call::output(const char* name, uint64_t elements, uint64_t element, bool whole) {
  const tuff::Buffer* const buffer = operand(name, elements, element, true);
  if (whole) has_to_be(buffer, 0, elements);
  return buffer;
}

void Call::has_to_be(const tuff::Buffer* output, uint64_t first, uint64_t elements) {
  Memory& memory = dynamic_cast<Memory&>(*output->allocation);
  const uint64_t begin = memory.begin + times(first, memory.element);
  memory.has_to_be.push_back({begin, plus(begin, times(elements, memory.element))});
}

const tuff::Buffer* Call::output_or(const tuff::Buffer* same, const char* name, uint64_t elements, uint64_t element,
                                    bool whole) {
  if (same == nullptr || !numbers.coin(4)) return output(name, elements, element, whole);
  Memory& memory = dynamic_cast<Memory&>(*same->allocation);
  if (memory.end - memory.begin != std::min(times(elements, element), kMaxOperandBytes)) {
    return output(name, elements, element, whole);
  }
  memory.output = true;
  if (tells_) text += fmt::format(" {}={}", name, memory.name);
  if (whole) has_to_be(same, 0, elements);
  return same;
}

void Call::not_used(const tuff::Buffer* operand) {
  read_partly(operand);
  if (operand != nullptr) dynamic_cast<Memory&>(*operand->allocation).unused = true;
}

void Call::read_partly(const tuff::Buffer* input) {
  if (input != nullptr) dynamic_cast<Memory&>(*input->allocation).has_to_be_read = false;
}

void Call::has_to_read(const tuff::Buffer* input, uint64_t first, uint64_t elements) {
  Memory& memory = dynamic_cast<Memory&>(*input->allocation);
  const uint64_t begin = plus(memory.begin, times(first, memory.element));
  const uint64_t end = plus(begin, times(elements, memory.element));
  if (end <= memory.end) memory.parts_to_be_read.push_back({begin, end});
}

uint64_t Call::bytes() const {
  uint64_t sum = 0;
  for (const tuff::Buffer& buffer : buffers_) sum += buffer.bytes;
  return sum;
}

std::string Call::unwritten() const {
  for (const tuff::Buffer& buffer : buffers_) {
    const Memory& memory = dynamic_cast<const Memory&>(*buffer.allocation);
    for (const Memory::Range& range : memory.has_to_be) {
      if (!memory.written.holds(range.begin, range.end)) {
        return fmt::format("bytes {} to {} of {}", range.begin - memory.begin, range.end - memory.begin, memory.name);
      }
    }
  }
  return {};
}

// Whether the check accepts the call as it is now; `should` says what is expected.
std::string Call::accepted(const char* what, const Memory& memory, bool should) {
  std::string refusal;
  try {
    check();
  } catch (const tuff::Error& error) {
    refusal = error.what();
  }
  if (refusal.empty() == should) return {};
  return should ? fmt::format("{} {}, and the call is refused: {}", memory.name, what, refusal)
                : fmt::format("{} {}, and the call is accepted", memory.name, what);
}

std::string Call::misused() {
  constexpr uint64_t kFar = uint64_t{1} << 52;  // room in front of an operand
  std::string problem;
  const auto expect = [&](const char* what, const Memory& memory, bool should) {
    if (problem.empty()) problem = accepted(what, memory, should);
  };
  const auto is_written = [](const tuff::Buffer& buffer) {
    const Memory& memory = dynamic_cast<const Memory&>(*buffer.allocation);
    return memory.output && memory.end != memory.begin;
  };
  if (std::none_of(buffers_.begin(), buffers_.end(), is_written)) return {};  // then no operand is needed
  for (tuff::Buffer& buffer : buffers_) {
    const Memory& memory = dynamic_cast<const Memory&>(*buffer.allocation);
    const uint64_t bytes = memory.end - memory.begin, element = memory.element;
    if (bytes == 0 || memory.unused) continue;
    const tuff::Buffer kept = buffer;
    buffer.bytes = bytes;
    expect("has no byte to spare", memory, true);
    buffer.bytes = bytes - 1;
    expect("is one byte too short", memory, false);
    buffer = kept;
    if (element > 1) {
      buffer.offset = kept.offset + element / 2;
      expect("starts between two elements", memory, false);
    }
    buffer = kept;
    for (tuff::Buffer& output : buffers_) {
      const Memory& other = dynamic_cast<const Memory&>(*output.allocation);
      const uint64_t size = other.end - other.begin;
      if (&output == &buffer || !other.output || size == 0 || other.unused || buffer.allocation == output.allocation) {
        continue;
      }
      const tuff::Buffer own = output;
      output.offset = kFar;
      buffer.allocation = output.allocation;
      buffer.offset = (kFar + size - 1) / element * element;
      // For one element both are the same range, which some operations allow.
      if (buffer.offset != kFar) expect("begins before an output ends", memory, false);
      buffer.offset = (kFar + size + element - 1) / element * element;
      expect("begins where an output ends", memory, true);
      buffer.offset = (kFar - bytes + other.element - 1) / element * element + element;
      // The last element of a batch's residual may be its matrix's only one.
      const bool same = buffer.offset + bytes == kFar + size;
      if (buffer.offset + bytes > kFar && buffer.offset != kFar && !same) {
        expect("ends after an output begins", memory, false);
      }
      buffer.offset = (kFar - bytes) / element * element;
      expect("ends where an output begins", memory, true);
      buffer = kept, output = own;
    }
  }
  return problem;
}

std::string Call::unread() const {
  for (const tuff::Buffer& buffer : buffers_) {
    const Memory& memory = dynamic_cast<const Memory&>(*buffer.allocation);
    if (memory.has_to_be_read && !memory.read.holds(memory.begin, memory.end)) return memory.name;
    for (const Memory::Range& range : memory.parts_to_be_read) {
      if (!memory.read.holds(range.begin, range.end)) {
        return fmt::format("{}, at {} to {}", memory.name, range.begin - memory.begin, range.end - memory.begin);
      }
    }
  }
  return {};
}

Shape& draw_shape(Call& call, uint32_t rank) {
  Numbers& n = call.numbers;
  Shape shape;
  shape.rank = rank != 0   ? rank
               : n.coin(4) ? static_cast<uint32_t>(1 + n.below(8))
                           : static_cast<uint32_t>(1 + n.below(4));
  shape.axis = static_cast<uint32_t>(n.below(shape.rank));
  for (uint32_t i = 0; i < shape.rank; ++i) {
    const bool few = shape.rank > 2 && !n.coin(shape.rank);
    shape.sizes[i] = few ? 1 + n.below(n.coin() ? 3 : 9) : call.size();
  }
  call.tell("shape", shape.span());
  call.tell("axis", shape.axis);
  return call.keep(shape);
}

}  // namespace tuff_test
