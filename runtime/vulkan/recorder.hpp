// What a planner sees of the device: traits to choose by, and a recorder to append dispatches to.
//
// A planner runs with its context's lock held (VulkanBackend takes it), on arguments that are checked.
// It fills a KernelRequest (which GLSL, with which defines and constants) and a Dispatch (operands,
// parameters, groups) and calls Recorder::dispatch. The recorder finds or builds the pipeline, decides
// how operands are bound, adds a barrier where byte ranges conflict, and submits when enough work
// is gathered. Nothing here shows Vulkan.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime/buffer.hpp"
#include "runtime/status.hpp"
#include "tuff/tuff.h"

namespace tuff {

class TuningTable;

// Planners fill tables of fixed size, so that a look-up allocates nothing.
inline void require_room(uint32_t count, uint32_t most, const char* what) {
  if (count >= most) fail(TUFF_ERROR_INTERNAL, "a kernel has more than {} {}", most, what);
}

// One GLSL source, embedded at build from kernels/<family>/<name>.comp as tuff::shaders::<name>.
struct KernelSource {
  const char* name;
  const char* glsl;
};

// One product that a subgroup's matrix units make: m x n x k elements of types a, b (inputs) and c (sums).
struct MatrixShape {
  uint32_t m, n, k;
  int32_t a, b, c;  // dtypes
};

// What the device reports; constant for the life of a context.
struct DeviceTraits {
  bool cpu = false;  // a CPU-type device: registers and long runs pay, shared memory and barriers do not
  uint32_t subgroup_size = 1;
  bool subgroup_arithmetic = false, subgroup_shuffle = false, subgroup_ballot = false;
  uint32_t cores = 0;  // multiprocessors or hardware threads; 0 if unknown
  uint32_t max_invocations = 128;
  uint32_t max_local_size[3] = {128, 128, 64};
  uint32_t max_groups[3] = {65535, 65535, 65535};
  uint32_t shared_bytes = 16384;
  uint32_t push_bytes = 128;
  uint64_t max_range = 1u << 27;             // bytes that one descriptor can span
  bool addresses = false;                    // buffer device addresses can be used
  bool streams_by_words = false;             // a processor: 16 bytes as four numbers of 32 bits, not two of 64
  bool storage16 = false, storage8 = false;  // elements of 16 and 8 bits in buffers, converted where they are read
  bool f16 = false, f64 = false;             // arithmetic
  bool rounds_f16 = false;  // conversions to f16 can be told to round to nearest even and to keep denormals
  // What the matrix units multiply, for kernels that ask for KernelRequest::matrices().
  std::array<MatrixShape, 32> matrix_shapes{};
  uint32_t matrix_shape_count = 0;
  // 16 x 16 x 16 products of this type are among them, with sums in f32.
  bool multiplies_squares(int32_t dtype) const {
    return std::any_of(matrix_shapes.begin(), matrix_shapes.begin() + matrix_shape_count,
                       [dtype](const MatrixShape& s) {
                         return s.m == 16 && s.n == 16 && s.k == 16 && s.a == dtype && s.b == dtype && s.c == TUFF_F32;
                       });
  }
  // Which way of binding kernels use, by their kind: see binding.hpp.
  bool streams_by_addresses = false, tiles_by_addresses = false, packed_by_addresses = false;
};

// The subgroup matrices of a kernel, by their inputs' type.
enum class Matrices : uint8_t { none, f16, bf16, int8 };

// How a kernel goes through memory, which decides how its operands are best bound: it reads some of it again and again;
// each element about once; or what was packed for it, at addresses that are the same for all lanes.
enum class Reads : uint8_t { tiles, streams, packed };

// Which kernel: source, #defines (integers) and specialisation constants. Small, fixed size, hashable.
class KernelRequest {
 public:
  static constexpr uint32_t kMaxDefines = 26, kMaxConstants = 12;
  struct Define {
    const char* name;  // a string literal
    int64_t value;
  };
  struct Constant {
    uint32_t id, value;
  };

  explicit KernelRequest(const KernelSource& source) : source_(&source) {}
  KernelRequest(const KernelRequest& other) { *this = other; }
  KernelRequest& operator=(const KernelRequest& other) {
    source_ = other.source_;
    define_count_ = other.define_count_;
    constant_count_ = other.constant_count_;
    std::copy_n(other.defines_.begin(), define_count_, defines_.begin());
    std::copy_n(other.constants_.begin(), constant_count_, constants_.begin());
    wide_ = other.wide_;
    reads_ = other.reads_;
    matrices_ = other.matrices_;
    return *this;
  }

  // #define name value. Use for what changes types or code shape.
  KernelRequest& define(const char* name, int64_t value) {
    require_room(define_count_, kMaxDefines, "defines");
    defines_[define_count_++] = {name, value};
    return *this;
  }
  // layout(constant_id = id) const uint/int/bool. Use for tile shapes and workgroup sizes.
  KernelRequest& constant(uint32_t id, uint32_t value) {
    require_room(constant_count_, kMaxConstants, "constants");
    constants_[constant_count_++] = {id, value};
    return *this;
  }
  // Element indices of 2^31 or more occur: 64-bit index arithmetic (TUFF_WIDE, implies addresses).
  KernelRequest& wide(bool on) {
    wide_ = on;
    return *this;
  }

  // The kernel reads and writes each element about once: bound as this driver streams fastest.
  KernelRequest& streaming() {
    reads_ = Reads::streams;
    return *this;
  }
  KernelRequest& packed() {
    reads_ = Reads::packed;
    return *this;
  }

  // Which subgroup matrices the kernel uses (kernels/common/matrix.glsl).
  KernelRequest& matrices(Matrices kind) {
    matrices_ = kind;
    return *this;
  }

  const KernelSource& source() const { return *source_; }
  const Define* defines() const { return defines_.data(); }
  uint32_t define_count() const { return define_count_; }
  const Constant* constants() const { return constants_.data(); }
  uint32_t constant_count() const { return constant_count_; }
  bool is_wide() const { return wide_; }
  Reads reads() const { return reads_; }
  Matrices matrices() const { return matrices_; }

 private:
  const KernelSource* source_;
  // As far as the counts go: every call makes one of these.
  std::array<Define, kMaxDefines> defines_;
  std::array<Constant, kMaxConstants> constants_;
  uint32_t define_count_ = 0, constant_count_ = 0;
  bool wide_ = false;
  Reads reads_ = Reads::tiles;
  Matrices matrices_ = Matrices::none;
};

// What a kernel's text depends on beside the request: how a dispatch reaches it.
struct KernelForm {
  uint32_t operands = 0;
  bool addresses = false;
  bool group_rows = false;  // Dispatch::groups_linear took more than one row
  bool operator==(const KernelForm&) const = default;
};

enum class Access : uint8_t { read = 1, write = 2, read_write = 3 };

// One launch. Operand i is slot i of the shader (TUFF_READ(i, …)). Push parameters follow the
// TUFF_BASES of the shader's push block, which take 8 bytes for each operand.
class Dispatch {
 public:
  static constexpr uint32_t kMaxOperands = 11, kMaxPushBytes = 128;
  static constexpr uint32_t kMaxSlots =
      kMaxOperands + 1;  // with the table of operands that are a buffer for each matrix
  struct Operand {
    const Buffer* buffer;  // null: the shader never touches it
    uint64_t offset;       // bytes, relative to the buffer
    uint64_t bytes;        // the range that may be touched, for hazards and descriptors
    Access access;
    const Buffer* const* each = nullptr;  // not null: a buffer for each matrix of a batch, instead
  };

  explicit Dispatch(const char* label) : label_(label) {}

  Dispatch& operand(const Buffer* buffer, uint64_t offset, uint64_t bytes, Access access) {
    require_room(operand_count_, kMaxOperands, "operands");
    operands_[operand_count_++] = {buffer, offset, bytes, access};
    return *this;
  }
  // A buffer for each of so many matrices (the same number for all such operands, kMaxEach at most), whose first
  // `bytes` may be touched. The kernel needs define_each(), and reaches them as prelude.glsl describes.
  static constexpr uint32_t kMaxEach = 8192, kMaxEachOperands = 4;
  Dispatch& operand_each(const Buffer* const* buffers, uint64_t count, uint64_t bytes, Access access) {
    require_room(operand_count_, kMaxOperands, "operands");
    require_room(each_operands_++, kMaxEachOperands, "operands of a buffer for each matrix");
    if (count > kMaxEach) fail(TUFF_ERROR_INTERNAL, "{} has {} matrices, {} is the most", label_, count, kMaxEach);
    each_ |= 1u << operand_count_;
    each_count_ = static_cast<uint32_t>(count);
    operands_[operand_count_++] = {nullptr, 0, bytes, access, buffers};
    return *this;
  }
  template <typename T>
  Dispatch& push(const T& parameters) {
    static_assert(std::is_trivially_copyable_v<T>);
    static_assert(sizeof(T) <= kMaxPushBytes);
    std::memcpy(push_.data(), &parameters, sizeof(T));
    push_bytes_ = sizeof(T);
    return *this;
  }
  Dispatch& groups(uint32_t x, uint32_t y = 1, uint32_t z = 1) {
    groups_ = {x, y, z};
    return *this;
  }
  // Any number of groups in one dimension, spread over x and y. The shader takes its number from
  // tuff_group() and must return at once if it is not below the total, which may be exceeded.
  Dispatch& groups_linear(uint64_t total, const DeviceTraits& traits);
  // What the device has to do, for deciding when to submit: bytes moved, arithmetic operations.
  Dispatch& work(double bytes, double operations) {
    bytes_ = bytes;
    operations_ = operations;
    return *this;
  }

  // The row of the planner's table that this is, for profiles.
  Dispatch& variant(const char* name) {
    variant_ = name;
    return *this;
  }

  const char* label() const { return label_; }
  const char* variant() const { return variant_; }
  const Operand* operands() const { return operands_.data(); }
  uint32_t operand_count() const { return operand_count_; }
  uint32_t each() const { return each_; }              // a bit for each operand that is a buffer for each matrix
  uint32_t each_count() const { return each_count_; }  // how many matrices
  uint32_t each_operands() const { return each_operands_; }
  const std::byte* push_data() const { return push_.data(); }
  uint32_t push_bytes() const { return push_bytes_; }
  const std::array<uint32_t, 3>& group_counts() const { return groups_; }
  bool group_rows() const { return group_rows_; }
  double bytes() const { return bytes_; }
  double operations() const { return operations_; }

 private:
  const char* label_;
  const char* variant_ = "";
  // As far as the counts go.
  std::array<Operand, kMaxOperands> operands_;
  std::array<std::byte, kMaxPushBytes> push_;
  std::array<uint32_t, 3> groups_{1, 1, 1};
  uint32_t operand_count_ = 0, push_bytes_ = 0, each_ = 0, each_count_ = 0, each_operands_ = 0;
  bool group_rows_ = false;
  double bytes_ = 0, operations_ = 0;
};

// What a kernel is compiled by whose operands may be a buffer for each matrix; once they are all there.
inline void define_each(KernelRequest& request, const Dispatch& dispatch) {
  if (dispatch.each() == 0) return;
  request.define("TUFF_EACH", dispatch.each()).define("TUFF_TABLE", dispatch.operand_count());
}

// A planner that has others record a part of its work keeps what it needs meanwhile in the outer place.
enum class Scratch : uint8_t { inner, outer };

class Recorder {
 public:
  virtual ~Recorder() = default;

  virtual const DeviceTraits& traits() const noexcept = 0;

  // True if these operands of a kernel of that kind will be bound by address. For planners whose best tile differs
  // between the two.
  virtual bool binds_addresses(Reads reads, const Dispatch& dispatch) const noexcept = 0;

  // The choices measured on this device; null: there are none.
  virtual const TuningTable* tuning() const noexcept { return nullptr; }

  virtual void dispatch(const KernelRequest& kernel, const Dispatch& dispatch) = 0;

  // Rows of so many bytes, by the device's command for copies. pitch: from one row to the next.
  struct Rows {
    const Buffer* buffer;
    uint64_t offset, pitch;
  };
  virtual void copy_rows(const Rows& to, const Rows& from, uint64_t bytes, uint64_t count) = 0;

  // Device memory for partial results, of at least this many bytes, valid until the next call of
  // scratch() for the same place. Uninitialised. Operations that use it follow one another (the recorder sees the
  // hazard).
  virtual const Buffer& scratch(uint64_t bytes, Scratch place = Scratch::inner) = 0;

  // Parameters that are too many to push, as memory for a kernel to read: at most kMaxParameterBytes, for the next
  // dispatch alone. Nothing has to wait for them.
  static constexpr uint32_t kMaxParameterBytes = 256;
  virtual const Buffer& parameters(const void* data, uint32_t bytes) = 0;

  // Of 16 x 16 matrices of 16-bit inputs, and of sums in f32, lane l of 32 holds rows l / 4 and l / 4 + 8, columns
  // l % 4 * 2, + 1, + 8 and + 9, as elements 0 to 3 of the first row and 4 to 7 of the second. Measured when it is
  // first asked for.
  virtual bool matrix_quads() { return false; }
};

// True if 32-bit signed element indices do not reach this many elements.
inline bool needs_wide(uint64_t elements) { return elements > 0x7fffffffu; }

// True if the operand may be read as 16-byte vectors.
inline bool aligned16(const Buffer* buffer, uint64_t offset = 0) {
  return buffer == nullptr || (buffer->offset + offset) % 16 == 0;
}

inline uint64_t ceil_div(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }
inline uint64_t round_up(uint64_t x, uint64_t unit) { return ceil_div(x, unit) * unit; }

}  // namespace tuff
