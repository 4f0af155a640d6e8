// The POSIX implementation of process.hpp.
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "platform/process.hpp"

namespace tuff::platform {
namespace {

#ifdef MSG_NOSIGNAL
constexpr int kNoSignal = MSG_NOSIGNAL;  // a helper that ended early must not raise SIGPIPE in this process
#else
constexpr int kNoSignal = 0;
#endif

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int get() const { return value_; }

 private:
  int value_ = -1;
};

// Creates a connected pair of sockets that no child inherits by accident.
bool connected(Descriptor& ours, Descriptor& theirs) {
  int ends[2];
#ifdef SOCK_CLOEXEC
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
#else
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return false;
  for (const int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
#endif
#ifdef SO_NOSIGPIPE
  const int on = 1;
  ::setsockopt(ends[0], SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
  ours = Descriptor(ends[0]);
  theirs = Descriptor(ends[1]);
  return ::fcntl(ours.get(), F_SETFL, O_NONBLOCK) == 0;
}

// Looked up when the library is loaded: dladdr() returns the name that the loader was given, and a relative name refers
// to another file once the program has changed its working directory. Only these two calls, because it runs before
// main().
char library_file[PATH_MAX];
[[maybe_unused, gnu::constructor]] void find_library() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&find_library), &info) == 0 || info.dli_fname == nullptr) return;
  if (::realpath(info.dli_fname, library_file) == nullptr) library_file[0] = '\0';
}

int spawn(const std::filesystem::path& program, const std::vector<std::string>& arguments,
          const std::vector<std::string>& variables, int socket, pid_t& child) {
  std::vector<char*> words;
  words.push_back(const_cast<char*>(program.c_str()));
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  std::vector<char*> environment;
  for (const std::string& variable : variables) environment.push_back(const_cast<char*>(variable.c_str()));
  environment.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  // Without memory for an action, the program would run with this process's input and output.
  int error = 0;
  const auto add = [&](int result) {
    if (error == 0) error = result;
  };
  add(::posix_spawn_file_actions_adddup2(&files, socket, 0));
  add(::posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0));
  add(::posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0));
#if defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 34)
  add(::posix_spawn_file_actions_addclosefrom_np(&files, 3));  // on others, limit_this_process() closes the files
#endif
#endif
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  if (error == 0) error = ::posix_spawn(&child, program.c_str(), &files, &attributes, words.data(), environment.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  return error;
}

using Clock = std::chrono::steady_clock;
enum class Talk { ended, timed_out, too_much };

// Sends the input and collects the output, each as the other side is ready.
Talk talk(int socket, std::string_view input, std::string& output, Clock::time_point end, uint64_t max_output_bytes) {
  std::array<char, 65536> buffer;
  if (input.empty()) ::shutdown(socket, SHUT_WR);
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return Talk::timed_out;
    pollfd wait{socket, static_cast<short>(POLLIN | (input.empty() ? 0 : POLLOUT)), 0};
    if (::poll(&wait, 1, static_cast<int>(std::min<long long>(left, 60000))) < 0 && errno != EINTR) return Talk::ended;
    if (wait.revents & POLLOUT) {
      const ssize_t sent = ::send(socket, input.data(), input.size(), kNoSignal);
      if (sent > 0) {
        input.remove_prefix(static_cast<size_t>(sent));
        if (input.empty()) ::shutdown(socket, SHUT_WR);
      } else if (errno != EAGAIN && errno != EINTR) {
        input = {};  // the helper no longer reads; its answer is still received
      }
    }
    if (wait.revents & (POLLIN | POLLHUP | POLLERR)) {
      const ssize_t received = ::recv(socket, buffer.data(), buffer.size(), 0);
      if (received == 0 || (received < 0 && errno != EAGAIN && errno != EINTR)) return Talk::ended;
      if (received > 0) output.append(buffer.data(), static_cast<size_t>(received));
      if (output.size() > max_output_bytes) return Talk::too_much;
    }
  }
}

// waitpid() for a child that may go on after it has closed its socket: at the end of its time, it is killed.
pid_t wait_until(Clock::time_point end, pid_t child, int& status, bool& killed) {
  for (auto pause = std::chrono::microseconds(50);; pause = std::min(2 * pause, std::chrono::microseconds(10'000))) {
    const pid_t waited = ::waitpid(child, &status, killed ? 0 : WNOHANG);
    if (waited > 0 || (waited < 0 && errno != EINTR)) return waited;
    if (waited < 0) continue;
    if (Clock::now() >= end) {
      killed = true;
      ::kill(child, SIGKILL);
    } else {
      std::this_thread::sleep_for(pause);
    }
  }
}

void set_limit(decltype(RLIMIT_CPU) resource, uint64_t value) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return;
  const auto wanted = static_cast<rlim_t>(value);
  if (limit.rlim_max == RLIM_INFINITY || wanted < limit.rlim_max) limit.rlim_max = wanted;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(resource, &limit);
}

}  // namespace

std::filesystem::path library_folder() {
  const std::filesystem::path file(library_file);
  return file.is_absolute() ? file.parent_path() : std::filesystem::path();
}

std::string distrust_of_folder(const std::filesystem::path& folder) {
  struct stat status {
  }, library{};
  if (::lstat(folder.c_str(), &status) != 0) return {};
  if (!S_ISDIR(status.st_mode)) return "it is not a folder itself";
  const bool owned = status.st_uid == 0 || status.st_uid == ::geteuid() ||
                     (::stat(library_file, &library) == 0 && status.st_uid == library.st_uid);
  return owned && (status.st_mode & S_IWOTH) == 0 ? "" : "others may write to this folder";
}

ProcessEnd run_program(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                       std::string_view input, uint64_t milliseconds, uint64_t max_output_bytes,
                       const std::vector<std::string>& environment) {
  ProcessEnd end{ProcessEnd::Kind::not_started, 0, {}};
  Descriptor ours, theirs;
  if (!connected(ours, theirs)) {
    end.code = errno;
    return end;
  }
  pid_t child = -1;
  end.code = spawn(program, arguments, environment, theirs.get(), child);
  if (end.code != 0) return end;
  theirs = Descriptor();
  const auto deadline = Clock::now() + std::chrono::milliseconds(milliseconds);
  const auto finish = [&](Clock::time_point until) {
    int status = 0;
    bool killed = false;
    const pid_t waited = wait_until(until, child, status, killed);
    if (waited != child) {
      end.kind = ProcessEnd::Kind::unknown;  // the application waits for all children and reaped this one first
    } else if (WIFSIGNALED(status)) {
      end.kind = ProcessEnd::Kind::signalled;
      end.code = WTERMSIG(status);
    } else {
      end.kind = ProcessEnd::Kind::exited;
      end.code = WEXITSTATUS(status);
    }
    return killed;
  };
  Talk how;
  try {
    how = talk(ours.get(), input, end.output, deadline, max_output_bytes);
  } catch (...) {  // no memory for the output: don't leave the child behind
    finish(Clock::time_point::min());
    throw;
  }
  const bool killed = finish(how == Talk::ended ? deadline : Clock::time_point::min());
  if (how == Talk::timed_out || (how == Talk::ended && killed)) end.kind = ProcessEnd::Kind::timed_out;
  if (how == Talk::too_much) end.kind = ProcessEnd::Kind::too_much_output;
  return end;
}

void limit_this_process(uint64_t cpu_seconds, uint64_t memory_bytes) {
  set_limit(RLIMIT_CORE, 0);
  set_limit(RLIMIT_NOFILE, 3);  // standard input, output and error only
  set_limit(RLIMIT_CPU, cpu_seconds);
  set_limit(RLIMIT_AS, memory_bytes);
  for (int descriptor = 3; descriptor < 1024; ++descriptor) ::close(descriptor);
}

void limit_this_process_from_now(uint64_t milliseconds, uint64_t memory_bytes) {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = static_cast<uint64_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + 1;
  set_limit(RLIMIT_CORE, 0);
  // All threads count towards the limit.
  set_limit(RLIMIT_CPU, seconds + (milliseconds / 1000 + 1) * 4);
  unsigned long pages = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "re"); file != nullptr) {
    if (std::fscanf(file, "%lu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  if (pages != 0) set_limit(RLIMIT_AS, pages * page + memory_bytes);
  const auto ms = static_cast<long>(milliseconds);
  const itimerval timer{{0, 0}, {ms / 1000, ms % 1000 * 1000}};
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

bool read_input(std::string& bytes, uint64_t max_bytes) {
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t count = ::read(0, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    if (count == 0) return true;
    bytes.append(buffer.data(), static_cast<size_t>(count));
    if (bytes.size() > max_bytes) return false;
  }
}

bool write_answer(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(0, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

}  // namespace tuff::platform
