#include "tool/tune_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <system_error>

#include "platform/platform.hpp"
#include "runtime/tuning_file.hpp"

namespace tool {
namespace {

using Json = TuneFile::Json;

void replace(std::vector<Json>& choices, const Json& choice) {
  const tuff::TuningKey key = TuneFile::key(choice);
  std::erase_if(choices, [&](const Json& other) { return TuneFile::key(other) == key; });
  choices.push_back(choice);
}

// Writes one line for each choice, so that the file stays readable.
std::string text_of(const Json& document) {
  std::string text = fmt::format("{{\n \"tuff_tuning\": {},\n \"devices\": [", document["tuff_tuning"].dump());
  const char* between = "\n  ";
  for (const Json& device : document["devices"]) {
    Json head = device;
    head.erase("choices");
    std::string opening = head.dump();
    opening.pop_back();  // removes the closing bracket: choices follow
    text += fmt::format("{}{}, \"choices\": [", between, opening);
    const char* comma = "\n   ";
    for (const Json& choice : device["choices"]) {
      text += comma + choice.dump();
      comma = ",\n   ";
    }
    text += "]}";
    between = ",\n  ";
  }
  return text + "]\n}\n";
}

}  // namespace

tuff::TuningKey TuneFile::key(const Json& entry) { return tuff::tuning_key(nlohmann::json(entry), "choice"); }

TuneFile::TuneFile(std::filesystem::path path, tuff::TuningDevice device)
    : path_(std::move(path)), device_(std::move(device)) {
  const Json document = load();
  for (const Json& part : document["devices"]) {
    if (!tuff::is_for(part, device_)) continue;
    for (const Json& choice : part["choices"]) choices_.push_back(choice);
  }
}

Json TuneFile::section() const {
  return {{"uuid", device_.uuid},       {"name", device_.name},
          {"driver", device_.driver},   {"driver_version", device_.driver_version},
          {"library", device_.library}, {"choices", Json::array()}};
}

Json TuneFile::load() const {
  std::error_code error;
  if (!std::filesystem::exists(path_, error)) {
    if (error) throw std::runtime_error(fmt::format("{}: {}", path_.string(), error.message()));
    return {{"tuff_tuning", +tuff::TuningTable::kVersion}, {"devices", Json::array()}};
  }
  std::string problem;
  const auto text = tuff::read_tuning(path_, problem);
  try {
    if (text) {
      const nlohmann::json checked = tuff::parse_tuning(*text);
      // The choices for this device must be usable; those for other devices are kept unchanged.
      for (const auto& part : checked["devices"]) {
        if (tuff::is_for(part, device_)) tuff::TuningTable(*text, device_);
      }
      return Json::parse(*text);
    }
  } catch (const tuff::TuningError& refusal) {
    problem = refusal.what();
  }
  throw std::runtime_error(fmt::format("{} is not a tuning table: {}. Move it away, or name another file by --output",
                                       path_.string(), problem));
}

const Json* TuneFile::find(const Json& entry) const {
  const tuff::TuningKey key = TuneFile::key(entry);
  const auto found =
      std::find_if(choices_.begin(), choices_.end(), [&](const Json& choice) { return TuneFile::key(choice) == key; });
  return found != choices_.end() ? &*found : nullptr;
}

void TuneFile::put(const Json& choice) {
  replace(choices_, choice);
  replace(added_, choice);
}

void TuneFile::save() {
  if (added_.empty()) return;
  Json document = load();
  Json mine = section();
  std::vector<Json> choices;
  Json& devices = document["devices"];
  for (size_t i = devices.size(); i-- > 0;) {
    if (tuff::is_for(devices[i], device_)) {
      for (const Json& choice : devices[i]["choices"]) choices.push_back(choice);
      devices.erase(i);
    } else if (devices[i]["uuid"] == device_.uuid && devices[i]["driver"] == device_.driver &&
               devices[i]["driver_version"] == device_.driver_version) {
      devices.erase(i);  // written by another version of the library
    }
  }
  for (const Json& choice : added_) replace(choices, choice);
  for (const Json& choice : choices) mine["choices"].push_back(choice);
  devices.push_back(std::move(mine));
  const std::string text = text_of(document);
  if (!tuff::platform::write_file_atomically(path_, std::as_bytes(std::span<const char>(text)))) {
    throw std::runtime_error(fmt::format("{} could not be written", path_.string()));
  }
}

std::string TuneFile::table_of(const Json& choice) const {
  Json mine = section();
  mine["choices"].push_back(choice);
  const Json document = {{"tuff_tuning", +tuff::TuningTable::kVersion}, {"devices", Json::array({mine})}};
  return document.dump();
}

}  // namespace tool
