// The table that tuff tune writes: a file with one section for each device. This run reads and extends its device's.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "planning/tuning_table.hpp"

namespace tool {

class TuneFile {
 public:
  using Json = nlohmann::ordered_json;

  // Throws std::runtime_error if the path holds a file that is not a tuning table: it would be overwritten.
  TuneFile(std::filesystem::path path, tuff::TuningDevice device);

  // The key of an entry or a choice.
  static tuff::TuningKey key(const Json& entry);
  // The choice for the same operation, form and bucket of sizes; null if there is none.
  const Json* find(const Json& entry) const;
  // Stores a finished measurement, replacing any earlier choice.
  void put(const Json& choice);
  // Merges the new choices into the file as it is now: another device may have been tuned in the meantime.
  void save();

  // A table with only this choice, for measuring it.
  std::string table_of(const Json& choice) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  Json load() const;
  Json section() const;

  std::filesystem::path path_;
  tuff::TuningDevice device_;
  std::vector<Json> choices_, added_;
};

}  // namespace tool
