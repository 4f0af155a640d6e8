#include "planning/operation.hpp"

#include <algorithm>
#include <string_view>

namespace tuff {

CallCopy::CallCopy(const Operation& operation) : info_(operation.info()), args_(operation.copy(*this)) {}

Operation CallCopy::operation() const { return {info_, args_}; }

const Buffer* CallCopy::operand(const Buffer* buffer, bool fixed) {
  if (buffer == nullptr) return nullptr;
  return &operands_.emplace_back(Operand{*buffer, fixed}).buffer;
}

bool computes_feature(std::string_view feature, ElementTypes computes, ElementTypes stores) {
  if (computes.has(dtype_by_name(feature))) return true;
  const size_t dot = feature.find('.');
  const std::string_view name = feature.substr(0, dot);
  const auto found = std::find_if(all_operations.begin(), all_operations.end(),
                                  [name](const OperationInfo* info) { return name == info->name; });
  if (found == all_operations.end()) return false;
  if (dot == std::string_view::npos) return true;
  const OperationInfo& info = **found;
  // Every device computes with 32-bit integers, and with smaller ones that it can store. They are not a feature by
  // themselves, since not all operations accept them.
  const ElementTypes small = (kIntegerTypes | ElementTypes{TUFF_BOOL}) - ElementTypes{TUFF_I64, TUFF_U64};
  const ElementTypes has = info.moves ? stores : computes | (stores & small);
  return (info.types & has).has(dtype_by_name(feature.substr(dot + 1)));
}

}  // namespace tuff
