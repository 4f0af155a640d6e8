// What a planner's request for a kernel may contain.
#include "planning/kernel_request.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tuff {
namespace {

constexpr LegalRange kPowers[] = {{1, 2}, {4, 4}}, kFlags[] = {{0, 1}};
constexpr DefineInfo kDefines[] = {{"TUFF_WIDTH", kPowers}, {"TUFF_FLAG", kFlags}};
constexpr KernelSource kSource{"example", "", kDefines};

std::string complaint(const KernelRequest& request) {
  try {
    check_defines(request);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TUFF_ERROR_INTERNAL);
    return error.what();
  }
  return "";
}

TEST(KernelRequests, DefinesAreCompleteAndLegal) {
  for (const int64_t width : {-1, 0, 1, 2, 3, 4, 5}) {
    const std::string text = complaint(KernelRequest(kSource).define("TUFF_WIDTH", width).define("TUFF_FLAG", 1));
    const bool legal = width == 1 || width == 2 || width == 4;
    EXPECT_EQ(text.empty(), legal) << width << ": " << text;
    if (!legal) {
      EXPECT_NE(text.find("example is built with TUFF_WIDTH"), std::string::npos) << text;
    }
  }
  const std::string text = complaint(KernelRequest(kSource).define("TUFF_WIDTH", 1));
  EXPECT_NE(text.find("example is built without TUFF_FLAG"), std::string::npos) << text;
}

TEST(KernelRequests, TablesHaveASize) {
  KernelRequest request(kSource);
  for (uint32_t i = 0; i < KernelRequest::kMaxDefines; ++i) request.define("TUFF_WIDTH", 1);
  EXPECT_THROW(request.define("TUFF_WIDTH", 1), Error);
  for (uint32_t i = 0; i < KernelRequest::kMaxConstants; ++i) request.constant(i, 1);
  EXPECT_THROW(request.constant(0, 1), Error);
  EXPECT_EQ(request.define_count(), KernelRequest::kMaxDefines);
  EXPECT_EQ(request.constant_count(), KernelRequest::kMaxConstants);
}

}  // namespace
}  // namespace tuff
