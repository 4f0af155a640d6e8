#include "runtime/vulkan/kernel_cache.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "planning/log.hpp"
#include "runtime/custom/compilers.hpp"
#include "runtime/profile.hpp"
#include "runtime/vulkan/custom_pipeline.hpp"
#include "runtime/vulkan/matrix_spirv.hpp"
#include "runtime/vulkan/reconvergence_spirv.hpp"
#include "runtime/vulkan/shader_compiler.hpp"

namespace tuff {
namespace {

// Identifies the device and the driver build, by what the driver says identifies its pipeline caches.
std::array<uint8_t, 16> driver_identity(const Device& device) {
  std::array<uint8_t, 16> identity;
  std::memcpy(identity.data(), device.physical.properties.pipelineCacheUUID, identity.size());
  const uint64_t device_hash = XXH3_64bits(device.physical.properties11.deviceUUID, VK_UUID_SIZE) ^
                               XXH3_64bits(device.physical.driver.driverInfo, VK_MAX_DRIVER_INFO_SIZE);
  for (size_t i = 0; i < identity.size(); ++i) identity[i] ^= static_cast<uint8_t>(device_hash >> (i % 8 * 8));
  return identity;
}

// Everything that the choice and compilation of kernels depends on: drivers that report different values have separate
// kernel lists.
std::string device_text(const Device& device) {
  const VkPhysicalDeviceProperties& properties = device.physical.properties;
  const DeviceTraits& t = device.traits;
  std::string text =
      fmt::format("{} {:x} {:x} {}{}{}{}{}{}{}{}{}{}{} {} {} {} {} {} {}", properties.deviceName, properties.vendorID,
                  properties.deviceID, +t.cpu, +t.subgroup_arithmetic, +t.subgroup_shuffle, +t.subgroup_ballot,
                  +t.addresses, +t.storage16, +t.storage8, +t.f16, +t.f64, +t.rounds_f16, +device.full_subgroups,
                  t.subgroup_size, t.cores, t.max_invocations, t.shared_bytes, t.push_bytes, t.max_range);
  for (uint32_t i = 0; i < t.matrix_shape_count; ++i) {
    const MatrixShape& shape = t.matrix_shapes[i];
    text += fmt::format(" {} {} {} {} {} {}", shape.m, shape.n, shape.k, shape.a, shape.b, shape.c);
  }
  return text;
}

// For people: tells whose entries have this driver's number in their names.
void store_driver_name(const DiskCache& disk, const Device& device) {
  tuff_device_properties properties{};
  describe(device.physical, properties);
  const std::string text = fmt::format("{}\n{}\n", properties.name, properties.driver);
  const auto bytes = std::as_bytes(std::span<const char>(text));
  const auto stored = disk.load("driver", {});
  if (!stored || !std::equal(stored->begin(), stored->end(), bytes.begin(), bytes.end())) {
    disk.store("driver", {}, bytes);
  }
}

std::span<const std::byte> as_bytes(const std::vector<uint32_t>& words) {
  return std::as_bytes(std::span<const uint32_t>(words));
}

}  // namespace

bool KernelCache::KeyEqual::operator()(const KeyView& left, const KeyView& right) const noexcept {
  const KernelRequest &a = left.kernel, &b = right.kernel;
  static_assert(std::has_unique_object_representations_v<KernelRequest::Define>);
  static_assert(std::has_unique_object_representations_v<KernelRequest::Constant>);
  return &a.source() == &b.source() && left.form == right.form && a.is_wide() == b.is_wide() &&
         a.matrices() == b.matrices() && a.define_count() == b.define_count() && a.define_sum() == b.define_sum() &&
         a.constant_count() == b.constant_count() && a.same_body(b) &&
         std::memcmp(a.defines(), b.defines(), a.define_count() * sizeof(KernelRequest::Define)) == 0 &&
         std::memcmp(a.constants(), b.constants(), a.constant_count() * sizeof(KernelRequest::Constant)) == 0;
}

// A sum of products, which CPUs compute in parallel. Define names are left out, because the source determines them.
size_t KernelCache::KeyHash::operator()(const KeyView& key) const noexcept {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio
  const KernelRequest& kernel = key.kernel;
  uint64_t sum = reinterpret_cast<uintptr_t>(&kernel.source()) * 32 + key.form.operands * 16 + (key.form.far ? 8 : 0) +
                 (key.form.addresses ? 4 : 0) + (key.form.group_rows ? 2 : 0) + (kernel.is_wide() ? 1 : 0);
  sum += kernel.define_sum() * kOdd + key.form.texels * (kOdd * 2 + 1);
  for (uint32_t i = 0; i < kernel.constant_count(); ++i) {
    sum += kernel.constants()[i].value * (kOdd * (2 * (i + KernelRequest::kMaxDefines) + 1));
  }
  return sum ^ (sum >> 32);
}

KernelCache::KernelCache(std::shared_ptr<Device> device)
    : device_(std::move(device)),
      disk_(driver_identity(*device_)),
      file_(device_->vk, device_->handle, disk_),
      list_(disk_, device_text(*device_)) {
  store_driver_name(disk_, *device_);
  const std::vector<std::byte> stored = file_.load();
  VkPipelineCacheCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  info.initialDataSize = stored.size();
  info.pInitialData = stored.data();
  device_->check_made(device_->vk.vkCreatePipelineCache(device_->handle, &info, nullptr, &driver_cache_), driver_cache_,
                      "vkCreatePipelineCache");
}

KernelCache::~KernelCache() {
  const VolkDeviceTable& vk = device_->vk;
  if (prewarm_) {
    prewarm_->stop();
    if (prewarm_->built() != 0 && prewarm_->to_build() != 0) unsaved_ = true;  // it was stopped before it could save
    prewarm_->each_leftover([&](const Pipeline& left) { destroy(left); });
  }
  if (!device_->lost()) {
    save();
  } else {
    file_.was_lost();
  }
  for (const auto& [key, pipeline] : pipelines_) destroy(pipeline);
  for (const auto& row : layouts_) {
    for (const Layout& layout : row) destroy(layout);
  }
  for (const auto& [slots, layout] : texel_layouts_) destroy(layout);
  vk.vkDestroyPipelineCache(device_->handle, driver_cache_, nullptr);
}

// Callers have already done their main work: if there is no memory for saving, a later call does it.
void KernelCache::save() noexcept {
  try {
    list_.save();
  } catch (const std::exception& error) {
    log(TUFF_LOG_INFO, "cache: the list of kernels is not saved: {}", error.what());
  }
  const bool unsaved = unsaved_.exchange(false);
  try {
    if (file_.on_trial() && built_ != 0) file_.came_back();
    if (unsaved) file_.save(driver_cache_);
  } catch (const std::exception& error) {
    unsaved_ = unsaved;
    log(TUFF_LOG_INFO, "cache: pipelines are not saved: {}", error.what());
  }
}

const CachedPipeline& KernelCache::get(const KernelRequest& kernel, const KernelForm& form) {
  Pipelines::value_type*& recent = recent_[recent_place(kernel)];
  const KeyView wanted(kernel, form);
  if (recent != nullptr && KeyEqual()(wanted, recent->first)) [[likely]] {
    ++hits_;
    recent->second.used = ++uses_;
    return recent->second;
  }
  auto found = pipelines_.find(wanted);
  if (found != pipelines_.end()) {
    ++hits_;
  } else {
    found = pipelines_.try_emplace(Key{kernel, form}, Pipeline{}).first;
    try {
      static_cast<Pipeline&>(found->second) = make(found->first);
    } catch (...) {
      pipelines_.erase(found);
      throw;
    }
    if (pipelines_.size() > limit_) make_room(&found->second);
  }
  recent = &*found;
  recent->second.used = ++uses_;
  return recent->second;
}

void KernelCache::set_limit(uint64_t pipelines) {
  limit_ = pipelines != 0 ? pipelines : kDefaultPipelines;
  if (pipelines_.size() > limit_) make_room(nullptr);
}

// Evicts an eighth more than necessary, so that not every new pipeline causes a scan.
void KernelCache::make_room(const CachedPipeline* wanted) {
  if (retired_ == nullptr) return;
  std::vector<Pipelines::iterator> idle;
  for (auto it = pipelines_.begin(); it != pipelines_.end(); ++it) {
    if (it->second.pins == 0 && &it->second != wanted) idle.push_back(it);
  }
  const uint64_t goal = limit_ - limit_ / 8;
  const size_t count = std::min<size_t>(idle.size(), pipelines_.size() - std::min<size_t>(goal, pipelines_.size()));
  std::nth_element(idle.begin(), idle.begin() + static_cast<ptrdiff_t>(count), idle.end(),
                   [](const auto& a, const auto& b) { return a->second.used < b->second.used; });
  recent_ = {};
  for (size_t i = 0; i < count; ++i) {
    const Pipeline& evicted = idle[i]->second;
    retired_->add({.pipeline = evicted.handle, .module = evicted.module, .function = evicted.function}, *timelines_);
    pipelines_.erase(idle[i]);
    ++evicted_;
  }
  retired_->completed(*timelines_);
  log(TUFF_LOG_DEBUG, "the {} least recently used pipelines are evicted", count);
}

size_t KernelCache::recent_place(const KernelRequest& kernel) noexcept {
  const uint64_t source = reinterpret_cast<uintptr_t>(&kernel.source()) / alignof(KernelSource);
  return (source + kernel.define_sum()) % std::tuple_size_v<decltype(recent_)>;
}

Pipeline KernelCache::make(const Key& key) {
  check_defines(key.kernel);
  const std::string line = kernel_line(key.kernel, key.form);
  Pipeline pipeline;
  {
    const Prewarm::Turn turn(prewarm_.get(), line);
    pipeline = turn.pipeline() ? *turn.pipeline() : build(key);
    if (!turn.pipeline()) unsaved_ = true;
  }
  if (!line.empty()) list_.add(line);  // must not throw: the pipeline would leak
  return pipeline;
}

void KernelCache::prewarm() {
  if (prewarm_) return;
  std::vector<ListedKernel> kernels = list_.load();
  log(TUFF_LOG_INFO, "prewarm: {} kernels are on the list", kernels.size());
  if (kernels.size() > limit_) kernels.erase(kernels.begin() + static_cast<ptrdiff_t>(limit_), kernels.end());
  const auto build_listed = [this](const ListedKernel& listed) {
    device_->require_alive();
    return build({listed.kernel, listed.form});
  };
  const auto done = [this](uint64_t built) {
    log(TUFF_LOG_INFO, "prewarm: {} kernels are ready", built);
    // If a caller is saving, the next one saves what was built since: this thread must not wait (lock_ranks.def).
    if (built != 0 && !device_->lost() && !file_.try_save(driver_cache_)) unsaved_ = true;
  };
  prewarm_ = std::make_unique<Prewarm>(std::move(kernels), build_listed, done);
}

KernelCache::Counters KernelCache::counters() const noexcept {
  return {compiled_,
          disk_hits_,
          built_,
          hits_,
          prewarm_ ? prewarm_->built() : 0,
          prewarm_ ? prewarm_->to_build() : 0,
          pipelines_.size(),
          evicted_};
}

void KernelCache::destroy(const Pipeline& pipeline) noexcept {
  device_->vk.vkDestroyPipeline(device_->handle, pipeline.handle, nullptr);
  device_->destroy_native(pipeline.module, pipeline.function);
}

void KernelCache::destroy(const Layout& layout) noexcept {
  device_->vk.vkDestroyPipelineLayout(device_->handle, layout.pipeline, nullptr);
  device_->vk.vkDestroyDescriptorSetLayout(device_->handle, layout.set, nullptr);
}

// Created without the lock, because the driver's messages are logged (lock_ranks.def). If two threads create one, the
// second is destroyed.
VkPipelineLayout KernelCache::layout(const KernelForm& form) {
  {
    const std::lock_guard lock(layout_mutex_);
    if (const Layout& kept = kept_layout(form); kept.pipeline != VK_NULL_HANDLE) return kept.pipeline;
  }
  struct Spare {
    KernelCache& cache;
    Layout layout{};
    ~Spare() { cache.destroy(layout); }
  } spare{*this};
  Layout& layout = spare.layout;
  if (!form.addresses) {
    std::array<VkDescriptorSetLayoutBinding, Dispatch::kMaxSlots> bindings{};
    for (uint32_t i = 0; i < form.operands; ++i) {
      const VkDescriptorType type = texel_bytes(form.texels, i) != 0 ? VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER
                                                                     : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
      bindings[i] = {i, type, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
    }
    layout.set = device_->make_set_layout({bindings.data(), form.operands});
  }
  layout.pipeline = device_->make_pipeline_layout(layout.set, kPushBytes);
  const std::lock_guard lock(layout_mutex_);
  Layout& kept = kept_layout(form);
  if (kept.pipeline == VK_NULL_HANDLE) std::swap(kept, layout);
  return kept.pipeline;
}

// The caller holds layout_mutex_.
KernelCache::Layout& KernelCache::kept_layout(const KernelForm& form) {
  if (form.texels != 0) return texel_layouts_[{form.operands, form.texels}];
  return layouts_[form.addresses][form.addresses ? 0 : form.operands];
}

KernelCache::Spirv KernelCache::spirv(const Key& key) {
  std::string text = kernel_text(key.kernel, key.form, {device_->traits.rounds_f16, device_->traits.preserves_f32});
  // Modules are stored by their text, and a driver may promise more in another version.
  if (device_->reconvergence != Reconvergence::core) {
    text += fmt::format("// reconvergence {}\n", static_cast<int>(device_->reconvergence));
  }
  const CacheKey hash = hash_text(text);
  if (const auto stored = disk_.load_sealed("spirv", hash); stored && stored->size() % sizeof(uint32_t) == 0) {
    Spirv found{std::vector<uint32_t>(stored->size() / sizeof(uint32_t)), std::nullopt};
    std::memcpy(found.words.data(), stored->data(), stored->size());
    ++disk_hits_;
    return found;
  }
  log(TUFF_LOG_DEBUG, "compiling {}", key.kernel.source().name);
  std::vector<uint32_t> words = compile_glsl(key.kernel.source().name, text);
  if (key.kernel.matrices() != Matrices::none) words = rewrite_matrices(words, key.kernel.matrices());
  words = with_reconvergence(std::move(words), device_->reconvergence);
  ++compiled_;
  return {std::move(words), hash};
}

// The text is written anew, which takes a fraction of a millisecond. The driver keeps what it made of it on disk.
Pipeline KernelCache::build_native(const KernelRequest& kernel) {
  check_defines(kernel);  // they may come from a list on disk
  if (!device_->native) fail(TUFF_ERROR_UNSUPPORTED, "{} is in PTX, and the device takes none", kernel.source().name);
  require_compilers();  // when the process exits, the driver's may be gone too
  const NativeKernel native = kernel.source().write(kernel);
  log(TUFF_LOG_DEBUG, "loading {}, {} bytes of PTX", kernel.source().name, native.text.size());
  const Device::Native made = device_->load_native(native.text, native.entry);
  if (made.function == VK_NULL_HANDLE) {
    fail(TUFF_ERROR_UNSUPPORTED, "the driver does not accept the PTX of {}", native.entry);
  }
  ++compiled_;
  ++built_;
  return {VK_NULL_HANDLE, VK_NULL_HANDLE, made.module, made.function, native.threads, native.shared_bytes};
}

Pipeline KernelCache::build(const Key& key) {
  const ProfiledStep step("build kernel");
  if (key.kernel.source().native()) return build_native(key.kernel);
  const VolkDeviceTable& vk = device_->vk;
  const Spirv code = spirv(key);
  Pipeline pipeline;
  pipeline.layout = layout(key.form);

  const VkShaderModule module = device_->make_shader_module(code.words);
  std::array<VkSpecializationMapEntry, KernelRequest::kMaxConstants> entries{};
  std::array<uint32_t, KernelRequest::kMaxConstants> values{};
  for (uint32_t i = 0; i < key.kernel.constant_count(); ++i) {
    entries[i] = {key.kernel.constants()[i].id, i * 4, 4};
    values[i] = key.kernel.constants()[i].value;
  }
  const VkSpecializationInfo specialisation{key.kernel.constant_count(), entries.data(),
                                            key.kernel.constant_count() * sizeof(uint32_t), values.data()};
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup{};
  subgroup.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
  subgroup.requiredSubgroupSize = device_->traits.subgroup_size;
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.pNext = device_->full_subgroups ? &subgroup : nullptr;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &specialisation;
  info.layout = pipeline.layout;
  const VkResult result =
      vk.vkCreateComputePipelines(device_->handle, driver_cache_, 1, &info, nullptr, &pipeline.handle);
  vk.vkDestroyShaderModule(device_->handle, module, nullptr);
  device_->check_made(result, pipeline.handle, "vkCreateComputePipelines");
  // Only after the driver has accepted it. Nothing may throw from here on: the pipeline would leak.
  if (code.to_store) disk_.store("spirv", *code.to_store, as_bytes(code.words), DiskCache::Seal::sealed);
  device_->set_name(VK_OBJECT_TYPE_PIPELINE, pipeline.handle, key.kernel.source().name);
  ++built_;
  return pipeline;
}

}  // namespace tuff
