// Tries a large number of forged handles, none of which may be accepted as an object.
//
//   tuff_forged_handles [--table n] [--calls n] [--seed n]
//
// A handle table holds objects of each kind, which are created and destroyed meanwhile. --table forged handles are
// looked up in it, as each kind: random numbers, and live and stale handles with some bits changed, or with another
// kind, generation or slot. Then --calls calls of the ABI are made: of each function, and for each argument that takes
// a handle, with a forged one. A call that is refused for it must return INVALID_HANDLE if its other arguments are
// valid, and must leave the named object unchanged.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "fuzz/plausible_call.hpp"
#include "runtime/handle_table.hpp"
#include "support/call_table.hpp"
#include "support/options.hpp"
#include "tuff/tuff.h"

namespace tuff_test {
namespace {

using Clock = std::chrono::steady_clock;
using Random = std::mt19937_64;
using tuff::HandleKind;
using tuff::HandleTable;

constexpr uint32_t kKinds = 6;
constexpr uint64_t kSlots = uint64_t{1} << HandleTable::kSlotBits;
constexpr uint64_t kGenerations = uint64_t{1} << HandleTable::kGenerationBits;

int problems = 0;
template <typename... Args>
void problem(const char* format, Args... args) {
  if (++problems <= 20) std::printf(format, args...), std::printf("\n"), std::fflush(stdout);
}

uint64_t handle_of(uint64_t kind, uint64_t generation, uint64_t slot) {
  return kind << (HandleTable::kSlotBits + HandleTable::kGenerationBits) |
         (generation % kGenerations) << HandleTable::kSlotBits | slot % kSlots;
}
uint64_t slot_of(uint64_t handle) { return handle % kSlots; }
uint64_t generation_of(uint64_t handle) { return handle / kSlots % kGenerations; }
uint64_t kind_of(uint64_t handle) { return handle >> (HandleTable::kSlotBits + HandleTable::kGenerationBits); }

// May return a live handle by accident, or because nothing changed; the caller knows which handles are live.
uint64_t forge(Random& random, uint64_t model) {
  const uint64_t kind = kind_of(model), generation = generation_of(model), slot = slot_of(model);
  const uint64_t number = random();
  switch (number % 11) {
    case 0: return random();
    case 1: return random() >> (number >> 8) % 64;
    case 2: return model ^ uint64_t { 1 } << (number >> 8) % 64;
    case 3: return model ^ uint64_t { 1 } << (number >> 8) % 64 ^ uint64_t { 1 } << (number >> 16) % 64;
    case 4: return model + (number >> 8) % 17 - 8;
    case 5: return handle_of(1 + (number >> 8) % kKinds, generation, slot);
    case 6: return handle_of(kind, generation + (number >> 8) % 9 - 4, slot);
    case 7: return handle_of(kind, generation, slot + (number >> 8) % 65 - 32);
    case 8: return handle_of(kind, number >> 8, slot);
    case 9: return handle_of((number >> 8) % 32, (number >> 16) % 8, (number >> 24) % 4096);
    default: return ~model;
  }
}

struct Named : tuff::HandleObject {
  uint64_t kind = 0;
};

uint64_t try_table(uint64_t count, Random& random) {
  HandleTable table;
  std::vector<uint64_t> live, stale;
  std::unordered_map<uint64_t, size_t> places;  // places of the live handles
  const auto add = [&] {
    auto object = std::make_unique<Named>();
    object->kind = 1 + random() % kKinds;
    const uint64_t kind = object->kind, handle = table.insert(static_cast<HandleKind>(kind), std::move(object));
    places[handle] = live.size();
    live.push_back(handle);
  };
  const auto take = [&] {
    const size_t place = random() % live.size();
    const uint64_t handle = live[place];
    if (!table.remove<Named>(handle, static_cast<HandleKind>(kind_of(handle)))) problem("a live handle is not removed");
    places.erase(handle);
    live[place] = live.back();
    live.pop_back();
    if (place < live.size()) places[live[place]] = place;
    if (stale.size() < 4096) {
      stale.push_back(handle);
    } else {
      stale[random() % stale.size()] = handle;
    }
  };
  for (int i = 0; i < 3000; ++i) add();
  uint64_t tried = 0, by_chance = 0;
  while (tried < count) {
    if (tried % 64 == 0) {
      take();
      add();
    }
    const bool old = !stale.empty() && random() % 4 == 0;
    const uint64_t model = old ? stale[random() % stale.size()] : live[random() % live.size()];
    const uint64_t handle = old && random() % 8 == 0 ? model : forge(random, model);
    if (const auto found = places.find(handle); found != places.end()) {
      ++by_chance;
      for (uint64_t kind = 1; kind <= kKinds; ++kind) {
        const auto held = table.acquire<Named>(handle, static_cast<HandleKind>(kind));
        if (static_cast<bool>(held) != (kind == kind_of(handle)) || (held && held->kind != kind)) {
          problem("%#llx is live and not what it names as kind %llu", static_cast<unsigned long long>(handle),
                  static_cast<unsigned long long>(kind));
        }
      }
      continue;
    }
    ++tried;
    // Looks up existing kinds only, as the library does: the kind that the handle claims, or another one.
    const uint64_t claimed = kind_of(handle), asked = claimed % 32 != 0 ? claimed % 32 : 1;
    for (uint64_t kind : {asked, 1 + tried % kKinds}) {
      if (table.acquire<Named>(handle, static_cast<HandleKind>(kind))) {
        problem("%#llx is taken for an object of kind %llu", static_cast<unsigned long long>(handle),
                static_cast<unsigned long long>(kind));
      }
    }
    if (tried % 16 == 0 && table.remove<Named>(handle, static_cast<HandleKind>(asked))) {
      problem("%#llx is removed", static_cast<unsigned long long>(handle));
    }
  }
  for (const uint64_t handle : live) {
    if (!table.acquire<Named>(handle, static_cast<HandleKind>(kind_of(handle)))) problem("a live handle is gone");
  }
  std::printf("%llu forged handles looked up, %llu others were live by chance\n",
              static_cast<unsigned long long>(tried), static_cast<unsigned long long>(by_chance));
  return tried;
}

// --- through the ABI ----------------------------------------------------------------------------------------

template <typename T>
T sized() {
  T desc{};
  desc.struct_size = sizeof(T);
  return desc;
}

void check(tuff_status status, const char* what) {
  char message[256] = "";
  tuff_last_error(message, sizeof message, nullptr);
  if (status != TUFF_OK) problem("%s answers %s: %s", what, tuff_status_name(status), message);
}
#define CHECK(call) check(call, #call)

// One object of each kind, by the names of the handle types, and stale handles.
class World {
 public:
  World() {
    auto desc = sized<tuff_context_desc>();
    desc.backend = "host";
    CHECK(tuff_context_create(&desc, &context));
    for (tuff_buffer& buffer : buffers) CHECK(tuff_alloc(context, kCallBytes, &buffer));
    CHECK(tuff_stream_create(context, nullptr, &stream));
    CHECK(tuff_event_create(context, nullptr, &event));
    models = {context, stream, event};
    models.insert(models.end(), std::begin(buffers), std::end(buffers));
    for (int i = 0; i < 20; ++i) {
      tuff_buffer buffer = 0;
      tuff_stream other = 0;
      CHECK(tuff_alloc(context, 64, &buffer));
      CHECK(tuff_stream_create(context, nullptr, &other));
      models.push_back(buffer);
      models.push_back(other);
      CHECK(tuff_free(buffer));
      CHECK(tuff_stream_destroy(other));
    }
  }
  ~World() { CHECK(tuff_context_destroy(context)); }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  bool live(uint64_t handle) const {
    for (size_t i = 0; i < kLive; ++i) {
      if (models[i] == handle) return true;
    }
    return false;
  }
  uint64_t of_type(const std::string& type) const {
    return type == "tuff_context"  ? context
           : type == "tuff_stream" ? stream
           : type == "tuff_event"  ? event
           : type == "tuff_buffer" ? buffers[0]
                                   : 0;
  }
  void expect_whole() const {
    uint64_t bytes = 0;
    for (const tuff_buffer buffer : buffers) CHECK(tuff_buffer_size(buffer, &bytes));
    CHECK(tuff_synchronize(context));
    CHECK(tuff_synchronize(stream));
    CHECK(tuff_event_wait(event));
    auto stats = sized<tuff_stats>();
    CHECK(tuff_context_stats(context, &stats));
    if (stats.live_buffers != kCallBuffers)
      problem("%llu buffers live", static_cast<unsigned long long>(stats.live_buffers));
  }

  static constexpr size_t kLive = 3 + kCallBuffers;
  tuff_context context = 0;
  tuff_buffer buffers[kCallBuffers] = {};
  tuff_stream stream = 0;
  tuff_event event = 0;
  std::vector<uint64_t> models;
};

uint64_t forged_handle(const World& world, Random& random) {
  for (;;) {
    const uint64_t model = world.models[random() % world.models.size()];
    const uint64_t handle = random() % 8 == 0 ? model : forge(random, model);
    if (handle != 0 && !world.live(handle)) return handle;
  }
}

// Calls a function with a forged handle in one place and plausible values elsewhere.
tuff_status call_with(const World& world, const tuff_fuzz::Function& function, const tuff_fuzz::Place& forged,
                      uint64_t handle) {
  static tuff_fuzz::CallMemory memory;
  return tuff_fuzz::call_plausibly(function, memory, [&](const tuff_fuzz::Place& place) {
    return &place == &forged ? handle : world.of_type(tuff_fuzz::handle_types()[static_cast<size_t>(place.group)]);
  });
}

uint64_t try_calls(uint64_t count, Random& random) {
  using tuff_fuzz::Kind;
  const World world;
  struct Target {
    const tuff_fuzz::Function* function;
    const tuff_fuzz::Place* place;
  };
  std::vector<Target> targets;
  for (const tuff_fuzz::Function& function : tuff_fuzz::functions()) {
    for (const tuff_fuzz::Place& place : function.places) {
      if (place.kind == Kind::handle) targets.push_back({&function, &place});
    }
  }
  uint64_t done = 0, by_name = 0;
  std::unordered_map<const tuff_fuzz::Place*, uint64_t> named;
  while (done < count) {
    for (const Target& target : targets) {
      const uint64_t handle = forged_handle(world, random);
      const tuff_status status = call_with(world, *target.function, *target.place, handle);
      ++done;
      if (status == TUFF_OK) {
        problem("%s takes %#llx as %s", target.function->name, static_cast<unsigned long long>(handle),
                target.place->name);
      }
      by_name += status == TUFF_ERROR_INVALID_HANDLE;
      named[target.place] += status == TUFF_ERROR_INVALID_HANDLE;
    }
    for (const BufferCall& call : buffer_calls()) {
      for (size_t i = 0; i <= call.buffers.size(); ++i) {
        if (i == call.buffers.size() && !call.has_stream) continue;
        tuff_buffer operands[kCallBuffers];
        std::copy(std::begin(world.buffers), std::end(world.buffers), operands);
        const uint64_t handle = forged_handle(world, random);
        if (i < call.buffers.size()) operands[i] = handle;
        const tuff_status status = call.call(i < call.buffers.size() ? world.stream : handle, operands);
        ++done, ++by_name;
        if (status == TUFF_ERROR_INVALID_HANDLE) continue;
        problem("%s answers %s for %#llx as %s", call.function, tuff_status_name(status),
                static_cast<unsigned long long>(handle), i < call.buffers.size() ? call.buffers[i].name : "stream");
      }
    }
    world.expect_whole();
  }
  size_t silent = 0;
  for (const Target& target : targets) {
    if (named[target.place] != 0) continue;
    ++silent;
  }
  std::printf(
      "%llu calls with a forged handle at %zu places, all refused, %llu with INVALID_HANDLE, %zu places always "
      "for another argument\n",
      static_cast<unsigned long long>(done), targets.size(), static_cast<unsigned long long>(by_name), silent);
  return done;
}

int run(uint64_t table, uint64_t calls, uint64_t seed) {
  std::printf("--seed %llu\n", static_cast<unsigned long long>(seed));
  Random random(seed);
  const auto start = Clock::now();
  const uint64_t done = try_table(table, random) + try_calls(calls, random);
  std::printf("%llu forged handles, %.0f s, %d problems\n", static_cast<unsigned long long>(done),
              std::chrono::duration<double>(Clock::now() - start).count(), problems);
  return problems == 0 && done != 0 ? 0 : 1;
}

}  // namespace
}  // namespace tuff_test

int main(int count, char** words) {
  uint64_t table = 1'000'000, calls = 20'000, seed = std::random_device()();
  tuff_test::parse_options(count, words, 1, "usage: tuff_forged_handles [--table n] [--calls n] [--seed n]\n",
                           {{"--table", &table}, {"--calls", &calls}, {"--seed", &seed}});
  return tuff_test::run(table, calls, seed);
}
