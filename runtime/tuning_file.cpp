#include "runtime/tuning_file.hpp"

#include <system_error>

#include "platform/platform.hpp"

namespace tuff {

std::optional<TuningPlace> tuning_place() {
  if (const auto wanted = platform::environment("TUFF_TUNING")) {
    if (*wanted == "off") return std::nullopt;
    return TuningPlace{*wanted, true};
  }
  // In the cache folder, not in the configuration folder: that is often shared between machines, and these are
  // measurements of one machine, which can be repeated.
  const auto folder = platform::cache_directory();
  if (!folder) return std::nullopt;
  return TuningPlace{*folder / "tuning.json", false};
}

std::optional<std::string> read_tuning(const std::filesystem::path& path, std::string& problem) {
  const auto bytes = platform::read_file(path, TuningTable::kMaxBytes, &problem);
  if (!bytes) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

UserTuning load_tuning(const TuningDevice& device) {
  UserTuning tuning;
  const auto place = tuning_place();
  if (!place) return tuning;
  tuning.path = place->path;
  std::error_code error;
  if (!place->wanted && !std::filesystem::exists(place->path, error)) return tuning;
  const auto text = read_tuning(place->path, tuning.problem);
  if (!text) return tuning;
  try {
    tuning.table = TuningTable(*text, device);
  } catch (const TuningError& refusal) {
    tuning.problem = refusal.what();
  }
  return tuning;
}

}  // namespace tuff
