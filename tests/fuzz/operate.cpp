// Runs an operation from its description to its results: places the operands in memory, fills them where the existing
// contents are unsuitable, and compares the results.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "fuzz/numbers.hpp"
#include "fuzz/operands.hpp"
#include "fuzz/world.hpp"

namespace tuff_fuzz {
namespace {

bool overlap(const Operand& a, const Operand& b) {
  return a.root == b.root && a.offset < b.offset + bytes_of(b) && b.offset < a.offset + bytes_of(a);
}

bool fits(const Draft& draft, const Operand& operand, uint64_t offset) {
  Operand moved = operand;
  moved.offset = offset;
  for (const Operand& other : draft.operands) {
    if (&other != &operand && other.root >= 0 && (other.written || operand.written) && overlap(moved, other))
      return false;
  }
  return true;
}

// Chooses a place for the operand. Returns false if there is no room.
bool place(World& world, Draft& draft, Operand& operand) {
  Draw& draw = draft.free;
  const uint64_t bytes = bytes_of(operand), unit = size_of(operand.dtype);
  for (int attempt = 0; attempt < 24; ++attempt) {
    const int index = static_cast<int>(draw.below(world.roots.size()));
    const Root& root = world.roots[static_cast<size_t>(index)];
    if (root.context != 0 || root.object < 0 || root.mapped || root.end - root.begin < bytes) continue;
    // Starts at a multiple of the element size.
    const uint64_t first = (root.begin + unit - 1) / unit;
    if (first * unit + bytes > root.end) continue;
    const uint64_t places = (root.end - bytes) / unit - first + 1;
    uint64_t at = draw.one_in(6) ? 0 : draw.below(places);
    if (draw.one_in(3)) at = std::min(places - 1, at / 4 * 4);
    if (draw.one_in(8)) at = places - 1;  // ends at the end of the memory
    operand.root = index;
    if (!fits(draft, operand, (first + at) * unit)) {
      operand.root = -1;
      continue;
    }
    operand.offset = (first + at) * unit;
    return true;
  }
  return false;
}

// Chooses a handle for it: the memory's own handle, if the operand begins there, or a new view.
void show(World& world, Draft& draft, Operand& operand, uint64_t bytes) {
  const Root& root = world.roots[static_cast<size_t>(operand.root)];
  Draw& draw = draft.free;
  if (operand.offset == root.begin && bytes == bytes_of(operand) && draw.one_in(2)) {
    operand.object = root.object, operand.bytes = root.end - root.begin;
    return;
  }
  uint64_t slack = 0;
  if (bytes == bytes_of(operand) && draw.one_in(3))
    slack = draw.below(std::min<uint64_t>(root.end - operand.offset - bytes, 40) + 1);
  operand.object = world.view(root.object, operand.offset, bytes + slack);
  operand.bytes = bytes + slack;
}

bool place_all(World& world, Draft& draft) {
  for (size_t i = 0; i < draft.operands.size(); ++i) {
    Operand& operand = draft.operands[i];
    if (operand.elements == 0 || operand.same >= 0) continue;
    if (!place(world, draft, operand)) return false;
  }
  for (Operand& operand : draft.operands) {
    if (operand.same < 0 || operand.elements == 0) continue;
    const Operand& other = draft.operands[static_cast<size_t>(operand.same)];
    if (other.root < 0 || !fits(draft, other, other.offset)) operand.same = -1;
    // In-place is only possible if no third operand overlaps the shared place.
    for (const Operand& third : draft.operands) {
      if (&third != &other && &third != &operand && third.root >= 0 && other.root >= 0 && overlap(third, other))
        operand.same = -1;
    }
    if (operand.same < 0) {
      if (!place(world, draft, operand)) return false;
    } else {
      operand.root = other.root, operand.offset = other.offset;
    }
  }
  return true;
}

void scan(const World& world, Operand& operand) {
  look(operand, world.roots[static_cast<size_t>(operand.root)].mirror.data() + operand.offset);
}

bool suitable(const Operand& operand) {
  switch (operand.fill) {
    case Fill::anything: return true;
    case Fill::integers: return operand.seen.integral && operand.seen.most <= 2 * operand.most;
    case Fill::positive: return operand.seen.integral && operand.seen.most <= 2 * operand.most && operand.seen.positive;
    default: return false;
  }
}

// Fills by a copy from the host or by a pattern.
void fill(World& world, Operand& operand, Draw& draw, int stream) {
  Root& root = world.roots[static_cast<size_t>(operand.root)];
  const uint64_t unit = size_of(operand.dtype), bytes = bytes_of(operand);
  uint8_t* const to = root.mirror.data() + operand.offset;
  uint64_t pattern = 16;
  while ((operand.offset - root.begin) % pattern != 0 || bytes % pattern != 0) pattern /= 2;
  const bool bits = operand.fill == Fill::anything || operand.fill == Fill::odd || operand.fill == Fill::offsets;
  const bool repeated = !bits && pattern >= unit && draw.one_in(3);
  const uint64_t count = repeated ? pattern / unit : operand.elements;
  if (!fill_bits(operand, draw, to)) {
    for (uint64_t i = 0; i < count; ++i) encode(operand.dtype, draw_value(operand, draw), to + i * unit);
  }
  if (!repeated) {
    world.write(operand.root, operand.offset, bytes, stream);
    return;
  }
  for (uint64_t at = pattern; at < bytes; at += pattern) std::memcpy(to + at, to, pattern);
  world.each("tuff_fill", [&](size_t s) {
    return tuff_fill(world.handle(s, stream), world.handle(s, root.object), operand.offset - root.begin, bytes, to,
                     pattern);
  });
}

// True if the results contain neither zeros nor NaNs, whose signs and payloads may differ. The bits can then be
// compared later, together with everything else.
bool plain(const World& world, const Operand& operand) {
  if (operand.moved) return true;
  if (operand.allowed) return false;
  const uint64_t unit = size_of(operand.dtype);
  if (part_of(operand.dtype) != operand.dtype) return false;
  if (spacing(operand.dtype, 1) == 0) return true;
  const uint8_t* const from = world.roots[static_cast<size_t>(operand.root)].mirror.data() + operand.offset;
  for (uint64_t i = 0; i < operand.elements; ++i) {
    const double value = decode(operand.dtype, from + i * unit);
    if (value == 0 || std::isnan(value)) return false;
  }
  return true;
}

}  // namespace

// Compares the device's results with the host backend's, then writes the host's bits to the device.
void judge_device(World& world, const Draft& draft, bool judged, int stream) {
  for (const Operand& operand : draft.operands) {
    if (!operand.written || operand.elements == 0) continue;
    Root& root = world.roots[static_cast<size_t>(operand.root)];
    if (root.object < 0 || operand.offset < root.begin || operand.offset + bytes_of(operand) > root.end) continue;
    static thread_local std::vector<uint8_t> bytes, written;
    world.read(1, operand.root, bytes);
    written.assign(root.bytes, 0);
    mark(operand, written.data() + operand.offset);
    const uint64_t unit = size_of(operand.dtype);
    bool same = true;
    for (uint64_t i = 0; i < operand.elements; ++i) {
      const uint64_t at = operand.offset + i * unit;
      const uint8_t *const host = root.mirror.data() + at, *const got = bytes.data() + at - root.begin;
      if (std::memcmp(host, got, unit) == 0) continue;
      same = false;
      if (written[at] == 0) {
        world.fail(draft.call.text() + "\n  vulkan: element " + std::to_string(i) + " of " + operand.name +
                   " was not to be written");
      }
      if (judged && !alike(operand, i, host, got)) {
        const double y = decode(operand.dtype, host);
        char text[200];
        std::snprintf(text, sizeof text, "vulkan: element %llu of %s is %.17g, host %.17g; allowed %g",
                      static_cast<unsigned long long>(i), operand.name, decode(operand.dtype, got), y,
                      operand.allowed ? operand.allowed(i, y) : 0.0);
        world.fail(draft.call.text() + "\n  " + text);
      }
    }
    if (!same) world.write(operand.root, operand.offset, bytes_of(operand), stream);
  }
}

// Called after both backends carried out a call: copies the host backend's results to the mirror.
void take_host(World& world, const Draft& draft, bool anywhere) {
  static thread_local std::vector<uint8_t> written;
  for (const Operand& operand : draft.operands) {
    if (!operand.written || operand.root < 0) continue;
    const Root& root = world.roots[static_cast<size_t>(operand.root)];
    written.assign(root.bytes, 0);
    for (const Operand& other : draft.operands) {
      if (!other.written || other.root != operand.root) continue;
      if (anywhere)
        std::memset(written.data() + other.offset, 1, other.bytes);
      else if (other.elements != 0)
        mark(other, written.data() + other.offset);
    }
    world.compare_host(operand.root, &written, true);
  }
}

namespace {

// One call of an operation, from its operands to the freeing of its views.
class Operation {
 public:
  Operation(World& world, const Description& description, Draw shape, Draw rest)
      : world_(world),
        shared_(std::make_shared<Draft>(function_of(description.function), shape, rest)),
        draft_(*shared_),
        draw_(draft_.free) {
    description.draw(draft_);
  }

  bool place() { return place_all(world_, draft_); }

  void run(bool spoil) {
    const int other = world_.pick(draw_, Type::stream);
    if (other >= 0 && draw_.one_in(2)) stream_ = other;
    const bool captured = world_.capturing >= 0;
    if (captured) stream_ = world_.capturing, spoil = false;
    if (spoil) spoil_operands();
    show_operands();
    if (!captured) fill_operands();
    const Expected expected = expect(spoil);
    if (expected.answer == Answer::alike) adopt_operands();
    captured ? capture() : compare(expected);
    free_views();
  }

 private:
  // Some of the time a view that is too small, or an output that starts inside another operand without being identical
  // to it: either must be rejected.
  void spoil_operands() {
    if (draw_.one_in(4)) {
      const auto i = static_cast<size_t>(draw_.below(draft_.operands.size()));
      if (draft_.operands[i].elements != 0 && draft_.operands[i].same < 0) cut_ = &draft_.operands[i];
      return;
    }
    if (!draw_.one_in(4)) return;
    for (size_t i = 0; i < draft_.operands.size() && !overlaps_; ++i) {
      Operand& output = draft_.operands[i];
      if (!output.written || output.elements == 0 || output.same >= 0) continue;
      const auto j = static_cast<size_t>(draw_.below(draft_.operands.size()));
      const Operand& under = draft_.operands[j];
      if (j == i || under.elements < 2 || under.same >= 0) continue;
      const Root& root = world_.roots[static_cast<size_t>(under.root)];
      const uint64_t unit = size_of(output.dtype), offset = (under.offset + bytes_of(under) - 1) / unit * unit;
      if (offset <= under.offset || offset < root.begin || offset + bytes_of(output) > root.end) continue;
      output.root = under.root, output.offset = offset, overlaps_ = true;
    }
  }

  // Views of all operands, which the call gets.
  void show_operands() {
    for (Operand& operand : draft_.operands) {
      if (operand.elements == 0) {
        operand.object = draw_.one_in(2) ? world_.pick(draw_, Type::buffer) : -1;
        if (operand.object >= 0 &&
            world_.roots[static_cast<size_t>(world_.objects[static_cast<size_t>(operand.object)].root)].mapped)
          operand.object = -1;
        continue;
      }
      if (operand.same >= 0) {
        const Operand& same = draft_.operands[static_cast<size_t>(operand.same)];
        operand.object = same.object, operand.bytes = same.bytes;
        if (operand.object >= 0) continue;
      }
      show(world_, draft_, operand,
           &operand == cut_ ? bytes_of(operand) - draw_.between(1, std::min<uint64_t>(bytes_of(operand), 9))
                            : bytes_of(operand));
    }
    for (const Operand& operand : draft_.operands) {
      const int place = draft_.call.find(operand.name);
      draft_.call.slot(static_cast<size_t>(place)).set = true;
      draft_.call.put(static_cast<size_t>(place), operand.index,
                      operand.object < 0 ? 0 : static_cast<uint64_t>(operand.object) + 1);
    }
    draft_.call.set("stream", static_cast<uint64_t>(stream_) + 1);
  }

  // Inputs get numbers that suit the operation, most of the time.
  void fill_operands() {
    for (Operand& operand : draft_.operands) {
      if (operand.elements != 0) world_.order(draw_, operand.root, stream_);
    }
    for (Operand& operand : draft_.operands) {
      if (!operand.read || operand.elements == 0) continue;
      scan(world_, operand);
      if (!suitable(operand) ? !draw_.one_in(30) : draw_.one_in(6)) fill(world_, operand, draw_, stream_);
    }
    for (Operand& operand : draft_.operands) {
      if (operand.read && operand.elements != 0) scan(world_, operand);
    }
  }

  Expected expect(bool spoil) {
    if (cut_ != nullptr) return {Answer::refusal, bit_of(TUFF_ERROR_INVALID_ARGUMENT), cut_->name};
    if (overlaps_) return {Answer::refusal, bit_of(TUFF_ERROR_INVALID_ARGUMENT), ""};
    Expected expected;
    if (spoil) spoil_call(world_, draft_.call, draw_, expected);
    return expected;
  }

  // Operands that had no elements in the valid call may have some in the spoiled one.
  void adopt_operands() {
    for (Operand& operand : draft_.operands) {
      if (operand.elements != 0 || operand.object < 0) continue;
      const Object& object = world_.objects[static_cast<size_t>(operand.object)];
      operand.root = object.root, operand.offset = object.offset, operand.bytes = object.bytes;
      world_.order(draw_, operand.root, stream_);
    }
  }

  void capture() {
    world_.capture.calls.push_back({shared_, {}, {}});
    for (Operand& operand : draft_.operands) {
      uint64_t view = 0;
      if (operand.object >= 0)
        world_.check(0, "tuff_view",
                     tuff_view(world_.handle(0, operand.object), 0,
                               world_.objects[static_cast<size_t>(operand.object)].bytes, &view));
      world_.capture.calls.back().handles.push_back(view);
      world_.capture.calls.back().origins.push_back(operand.root);
      if (operand.elements != 0) world_.capture.roots.push_back(operand.root);
    }
    for (size_t side = 0; side < world_.sides(); ++side) {
      const Outcome outcome = world_.call_on(side, draft_.call);
      if (outcome.status == TUFF_OK) continue;
      world_.fail(draft_.call.text() + (side == 0 ? "\n  host" : "\n  vulkan") +
                  ", captured: " + tuff_status_name(outcome.status) + " " + outcome.message);
    }
  }

  // Calls on both backends, and compares what they did.
  void compare(const Expected& expected) {
    const bool suits = !draft_.suits || draft_.suits();
    std::array<Outcome, 2> outcomes;
    const bool done = world_.call(draft_.call, expected, &outcomes);
    const bool known = expected.answer == Answer::success && outcomes[1].status == TUFF_OK;
    if (!done) return;
    take_host(world_, draft_, !known);
    bool later = known && suits;
    for (const Operand& operand : draft_.operands) {
      if (operand.written && operand.elements != 0) later = later && plain(world_, operand);
    }
    if (!suits || !known) ++world_.counts.unjudged;
    if (world_.device() && known && !later) judge_device(world_, draft_, suits, stream_);
    for (const Operand& operand : draft_.operands) {
      if (!operand.written || operand.root < 0) continue;
      // The numbers are not the valid call's, so only the host's result says what was computed.
      if (!known && world_.device()) world_.write(operand.root, operand.offset, operand.bytes, stream_);
      world_.roots[static_cast<size_t>(operand.root)].dirty = true;
    }
  }

  // Views are freed at once, while the device still uses them, or later.
  void free_views() {
    for (const Operand& operand : draft_.operands) {
      if (operand.object < 0 || operand.root < 0 || !world_.objects[static_cast<size_t>(operand.object)].live) continue;
      if (operand.object != world_.roots[static_cast<size_t>(operand.root)].object && !draw_.one_in(6))
        world_.free(operand.object);
    }
  }

  World& world_;
  const std::shared_ptr<Draft> shared_;
  Draft& draft_;
  Draw& draw_;
  int stream_ = 0;
  const Operand* cut_ = nullptr;  // its view is too small
  bool overlaps_ = false;
};

}  // namespace

void operate(World& world, const Description& description, Draw shape, Draw rest, bool spoil) {
  Operation operation(world, description, shape, rest);
  if (operation.place()) operation.run(spoil);
}

namespace {

std::vector<std::vector<uint8_t>> host_contents(World& world, const Graph& graph) {
  std::vector<std::vector<uint8_t>> contents(graph.roots.size());
  for (size_t i = 0; i < contents.size(); ++i) world.read(0, graph.roots[i], contents[i]);
  return contents;
}

// Launches the graph on the host from the same contents, after its calls were made one by one: the bits must be the
// same.
void launch_host_again(World& world, const Graph& graph, int object, int stream,
                       const std::vector<std::vector<uint8_t>>& before) {
  const std::vector<std::vector<uint8_t>> expected = host_contents(world, graph);
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i].empty()) continue;
    const uint64_t buffer = world.handle(0, world.roots[static_cast<size_t>(graph.roots[i])].object);
    world.check(0, "tuff_copy_htod", tuff_copy_htod(world.handle(0, 0), buffer, 0, before[i].data(), before[i].size()));
  }
  world.check(0, "tuff_graph_launch", tuff_graph_launch(world.handle(0, stream), world.handle(0, object)));
  if (host_contents(world, graph) == expected) return;
  std::string calls;
  for (const Captured& captured : graph.calls) calls += captured.draft->call.text() + "\n";
  world.fail(calls + "  host: a graph of these calls computes something else than the calls");
}

}  // namespace

// Runs the graph's calls one by one on the host, then launches the graph on both, and compares the results.
void launch(World& world, Draw& rest, int object) {
  Graph& graph = world.graphs[static_cast<size_t>(world.objects[static_cast<size_t>(object)].graph)];
  int stream = world.pick(rest, Type::stream);
  if (stream < 0 || stream == world.capturing || rest.one_in(2)) stream = 0;
  for (const int root : graph.roots) {
    const Root& memory = world.roots[static_cast<size_t>(root)];
    if (memory.mapped) return;
    // What the graph writes beside the only views that are left could not be read, but may be in one that comes later.
    if (memory.object >= 0 && (memory.begin != 0 || memory.end != memory.bytes)) return;
  }
  ++world.counts.launches;
  for (const int root : graph.roots) world.order(rest, root, stream);
  // Memory without a handle cannot be read, nor can results that depend on it be judged.
  bool exact = true;
  for (const int root : graph.roots) {
    const Root& memory = world.roots[static_cast<size_t>(root)];
    exact = exact && memory.object >= 0;
  }
  const std::vector<std::vector<uint8_t>> before =
      exact ? host_contents(world, graph) : std::vector<std::vector<uint8_t>>();
  size_t made = 0;
  for (const Captured& captured : graph.calls) {
    Draft& draft = *captured.draft;
    if (!exact) break;
    for (Operand& operand : draft.operands) {
      if (operand.read && operand.elements != 0) scan(world, operand);
    }
    if (draft.suits && !draft.suits()) exact = false;
    ++made;
    Call call = draft.call;
    for (size_t i = 0; i < draft.operands.size(); ++i) {
      const Operand& operand = draft.operands[i];
      call.put(static_cast<size_t>(call.find(operand.name)), operand.index,
               captured.handles[i] == 0 ? 0 : kForged | captured.handles[i]);
    }
    call.set("stream", uint64_t{1});
    const Outcome outcome = world.call_on(0, call);
    if (outcome.status != TUFF_OK) world.fail(call.text() + "\n  host, of a graph: " + outcome.message);
    take_host(world, draft, false);
    for (const Operand& operand : draft.operands) {
      if (operand.written && operand.elements != 0) exact = exact && plain(world, operand);
    }
  }
  if (!before.empty() && made == graph.calls.size()) {
    launch_host_again(world, graph, object, stream, before);
  } else {
    world.check(0, "tuff_graph_launch", tuff_graph_launch(world.handle(0, stream), world.handle(0, object)));
  }
  if (world.device()) {
    world.check(1, "tuff_graph_launch", tuff_graph_launch(world.handle(1, stream), world.handle(1, object)));
  }
  for (const int root : graph.roots) {
    Root& memory = world.roots[static_cast<size_t>(root)];
    if (memory.object < 0) continue;
    if (exact) {
      memory.dirty = true;
    } else {
      // Some results need not be bit-identical on both backends.
      ++world.counts.unjudged;
      std::vector<uint8_t> bytes;
      world.read(0, root, bytes);
      std::memcpy(memory.mirror.data() + memory.begin, bytes.data(), bytes.size());
      world.write(root, memory.begin, bytes.size(), stream);
      memory.dirty = true;
    }
  }
}

}  // namespace tuff_fuzz
