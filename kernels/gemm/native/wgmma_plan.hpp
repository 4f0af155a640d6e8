// Shared by the planners of GEMMs by wgmma (gemm_native_vulkan.cpp defines these).
#pragma once

#include <cstdint>

#include "kernels/gemm/gemm_plan.hpp"
#include "kernels/gemm/native/gemm_wgmma.hpp"
#include "planning/device_traits.hpp"

namespace tuff::gemm {

constexpr uint64_t kMinExtent = 32;                  // with fewer rows or columns, other kernels are better
constexpr uint64_t kMinLength = 64;                  // of k
constexpr uint64_t kMinTap = 32;                     // channels of a window's tap
constexpr uint64_t kMaxWindows = uint64_t{1} << 31;  // numbers that ptx::Divider divides

// Minimum length of a split-K part, so that it pays for the second pass.
constexpr uint64_t kMinWgmmaSlice = 256;
// The number of blocks up to which k is split: if half of the multiprocessors would be idle and k is long enough to pay
// for the second pass.
uint64_t wanted_groups(const DeviceTraits& traits, uint64_t tiles, uint64_t k);
// Cost of split-K's second pass over so many partial sums, in multiply-adds of the best tile of 16 bits.
double second_pass_time(double sums);

// With f32 results gelu, gelu_tanh and silu take a second pass, whose bits are those of the unary operation. Integers
// are stored as they are, so everything else takes one.
bool takes_second_pass(const GemmArgs& args);
// 16 bytes of C, pairs of 32 bits, or eight of 8 bits are stored at once.
bool stores_vectors(const Plan& plan);

// Whether a residual is added by the kernel.
bool adds_residual(const Plan& plan);

// Once the plan says where results go: what the kernel does beside the multiplications, its parameters, and its
// dispatch, all but those. `ld_unit`: elements in a unit of leading dimensions.
void set_options(const Plan& plan, const Extents& all, Wgmma& kernel);
Wgmma::Push wgmma_push(const Plan& plan, const Extents& all, const Wgmma& kernel, uint64_t tiles, uint64_t ld_unit);
Dispatch wgmma_dispatch(const DeviceTraits& traits, const Plan& plan, const Wgmma& kernel, const Wgmma::Push& push,
                        const char* variant);

// With windows. `unit`: elements in 16 bytes.
bool columns_of_images(const Plan& plan);
// Whether each piece of so many elements belongs to one tap, and an ImagePush and a word of bits for taps have room for
// padding.
bool in_pieces(const Windows& windows, uint64_t piece);
Wgmma::WindowPush windows_push(const Plan& plan, const Wgmma::Push& push, uint64_t unit);
uint64_t image_push(const Windows& windows);  // instead of stride_bias, with padding

}  // namespace tuff::gemm
