// Where a user's tuned choices lie, and what they say.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "planning/tuning_table.hpp"

namespace tuff {

struct TuningPlace {
  std::filesystem::path path;
  bool wanted;  // by TUFF_TUNING: it should be there
};

// TUFF_TUNING, else tuning.json in the user's cache folder. nullopt for TUFF_TUNING=off, or where there is no folder.
std::optional<TuningPlace> tuning_place();

// The text of a table's file; nullopt with the reason in `problem`.
std::optional<std::string> read_tuning(const std::filesystem::path& path, std::string& problem);

struct UserTuning {
  TuningTable table;  // empty if there is none, or it is no good
  std::filesystem::path path;
  std::string problem;  // why it is ignored; empty: it is not, or none is there
};
UserTuning load_tuning(const TuningDevice& device);

}  // namespace tuff
