// Reads the interface of a kernel in PTX from its text: the parameters of the entry point, its directives, and the
// shared memory that is declared. The driver's assembler checks everything else.
#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>
#include <utility>

#include "planning/status.hpp"
#include "runtime/custom/custom_kernel.hpp"

namespace tuff {
namespace {

// A word begins with a letter, a digit or one of ".%$_" and may contain all of them, so an instruction with its
// suffixes is one word. A string is one token with its quotation marks. All other tokens are one character. An empty
// token is the end.
class Tokens {
 public:
  Tokens(std::string_view text, const std::string& name) : text_(text), name_(&name) { next(); }

  std::string_view operator*() const { return token_; }
  bool at_end() const { return token_.empty(); }
  bool is(std::string_view token) const { return token_ == token; }
  // Whether it is a name: directives and instructions contain a dot, numbers begin with a digit.
  bool is_name() const {
    return !at_end() && is_word(token_[0]) && !is_digit(token_[0]) && token_.find('.') == std::string_view::npos;
  }
  bool is_number() const { return !at_end() && is_digit(token_[0]); }

  std::string_view take() {
    const std::string_view taken = token_;
    next();
    return taken;
  }
  bool take_if(std::string_view token) {
    if (!is(token)) return false;
    next();
    return true;
  }
  void expect(std::string_view token) {
    if (!take_if(token)) fail_here(fmt::format("\"{}\" is expected", token));
  }
  std::string_view take_name() {
    if (!is_name()) fail_here("a name is expected");
    return take();
  }
  uint64_t take_number() {
    std::string_view digits = token_;
    int base = 10;
    if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2), base = 16;
    if (digits.ends_with('U')) digits.remove_suffix(1);
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (!is_number() || error != std::errc() || end != digits.data() + digits.size()) {
      fail_here("a number is expected");
    }
    next();
    return value;
  }

  [[noreturn]] void fail_here(const std::string& message) const {
    fail(TUFF_ERROR_COMPILE_FAILED, "{}:{}: error: {}, not {}", *name_, line_, message,
         at_end() ? "the end" : fmt::format("\"{}\"", token_.substr(0, 60)));
  }
  // As fail_here(), without the token.
  [[noreturn]] void refuse(tuff_status status, const std::string& message) const {
    fail(status, "{}:{}: {}", *name_, line_, message);
  }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '.' || c == '%' || c == '$' ||
           c == '_';
  }

  void next() {
    skip_space();
    token_ = {};
    if (at_ == text_.size()) return;
    size_t end = at_;
    if (is_word(text_[at_])) {
      while (end < text_.size() && is_word(text_[end])) ++end;
    } else if (text_[at_] == '"') {
      end = std::min(text_.find('"', at_ + 1), text_.size() - 1) + 1;
    } else {
      end = at_ + 1;
    }
    token_ = text_.substr(at_, end - at_);
    for (; at_ < end; ++at_) line_ += text_[at_] == '\n';
  }

  void skip_space() {
    while (at_ < text_.size()) {
      const std::string_view rest = text_.substr(at_);
      size_t count = 0;
      if (rest.starts_with("//")) {
        count = std::min(rest.find('\n'), rest.size());
      } else if (rest.starts_with("/*")) {
        const size_t end = rest.find("*/", 2);
        if (end == std::string_view::npos) {
          fail(TUFF_ERROR_COMPILE_FAILED, "{}:{}: error: the comment has no end", *name_, line_);
        }
        count = end + 2;
      } else if (rest[0] == ' ' || (rest[0] >= '\t' && rest[0] <= '\r')) {
        count = 1;
      } else {
        return;
      }
      for (size_t i = 0; i < count; ++i, ++at_) line_ += text_[at_] == '\n';
    }
  }

  std::string_view text_, token_;
  const std::string* name_;
  size_t at_ = 0;
  int line_ = 1;
};

// The bytes of a type, or none for a word that is no type.
std::optional<uint32_t> bytes_of_type(std::string_view word) {
  if (word.size() < 3 || word[0] != '.') return {};
  if (word == ".bf16") return 2;
  const std::string_view bits = word.substr(2);
  const bool known = std::string_view("busf").find(word[1]) != std::string_view::npos;
  if (!known) return {};
  for (const auto& [text, bytes] : {std::pair("8", 1), {"16", 2}, {"32", 4}, {"64", 8}, {"128", 16}}) {
    if (bits == text) return bytes;
  }
  return {};
}

uint64_t take_alignment(Tokens& tokens) {
  const uint64_t alignment = tokens.take_number();
  if (alignment == 0 || alignment > 4096 || (alignment & (alignment - 1)) != 0) {
    tokens.refuse(TUFF_ERROR_COMPILE_FAILED, fmt::format("error: .align {} is no power of two up to 4096", alignment));
  }
  return alignment;
}

// A size that no device has, where sums still cannot wrap.
constexpr uint64_t kHuge = uint64_t{1} << 40;
uint64_t times(uint64_t a, uint64_t b) { return b != 0 && a > kHuge / b ? kHuge : a * b; }

struct Parameter {
  std::string_view name;
  uint32_t bytes = 0;             // of an element
  uint64_t count = 1;             // of elements, for a structure that is passed by value
  uint64_t alignment = 1;         // of the parameter
  bool may_be_address = false;    // one .u64 or .b64
  bool marked = false;            // by .ptr
  uint64_t memory_alignment = 1;  // of what it points to
  bool used = false;
};
// As many buffers and push constants of one byte as there may be.
constexpr size_t kMaxParameters = TUFF_KERNEL_MAX_BINDINGS + kMaxPtxPushBytes;

// One ".param .u64 .ptr .global .align 16 name", with its parts in any order before the name.
Parameter take_parameter(Tokens& tokens) {
  Parameter parameter;
  tokens.expect(".param");
  while (!tokens.is_name()) {
    if (tokens.take_if(".ptr")) {
      parameter.marked = true;
    } else if (tokens.take_if(".align")) {
      (parameter.marked ? parameter.memory_alignment : parameter.alignment) = take_alignment(tokens);
    } else if (parameter.marked && tokens.take_if(".global")) {
      continue;
    } else if (parameter.marked && (tokens.is(".shared") || tokens.is(".const") || tokens.is(".local"))) {
      tokens.refuse(TUFF_ERROR_UNSUPPORTED,
                    fmt::format("a parameter points to {} memory; buffers are global memory", *tokens));
    } else if (const auto bytes = bytes_of_type(*tokens); bytes && parameter.bytes == 0) {
      parameter.bytes = *bytes;
      parameter.may_be_address = tokens.is(".u64") || tokens.is(".b64");
      tokens.take();
    } else {
      tokens.fail_here("a parameter's type or name is expected");
    }
  }
  if (parameter.bytes == 0) tokens.fail_here("a parameter's type is expected");
  if (parameter.marked && parameter.bytes != 8) {
    tokens.refuse(TUFF_ERROR_COMPILE_FAILED, "error: a pointer of less or more than 64 bits");
  }
  if (parameter.memory_alignment > kMaxBufferAlignment) {
    tokens.refuse(TUFF_ERROR_UNSUPPORTED,
                  fmt::format("a parameter points to memory with .align {}, at most {} is possible",
                              parameter.memory_alignment, kMaxBufferAlignment));
  }
  parameter.alignment = std::max<uint64_t>(parameter.alignment, parameter.bytes);
  parameter.name = tokens.take_name();
  if (tokens.take_if("[")) {
    parameter.may_be_address = false;
    parameter.count = tokens.take_number();
    tokens.expect("]");
  }
  return parameter;
}

struct Entry {
  std::string_view name;
  std::vector<Parameter> parameters;
  std::array<uint32_t, 3> required{}, most{};  // .reqntid and .maxntid; zeros: not stated
  uint64_t shared_bytes = 0;                   // that it declares itself
};

class Module {
 public:
  Module(std::string_view text, const std::string& name) : tokens_(text, name) {
    while (!tokens_.at_end()) {
      if (tokens_.take_if(".address_size")) {
        if (tokens_.take_number() != 64) tokens_.refuse(TUFF_ERROR_COMPILE_FAILED, "error: addresses need 64 bits");
      } else if (tokens_.take_if(".entry")) {
        take_entry();
      } else {
        take_other(shared_bytes_);
      }
    }
  }

  const std::vector<Entry>& entries() const { return entries_; }
  // Declared outside entry points.
  uint64_t shared_bytes() const { return shared_bytes_; }

 private:
  // One token, or a declaration of shared memory, whose size is added.
  void take_other(uint64_t& shared) {
    if (tokens_.take_if(".extern")) {
      tokens_.take_if(".shared");  // its size is given by the launch
      return;
    }
    if (!tokens_.take_if(".shared")) {
      tokens_.take();
      return;
    }
    uint64_t alignment = 1, bytes = 0, elements = 1;
    while (!tokens_.is_name()) {
      if (tokens_.take_if(".align")) {
        alignment = take_alignment(tokens_);
      } else if (const auto size = bytes_of_type(*tokens_)) {
        bytes = *size;
        tokens_.take();
      } else if (tokens_.is(".v2") || tokens_.is(".v4")) {
        elements = tokens_.is(".v2") ? 2 : 4;
        tokens_.take();
      } else {
        return;  // not a declaration
      }
    }
    alignment = std::max(alignment, bytes * elements);
    do {
      tokens_.take_name();
      uint64_t size = bytes * elements;
      while (tokens_.take_if("[")) {
        size = times(size, tokens_.take_number());
        tokens_.expect("]");
      }
      if (alignment != 0) shared = std::min(kHuge, (shared + alignment - 1) / alignment * alignment + size);
    } while (tokens_.take_if(","));
  }

  std::array<uint32_t, 3> take_sizes() {
    std::array<uint32_t, 3> sizes{1, 1, 1};
    for (size_t i = 0; i < 3; ++i) {
      const uint64_t size = tokens_.take_number();
      if (size == 0 || size > UINT32_MAX) tokens_.refuse(TUFF_ERROR_COMPILE_FAILED, "error: a workgroup of that size");
      sizes[i] = static_cast<uint32_t>(size);
      if (!tokens_.take_if(",")) break;
    }
    return sizes;
  }

  void take_entry() {
    Entry entry;
    entry.name = tokens_.take_name();
    if (tokens_.take_if("(") && !tokens_.take_if(")")) {
      do {
        if (entry.parameters.size() == kMaxParameters) {
          tokens_.refuse(TUFF_ERROR_LIMIT_EXCEEDED, fmt::format("more than {} parameters", kMaxParameters));
        }
        entry.parameters.push_back(take_parameter(tokens_));
      } while (tokens_.take_if(","));
      tokens_.expect(")");
    }
    while (!tokens_.is("{")) {
      if (tokens_.take_if(";")) return;  // declared here, defined elsewhere
      if (tokens_.at_end()) tokens_.fail_here("the body of the entry point is expected");
      take_directive(entry);
    }
    take_body(entry);
    entries_.push_back(std::move(entry));
  }

  void take_directive(Entry& entry) {
    if (tokens_.take_if(".reqntid")) {
      entry.required = take_sizes();
    } else if (tokens_.take_if(".maxntid")) {
      entry.most = take_sizes();
    } else if (tokens_.take_if(".reqnctapercluster")) {
      if (take_sizes() != std::array<uint32_t, 3>{1, 1, 1}) refuse_clusters();
    } else if (tokens_.is(".explicitcluster") || tokens_.is(".blocksareclusters")) {
      refuse_clusters();
    } else {
      tokens_.take();
    }
  }

  [[noreturn]] void refuse_clusters() {
    tokens_.refuse(TUFF_ERROR_UNSUPPORTED, "the kernel needs clusters of workgroups, which Tuff does not launch");
  }

  void take_body(Entry& entry) {
    std::unordered_map<std::string_view, Parameter*> parameters;
    for (Parameter& parameter : entry.parameters) parameters[parameter.name] = &parameter;
    for (int depth = 0;;) {
      if (tokens_.at_end()) tokens_.fail_here("\"}\" is expected");
      if (tokens_.is("{")) ++depth;
      if (tokens_.is("}") && --depth == 0) break;
      if (const auto found = parameters.find(*tokens_); found != parameters.end()) found->second->used = true;
      take_other(entry.shared_bytes);
    }
    tokens_.take();
  }

  Tokens tokens_;
  std::vector<Entry> entries_;
  uint64_t shared_bytes_ = 0;
};

const Entry& find_entry(const Module& module, const CustomSource& source) {
  const std::vector<Entry>& entries = module.entries();
  if (entries.empty())
    fail(TUFF_ERROR_COMPILE_FAILED, "{}: error: the module has no entry point (.entry)", source.name);
  std::string names;
  for (const Entry& entry : entries) {
    if (entry.name == source.entry || (source.entry.empty() && entries.size() == 1)) return entry;
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", entry.name.substr(0, 100));
    if (names.size() > 400) break;
  }
  if (source.entry.empty()) fail(TUFF_ERROR_INVALID_ARGUMENT, "entry is null, and the module has {}", names);
  fail(TUFF_ERROR_INVALID_ARGUMENT, "entry is \"{}\", the module has {}", source.entry, names);
}

std::array<uint32_t, 3> workgroup_of(const Entry& entry, const std::array<uint32_t, 3>& given) {
  const auto text = [](const std::array<uint32_t, 3>& size) { return fmt::format("{{{}}}", fmt::join(size, ", ")); };
  const std::array<uint32_t, 3> none{};
  if (given == none) {
    require(entry.required != none, "workgroup_size is {{0, 0, 0}}, and {} does not state it (.reqntid)", entry.name);
    return entry.required;
  }
  for (size_t i = 0; i < 3; ++i) require(given[i] != 0, "workgroup_size is {}, needs sizes of 1 or more", text(given));
  require(entry.required == none || entry.required == given, "workgroup_size is {}, {} requires {}", text(given),
          entry.name, text(entry.required));
  const auto product = [](const std::array<uint32_t, 3>& size) { return times(times(size[0], size[1]), size[2]); };
  require(entry.most == none || product(given) <= product(entry.most), "workgroup_size is {}, {} allows at most {}",
          text(given), entry.name, text(entry.most));
  return given;
}

}  // namespace

KernelInterface reflect_ptx(const CustomSource& source) {
  if (source.text.find('\0') != std::string::npos) {
    fail(TUFF_ERROR_COMPILE_FAILED, "{}: error: the text contains a NUL", source.name);
  }
  const Module module(source.text, source.name);
  const Entry& entry = find_entry(module, source);
  KernelInterface interface;
  interface.entry = entry.name;
  interface.workgroup_size = workgroup_of(entry, source.workgroup_size);
  interface.dynamic_shared_bytes = source.shared_bytes;
  interface.shared_bytes = module.shared_bytes() + entry.shared_bytes + source.shared_bytes;
  interface.overlaps = true;
  const bool marked = std::any_of(entry.parameters.begin(), entry.parameters.end(),
                                  [](const Parameter& parameter) { return parameter.marked; });
  uint64_t push = 0;
  for (const Parameter& parameter : entry.parameters) {
    if (marked ? parameter.marked : parameter.may_be_address) {
      interface.parameters.push_back({true, static_cast<uint32_t>(interface.bindings.size())});
      interface.bindings.push_back({parameter.used, parameter.used, parameter.used, parameter.used ? 1u : 0u});
      interface.alignment = std::max(interface.alignment, parameter.memory_alignment);
      continue;
    }
    push = (push + parameter.alignment - 1) / parameter.alignment * parameter.alignment;
    if (push + times(parameter.bytes, parameter.count) > kMaxPtxPushBytes) {
      fail(TUFF_ERROR_LIMIT_EXCEEDED, "{} has more than {} bytes of parameters beside buffers", entry.name,
           kMaxPtxPushBytes);
    }
    interface.parameters.push_back({false, static_cast<uint32_t>(push)});
    push += times(parameter.bytes, parameter.count);
  }
  interface.push_bytes = static_cast<uint32_t>(push);
  if (interface.bindings.size() > TUFF_KERNEL_MAX_BINDINGS) {
    fail(TUFF_ERROR_LIMIT_EXCEEDED, "{} has {} buffers, at most {} are allowed", entry.name, interface.bindings.size(),
         TUFF_KERNEL_MAX_BINDINGS);
  }
  return interface;
}

}  // namespace tuff
