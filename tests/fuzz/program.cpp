#include "fuzz/program.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

namespace tuff_fuzz {
namespace {

constexpr size_t kVariations = 2;  // sets of options and sizes in a dialect
constexpr size_t kMaxCaptured = 6;

uint64_t load(const uint8_t* from) {
  uint64_t value;
  std::memcpy(&value, from, 8);
  return value;
}

uint64_t mix(uint64_t a, uint64_t b) { return Draw(a * 0x9e3779b97f4a7c15 + b).next(); }

// Maps a number to a row of a table by rendezvous hashing on the functions' names (Thaler and Ravishankar, 1998): when
// a row is added, nearly all earlier programs keep their calls.
template <typename Row>
const Row& chosen(std::span<const Row> rows, uint64_t key) {
  static const std::vector<uint64_t> names = [rows] {
    std::map<std::string, uint64_t> times;
    std::vector<uint64_t> result;
    for (const Row& row : rows) {
      uint64_t hash = ++times[row.function];
      for (const char* at = row.function; *at != '\0'; ++at) hash = mix(hash, static_cast<uint8_t>(*at));
      result.push_back(hash);
    }
    return result;
  }();
  size_t best = 0;
  uint64_t most = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (const uint64_t weight = mix(key, names[i]); weight >= most) best = i, most = weight;
  }
  return rows[best];
}

void run_record(World& world, const uint8_t* header, const uint8_t* record) {
  const uint64_t whole = mix(load(record), load(record + 8));
  const bool spoil = record[1] >= 208;
  if (world.capturing >= 0 && (record[0] >= 160 || world.capture.calls.size() >= kMaxCaptured)) {
    return capture_step(world, Draw(whole));
  }
  if (record[0] >= 160) {
    const StepOf& of = chosen(std::span(all_steps()), mix(record[2], record[4]));
    Step step(world, Draw(whole), spoil);
    return of.run(step);
  }
  if (header[8] == 0) {
    const Description& any = chosen(std::span(descriptions()), mix(record[2], record[4] + 256u));
    return operate(world, any, Draw(mix(whole, 1)), Draw(mix(whole, 2)), spoil);
  }
  const uint64_t dialect = mix(load(header), record[2] % header[8]);
  operate(world, chosen(std::span(descriptions()), dialect), Draw(mix(dialect, record[3] % kVariations)), Draw(whole),
          spoil);
}

}  // namespace

std::vector<uint8_t> draw_program(Draw& draw, uint64_t dialects, uint8_t dialect_count, size_t records) {
  std::vector<uint8_t> bytes((records + 1) * kRecord);
  for (size_t i = 0; i < bytes.size(); i += 8) {
    const uint64_t value = draw.next();
    std::memcpy(bytes.data() + i, &value, 8);
  }
  std::memcpy(bytes.data(), &dialects, 8);
  bytes[8] = dialect_count;
  return bytes;
}

void run_program(World& world, std::span<const uint8_t> bytes) {
  if (bytes.size() < kRecord) return;
  Draw layout(load(bytes.data() + 8));
  world.begin(layout);
  const size_t count = std::min(bytes.size() / kRecord - 1, kMaxRecords);
  for (size_t i = 0; i < count; ++i) {
    run_record(world, bytes.data(), bytes.data() + (i + 1) * kRecord);
    if (i % 16 == 15 && world.capturing < 0) world.settle();
  }
  world.end();
}

std::string undescribed() {
  std::string missing;
  std::map<int, std::set<int64_t>> enumerators;   // by group
  std::map<std::string, std::set<uint64_t>> all;  // by field, over all functions
  for (const Function& function : functions()) {
    const auto named = [&](const auto& each) { return std::strcmp(each.function, function.name) == 0; };
    const auto description = std::find_if(descriptions().begin(), descriptions().end(), named);
    if (description == descriptions().end()) {
      if (std::none_of(all_steps().begin(), all_steps().end(), named))
        missing += std::string(function.name) + " is not described\n";
      continue;
    }
    const auto key = [&](const Place& place) {
      const int structure = function.arguments[place.argument].structure;
      return (place.in_structure ? structures()[static_cast<size_t>(structure)].name : function.name) +
             std::string(": ") + place.name;
    };
    std::vector<std::set<uint64_t>> seen(function.places.size());
    for (uint64_t seed = 0; seed < 3000; ++seed) {
      Draft draft(function, Draw(mix(seed, 1)), Draw(mix(seed, 2)));
      description->draw(draft);
      for (const Operand& operand : draft.operands)
        seen[static_cast<size_t>(draft.call.find(operand.name))].insert({1, 2});
      for (size_t p = 0; p < seen.size(); ++p) {
        const Place& place = function.places[p];
        const Slot& slot = draft.call.slot(p);
        for (size_t i = 0; i < slot.count && !slot.null; ++i) {
          seen[p].insert(draft.call.value(p, i));
          if (place.kind == Kind::enumerator)
            enumerators[place.group].insert(static_cast<int32_t>(draft.call.value(p, i)));
        }
      }
    }
    for (size_t p = 0; p < seen.size(); ++p) {
      const Place& place = function.places[p];
      const bool drawn =
          place.kind == Kind::struct_size || place.kind == Kind::reserved || std::strcmp(place.name, "stream") == 0;
      if (!drawn) all[key(place)].merge(seen[p]);
    }
  }
  for (const auto& [name, values] : all) {
    if (values.size() < 2) missing += name + " is never drawn\n";
  }
  for (const auto& [group, values] : enumerators) {
    for (const auto& [name, value] : groups()[static_cast<size_t>(group)].values) {
      if (value != -1 && !values.contains(value)) missing += name + " is never drawn\n";
    }
  }
  return missing;
}

}  // namespace tuff_fuzz
