// Plans a GEMM for NVIDIA's Hopper GPUs: kernels in PTX (gemm_wgmma.cpp).
#include <algorithm>
#include <array>
#include <bit>

#include "kernels/common/workgroup.hpp"
#include "kernels/gemm/gemm_plan.hpp"
#include "kernels/gemm/native/gemm_wgmma.hpp"
#include "kernels/gemm/native/hopper_probe.hpp"
#include "kernels/gemm/native/wgmma_plan.hpp"
#include "kernels/native/elements.hpp"
#include "kernels/native/refusals.hpp"
#include "planning/log.hpp"
#include "planning/status.hpp"

namespace tuff::gemm {
namespace {

struct NativeVariant {
  const char* name;
  uint32_t rows, columns;
  double rate;                // of a multiprocessor, relative to the best
  double ends;                // the time of a tile outside the loop over k, in elements of k
  double of_rows, of_others;  // the rate relative to that, if A's rows are windows of images, or B's or those of k
};

constexpr NativeVariant kVariants[] = {
    {"native_128x256", 128, 256, 1.00, 230, 1, 1},
    {"native_128x128", 128, 128, 0.86, 225, 1, 1},
    {"native_128x64", 128, 64, 0.46, 200, 1, 1},
    {"native_64x256", 64, 256, 0.89, 215, 0.95, 0.85},
};
Refusals refusals;
constexpr uint64_t kPieceBytes = 16;
constexpr uint64_t kPiece = kPieceBytes / 2;  // its elements of 16 bits

bool is_half(int32_t type) { return type == TUFF_F16 || type == TUFF_BF16; }

// Whether rows start at multiples of 16 bytes. Offsets in units of 16 bytes have 32 bits.
bool loadable(const Buffer* buffer, int32_t type, uint64_t ld, uint64_t stride, uint64_t elements) {
  const uint64_t piece = kPieceBytes / dtype_size(type);
  return aligned(buffer, type, ld, stride, piece) && elements / piece < uint64_t{1} << 31;
}

// The type as which an operand is multiplied: an 8-bit float beside 16 bits is converted first.
int32_t multiplied_type(int32_t own, int32_t other) { return kFloat8Types.has(own) && is_half(other) ? other : own; }

// The instructions take 8- and 32-bit operands only with rows along k. Others are transposed first, which pays from
// these numbers of operations on.
constexpr double kTranspose8Bits = 4e9, kTransposeFloats = 5e8;
bool along_k_only(int32_t type) { return dtype_size(type) != 2; }
bool transposes_a(const GemmArgs& args) {
  return along_k_only(multiplied_type(args.a_type, args.b_type)) && args.ta != TUFF_NO_TRANS;
}
bool transposes_b(const GemmArgs& args) {
  return along_k_only(multiplied_type(args.b_type, args.a_type)) && args.tb == TUFF_NO_TRANS;
}

// GEMM of 8-bit integers and floats, and of f32 as TF32.
bool computes_along_k(const DeviceTraits& traits, const Plan& plan) {
  const GemmArgs& args = plan.args;
  const bool a = transposes_a(args), b = transposes_b(args);
  if ((a || b) && !can_transpose(traits)) return false;
  const bool types = args.a_type == args.b_type || args.has_float8_inputs();
  return types && plan.windows == nullptr && args.c_array == nullptr && args.ldc <= UINT32_MAX &&
         args.k <= UINT32_MAX && args.epilogue.ld_residual <= UINT32_MAX &&
         ((!a && !b) || operations_of(args) >= (args.a_type == TUFF_F32 ? kTransposeFloats : kTranspose8Bits)) &&
         (a || loadable(args.a, args.a_type, args.lda, args.stride_a, plan.a_elements)) &&
         (b || loadable(args.b, args.b_type, args.ldb, args.stride_b, plan.b_elements));
}

bool has_filter(const Windows& windows) { return windows.filter.elements != 0; }

// Whether this kernel can load rows that are windows of images.
bool loadable(const Windows& windows) {
  if (!in_pieces(windows, kPiece)) return false;
  if (windows.of_k) return windows.padded;
  if (windows.padded && !windows.of_a) return false;
  if (has_filter(windows)) {
    // A step of k belongs to one tap.
    const bool steps = windows.channels % Wgmma::kStep == 0 && windows.filter.elements < uint64_t{1} << 31;
    if (!windows.padded || windows.groups != 1 || !steps) return false;
    if (windows.filter.step % kPiece != 0 || windows.filter.row % kPiece != 0) return false;
  }
  return windows.channels >= kMinTap;
}

}  // namespace

uint64_t wanted_groups(const DeviceTraits& traits, uint64_t tiles, uint64_t k) {
  const uint64_t cores = cores_of(traits);
  return tiles * 2 <= cores && k >= 2 * kMinWgmmaSlice ? cores : tiles;
}

double second_pass_time(double sums) { return 1.2e7 + sums * 10; }

bool takes_second_pass(const GemmArgs& args) {
  const GemmEpilogue& epilogue = args.epilogue;
  if (args.a_type == TUFF_I8) {
    return args.c_type != TUFF_I32 || args.alpha != 1 || args.beta != 0 || !epilogue.none();
  }
  // Elements of 8 bits are stored, but not read.
  if (kFloat8Types.has(args.c_type) && (args.beta != 0 || epilogue.has_operands())) return true;
  // In the kernel these took as long as the pass, or longer (docs/native.md).
  if (epilogue.activation == TUFF_ACTIVATION_GELU || epilogue.activation == TUFF_ACTIVATION_GELU_TANH) return true;
  return !ptx::activates(epilogue.activation, args.c_type);
}

bool stores_vectors(const Plan& plan) {
  const uint64_t elements = dtype_size(plan.out_type) == 4 ? 2 : kPiece;
  return aligned(plan.out, plan.out_type, plan.out_ld, plan.out_stride, elements) && plan.args.n % elements == 0;
}

bool in_pieces(const Windows& windows, uint64_t piece) {
  const auto whole = [piece](uint64_t elements) { return elements % piece == 0; };
  if (!whole(windows.channels) || !whole(windows.step) || !whole(windows.tap_row)) return false;
  if (!windows.padded) return true;
  const auto small = [](const uint32_t(&numbers)[2], uint32_t limit) {
    return std::max(numbers[0], numbers[1]) < limit;
  };
  return windows.dilation == 1 && windows.valid == 0 && small(windows.extents, 1u << 16) &&
         small(windows.before, 1u << 8) && small(windows.strides, 1u << 8) &&
         uint64_t{windows.tap_rows} * windows.taps <= kMaxTaps;
}

bool columns_of_images(const Plan& plan) {
  return plan.windows != nullptr && !plan.windows->of_a && !plan.windows->of_k;
}

Wgmma::WindowPush windows_push(const Plan& plan, const Wgmma::Push& push, uint64_t unit) {
  const Windows& windows = *plan.windows;
  const auto pieces = [unit](uint64_t elements) { return static_cast<uint32_t>(elements / unit); };
  return {.plain = push,
          .per_image = static_cast<uint32_t>(windows.of_k   ? windows.per_image
                                             : windows.of_a ? plan.args.m
                                                            : plan.args.n),
          .width_step = windows.width | pieces(windows.step) << 16,
          .channels = windows.channels | windows.valid << 16,
          .taps = windows.taps | windows.tap_rows << 16,
          .tap_step = pieces(uint64_t{windows.dilation} * windows.pixel),
          .tap_row = pieces(windows.tap_row)};
}

uint64_t image_push(const Windows& windows) {
  Wgmma::ImagePush push{};
  push.height = static_cast<uint16_t>(windows.extents[0]);
  push.width = static_cast<uint16_t>(windows.extents[1]);
  for (uint32_t axis = 0; axis < 2; ++axis) {
    push.before[axis] = static_cast<uint8_t>(windows.before[axis]);
    push.strides[axis] = static_cast<uint8_t>(windows.strides[axis]);
  }
  return std::bit_cast<uint64_t>(push);
}

bool adds_residual(const Plan& plan) {
  return plan.args.epilogue.residual == nullptr || !columns_of_images(plan) || stores_vectors(plan);
}

void set_options(const Plan& plan, const Extents& all, Wgmma& kernel) {
  const GemmArgs& args = plan.args;
  kernel.c_type = plan.out_type;
  kernel.trans_a = plan.ta;
  kernel.trans_b = plan.tb;
  kernel.edge = all.m % kernel.rows != 0 || all.n % kernel.columns != 0 || args.k % kernel.step() != 0;
  kernel.beta = plan.beta() != 0;
  kernel.vector = stores_vectors(plan);
  if (plan.to_scratch) return;
  kernel.activation = args.epilogue.activation;
  kernel.bias_axis = args.epilogue.bias_axis;
  kernel.residual = args.epilogue.residual != nullptr;
  kernel.scaled = args.epilogue.scaled();
}

Dispatch wgmma_dispatch(const DeviceTraits& traits, const Plan& plan, const Wgmma& kernel, const Wgmma::Push& push,
                        const char* variant) {
  Dispatch dispatch("gemm native");
  plan.operand_a(dispatch);
  plan.operand_b(dispatch);
  plan.operand_out(dispatch);
  plan.epilogue_operands(dispatch);
  if (kernel.scaled) scale_operands(dispatch, plan.args.epilogue);
  dispatch.groups(static_cast<uint32_t>(std::min<uint64_t>(push.tiles, cores_of(traits))))
      .work(work_bytes(plan), operations_of(plan.args))
      .variant(variant);
  return dispatch;
}

Wgmma::Push wgmma_push(const Plan& plan, const Extents& all, const Wgmma& kernel, uint64_t tiles, uint64_t ld_unit) {
  const GemmArgs& args = plan.args;
  const auto number = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const uint64_t size = dtype_size(args.a_type), out_size = dtype_size(plan.out_type);
  Wgmma::Push push{};
  push.m = number(all.m);
  push.n = number(all.n);
  push.k = number(args.k);
  push.k_slice = number(plan.k_slice);
  push.tiles_m = number(ceil_div(all.m, kernel.rows));
  push.tiles_n = number(ceil_div(all.n, kernel.columns));
  push.tiles = number(tiles * plan.slices);
  push.matrices = number(all.batch);
  push.lda = number(args.lda / ld_unit);
  push.ldb = number(args.ldb / ld_unit);
  push.ldc = number(plan.out_ld);
  push.stride_a = args.stride_a * size;
  push.stride_b = args.stride_b * size;
  push.stride_c = plan.out_stride * out_size;
  push.slice_c = plan.to_scratch ? args.batch_count * plan.out_stride * out_size : 0;
  push.ld_residual = number(args.epilogue.ld_residual);
  push.stride_bias = args.epilogue.stride_bias * out_size;
  push.stride_residual = args.epilogue.stride_residual * out_size;
  push.alpha = static_cast<float>(plan.alpha());
  push.beta = static_cast<float>(plan.beta());
  return push;
}

namespace {

bool computes(const DeviceTraits& traits, const Plan& plan) {
  const GemmArgs& args = plan.args;
  const uint64_t a_elements = plan.a_elements, b_elements = plan.b_elements;
  const bool tf32 = args.a_type == TUFF_F32 && args.precision == TUFF_PRECISION_ALLOW_TF32;
  if (args.a_type == TUFF_I8 || args.has_float8_inputs() || tf32) {
    return traits.hopper && computes_along_k(traits, plan);
  }
  if (plan.windows != nullptr) {
    const Extents all = extents_of(args, plan.windows);
    if (columns_of_images(plan) && args.n < Wgmma::kMinPerImage) return false;
    const bool groups = plan.windows->groups > 1;
    if (groups && (!plan.windows->of_a || plan.windows->valid != 0 || takes_second_pass(args))) return false;
    if (!loadable(*plan.windows) || std::max(all.m, all.n) >= kMaxWindows || args.k >= kMaxWindows) return false;
  }
  const int32_t type = multiplied_type(args.a_type, args.b_type);
  return traits.hopper && is_half(type) && type == multiplied_type(args.b_type, args.a_type) &&
         args.c_array == nullptr && args.ldc <= UINT32_MAX && args.k <= UINT32_MAX &&
         args.epilogue.ld_residual <= UINT32_MAX &&
         (args.a_type != type || loadable(args.a, args.a_type, args.lda, args.stride_a, a_elements)) &&
         (args.b_type != type || loadable(args.b, args.b_type, args.ldb, args.stride_b, b_elements));
}

uint64_t tiles_of(const Extents& all, const NativeVariant& variant) {
  return ceil_div(all.m, variant.rows) * ceil_div(all.n, variant.columns) * all.batch;
}

bool has_groups(const Plan& plan) { return plan.windows != nullptr && plan.windows->groups > 1; }

// Whether the addresses of columns that are windows of images leave registers for so many sums. With a residual and
// unaligned rows they do not for any tile.
bool has_registers(const Plan& plan, const NativeVariant& variant) {
  const bool many = variant.rows == 128 && variant.columns == 256;
  return !many || !columns_of_images(plan) || (stores_vectors(plan) && plan.args.epilogue.residual == nullptr);
}

}  // namespace

void offer_native(const DeviceTraits& traits, const Plan& plan, Offers& offers) {
  const GemmArgs& args = plan.args;
  if (!computes(traits, plan)) return;
  const Extents all = extents_of(args, plan.windows);
  const bool suits = all.m >= kMinExtent && all.n >= kMinExtent && args.k >= kMinLength;
  for (uint32_t row = 0; row < std::size(kVariants); ++row) {
    const NativeVariant& variant = kVariants[row];
    if (!offers.wants(variant.name) || refusals.has(row)) continue;
    if (!has_registers(plan, variant)) continue;
    const uint64_t tiles = tiles_of(all, variant);
    if (tiles > UINT32_MAX / 256) continue;  // times the parts of k
    const uint64_t slices =
        has_groups(plan) ? 1 : slices_of_k(args.k, tiles, wanted_groups(traits, tiles, args.k), kMinWgmmaSlice);
    const uint64_t rounds = ceil_div(tiles * slices, cores_of(traits));
    const double length = static_cast<double>(args.k) / static_cast<double>(slices) + variant.ends;
    const double sums = static_cast<double>(all.m * all.n * all.batch * slices);
    const double of_windows = plan.windows == nullptr ? 1 : plan.windows->of_a ? variant.of_rows : variant.of_others;
    const double rate = variant.rate * of_windows;
    const double time = static_cast<double>(rounds * variant.rows * variant.columns) * length / rate +
                        (slices > 1 ? second_pass_time(sums) : 0);
    offers.add({Kind::native, variant.name, row, time, suits ? Fit::suits : Fit::perhaps});
  }
}

bool is_native_variant(std::string_view name) {
  return std::any_of(std::begin(kVariants), std::end(kVariants),
                     [&](const NativeVariant& row) { return name == row.name; });
}

CopyRequest native_copy_of_a(const GemmArgs& args) {
  const int32_t type = multiplied_type(args.a_type, args.b_type);
  return {transposes_a(args) || type != args.a_type, type, transposes_a(args)};
}
CopyRequest native_copy_of_b(const GemmArgs& args) {
  const int32_t type = multiplied_type(args.b_type, args.a_type);
  return {transposes_b(args) || type != args.b_type, type, transposes_b(args)};
}

bool native_keeps_sums(const GemmArgs& args) {
  return takes_second_pass(args) || kFloat8Types.has(args.c_type) || args.epilogue.activation != TUFF_ACTIVATION_NONE;
}

bool record_native(Recorder& recorder, Plan& plan) {
  const DeviceTraits& traits = recorder.traits();
  const GemmArgs& args = plan.args;
  const NativeVariant& variant = kVariants[plan.choice.offer.row];
  const Extents all = extents_of(args, plan.windows);
  const uint64_t tiles = tiles_of(all, variant);
  Wgmma kernel;
  kernel.rows = variant.rows;
  kernel.columns = variant.columns;
  kernel.type = plan.a_request.wanted ? plan.a_request.type : args.a_type;
  kernel.b_type = plan.b_request.wanted ? plan.b_request.type : args.b_type;
  kernel.promoted = args.has_float8_inputs() && args.accumulate != TUFF_F16;
  if (has_groups(plan)) plan.choice.slices = 1;  // the second pass knows no groups
  slice_k(plan, traits, tiles, wanted_groups(traits, tiles, args.k), kMinWgmmaSlice, kernel.step());
  const bool bytes = kFloat8Types.has(args.c_type) && !stores_vectors(plan);
  plan.to_scratch = plan.slices > 1 || takes_second_pass(args) || !adds_residual(plan) || bytes;
  take_scratch(recorder, plan);

  set_options(plan, all, kernel);
  Wgmma::Push push = wgmma_push(plan, all, kernel, tiles, kPieceBytes / dtype_size(args.a_type));
  Dispatch dispatch = wgmma_dispatch(traits, plan, kernel, push, variant.name);
  if (plan.windows != nullptr) {
    kernel.windows = plan.windows->of_k ? 3 : plan.windows->of_a ? 1 : 2;
    kernel.valid = plan.windows->valid != 0;
    kernel.padded = plan.windows->padded;
    kernel.groups = has_groups(plan);
    if (kernel.groups) {
      push.stride_b = args.n * args.k * dtype_size(args.a_type);
      push.stride_c = push.stride_residual = args.n * dtype_size(plan.out_type);
    }
    if (kernel.padded) push.stride_bias = image_push(*plan.windows);
    if (has_filter(*plan.windows)) {
      const Windows::Filter& filter = plan.windows->filter;
      push.stride_b = std::bit_cast<uint64_t>(Wgmma::FilterPush{.tap_step = static_cast<uint32_t>(filter.step / kPiece),
                                                                .tap_row = static_cast<uint32_t>(filter.row / kPiece)});
    }
    dispatch.push(windows_push(plan, push, kPiece));
  } else {
    dispatch.push(push);
  }
  if (log_enabled(TUFF_LOG_DISPATCH)) {
    log(TUFF_LOG_DISPATCH, "gemm {}{} {} {}x{}x{} batch {}: {} ({}), {} tiles, {} parts of k{}", plan.ta ? 't' : 'n',
        plan.tb ? 't' : 'n', dtype_name(args.a_type), args.m, args.n, args.k, args.batch_count, variant.name,
        reason(plan), tiles, plan.slices, kernel.edge ? ", with edges" : "");
  }
  return refusals.dispatch(recorder, kernel.request(), dispatch, "gemm", plan.choice.offer.row);
}

// --- the trial ------------------------------------------------------------------------------------------------------

namespace {

constexpr uint64_t kTrialRows = 128, kTrialColumns = 128, kTrialLength = 192;

// Small whole numbers, whose products and sums are exact.
float trial_a(uint64_t row, uint64_t k) { return static_cast<float>((row * 3 + k * 5) % 11) - 5; }
float trial_b(uint64_t k, uint64_t column) { return static_cast<float>((k * 7 + column * 2) % 13) - 6; }

GemmArgs trial_args(const Buffer& a, const Buffer& b, const Buffer& c, int32_t type, uint64_t m, uint64_t n,
                    uint64_t k) {
  GemmArgs args{};
  args.a_type = args.b_type = type;
  args.c_type = args.accumulate = TUFF_F32;
  args.m = m;
  args.n = args.ldb = args.ldc = n;
  args.k = args.lda = k;
  args.alpha = 1;
  args.a = &a;
  args.b = &b;
  args.c = &c;
  return args;
}

// A product of matrices that kernels in SPIR-V convert before it, and whose result one reads after it.
bool try_hopper(ProbeRun& run) {
  const uint64_t m = kTrialRows, n = kTrialColumns, k = kTrialLength;
  const Buffer a = run.readable(m * k * 4), b = run.readable(k * n * 4), c = run.readable(m * n * 4);
  for (uint64_t i = 0; i < m * k; ++i) a.host<float>()[i] = trial_a(i / k, i % k);
  for (uint64_t i = 0; i < k * n; ++i) b.host<float>()[i] = trial_b(i / n, i % n);
  GemmArgs args = trial_args(a, b, c, TUFF_F32, m, n, k);
  args.epilogue.activation = TUFF_ACTIVATION_RELU;  // by the second pass
  Plan plan(args);
  plan.choice.offer = {Kind::native, "trial", 1, 0, Fit::by_name};
  plan.a_request = plan.b_request = {true, TUFF_F16, false};
  if (!record_native(run.recorder(), plan)) return false;
  record_finish(run.recorder(), args, plan.out, plan.slices);
  run.finish();
  for (uint64_t i = 0; i < m * n; ++i) {
    float sum = 0;
    for (uint64_t j = 0; j < k; ++j) sum += trial_a(i / n, j) * trial_b(j, i % n);
    if (c.host<float>()[i] != std::max(sum, 0.0f)) return false;
  }
  return true;
}

bool may_be_hopper(const DeviceTraits& traits) { return traits.addresses && traits.storage16; }

}  // namespace

const Probe hopper_probe = {"hopper",
                            1,
                            "kernels in PTX for Hopper's tensor cores run",
                            "kernels in PTX for Hopper's tensor cores do not run here",
                            may_be_hopper,
                            try_hopper,
                            true};

}  // namespace tuff::gemm
