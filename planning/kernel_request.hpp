// Which kernel a planner wants: a source, its defines and its specialisation constants.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "planning/kernel_source.hpp"
#include "planning/status.hpp"

namespace tuff {

// Planners fill tables of fixed size, so that a look-up allocates nothing.
inline void require_room(uint32_t count, uint32_t most, const char* what) {
  if (count >= most) fail(TUFF_ERROR_INTERNAL, "a kernel has more than {} {}", most, what);
}

// The subgroup matrices of a kernel, by their inputs' type.
enum class Matrices : uint8_t { none, f16, bf16, int8 };

// How a kernel goes through memory, which decides how its operands are best bound: it reads some of it again and again;
// each element about once; or what was packed for it, at addresses that are the same for all lanes.
enum class Reads : uint8_t { tiles, streams, packed };

// Which kernel: source, #defines (integers) and specialisation constants. Small, fixed size, hashable.
class KernelRequest {
 public:
  static constexpr uint32_t kMaxDefines = 32, kMaxConstants = 12;
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

// A field of a shader's Defines that has no default: whoever leaves it out does not compile.
struct RequiredDefine {
  template <typename Value>
  requires std::is_integral_v<Value> || std::is_enum_v<Value> RequiredDefine(Value initial)
      : value(static_cast<int64_t>(initial)) {}  // NOLINT(google-explicit-constructor)
  int64_t value;
};

// INTERNAL for a define that the kernel's source declares and the request lacks, or has another value for than is
// legal. Called where a kernel is built, not on every call.
void check_defines(const KernelRequest& request);

}  // namespace tuff
