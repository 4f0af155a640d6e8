// What a program acts on: the same objects on the host backend and on a device, and a mirror of their buffers'
// contents.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/call.hpp"
#include "fuzz/draft.hpp"
#include "fuzz/draw.hpp"

namespace tuff_fuzz {

// A disagreement between the two backends, or between a backend and what was expected of it.
struct Failure {
  std::string text;
};

// In the order of handle_types().
enum class Type : uint8_t { context, buffer, stream, kernel, event, graph, expr, op };

// An output of an expression.
struct Formula {
  enum class Result : uint8_t { exact, variance, deviation, logarithm };
  uint32_t reduced = 0;  // the axes that it reduces, as bits
  Result result = Result::exact;
  uint32_t correction = 0;
};

struct Object {
  Type type;
  bool live;
  int context;
  int root = -1;  // for a buffer: its memory, and its range there
  uint64_t offset = 0, bytes = 0;
  int graph = -1;         // for a graph: index in World::graphs
  bool recorded = false;  // for an event
  bool timed = true;
  std::vector<Formula> formulas = {};  // of an expression
};

// A call's reference to the object with this index.
inline uint64_t reference(int object) { return static_cast<uint64_t>(object) + 1; }

// Zeros. Its data() is never null, which memcpy does not accept even for no bytes.
inline std::vector<uint8_t> empty_mirror(uint64_t bytes) {
  std::vector<uint8_t> mirror;
  mirror.reserve(bytes + 1);
  mirror.resize(bytes);
  return mirror;
}

// An allocation. Operands are placed within the window of it that some live buffer covers.
struct Root {
  int context;
  uint64_t bytes;
  std::vector<uint8_t> mirror;
  int object = -1;  // the buffer that has the window; -1: no handle is left
  uint64_t begin = 0, end = 0;
  int stream = -1;     // the stream that used it last
  bool dirty = false;  // not compared since the last write
  bool visible = false, pinned = false, mapped = false;
  std::array<void*, 2> memory{};  // while it is mapped
};

struct Captured {
  std::shared_ptr<Draft> draft;
  std::vector<uint64_t> handles;  // the host backend's own views of its operands, for calling it again
  std::vector<int> origins;       // the memory of each operand at the time of capture
};

// The calls of a graph, which the host backend also makes one by one before it launches its own.
struct Graph {
  std::vector<Captured> calls;
  std::vector<int> roots;
  bool failed = false;
};

enum class Answer : uint8_t {
  success,
  refusal,         // with one of `statuses`
  alike,           // either outcome, but the same from both backends
  device_success,  // the host backend does not support it
};

struct Expected {
  Answer answer = Answer::success;
  uint32_t statuses = 0;         // bit -status
  std::string word = {};         // must be in the message; empty: any message
  bool device_may_lack = false;  // UNSUPPORTED or LIMIT_EXCEEDED where the host backend computes
};
constexpr uint32_t bit_of(tuff_status status) { return uint32_t{1} << -status; }

struct Counts {
  uint64_t programs = 0, calls = 0, refusals = 0, compared = 0, unjudged = 0, launches = 0;
};

class World {
 public:
  // device: use a Vulkan device in addition to the host backend.
  explicit World(bool device);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void begin(Draw& draw);
  void end();      // compares everything, frees everything, and checks for leaks
  void abandon();  // after a failure

  bool device() const { return sides_.size() > 1; }
  size_t sides() const { return sides_.size(); }
  uint64_t handle(size_t side, int object) const { return sides_[side].handles[static_cast<size_t>(object)]; }
  const Resolver& side(size_t index) const { return sides_[index]; }
  uint8_t* scratch(size_t side) { return sides_[side].scratch.data(); }
  uint64_t pipelines() const;

  // Makes the call on all backends and checks the outcomes. True if it succeeded (on the host backend, if that has
  // it).
  bool call(const Call& call, const Expected& expected, std::array<Outcome, 2>* outcomes = nullptr);
  // Makes the call on one backend only.
  Outcome call_on(size_t side, const Call& call);
  // Makes a direct call that must succeed.
  template <typename F>
  void each(const char* what, F&& f) {
    for (size_t s = 0; s < sides_.size(); ++s) check(s, what, f(s));
  }
  void check(size_t side, const char* what, tuff_status status);
  [[noreturn]] void fail(const std::string& text) const;

  int add(Object object, const std::array<uint64_t, 2>& handles);
  int add(Object object, const std::array<Outcome, 2>& outcomes, size_t argument);
  int pick(Draw& draw, Type type, int context = 0) const;  // -1: none
  int pick_stale(Draw& draw) const;
  int alloc(uint64_t bytes, uint32_t flags, int context);
  int view(int object, uint64_t offset, uint64_t bytes);  // offset in the root
  void free(int object);
  void forget(int object);  // its handle is no longer valid

  // To be called before `stream` uses memory that another stream used.
  void order(Draw& draw, int root, int stream);
  void write(int root, uint64_t offset, uint64_t bytes, int stream);  // from the mirror
  void compare_host(int root, const std::vector<uint8_t>* may_differ = nullptr, bool adopt = false);
  void compare_device(int root);
  void read(size_t side, int root, std::vector<uint8_t>& bytes);
  void settle();  // compares every root
  void synchronize(int stream);

  std::vector<Object> objects;
  std::vector<Root> roots;
  std::vector<Graph> graphs;
  int capturing = -1;  // the stream
  Graph capture;
  int foreign = -1;  // a buffer of the other context
  Counts counts;
  bool verbose = false;

 private:
  struct Side final : Resolver {
    uint64_t handle(uint64_t reference) const override;
    uint64_t memory(uint64_t reference) const override;
    const World* world = nullptr;
    size_t index = 0;
    const char* backend = "";
    std::vector<uint64_t> handles;  // by object index
    std::vector<uint8_t> scratch;
    uint64_t contexts[2] = {0, 0};
  };

  void ask_types();

  std::vector<Side> sides_;
  bool lacks_types_ = false;  // the device lacks some element types: valid calls may be UNSUPPORTED there
  std::string current_;       // the current call, for failure messages
};

// A call of the runtime, with its preconditions and its effects.
class Step {
 public:
  Step(World& its_world, Draw its_draw, bool is_spoiled) : world(its_world), draw(its_draw), spoil(is_spoiled) {}
  using Done = std::function<void(const std::array<Outcome, 2>&)>;
  // `done` is called if the call was valid and succeeded.
  void run(Call& call, Expected expected, const Done& done = {});

  World& world;
  Draw draw;
  bool spoil;
};

// A stream, half of the time the context's first, and the object of a reference's number.
int pick_stream(Step& step);
Object& object_of(Step& step, int index);

struct StepOf {
  const char* function;
  void (*run)(Step& step);
};
std::span<const StepOf> memory_steps();
std::span<const StepOf> stream_steps();
std::span<const StepOf> context_steps();
std::span<const StepOf> expression_steps();
std::span<const StepOf> operation_steps();
const std::vector<StepOf>& all_steps();

// The actions of a program's records.
void operate(World& world, const Description& description, Draw shape, Draw rest, bool spoil);
void launch(World& world, Draw& rest, int graph);
void capture_step(World& world, Draw rest);  // while a stream captures
// Compares all memory, after a call of which only the agreement of the backends is known.
void compare_all(World& world);

// Turns a valid call into an invalid one and sets the expected outcome. False if there is nothing to spoil.
bool spoil_call(World& world, Call& call, Draw& draw, Expected& expected);

}  // namespace tuff_fuzz
