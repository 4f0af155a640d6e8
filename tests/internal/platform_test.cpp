// What descriptors refer to, and disks that are full.
#include "platform/platform.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "planning/dispatch.hpp"
#include "planning/status.hpp"

namespace tuff::platform {
namespace {

TEST(Descriptors, OtherThanMemoryAreNamed) {
  char folder[] = "/tmp/tuff-descriptors-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string link = std::string(folder) + "/link", file = std::string(folder) + "/file";
  ASSERT_EQ(::symlink("file", link.c_str()), 0);
  int pipes[2], sockets[2];
  ASSERT_EQ(::pipe(pipes), 0);
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  struct Row {
    int descriptor;
    const char* text;
  };
  const Row rows[] = {
      {::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600), "a file"},
      {::open(file.c_str(), O_PATH | O_CLOEXEC), "a path (O_PATH)"},
      {::open(link.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC), "a link"},
      {::open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), "a directory"},
      {::open("/dev/null", O_RDWR | O_CLOEXEC), "a terminal or a memory device"},
      {::eventfd(0, EFD_CLOEXEC), "an event, timer or signal descriptor"},
      {pipes[0], "a pipe"},
      {pipes[1], "a pipe"},
      {sockets[0], "a socket"},
      {sockets[1], "a socket"},
  };
  for (const Row& row : rows) {
    ASSERT_GE(row.descriptor, 0) << row.text;
    const DescriptorFacts facts = inspect_descriptor(row.descriptor);
    EXPECT_EQ(facts.kind, DescriptorKind::other) << row.text;
    EXPECT_STREQ(facts.name, row.text);
    EXPECT_EQ(::close(row.descriptor), 0);
    EXPECT_EQ(inspect_descriptor(row.descriptor).kind, DescriptorKind::closed);
  }
  std::filesystem::remove_all(folder);
}

// A file that cannot grow stands for a full disk.
TEST(FullDisk, TrialsAreImpossible) {
  char folder[] = "/tmp/tuff-full-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::filesystem::path path = std::filesystem::path(folder) / "trial";
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  rlimit none = limit;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  TrialMarker::State state{};
  {
    const TrialMarker marker(path);
    state = marker.state();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, before);
  EXPECT_EQ(state, TrialMarker::State::impossible);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(TrialMarker(path).state(), TrialMarker::State::taken);
  std::filesystem::remove_all(folder);
}

TEST(DispatchLimits, TooManyMatricesAreAnError) {
  Dispatch dispatch("test");
  EXPECT_THROW(dispatch.operand_each(nullptr, Dispatch::kMaxEach + 1, 4, Access::read), Error);
}

}  // namespace
}  // namespace tuff::platform
