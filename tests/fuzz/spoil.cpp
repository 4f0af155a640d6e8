// Invalid arguments, one at a time, each with the expected outcome.
#include <cmath>
#include <cstring>
#include <limits>

#include "fuzz/world.hpp"

namespace tuff_fuzz {
namespace {

constexpr uint64_t bit(int n) { return uint64_t{1} << n; }

uint64_t draw_suspect(Draw& draw) {
  constexpr uint64_t kMax = ~uint64_t{0};
  switch (draw.below(4)) {
    case 0: return draw.below(6);
    case 1: return draw.below(300);
    case 2: return bit(static_cast<int>(draw.between(12, 63))) + draw.below(3) - 1;
    default:
      return draw.of({kMax, kMax - 1, kMax / 3, bit(63) - 1, bit(62) + 1, bit(32) + 1, bit(31) - 1, kMax - 4096});
  }
}

bool spoil_handle(World& world, Call& call, size_t p, Draw& draw, Expected& expected) {
  const Place& place = call.function().places[p];
  const Slot& slot = call.slot(p);
  if (slot.count == 0) return false;
  const size_t i = draw.below(slot.count);
  const uint64_t before = call.value(p, i);
  if (before == 0) return false;
  const auto type = static_cast<Type>(place.group);
  expected = {Answer::refusal, bit_of(TUFF_ERROR_INVALID_HANDLE), place.name};
  uint64_t value = 0;
  switch (draw.below(7)) {
    // Not 0, which is TUFF_NULL_HANDLE.
    case 0: value = kForged | (draw.next() >> 1) | 1; break;
    case 1: value = draw.one_in(2) ? ~uint64_t{0} : kForged | draw.between(1, 70000); break;
    case 2: {
      const int stale = world.pick_stale(draw);
      if (stale < 0 || world.handle(0, stale) == 0) return false;  // the host backend has no such object
      value = static_cast<uint64_t>(stale) + 1;
      break;
    }
    case 3: {
      // An object of another type. A context is a valid stream: its default one.
      const Type other = static_cast<Type>(draw.below(7));
      const int object = world.pick(draw, other);
      if (object < 0 || world.handle(0, object) == 0 || other == type ||
          (type == Type::stream && other == Type::context))
        return false;
      value = static_cast<uint64_t>(object) + 1;
      break;
    }
    case 4:
      if (type != Type::buffer || !call.has("stream") || std::strcmp(place.name, "stream") == 0) return false;
      value = static_cast<uint64_t>(world.foreign) + 1;
      break;
    case 5:
      // Flips a high bit: another generation, or another kind.
      value = kForged |
              ((world.handle(0, static_cast<int>(before - 1)) ^ (uint64_t{1} << draw.between(33, 62))) & ~kForged);
      if (world.device()) return false;  // handles differ there
      break;
    default:
      // A null handle. Without an optional operand it is another call, which is valid.
      value = 0;
      expected = {Answer::alike};
      if (type == Type::stream || type == Type::context)
        expected = {Answer::refusal, bit_of(TUFF_ERROR_INVALID_HANDLE), place.name};
      if (std::strstr(call.function().name, "_destroy") != nullptr) expected = {Answer::alike};
  }
  call.put(p, i, value);
  return true;
}

bool spoil_size(Call& call, size_t p, Draw& draw, Expected& expected) {
  const Place& place = call.function().places[p];
  const Structure& structure = structures()[static_cast<size_t>(call.function().arguments[place.argument].structure)];
  call.sized_argument = place.argument;
  expected = {Answer::refusal, bit_of(TUFF_ERROR_INVALID_ARGUMENT), place.name};
  switch (draw.below(6)) {
    case 0: call.claimed = 0; break;
    case 1: {
      call.claimed = static_cast<uint32_t>(draw.below(structure.sizes.front()));
      break;
    }
    case 2: call.claimed = structure.size + 4096 + static_cast<uint32_t>(draw.between(1, 9000)); break;
    case 3: call.claimed = draw.of({0xffffffffu, 0x80000000u, 0x10000u}); break;
    case 4:
      call.claimed = structure.size + static_cast<uint32_t>(draw.between(16, 4096)), call.tail = true;
      // The tail of an output structure is filled with zeros.
      if (call.function().arguments[place.argument].way == Way::inout)
        expected = {Answer::alike};
      else
        expected.word = "";
      break;
    default: call.claimed = structure.size + static_cast<uint32_t>(draw.between(1, 4096)); expected = {Answer::success};
  }
  return true;
}

}  // namespace

bool spoil_call(World& world, Call& call, Draw& draw, Expected& expected) {
  const Function& function = call.function();
  const bool unlimited =
      std::strstr(function.name, "alloc") == nullptr && std::strstr(function.name, "limits") == nullptr &&
      std::strstr(function.name, "import") == nullptr && std::strstr(function.name, "kernel") == nullptr &&
      std::strstr(function.name, "context_create") == nullptr;
  for (int attempt = 0; attempt < 12; ++attempt) {
    if (!function.arguments.empty() && draw.one_in(10)) {
      const size_t a = draw.below(function.arguments.size());
      const Argument& argument = function.arguments[a];
      if (argument.pointer && !argument.nullable && (argument.structure >= 0 || argument.way == Way::out)) {
        call.null_argument = static_cast<int>(a);
        expected = {Answer::refusal, bit_of(TUFF_ERROR_INVALID_ARGUMENT), argument.name};
        return true;
      }
    }
    if (function.places.empty()) break;
    const size_t p = draw.below(function.places.size());
    const Place& place = function.places[p];
    const Slot& slot = call.slot(p);
    if (place.pointer && !place.nullable && !slot.null && slot.set && draw.one_in(3)) {
      call.slot(p).null = true;
      expected = {Answer::refusal, bit_of(TUFF_ERROR_INVALID_ARGUMENT), place.name};
      // A null pointer to zero bytes is valid.
      if (place.kind == Kind::memory) expected = {Answer::alike};
      if (place.in_structure && place.kind == Kind::memory) continue;
      return true;
    }
    switch (place.kind) {
      case Kind::handle:
        if (spoil_handle(world, call, p, draw, expected)) return true;
        break;
      case Kind::enumerator:
        if (slot.null || slot.count != 1 || std::strcmp(place.name, "status") == 0) break;
        call.put(p, 0,
                 static_cast<uint64_t>(draw.of<int64_t>({-1, 99, 64, std::numeric_limits<int32_t>::min(), 0x10001})));
        expected = {Answer::refusal, bit_of(TUFF_ERROR_INVALID_ARGUMENT), place.name};
        return true;
      case Kind::flags:
        call.put(p, 0, bit(static_cast<int>(draw.between(8, 31))));
        expected = {Answer::refusal, bit_of(TUFF_ERROR_INVALID_ARGUMENT), place.name};
        return true;
      case Kind::reserved:
        call.put(p, 0, bit(static_cast<int>(draw.below(8U * place.bytes))));
        expected = {Answer::refusal, bit_of(TUFF_ERROR_INVALID_ARGUMENT), place.name};
        return true;
      case Kind::struct_size: return spoil_size(call, p, draw, expected);
      case Kind::number: {
        if (slot.null || slot.count == 0 || !unlimited) break;
        const size_t i = draw.below(slot.count);
        uint64_t value = draw_suspect(draw);
        // The call would write an operand that its description reads.
        if (static_cast<uint32_t>(value) == 0 && std::strcmp(place.name, "levels_ready") == 0) break;
        if (call.counts_others(place.name)) {
          const uint64_t before = call.value(p, i);
          if (std::strcmp(place.name, "rank") == 0)
            value = draw.of<uint64_t>({0, 9, 0x7fffffff, 0xffffffff});
          else if (std::strcmp(place.name, "bytes") != 0 && std::strcmp(place.name, "pattern_bytes") != 0 &&
                   value > before)
            value = draw.below(before + 1);
        }
        call.put(p, i, value);
        expected = {Answer::alike};
        expected.device_may_lack = true;
        return true;
      }
      case Kind::real:
        if (slot.count == 0) break;
        {
          const double value = draw.of<double>({NAN, INFINITY, -INFINITY, 1e300, -1.0, 0.0, 1e-300, 1e-46, -0.0});
          uint64_t bits;
          std::memcpy(&bits, &value, 8);
          call.put(p, draw.below(slot.count), bits);
        }
        expected = {Answer::alike};
        return true;
      default: break;
    }
  }
  expected = {};
  return false;
}

}  // namespace tuff_fuzz
