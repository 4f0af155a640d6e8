#include "planning/kernel_request.hpp"

#include <string_view>
#include <utility>

namespace tuff {
namespace {

uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

KernelBody::KernelBody(std::string generated) : text(std::move(generated)), hash(hash_of(text)) {}

void check_defines(const KernelRequest& request) {
  for (const DefineInfo& info : request.source().defines) {
    const auto* const end = request.defines() + request.define_count();
    const auto* const define = std::find_if(
        request.defines(), end, [&](const auto& given) { return std::string_view(given.name) == info.name; });
    if (define == end) fail(TUFF_ERROR_INTERNAL, "{} is built without {}", request.source().name, info.name);
    const bool legal = std::any_of(info.legal.begin(), info.legal.end(), [&](const LegalRange& range) {
      return define->value >= range.first && define->value <= range.last;
    });
    if (!legal) {
      fail(TUFF_ERROR_INTERNAL, "{} is built with {} = {}, which is not among its legal values", request.source().name,
           info.name, define->value);
    }
  }
}

}  // namespace tuff
