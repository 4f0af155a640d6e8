// Shared by the GEMM planners: the plan of one dispatch's worth of a GEMM, and questions about it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kernels/common/check.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/gemm/implicit_gemm.hpp"
#include "planning/recorder.hpp"
#include "planning/tuning_table.hpp"
#include "shaders/gemm_epilogue.hpp"

namespace tuff::gemm {

class PanelSource;

enum class Kind : uint8_t { tiny, skinny, native, narrow, split, dmma, matrices, panels, tiles };

// When a variant that can run is used: only if requested by name; also when measuring; also when chosen by the model.
enum class Fit : uint8_t { by_name, perhaps, suits };

// A variant that could compute a GEMM.
struct Offer {
  Kind kind;
  const char* name;
  uint32_t row;  // in the kind's table
  double time;   // estimated by the kind's model; comparable only within the kind
  Fit fit;
};

// Collects the offers of all kinds of kernels. Keeps the fastest suitable one, or the one with a given name, or all
// that may be worth measuring.
class Offers {
 public:
  Offers() = default;
  explicit Offers(std::string_view wanted) : wanted_(wanted) {}
  explicit Offers(std::vector<Offer>& all) : all_(&all) {}

  // If false, add() would refuse the offer, so that it need not be computed.
  bool wants(std::string_view name) const { return wanted_.empty() || wanted_ == name; }
  void add(const Offer& offer) {
    if (all_ != nullptr) {
      if (offer.fit != Fit::by_name) all_->push_back(offer);
    } else if (wanted_.empty() ? offer.fit == Fit::suits : wanted_ == offer.name) {
      take(offer);
    }
  }
  bool by_name() const { return !wanted_.empty(); }
  bool found() const { return count_ != 0; }
  const Offer& best() const { return best_; }
  const Offer* next() const { return count_ > 1 ? &next_ : nullptr; }

 private:
  void take(const Offer& offer) {
    const bool better = count_ == 0 || offer.time < best_.time;
    if (better) next_ = best_;
    if (!better && (count_ == 1 || offer.time < next_.time)) next_ = offer;
    if (better) best_ = offer;
    ++count_;
  }

  std::string_view wanted_;
  std::vector<Offer>* all_ = nullptr;
  Offer best_{}, next_{};
  uint32_t count_ = 0;
};

enum class Why : uint8_t { model, tuned, forced };

// The variant chosen to compute a GEMM.
struct Choice {
  Offer offer{};
  Why why = Why::model;
  uint32_t slices = 0;                 // split-K parts, as tuned; 0: the kind's planner decides
  Offer next{};                        // the model's second choice; without a name: none
  const TunedChoice* unfit = nullptr;  // a tuned choice that does not run here
};

// A copy of an input that the kernel reads instead: of another type, or transposed.
struct CopyRequest {
  bool wanted = false;
  int32_t type = TUFF_F32;
  bool transposed = false;
};

// The extents of what a kernel computes.
struct Extents {
  uint64_t m, n, batch;
};
// With windows, one GEMM over all images. `windows` may be null.
Extents extents_of(const GemmArgs& args, const Windows* windows);

// The plan of one dispatch's worth of a GEMM.
struct Plan {
  explicit Plan(const GemmArgs& wanted, const Windows* made_of_windows = nullptr);
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const Windows* windows;  // null: none
  GemmArgs args;           // of the kernel: a and b may be copies of the caller's in another type
  bool ta, tb, wide;
  uint64_t a_elements, b_elements, c_elements;  // footprints
  uint64_t slices = 1, k_slice;
  // args.a_array and b_array are the caller's, or null if the kernel reads a copy. For a batch of buffers, a, b and c
  // are those at the least aligned addresses: alignment that holds for them holds for all.
  //
  // The kernel's results go to C, or to scratch memory (dense, of the sums' type, alpha 1, beta 0) for a second pass.
  bool to_scratch = false;
  const Buffer* out;
  int32_t out_type;
  uint64_t out_elements, out_ld, out_stride;
  Choice choice;
  CopyRequest a_request, b_request;  // copies that the kernel reads instead of the caller's operands

  // 64-bit indices leave no room in the matrix kernels' push block for bias and residual, which then need a second
  // pass.
  bool operands_need_finish() const { return wide && args.epilogue.has_operands(); }

  // n of all groups but the first one.
  uint64_t columns_of_more_groups() const { return windows == nullptr ? 0 : (windows->groups - 1) * args.n; }

  // How the kernel accesses its output: it reads C too if beta is not 0, unless a second pass does so.
  Access out_access() const { return to_scratch || args.beta == 0 ? Access::write : Access::read_write; }
  double alpha() const { return to_scratch ? 1 : args.alpha; }
  double beta() const { return to_scratch ? 0 : args.beta; }
  // Whether the kernel itself adds bias and residual.
  bool fused() const { return args.epilogue.has_operands() && !to_scratch; }
  // The defines of gemm_epilogue.glsl, and the operands that it reads after C.
  shaders::GemmEpilogue epilogue_defines(const DeviceTraits& traits) const;
  void epilogue_operands(Dispatch& dispatch) const;
  Dispatch& operand(Dispatch& dispatch, const Buffer* buffer, uint64_t elements, int32_t type, Access access) const {
    return dispatch.operand(buffer, 0, elements * dtype_size(type), access);
  }
  // The operands that the kernel reads as A and B, and the one it writes.
  void operand_a(Dispatch& dispatch) const;
  void operand_b(Dispatch& dispatch) const;
  void operand_out(Dispatch& dispatch) const;

  const PanelSource* packs_b = nullptr;         // if not null, makes the panels of B: args.b is not read
  uint64_t kernel_bytes = 0;                    // scratch memory that the kernels themselves need
  Buffer copy_a, copy_b, partials, for_kernel;  // in scratch memory
};

// The kernel reads the scales, in their order: those that are missing are null.
void scale_operands(Dispatch& dispatch, const GemmEpilogue& epilogue);

// Whether C needs an epilogue or conversion, beyond alpha * sum + beta * C in the sums' type.
bool needs_finish(const GemmArgs& args);
// Whether it needs what only the second pass has among kernels in SPIR-V: scales, or a C of 8-bit floats.
bool only_finish_has(const GemmArgs& args);

uint64_t footprint(uint64_t rows, uint64_t cols, uint64_t ld, uint64_t stride, uint64_t batch_count);

uint64_t bias_elements(const GemmArgs& args);      // 0 without a bias
uint64_t residual_elements(const GemmArgs& args);  // 0 without a residual

// Adds an operand that is one buffer, or one for each matrix.
void add_operand(Dispatch& dispatch, const Buffer* buffer, const Buffer* const* each, uint64_t batch_count,
                 uint64_t bytes, Access access);

// Whether every row of every matrix starts at a multiple of `elements` elements.
bool aligned(const Buffer* buffer, int32_t type, uint64_t ld, uint64_t stride, uint64_t elements);

uint64_t cores_of(const DeviceTraits& traits);
double operations_of(const GemmArgs& args);
double work_bytes(const Plan& plan);

// The longest part of k that one workgroup may loop over.
uint64_t max_k(const DeviceTraits& traits);

// What TUFF_GEMM_VARIANT forces: a row of the tables of tiles, "panels", "skinny", "tiny_lanes", "tiny_columns", or
// 64-bit indices ("wide"). Empty: nothing.
std::string_view forced_variant();

// The variant that is forced, or tuned, or else the best by the kinds' models.
Choice choose(const Recorder& recorder, const Plan& plan);
// "tuned"; "model: tile_64x64 would take 1.25 times as long"
std::string reason(const Plan& plan);
// All variants worth measuring for a GEMM: the chosen one first, the others in the order that the models expect.
std::vector<Offer> list_variants(const Recorder& recorder, const Plan& plan);

// The number of split-K parts that gives up to `wanted` workgroups, each with at least `least` of k.
uint64_t slices_of_k(uint64_t k, uint64_t groups, uint64_t wanted, uint64_t least);

// Splits k as tuned, or for up to `wanted` workgroups instead of `groups`, each with at least `least` of k, a multiple
// of `unit`. The parts depend on shape, device and tuned choice alone.
void slice_k(Plan& plan, const DeviceTraits& traits, uint64_t groups, uint64_t wanted, uint64_t least, uint64_t unit);

// Reserves scratch memory for the results if to_scratch is set, for the requested copies of A and B, and for the
// kernel; records the copies.
void take_scratch(Recorder& recorder, Plan& plan);
// Whether the device has the workgroups that transpose copies.
bool can_transpose(const DeviceTraits& traits);

// Each kind of kernel has a function that offers its variants for a GEMM (none if it cannot compute it on this device),
// and one that records the dispatch of the chosen variant.

// gemm_tiles_vulkan.cpp: one tile of C per workgroup.
void offer_tiles(const Recorder& recorder, const Plan& plan, Offers& offers);
bool is_tile_variant(std::string_view name);
void record_tiles(Recorder& recorder, Plan& plan);

// gemm_matrix_vulkan.cpp: cooperative matrices, if the device has them for the types.
void offer_windows(const DeviceTraits& traits, const GemmArgs& args, const Windows& windows, Offers& offers);
void offer_matrices(const DeviceTraits& traits, const GemmArgs& args, Offers& offers);
bool is_matrix_variant(std::string_view name);
void record_matrices(Recorder& recorder, Plan& plan);
// Which inputs are copied first.
CopyRequest matrix_copy_of_a(const GemmArgs& args);
CopyRequest matrix_copy_of_b(const GemmArgs& args);

// native/gemm_native_vulkan.cpp: kernels in PTX, on NVIDIA's Hopper GPUs.
void offer_native(const DeviceTraits& traits, const Plan& plan, Offers& offers);
bool is_native_variant(std::string_view name);
// Returns false and records nothing if the driver refuses the kernel, which is not offered again.
bool record_native(Recorder& recorder, Plan& plan);
CopyRequest native_copy_of_a(const GemmArgs& args);
CopyRequest native_copy_of_b(const GemmArgs& args);
// Whether sums are kept in scratch memory, however few parts k is split into.
bool native_keeps_sums(const GemmArgs& args);

// native/gemm_split_vulkan.cpp: the same for f32.
void offer_split(const DeviceTraits& traits, const Plan& plan, Offers& offers);
bool is_split_variant(std::string_view name);
bool record_split(Recorder& recorder, Plan& plan);

// native/gemm_dmma_vulkan.cpp: the same for f64.
void offer_dmma(const DeviceTraits& traits, const Plan& plan, Offers& offers);
bool is_dmma_variant(std::string_view name);
bool record_dmma(Recorder& recorder, Plan& plan);

// native/gemm_narrow_vulkan.cpp: few rows or columns of 16 bits or 8-bit floats.
void offer_narrow(const DeviceTraits& traits, const Plan& plan, Offers& offers);
bool is_narrow_variant(std::string_view name);
bool record_narrow(Recorder& recorder, Plan& plan);
CopyRequest narrow_copy_of_a(const Plan& plan);
CopyRequest narrow_copy_of_b(const Plan& plan);

// gemm_skinny_vulkan.cpp: at most sixteen rows or columns. is_few: so few that no other kernel is better.
bool is_few(const GemmArgs& args);
void offer_skinny(const DeviceTraits& traits, const Plan& plan, Offers& offers);
void record_skinny(Recorder& recorder, Plan& plan);

// gemm_tiny_vulkan.cpp: a batch of tiny matrices.
void offer_tiny(const DeviceTraits& traits, const GemmArgs& args, Offers& offers);
void record_tiny(Recorder& recorder, Plan& plan);

// Fills in the strides of bias and residual, in a push block that has them.
template <typename Push>
void set_epilogue_places(Push& push, const GemmEpilogue& epilogue) {
  using Index = decltype(Push::ld_residual);
  push.ld_residual = static_cast<Index>(epilogue.ld_residual);
  push.stride_bias = static_cast<Index>(epilogue.stride_bias);
  push.stride_residual = static_cast<Index>(epilogue.stride_residual);
}

// The push block of a kernel that computes C by tiles: the members that gemm_common.glsl and gemm_matrix.comp share.
template <typename Push>
Push tile_push(const Plan& plan, uint64_t tiles_m, uint64_t tiles_n) {
  const auto index = [](uint64_t x) { return static_cast<decltype(Push::lda)>(x); };
  const auto number = [](uint64_t x) { return static_cast<uint32_t>(x); };
  return {.lda = index(plan.args.lda),
          .ldb = index(plan.args.ldb),
          .ldc = index(plan.out_ld),
          .stride_a = index(plan.args.stride_a),
          .stride_b = index(plan.args.stride_b),
          .stride_c = index(plan.out_stride),
          .m = number(plan.args.m),
          .n = number(plan.args.n),
          .k = number(plan.args.k),
          .batch_count = number(plan.args.batch_count),
          .slices = number(plan.slices),
          .k_slice = number(plan.k_slice),
          .tiles_m = number(tiles_m),
          .tiles_n = number(tiles_n),
          .alpha = static_cast<decltype(Push::alpha)>(plan.alpha()),
          .beta = static_cast<decltype(Push::beta)>(plan.beta())};
}

// Calls body(std::true_type()) or body(std::false_type()).
template <typename Body>
void with_flag(bool flag, const Body& body) {
  if (flag) {
    body(std::true_type());
  } else {
    body(std::false_type());
  }
}

// Calls body(Index{}) with the type of the kernel's element indices.
template <typename Body>
void with_index(bool wide, const Body& body) {
  if (wide) {
    body(uint64_t{});
  } else {
    body(uint32_t{});
  }
}

// Calls body(Number{}) with the type in which results are scaled before they become elements of `type`.
template <typename Body>
void with_number(int32_t type, const Body& body) {
  if (type == TUFF_F64) {
    body(double{});
  } else if (type == TUFF_I32) {
    body(int32_t{});
  } else {
    body(float{});
  }
}

}  // namespace tuff::gemm
