#include "sweeps/limits.hpp"

#include <algorithm>

#include "capi/objects.hpp"
#include "fuzz/draw.hpp"
#include "planning/device_traits.hpp"
#include "runtime/vulkan/device.hpp"
#include "runtime/vulkan/vulkan_backend.hpp"

namespace tuff_sweep {
namespace {

// Vulkan allows no device fewer.
constexpr uint32_t kLeastInvocations = 128, kLeastShared = 16 << 10, kLeastPush = 128;

tuff::Device& device_of(uint64_t context) {
  return dynamic_cast<tuff::VulkanBackend&>(tuff::capi::acquire_context(context)->backend()).device();
}

}  // namespace

struct LimitedDevice::Traits {
  tuff::DeviceTraits& used;
  const tuff::DeviceTraits real;
};

LimitedDevice::LimitedDevice(uint64_t context)
    : traits_(new Traits{device_of(context).traits, device_of(context).traits}) {}

LimitedDevice::~LimitedDevice() { traits_->used = traits_->real; }

void LimitedDevice::limit(uint64_t seed) {
  tuff_fuzz::Draw draw(seed);
  const tuff::DeviceTraits& real = traits_->real;
  tuff::DeviceTraits t = real;
  t.cpu = t.cpu && draw.one_in(3);
  t.cores = draw.of<uint32_t>({0, 1, 2, 16, 132, 132});
  t.max_invocations = std::min(real.max_invocations, draw.of<uint32_t>({kLeastInvocations, 256, 1024, 1024}));
  t.max_local_size[0] = std::min(real.max_local_size[0], draw.of<uint32_t>({kLeastInvocations, 1024, 1024}));
  // Vulkan's least is 65,535 workgroups, which would take tensors of many megabytes.
  t.max_groups[0] = std::min(real.max_groups[0], draw.of<uint32_t>({8, 64, 1000, 65535, 65535, 65535}));
  t.shared_bytes = std::min(real.shared_bytes, draw.of<uint32_t>({kLeastShared, 32 << 10, 48 << 10}));
  t.push_bytes = std::min(real.push_bytes, draw.of<uint32_t>({kLeastPush, 256}));
  // Vulkan's least is 128 MiB. Rows have to be shorter than this (lengthen() in cases.cpp).
  t.max_range = std::min(real.max_range, draw.of<uint64_t>({1 << 19, 1 << 20, uint64_t{1} << 40}));
  // `addresses` stays: memory that is allocated without them would never have one.
  t.streams_by_addresses = t.addresses && draw.one_in(2);
  t.tiles_by_addresses = t.addresses && draw.one_in(2);
  t.packed_by_addresses = t.addresses && !draw.one_in(8);
  t.streams_by_words = t.cpu && draw.one_in(2);
  t.storage16 = t.storage16 && !draw.one_in(8);
  t.storage8 = t.storage8 && !draw.one_in(8);
  t.f16 = t.f16 && t.storage16 && draw.one_in(2);
  t.rounds_f16 = t.rounds_f16 && t.f16;
  t.f64 = t.f64 && !draw.one_in(8);
  traits_->used = t;
}

std::string LimitedDevice::text() const {
  const tuff::DeviceTraits& t = traits_->used;
  std::string text = t.cpu ? "CPU" : "GPU";
  const auto number = [&](const char* name, uint64_t value) {
    text += std::string(" ") + name + " " + std::to_string(value);
  };
  const auto flag = [&](const char* name, bool value) { text += value ? std::string(" ") + name : ""; };
  number("cores", t.cores), number("invocations", t.max_invocations), number("local size", t.max_local_size[0]);
  number("groups", t.max_groups[0]), number("shared", t.shared_bytes), number("push", t.push_bytes);
  number("range", t.max_range);
  flag("addresses", t.addresses), flag("streams_by_addresses", t.streams_by_addresses);
  flag("tiles_by_addresses", t.tiles_by_addresses), flag("packed_by_addresses", t.packed_by_addresses);
  flag("words", t.streams_by_words), flag("storage16", t.storage16), flag("storage8", t.storage8);
  flag("f16", t.f16), flag("f64", t.f64);
  return text;
}

}  // namespace tuff_sweep
