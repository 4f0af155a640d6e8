#include "planning/dispatch.hpp"

#include "planning/arithmetic.hpp"
#include "planning/status.hpp"

namespace tuff {

Dispatch& Dispatch::groups_linear(uint64_t total, const DeviceTraits& traits) {
  const uint64_t most = traits.max_groups[0];
  group_rows_ = total > most;
  if (!group_rows_) return groups(static_cast<uint32_t>(total));
  const uint64_t rows = ceil_div(total, most);
  if (rows > traits.max_groups[1]) {
    fail(TUFF_ERROR_LIMIT_EXCEEDED, "{} workgroups are needed, the device runs at most {} x {}", total, most,
         traits.max_groups[1]);
  }
  return groups(static_cast<uint32_t>(ceil_div(total, rows)), static_cast<uint32_t>(rows));
}

}  // namespace tuff
