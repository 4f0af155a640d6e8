// Threads that share a context, threads with a context each, a forked child, and an exit with everything open.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "tuff/tuff.hpp"

namespace {

constexpr int kThreads = 8, kRounds = 100;
constexpr uint64_t kCount = 1000;

// Runs body(i) on eight threads. Returns whether all of them returned true.
bool on_threads(const char* what, const std::function<bool(int)>& body) {
  std::vector<char> right(kThreads, 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&, i] { right[static_cast<size_t>(i)] = body(i); });
  for (std::thread& thread : threads) thread.join();
  const bool all = std::memchr(right.data(), 0, right.size()) == nullptr;
  std::printf("%-52s %s\n", what, all ? "yes" : "NO");
  return all;
}

// The child has the parent's handles but not its device: every call returns an error, and none hangs.
bool child_is_told(tuff::Context& context) {
  const pid_t child = fork();
  if (child == 0) {
    const bool told = tuff_synchronize(context.handle()) == TUFF_ERROR_NOT_INITIALIZED;
    _exit(told ? 0 : 1);  // exit() would run the driver's exit handlers, which need the parent's threads
  }
  int status = -1;
  const bool told = waitpid(child, &status, 0) == child && status == 0;
  std::printf("%-52s %s\n", "a child after fork is told that it has no device", told ? "yes" : "NO");
  return told;
}

bool run() {
  const tuff::ContextOptions options{nullptr, "auto"};
  tuff::Context context = tuff::Context::create(options);

  // No lock is needed: the stream orders the calls, and each addition sees the previous one.
  const tuff::Buffer sum = context.upload(std::vector<float>(kCount, 0.0f));
  const tuff::Buffer one = context.upload(std::vector<float>(kCount, 1.0f));
  bool good = on_threads("eight threads add to one buffer", [&](int) {
    for (int i = 0; i < kRounds; ++i) context.binary(tuff::DType::f32, tuff::Binary::add, sum, one, sum, kCount);
    return true;
  });
  std::vector<float> total(kCount);
  sum.download(total);
  good &= total == std::vector<float>(kCount, kThreads * kRounds);

  good &= on_threads("each thread has its own last error", [](int mine) {
    if (mine % 2 == 0) tuff_buffer_size(12345, nullptr);
    return tuff::last_error().empty() == (mine % 2 != 0);
  });

  good &= on_threads("each thread has its own context, all at once", [&](int mine) {
    tuff::Context own = tuff::Context::create(options);
    std::vector<float> values(kCount, static_cast<float>(mine));
    const tuff::Buffer buffer = own.upload(values);
    own.unary(tuff::DType::f32, tuff::Unary::neg, buffer, buffer, kCount);
    buffer.download(values);
    return values == std::vector<float>(kCount, -static_cast<float>(mine));
  });

  // One thread destroys the context that the others use: their calls succeed or return INVALID_HANDLE.
  tuff::Context shared = tuff::Context::create(options);
  const tuff_context handle = shared.handle();
  const tuff_buffer buffer = shared.alloc_bytes(kCount * sizeof(float)).release();
  good &= on_threads("a context may be destroyed while others use it", [&](int mine) {
    if (mine == 0) return tuff_context_destroy(shared.release()) == TUFF_OK;
    tuff_status status = TUFF_OK;
    while (status == TUFF_OK) status = tuff_unary(handle, TUFF_F32, TUFF_UNARY_NEG, buffer, buffer, kCount);
    return status == TUFF_ERROR_INVALID_HANDLE;
  });

  good &= child_is_told(context);
  context.release();  // not destroyed: a process may exit with open contexts
  return good;
}

}  // namespace

int main() {
  try {
    return run() ? 0 : 1;
  } catch (const tuff::Exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
