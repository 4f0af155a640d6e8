#include "runtime/custom/extension.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "planning/buffer.hpp"
#include "planning/status.hpp"

namespace tuff {
namespace {

constexpr size_t kLongestWord = 63;
constexpr ElementTypes kScalarTypes = {TUFF_F32, TUFF_F64, TUFF_I32, TUFF_U32, TUFF_I64, TUFF_U64};
constexpr ElementTypes kRealScalars = {TUFF_F32, TUFF_F64};

// What operations' names consist of, besides full stops.
bool is_word_character(char c) { return is_name_character(c) && !(c >= 'A' && c <= 'Z'); }

bool is_identifier(std::string_view name) {
  return !name.empty() && name.size() <= kLongestWord && is_name_start(name[0]) &&
         std::all_of(name.begin(), name.end(), is_name_character);
}

void check_operation_name(const std::string& name) {
  bool good = name.size() <= kLongestWord && name.find('.') != std::string::npos;
  for (size_t begin = 0; good && begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    good = end != begin && std::all_of(name.begin() + static_cast<ptrdiff_t>(begin),
                                       name.begin() + static_cast<ptrdiff_t>(end), is_word_character);
    begin = end + 1;
  }
  require(good, "desc->name is \"{}\", needs two or more words of a-z, 0-9 and _, joined by full stops, in {} bytes",
          name, kLongestWord);
  const std::string_view first = std::string_view(name).substr(0, name.find('.'));
  const bool own = std::any_of(all_operations.begin(), all_operations.end(),
                               [&](const OperationInfo* info) { return first == info->name; });
  require(!own && dtype_by_name(first) == 0, "desc->name is \"{}\", and {} is {} of Tuff", name, first,
          own ? "an operation" : "an element type");
}

const char* access_name(Access access) {
  return access == Access::read ? "read" : access == Access::write ? "write" : "read_write";
}

bool includes(Access all, Access one) { return (static_cast<unsigned>(all) & static_cast<unsigned>(one)) != 0; }

// Exact for every 64-bit integer where long double has 64 bits of fraction or more. Where it is a double, numbers next
// to a bound beyond 2^53 may be taken for the bound.
bool is_within(long double value, double minimum, double maximum) {
  return value >= static_cast<long double>(minimum) && value <= static_cast<long double>(maximum);
}

template <typename T>
bool fits_scalar(int64_t value) {
  return value >= static_cast<int64_t>(std::numeric_limits<T>::min()) &&
         value <= static_cast<int64_t>(std::numeric_limits<T>::max());
}

}  // namespace

LaunchArgs ExtensionCall::launch() const {
  LaunchArgs args;
  args.buffers = {buffers.data(), buffer_count};
  args.push = push.data();
  args.push_bytes = operation->push_bytes();
  args.groups = groups;
  args.call = this;
  return args;
}

void Extension::add_argument(const ExtensionArgument& argument, size_t i) {
  const std::string& name = argument.name;
  require(is_identifier(name), "desc->arguments[{}].name is \"{}\", needs an identifier of at most {} bytes", i, name,
          kLongestWord);
  require(!SizeFormula::is_function(name), "desc->arguments[{}].name is \"{}\", which is a function of formulas", i,
          name);
  const bool taken =
      std::any_of(arguments_.begin(), arguments_.end(), [&](const Argument& other) { return other.name == name; });
  require(!taken, "desc->arguments[{}].name is \"{}\", as that of an earlier one", i, name);
  require(argument.kind == TUFF_OP_BUFFER || argument.kind == TUFF_OP_SCALAR,
          "desc->arguments[{}].kind ({}) is {}, needs TUFF_OP_BUFFER or TUFF_OP_SCALAR", i, name, argument.kind);
  Argument own{};
  own.name = name;
  own.is_buffer = argument.kind == TUFF_OP_BUFFER;
  own.dtype = argument.dtype;
  own.minimum = argument.minimum;
  own.maximum = argument.maximum;
  own.ranged = argument.minimum != 0 || argument.maximum != 0;
  const uint64_t size = dtype_size(argument.dtype);
  if (own.is_buffer) {
    require(argument.access >= TUFF_OP_READ && argument.access <= TUFF_OP_READ_WRITE,
            "desc->arguments[{}].access ({}) is {}, needs TUFF_OP_READ, TUFF_OP_WRITE or TUFF_OP_READ_WRITE", i, name,
            argument.access);
    require(!own.ranged, "desc->arguments[{}] ({}) is a buffer, and has a range", i, name);
    own.access = static_cast<Access>(argument.access);
    require(buffers_.size() < TUFF_KERNEL_MAX_BINDINGS, "desc->arguments has more than {} buffers",
            TUFF_KERNEL_MAX_BINDINGS);
    own.at = static_cast<uint32_t>(buffers_.size());
    buffers_.push_back(i);
  } else {
    require(kScalarTypes.has(argument.dtype), "desc->arguments[{}].dtype ({}) is {}, a scalar is {}", i, name,
            dtype_name(argument.dtype), names_of(kScalarTypes));
    require(argument.access == TUFF_OP_NO_ACCESS && argument.elements.empty(),
            "desc->arguments[{}] ({}) is a scalar, and has an access or a number of elements", i, name);
    require(argument.minimum <= argument.maximum, "desc->arguments[{}] ({}) has the range {} to {}", i, name,
            argument.minimum, argument.maximum);
    push_bytes_ = static_cast<uint32_t>((push_bytes_ + size - 1) / size * size);
    own.at = push_bytes_;
    push_bytes_ += static_cast<uint32_t>(size);
  }
  arguments_.push_back(std::move(own));
}

Extension::Extension(ExtensionDeclaration declaration) : name_(std::move(declaration.name)) {
  static_assert(static_cast<int>(Access::read) == TUFF_OP_READ && static_cast<int>(Access::write) == TUFF_OP_WRITE &&
                static_cast<int>(Access::read_write) == TUFF_OP_READ_WRITE);
  check_operation_name(name_);
  const size_t count = declaration.arguments.size();
  arguments_.reserve(count);
  for (size_t i = 0; i < count; ++i) add_argument(declaration.arguments[i], i);
  std::vector<std::string> names(count);
  for (size_t i = 0; i < count; ++i) {
    const Argument& argument = arguments_[i];
    if (argument.is_buffer || !kRealScalars.has(argument.dtype)) names[i] = argument.name;
  }
  for (size_t i = 0; i < count; ++i) {
    if (!arguments_[i].is_buffer) continue;
    const std::string& text = declaration.arguments[i].elements;
    arguments_[i].elements.emplace("the elements of " + arguments_[i].name, text.empty() ? "1" : text, names);
  }
  by_groups_ = declaration.groups.has_value();
  require(!by_groups_ || !declaration.invocations, "desc->groups and desc->invocations are given, needs one of them");
  require(by_groups_ || declaration.invocations || !declaration.has_kernel,
          "desc->groups and desc->invocations are NULL, and the operation has a kernel: needs one of them");
  if (declaration.groups) add_sizes(*declaration.groups, names);
  if (declaration.invocations) add_sizes(*declaration.invocations, names);
  if (declaration.flops) flops_.emplace("the flops", *declaration.flops, names);
}

// Formulas for x, y and z, between commas that are in no parentheses.
void Extension::add_sizes(std::string_view formulas, std::span<const std::string> names) {
  constexpr char kAxes[] = {'x', 'y', 'z'};
  const char* what = by_groups_ ? "groups" : "invocations";
  size_t axis = 0, begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= formulas.size(); ++i) {
    const char c = i < formulas.size() ? formulas[i] : ',';
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c != ',' || (depth > 0 && i < formulas.size())) continue;
    require(axis < 3, "desc->{} is \"{}\", at most three formulas", what, formulas);
    sizes_[axis].emplace(fmt::format("the {} in {}", what, kAxes[axis]), formulas.substr(begin, i - begin), names);
    ++axis;
    begin = i + 1;
  }
}

std::string Extension::signature() const {
  std::string text = name_ + "(";
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const Argument& argument = arguments_[i];
    text += fmt::format("{}{}: ", i == 0 ? "" : ", ", argument.name);
    if (argument.is_buffer) {
      text +=
          fmt::format("{} {}[{}]", access_name(argument.access), dtype_name(argument.dtype), argument.elements->text());
    } else {
      text += dtype_name(argument.dtype);
      if (argument.ranged) text += fmt::format(" {}..{}", argument.minimum, argument.maximum);
    }
  }
  return text + ")";
}

void Extension::check_kernel(const tuff_kernel_properties& kernel, bool tells_access) const {
  require(kernel.binding_count == buffers_.size(), "{} declares {} buffers, its kernel has {} bindings", name_,
          buffers_.size(), kernel.binding_count);
  require(kernel.push_bytes == push_bytes_,
          "{} declares scalars of {} bytes in all, its kernel's push constants are {}", name_, push_bytes_,
          kernel.push_bytes);
  if (!tells_access) return;
  for (uint32_t i = 0; i < buffers_.size(); ++i) {
    const Argument& argument = arguments_[buffers_[i]];
    const bool read = kernel.read >> i & 1, written = kernel.written >> i & 1;
    require(!read || includes(argument.access, Access::read),
            "{}: {} is declared as {}, and the kernel reads binding {}", name_, argument.name,
            access_name(argument.access), i);
    require(!written || includes(argument.access, Access::write),
            "{}: {} is declared as {}, and the kernel writes binding {}", name_, argument.name,
            access_name(argument.access), i);
  }
}

KernelInterface Extension::interface() const {
  KernelInterface interface;
  interface.push_bytes = push_bytes_;
  for (const size_t i : buffers_) {
    const Access access = arguments_[i].access;
    interface.bindings.push_back({true, includes(access, Access::read), includes(access, Access::write), 0});
  }
  return interface;
}

SizeValue Extension::check_scalar(const Argument& argument, const ExtensionValue& value, std::byte* push) const {
  const char* type = dtype_name(argument.dtype);
  require(!value.has_buffer, "{} is a scalar ({}), and its field buffer is set", argument.name, type);
  const auto check_range = [&](long double number, const auto& shown) {
    require(!argument.ranged || is_within(number, argument.minimum, argument.maximum), "{} is {}, needs {} to {}",
            argument.name, shown, argument.minimum, argument.maximum);
  };
  std::byte* to = push + argument.at;
  if (kRealScalars.has(argument.dtype)) {
    require(value.integer == 0, "{} is a scalar of type {}, and its field integer is {}: needs real", argument.name,
            type, value.integer);
    check_range(static_cast<long double>(value.real), value.real);
    if (argument.dtype == TUFF_F64) {
      std::memcpy(to, &value.real, sizeof value.real);
      return {};
    }
    // Rounds to infinity from halfway between the largest f32 and the next power of two on.
    constexpr double kBeyond = 0x1.ffffffp127;
    require(!std::isfinite(value.real) || std::abs(value.real) < kBeyond, "{} is {}, beyond the type f32",
            argument.name, value.real);
    const auto rounded = static_cast<float>(value.real);
    std::memcpy(to, &rounded, sizeof rounded);
    return {};
  }
  require(value.real == 0, "{} is a scalar of type {}, and its field real is {}: needs integer", argument.name, type,
          value.real);
  const auto bits = static_cast<uint64_t>(value.integer);
  if (argument.dtype == TUFF_U64) {
    check_range(static_cast<long double>(bits), bits);
    std::memcpy(to, &bits, 8);
    return {bits, false};
  }
  const bool fits = argument.dtype == TUFF_I64 || (argument.dtype == TUFF_I32 ? fits_scalar<int32_t>(value.integer)
                                                                              : fits_scalar<uint32_t>(value.integer));
  require(fits, "{} is {}, beyond the type {}", argument.name, value.integer, type);
  check_range(static_cast<long double>(value.integer), value.integer);
  // The low bytes, in the host's order, are those of the narrower type.
  const auto low = static_cast<uint32_t>(bits);
  if (argument.dtype == TUFF_I64) {
    std::memcpy(to, &bits, 8);
  } else {
    std::memcpy(to, &low, 4);
  }
  return {value.integer < 0 ? 0 - bits : bits, value.integer < 0};
}

SizeValue Extension::check_buffer(const Argument& argument, const ExtensionValue& value) const {
  require(value.integer == 0 && value.real == 0, "{} is a buffer, and its field {} is set", argument.name,
          value.integer != 0 ? "integer" : "real");
  if (value.buffer == nullptr) return {};
  const uint64_t size = dtype_size(argument.dtype);
  require(value.buffer->offset % size == 0,
          "{} begins {} bytes into its memory, needs a multiple of {}, the size of {}", argument.name,
          value.buffer->offset, size, dtype_name(argument.dtype));
  return {value.buffer->bytes / size, false};
}

void Extension::check_sizes(const ExtensionCall& call, std::span<const SizeValue> sizes) const {
  for (uint32_t i = 0; i < call.buffer_count; ++i) {
    const Argument& argument = arguments_[buffers_[i]];
    const Buffer* buffer = call.buffers[i];
    const uint64_t needed = argument.elements->evaluate(sizes);
    if (buffer == nullptr) {
      require(call.empty && needed == 0, "{} is TUFF_NULL_HANDLE, needs {} elements ({})", argument.name, needed,
              argument.elements->text());
      continue;
    }
    require(sizes[buffers_[i]].bits >= needed, "{} holds {} bytes, which is {} elements of {}, needs {} ({})",
            argument.name, buffer->bytes, sizes[buffers_[i]].bits, dtype_name(argument.dtype), needed,
            argument.elements->text());
    require(buffer->allocation == nullptr || !buffer->allocation->mapped.load(std::memory_order_relaxed),
            "{} is mapped, needs tuff_unmap first", argument.name);
  }
}

void Extension::check_apart(const ExtensionCall& call) const {
  for (uint32_t i = 0; i < call.buffer_count; ++i) {
    const Buffer* const written = call.buffers[i];
    if (written == nullptr || !includes(arguments_[buffers_[i]].access, Access::write)) continue;
    for (uint32_t j = 0; j < call.buffer_count; ++j) {
      const Buffer* const other = call.buffers[j];
      require(j == i || other == nullptr || !buffers_overlap(*written, *other), "{} is written and overlaps {}",
              buffer_name(i), buffer_name(j));
    }
  }
}

void Extension::set_groups(const std::array<uint32_t, 3>* workgroup_size, std::span<const SizeValue> sizes,
                           ExtensionCall& call) const {
  call.empty = false;
  for (size_t i = 0; i < 3; ++i) {
    uint64_t count = sizes_[i] ? sizes_[i]->evaluate(sizes) : 1;
    call.empty = call.empty || count == 0;
    call.groups[i] = 1;
    if (workgroup_size == nullptr) continue;
    const uint32_t size = (*workgroup_size)[i];
    if (!by_groups_) count = count / size + (count % size != 0 ? 1 : 0);
    if (count > UINT32_MAX) {
      fail(TUFF_ERROR_LIMIT_EXCEEDED, "{}, \"{}\": {} workgroups, at most {}", sizes_[i]->what(), sizes_[i]->text(),
           count, UINT32_MAX);
    }
    call.groups[i] = static_cast<uint32_t>(count);
  }
}

void Extension::prepare(std::span<const ExtensionValue> values, const std::array<uint32_t, 3>* workgroup_size,
                        ExtensionCall& call) const {
  require(values.size() == arguments_.size(), "count is {}, {} takes {} arguments", values.size(), name_,
          arguments_.size());
  call.operation = this;
  call.values = values;
  call.buffer_count = 0;
  std::memset(call.push.data(), 0, push_bytes_);  // padding too
  Sizes sizes;
  for (size_t i = 0; i < values.size(); ++i) {
    const Argument& argument = arguments_[i];
    if (argument.is_buffer) {
      sizes[i] = check_buffer(argument, values[i]);
      call.buffers[call.buffer_count++] = values[i].buffer;
    } else {
      sizes[i] = check_scalar(argument, values[i], call.push.data());
    }
  }
  set_groups(workgroup_size, sizes, call);
  check_sizes(call, sizes);
  check_apart(call);
  call.flops = flops_ ? static_cast<double>(flops_->evaluate(sizes)) : 0;
}

CallText Extension::describe(const ExtensionCall& call) const {
  CallText text;
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const Argument& argument = arguments_[i];
    const ExtensionValue& value = call.values[i];
    if (!text.shape.empty()) text.shape += ' ';
    if (argument.is_buffer) {
      const uint64_t bytes = value.buffer != nullptr ? value.buffer->bytes : 0;
      text.shape += fmt::format("{}[{}]", argument.name, bytes / dtype_size(argument.dtype));
      if (text.dtype == 0) text.dtype = argument.dtype;
    } else if (kRealScalars.has(argument.dtype)) {
      text.shape += fmt::format("{}={}", argument.name, value.real);
    } else if (argument.dtype == TUFF_U64) {
      text.shape += fmt::format("{}={}", argument.name, static_cast<uint64_t>(value.integer));
    } else {
      text.shape += fmt::format("{}={}", argument.name, value.integer);
    }
  }
  return text;
}

}  // namespace tuff
