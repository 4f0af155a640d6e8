// Specifies a kernel for a planner: a source, its defines and its specialisation constants.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "planning/kernel_source.hpp"
#include "planning/status.hpp"

namespace tuff {

// Planners fill fixed-size tables, so that a look-up allocates nothing.
inline void require_room(uint32_t count, uint32_t most, const char* what) {
  if (count >= most) fail(TUFF_ERROR_INTERNAL, "a kernel has more than {} {}", most, what);
}

// The cooperative matrices that a kernel uses, by the type of their inputs.
enum class Matrices : uint8_t { none, f16, bf16, int8 };

// A kernel's memory access pattern, which decides how its operands are best bound. `tiles`: some data is read
// repeatedly. `streams`: each element is accessed about once. `packed`: packed operands are read at addresses that are
// uniform across lanes.
enum class Reads : uint8_t { tiles, streams, packed };

// GLSL that is generated, such as a caller's formula. It takes the place of the source's line TUFF_BODY.
struct KernelBody {
  explicit KernelBody(std::string generated);

  std::string text;
  uint64_t hash;  // of the text
};

// Identifies a kernel: source, #defines (integers) and specialisation constants. Small, of fixed size, hashable.
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
    define_sum_ = other.define_sum_;
    constant_count_ = other.constant_count_;
    std::copy_n(other.defines_.begin(), define_count_, defines_.begin());
    std::copy_n(other.constants_.begin(), constant_count_, constants_.begin());
    wide_ = other.wide_;
    reads_ = other.reads_;
    matrices_ = other.matrices_;
    texels_ = other.texels_;
    body_ = other.body_;
    return *this;
  }

  // #define name value. For anything that changes types or code shape.
  KernelRequest& define(const char* name, int64_t value) {
    require_room(define_count_, kMaxDefines, "defines");
    // Products that do not depend on one another.
    define_sum_ += static_cast<uint64_t>(value) * (2 * uint64_t{define_count_} + 3);
    defines_[define_count_++] = {name, value};
    return *this;
  }
  // layout(constant_id = id) const uint/int/bool. For tile shapes and workgroup sizes.
  KernelRequest& constant(uint32_t id, uint32_t value) {
    require_room(constant_count_, kMaxConstants, "constants");
    constants_[constant_count_++] = {id, value};
    return *this;
  }
  // Some element indices are 2^31 or more: use 64-bit index arithmetic (TUFF_WIDE, which implies addresses).
  KernelRequest& wide(bool on) {
    wide_ = on;
    return *this;
  }

  // The kernel accesses each element about once: bind its operands as this driver streams fastest.
  KernelRequest& streaming() {
    reads_ = Reads::streams;
    return *this;
  }
  KernelRequest& packed() {
    reads_ = Reads::packed;
    return *this;
  }

  // The kernel gathers elements of 2, 4 or 8 bytes from this slot, by TUFF_TEXEL where TUFF_TEXELS is set
  // (prelude.glsl). All such slots of a dispatch are bound as texel buffers, or none.
  KernelRequest& texels(uint32_t slot, uint64_t bytes) {
    texels_ |= bytes << (4 * slot);
    return *this;
  }

  // The cooperative matrices that the kernel uses (kernels/common/matrix.glsl).
  KernelRequest& matrices(Matrices kind) {
    matrices_ = kind;
    return *this;
  }

  // The generated part of the source, which the request keeps.
  KernelRequest& body(const std::shared_ptr<const KernelBody>& body) {
    body_ = body;
    define_sum_ += body->hash;
    return *this;
  }

  const KernelSource& source() const { return *source_; }
  const KernelBody* body() const { return body_.get(); }
  bool same_body(const KernelRequest& other) const {
    return body_ == other.body_ || (body_ && other.body_ && body_->text == other.body_->text);
  }
  const Define* defines() const { return defines_.data(); }
  uint32_t define_count() const { return define_count_; }
  // A define's value, for sources that are functions. INTERNAL if it is missing.
  int64_t value_of(std::string_view name) const {
    for (uint32_t i = 0; i < define_count_; ++i) {
      if (name == defines_[i].name) return defines_[i].value;
    }
    fail(TUFF_ERROR_INTERNAL, "{} has no define {}", source_->name, name);
  }
  // A hash of the defines' values.
  uint64_t define_sum() const { return define_sum_; }
  const Constant* constants() const { return constants_.data(); }
  uint32_t constant_count() const { return constant_count_; }
  bool is_wide() const { return wide_; }
  Reads reads() const { return reads_; }
  uint64_t texels() const { return texels_; }
  Matrices matrices() const { return matrices_; }

 private:
  const KernelSource* source_;
  // Initialised only up to their counts, because every call creates a request.
  std::array<Define, kMaxDefines> defines_;
  std::array<Constant, kMaxConstants> constants_;
  uint64_t define_sum_ = 0;
  uint32_t define_count_ = 0, constant_count_ = 0;
  bool wide_ = false;
  Reads reads_ = Reads::tiles;
  Matrices matrices_ = Matrices::none;
  uint64_t texels_ = 0;
  std::shared_ptr<const KernelBody> body_;
};

// What the kernel's text depends on besides the request: how a dispatch binds it.
struct KernelForm {
  uint32_t operands = 0;
  bool addresses = false;
  bool group_rows = false;  // Dispatch::groups_linear used more than one row
  bool far = false;         // TUFF_FAR
  // The slots that are texel buffers: four bits for each, the bytes of its elements.
  uint64_t texels = 0;
  bool operator==(const KernelForm&) const = default;
};

// The bytes of a slot's elements if it is a texel buffer, otherwise 0.
inline uint64_t texel_bytes(uint64_t texels, uint32_t slot) { return texels >> (4 * slot) & 15; }

// A field of a shader's Defines without a default: omitting it is a compile error.
struct RequiredDefine {
  template <typename Value>
  requires std::is_integral_v<Value> || std::is_enum_v<Value> RequiredDefine(Value initial)
      : value(static_cast<int64_t>(initial)) {}  // NOLINT(google-explicit-constructor)
  int64_t value;
};

// Throws INTERNAL if the request lacks a define that the kernel's source declares, or sets it to an illegal value.
// Called when a kernel is built, not on every call.
void check_defines(const KernelRequest& request);

}  // namespace tuff
