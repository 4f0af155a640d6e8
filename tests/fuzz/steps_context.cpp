// The library, devices, contexts, memory statistics and profiles.
#include <cstring>

#include "fuzz/world.hpp"

namespace tuff_fuzz {
namespace {

// Functions whose only input is a context.
void of_context(Step& s, const char* function) {
  Call call(function_of(function));
  call.set("context", reference(0));
  s.run(call, {});
}

// Whatever is moved, later comparisons find every byte where it belongs.
void compact(Step& s) {
  Call call(function_of("tuff_context_compact"));
  call.set("context", reference(0));
  call.set("max_bytes", s.draw.of<uint64_t>({0, 1, 10000, 1 << 20}));
  s.run(call, {});
}

void no_arguments(Step& s, const char* function) {
  Call call(function_of(function));
  call.set("status", s.draw.below(20) - 15);
  call.set("index", s.draw.below(24));  // there is no text after the last: the ContextOnBackend tests cover that
  s.spoil = false;
  s.run(call, {});
}

// Functions that return a text, with a buffer of some capacity or none.
void text(Step& s, const char* function, const char* buffer) {
  Call call(function_of(function));
  const uint64_t capacity = s.draw.of<uint64_t>({0, 1, 2, 100, 4000});
  call.set("capacity", capacity);
  if (capacity != 0) call.set(buffer, kScratch);
  call.set("context", reference(0));
  for (size_t side = 0; side < s.world.sides(); ++side) std::memset(s.world.scratch(side), 0x7e, 5000);
  s.spoil = false;
  s.run(call, {}, [&](const std::array<Outcome, 2>&) {
    for (size_t side = 0; side < s.world.sides(); ++side) {
      const uint8_t* const got = s.world.scratch(side);
      if (got[capacity] != 0x7e || (capacity != 0 && std::memchr(got, 0, capacity) == nullptr)) {
        s.world.fail(call.text() + "\n  a text that leaves its buffer, or does not end");
      }
    }
  });
}

void of_device(Step& s, const char* function) {
  Call call(function_of(function));
  const bool right = s.draw.one_in(2);
  call.set("index", right ? 0 : s.draw.of<uint64_t>({1000, 0xffffffff}));
  if (!s.world.device()) return;
  s.run(call, right ? Expected{} : Expected{Answer::refusal, bit_of(TUFF_ERROR_INVALID_ARGUMENT), "index"});
}

// Never a file that loads: the fuzzer's steps leave the process as it was.
void backend_register(Step& s) {
  Call call(function_of("tuff_backend_register"));
  static constexpr const char* kPaths[] = {"", "/", "/nowhere/libtuff-none.so", "/proc/self/status"};
  call.set("path", reinterpret_cast<uint64_t>(kPaths[s.draw.below(std::size(kPaths))]));
  s.run(call, {Answer::refusal, bit_of(TUFF_ERROR_IO), "path"});
}

void backend_info(Step& s) {
  Call call(function_of("tuff_backend_info"));
  call.set("index", s.draw.of<uint64_t>({1000, 0xffffffff}));
  s.run(call, {Answer::refusal, bit_of(TUFF_ERROR_INVALID_ARGUMENT), "index"});
}

void set_log(Step& s) {
  Call call(function_of("tuff_set_log"));
  static constexpr tuff_log_callback kNothing = [](void*, int32_t, const char*) {};
  call.set("callback", reinterpret_cast<uint64_t>(kNothing));
  call.set("level", s.draw.below(6));
  s.run(call, {});
  s.world.each("tuff_set_log", [](size_t) { return tuff_set_log(nullptr, nullptr, TUFF_LOG_OFF); });
}

void context_create(Step& s) {
  if (!s.spoil && !s.draw.one_in(s.world.device() ? 16 : 2)) return;
  for (size_t side = 0; side < s.world.sides(); ++side) {
    Call call(function_of("tuff_context_create"));
    call.set("backend", reinterpret_cast<uint64_t>(side == 0 ? "host" : "vulkan"));
    if (s.spoil) {
      Expected wrong;
      Draw same = s.draw;
      call.set("backend", reinterpret_cast<uint64_t>("nothing that there is"));
      if (spoil_call(s.world, call, same, wrong) && wrong.answer == Answer::success) wrong = {};
    }
    const Outcome outcome = s.world.call_on(side, call);
    if (s.spoil != (outcome.status != TUFF_OK))
      s.world.fail(call.text() + "\n  " + tuff_status_name(outcome.status) + " " + outcome.message);
    if (outcome.status != TUFF_OK) continue;
    // Destroys a context with a live buffer and work in flight.
    const uint64_t context = outcome.out[1];
    uint64_t buffer = 0;
    s.world.check(side, "tuff_alloc", tuff_alloc(context, 4096, &buffer));
    s.world.check(side, "tuff_fill", tuff_fill(context, buffer, 0, 4096, "abcd", 4));
    s.world.check(side, "tuff_context_destroy", tuff_context_destroy(context));
    if (tuff_free(buffer) != TUFF_ERROR_INVALID_HANDLE || tuff_context_destroy(context) != TUFF_ERROR_INVALID_HANDLE) {
      s.world.fail("a handle outlives its context");
    }
  }
}

void context_destroy(Step& s) {  // of an invalid handle
  Call call(function_of("tuff_context_destroy"));
  call.set("context", s.draw.one_in(2) ? kForged | s.draw.below(100000) : kForged | (s.draw.next() >> 1));
  s.spoil = false;
  s.run(call, {Answer::refusal, bit_of(TUFF_ERROR_INVALID_HANDLE), "context"});
}

void set_limits(Step& s) {
  Call call(function_of("tuff_context_set_limits"));
  call.set("context", reference(0)), call.set("memory_bytes", s.draw.of<uint64_t>({0, uint64_t{1} << 40}));
  call.set("wait_milliseconds", s.draw.of<uint64_t>({0, 500000})),
      call.set("pipelines", s.draw.of<uint64_t>({0, 512, 300}));
  s.run(call, {});
}

void set_tuning(Step& s) {
  Call call(function_of("tuff_context_set_tuning"));
  const char* const texts[] = {
      nullptr, "", "{}", "[1, 2", "{\"devices\": 3}", "\xff\xfe", "{\"device\": {\"uuid\": \"00\"}, \"entries\": []}"};
  const size_t which = s.draw.below(std::size(texts));
  call.set("context", reference(0));
  if (which != 0) call.set("json", reinterpret_cast<uint64_t>(texts[which]));
  for (size_t side = 0; side < s.world.sides(); ++side) {
    const Outcome outcome = s.world.call_on(side, call);
    const tuff_status wanted = which == 0 ? TUFF_OK : side == 0 ? TUFF_ERROR_UNSUPPORTED : TUFF_ERROR_INVALID_ARGUMENT;
    if (outcome.status != wanted)
      s.world.fail(call.text() + "\n  side " + std::to_string(side) + ": " + tuff_status_name(outcome.status) + " " +
                   outcome.message);
  }
}

void variants(Step& s) {
  Call call(function_of("tuff_batched_gemm_variants"));
  call.set("stream", reference(0)), call.set("dtype", uint64_t{TUFF_F32}), call.set("capacity", uint64_t{500}),
      call.set("json", kScratch);
  call.set("m", s.draw.between(1, 40)), call.set("n", s.draw.between(1, 40)), call.set("k", s.draw.between(1, 40)),
      call.set("batch_count", uint64_t{1});
  // Any buffers will do: they are large enough and disjoint, or the call is rejected.
  for (const char* name : {"a", "b", "c"}) {
    const int buffer = s.world.pick(s.draw, Type::buffer);
    if (buffer < 0) return;
    call.set(name, reference(buffer));
  }
  s.spoil = false;
  for (size_t side = 0; side < s.world.sides(); ++side) {
    const Outcome outcome = s.world.call_on(side, call);
    if (outcome.status != TUFF_ERROR_INVALID_ARGUMENT &&
        outcome.status != (side == 0 ? TUFF_ERROR_UNSUPPORTED : TUFF_OK)) {
      s.world.fail(call.text() + "\n  side " + std::to_string(side) + ": " + tuff_status_name(outcome.status) + " " +
                   outcome.message);
    }
  }
}

void memory_callback(Step& s) {
  Call call(function_of("tuff_context_set_memory_callback"));
  static constexpr tuff_memory_callback kNothing = [](void*, const tuff_memory_pressure*) {};
  call.set("context", reference(0));
  if (s.draw.one_in(2)) call.set("callback", reinterpret_cast<uint64_t>(kNothing));
  s.run(call, {});
}

void supports(Step& s) {
  Call call(function_of("tuff_supports"));
  call.set("context", reference(0));
  const char* const names[] = {"gemm", "f32", "gemm.bf16", "memory_fd", "nothing", "", ".", "gemm.", "attention.f64"};
  call.set("feature", reinterpret_cast<uint64_t>(names[s.draw.below(std::size(names))]));
  s.run(call, {}, [&](const std::array<Outcome, 2>& outcomes) {
    for (size_t side = 0; side < s.world.sides(); ++side) {
      if ((outcomes[side].out[2] & 0xfffffffe) != 0) s.world.fail(call.text() + "\n  neither 0 nor 1");
    }
  });
}

// Begins a profile, does some work, writes the profile and ends it.
void profile(Step& s) {
  if (s.world.device() && !s.draw.one_in(40)) return;
  s.spoil = false;
  const auto on = [&](const char* function, const Expected& expected) {
    Call call(function_of(function));
    call.set("context", reference(0)), call.set("path", reinterpret_cast<uint64_t>("/dev/null"));
    s.world.call(call, expected);
  };
  const Expected wrong{Answer::refusal, bit_of(TUFF_ERROR_INVALID_ARGUMENT), ""};
  on("tuff_profile_end", wrong);
  on("tuff_profile_begin", {});
  on("tuff_profile_begin", wrong);
  const int buffer = s.world.roots[1].object;
  if (buffer >= 0 && !s.world.roots[1].mapped) s.world.write(1, s.world.roots[1].begin, 64, 0);
  on("tuff_profile_write", {});
  text(s, "tuff_profile_table", "text");
  on("tuff_profile_end", {});
}

constexpr StepOf kContextSteps[] = {
    {"tuff_version", [](Step& s) { no_arguments(s, "tuff_version"); }},
    {"tuff_abi_version", [](Step& s) { no_arguments(s, "tuff_abi_version"); }},
    {"tuff_build_info", [](Step& s) { no_arguments(s, "tuff_build_info"); }},
    {"tuff_operation_name", [](Step& s) { no_arguments(s, "tuff_operation_name"); }},
    {"tuff_status_name", [](Step& s) { no_arguments(s, "tuff_status_name"); }},
    {"tuff_status_hint", [](Step& s) { no_arguments(s, "tuff_status_hint"); }},
    {"tuff_last_error", [](Step& s) { text(s, "tuff_last_error", "buffer"); }},
    {"tuff_set_log", set_log},
    {"tuff_device_count",
     [](Step& s) {
       Call call(function_of("tuff_device_count"));
       if (s.world.device()) s.run(call, {});
     }},
    {"tuff_device_info", [](Step& s) { of_device(s, "tuff_device_info"); }},
    {"tuff_device_refusals",
     [](Step& s) {
       if (s.world.device()) text(s, "tuff_device_refusals", "buffer");
     }},
    {"tuff_backend_register", backend_register},
    {"tuff_backend_count",
     [](Step& s) {
       Call call(function_of("tuff_backend_count"));
       s.run(call, {});
     }},
    {"tuff_backend_info", backend_info},
    {"tuff_backend_refusals", [](Step& s) { text(s, "tuff_backend_refusals", "buffer"); }},
    {"tuff_context_create", context_create},
    {"tuff_context_destroy", context_destroy},
    {"tuff_context_info", [](Step& s) { of_context(s, "tuff_context_info"); }},
    {"tuff_supports", supports},
    {"tuff_context_stats", [](Step& s) { of_context(s, "tuff_context_stats"); }},
    {"tuff_context_set_limits", set_limits},
    {"tuff_context_set_tuning", set_tuning},
    {"tuff_context_memory", [](Step& s) { of_context(s, "tuff_context_memory"); }},
    {"tuff_context_compact", compact},
    {"tuff_context_usage", [](Step& s) { of_context(s, "tuff_context_usage"); }},
    {"tuff_device_read_sensors", [](Step& s) { of_device(s, "tuff_device_read_sensors"); }},
    {"tuff_context_trim", [](Step& s) { of_context(s, "tuff_context_trim"); }},
    {"tuff_context_reset_peak", [](Step& s) { of_context(s, "tuff_context_reset_peak"); }},
    {"tuff_context_set_memory_callback", memory_callback},
    {"tuff_batched_gemm_variants", variants},
    {"tuff_profile_begin", profile},
    {"tuff_profile_end", profile},
    {"tuff_profile_write", profile},
    {"tuff_profile_table", profile},
};

}  // namespace

std::span<const StepOf> context_steps() { return kContextSteps; }

const std::vector<StepOf>& all_steps() {
  static const std::vector<StepOf> all = [] {
    std::vector<StepOf> result;
    // Steps on memory and streams are five times as likely as the others.
    for (int i = 0; i < 5; ++i) {
      result.insert(result.end(), memory_steps().begin(), memory_steps().end());
      result.insert(result.end(), stream_steps().begin(), stream_steps().end());
    }
    result.insert(result.end(), expression_steps().begin(), expression_steps().end());
    result.insert(result.end(), context_steps().begin(), context_steps().end());
    result.insert(result.end(), operation_steps().begin(), operation_steps().end());
    return result;
  }();
  return all;
}

}  // namespace tuff_fuzz
