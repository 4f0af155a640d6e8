// Calls that compute nothing beside a size that is huge: they end at once, and need no memory. Their operands have no
// elements, so no buffer bounds the other sizes.
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "fuzz/call.hpp"
#include "fuzz/draft.hpp"
#include "support/harness.hpp"
#include "support/sample.hpp"

namespace tuff_test::semantics_nothing_test {
namespace {

using namespace tuff_fuzz;

std::string running;  // what a call without end is told by

void end_with_call(int) {
  const char* const what = "\na call without end: ";
  (void)!write(STDERR_FILENO, what, std::strlen(what));
  (void)!write(STDERR_FILENO, running.data(), running.size());
  _exit(1);
}

// References are handles, or null.
class Plain : public Resolver {
 public:
  uint64_t handle(uint64_t reference) const override { return reference & ~kForged; }
  uint64_t memory(uint64_t reference) const override { return reference; }
};

// The numbers of a call that may be sizes.
std::vector<size_t> sizes_of(const Call& call) {
  std::vector<size_t> sizes;
  const std::span<const Place> places = call.function().places;
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i].kind == Kind::number && places[i].bytes == 8 && !places[i].pointer &&
        !call.counts_others(places[i].name))
      sizes.push_back(i);
  }
  return sizes;
}

TEST(SemanticsNothing, BesideMuchEndsAtOnce) {
  const tuff_context context = shared_context("host");
  const OwnBuffer first(context, 4096), second(context, 4096), third(context, 4096);
  const tuff_buffer buffers[] = {first, second, third};
  const Plain resolver;
  Draw draw(sample().seed);
  const auto before = std::signal(SIGALRM, end_with_call);
  for (const Description& description : descriptions()) {
    for (int round = 0; round < (reduced() ? 100 : 1000); ++round) {
      Draft draft(function_of(description.function), Draw(draw.next()), Draw(draw.next()));
      description.draw(draft);
      Call& call = draft.call;
      call.set("stream", context | kForged);
      for (const Operand& operand : draft.operands) {
        const uint64_t buffer = draw.one_in(3) ? 0 : buffers[draw.below(3)] | kForged;
        const auto place = static_cast<size_t>(call.find(operand.name));
        call.slot(place).set = true;
        call.put(place, operand.index, buffer);
      }
      const std::vector<size_t> sizes = sizes_of(call);
      if (sizes.empty()) break;
      const uint64_t much = draw.of({(uint64_t{1} << 31) - 1, uint64_t{1} << 40, (uint64_t{1} << 62) + 1});
      const auto replace = [&](uint64_t value) {
        const size_t place = sizes[draw.below(sizes.size())];
        call.slot(place).set = true;
        call.put(place, draw.below(std::max<uint64_t>(call.slot(place).count, 1)), value);
      };
      replace(0);
      for (uint64_t i = draw.between(1, 2); i > 0; --i) replace(much);
      running = call.text();
      alarm(20);
      const Outcome outcome = call.invoke(resolver);
      alarm(0);
      EXPECT_TRUE(outcome.status == TUFF_OK || outcome.status == TUFF_ERROR_INVALID_ARGUMENT ||
                  outcome.status == TUFF_ERROR_INVALID_HANDLE || outcome.status == TUFF_ERROR_UNSUPPORTED)
          << running << "\n"
          << outcome.message;
    }
  }
  std::signal(SIGALRM, before);
}

}  // namespace
}  // namespace tuff_test::semantics_nothing_test
