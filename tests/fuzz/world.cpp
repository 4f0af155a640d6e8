#include "fuzz/world.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace tuff_fuzz {
namespace {

std::string last_message() {
  char text[2048];
  uint64_t length = 0;
  return tuff_last_error(text, sizeof text, &length) == TUFF_OK ? text : "(tuff_last_error failed)";
}

bool has_word(const std::string& text, const std::string& word) {
  const auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !part(text[at - 1])) && (end == text.size() || !part(text[end]))) return true;
  }
  return false;
}

}  // namespace

uint64_t World::Side::handle(uint64_t reference) const {
  if (reference == 0) return TUFF_NULL_HANDLE;
  if ((reference & kForged) != 0) return reference == ~uint64_t{0} ? reference : reference & ~kForged;
  return handles[reference - 1];
}

uint64_t World::Side::memory(uint64_t reference) const {
  if ((reference & kScratch) != 0) return reinterpret_cast<uint64_t>(scratch.data()) + (reference & ~kScratch);
  if ((reference & kMapped) != 0) {
    const Object& object = world->objects[(reference & ~kMapped) >> 24];
    const Root& root = world->roots[static_cast<size_t>(object.root)];
    return reinterpret_cast<uint64_t>(root.memory[index]) + (reference & 0xffffff);
  }
  return reference;
}

World::World(bool device) {
  sides_.resize(device ? 2 : 1);
  for (size_t s = 0; s < sides_.size(); ++s) {
    Side& side = sides_[s];
    side.world = this, side.index = s, side.backend = s == 0 ? "host" : "vulkan";
    side.scratch.resize(kScratchBytes + 64);
    for (uint64_t& context : side.contexts) {
      tuff_context_desc desc{};
      desc.struct_size = sizeof desc, desc.backend = side.backend;
      check(s, "tuff_context_create", tuff_context_create(&desc, &context));
    }
  }
  ask_types();
}

void World::ask_types() {
  for (const char* type : {"f16", "bf16", "f64", "i8"}) {
    int32_t yes = 0;
    if (device()) check(1, "tuff_supports", tuff_supports(sides_[1].contexts[0], type, &yes));
    lacks_types_ = lacks_types_ || (device() && yes == 0);
  }
}

World::~World() {
  for (Side& side : sides_) {
    for (const uint64_t context : side.contexts) tuff_context_destroy(context);
  }
}

uint64_t World::pipelines() const {
  tuff_stats stats{};
  stats.struct_size = sizeof stats;
  return device() && tuff_context_stats(sides_[1].contexts[0], &stats) == TUFF_OK ? stats.pipelines_created : 0;
}

void World::fail(const std::string& text) const { throw Failure{current_ + "\n  " + text}; }

void World::check(size_t side, const char* what, tuff_status status) {
  ++counts.calls;
  if (status == TUFF_OK) return;
  fail(std::string(what) + " on " + sides_[side].backend + " gave " + tuff_status_name(status) + ": " + last_message());
}

Outcome World::call_on(size_t side, const Call& call) {
  ++counts.calls;
  if (verbose) {  // printed before the call, which may be the last
    std::fprintf(stderr, "  %s: %s\n", sides_[side].backend, call.text().c_str());
    std::fflush(stderr);
  }
  Outcome outcome = call.invoke(sides_[side]);
  if (verbose && outcome.status != TUFF_OK) std::fprintf(stderr, "    %s\n", outcome.message.c_str());
  if (outcome.status == TUFF_OK) return outcome;
  const auto complain = [&](const char* what) {
    fail(std::string(sides_[side].backend) + ": " + what + " " + tuff_status_name(outcome.status) + ": " +
         outcome.message);
  };
  if (outcome.touched) complain("a call that failed has written its results:");
  if (outcome.message.rfind(std::string(call.function().name) + ": ", 0) != 0)
    complain("the message does not name the function:");
  if (outcome.status == TUFF_ERROR_INTERNAL || outcome.status == TUFF_ERROR_DEVICE_LOST ||
      outcome.status == TUFF_ERROR_TIMEOUT || outcome.status > 0 || outcome.status < TUFF_ERROR_INTERNAL) {
    complain("no caller can be the cause of");
  }
  return outcome;
}

bool World::call(const Call& call, const Expected& expected, std::array<Outcome, 2>* outcomes) {
  std::array<Outcome, 2> answers;
  current_ = "";
  const auto told = [&](size_t s) {
    const Outcome& outcome = answers[s];
    return std::string("\n  ") + sides_[s].backend + ": " + tuff_status_name(outcome.status) + " " + outcome.message;
  };
  const auto complain = [&](const std::string& what) {
    std::string text = what;
    for (size_t s = 0; s < sides_.size(); ++s) text += told(s);
    fail(text);
  };
  try {
    for (size_t s = 0; s < sides_.size(); ++s) {
      if (expected.answer == Answer::device_success && s == 0) {
        answers[0] = call_on(0, call);
        continue;
      }
      answers[s] = call_on(s, call);
    }
    const tuff_status first = answers[0].status;
    for (size_t s = 0; s < sides_.size(); ++s) {
      const tuff_status status = answers[s].status;
      if (status != TUFF_OK) ++counts.refusals;
      switch (expected.answer) {
        case Answer::success:
          if (status != TUFF_OK && !(status == TUFF_ERROR_UNSUPPORTED && s == 1 && lacks_types_)) {
            complain("a call that is right was refused");
          }
          break;
        case Answer::refusal:
          if (status == TUFF_OK) complain("a call that is wrong was accepted (" + expected.word + ")");
          if ((expected.statuses & bit_of(status)) == 0) complain("refused with another status than has to be");
          if (!expected.word.empty() && !has_word(answers[s].message, expected.word)) {
            complain("the message does not name " + expected.word);
          }
          if (status != first) complain("backends refuse with different statuses");
          break;
        case Answer::alike:
          if (status != first && !(expected.device_may_lack && first == TUFF_OK &&
                                   (status == TUFF_ERROR_UNSUPPORTED || status == TUFF_ERROR_LIMIT_EXCEEDED))) {
            complain("backends answer differently");
          }
          break;
        case Answer::device_success:
          if (s == 0 && status != TUFF_ERROR_UNSUPPORTED)
            complain("the host backend cannot do this, and says otherwise");
          if (s == 1 && status != TUFF_OK) complain("a call that is right was refused");
          break;
      }
    }
  } catch (Failure& failure) {
    failure.text = call.text() + failure.text;
    throw;
  }
  const bool done = answers[device() && expected.answer == Answer::device_success ? 1 : 0].status == TUFF_OK;
  if (outcomes != nullptr) *outcomes = std::move(answers);
  return done;
}

int World::add(Object object, const std::array<uint64_t, 2>& handles) {
  objects.push_back(object);
  for (size_t s = 0; s < sides_.size(); ++s) sides_[s].handles.push_back(handles[s]);
  return static_cast<int>(objects.size() - 1);
}

int World::add(Object object, const std::array<Outcome, 2>& outcomes, size_t argument) {
  std::array<uint64_t, 2> handles{};
  for (size_t s = 0; s < sides_.size(); ++s) {
    if (outcomes[s].status != TUFF_OK) continue;
    handles[s] = outcomes[s].out[argument];
    for (const uint64_t other : sides_[s].handles) {
      if (other == handles[s]) fail("a handle came back for another object");
    }
  }
  return add(object, handles);
}

int World::pick(Draw& draw, Type type, int context) const {
  const size_t start = draw.below(std::max<size_t>(objects.size(), 1));
  for (size_t i = 0; i < objects.size(); ++i) {
    const size_t at = (start + i) % objects.size();
    const Object& object = objects[at];
    if (object.type == type && object.live && object.context == context) return static_cast<int>(at);
  }
  return -1;
}

int World::pick_stale(Draw& draw) const {
  const size_t start = draw.below(objects.size());
  for (size_t i = 0; i < objects.size(); ++i) {
    const size_t at = (start + i) % objects.size();
    if (!objects[at].live) return static_cast<int>(at);
  }
  return -1;
}

int World::alloc(uint64_t bytes, uint32_t flags, int context) {
  std::array<uint64_t, 2> handles{};
  each("tuff_alloc_ex", [&](size_t s) {
    tuff_alloc_desc desc{};
    desc.struct_size = sizeof desc, desc.bytes = bytes, desc.flags = flags;
    return tuff_alloc_ex(sides_[s].contexts[context], &desc, &handles[s]);
  });
  Root root{context, bytes, empty_mirror(bytes)};
  root.visible = flags != 0 && flags != TUFF_ALLOC_UNINITIALIZED && flags != TUFF_ALLOC_EXPORTABLE;
  root.pinned = (flags & TUFF_ALLOC_HOST_PINNED) != 0;
  root.end = bytes, root.dirty = true, root.stream = context;
  roots.push_back(std::move(root));
  Object object{Type::buffer, true, context};
  object.root = static_cast<int>(roots.size() - 1), object.bytes = bytes;
  const int index = add(object, handles);
  roots.back().object = index;
  if ((flags & TUFF_ALLOC_UNINITIALIZED) != 0 && bytes != 0) write(object.root, 0, bytes, context);
  return index;
}

int World::view(int object, uint64_t offset, uint64_t bytes) {
  const Object& whole = objects[static_cast<size_t>(object)];
  std::array<uint64_t, 2> handles{};
  each("tuff_view", [&](size_t s) { return tuff_view(handle(s, object), offset - whole.offset, bytes, &handles[s]); });
  Object part{Type::buffer, true, whole.context};
  part.root = whole.root, part.offset = offset, part.bytes = bytes;
  return add(part, handles);
}

void World::free(int object) {
  each("tuff_free", [&](size_t s) { return tuff_free(handle(s, object)); });
  forget(object);
}

void World::forget(int index) {
  Object& object = objects[static_cast<size_t>(index)];
  object.live = false;
  if (object.type != Type::buffer) return;
  Root& root = roots[static_cast<size_t>(object.root)];
  if (root.object != index) return;
  // From now on the largest remaining handle of that memory gives access to it.
  root.object = -1, root.begin = root.end = 0;
  for (size_t i = 0; i < objects.size(); ++i) {
    const Object& other = objects[i];
    if (!other.live || other.type != Type::buffer || other.root != object.root || other.bytes <= root.end - root.begin)
      continue;
    root.object = static_cast<int>(i), root.begin = other.offset, root.end = other.offset + other.bytes;
  }
}

void World::order(Draw& draw, int index, int stream) {
  Root& root = roots[static_cast<size_t>(index)];
  const int before = root.stream;
  root.stream = stream;
  if (before == stream || before < 0 || !objects[static_cast<size_t>(before)].live) {
    // A destroyed stream may still have work in flight, so wait for the whole context.
    if (before >= 0 && before != stream) synchronize(root.context);
    return;
  }
  if (before == capturing || stream == capturing) return;
  if (draw.one_in(2)) {
    synchronize(before);
    return;
  }
  std::array<uint64_t, 2> events{};
  each("tuff_event_create", [&](size_t s) {
    const tuff_event_desc desc{sizeof desc, TUFF_EVENT_NO_TIMING};
    return tuff_event_create(sides_[s].contexts[root.context], &desc, &events[s]);
  });
  each("tuff_event_record", [&](size_t s) { return tuff_event_record(handle(s, before), events[s]); });
  each("tuff_stream_wait_event", [&](size_t s) { return tuff_stream_wait_event(handle(s, stream), events[s]); });
  each("tuff_event_destroy", [&](size_t s) { return tuff_event_destroy(events[s]); });
}

void World::synchronize(int stream) {
  each("tuff_synchronize", [&](size_t s) -> tuff_status {
    if (capturing >= 0 && (stream == capturing || objects[static_cast<size_t>(stream)].type == Type::context))
      return TUFF_OK;
    return tuff_synchronize(handle(s, stream));
  });
}

void World::write(int index, uint64_t offset, uint64_t bytes, int stream) {
  const Root& root = roots[static_cast<size_t>(index)];
  if (bytes == 0) return;
  // Uses any handle that covers the range: the window may belong to another one, for example after the first was
  // freed.
  for (size_t i = 0; i < objects.size(); ++i) {
    const Object& object = objects[i];
    if (!object.live || object.type != Type::buffer || object.root != index) continue;
    if (offset < object.offset || offset + bytes > object.offset + object.bytes) continue;
    each("tuff_copy_htod", [&](size_t s) {
      return tuff_copy_htod(handle(s, stream), handle(s, static_cast<int>(i)), offset - object.offset,
                            root.mirror.data() + offset, bytes);
    });
    return;
  }
}

void World::read(size_t side, int index, std::vector<uint8_t>& bytes) {
  const Root& root = roots[static_cast<size_t>(index)];
  bytes.resize(root.end - root.begin);
  if (bytes.empty()) return;
  // Ordered behind the stream that last used the memory, unless that one is capturing.
  const bool gone = root.stream < 0 || !objects[static_cast<size_t>(root.stream)].live || root.stream == capturing;
  const uint64_t stream = handle(side, gone ? root.context : root.stream);
  check(side, "tuff_copy_dtoh", tuff_copy_dtoh(stream, bytes.data(), handle(side, root.object), 0, bytes.size()));
}

// Bytes must equal the mirror's, except those that may differ; with `adopt`, those are copied to the mirror.
void World::compare_host(int index, const std::vector<uint8_t>* may_differ, bool adopt) {
  Root& root = roots[static_cast<size_t>(index)];
  if (root.object < 0 || root.mapped) return;
  static thread_local std::vector<uint8_t> bytes;
  read(0, index, bytes);
  if (bytes.empty()) return;
  uint8_t* const mirror = root.mirror.data() + root.begin;
  if (std::memcmp(mirror, bytes.data(), bytes.size()) == 0) return;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (mirror[i] == bytes[i]) continue;
    if (may_differ == nullptr || (*may_differ)[root.begin + i] == 0) {
      fail("host: byte " + std::to_string(root.begin + i) + " of memory " + std::to_string(index) + " is " +
           std::to_string(bytes[i]) + ", not " + std::to_string(mirror[i]) + ": it was not to be written");
    }
    if (adopt) mirror[i] = bytes[i];
  }
}

void World::compare_device(int index) {
  Root& root = roots[static_cast<size_t>(index)];
  if (!device() || root.object < 0 || root.mapped) return;
  static thread_local std::vector<uint8_t> bytes;
  read(1, index, bytes);
  root.dirty = false;
  if (bytes.empty()) return;
  const uint8_t* const mirror = root.mirror.data() + root.begin;
  if (std::memcmp(mirror, bytes.data(), bytes.size()) == 0) return;
  size_t at = 0, count = 0;
  for (size_t i = bytes.size(); i-- > 0;) {
    if (mirror[i] != bytes[i]) at = i, ++count;
  }
  char text[256];
  std::snprintf(text, sizeof text,
                "vulkan: %zu bytes of memory %d differ, the first at %zu (window %llu to %llu): %02x%02x%02x%02x, host "
                "%02x%02x%02x%02x",
                count, index, root.begin + at, static_cast<unsigned long long>(root.begin),
                static_cast<unsigned long long>(root.end), bytes[at], at + 1 < bytes.size() ? bytes[at + 1] : 0,
                at + 2 < bytes.size() ? bytes[at + 2] : 0, at + 3 < bytes.size() ? bytes[at + 3] : 0, mirror[at],
                at + 1 < bytes.size() ? mirror[at + 1] : 0, at + 2 < bytes.size() ? mirror[at + 2] : 0,
                at + 3 < bytes.size() ? mirror[at + 3] : 0);
  fail(text);
}

void World::settle() {
  for (size_t i = 0; i < roots.size(); ++i) {
    if (!roots[i].dirty) continue;
    current_ = "at a comparison";
    compare_host(static_cast<int>(i));
    compare_device(static_cast<int>(i));
    roots[i].dirty = false;
    ++counts.compared;
  }
}

void World::begin(Draw& draw) {
  ++counts.programs;
  objects.clear(), roots.clear(), graphs.clear();
  for (Side& side : sides_) side.handles.clear();
  for (int context = 0; context < 2; ++context) {
    std::array<uint64_t, 2> handles{};
    for (size_t s = 0; s < sides_.size(); ++s) handles[s] = sides_[s].contexts[context];
    add({Type::context, true, context}, handles);
  }
  capturing = -1, capture = {};
  foreign = alloc(4096, 0, 1);
  const uint64_t count = draw.between(2, 4);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t bytes = i == 0 ? 65536 + draw.below(999) : draw.between(1, 3) * 8192 + draw.below(999);
    alloc(bytes, draw.of<uint32_t>({0, 0, TUFF_ALLOC_UNINITIALIZED, TUFF_ALLOC_HOST_VISIBLE, TUFF_ALLOC_HOST_PINNED}),
          0);
    Root& root = roots.back();
    // Small integers as f32, and their bytes for all other types.
    for (uint64_t at = 0; at + 4 <= bytes; at += 4) {
      const float value = static_cast<float>(static_cast<int>(draw.below(9)) - 4);
      std::memcpy(root.mirror.data() + at, &value, 4);
    }
    write(static_cast<int>(roots.size() - 1), 0, bytes, 0);
  }
}

void World::end() {
  current_ = "at the end of the program";
  if (capturing >= 0) {
    for (size_t s = 0; s < sides(); ++s) {
      uint64_t graph = 0;
      const tuff_status status = tuff_graph_end(handle(s, capturing), &graph);
      if (status == TUFF_OK) check(s, "tuff_graph_destroy", tuff_graph_destroy(graph));
    }
    for (const Captured& captured : capture.calls) {
      for (const uint64_t view : captured.handles) tuff_free(view);
    }
    capturing = -1, capture = {};
  }
  for (Root& root : roots) {
    if (!root.mapped) continue;
    each("tuff_unmap", [&](size_t s) { return tuff_unmap(handle(s, root.object)); });
    root.mapped = false;
  }
  for (Root& root : roots) root.dirty = root.dirty || root.object >= 0;
  settle();
  current_ = "at the end of the program";
  for (size_t i = 2; i < objects.size(); ++i) {
    Object& object = objects[i];
    if (!object.live) continue;
    each("the end of an object", [&](size_t s) -> tuff_status {
      const uint64_t it = handle(s, static_cast<int>(i));
      switch (object.type) {
        case Type::context: return tuff_context_destroy(it);
        case Type::buffer: return tuff_free(it);
        case Type::stream: return tuff_stream_destroy(it);
        case Type::kernel: return tuff_kernel_destroy(it);
        case Type::event: return tuff_event_destroy(it);
        case Type::graph: return tuff_graph_destroy(it);
        case Type::expr: return tuff_expr_destroy(it);
        case Type::op: return tuff_op_destroy(it);
      }
      return TUFF_OK;
    });
    object.live = false;
  }
  for (const Graph& graph : graphs) {
    for (const Captured& captured : graph.calls) {
      for (const uint64_t view : captured.handles) check(0, "tuff_free", tuff_free(view));
    }
  }
  for (int context = 0; context < 2; ++context) {
    each("tuff_context_stats", [&](size_t s) {
      tuff_stats stats{};
      stats.struct_size = sizeof stats;
      const tuff_status status = tuff_context_stats(sides_[s].contexts[context], &stats);
      if (status == TUFF_OK && stats.live_buffers != 0) {
        fail(std::string(sides_[s].backend) + ": " + std::to_string(stats.live_buffers) +
             " buffers live on when all were freed");
      }
      return status;
    });
  }
}

void World::abandon() {
  // After a failure the contexts are not reused: the next program gets new ones.
  for (Side& side : sides_) {
    for (uint64_t& context : side.contexts) {
      tuff_context_destroy(context);
      tuff_context_desc desc{};
      desc.struct_size = sizeof desc, desc.backend = side.backend;
      if (tuff_context_create(&desc, &context) != TUFF_OK) context = 0;
    }
  }
}

int pick_stream(Step& step) {
  const int object = step.draw.one_in(2) ? step.world.pick(step.draw, Type::stream) : 0;
  return object < 0 ? 0 : object;
}

Object& object_of(Step& step, int index) { return step.world.objects[static_cast<size_t>(index)]; }

}  // namespace tuff_fuzz
