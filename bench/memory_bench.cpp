// Copies on the device, to it and from it, with memcpy between two ordinary arrays as the peer.
#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <stdexcept>

#include "bench/harness.hpp"

namespace bench {
namespace {

void add_row(const std::string& what, uint64_t bytes) {
  const std::string name = fmt::format("{}/{}", what, bytes);
  const uint64_t count = bytes / sizeof(float);
  const auto moved = static_cast<double>(bytes);
  if (what == "copy") {
    add("tuff/" + name, {0, 2 * moved}, 2 * bytes, [=](const tuff::Context& context) {
      auto from = random_buffer(context, count);
      auto to = random_buffer(context, count);
      return [=] { to->copy_from(*from, bytes); };
    });
  } else if (what == "memcpy") {
    add_peer(name, {0, 2 * moved}, [=] {
      auto from = std::make_shared<std::vector<float>>(count, 1.0f);
      auto to = std::make_shared<std::vector<float>>(count, 2.0f);
      return [=] { std::memcpy(to->data(), from->data(), bytes); };
    });
  } else if (what == "upload" || what == "download") {
    const bool upload = what == "upload";
    add("tuff/" + name, {0, moved}, bytes, [=](const tuff::Context& context) {
      auto buffer = random_buffer(context, count);
      auto host = std::make_shared<std::vector<float>>(count, 1.0f);
      return [=] {
        if (upload) {
          buffer->upload(*host);
        } else {
          buffer->download(*host);
        }
      };
    });
  } else {
    throw std::runtime_error(fmt::format("memory.txt: \"{}\" is not one of copy, memcpy, upload, download", what));
  }
}

}  // namespace

void add_memory() {
  for (const auto& row : read_table("memory")) add_row(row.at(0), to_number(row.at(1)));
}

}  // namespace bench
