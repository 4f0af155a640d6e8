// The table that tuff tune writes: a file with one section for each device, of which this run's is read and added to.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "planning/tuning_table.hpp"

namespace tool {

class TuneFile {
 public:
  using Json = nlohmann::ordered_json;

  // Throws std::runtime_error if there is something at the path that is no table: it would be overwritten.
  TuneFile(std::filesystem::path path, tuff::TuningDevice device);

  // What an entry or a choice is for.
  static tuff::TuningKey key(const Json& entry);
  // The choice for the same operation, form and bucket of sizes; null: there is none.
  const Json* find(const Json& entry) const;
  // A finished measurement, instead of what there was.
  void put(const Json& choice);
  // Adds what was put to the file as it is by now: another device may have been tuned meanwhile.
  void save();

  // A table with this one choice, for measuring it.
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
