// Tables of tuned choices: what is read, and that anything else in a file is rejected with a reason.
#include "planning/tuning_table.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/tuning_file.hpp"

namespace tuff {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIdentity =
    R"("uuid": "00ff", "name": "a device", "driver": "a driver 1.2", "driver_version": 7, "library": "0.2.0")";
constexpr const char* kChoice =
    R"({"operation": "gemm", "form": "nn f32 f32 f32", "sizes": [512, 512, 512, 1], "variant": "tile_64x64", "slices": 2})";

TuningDevice a_device() { return {"00ff", "a device", "a driver 1.2", 7, "0.2.0"}; }

std::string table_of(const std::string& choices, const std::string& identity = kIdentity) {
  return R"({"tuff_tuning": 1, "devices": [{)" + identity + R"(, "choices": [)" + choices + "]}]}";
}

// Replaces a part that occurs once.
std::string with(std::string text, const std::string& part, const std::string& other) {
  const size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return text.replace(at, part.size(), other);
}

void expect_refused(const std::string& text, const std::string& why) {
  try {
    const TuningTable table(text, a_device());
    ADD_FAILURE() << "was read: " << text.substr(0, 200);
  } catch (const TuningError& error) {
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what() << "\nis not: " << why;
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
}

TuningKey key(uint64_t m, uint64_t n, uint64_t k, uint64_t batch, const char* form = "nn f32 f32 f32") {
  TuningKey result("gemm");
  result.word(form).size(m).size(n).size(k).size(batch);
  return result;
}

TEST(TuningTable, BucketsAreHalfOctaves) {
  for (int octave = 0; octave < 64; ++octave) EXPECT_EQ(size_bucket(uint64_t{1} << octave), 2 * octave);
  EXPECT_EQ(size_bucket(3), 3);
  EXPECT_EQ(size_bucket(~uint64_t{0}), 128);
  // The least sizes of the next buckets: 2^(octave + 1/4) and 2^(octave + 3/4), to 17 bits.
  for (int shift = 0; shift < 47; ++shift) {
    const int octave = 16 + shift;
    EXPECT_EQ(size_bucket((uint64_t{77936} << shift) - 1), 2 * octave);
    EXPECT_EQ(size_bucket(uint64_t{77936} << shift), 2 * octave + 1);
    EXPECT_EQ(size_bucket((uint64_t{110218} << shift) - 1), 2 * octave + 1);
    EXPECT_EQ(size_bucket(uint64_t{110218} << shift), 2 * octave + 2);
  }
  uint8_t before = 0;
  for (uint64_t size = 1; size < 200'000; ++size) {
    const uint8_t bucket = size_bucket(size);
    EXPECT_GE(bucket, before);
    before = bucket;
    // Skips values at the edges, where the constants are rounded.
    const double exact = 2 * std::log2(static_cast<double>(size)), off = std::abs(exact - std::floor(exact) - 0.5);
    if (off > 1e-4) {
      EXPECT_EQ(bucket, std::lround(exact)) << size;
    }
  }
}

TEST(TuningTable, FindsTheBucketAndNothingElse) {
  const TuningTable table(table_of(kChoice), a_device());
  ASSERT_EQ(table.size(), 1u);
  const TunedChoice* found = table.find(key(512, 512, 512, 1));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->variant, "tile_64x64");
  EXPECT_EQ(found->slices, 2u);
  EXPECT_EQ(table.find(key(600, 440, 512, 1)), found) << "the edges are at 431 and 608";
  EXPECT_EQ(table.find(key(430, 512, 512, 1)), nullptr);
  EXPECT_EQ(table.find(key(609, 512, 512, 1)), nullptr);
  EXPECT_EQ(table.find(key(512, 512, 512, 2)), nullptr);
  EXPECT_EQ(table.find(key(512, 512, 512, 1, "nt f32 f32 f32")), nullptr);
  EXPECT_EQ(table.find(TuningKey("gemm").word("nn f32 f32 f32").size(512).size(512).size(512)), nullptr);
  EXPECT_TRUE(TuningTable().empty());
  EXPECT_EQ(TuningTable().find(key(512, 512, 512, 1)), nullptr);
}

TEST(TuningTable, WhatWasMeasuredAndKeptIsNoChoice) {
  const std::string kept = with(kChoice, R"("variant": "tile_64x64", )", "");
  EXPECT_TRUE(TuningTable(table_of(kept), a_device()).empty());
  EXPECT_TRUE(TuningTable(table_of(""), a_device()).empty());
}

TEST(TuningTable, UnknownNamesAreSkipped) {
  const std::string more = with(kChoice, "{", R"({"seconds": 1e-3, "note": [{}, null], )");
  EXPECT_EQ(TuningTable(table_of(more, std::string(R"("later": {"x": 1}, )") + kIdentity), a_device()).size(), 1u);
}

TEST(TuningTable, RefusesWhatIsNoTable) {
  const std::string good = table_of(kChoice);
  ASSERT_EQ(TuningTable(good, a_device()).size(), 1u);
  for (size_t bytes = 0; bytes < good.size(); ++bytes) expect_refused(good.substr(0, bytes), "it is not JSON");
  expect_refused(good + "x", "it is not JSON");
  expect_refused("\xff\xfe", "it is not JSON");
  expect_refused(std::string("{\"tuff_tuning\": 1\0}", 19), "it is not JSON");
  expect_refused("1e999", "it is not JSON");
  expect_refused("[]", "the table is array, needs to be an object");
  expect_refused("{}", "lacks \"tuff_tuning\"");
  expect_refused(with(good, "\"tuff_tuning\": 1", "\"tuff_tuning\": 2"),
                 "of format 2, this version of the library reads 1");
  expect_refused(with(good, "\"tuff_tuning\": 1", "\"tuff_tuning\": \"1\""), "tuff_tuning is not an integer");
  expect_refused(R"({"tuff_tuning": 1})", "lacks \"devices\"");
  expect_refused(R"({"tuff_tuning": 1, "devices": {}})", "devices is object, needs to be an array");
  expect_refused(R"({"tuff_tuning": 1, "devices": [7]})", "devices[0] is number, needs to be an object");
  for (const char* name : {"uuid", "name", "driver", "driver_version", "library"}) {
    const std::string quoted = '"' + std::string(name) + '"';
    expect_refused(with(good, quoted, "\"other\""), "devices[0] lacks " + quoted);
  }
  expect_refused(with(good, "\"a device\"", "[]"), "devices[0].name is array, needs to be a string");
  expect_refused(with(good, "\"a device\"", '"' + std::string(2000, 'x') + '"'), "devices[0].name has 2000 characters");
  expect_refused(with(good, "\"driver_version\": 7", "\"driver_version\": 5000000000"), "needs 0 to 4294967295");
  expect_refused(std::string(TuningTable::kMaxBytes + 1, ' '), "at most 4194304 are read");
  expect_refused(std::string(TuningTable::kMaxBytes, ' '), "it is not JSON");
  EXPECT_EQ(TuningTable(good + std::string(TuningTable::kMaxBytes - good.size(), ' '), a_device()).size(), 1u);
  expect_refused(std::string(8, '[') + std::string(8, ']'), "the table is array");
  expect_refused(std::string(9, '[') + std::string(9, ']'), "nested more than 8 deep");
  expect_refused(std::string(1'000'000, '['), "nested more than");
  expect_refused(R"({"tuff_tuning": 1, "tuff_tuning": 1, "devices": []})", "a name comes twice");
}

TEST(TuningTable, RefusesChoicesThatMakeNoSense) {
  const auto refused = [](const std::string& part, const std::string& other, const std::string& why) {
    expect_refused(table_of(with(kChoice, part, other)), "devices[0].choices[0]" + why);
  };
  expect_refused(table_of("7"), "devices[0].choices[0] is number, needs to be an object");
  refused("\"operation\"", "\"x\"", " lacks \"operation\"");
  refused("\"gemm\"", "1", ".operation is number");
  refused("\"gemm\"", "\"\"", ".operation has 0 characters");
  refused("\"gemm\"", "\"a name that no operation ever has\"", ".operation has 33 characters");
  refused("nn f32 f32 f32", std::string(100, 'n'), ".form has 100 characters");
  refused("nn f32 f32 f32", std::string(42, 'n'), ".form has 42 characters");
  EXPECT_NO_THROW(TuningTable(table_of(with(kChoice, "nn f32 f32 f32", std::string(41, 'n'))), a_device()));
  refused("[512, 512, 512, 1]", "[]", ".sizes has 0 numbers");
  refused("[512, 512, 512, 1]", "[1,1,1,1,1,1,1,1,1]", ".sizes has 9 numbers");
  EXPECT_EQ(TuningTable(table_of(with(kChoice, "[512, 512, 512, 1]", "[1,1,1,1,1,1,1,1]")), a_device()).size(), 1u);
  refused("[512, 512, 512, 1]", "512", ".sizes is number, needs to be an array");
  refused("[512, ", "[0, ", ".sizes[0] is 0, needs 1");
  refused("[512, ", "[-512, ", ".sizes[0] is not an integer");
  refused("[512, ", "[512.5, ", ".sizes[0] is not an integer");
  refused("[512, ", "[1e30, ", ".sizes[0] is not an integer");
  refused("\"tile_64x64\"", "null", ".variant is null");
  refused("tile_64x64", std::string(65, 'x'), ".variant has 65 characters");
  refused("\"slices\": 2", "\"slices\": 257", ".slices is 257, needs 0 to 256");
  refused("\"slices\": 2", "\"slices\": true", ".slices is not an integer");
  const std::string same_bucket = with(kChoice, "512", "500");
  expect_refused(table_of(std::string(kChoice) + ", " + same_bucket),
                 "choices[1] is for the same call as devices[0].choices[0]");
}

TEST(TuningTable, OtherDevicesAndVersionsAreOthers) {
  const auto refused = [](const char* part, const char* other, const std::string& why) {
    expect_refused(table_of(kChoice, with(kIdentity, part, other)), why);
  };
  refused("00ff", "00fe", "it has no choices for this device, a device (00ff)");
  refused("driver 1.2", "driver 1.3", "it was measured with tuff 0.2.0 and driver \"a driver 1.3\" (version 7)");
  refused(": 7", ": 8", "(version 8); here they are 0.2.0");
  refused("0.2.0", "0.1.0", "it was measured with tuff 0.1.0");
  // One section for each device; a broken choice for another device does not matter here.
  const std::string section = std::string("{") + kIdentity + R"(, "choices": [)" + kChoice + "]}";
  const std::string other = with(with(section, "00ff", "00fe"), "512", "\"x\"");
  const auto devices = [](const std::string& list) { return R"({"tuff_tuning": 1, "devices": [)" + list + "]}"; };
  EXPECT_EQ(TuningTable(devices(other + ", " + section), a_device()).size(), 1u);
  expect_refused(devices(section + ", " + section), "devices[1] is the same as devices[0]");
  expect_refused(devices(""), "no choices for this device");
}

// Text from some other program's file is not quoted in the log.
TEST(TuningTable, QuotesNothingOfWhatIsNoTable) {
  try {
    const TuningTable table("root:secret:0:0", a_device());
    ADD_FAILURE();
  } catch (const TuningError& error) {
    EXPECT_EQ(std::string(error.what()).find("secret"), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find("root"), std::string::npos) << error.what();
  }
}

class TuningFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tuff-tuning-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    for (const char* name : kVariables) {
      const char* value = std::getenv(name);
      before_.emplace_back(value != nullptr ? value : "");
    }
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
    unsetenv("TUFF_TUNING");
  }
  void TearDown() override {
    for (size_t i = 0; i < before_.size(); ++i) setenv(kVariables[i], before_[i].c_str(), 1);
    fs::remove_all(folder_);
  }
  fs::path write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  // A table requested by TUFF_TUNING is ignored for this reason.
  void expect_ignored(const fs::path& path, const std::string& why) {
    setenv("TUFF_TUNING", path.c_str(), 1);
    const UserTuning user = load_tuning(a_device());
    EXPECT_TRUE(user.table.empty());
    EXPECT_EQ(user.path, path);
    EXPECT_NE(user.problem.find(why), std::string::npos) << user.problem << "\nis not: " << why;
  }

  static constexpr const char* kVariables[] = {"XDG_CACHE_HOME", "TUFF_TUNING"};
  std::vector<std::string> before_;
  fs::path folder_;
};

TEST_F(TuningFile, IsTheUsersUnlessAnotherIsNamed) {
  UserTuning user = load_tuning(a_device());
  EXPECT_TRUE(user.table.empty());
  EXPECT_EQ(user.problem, "") << "there is no table, so there is nothing to report";
  write(folder_ / "tuff" / "tuning.json", table_of(kChoice));
  user = load_tuning(a_device());
  EXPECT_EQ(user.table.size(), 1u);
  EXPECT_EQ(user.problem, "");
  const fs::path other = write(folder_ / "other.json", table_of(""));
  setenv("TUFF_TUNING", other.c_str(), 1);
  EXPECT_TRUE(load_tuning(a_device()).table.empty());
  setenv("TUFF_TUNING", "off", 1);
  user = load_tuning(a_device());
  EXPECT_TRUE(user.table.empty());
  EXPECT_EQ(user.problem, "");
}

TEST_F(TuningFile, WhatCannotBeReadIsIgnoredAndSaid) {
  expect_ignored(folder_ / "missing.json", "No such file");
  expect_ignored(folder_, "it is not a regular file");
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  expect_ignored(pipe, "it is not a regular file");
  expect_ignored(write(folder_ / "empty", ""), "it is not JSON");
  expect_ignored(write(folder_ / "bytes", std::string("\0\1\2\3", 4)), "it is not JSON");
  expect_ignored(write(folder_ / "foreign", table_of(kChoice, with(kIdentity, "00ff", "00fe"))),
                 "no choices for this device");
  const fs::path huge = write(folder_ / "huge", "");
  fs::resize_file(huge, uint64_t{1} << 40);
  expect_ignored(huge, "it holds 1099511627776 bytes");
  // Without the right to read it; if the test runs as root, another user tries.
  const fs::path secret = write(folder_ / "secret", table_of(kChoice));
  ASSERT_EQ(chmod(secret.c_str(), 0), 0);
  const bool everything = geteuid() == 0;
  if (everything) {
    ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
    ASSERT_EQ(seteuid(65534), 0);
  }
  expect_ignored(secret, "Permission denied");
  if (everything) {
    ASSERT_EQ(seteuid(0), 0);
  }
}

}  // namespace
}  // namespace tuff
