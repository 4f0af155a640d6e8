#include "runtime/json_text.hpp"

#include <nlohmann/json.hpp>

namespace tuff {

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace tuff
