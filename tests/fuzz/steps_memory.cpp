// Buffers and copies.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "fuzz/world.hpp"

namespace tuff_fuzz {
namespace {

// Picks a live buffer of the main context that is not mapped.
int pick_buffer(Step& s) {
  for (int attempt = 0; attempt < 8; ++attempt) {
    const int object = s.world.pick(s.draw, Type::buffer);
    if (object >= 0 && !s.world.roots[static_cast<size_t>(s.world.objects[static_cast<size_t>(object)].root)].mapped)
      return object;
  }
  return -1;
}

Root& root_of(Step& s, int object) { return s.world.roots[static_cast<size_t>(object_of(s, object).root)]; }

struct Range {
  uint64_t offset, bytes;
};
Range draw_range(Draw& draw, uint64_t bytes, uint64_t most) {
  const uint64_t size = draw.one_in(12) ? 0 : draw.between(0, std::min(bytes, most));
  return {draw.below(bytes - size + 1), size};
}

uint64_t live_bytes(const World& world) {
  uint64_t bytes = 0;
  for (const Root& root : world.roots) bytes += root.bytes;
  return bytes;
}

void alloc(Step& s) {
  if (live_bytes(s.world) > 1 << 20) return;
  const bool plain = s.draw.one_in(2);
  Call call(function_of(plain ? "tuff_alloc" : "tuff_alloc_ex"));
  const bool huge = s.draw.one_in(10);
  const uint64_t bytes =
      huge ? s.draw.of<uint64_t>({uint64_t{1} << 60, ~uint64_t{0}, ~uint64_t{0} - 255, uint64_t{1} << 52})
           : s.draw.below(9000);
  const uint32_t flags = plain ? 0 : static_cast<uint32_t>(s.draw.below(8));
  call.set("context", reference(0));
  call.set("bytes", bytes);
  call.set("flags", uint64_t{flags});
  if (!plain && s.draw.one_in(2)) call.set("name", reinterpret_cast<uint64_t>("a buffer"));
  Expected expected;
  if (huge) {
    // The device has its own limits; the host backend is limited by the process's memory.
    expected = {Answer::alike};
    s.spoil = false;
    for (size_t side = 0; side < s.world.sides(); ++side) {
      const Outcome outcome = s.world.call_on(side, call);
      if (outcome.status != TUFF_ERROR_LIMIT_EXCEEDED && outcome.status != TUFF_ERROR_OUT_OF_DEVICE_MEMORY &&
          outcome.status != TUFF_ERROR_OUT_OF_HOST_MEMORY) {
        s.world.fail(call.text() + "\n  more than there is was given out: " + tuff_status_name(outcome.status));
      }
    }
    return;
  }
  s.run(call, expected, [&](const std::array<Outcome, 2>& outcomes) {
    Root root{0, bytes, empty_mirror(bytes)};
    root.visible = (flags & (TUFF_ALLOC_HOST_VISIBLE | TUFF_ALLOC_HOST_PINNED)) != 0;
    root.pinned = (flags & TUFF_ALLOC_HOST_PINNED) != 0;
    root.end = bytes, root.dirty = true, root.stream = 0;
    s.world.roots.push_back(std::move(root));
    Object object{Type::buffer, true, 0};
    object.root = static_cast<int>(s.world.roots.size() - 1), object.bytes = bytes;
    const int index = s.world.add(object, outcomes, plain ? 2 : 2);
    s.world.roots.back().object = index;
    if ((flags & TUFF_ALLOC_UNINITIALIZED) != 0) s.world.write(object.root, 0, bytes, 0);
  });
}

void view(Step& s) {
  const int buffer = pick_buffer(s);
  if (buffer < 0) return;
  const Object whole = object_of(s, buffer);
  const Range range = draw_range(s.draw, whole.bytes, 20000);
  Call call(function_of("tuff_view"));
  call.set("buffer", reference(buffer)), call.set("offset", range.offset), call.set("bytes", range.bytes);
  s.run(call, {}, [&](const std::array<Outcome, 2>& outcomes) {
    Object part{Type::buffer, true, 0};
    part.root = whole.root, part.offset = whole.offset + range.offset, part.bytes = range.bytes;
    s.world.add(part, outcomes, 3);
  });
}

void free_buffer(Step& s) {
  const int buffer = pick_buffer(s);
  if (buffer < 0) return;
  // Keeps the largest memory, since operands need room.
  if (root_of(s, buffer).object == buffer && (object_of(s, buffer).root == 1 || s.draw.one_in(2))) return;
  Call call(function_of("tuff_free"));
  call.set("buffer", reference(buffer));
  s.run(call, {}, [&](const std::array<Outcome, 2>&) { s.world.forget(buffer); });
}

void buffer_size(Step& s) {
  const int buffer = s.world.pick(s.draw, Type::buffer);
  if (buffer < 0) return;
  Call call(function_of("tuff_buffer_size"));
  call.set("buffer", reference(buffer));
  s.run(call, {}, [&](const std::array<Outcome, 2>& outcomes) {
    for (size_t side = 0; side < s.world.sides(); ++side) {
      if (outcomes[side].out[1] != object_of(s, buffer).bytes)
        s.world.fail("tuff_buffer_size: not what it was made with");
    }
  });
}

void copy_htod(Step& s) {
  const int buffer = pick_buffer(s), stream = pick_stream(s);
  if (buffer < 0) return;
  const Object object = object_of(s, buffer);
  const Range range = draw_range(s.draw, object.bytes, 30000);
  s.world.order(s.draw, object.root, stream);
  const uint64_t from = s.draw.below(64);
  for (uint64_t i = 0; i < range.bytes; ++i) s.world.scratch(0)[from + i] = static_cast<uint8_t>(s.draw.next() >> 60);
  if (s.world.device()) std::memcpy(s.world.scratch(1) + from, s.world.scratch(0) + from, range.bytes);
  Call call(function_of("tuff_copy_htod"));
  call.set("stream", reference(stream)), call.set("dst", reference(buffer)), call.set("dst_offset", range.offset);
  call.set("src", kScratch | from), call.set("bytes", range.bytes);
  s.run(call, {}, [&](const std::array<Outcome, 2>&) {
    Root& root = root_of(s, buffer);
    std::memcpy(root.mirror.data() + object.offset + range.offset, s.world.scratch(0) + from, range.bytes);
    root.dirty = true;
  });
}

void copy_dtoh(Step& s) {
  const int buffer = pick_buffer(s), stream = pick_stream(s);
  if (buffer < 0) return;
  const Object object = object_of(s, buffer);
  const Range range = draw_range(s.draw, object.bytes, 30000);
  s.world.order(s.draw, object.root, stream);
  Call call(function_of("tuff_copy_dtoh"));
  call.set("stream", reference(stream)), call.set("src", reference(buffer)), call.set("src_offset", range.offset);
  call.set("dst", kScratch | 32), call.set("bytes", range.bytes);
  for (size_t side = 0; side < s.world.sides(); ++side) std::memset(s.world.scratch(side), 0xcd, range.bytes + 96);
  s.run(call, {}, [&](const std::array<Outcome, 2>&) {
    const Root& root = root_of(s, buffer);
    for (size_t side = 0; side < s.world.sides(); ++side) {
      const uint8_t* const got = s.world.scratch(side);
      if (std::memcmp(got + 32, root.mirror.data() + object.offset + range.offset, range.bytes) != 0) {
        s.world.fail(call.text() + "\n  side " + std::to_string(side) + ": not what the buffer holds");
      }
      for (uint64_t i = 0; i < 32; ++i) {
        if (got[i] != 0xcd || got[32 + range.bytes + i] != 0xcd)
          s.world.fail(call.text() + "\n  wrote beyond the requested bytes");
      }
    }
  });
}

void copy_dtod(Step& s) {
  const int to = pick_buffer(s), from = pick_buffer(s), stream = pick_stream(s);
  if (to < 0 || from < 0) return;
  const Object dst = object_of(s, to), src = object_of(s, from);
  const Range source = draw_range(s.draw, std::min(src.bytes, dst.bytes), 30000);
  const uint64_t into = s.draw.below(dst.bytes - source.bytes + 1), out = s.draw.below(src.bytes - source.bytes + 1);
  s.world.order(s.draw, dst.root, stream), s.world.order(s.draw, src.root, stream);
  Call call(function_of("tuff_copy_dtod"));
  call.set("stream", reference(stream)), call.set("dst", reference(to)), call.set("dst_offset", into);
  call.set("src", reference(from)), call.set("src_offset", out), call.set("bytes", source.bytes);
  const uint64_t a = dst.offset + into, b = src.offset + out;
  const bool overlaps = dst.root == src.root && source.bytes != 0 && a < b + source.bytes && b < a + source.bytes;
  if (overlaps) s.spoil = false;
  s.run(call, overlaps ? Expected{Answer::refusal, bit_of(TUFF_ERROR_INVALID_ARGUMENT), ""} : Expected{},
        [&](const std::array<Outcome, 2>&) {
          std::memcpy(root_of(s, to).mirror.data() + a, root_of(s, from).mirror.data() + b, source.bytes);
          root_of(s, to).dirty = true;
        });
}

// Copies between the two contexts of each backend, in both directions.
void copy_peer(Step& s) {
  const int buffer = pick_buffer(s), stream = pick_stream(s);
  if (buffer < 0) return;
  const int other = s.world.foreign;
  const Object here = object_of(s, buffer), there = object_of(s, other);
  const bool out = s.draw.one_in(2);
  const Range range = draw_range(s.draw, std::min(here.bytes, there.bytes), 4096);
  const uint64_t at = s.draw.below(here.bytes - range.bytes + 1);
  s.world.order(s.draw, here.root, stream);
  Call call(function_of("tuff_copy_peer"));
  call.set("dst_stream", out ? reference(1) : reference(stream)),
      call.set("src_stream", out ? reference(stream) : reference(1));
  call.set("dst", reference(out ? other : buffer)), call.set("src", reference(out ? buffer : other));
  call.set("dst_offset", out ? range.offset : at), call.set("src_offset", out ? at : range.offset);
  call.set("bytes", range.bytes);
  s.run(call, {}, [&](const std::array<Outcome, 2>&) {
    uint8_t* const mine = root_of(s, buffer).mirror.data() + here.offset + at;
    uint8_t* const its = root_of(s, other).mirror.data() + there.offset + range.offset;
    std::memcpy(out ? its : mine, out ? mine : its, range.bytes);
    root_of(s, buffer).dirty = root_of(s, other).dirty = true;
  });
}

// Copies from the host backend to the device and from the device to the host backend: each side gets the other's
// bytes.
void copy_across(Step& s) {
  const int to = pick_buffer(s), from = pick_buffer(s), stream = pick_stream(s);
  if (!s.world.device() || to < 0 || from < 0) return copy_peer(s);
  const Object dst = object_of(s, to), src = object_of(s, from);
  if (dst.root == src.root) return copy_peer(s);
  const Range source = draw_range(s.draw, std::min(src.bytes, dst.bytes), 30000);
  const uint64_t into = s.draw.below(dst.bytes - source.bytes + 1), out = s.draw.below(src.bytes - source.bytes + 1);
  s.world.order(s.draw, dst.root, stream), s.world.order(s.draw, src.root, stream);
  const auto copy = [&](size_t target, size_t origin) {
    s.world.check(target, "tuff_copy_peer from the other backend",
                  tuff_copy_peer(s.world.handle(target, stream), s.world.handle(target, to), into,
                                 s.world.handle(origin, stream), s.world.handle(origin, from), out, source.bytes));
  };
  copy(0, 1), copy(1, 0);
  std::memcpy(root_of(s, to).mirror.data() + dst.offset + into, root_of(s, from).mirror.data() + src.offset + out,
              source.bytes);
  root_of(s, to).dirty = true;
}

void fill(Step& s) {
  const int buffer = pick_buffer(s), stream = pick_stream(s);
  if (buffer < 0) return;
  const Object object = object_of(s, buffer);
  const uint64_t pattern = uint64_t{1} << s.draw.below(5);
  if (object.offset % pattern != 0 && s.draw.one_in(2)) return;
  Range range = draw_range(s.draw, object.bytes / pattern, 3000);
  range.offset *= pattern, range.bytes *= pattern;
  s.world.order(s.draw, object.root, stream);
  for (uint64_t i = 0; i < pattern; ++i) s.world.scratch(0)[i] = static_cast<uint8_t>(s.draw.next());
  if (s.world.device()) std::memcpy(s.world.scratch(1), s.world.scratch(0), pattern);
  Call call(function_of("tuff_fill"));
  call.set("stream", reference(stream)), call.set("buffer", reference(buffer)), call.set("offset", range.offset);
  call.set("bytes", range.bytes), call.set("pattern", kScratch), call.set("pattern_bytes", pattern);
  s.run(call, {}, [&](const std::array<Outcome, 2>&) {
    Root& root = root_of(s, buffer);
    for (uint64_t i = 0; i < range.bytes; ++i)
      root.mirror[object.offset + range.offset + i] = s.world.scratch(0)[i % pattern];
    root.dirty = true;
  });
}

// Maps a buffer, reads and writes it, and unmaps it. Calls on the mapped buffer must be rejected.
void map(Step& s) {
  const int buffer = pick_buffer(s);
  if (buffer < 0) return;
  const Object object = object_of(s, buffer);
  const bool visible = root_of(s, buffer).visible;
  Call call(function_of("tuff_map"));
  call.set("buffer", reference(buffer));
  Expected expected;
  if (!visible || root_of(s, buffer).bytes == 0) {
    expected = {Answer::refusal, bit_of(TUFF_ERROR_INVALID_ARGUMENT), "buffer"}, s.spoil = false;
  }
  s.run(call, expected, [&](const std::array<Outcome, 2>& outcomes) {
    Root& root = root_of(s, buffer);
    uint8_t* const mirror = root.mirror.data() + object.offset;
    for (size_t side = 0; side < s.world.sides() && object.bytes != 0; ++side) {
      if (std::memcmp(reinterpret_cast<const void*>(outcomes[side].out[1]), mirror, object.bytes) != 0) {
        s.world.fail("tuff_map: side " + std::to_string(side) + ": the memory is not what the buffer holds");
      }
    }
    if (object.bytes != 0) {
      const uint64_t at = s.draw.below(object.bytes);
      mirror[at] = static_cast<uint8_t>(s.draw.next());
      for (size_t side = 0; side < s.world.sides(); ++side)
        reinterpret_cast<uint8_t*>(outcomes[side].out[1])[at] = mirror[at];
    }
    const uint64_t wrong = s.draw.below(4);
    Call meanwhile(function_of(wrong == 0   ? "tuff_map"
                               : wrong == 1 ? "tuff_copy_htod"
                               : wrong == 2 ? "tuff_fill"
                                            : "tuff_unary"));
    meanwhile.set("stream", reference(0)), meanwhile.set("buffer", reference(buffer)),
        meanwhile.set("dst", reference(buffer));
    meanwhile.set("src", kScratch), meanwhile.set("bytes", uint64_t{1}), meanwhile.set("pattern", kScratch);
    meanwhile.set("pattern_bytes", uint64_t{1}), meanwhile.set("input", reference(buffer)),
        meanwhile.set("output", reference(buffer));
    meanwhile.set("dtype", uint64_t{TUFF_F32}), meanwhile.set("op", uint64_t{TUFF_UNARY_NEG}),
        meanwhile.set("n", uint64_t{1});
    if (object.bytes >= 4) s.world.call(meanwhile, {Answer::refusal, bit_of(TUFF_ERROR_INVALID_ARGUMENT), ""});
    Call unmap(function_of("tuff_unmap"));
    unmap.set("buffer", reference(buffer));
    s.world.call(unmap, {});
    root.dirty = true;
  });
}

void unmap(Step& s) {  // of a buffer that is not mapped
  const int buffer = pick_buffer(s);
  if (buffer < 0) return;
  Call call(function_of("tuff_unmap"));
  call.set("buffer", reference(buffer));
  s.spoil = false;
  s.run(call, {Answer::refusal, bit_of(TUFF_ERROR_INVALID_ARGUMENT), "buffer"});
}

// Copies between pinned memory and another buffer, with an event that reports completion.
void copy_async(Step& s) {
  const bool down = s.draw.one_in(2);
  const int pinned = s.world.alloc(s.draw.between(1, 5000), TUFF_ALLOC_HOST_PINNED, 0), buffer = pick_buffer(s),
            stream = pick_stream(s);
  if (buffer < 0 || buffer == pinned) return;
  Root& memory = root_of(s, pinned);
  s.world.each("tuff_map", [&](size_t side) { return tuff_map(s.world.handle(side, pinned), &memory.memory[side]); });
  memory.mapped = true;
  const Object object = object_of(s, buffer);
  const Range range = draw_range(s.draw, std::min(object.bytes, memory.bytes), 5000);
  const uint64_t at = s.draw.below(object.bytes - range.bytes + 1);
  s.world.order(s.draw, object.root, stream);
  for (size_t side = 0; side < s.world.sides(); ++side) {
    Draw same(range.bytes);
    for (uint64_t i = 0; i < memory.bytes; ++i)
      static_cast<uint8_t*>(memory.memory[side])[i] = static_cast<uint8_t>(same.next());
  }
  std::memcpy(memory.mirror.data(), memory.memory[0], memory.bytes);
  Call call(function_of(down ? "tuff_copy_dtoh_async" : "tuff_copy_htod_async"));
  call.set("stream", reference(stream)), call.set(down ? "src" : "dst", reference(buffer));
  call.set(down ? "src_offset" : "dst_offset", at), call.set("bytes", range.bytes);
  call.set(down ? "dst" : "src", kMapped | static_cast<uint64_t>(pinned) << 24 | range.offset);
  s.run(call, {}, [&](const std::array<Outcome, 2>&) {
    Root& target = root_of(s, buffer);
    uint8_t* const there = target.mirror.data() + object.offset + at;
    if (!down) {
      std::memcpy(there, memory.mirror.data() + range.offset, range.bytes);
      target.dirty = true;
    } else {
      std::memcpy(memory.mirror.data() + range.offset, there, range.bytes);
    }
  });
  s.world.synchronize(stream);
  for (size_t side = 0; side < s.world.sides(); ++side) {
    if (std::memcmp(memory.memory[side], memory.mirror.data(), memory.bytes) != 0 && !s.spoil) {
      s.world.fail(call.text() + "\n  side " + std::to_string(side) + ": pinned memory is not what was copied");
    }
  }
  std::memcpy(memory.mirror.data(), memory.memory[0], memory.bytes);
  s.world.each("tuff_unmap", [&](size_t side) { return tuff_unmap(s.world.handle(side, pinned)); });
  memory.mapped = false;
  s.world.free(pinned);
}

void import_host(Step& s) {
  constexpr uint64_t kPage = 4096;
  std::array<void*, 2> pages{};
  for (size_t side = 0; side < s.world.sides(); ++side) {
    pages[side] = std::aligned_alloc(65536, 65536);
    std::memset(pages[side], 3, kPage);
  }
  const uint64_t bytes = s.draw.one_in(4) ? s.draw.below(kPage) : kPage,
                 shift = s.draw.one_in(4) ? s.draw.between(1, 63) : 0;
  const bool right = bytes == kPage && shift == 0;
  for (size_t side = 0; side < s.world.sides(); ++side) {
    Call call(function_of("tuff_buffer_import_host"));
    call.set("context", reference(0)), call.set("memory", reinterpret_cast<uint64_t>(pages[side]) + shift),
        call.set("bytes", bytes);
    const Outcome outcome = s.world.call_on(side, call);
    // A device may require a larger alignment than the host backend, up to 65536.
    if (!right && outcome.status != TUFF_ERROR_INVALID_ARGUMENT && outcome.status != TUFF_ERROR_UNSUPPORTED &&
        bytes != 0) {
      s.world.fail(call.text() + "\n  memory that no page begins with was taken: " + tuff_status_name(outcome.status));
    }
    if (outcome.status != TUFF_OK) continue;
    const uint64_t buffer = outcome.out[3], context = s.world.handle(side, 0);
    if (bytes == kPage) {
      s.world.check(side, "tuff_fill of imported memory", tuff_fill(context, buffer, 16, 32, "abcd", 4));
      s.world.check(side, "tuff_synchronize", tuff_synchronize(context));
      const auto* const got = static_cast<const uint8_t*>(pages[side]);
      for (uint64_t i = 0; i < kPage; ++i) {
        const uint8_t wanted = i >= 16 && i < 48 ? static_cast<uint8_t>("abcd"[i % 4]) : 3;
        if (got[i] != wanted)
          s.world.fail("imported memory: byte " + std::to_string(i) + " is " + std::to_string(got[i]));
      }
    }
    s.world.check(side, "tuff_free of imported memory", tuff_free(buffer));
    s.world.check(side, "tuff_synchronize", tuff_synchronize(context));
  }
  for (void* const page : pages) std::free(page);
}

void memory_fd(Step& s) {
  const int buffer = pick_buffer(s);
  if (buffer < 0) return;
  Call call(function_of("tuff_buffer_export_fd"));
  call.set("buffer", reference(buffer));
  // No memory here was allocated for export, and the host backend cannot export any.
  for (size_t side = 0; side < s.world.sides(); ++side) {
    const Outcome outcome = s.world.call_on(side, call);
    if (outcome.status != (side == 0 ? TUFF_ERROR_UNSUPPORTED : TUFF_ERROR_INVALID_ARGUMENT)) {
      s.world.fail(call.text() + "\n  " + tuff_status_name(outcome.status) + " " + outcome.message);
    }
  }
  Call import(function_of("tuff_buffer_import_fd"));
  import.set("context", reference(0));
  import.set("fd", static_cast<uint64_t>(s.draw.of<int64_t>({-1, 0, 999, -100})));
  import.set("memory_bytes", s.draw.below(5000)), import.set("bytes", s.draw.below(5000)),
      import.set("offset", s.draw.below(5000));
  for (size_t side = 0; side < s.world.sides(); ++side) {
    const Outcome outcome = s.world.call_on(side, import);
    if (outcome.status != TUFF_ERROR_UNSUPPORTED && (side == 0 || outcome.status != TUFF_ERROR_INVALID_ARGUMENT)) {
      s.world.fail(import.text() + "\n  " + tuff_status_name(outcome.status) + " " + outcome.message);
    }
  }
}

constexpr StepOf kMemorySteps[] = {
    {"tuff_alloc", alloc},
    {"tuff_alloc_ex", alloc},
    {"tuff_view", view},
    {"tuff_view", view},
    {"tuff_free", free_buffer},
    {"tuff_free", free_buffer},
    {"tuff_buffer_size", buffer_size},
    {"tuff_copy_htod", copy_htod},
    {"tuff_copy_dtoh", copy_dtoh},
    {"tuff_copy_dtod", copy_dtod},
    {"tuff_copy_dtod", copy_dtod},
    {"tuff_copy_peer", copy_peer},
    {"tuff_copy_peer", copy_across},
    {"tuff_fill", fill},
    {"tuff_fill", fill},
    {"tuff_map", map},
    {"tuff_unmap", unmap},
    {"tuff_copy_htod_async", copy_async},
    {"tuff_copy_dtoh_async", copy_async},
    {"tuff_buffer_import_host", import_host},
    {"tuff_buffer_export_fd", memory_fd},
    {"tuff_buffer_import_fd", memory_fd},
};

}  // namespace

std::span<const StepOf> memory_steps() { return kMemorySteps; }

void compare_all(World& world) {
  for (size_t i = 0; i < world.roots.size(); ++i) {
    Root& root = world.roots[i];
    if (root.object < 0 || root.mapped) continue;
    const std::vector<uint8_t> any(root.bytes, 1);
    world.compare_host(static_cast<int>(i), &any, true);
    world.compare_device(static_cast<int>(i));
  }
}

void Step::run(Call& call, Expected expected, const Done& done) {
  const bool spoiled = spoil && expected.answer == Answer::success && spoil_call(world, call, draw, expected);
  std::array<Outcome, 2> outcomes;
  if (!world.call(call, expected, &outcomes)) return;
  if (!spoiled || expected.answer == Answer::success) {
    if (done) done(outcomes);
    return;
  }
  // The spoiled call was valid after all: free whatever it created, and let the memory comparison check what it did.
  const auto arguments = call.function().arguments;
  for (size_t a = 0; a < arguments.size(); ++a) {
    if (arguments[a].way != Way::out || std::strcmp(arguments[a].name, "pointer") == 0) continue;
    const std::string_view name = call.function().name;
    for (size_t side = 0; side < world.sides(); ++side) {
      const uint64_t out = outcomes[side].out[a];
      if (name == "tuff_alloc" || name == "tuff_alloc_ex" || name == "tuff_view")
        world.check(side, "tuff_free", tuff_free(out));
      if (name == "tuff_stream_create") world.check(side, "tuff_stream_destroy", tuff_stream_destroy(out));
      if (name == "tuff_event_create") world.check(side, "tuff_event_destroy", tuff_event_destroy(out));
    }
  }
  world.synchronize(0);
  compare_all(world);
}

}  // namespace tuff_fuzz
