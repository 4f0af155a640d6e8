// Serialises sources and compiled kernels: numbers in the machine's byte order, lists preceded by their length.
#include <cstring>
#include <type_traits>

#include "runtime/custom/custom_kernel.hpp"

namespace tuff {
namespace {

constexpr uint32_t kVersion = TUFF_VERSION;
constexpr uint32_t kSource = 0x53465554, kKernel = 0x4b465554, kTrial = 0x54465554;  // "TUFS", "TUFK", "TUFT"

class WireWriter {
 public:
  template <typename T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view value) {
    number<uint64_t>(value.size());
    bytes_ += value;
  }
  void words(const std::vector<uint32_t>& values) {
    text({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(uint32_t)});
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Never reads past the end; remembers an attempt to do so.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  template <typename T>
  T number() {
    static_assert(std::is_arithmetic_v<T>);
    T value{};
    const std::string_view raw = take(sizeof value);
    if (good_) std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  bool flag() { return number<uint8_t>() == 1; }
  std::string text() { return std::string(take(number<uint64_t>())); }
  std::vector<uint32_t> words() {
    const std::string_view raw = take(number<uint64_t>());
    good_ = good_ && raw.size() % sizeof(uint32_t) == 0;
    std::vector<uint32_t> values(good_ ? raw.size() / sizeof(uint32_t) : 0);
    if (!values.empty()) std::memcpy(values.data(), raw.data(), raw.size());
    return values;
  }
  // A number of entries, checked against the bytes that are left.
  uint64_t count(uint64_t bytes_each) {
    const auto value = number<uint64_t>();
    good_ = good_ && value <= bytes_.size() / bytes_each;
    return good_ ? value : 0;
  }
  bool expect(uint32_t value) {
    good_ = good_ && number<uint32_t>() == value;
    return good_;
  }
  bool ended() const { return good_ && bytes_.empty(); }

 private:
  std::string_view take(uint64_t count) {
    good_ = good_ && count <= bytes_.size();
    if (!good_) return {};
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  std::string_view bytes_;
  bool good_ = true;
};

}  // namespace

std::string to_bytes(const CustomSource& source) {
  WireWriter out;
  out.number(kSource);
  out.number(kVersion);
  out.number(source.language);
  out.text(source.text);
  out.text(source.name);
  out.text(source.entry);
  out.number<uint64_t>(source.defines.size());
  for (const CustomSource::Define& define : source.defines) {
    out.text(define.name);
    out.text(define.value);
  }
  out.number<uint64_t>(source.constants.size());
  for (const CustomSource::Constant& constant : source.constants) {
    out.number(constant.id);
    out.number(constant.bits);
  }
  for (const bool flag : {source.in_bounds, source.zero_shared, source.proven}) out.number<uint8_t>(flag);
  return out.take();
}

bool from_bytes(std::string_view bytes, CustomSource& source) {
  Reader in(bytes);
  if (!in.expect(kSource) || !in.expect(kVersion)) return false;
  source.language = in.number<int32_t>();
  source.text = in.text();
  source.name = in.text();
  source.entry = in.text();
  source.defines.resize(in.count(16));
  for (CustomSource::Define& define : source.defines) {
    define.name = in.text();
    define.value = in.text();
  }
  source.constants.resize(in.count(12));
  for (CustomSource::Constant& constant : source.constants) {
    constant.id = in.number<uint32_t>();
    constant.bits = in.number<uint64_t>();
  }
  for (bool* flag : {&source.in_bounds, &source.zero_shared, &source.proven}) *flag = in.flag();
  return in.ended();
}

std::string to_bytes(const CompiledKernel& kernel) {
  const KernelInterface& interface = kernel.interface;
  WireWriter out;
  out.number(kKernel);
  out.number(kVersion);
  out.words(kernel.words);
  out.text(kernel.warnings);
  out.number<uint64_t>(interface.bindings.size());
  for (const KernelInterface::Binding& binding : interface.bindings) {
    out.number<uint8_t>(binding.used);
    out.number<uint8_t>(binding.read);
    out.number<uint8_t>(binding.written);
    out.number(binding.min_bytes);
  }
  out.number(interface.push_bytes);
  for (const uint32_t size : interface.workgroup_size) out.number(size);
  out.number(interface.loop_iterations);
  out.number(interface.shared_bytes);
  out.words(interface.capabilities);
  return out.take();
}

bool from_bytes(std::string_view bytes, CompiledKernel& kernel) {
  KernelInterface& interface = kernel.interface;
  Reader in(bytes);
  if (!in.expect(kKernel) || !in.expect(kVersion)) return false;
  kernel.words = in.words();
  kernel.warnings = in.text();
  interface.bindings.resize(in.count(11));
  for (KernelInterface::Binding& binding : interface.bindings) {
    binding.used = in.flag();
    binding.read = in.flag();
    binding.written = in.flag();
    binding.min_bytes = in.number<uint64_t>();
  }
  interface.push_bytes = in.number<uint32_t>();
  for (uint32_t& size : interface.workgroup_size) size = in.number<uint32_t>();
  interface.loop_iterations = in.number<uint64_t>();
  interface.shared_bytes = in.number<uint64_t>();
  interface.capabilities = in.words();
  return in.ended() && interface.bindings.size() <= TUFF_KERNEL_MAX_BINDINGS;
}

std::string to_bytes(const DriverTrial& trial) {
  WireWriter out;
  out.number(kTrial);
  out.number(kVersion);
  out.text(trial.name);
  out.text(trial.entry);
  out.words(trial.words);
  out.words(trial.bindings);
  out.number(trial.push_bytes);
  out.number<uint8_t>(trial.robust);
  out.number<uint8_t>(trial.cpu);
  for (const uint8_t byte : trial.device) out.number(byte);
  for (const uint8_t byte : trial.pipeline_cache) out.number(byte);
  return out.take();
}

bool from_bytes(std::string_view bytes, DriverTrial& trial) {
  Reader in(bytes);
  if (!in.expect(kTrial) || !in.expect(kVersion)) return false;
  trial.name = in.text();
  trial.entry = in.text();
  trial.words = in.words();
  trial.bindings = in.words();
  trial.push_bytes = in.number<uint32_t>();
  trial.robust = in.flag();
  trial.cpu = in.flag();
  for (uint8_t& byte : trial.device) byte = in.number<uint8_t>();
  for (uint8_t& byte : trial.pipeline_cache) byte = in.number<uint8_t>();
  return in.ended() && trial.bindings.size() <= TUFF_KERNEL_MAX_BINDINGS;
}

}  // namespace tuff
