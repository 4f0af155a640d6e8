// tuff_fuzz: runs random programs of calls on the host backend and on a device in parallel until something differs.
// Each batch runs in a child process, so that a crash is a finding like any other. Findings are shrunk and written to
// a file that --replay runs again.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "fuzz/program.hpp"

// In a library built to count executed lines: writes the counts, which _Exit would lose (tests/coverage/).
extern "C" __attribute__((weak)) void tuff_coverage_dump();

namespace {

using namespace tuff_fuzz;
using Bytes = std::vector<uint8_t>;
using Clock = std::chrono::steady_clock;

struct Options {
  uint64_t calls = ~uint64_t{0};
  double seconds = 60, batch = 0;
  uint64_t seed = 0;
  bool seeded = false, device = true, verbose = false, describe = false;
  std::string corpus, replay, found = ".";
  uint64_t findings = 3;
  uint64_t calm = 6;  // programs without a new kernel before a dialect is added
  uint64_t pool = 0;  // number of dialect sets to choose from; 0: unlimited
};

constexpr int kFailed = 77;
constexpr unsigned kProgramSeconds = 240;  // compiling a kernel may take ten seconds on a busy CPU

// Memory shared by a child and its parent.
struct Shared {
  Counts counts;
  uint64_t pipelines;
  uint64_t size;  // of the current program
  uint8_t program[(kMaxRecords + 1) * kRecord];
  char failure[8192];
};

Shared& shared() {
  static auto* const memory =
      static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return *memory;
}

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

bool run_in(World& world, const Bytes& program) {
  Shared& to = shared();
  to.size = std::min(program.size(), sizeof to.program);
  std::memcpy(to.program, program.data(), to.size);
  alarm(kProgramSeconds);
  try {
    run_program(world, program);
  } catch (const Failure& failure) {
    std::snprintf(to.failure, sizeof to.failure, "%s", failure.text.c_str());
    return false;
  } catch (const std::exception& error) {
    std::snprintf(to.failure, sizeof to.failure, "the fuzzer: %s", error.what());
    return false;
  }
  alarm(0);
  to.counts = world.counts, to.pipelines = world.pipelines();
  return true;
}

// Runs `body` in a child process. Returns its exit status, or the negated number of the signal that ended it.
template <typename F>
int in_child(F&& body) {
  std::fflush(nullptr);
  shared().failure[0] = '\0';
  const pid_t child = fork();
  if (child == 0) {
    int status = kFailed;
    try {
      status = body();
    } catch (const Failure& failure) {
      std::snprintf(shared().failure, sizeof shared().failure, "%s", failure.text.c_str());
    }
    std::fflush(nullptr);
    if (tuff_coverage_dump != nullptr) tuff_coverage_dump();
    std::_Exit(status);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::string told(int status) {
  if (status == kFailed) return shared().failure;
  if (status == -SIGALRM) return "a program without end: more than " + std::to_string(kProgramSeconds) + " s";
  if (status < 0) return std::string("ended by ") + strsignal(-status);
  return "exit status " + std::to_string(status);
}

int try_program(const Options& options, const Bytes& program, bool verbose) {
  return in_child([&] {
    World world(options.device);
    world.verbose = verbose;
    return run_in(world, program) ? 0 : kFailed;
  });
}

// Removes calls, in halves, quarters and so on, as long as the program still fails.
Bytes shrunk(const Options& options, Bytes program) {
  const Clock::time_point begin = Clock::now();
  for (size_t part = std::max<size_t>((program.size() / kRecord - 1) / 2, 1); part >= 1; part /= 2) {
    for (size_t at = 1; at + part <= program.size() / kRecord && since(begin) < 60;) {
      Bytes less = program;
      const auto first = less.begin() + static_cast<std::ptrdiff_t>(at * kRecord);
      less.erase(first, first + static_cast<std::ptrdiff_t>(part * kRecord));
      if (try_program(options, less, false) != 0) {
        program = std::move(less);
      } else {
        at += part;
      }
    }
  }
  return program;
}

Bytes read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "tuff_fuzz: cannot read %s\n", path.c_str());
    std::exit(2);
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

void report(const Options& options, int status) {
  Bytes program(shared().program, shared().program + shared().size);
  std::printf("FOUND: %s\n", told(status).c_str());
  const bool alone = try_program(options, program, false) != 0;
  if (alone) program = shrunk(options, std::move(program));
  uint64_t hash = 14695981039346656037u;
  for (const uint8_t byte : program) hash = (hash ^ byte) * 1099511628211u;
  char name[64];
  std::snprintf(name, sizeof name, "/found-%016llx", static_cast<unsigned long long>(hash));
  const std::string path = options.found + name;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(program.data()), static_cast<std::streamsize>(program.size()));
  if (!alone) {
    std::printf("  not by itself: only after the batch's other programs; the one it ended in is %s\n", path.c_str());
    return;
  }
  std::printf("  %zu calls, in %s:\n", program.size() / kRecord - 1, path.c_str());
  std::fflush(stdout);
  const int again = try_program(options, program, true);
  std::printf("  %s\n", told(again).c_str());
}

int replay(Options options, const std::vector<std::string>& files) {
  int failed = 0;
  for (const std::string& file : files) {
    const int status = try_program(options, read_file(file), options.verbose);
    std::printf("%s: %s\n", file.c_str(), status == 0 ? "passes" : told(status).c_str());
    failed += status != 0;
  }
  std::printf("%zu programs, %d failed\n", files.size(), failed);
  return failed != 0;
}

int fuzz(const Options& options) {
  const Clock::time_point begin = Clock::now();
  Counts all;
  uint64_t batches = 0, findings = 0, pipelines = 0;
  Draw seeds(options.seed);
  const double batch = options.batch > 0 ? options.batch : options.device ? 60 : 30;
  while (since(begin) < options.seconds && all.calls < options.calls && findings < options.findings) {
    const uint64_t seed = seeds.next();
    shared().counts = {};
    const int status = in_child([&] {
      const Clock::time_point start = Clock::now();
      World world(options.device);
      Draw draw(seed);
      const uint64_t dialects = options.pool != 0 ? draw.below(options.pool) : draw.next();
      // A device has to compile kernels for each dialect, which takes about a CPU second. A dialect is added only
      // after some programs have needed no new kernel, so that most of the time goes into calls.
      uint8_t count = options.device ? 2 : 0;
      uint64_t kernels = 0;
      for (uint64_t calm = 0;
           since(start) < batch && since(begin) < options.seconds && all.calls + world.counts.calls < options.calls;
           ++calm) {
        const size_t records = draw.between(4, options.device ? 80 : 60);
        if (!run_in(world, draw_program(draw, dialects, count, records))) return kFailed;
        if (const uint64_t now = shared().pipelines; now != kernels) kernels = now, calm = 0;
        if (options.device && calm >= options.calm && count < 200) ++count, calm = 0;
      }
      return 0;
    });
    ++batches, pipelines += shared().pipelines;
    const Counts& one = shared().counts;
    all.programs += one.programs, all.calls += one.calls, all.refusals += one.refusals;
    all.compared += one.compared, all.unjudged += one.unjudged, all.launches += one.launches;
    if (status != 0) ++findings, report(options, status);
  }
  const double took = since(begin);
  std::printf(
      "%llu calls in %.1f s (%.0f a second), %llu programs, %llu batches, %llu kernels; %llu refusals, %llu "
      "comparisons of memory, %llu results not judged, %llu launches of graphs; %llu findings\n",
      static_cast<unsigned long long>(all.calls), took, static_cast<double>(all.calls) / took,
      static_cast<unsigned long long>(all.programs), static_cast<unsigned long long>(batches),
      static_cast<unsigned long long>(pipelines), static_cast<unsigned long long>(all.refusals),
      static_cast<unsigned long long>(all.compared), static_cast<unsigned long long>(all.unjudged),
      static_cast<unsigned long long>(all.launches), static_cast<unsigned long long>(findings));
  return findings != 0;
}

[[noreturn]] void usage(const char* wrong) {
  std::fprintf(stderr,
               "tuff_fuzz: %s\n"
               "tuff_fuzz [--calls N] [--seconds S] [--seed X] [--backend both|host] [--findings N] [--found DIR]\n"
               "          [--batch S]   seconds for which a process runs, with one set of dialects\n"
               "          [--calm N]    programs that need no new kernel before there is another dialect\n"
               "          [--pool N]    sets of dialects to take from: kernels that the driver's cache has by then\n"
               "tuff_fuzz --corpus DIR | --replay FILE [--verbose]   programs that were found\n"
               "tuff_fuzz --describe                                 what of the ABI is in no description\n",
               wrong);
  std::exit(2);
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (name == "--verbose" || name == "--describe") {
      (name == "--verbose" ? options.verbose : options.describe) = true;
      continue;
    }
    if (i + 1 == count) usage(("no value for " + name).c_str());
    const char* const value = arguments[++i];
    char* end = nullptr;
    const auto number = [&] {
      const uint64_t parsed = std::strtoull(value, &end, 0);
      if (*value == '\0' || *end != '\0') usage((name + " takes a number").c_str());
      return parsed;
    };
    if (name == "--calls")
      options.calls = number();
    else if (name == "--seconds")
      options.seconds = static_cast<double>(number());
    else if (name == "--batch")
      options.batch = static_cast<double>(number());
    else if (name == "--seed")
      options.seed = number(), options.seeded = true;
    else if (name == "--findings")
      options.findings = number();
    else if (name == "--calm")
      options.calm = number();
    else if (name == "--pool")
      options.pool = number();
    else if (name == "--corpus")
      options.corpus = value;
    else if (name == "--replay")
      options.replay = value;
    else if (name == "--found")
      options.found = value;
    else if (name == "--backend" && std::strcmp(value, "both") == 0)
      options.device = true;
    else if (name == "--backend" && std::strcmp(value, "host") == 0)
      options.device = false;
    else
      usage(("unknown: " + name + " " + value).c_str());
  }
  return options;
}

}  // namespace

int main(int count, char** arguments) {
  Options options = parse(count, arguments);
  if (options.describe) {
    const std::string missing = undescribed();
    std::fputs(missing.c_str(), stdout);
    return missing.empty() ? 0 : 1;
  }
  if (!options.replay.empty()) return replay(options, {options.replay});
  if (!options.corpus.empty()) {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(options.corpus)) {
      if (entry.path().filename().string().rfind("found-", 0) == 0) files.push_back(entry.path().string());
    }
    std::sort(files.begin(), files.end());
    return replay(options, files);
  }
  if (!options.seeded) options.seed = std::random_device{}();
  std::printf("--seed %llu\n", static_cast<unsigned long long>(options.seed));
  std::fflush(stdout);
  return fuzz(options);
}
