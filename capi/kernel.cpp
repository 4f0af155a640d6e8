// The header's "Custom kernels" group.
#include <algorithm>
#include <memory>
#include <string>

#include "capi/guard.hpp"
#include "capi/kernel_options.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "planning/status.hpp"

using tuff::CustomSource;
using tuff::HandleKind;
using tuff::KernelOptions;
using tuff::LaunchArgs;
using tuff::Ref;
using tuff::require;
using tuff::require_reserved;
using tuff::capi::acquire_context;
using tuff::capi::acquire_stream;
using tuff::capi::Context;
using tuff::capi::fail_handle;
using tuff::capi::guarded;
using tuff::capi::KernelObject;
using tuff::capi::OperandArrays;
using tuff::capi::read_text;

namespace {

constexpr uint64_t kDefaultSourceBytes = 1 << 20, kMaxSourceBytes = 64 << 20;
constexpr uint64_t kDefaultMilliseconds = 10'000, kMaxMilliseconds = 3'600'000;
constexpr uint64_t kDefaultMemory = 512 << 20, kMinMemory = 64 << 20;
constexpr uint32_t kMaxEntries = 1024;  // each for defines and for constants
constexpr size_t kLongestName = 256;

Ref<KernelObject> acquire_kernel(tuff_kernel handle) {
  auto kernel = tuff::handle_table().acquire<KernelObject>(handle, HandleKind::kernel);
  if (!kernel) fail_handle("kernel", handle, "kernel");
  return kernel;
}

std::string read_name(const char* text, const char* name, const char* otherwise) {
  return text != nullptr && *text != '\0' ? read_text(text, name, kLongestName) : otherwise;
}

const char* name_of(int32_t language) {
  return language == TUFF_KERNEL_GLSL ? "GLSL" : language == TUFF_KERNEL_SPIRV ? "SPIR-V" : "PTX";
}

void read_source(const tuff_kernel_desc& desc, uint64_t most, CustomSource& source) {
  require(desc.source != nullptr, "desc->source is null");
  if (desc.source_bytes > most) {
    tuff::fail(TUFF_ERROR_LIMIT_EXCEEDED, "desc->source is {} bytes, max_source_bytes is {}", desc.source_bytes, most);
  }
  const auto* bytes = static_cast<const char*>(desc.source);
  if (desc.source_bytes == 0) {
    require(desc.language != TUFF_KERNEL_SPIRV, "desc->source_bytes is 0, SPIR-V needs its size");
    source.text = read_text(bytes, "desc->source", most);
  } else {
    source.text.assign(bytes, desc.source_bytes);
  }
  // Texts of C arrays and of `cuModuleLoadData` end with a NUL that their size counts.
  if (desc.language == TUFF_KERNEL_PTX && source.text.ends_with('\0')) source.text.pop_back();
}

void read_defines(const tuff_kernel_desc& desc, uint64_t most, CustomSource& source) {
  require(desc.define_count == 0 || desc.defines != nullptr, "desc->defines is null, define_count is {}",
          desc.define_count);
  require(desc.define_count <= kMaxEntries, "desc->define_count is {}, at most {}", desc.define_count, kMaxEntries);
  require(desc.define_count == 0 || desc.language == TUFF_KERNEL_GLSL, "desc->define_count is {}, {} has no defines",
          desc.define_count, name_of(desc.language));
  uint64_t total = source.text.size();
  for (uint32_t i = 0; i < desc.define_count; ++i) {
    const tuff_kernel_define& define = desc.defines[i];
    require(define.name != nullptr, "desc->defines[{}].name is null", i);
    const char* value = define.value != nullptr ? define.value : "1";
    source.defines.push_back({read_text(define.name, "desc->defines", most), read_text(value, "desc->defines", most)});
    total += source.defines.back().name.size() + source.defines.back().value.size();
    if (total > most) {
      tuff::fail(TUFF_ERROR_LIMIT_EXCEEDED,
                 "desc->source and defines are more than {} bytes, which is max_source_bytes", most);
    }
  }
}

void read_constants(const tuff_kernel_desc& desc, CustomSource& source) {
  require(desc.constant_count == 0 || desc.language != TUFF_KERNEL_PTX,
          "desc->constant_count is {}, PTX has no specialisation constants", desc.constant_count);
  require(desc.constant_count == 0 || desc.constants != nullptr, "desc->constants is null, constant_count is {}",
          desc.constant_count);
  require(desc.constant_count <= kMaxEntries, "desc->constant_count is {}, at most {}", desc.constant_count,
          kMaxEntries);
  for (uint32_t i = 0; i < desc.constant_count; ++i) {
    const tuff_kernel_constant& constant = desc.constants[i];
    require(constant.reserved == 0, "desc->constants[{}].reserved is {}, needs 0", i, constant.reserved);
    source.constants.push_back({constant.id, constant.bits});
  }
}

// What only kernels in PTX have.
void read_launch(const tuff_kernel_desc& desc, CustomSource& source) {
  std::copy_n(desc.workgroup_size, 3, source.workgroup_size.begin());
  source.shared_bytes = desc.shared_bytes;
  if (desc.language == TUFF_KERNEL_PTX) return;
  const char* language = name_of(desc.language);
  for (const uint32_t size : desc.workgroup_size) {
    require(size == 0, "desc->workgroup_size is {{{}}}, {} states its own: needs zeros",
            fmt::join(source.workgroup_size, ", "), language);
  }
  require(desc.shared_bytes == 0, "desc->shared_bytes is {}, {} states its own: needs 0", desc.shared_bytes, language);
}

void check_flags(const tuff_kernel_desc& desc) {
  constexpr uint32_t kKnownFlags = TUFF_KERNEL_ROBUST | TUFF_KERNEL_UNTRUSTED;
  require((desc.flags & ~kKnownFlags) == 0, "desc->flags is {:#x}, this version knows {:#x}", desc.flags, kKnownFlags);
  if (desc.language != TUFF_KERNEL_PTX || desc.flags == 0) return;
  tuff::fail(TUFF_ERROR_UNSUPPORTED, "desc->flags has {}: PTX can neither be checked nor confined",
             (desc.flags & TUFF_KERNEL_UNTRUSTED) != 0 ? "TUFF_KERNEL_UNTRUSTED" : "TUFF_KERNEL_ROBUST");
}

}  // namespace

KernelOptions tuff::capi::read_kernel_options(const tuff_kernel_desc& desc) {
  require(desc.language >= TUFF_KERNEL_GLSL && desc.language <= TUFF_KERNEL_PTX,
          "desc->language is {}, needs TUFF_KERNEL_GLSL, TUFF_KERNEL_SPIRV or TUFF_KERNEL_PTX", desc.language);
  check_flags(desc);
  require_reserved(desc.reserved);
  const uint64_t most = desc.max_source_bytes != 0 ? desc.max_source_bytes : kDefaultSourceBytes;
  require(most <= kMaxSourceBytes, "desc->max_source_bytes is {}, at most {}", most, kMaxSourceBytes);
  KernelOptions options;
  options.robust = (desc.flags & TUFF_KERNEL_ROBUST) != 0;
  options.untrusted = (desc.flags & TUFF_KERNEL_UNTRUSTED) != 0;
  options.limits.milliseconds = desc.compile_milliseconds != 0 ? desc.compile_milliseconds : kDefaultMilliseconds;
  options.limits.memory_bytes = desc.compile_memory_bytes != 0 ? desc.compile_memory_bytes : kDefaultMemory;
  require(options.limits.milliseconds <= kMaxMilliseconds, "desc->compile_milliseconds is {}, at most {}",
          options.limits.milliseconds, kMaxMilliseconds);
  require(options.limits.memory_bytes >= kMinMemory, "desc->compile_memory_bytes is {}, needs at least {}",
          options.limits.memory_bytes, kMinMemory);
  CustomSource& source = options.source;
  source.language = desc.language;
  source.name = read_name(desc.name, "desc->name", "kernel");
  source.entry = read_name(desc.entry, "desc->entry", desc.language == TUFF_KERNEL_PTX ? "" : "main");
  require(desc.language != TUFF_KERNEL_GLSL || source.entry == "main",
          "desc->entry is \"{}\", GLSL's entry point is main", source.entry);
  read_source(desc, most, source);
  read_defines(desc, most, source);
  read_constants(desc, source);
  read_launch(desc, source);
  return options;
}

extern "C" {

tuff_status tuff_kernel_create(tuff_context context, const tuff_kernel_desc* desc, tuff_kernel* kernel) {
  return guarded("tuff_kernel_create", [&] {
    const auto owner = acquire_context(context);
    const KernelOptions options = tuff::capi::read_kernel_options(tuff::capi::read_structure(desc, "desc"));
    require(kernel != nullptr, "kernel is null");
    Context::NewHandle handle(*owner, HandleKind::kernel);
    *kernel = handle.give(std::make_unique<KernelObject>(owner, owner->backend().create_kernel(options)));
  });
}

tuff_status tuff_kernel_info(tuff_kernel kernel, tuff_kernel_properties* info) {
  return guarded("tuff_kernel_info", [&] {
    const auto object = acquire_kernel(kernel);
    tuff::capi::check_output_structure(info, "info");
    tuff_kernel_properties properties{};
    object->kernel().describe(properties);
    tuff::capi::write_structure(info, properties);
  });
}

tuff_status tuff_kernel_launch(tuff_stream stream, tuff_kernel kernel, const tuff_buffer* buffers, uint32_t count,
                               const void* push, uint32_t push_bytes, uint32_t gx, uint32_t gy, uint32_t gz) {
  return guarded("tuff_kernel_launch", [&] {
    const auto target = acquire_stream(stream);
    const Ref<Context>& context = target.context();
    const auto object = acquire_kernel(kernel);
    if (object->context().get() != context.get()) tuff::capi::fail_other_context("kernel");
    require(count <= TUFF_KERNEL_MAX_BINDINGS, "count is {}, at most {}", count, TUFF_KERNEL_MAX_BINDINGS);
    require(buffers != nullptr || count == 0, "buffers is null, count is {}", count);
    OperandArrays arrays(context, 1, count);
    LaunchArgs args;
    args.buffers = arrays.add(buffers, count, "buffers");
    args.push = push;
    args.push_bytes = push_bytes;
    args.groups = {gx, gy, gz};
    target->launch(object->kernel(), args);
  });
}

tuff_status tuff_kernel_destroy(tuff_kernel kernel) {
  if (kernel == TUFF_NULL_HANDLE) return TUFF_OK;
  return guarded("tuff_kernel_destroy", [&] {
    const auto object = tuff::handle_table().remove<KernelObject>(kernel, HandleKind::kernel);
    if (!object) fail_handle("kernel", kernel, "kernel");
    object->context()->forget(kernel);
  });
}

}  // extern "C"
