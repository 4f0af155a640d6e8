#include "planning/tuning_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

namespace tuff {
namespace {

using Json = nlohmann::json;

constexpr uint32_t kMaxDepth = 8;                               // of nested brackets; a table has five
constexpr size_t kMaxVariantText = 64, kMaxOperationText = 20;  // longer than any name

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw TuningError(fmt::format(format, std::forward<Args>(args)...));
}

// Checks what the parsed document no longer shows: duplicate names, and nesting depth before it costs memory.
class Watch {
 public:
  bool operator()(int, Json::parse_event_t event, Json& parsed) {
    if (!problem_.empty()) return false;
    switch (event) {
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start:
        names_.emplace_back();
        if (names_.size() > kMaxDepth) problem_ = fmt::format("it is nested more than {} deep", kMaxDepth);
        break;
      case Json::parse_event_t::object_end:
      case Json::parse_event_t::array_end: names_.pop_back(); break;
      case Json::parse_event_t::key:
        if (!names_.back().insert(parsed.get<std::string>()).second) problem_ = "a name comes twice in one object";
        break;
      case Json::parse_event_t::value: break;
    }
    return problem_.empty();
  }
  const std::string& problem() const { return problem_; }

 private:
  std::vector<std::set<std::string>> names_;  // the names so far in each open bracket
  std::string problem_;
};

const Json& member(const Json& object, const char* name, const std::string& place) {
  if (!object.is_object()) refuse("{} is {}, needs to be an object", place, object.type_name());
  const auto found = object.find(name);
  if (found == object.end()) refuse("{} lacks \"{}\"", place, name);
  return *found;
}

const std::string& text_member(const Json& object, const char* name, const std::string& place, size_t most) {
  const Json& value = member(object, name, place);
  if (!value.is_string()) refuse("{}.{} is {}, needs to be a string", place, name, value.type_name());
  const auto& text = value.get_ref<const std::string&>();
  if (text.empty() || text.size() > most) {
    refuse("{}.{} has {} characters, needs 1 to {}", place, name, text.size(), most);
  }
  return text;
}

uint64_t number(const Json& value, const std::string& place, uint64_t least, uint64_t most) {
  if (!value.is_number_unsigned()) refuse("{} is not an integer of at least {}", place, least);
  const auto found = value.get<uint64_t>();
  if (found < least || found > most) refuse("{} is {}, needs {} to {}", place, found, least, most);
  return found;
}

const Json& list_member(const Json& object, const char* name, const std::string& place) {
  const Json& value = member(object, name, place);
  if (!value.is_array()) refuse("{}.{} is {}, needs to be an array", place, name, value.type_name());
  return value;
}

Json parse_json(std::string_view text) {
  if (text.size() > TuningTable::kMaxBytes) {
    refuse("it holds {} bytes, at most {} are read", text.size(), +TuningTable::kMaxBytes);
  }
  Watch watch;
  try {
    Json document = Json::parse(text.begin(), text.end(), std::ref(watch));
    if (watch.problem().empty()) return document;
  } catch (const Json::parse_error& error) {
    // The parser's own message quotes the text, which may come from a file that readers of the log must not see.
    if (watch.problem().empty()) refuse("it is not JSON: error at byte {} of {}", error.byte, text.size());
  } catch (const Json::exception&) {  // a number too large for any type
    if (watch.problem().empty()) refuse("it is not JSON that this version reads");
  }
  refuse("{}", watch.problem());
}

constexpr size_t kMaxIdentityText = 1024;
constexpr const char* kIdentity[] = {"uuid", "name", "driver", "library"};

}  // namespace

uint8_t size_bucket(uint64_t size) {
  if (size == 0) return 0;
  const int octave = std::bit_width(size) - 1;
  // The leading 17 bits (for sizes from 2^16): the position within the octave.
  const uint64_t leading = octave >= 16 ? size >> (octave - 16) : size << (16 - octave);
  constexpr uint64_t kQuarter = 77936, kThreeQuarters = 110218;  // 2^(16 + 1/4), 2^(16 + 3/4)
  return static_cast<uint8_t>(2 * octave + (leading >= kQuarter) + (leading >= kThreeQuarters));
}

size_t TuningKey::hash() const noexcept {
  const std::hash<std::string_view> hash;
  const auto* buckets = reinterpret_cast<const char*>(buckets_.data());
  return hash(text()) * 31 + hash(std::string_view(buckets, sizes_));
}

TuningDevice tuning_device(const tuff_device_properties& properties, uint32_t library_version) {
  TuningDevice device;
  for (const uint8_t byte : properties.uuid) device.uuid += fmt::format("{:02x}", byte);
  device.name = properties.name;
  device.driver = properties.driver;
  device.driver_version = properties.driver_version;
  device.library = fmt::format("{}.{}.{}", library_version >> 16, library_version >> 8 & 0xff, library_version & 0xff);
  return device;
}

Json parse_tuning(std::string_view text) {
  Json document = parse_json(text);
  const std::string root = "the table";
  const uint64_t version = number(member(document, "tuff_tuning", root), "tuff_tuning", 0, UINT64_MAX);
  if (version != TuningTable::kVersion) {
    refuse("it is of format {}, this version of the library reads {}", version, +TuningTable::kVersion);
  }
  const Json& devices = list_member(document, "devices", root);
  for (size_t i = 0; i < devices.size(); ++i) {
    const std::string place = fmt::format("devices[{}]", i);
    for (const char* name : kIdentity) text_member(devices[i], name, place, kMaxIdentityText);
    number(member(devices[i], "driver_version", place), place + ".driver_version", 0, UINT32_MAX);
    list_member(devices[i], "choices", place);
  }
  return document;
}

bool is_for(const Json& section, const TuningDevice& device) {
  return section["uuid"] == device.uuid && section["name"] == device.name && section["driver"] == device.driver &&
         section["driver_version"] == device.driver_version && section["library"] == device.library;
}

TuningKey tuning_key(const Json& choice, const std::string& place) {
  const std::string& operation = text_member(choice, "operation", place, kMaxOperationText);
  const std::string& form = text_member(choice, "form", place, TuningKey::kMaxText - kMaxOperationText - 1);
  TuningKey key(operation);
  key.word(form);
  const Json& sizes = list_member(choice, "sizes", place);
  if (sizes.empty() || sizes.size() > TuningKey::kMaxSizes) {
    refuse("{}.sizes has {} numbers, needs 1 to {}", place, sizes.size(), +TuningKey::kMaxSizes);
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    key.size(number(sizes[i], fmt::format("{}.sizes[{}]", place, i), 1, UINT64_MAX));
  }
  return key;
}

void TuningTable::read(const Json& choices, const std::string& place) {
  std::unordered_map<TuningKey, size_t, Hash> places;
  for (size_t i = 0; i < choices.size(); ++i) {
    const std::string here = fmt::format("{}.choices[{}]", place, i);
    const TuningKey key = tuning_key(choices[i], here);
    const auto [before, is_new] = places.emplace(key, i);
    if (!is_new) refuse("{} is for the same call as {}.choices[{}]", here, place, before->second);
    TunedChoice choice;
    if (choices[i].contains("slices")) {
      choice.slices = static_cast<uint32_t>(number(choices[i]["slices"], here + ".slices", 0, kMaxSlices));
    }
    if (!choices[i].contains("variant")) continue;  // measured, but no variant was faster than the built-in choice
    choice.variant = text_member(choices[i], "variant", here, kMaxVariantText);
    choices_.emplace(key, std::move(choice));
  }
}

TuningTable::TuningTable(std::string_view text, const TuningDevice& device) {
  const Json document = parse_tuning(text);
  const Json& devices = document["devices"];
  const Json* similar = nullptr;
  size_t found = devices.size();
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i]["uuid"] == device.uuid) similar = &devices[i];
    if (!is_for(devices[i], device)) continue;
    if (found != devices.size()) refuse("devices[{}] is the same as devices[{}]", i, found);
    found = i;
    read(devices[i]["choices"], fmt::format("devices[{}]", i));
  }
  if (found != devices.size()) return;
  if (similar == nullptr) refuse("it has no choices for this device, {} ({})", device.name, device.uuid);
  refuse("it was measured with tuff {} and driver \"{}\" (version {}); here they are {} and \"{}\" ({})",
         (*similar)["library"].get<std::string>(), (*similar)["driver"].get<std::string>(),
         (*similar)["driver_version"].get<uint32_t>(), device.library, device.driver, device.driver_version);
}

const TunedChoice* TuningTable::find(const TuningKey& key) const noexcept {
  const auto found = choices_.find(key);
  return found != choices_.end() ? &found->second : nullptr;
}

}  // namespace tuff
