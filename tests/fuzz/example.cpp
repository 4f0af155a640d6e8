#include "fuzz/example.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>
#include <stdexcept>

#include "fuzz/numbers.hpp"
#include "fuzz/operands.hpp"

namespace tuff_fuzz {
namespace {

constexpr uint64_t kDrafts = 3000;

// A rank above this is refused before anything is read.
constexpr uint32_t kMaxRank = 8;

// True if the place says how many elements a pointer points to: with another number, the call would read beyond them.
// Arrays of `rank` elements have room for any.
bool counts_elements(const Call& call, const Place& place) {
  const std::span<const Place> places = call.function().places;
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i].pointer && !call.slot(i).null && places[i].length != nullptr &&
        std::strcmp(places[i].length, place.name) == 0) {
      return std::strcmp(place.name, "rank") != 0;
    }
  }
  return false;
}

// Elements of an array that are replaced: those of the call, and of longer arrays the first ones behind them.
uint32_t counted(const Slot& slot, const Call& call, size_t place) {
  constexpr uint32_t kFew = 3;
  uint32_t used = slot.count;
  while (used > 0 && call.value(place, used - 1) == 0) --used;
  return std::min(slot.count, std::max(used, kFew));
}

std::unique_ptr<Draft> draft_of(const Description& description, uint64_t seed) {
  auto draft = std::make_unique<Draft>(function_of(description.function), Draw(seed), Draw(~seed));
  description.draw(*draft);
  return draft;
}

std::vector<uint8_t> contents_of(const Operand& of, uint64_t bytes, Draw& draw, const std::function<double()>& number) {
  const uint64_t unit = size_of(of.dtype);
  const bool integers = spacing(of.dtype, 1) == 0;
  Operand operand{of.name, 0, of.dtype, bytes / unit, true, false};
  operand.fill = of.fill, operand.most = of.most;
  std::vector<uint8_t> contents(bytes);
  // What decides which elements a call uses is drawn as the fuzzer draws it; other numbers are the caller's.
  const bool numbers = !integers || of.fill == Fill::integers || of.fill == Fill::positive || of.fill == Fill::powers;
  if (of.fill == Fill::offsets) operand.elements = std::min(operand.elements, of.elements);
  if (!numbers && fill_bits(operand, draw, contents.data())) return contents;
  for (uint64_t i = 0; i < bytes / unit; ++i) {
    encode(of.dtype, numbers ? number() : draw_value(operand, draw), contents.data() + i * unit);
  }
  return contents;
}

}  // namespace

Example::Example(std::shared_ptr<Draft> its_draft) : draft_(std::move(its_draft)), function_(&draft_->call.function()) {
  const Draft& draft = *draft_;
  const Call& call = draft.call;
  const std::span<const Argument> arguments = function_->arguments;
  if (arguments.size() > kMaxArguments) throw std::length_error(function_->name);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].way == Way::out) throw std::logic_error(std::string(function_->name) + " has an output pointer");
    if (arguments[i].structure < 0) continue;
    const uint32_t size = structures()[static_cast<size_t>(arguments[i].structure)].size;
    if (size > kMaxStructure || structure_argument_ >= 0) throw std::length_error(function_->name);
    structure_argument_ = static_cast<int>(i);
    std::memcpy(frame_.structure, &size, sizeof size);
  }
  uint32_t lists = 0;
  std::vector<Target> first(function_->places.size());  // where each place's first element is
  for (size_t p = 0; p < function_->places.size(); ++p) {
    const Place& place = function_->places[p];
    const Slot& slot = call.slot(p);
    if (place.kind == Kind::struct_size || slot.null) continue;
    if (place.kind == Kind::memory || place.kind == Kind::text) {
      throw std::logic_error(std::string(function_->name) + " takes host memory as " + place.name);
    }
    Target& target = first[p];
    target = {place.in_structure ? Part::structure : Part::argument, place.in_structure ? place.bytes : uint8_t{8},
              place.in_structure ? place.offset : place.argument};
    if (place.pointer) {
      list_addresses_.push_back({{target.part, 8, target.at}, lists});
      target = {Part::list, place.bytes, lists};
      lists += (std::max(slot.count, kMaxRank) * place.bytes + 7) / 8 * 8;
      if (lists > kMaxLists) throw std::length_error(function_->name);
    }
    for (uint32_t i = 0; i < slot.count; ++i) {
      store(frame_, {target.part, target.bytes, target.at + i * target.bytes}, call.value(p, i));
    }
    if (place.kind == Kind::handle && std::strcmp(place.name, "stream") == 0) stream_ = target;
    if (place.kind != Kind::number || counts_elements(call, place)) continue;
    const bool array = place.pointer || place.count > 1;
    for (uint32_t i = 0; i < (array ? counted(slot, call, p) : 1); ++i) {
      numbers_.push_back(
          {array ? std::string(place.name) + "[" + std::to_string(i) + "]" : place.name, call.value(p, i)});
      number_targets_.push_back({target.part, target.bytes, target.at + i * target.bytes});
    }
  }
  for (const Operand& operand : draft.operands) {
    const auto p = static_cast<size_t>(call.find(operand.name));
    const bool array = function_->places[p].pointer;
    const std::string name = operand.name;
    buffers_.push_back(
        {array ? name + "[" + std::to_string(operand.index) + "]" : name, operand.dtype, operand.elements});
    buffer_targets_.push_back({first[p].part, first[p].bytes, first[p].at + operand.index * first[p].bytes});
  }
}

void Example::store(Frame& frame, const Target& target, uint64_t value) {
  unsigned char* const part = target.part == Part::argument
                                  ? reinterpret_cast<unsigned char*>(&frame.arguments[target.at])
                                  : (target.part == Part::structure ? frame.structure : frame.lists) + target.at;
  std::memcpy(part, &value, target.bytes);
}

tuff_status Example::call(tuff_stream stream, const tuff_buffer* buffers, const uint64_t* values) const {
  Frame frame = frame_;
  if (structure_argument_ >= 0) frame.arguments[structure_argument_] = reinterpret_cast<uintptr_t>(frame.structure);
  for (const auto& [target, offset] : list_addresses_) {
    store(frame, target, reinterpret_cast<uintptr_t>(frame.lists + offset));
  }
  store(frame, stream_, stream);
  for (size_t i = 0; i < buffer_targets_.size(); ++i) store(frame, buffer_targets_[i], buffers[i]);
  if (values != nullptr) {
    for (size_t i = 0; i < number_targets_.size(); ++i) store(frame, number_targets_[i], values[i]);
  }
  return function_->invoke(frame.arguments);
}

std::vector<std::vector<uint8_t>> Example::contents(uint64_t bytes, const std::function<double()>& number) const {
  constexpr uint64_t kTries = 64;
  std::vector<std::vector<uint8_t>> first;
  for (uint64_t seed = 0; seed < kTries; ++seed) {
    Draw draw(seed);
    std::vector<std::vector<uint8_t>> all;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      all.push_back(contents_of(draft_->operands[i], bytes, draw, number));
      if (draft_->operands[i].read) look(draft_->operands[i], all[i].data());
    }
    if (!draft_->suits || draft_->suits()) return all;
    if (first.empty()) first = std::move(all);
  }
  return first;
}

bool fits(const Draft& draft, size_t operands, uint64_t bytes) {
  return !draft.operands.empty() && draft.operands.size() <= operands &&
         std::all_of(draft.operands.begin(), draft.operands.end(), [bytes](const Operand& operand) {
           // 16-bit floats and f64 are not on every device.
           const int32_t part = part_of(operand.dtype);
           const bool other = spacing(part, 1) != 0 && part != TUFF_F32 && size_of(part) != 1;
           return operand.elements != 0 && !other && size_of(operand.dtype) * operand.elements <= bytes;
         });
}

double plainness(const Draft& draft) {
  constexpr double kUsual = 300;
  double elements = 0, odd = 0;
  for (const Operand& operand : draft.operands) {
    elements += static_cast<double>(operand.elements);
    odd += operand.dtype != TUFF_F32 && operand.fill != Fill::indices;
  }
  double ones = 0;
  const std::span<const Place> places = draft.call.function().places;
  for (size_t i = 0; i < places.size(); ++i) {
    const Slot& slot = draft.call.slot(i);
    odd += places[i].kind == Kind::real && slot.set && draft.call.value(i, 0) == 0;
    if (places[i].kind != Kind::number || slot.null) continue;
    for (size_t j = 0; j < slot.count; ++j) ones += draft.call.value(i, j) == 1;
  }
  return -20 * odd - ones / 2 - std::fabs(elements - kUsual) / kUsual;
}

std::vector<Example> best_examples(const Worth& worth) {
  std::vector<Example> examples;
  for (const Description& description : descriptions()) {
    uint64_t best = 0;
    double most = kUnusable;
    for (uint64_t seed = 0; seed < kDrafts; ++seed) {
      const double is = worth(*draft_of(description, seed));
      if (is > most) most = is, best = seed;
    }
    if (std::isfinite(most)) examples.emplace_back(draft_of(description, best));
  }
  return examples;
}

std::vector<Example> covering_examples(const Worth& worth) {
  struct Candidate {
    uint64_t seed;
    double worth;
    std::set<std::string> names;
  };
  std::vector<Example> examples;
  for (const Description& description : descriptions()) {
    std::vector<Candidate> candidates;
    for (uint64_t seed = 0; seed < kDrafts; ++seed) {
      const std::unique_ptr<Draft> draft = draft_of(description, seed);
      const double is = worth(*draft);
      if (is == kUnusable) continue;
      candidates.push_back({seed, is, {}});
      for (const Operand& operand : draft->operands) candidates.back().names.insert(operand.name);
    }
    std::set<std::string> shown;
    // How many of its operands no example has yet; of the first example, only the worth counts.
    const auto others = [&](const Candidate& candidate) {
      if (shown.empty()) return ptrdiff_t{1};
      return std::count_if(candidate.names.begin(), candidate.names.end(),
                           [&](const std::string& name) { return !shown.contains(name); });
    };
    while (!candidates.empty()) {
      const auto best = std::max_element(candidates.begin(), candidates.end(), [&](const auto& a, const auto& b) {
        return std::pair(others(a), a.worth) < std::pair(others(b), b.worth);
      });
      if (others(*best) == 0) break;
      examples.emplace_back(draft_of(description, best->seed));
      shown.insert(best->names.begin(), best->names.end());
    }
  }
  return examples;
}

}  // namespace tuff_fuzz
