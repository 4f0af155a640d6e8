// Streams, events, graphs and custom kernels.
#include <algorithm>
#include <cstring>

#include "fuzz/world.hpp"

namespace tuff_fuzz {
namespace {

uint64_t count_of(const World& world, Type type) {
  return static_cast<uint64_t>(std::count_if(world.objects.begin(), world.objects.end(),
                                             [&](const Object& o) { return o.live && o.type == type; }));
}
void stream_create(Step& s) {
  if (count_of(s.world, Type::stream) > 3) return;
  Call call(function_of("tuff_stream_create"));
  call.set("context", reference(0));
  if (s.draw.one_in(3)) call.null_argument = 1;
  if (s.draw.one_in(3)) call.set("name", reinterpret_cast<uint64_t>("a stream"));
  if (call.null_argument == 1) s.spoil = false;
  s.run(call, {}, [&](const std::array<Outcome, 2>& outcomes) { s.world.add({Type::stream, true, 0}, outcomes, 2); });
}

void stream_destroy(Step& s) {
  const int stream = s.draw.one_in(4) ? 0 : s.world.pick(s.draw, Type::stream);
  if (stream < 0) return;
  Call call(function_of("tuff_stream_destroy"));
  call.set("stream", reference(stream));
  if (stream == 0) {
    s.spoil = false;
    s.run(call, {Answer::refusal, bit_of(TUFF_ERROR_INVALID_ARGUMENT), "stream"});
    return;
  }
  s.run(call, {}, [&](const std::array<Outcome, 2>&) { s.world.forget(stream); });
}

void synchronize(Step& s) {
  Call call(function_of("tuff_synchronize"));
  call.set("stream", reference(pick_stream(s)));
  s.run(call, {});
}

void event_create(Step& s) {
  if (count_of(s.world, Type::event) > 5) return;
  Call call(function_of("tuff_event_create"));
  const bool timed = s.draw.one_in(2);
  call.set("context", reference(0));
  call.set("flags", uint64_t{timed ? 0u : 1u});
  s.run(call, {}, [&](const std::array<Outcome, 2>& outcomes) {
    Object event{Type::event, true, 0};
    event.timed = timed;
    s.world.add(event, outcomes, 2);
  });
}

void with_event(Step& s, const char* function, bool has_stream) {
  const int event = s.world.pick(s.draw, Type::event);
  if (event < 0) return event_create(s);
  Call call(function_of(function));
  if (has_stream) call.set("stream", reference(pick_stream(s)));
  call.set("event", reference(event));
  s.run(call, {}, [&](const std::array<Outcome, 2>& outcomes) {
    const std::string_view name = function;
    if (name == "tuff_event_destroy") s.world.forget(event);
    if (name == "tuff_event_record") object_of(s, event).recorded = true;
    if (name != "tuff_event_query") return;
    for (size_t side = 0; side < s.world.sides(); ++side) {
      const auto done = static_cast<int32_t>(outcomes[side].out[1]);
      if (done != 0 && done != 1) s.world.fail("tuff_event_query: *done is " + std::to_string(done));
      if (done == 0 && (side == 0 || !object_of(s, event).recorded))
        s.world.fail("tuff_event_query: not done, with nothing to wait for");
    }
  });
}

void event_elapsed(Step& s) {
  const int start = s.world.pick(s.draw, Type::event), end = s.world.pick(s.draw, Type::event);
  if (start < 0) return event_create(s);
  Call call(function_of("tuff_event_elapsed"));
  call.set("start", reference(start)), call.set("end", reference(end));
  const auto right = [&](int event) { return object_of(s, event).timed && object_of(s, event).recorded; };
  Expected expected;
  if (!right(start) || !right(end))
    expected = {Answer::refusal, bit_of(TUFF_ERROR_INVALID_ARGUMENT), right(start) ? "end" : "start"};
  if (!right(start) && !right(end)) expected.word = "";
  s.run(call, expected);
}

// Waits, and compares all memory.
void wait_all(Step& s) {
  s.world.synchronize(0);
  s.world.settle();
}

// ---- graphs ---------------------------------------------------------------------------------------------

void graph_begin(Step& s) {
  if (count_of(s.world, Type::graph) > 2) return;
  const int stream = pick_stream(s);
  Call call(function_of("tuff_graph_begin"));
  call.set("stream", reference(stream));
  s.spoil = false;
  s.run(call, {}, [&](const std::array<Outcome, 2>&) {
    s.world.capturing = stream;
    s.world.capture = {};
  });
}

void graph_end(Step& s) {  // of a stream that is not capturing
  Call call(function_of("tuff_graph_end"));
  call.set("stream", reference(pick_stream(s)));
  s.spoil = false;
  for (size_t side = 0; side < s.world.sides(); ++side) {
    const Outcome outcome = s.world.call_on(side, call);
    if (outcome.status != TUFF_ERROR_INVALID_ARGUMENT) {
      s.world.fail(call.text() + "\n  nothing was captured, and the answer is " + tuff_status_name(outcome.status));
    }
  }
}

void graph_launch(Step& s) {
  const int graph = s.world.pick(s.draw, Type::graph);
  if (graph < 0) return graph_begin(s);
  launch(s.world, s.draw, graph);
}

void graph_destroy(Step& s) {
  const int index = s.world.pick(s.draw, Type::graph);
  if (index < 0) return graph_begin(s);
  s.world.each("tuff_graph_destroy", [&](size_t side) { return tuff_graph_destroy(s.world.handle(side, index)); });
  Graph& graph = s.world.graphs[static_cast<size_t>(object_of(s, index).graph)];
  for (const Captured& captured : graph.calls) {
    for (const uint64_t view : captured.handles) s.world.check(0, "tuff_free", tuff_free(view));
  }
  graph = {};
  s.world.forget(index);
}

// Whether the operand is one of several handles behind a pointer.
bool is_list(const Function& function, std::string_view name) {
  return std::any_of(function.places.begin(), function.places.end(),
                     [&](const Place& place) { return place.name == name && place.pointer; });
}

// Binds new memory in place of captured memory, or binds the captured memory again.
void graph_bind(Step& s) {
  const int index = s.world.pick(s.draw, Type::graph);
  if (index < 0) return graph_begin(s);
  Graph& graph = s.world.graphs[static_cast<size_t>(object_of(s, index).graph)];
  const int buffer = s.world.pick(s.draw, Type::buffer);
  if (buffer < 0) return;
  const int old = object_of(s, buffer).root;
  const uint64_t bytes = s.world.roots[static_cast<size_t>(old)].bytes;
  if (s.world.roots[static_cast<size_t>(old)].object != buffer || object_of(s, buffer).bytes != bytes || bytes == 0)
    return;
  bool used = false, array = false, written = false;
  for (const Captured& captured : graph.calls) {
    for (size_t i = 0; i < captured.origins.size(); ++i) {
      const Operand& operand = captured.draft->operands[i];
      if (captured.origins[i] != old || operand.elements == 0) continue;
      used = true, written = written || operand.written;
      array = array || is_list(captured.draft->call.function(), operand.name);
    }
  }
  const bool undo = s.draw.one_in(4);
  const int replacement = undo ? buffer : s.world.alloc(bytes + s.draw.below(100), 0, 0);
  Call call(function_of("tuff_graph_bind"));
  call.set("graph", reference(index)), call.set("captured", reference(buffer)),
      call.set("replacement", reference(replacement));
  std::array<bool, 2> bound{};
  for (size_t side = 0; side < s.world.sides(); ++side) {
    const Outcome outcome = s.world.call_on(side, call);
    bound[side] = outcome.status == TUFF_OK;
    const bool refused = outcome.status == TUFF_ERROR_INVALID_ARGUMENT;
    // Arrays are refused unless their matrices are computed one by one, as that of a single matrix is; lists of tensors
    // are refused too. A read-only operand may be unused, for example if alpha or k is zero.
    const bool may_refuse = (array && outcome.status == TUFF_ERROR_UNSUPPORTED) || (refused && !written);
    if (used ? bound[side] || may_refuse : refused) continue;
    s.world.fail(call.text() + (side == 0 ? "\n  host: " : "\n  vulkan: ") + tuff_status_name(outcome.status) + " " +
                 outcome.message);
  }
  if (!bound[0] || (s.world.device() && !bound[1])) {
    // What one of them refuses, it always does: the other has its captured memory again.
    for (size_t side = 0; side < s.world.sides(); ++side) {
      if (!bound[side]) continue;
      const uint64_t own = s.world.handle(side, buffer);
      s.world.check(side, "tuff_graph_bind", tuff_graph_bind(s.world.handle(side, index), own, own));
    }
    return;
  }
  const int now = object_of(s, replacement).root;
  graph.roots.push_back(now);
  for (Captured& captured : graph.calls) {
    for (size_t i = 0; i < captured.origins.size(); ++i) {
      Operand& operand = captured.draft->operands[i];
      if (captured.origins[i] != old || captured.handles[i] == 0 || operand.elements == 0) continue;
      operand.root = now;
      s.world.check(0, "tuff_free", tuff_free(captured.handles[i]));
      s.world.check(0, "tuff_view",
                    tuff_view(s.world.handle(0, replacement), operand.offset, operand.bytes, &captured.handles[i]));
    }
  }
}

// ---- custom kernels -------------------------------------------------------------------------------------

constexpr const char* kKernelSource =
    "#version 450\n"
    "layout(local_size_x = 32) in;\n"
    "layout(constant_id = 3) const uint factor = 3;\n"
    "layout(set = 0, binding = 0) readonly buffer A { uint a[]; };\n"
    "layout(set = 0, binding = 1) buffer B { uint b[]; };\n"
    "layout(push_constant) uniform P { uint n; uint add; };\n"
    "void main() {\n"
    "  uint i = gl_GlobalInvocationID.x;\n"
    "  if (i < n) b[i] = a[i] * factor + add + EXTRA;\n"
    "}\n";

void kernel_create(Step& s) {
  if (count_of(s.world, Type::kernel) > 0 && !s.spoil) return;
  static constexpr tuff_kernel_define kDefine{"EXTRA", "7"};
  static constexpr tuff_kernel_constant kConstant{3, 0, 5};
  Call call(function_of("tuff_kernel_create"));
  call.set("context", reference(0)), call.set("source", reinterpret_cast<uint64_t>(kKernelSource));
  call.set("name", reinterpret_cast<uint64_t>("fuzz.comp")), call.set("flags", uint64_t{TUFF_KERNEL_ROBUST});
  call.set("defines", reinterpret_cast<uint64_t>(&kDefine)), call.set("define_count", uint64_t{1});
  call.set("constants", reinterpret_cast<uint64_t>(&kConstant)), call.set("constant_count", uint64_t{1});
  Expected expected{Answer::device_success};
  if (s.spoil) {
    Expected wrong;
    if (!spoil_call(s.world, call, s.draw, wrong) || wrong.answer != Answer::refusal) return;
    // The host backend has no custom kernels, so UNSUPPORTED may come first.
    for (size_t side = 0; side < s.world.sides(); ++side) {
      const Outcome outcome = s.world.call_on(side, call);
      if (outcome.status == TUFF_OK ||
          ((wrong.statuses & bit_of(outcome.status)) == 0 && (side != 0 || outcome.status != TUFF_ERROR_UNSUPPORTED))) {
        s.world.fail(call.text() + "\n  side " + std::to_string(side) + ": " + tuff_status_name(outcome.status) + " " +
                     outcome.message);
      }
    }
    return;
  }
  if (!s.world.device()) expected = {Answer::refusal, bit_of(TUFF_ERROR_UNSUPPORTED), ""};
  s.run(call, expected, [&](const std::array<Outcome, 2>& outcomes) {
    s.world.add({Type::kernel, true, 0}, outcomes, 2);
  });
}

void kernel_info(Step& s) {
  const int kernel = s.world.pick(s.draw, Type::kernel);
  if (kernel < 0) return kernel_create(s);
  tuff_kernel_properties info{};
  info.struct_size = sizeof info;
  s.world.check(1, "tuff_kernel_info", tuff_kernel_info(s.world.handle(1, kernel), &info));
  if (info.binding_count != 2 || info.push_bytes != 8 || info.written != 2 || info.robust != 1)
    s.world.fail("tuff_kernel_info: not the kernel's");
}

void kernel_launch(Step& s) {
  const int kernel = s.world.pick(s.draw, Type::kernel), stream = pick_stream(s);
  if (kernel < 0) return kernel_create(s);
  tuff_kernel_properties info{};
  info.struct_size = sizeof info;
  s.world.check(1, "tuff_kernel_info", tuff_kernel_info(s.world.handle(1, kernel), &info));
  const uint64_t step = info.buffer_alignment, n = s.draw.between(1, 200), bytes = n * 4;
  // Views of two memories, or two views of one, at multiples of the required alignment.
  std::array<int, 2> views{-1, -1};
  std::array<uint64_t, 2> offsets{};
  for (size_t i = 0; i < 2; ++i) {
    const int buffer = s.world.pick(s.draw, Type::buffer);
    if (buffer < 0) return;
    const Root& root = s.world.roots[static_cast<size_t>(object_of(s, buffer).root)];
    if (root.mapped || root.object < 0) return;
    const uint64_t first = (root.begin + step - 1) / step;
    if (first * step + bytes > root.end) return;
    offsets[i] = (first + s.draw.below((root.end - bytes) / step - first + 1)) * step;
    if (i == 1 && object_of(s, views[0]).root == object_of(s, buffer).root && offsets[0] < offsets[1] + bytes &&
        offsets[1] < offsets[0] + bytes)
      return;
    views[i] = s.world.view(root.object, offsets[i], bytes);
    s.world.order(s.draw, object_of(s, buffer).root, stream);
  }
  // Robust kernels stop at the end of the view, whatever n says.
  const uint32_t push[2] = {static_cast<uint32_t>(n + s.draw.below(40)), static_cast<uint32_t>(s.draw.next())};
  Call call(function_of("tuff_kernel_launch"));
  const uint64_t handles[2] = {reference(views[0]), reference(views[1])};
  for (size_t side = 0; side < s.world.sides(); ++side) std::memcpy(s.world.scratch(side), push, sizeof push);
  call.set("stream", reference(stream)), call.set("kernel", reference(kernel)), call.list("buffers", handles);
  call.set("count", uint64_t{2}), call.set("push", kScratch), call.set("push_bytes", uint64_t{8});
  call.set("gx", s.draw.one_in(10) ? 0 : (n + 40 + 31) / 32), call.set("gy", uint64_t{1}), call.set("gz", uint64_t{1});
  const bool runs = call.get("gx") != 0;
  Root& to = s.world.roots[static_cast<size_t>(object_of(s, views[1]).root)];
  const Root& from = s.world.roots[static_cast<size_t>(object_of(s, views[0]).root)];
  if (s.spoil) {
    Call wrong = call;
    const uint64_t which = s.draw.below(5);
    if (which == 0) wrong.set("count", uint64_t{1});
    if (which == 1) wrong.set("push_bytes", uint64_t{s.draw.of({0u, 4u, 7u, 12u})});
    if (which == 2) wrong.set("gy", uint64_t{0xffffffff});
    if (which == 3) wrong.put(static_cast<size_t>(wrong.find("buffers")), 1, reference(views[0]));
    if (which == 4) wrong.put(static_cast<size_t>(wrong.find("buffers")), s.draw.below(2), kForged | 12345);
    const Outcome outcome = s.world.call_on(1, wrong);
    const tuff_status wanted = which == 2   ? TUFF_ERROR_LIMIT_EXCEEDED
                               : which == 4 ? TUFF_ERROR_INVALID_HANDLE
                                            : TUFF_ERROR_INVALID_ARGUMENT;
    if (outcome.status != wanted && runs)
      s.world.fail(wrong.text() + "\n  vulkan: " + tuff_status_name(outcome.status) + " " + outcome.message);
  }
  const Outcome outcome = s.world.call_on(1, call);
  if (outcome.status != TUFF_OK)
    s.world.fail(call.text() + "\n  vulkan: " + tuff_status_name(outcome.status) + " " + outcome.message);
  if (runs) {
    for (uint64_t i = 0; i < n; ++i) {
      uint32_t a;
      std::memcpy(&a, from.mirror.data() + offsets[0] + 4 * i, 4);
      const uint32_t b = a * 5 + push[1] + 7;
      std::memcpy(to.mirror.data() + offsets[1] + 4 * i, &b, 4);
    }
    s.world.check(
        0, "tuff_copy_htod",
        tuff_copy_htod(s.world.handle(0, 0), s.world.handle(0, views[1]), 0, to.mirror.data() + offsets[1], bytes));
    to.dirty = true;
  }
  s.world.free(views[0]), s.world.free(views[1]);
}

void kernel_destroy(Step& s) {
  const int kernel = s.world.pick(s.draw, Type::kernel);
  if (kernel < 0) return kernel_create(s);
  s.world.check(1, "tuff_kernel_destroy", tuff_kernel_destroy(s.world.handle(1, kernel)));
  s.world.forget(kernel);
}

constexpr StepOf kStreamSteps[] = {
    {"tuff_stream_create", stream_create},
    {"tuff_stream_destroy", stream_destroy},
    {"tuff_synchronize", synchronize},
    {"tuff_synchronize", wait_all},
    {"tuff_event_create", event_create},
    {"tuff_event_destroy", [](Step& s) { with_event(s, "tuff_event_destroy", false); }},
    {"tuff_event_record", [](Step& s) { with_event(s, "tuff_event_record", true); }},
    {"tuff_stream_wait_event", [](Step& s) { with_event(s, "tuff_stream_wait_event", true); }},
    {"tuff_event_query", [](Step& s) { with_event(s, "tuff_event_query", false); }},
    {"tuff_event_wait", [](Step& s) { with_event(s, "tuff_event_wait", false); }},
    {"tuff_event_elapsed", event_elapsed},
    {"tuff_graph_begin", graph_begin},
    {"tuff_graph_end", graph_end},
    {"tuff_graph_launch", graph_launch},
    {"tuff_graph_launch", graph_launch},
    {"tuff_graph_bind", graph_bind},
    {"tuff_graph_destroy", graph_destroy},
    {"tuff_kernel_create", kernel_create},
    {"tuff_kernel_info", kernel_info},
    {"tuff_kernel_launch", kernel_launch},
    {"tuff_kernel_destroy", kernel_destroy},
};

}  // namespace

std::span<const StepOf> stream_steps() { return kStreamSteps; }

// While a stream captures: ends the capture, or makes a call that is rejected during one.
void capture_step(World& world, Draw rest) {
  const int stream = world.capturing;
  const auto refused = [&](const char* function, tuff_status status) {
    Call call(function_of(function));
    call.set("stream", reference(stream)), call.set("dst", reference(2)), call.set("src", kScratch),
        call.set("bytes", uint64_t{4});
    for (size_t side = 0; side < world.sides(); ++side) {
      const Outcome outcome = world.call_on(side, call);
      if (outcome.status == status) continue;
      world.fail(call.text() + "\n  while it captures: " + tuff_status_name(outcome.status) + " " + outcome.message);
    }
  };
  switch (rest.below(6)) {
    case 0: return refused("tuff_graph_begin", TUFF_ERROR_INVALID_ARGUMENT);
    case 1: return refused("tuff_synchronize", TUFF_ERROR_UNSUPPORTED);
    default: break;
  }
  Call call(function_of("tuff_graph_end"));
  call.set("stream", reference(stream));
  std::array<uint64_t, 2> graphs{};
  for (size_t side = 0; side < world.sides(); ++side) {
    const Outcome outcome = world.call_on(side, call);
    if (outcome.status != TUFF_OK)
      world.fail(call.text() + (side == 0 ? "\n  host: " : "\n  vulkan: ") + tuff_status_name(outcome.status) + " " +
                 outcome.message);
    graphs[side] = outcome.out[1];
  }
  Object graph{Type::graph, true, 0};
  graph.graph = static_cast<int>(world.graphs.size());
  world.graphs.push_back(std::move(world.capture));
  world.capture = {}, world.capturing = -1;
  world.add(graph, graphs);
}

}  // namespace tuff_fuzz
