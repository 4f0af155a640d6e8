#include "fuzz/call.hpp"

#include <bit>
#include <cstring>
#include <stdexcept>
#include <unordered_map>

namespace tuff_fuzz {
namespace {

constexpr uint64_t kUntouched = 0xa5a5a5a5a5a5a5a5;
constexpr size_t kLargest = 16384;     // bytes of a structure and of the tail that may be claimed after it
constexpr size_t kMaxStructures = 2;  // of a call: one that it reads, and then one that it fills
constexpr size_t kMaxPlaces = 512, kMaxArguments = 32;

using Names = std::unordered_map<std::string_view, int>;

const Names& names_of(const Function& function) {
  static const std::vector<Names> all = [] {
    std::vector<Names> result;
    for (const Function& each : functions()) {
      Names& names = result.emplace_back();
      for (size_t i = 0; i < each.places.size(); ++i) names.emplace(each.places[i].name, static_cast<int>(i));
    }
    return result;
  }();
  return all[static_cast<size_t>(&function - functions().data())];
}

std::string last_message() {
  char text[2048];
  uint64_t length = 0;
  if (tuff_last_error(text, sizeof text, &length) != TUFF_OK) return "(tuff_last_error failed)";
  return text;
}

// The memory that a call's arguments point to.
struct Frame {
  alignas(16) unsigned char structures[kMaxStructures][kLargest];
  uint64_t lists[kMaxPlaces];
  uint64_t out[kMaxArguments];
  uint64_t arguments[kMaxArguments];
};

}  // namespace

const Function& function_of(std::string_view name) {
  static const std::unordered_map<std::string_view, const Function*> table = [] {
    std::unordered_map<std::string_view, const Function*> result;
    for (const Function& function : functions()) result.emplace(function.name, &function);
    return result;
  }();
  const auto found = table.find(name);
  if (found == table.end()) throw std::logic_error("no function " + std::string(name));
  return *found->second;
}

Call::Call(const Function& function) : function_(&function), slots_(function.places.size()) {
  pool_.reserve(64);
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Place& place = function.places[i];
    slots_[i].begin = static_cast<uint32_t>(pool_.size());
    slots_[i].count = place.count;
    slots_[i].null = place.pointer && place.nullable;
    pool_.resize(pool_.size() + place.count);
  }
}

int Call::find(std::string_view name) const {
  const Names& names = names_of(*function_);
  const auto found = names.find(name);
  return found == names.end() ? -1 : found->second;
}

void Call::put(size_t place, size_t index, uint64_t value) { pool_[slots_[place].begin + index] = value; }

void Call::set(std::string_view name, uint64_t value) { list(name, {&value, 1}); }
void Call::set(std::string_view name, double value) { set(name, std::bit_cast<uint64_t>(value)); }

void Call::list(std::string_view name, std::span<const uint64_t> values) {
  const int place = find(name);
  if (place < 0) return;
  Slot& slot = slots_[static_cast<size_t>(place)];
  slot.set = true, slot.null = false;
  if (function_->places[static_cast<size_t>(place)].count == 0) {
    slot.begin = static_cast<uint32_t>(pool_.size()), slot.count = static_cast<uint32_t>(values.size());
    pool_.insert(pool_.end(), values.begin(), values.end());
    return;
  }
  if (values.size() > slot.count) throw std::logic_error("too many values of " + std::string(name));
  for (size_t i = 0; i < values.size(); ++i) pool_[slot.begin + i] = values[i];
}

uint64_t Call::get(std::string_view name, size_t index) const {
  const int place = find(name);
  return place < 0 ? 0 : value(static_cast<size_t>(place), index);
}

bool Call::counts_others(std::string_view name) const {
  const std::span<const Place> places = function_->places;
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i].length != nullptr && places[i].length == name && !slots_[i].null) return true;
  }
  return false;
}

Outcome Call::invoke(const Resolver& resolver) const {
  static thread_local Frame frame;
  const std::span<const Argument> arguments = function_->arguments;
  size_t lists = 0;
  uint32_t size = 0;
  int structure = -1;
  size_t structures_used = 0;
  unsigned char* memory = nullptr;  // of the last structure
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Argument& argument = arguments[i];
    frame.arguments[i] = 0, frame.out[i] = kUntouched;
    if (argument.structure >= 0) {
      structure = static_cast<int>(i);
      size = structures()[static_cast<size_t>(argument.structure)].size;
      if (structures_used == kMaxStructures) throw std::logic_error("too many structures");
      memory = frame.structures[structures_used++];
      std::memset(memory, 0, size + 4352);
      const bool claims = sized_argument == static_cast<int>(i);
      const uint32_t told = claims ? claimed : size;
      std::memcpy(memory, &told, 4);
      if (claims && tail) memory[size + 8] = 1;
      frame.arguments[i] = reinterpret_cast<uint64_t>(memory);
    } else if (argument.way == Way::out) {
      frame.arguments[i] = reinterpret_cast<uint64_t>(&frame.out[i]);
    }
  }
  for (size_t p = 0; p < slots_.size(); ++p) {
    const Place& place = function_->places[p];
    if (place.kind == Kind::struct_size) continue;
    const Slot& slot = slots_[p];
    const auto resolved = [&](size_t i) {
      const uint64_t bits = pool_[slot.begin + i];
      return place.kind == Kind::handle                               ? resolver.handle(bits)
             : place.kind == Kind::memory || place.kind == Kind::text ? resolver.memory(bits)
                                                                      : bits;
    };
    unsigned char* const target =
        place.in_structure ? reinterpret_cast<unsigned char*>(frame.arguments[place.argument]) + place.offset : nullptr;
    const bool by_pointer = place.pointer && place.kind != Kind::memory && place.kind != Kind::text;
    if (by_pointer) {  // elements that are stored consecutively
      uint64_t address = 0;
      if (!slot.null) {
        if (lists + slot.count > kMaxPlaces) throw std::logic_error("too many elements");
        auto* const elements = reinterpret_cast<unsigned char*>(&frame.lists[lists]);
        for (size_t i = 0; i < slot.count; ++i) {
          const uint64_t value = resolved(i);
          std::memcpy(elements + i * place.bytes, &value, place.bytes);
        }
        lists += slot.count;
        address = reinterpret_cast<uint64_t>(elements);
      }
      if (place.in_structure) {
        std::memcpy(target, &address, 8);
      } else {
        frame.arguments[place.argument] = address;
      }
    } else if (place.in_structure) {
      for (size_t i = 0; i < slot.count; ++i) {
        const uint64_t value = resolved(i);
        std::memcpy(target + i * place.bytes, &value, place.bytes);
      }
    } else {
      frame.arguments[place.argument] = slot.null ? 0 : resolved(0);
    }
  }
  if (null_argument >= 0) frame.arguments[null_argument] = 0;
  const bool filled = structure >= 0 && arguments[static_cast<size_t>(structure)].way == Way::inout;
  static thread_local unsigned char before[kLargest];
  if (filled) std::memcpy(before, memory, size + 4352);
  Outcome outcome;
  outcome.status = function_->invoke(frame.arguments);
  outcome.out.assign(frame.out, frame.out + arguments.size());
  if (outcome.status != TUFF_OK) {
    outcome.message = last_message();
    for (size_t i = 0; i < arguments.size(); ++i) outcome.touched = outcome.touched || frame.out[i] != kUntouched;
    if (filled) outcome.touched = outcome.touched || std::memcmp(before, memory, size + 4352) != 0;
  }
  return outcome;
}

std::string Call::text() const {
  std::string text = function_->name;
  text += "(";
  for (size_t p = 0; p < slots_.size(); ++p) {
    const Place& place = function_->places[p];
    const Slot& slot = slots_[p];
    bool zero = true;
    for (size_t i = 0; i < slot.count; ++i) zero = zero && pool_[slot.begin + i] == 0;
    if (place.kind == Kind::struct_size || (place.in_structure && zero && place.count != 0)) continue;
    if (text.back() != '(') text += ", ";
    text += std::string(place.name) + "=";
    if (slot.null) {
      text += "NULL";
      continue;
    }
    if (slot.count != 1) text += "{";
    for (size_t i = 0; i < slot.count; ++i) {
      const uint64_t bits = pool_[slot.begin + i];
      if (i != 0) text += " ";
      if (place.kind == Kind::real) {
        text += std::to_string(std::bit_cast<double>(bits));
      } else if (place.kind == Kind::handle) {
        text += bits == 0 ? "0" : (bits & kForged) != 0 ? "forged" : "#" + std::to_string(bits - 1);
      } else if (place.is_signed) {
        text += std::to_string(place.bytes == 4 ? static_cast<int32_t>(bits) : static_cast<int64_t>(bits));
      } else {
        text += std::to_string(bits);
      }
    }
    if (slot.count != 1) text += "}";
  }
  text += ")";
  if (null_argument >= 0) {
    text += " with NULL for " + std::string(function_->arguments[static_cast<size_t>(null_argument)].name);
  }
  if (sized_argument >= 0) text += " with struct_size " + std::to_string(claimed) + (tail ? " and a tail" : "");
  return text;
}

}  // namespace tuff_fuzz
