#include "runtime/vulkan/kernel_list.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <new>
#include <optional>
#include <unordered_map>

#include "planning/kernel_source.hpp"
#include "planning/log.hpp"

namespace tuff {
namespace {

constexpr std::string_view kRequests = "requests";
constexpr std::string_view kFirstLine = "kernels 3\n";

int64_t today() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::hours>(now).count() / 24;
}

// A list from another build of the kernels is useless, so each line contains this hash.
uint64_t source_hash(const KernelSource& source) {
  if (source.native()) return XXH3_64bits(source.name, std::string_view(source.name).size());  // written by the request
  const std::string_view prelude = shaders::prelude.glsl, text = source.glsl;
  return XXH3_64bits_withSeed(text.data(), text.size(), XXH3_64bits(prelude.data(), prelude.size()));
}

// Returns the text up to the next separator and removes both from `text`.
std::string_view take(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

template <typename Number>
bool read_number(std::string_view text, Number& value, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size();
}

bool is_name(std::string_view text) {
  const auto is_word = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), is_word);
}

const KernelSource* find_source(std::string_view name) {
  for (const auto& sources : {shaders::all, shaders::native}) {
    const auto found =
        std::find_if(sources.begin(), sources.end(), [&](const KernelSource* source) { return name == source->name; });
    if (found != sources.end()) return *found;
  }
  return nullptr;
}

// Whether a form may have these texel buffers.
bool are_texels(uint64_t texels, uint32_t operands, bool addresses) {
  for (uint32_t slot = 0; slot < 16; ++slot) {
    const uint64_t bytes = texel_bytes(texels, slot);
    if (bytes != 0 && (addresses || slot >= operands || (bytes != 2 && bytes != 4 && bytes != 8))) return false;
  }
  return true;
}

std::optional<ListedKernel> parse_line(std::string_view line, std::set<std::string, std::less<>>& names,
                                       std::unordered_map<const KernelSource*, uint64_t>& hashes) {
  std::string_view rest = line;
  const KernelSource* const source = find_source(take(rest, ' '));
  uint64_t hash = 0, texels = 0;
  uint32_t operands = 0, addresses = 0, group_rows = 0, wide = 0, matrices = 0;
  if (source == nullptr || !read_number(take(rest, ' '), hash, 16) || !read_number(take(rest, ' '), operands) ||
      !read_number(take(rest, ' '), addresses) || !read_number(take(rest, ' '), group_rows) ||
      !read_number(take(rest, ' '), wide) || !read_number(take(rest, ' '), matrices) ||
      !read_number(take(rest, ' '), texels, 16)) {
    return std::nullopt;
  }
  const auto [known, fresh] = hashes.try_emplace(source, 0);
  if (fresh) known->second = source_hash(*source);
  if (hash != known->second || operands > Dispatch::kMaxSlots || addresses > 2 || group_rows > 1 || wide > 1 ||
      (addresses == 2 && wide != 0) || matrices > static_cast<uint32_t>(Matrices::int8) ||
      !are_texels(texels, operands, addresses != 0)) {
    return std::nullopt;
  }
  KernelRequest kernel(*source);
  kernel.wide(wide != 0).matrices(static_cast<Matrices>(matrices));
  for (uint32_t slot = 0; slot < operands; ++slot) kernel.texels(slot, texel_bytes(texels, slot));
  while (!rest.empty()) {
    std::string_view value = take(rest, ' ');
    if (value.find('=') != std::string_view::npos) {
      const std::string_view name = take(value, '=');
      int64_t number_of = 0;
      if (!is_name(name) || !read_number(value, number_of) || kernel.define_count() == KernelRequest::kMaxDefines) {
        return std::nullopt;
      }
      kernel.define(names.emplace(name).first->c_str(), number_of);
    } else {
      uint32_t id = 0, number_of = 0;
      if (!read_number(take(value, ':'), id) || !read_number(value, number_of) ||
          kernel.constant_count() == KernelRequest::kMaxConstants) {
        return std::nullopt;
      }
      kernel.constant(id, number_of);
    }
  }
  return ListedKernel{kernel, {operands, addresses != 0, group_rows != 0, addresses == 2, texels}, std::string(line)};
}

}  // namespace

std::string kernel_line(const KernelRequest& kernel, const KernelForm& form) {
  if (find_source(kernel.source().name) != &kernel.source() || kernel.body() != nullptr) return {};
  std::string line = fmt::format("{} {:016x} {} {} {:d} {:d} {:d} {:x}", kernel.source().name,
                                 source_hash(kernel.source()), form.operands,
                                 form.far         ? 2
                                 : form.addresses ? 1
                                                  : 0,
                                 form.group_rows, kernel.is_wide(), static_cast<int>(kernel.matrices()), form.texels);
  for (uint32_t i = 0; i < kernel.define_count(); ++i) {
    line += fmt::format(" {}={}", kernel.defines()[i].name, kernel.defines()[i].value);
  }
  for (uint32_t i = 0; i < kernel.constant_count(); ++i) {
    line += fmt::format(" {}:{}", kernel.constants()[i].id, kernel.constants()[i].value);
  }
  return line;
}

KernelList::KernelList(const DiskCache& beside, std::string_view device)
    : disk_({}, beside.folder(), beside.bound()), key_(hash_text(device)) {}

void KernelList::add(const std::string& line) noexcept {
  try {
    asked_.insert(line);
  } catch (const std::bad_alloc&) {
  }
}

KernelList::Days KernelList::read() const {
  const auto stored = disk_.load(std::string(kRequests), key_);
  if (!stored || stored->size() > kMaxBytes) return {};
  std::string_view text(reinterpret_cast<const char*>(stored->data()), stored->size());
  if (!text.starts_with(kFirstLine)) return {};
  text.remove_prefix(kFirstLine.size());
  Days days;
  while (!text.empty() && days.size() < kMaxKernels) {
    std::string_view line = take(text, '\n');
    int64_t day = 0;
    if (read_number(take(line, ' '), day) && !line.empty()) days.emplace(line, std::min(day, today()));
  }
  return days;
}

void KernelList::save() {
  const auto is_known = [&](const std::string& line) { return known_.contains(line); };
  if (std::all_of(asked_.begin(), asked_.end(), is_known)) return asked_.clear();
  const int64_t now = today();
  const platform::FileLock lock = disk_.lock(std::string(kRequests));
  Days days = read();
  bool changed = false;
  for (const std::string& line : asked_) {
    int64_t& day = days[line];
    changed |= day != now;
    day = now;
  }
  const auto written = [&] { known_.merge(asked_), asked_.clear(); };
  if (!changed) return written();

  std::vector<std::pair<int64_t, std::string_view>> latest;
  for (const auto& [line, day] : days) {
    if (day > now - kMaxDays) latest.emplace_back(-day, line);
  }
  std::sort(latest.begin(), latest.end());
  std::string text(kFirstLine);
  for (size_t i = 0; i < std::min<size_t>(latest.size(), kMaxKernels); ++i) {
    const std::string line = fmt::format("{} {}\n", -latest[i].first, latest[i].second);
    if (text.size() + line.size() > kMaxBytes) break;
    text += line;
  }
  disk_.store(std::string(kRequests), key_, std::as_bytes(std::span<const char>(text)));
  written();
}

std::vector<ListedKernel> KernelList::load() {
  std::vector<std::pair<int64_t, ListedKernel>> found;
  std::unordered_map<const KernelSource*, uint64_t> hashes;
  for (const auto& [line, day] : read()) {
    if (auto kernel = parse_line(line, names_, hashes)) found.emplace_back(day, std::move(*kernel));
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<ListedKernel> kernels;
  for (auto& [day, kernel] : found) kernels.push_back(std::move(kernel));
  return kernels;
}

}  // namespace tuff
