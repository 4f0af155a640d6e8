// Finds and reads a user's tuned choices.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "planning/tuning_table.hpp"

namespace tuff {

struct TuningPlace {
  std::filesystem::path path;
  bool wanted;  // named by TUFF_TUNING, so it should exist
};

// The path in TUFF_TUNING, otherwise tuning.json in the user's cache folder. nullopt for TUFF_TUNING=off, or if there
// is no folder.
std::optional<TuningPlace> tuning_place();

// The text of a table's file; nullopt if it cannot be read, with the reason in `problem`.
std::optional<std::string> read_tuning(const std::filesystem::path& path, std::string& problem);

struct UserTuning {
  TuningTable table;  // empty if there is none or it is invalid
  std::filesystem::path path;
  std::string problem;  // why the file is ignored; empty if it is used or missing
};
UserTuning load_tuning(const TuningDevice& device);

}  // namespace tuff
