// Short pieces of work that together use everything that a program may request of the library, for programs that inject
// failures. A call that fails because of an injected failure is repeated. The results must be correct.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "tuff/tuff.h"

namespace tuff_test {

extern const char* backend;

// Whether the call may report the loss of its device, which excuses() signals by an exception.
enum class Then { again, again_or_leave };

// Injects failures.
class Failures {
 public:
  virtual ~Failures() = default;
  // Enclose the calls that are to fail, if the scenario marks them itself.
  virtual void begin() = 0;
  virtual void end() = 0;
  // Returns whether the status is explained by an injected failure, so that the call is to be repeated; nothing fails
  // from then on. Throws if repeating is useless, but not with Then::again.
  virtual bool excuses(const char* call, tuff_status status, Then then) = 0;
  virtual void problem(const char* text) = 0;
  // True while no failures are injected yet: the results are then correct.
  virtual bool counting() const = 0;
};
extern Failures* failures;

template <typename... Args>
void problem(const char* format, Args... args) {
  char text[1024];
  std::snprintf(text, sizeof text, format, args...);
  failures->problem(text);
}

// Makes the call, and repeats it after an injected failure. Otherwise its status must be `expected`.
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
  bool marks_itself = false;  // it calls begin() and end() itself
};
std::vector<Scenario> all_scenarios();

}  // namespace tuff_test
