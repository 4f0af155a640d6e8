// Short pieces of work that together do all that a program may ask of the library, for programs that let something fail
// in them. Each call is made again where it failed for that; what is computed has to be right.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "tuff/tuff.h"

namespace tuff_test {

extern const char* backend;

// Whether a loss of the device, which excuses() tells by an exception, may be told of a call.
enum class Then { again, again_or_leave };

// What makes something fail.
class Failures {
 public:
  virtual ~Failures() = default;
  // Around what is to fail, where a scenario marks it itself.
  virtual void begin() = 0;
  virtual void end() = 0;
  // Whether a call may answer that as something has failed, and is to be made again. Nothing fails from there on.
  // Throws where that has no use, but not with Then::again.
  virtual bool excuses(const char* call, tuff_status status, Then then) = 0;
  virtual void problem(const char* text) = 0;
  // Nothing fails yet: what comes out is right.
  virtual bool counting() const = 0;
};
extern Failures* failures;

template <typename... Args>
void problem(const char* format, Args... args) {
  char text[1024];
  std::snprintf(text, sizeof text, format, args...);
  failures->problem(text);
}

// The call, and once more where something has failed. What it answers otherwise has to be `expected`.
bool made(const char* what, const std::function<tuff_status()>& call, tuff_status expected = TUFF_OK,
          Then then = Then::again_or_leave);
#define MADE(call) made(#call, [&] { return call; })
#define MADE_OR_LEFT(call) \
  made(                    \
      #call, [&] { return call; }, TUFF_OK, Then::again)
#define REFUSED(call, status) \
  made(                       \
      #call, [&] { return call; }, status)

template <typename T>
T sized() {
  T desc{};
  desc.struct_size = sizeof(T);
  return desc;
}

tuff_context new_context(int32_t prewarm = 0);

struct Scenario {
  enum class In { shared_context, fresh_context, nothing };
  std::string name;
  In in;
  std::function<void(tuff_context)> run;
  bool marks_itself = false;  // what is to fail
};
std::vector<Scenario> all_scenarios();

}  // namespace tuff_test
