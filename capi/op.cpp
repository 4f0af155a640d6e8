// The header's "Extensions" group.
#include <array>
#include <memory>
#include <optional>
#include <string>

#include "capi/guard.hpp"
#include "capi/kernel_options.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "planning/status.hpp"
#include "runtime/custom/extension.hpp"

using tuff::Extension;
using tuff::ExtensionCall;
using tuff::ExtensionDeclaration;
using tuff::ExtensionValue;
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
using tuff::capi::Operand;
using tuff::capi::OpObject;
using tuff::capi::read_text;

namespace {

constexpr uint64_t kLongestText = 4096;

std::optional<std::string> read_formula(const char* text, const char* name) {
  if (text == nullptr) return std::nullopt;
  return read_text(text, name, kLongestText);
}

ExtensionDeclaration read_declaration(const tuff_op_desc& desc) {
  ExtensionDeclaration declaration;
  require(desc.name != nullptr, "desc->name is null");
  declaration.name = read_text(desc.name, "desc->name", kLongestText);
  require(desc.argument_count >= 1 && desc.argument_count <= TUFF_OP_MAX_ARGUMENTS,
          "desc->argument_count is {}, needs 1 to {}", desc.argument_count, TUFF_OP_MAX_ARGUMENTS);
  require(desc.arguments != nullptr, "desc->arguments is null, argument_count is {}", desc.argument_count);
  for (uint32_t i = 0; i < desc.argument_count; ++i) {
    const tuff_op_argument& argument = desc.arguments[i];
    require(argument.name != nullptr, "desc->arguments[{}].name is null", i);
    require(argument.reserved == 0, "desc->arguments[{}].reserved is {}, needs 0", i, argument.reserved);
    require(argument.elements == nullptr || *argument.elements != '\0', "desc->arguments[{}].elements is empty", i);
    declaration.arguments.push_back({read_text(argument.name, "desc->arguments[].name", kLongestText), argument.kind,
                                     argument.dtype, argument.access,
                                     read_formula(argument.elements, "desc->arguments[].elements").value_or(""),
                                     argument.minimum, argument.maximum});
  }
  declaration.groups = read_formula(desc.groups, "desc->groups");
  declaration.invocations = read_formula(desc.invocations, "desc->invocations");
  declaration.flops = read_formula(desc.flops, "desc->flops");
  declaration.has_kernel = desc.kernel != nullptr;
  return declaration;
}

// Calls the host function of an operation.
struct HostFunction {
  std::shared_ptr<const Extension> operation;
  tuff_op_host host;
  void* user;

  void operator()(const LaunchArgs& args) const {
    std::array<tuff_op_operand, TUFF_OP_MAX_ARGUMENTS> operands{};
    const auto& values = args.call->values;
    for (size_t i = 0; i < values.size(); ++i) {
      const tuff::Buffer* buffer = values[i].buffer;
      operands[i].integer = values[i].integer;
      operands[i].real = values[i].real;
      if (buffer == nullptr) continue;
      operands[i].data = buffer->allocation != nullptr ? buffer->host<std::byte>() : nullptr;
      operands[i].bytes = buffer->bytes;
    }
    tuff_status status = TUFF_OK;
    host(user, operands.data(), static_cast<uint32_t>(values.size()), &status);
    if (status != TUFF_OK) {
      tuff::fail(status, "the host function of {} returned {}", operation->name(), tuff_status_name(status));
    }
  }
};

std::unique_ptr<tuff::CustomKernel> make_kernel(Context& context, const std::shared_ptr<const Extension>& operation,
                                                const tuff_op_desc& desc, tuff_op_host host, void* user) {
  if (context.backend().computes_on_host()) {
    if (host == nullptr) {
      tuff::fail(TUFF_ERROR_UNSUPPORTED, "{} has no host function, and this context computes on the host",
                 operation->name());
    }
    return context.backend().create_host_kernel(operation->interface(), HostFunction{operation, host, user});
  }
  if (desc.kernel == nullptr) {
    tuff::fail(TUFF_ERROR_UNSUPPORTED, "{} has no kernel, and this context computes on a device", operation->name());
  }
  KernelOptions options = tuff::capi::read_kernel_options(tuff::capi::read_structure(desc.kernel, "desc->kernel"));
  options.source.name = operation->name();  // in messages, profiles and logs
  return context.backend().create_kernel(options);
}

Ref<OpObject> acquire_op(tuff_op handle) {
  auto op = tuff::handle_table().acquire<OpObject>(handle, HandleKind::op);
  if (!op) fail_handle("op", handle, "operation");
  return op;
}

}  // namespace

extern "C" {

tuff_status tuff_op_register(tuff_context context, const tuff_op_desc* desc, tuff_op_host host, void* user,
                             tuff_op* op) {
  return guarded("tuff_op_register", [&] {
    const auto owner = acquire_context(context);
    const tuff_op_desc wanted = tuff::capi::read_structure(desc, "desc");
    require(op != nullptr, "op is null");
    const auto operation = std::make_shared<const Extension>(read_declaration(wanted));
    owner->check_op_name(operation->name());  // before the kernel is compiled
    auto kernel = make_kernel(*owner, operation, wanted, host, user);
    tuff_kernel_properties properties{};
    kernel->describe(properties);
    if (!owner->backend().computes_on_host()) {
      operation->check_kernel(properties, wanted.kernel->language != TUFF_KERNEL_PTX);
    }
    Context::NewHandle handle(*owner, HandleKind::op);
    *op = handle.give_op(std::make_unique<OpObject>(owner, operation, std::move(kernel), properties));
  });
}

tuff_status tuff_op_find(tuff_context context, const char* name, tuff_op* op) {
  return guarded("tuff_op_find", [&] {
    const auto owner = acquire_context(context);
    require(name != nullptr, "name is null");
    require(op != nullptr, "op is null");
    *op = owner->find_op(name);
  });
}

tuff_status tuff_op_list(tuff_context context, char* buffer, uint64_t capacity, uint64_t* length) {
  return guarded("tuff_op_list", [&] {
    const auto owner = acquire_context(context);
    tuff::capi::check_text(buffer, "buffer", capacity);
    tuff::capi::write_text(owner->list_ops(), buffer, capacity, length);
  });
}

tuff_status tuff_op_run(tuff_stream stream, tuff_op op, const tuff_op_value* arguments, uint32_t count) {
  return guarded("tuff_op_run", [&] {
    const auto target = acquire_stream(stream);
    const auto object = acquire_op(op);
    if (object->context().get() != target.context().get()) tuff::capi::fail_other_context("op");
    const Extension& operation = object->operation();
    require(count == operation.argument_count(), "count is {}, {} takes {} arguments", count, operation.name(),
            operation.argument_count());
    require(arguments != nullptr, "arguments is null, count is {}", count);
    std::array<ExtensionValue, TUFF_OP_MAX_ARGUMENTS> values;
    std::array<std::optional<Operand>, TUFF_KERNEL_MAX_BINDINGS> operands;  // keep the buffers alive
    uint32_t held = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const tuff_op_value& value = arguments[i];
      values[i] = {nullptr, value.buffer != TUFF_NULL_HANDLE, value.integer, value.real};
      if (value.buffer == TUFF_NULL_HANDLE || !operation.is_buffer(i)) continue;
      values[i].buffer = operands[held++].emplace(target.context(), value.buffer, operation.argument_name(i));
    }
    ExtensionCall call;
    const bool on_host = target.context()->backend().computes_on_host();
    operation.prepare({values.data(), count}, on_host ? nullptr : &object->workgroup_size(), call);
    if (call.empty) return;
    target->launch(object->kernel(), call.launch());
  });
}

tuff_status tuff_op_destroy(tuff_op op) {
  if (op == TUFF_NULL_HANDLE) return TUFF_OK;
  return guarded("tuff_op_destroy", [&] {
    const auto object = tuff::handle_table().remove<OpObject>(op, HandleKind::op);
    if (!object) fail_handle("op", op, "operation");
    object->context()->forget_op(object->operation().name(), op);
  });
}

}  // extern "C"
