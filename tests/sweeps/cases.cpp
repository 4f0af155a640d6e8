#include "sweeps/cases.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "fuzz/numbers.hpp"

namespace tuff_sweep {
namespace {

using tuff_fuzz::Description;
using tuff_fuzz::Draft;
using tuff_fuzz::Draw;
using tuff_fuzz::Extents;
using tuff_fuzz::Operand;

constexpr uint64_t kDevices = 8;  // limited ones, for each request of a pool

uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0;
  for (const char c : text) hash = mix(hash, static_cast<uint8_t>(c));
  return hash;
}

const Description& description_of(const char* function) {
  for (const Description& each : tuff_fuzz::descriptions()) {
    if (std::strcmp(each.function, function) == 0) return each;
  }
  throw std::logic_error(std::string("no description of ") + function);
}

// Variants that compute few of all requests. The others of a family compute all, or depend on sizes only.
bool suits(const std::string& variant, const Draft& draft) {
  const auto is = [&](const char* name, size_t index, uint64_t value) { return draft.call.get(name, index) == value; };
  if (variant.starts_with("winograd")) {
    return is("precision", 0, TUFF_PRECISION_ALLOW_WINOGRAD) && is("groups", 0, 1) && is("stride", 0, 1) &&
           is("stride", 1, 1) && is("filter_shape", 2, 3) && is("filter_shape", 3, 3);
  }
  if (variant == kTransposed) return draft.has("output_padding");
  if (variant == kDepthwise) {
    const bool forward = draft.has("groups") && !draft.has("output_padding");
    return forward && !is("groups", 0, 0) && !is("groups", 0, 1) && is("filter_shape", 1, 1);
  }
  // These share their inputs' types with cooperative matrices or take one type alone.
  if (variant == "panels") return draft.call.find("batch_count") < 0 && is("dtype", 0, TUFF_F32);
  return true;
}

// Sizes from 0 to kLargest whose product is within a budget, except for the swept one.
std::vector<uint64_t> draw_sizes(Draw& draw, size_t count, size_t swept, uint64_t value, bool vectors) {
  std::vector<uint64_t> sizes(count);
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = 1; i < count; ++i) std::swap(order[i], order[draw.below(i + 1)]);
  // Small sizes show most errors, and large ones cost most of the time.
  const uint64_t budget = draw.one_in(24) ? 300'000 : draw.one_in(2) ? 20'000 : 2'000;
  // Vector accesses need sizes that are multiples.
  const uint64_t multiple = vectors ? 8 : draw.one_in(3) ? draw.of<uint64_t>({4, 8}) : 1;
  uint64_t product = 1;
  if (swept < count) sizes[swept] = value, product = std::max<uint64_t>(value, 1);
  for (const size_t i : order) {
    if (i == swept) continue;
    const uint64_t most = std::clamp<uint64_t>(budget / product, 1, kLargest);
    uint64_t size = 0;
    switch (draw.below(4)) {
      case 0: size = draw.below(5); break;
      case 1: size = draw.of<uint64_t>({3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33}); break;
      default: size = draw.below(kLargest + 1);
    }
    size = std::min(size, most);
    if (multiple <= most && (vectors || !draw.one_in(8))) size = (size + multiple - 1) / multiple * multiple;
    sizes[i] = std::min(size, most);
    product *= std::max<uint64_t>(sizes[i], 1);
  }
  return sizes;
}

// Makes one size longer than all that are swept, one time in `times`. The product stays below the elements that the
// shortest descriptor of a limited device holds: planners rely on rows that are shorter than that.
void lengthen(Draw& draw, std::vector<uint64_t>& sizes, uint64_t times) {
  constexpr uint64_t kMaxElements = 120'000;
  const auto others = [&](size_t which) {
    uint64_t product = 1;
    for (size_t i = 0; i < sizes.size(); ++i) product *= i == which ? 1 : std::max<uint64_t>(sizes[i], 1);
    return product;
  };
  for (size_t i = 0; i < sizes.size(); ++i) {
    sizes[i] = std::min(sizes[i], std::max<uint64_t>(kMaxElements / others(i), 1));
  }
  if (!draw.one_in(times)) return;
  const size_t which = draw.below(sizes.size());
  const uint64_t length = kLargest + 1 + draw.below(uint64_t{64} << draw.below(8));
  sizes[which] = std::max(sizes[which], std::min(length, kMaxElements / others(which)));
}

// Any offsets; or multiples of 16 bytes, as vector accesses need them, except for one operand or none.
std::vector<uint64_t> draw_offsets(Draw& draw, const std::vector<Operand>& operands, bool vectors) {
  const uint64_t way = vectors ? 3 : draw.below(4), other = operands.empty() ? 0 : draw.below(operands.size());
  std::vector<uint64_t> offsets;
  for (size_t i = 0; i < operands.size(); ++i) {
    const uint64_t unit = tuff_fuzz::size_of(operands[i].dtype), any = draw.below(kMaxOffset / unit + 1) * unit;
    const bool free = way < 2 || (way == 2 && i == other);
    offsets.push_back(free ? any : any / unit % 2 * 16);
  }
  return offsets;
}

}  // namespace

uint64_t mix(uint64_t a, uint64_t b) { return Draw(a * 0x9e3779b97f4a7c15 + b).next(); }

// 25,169 has no factor in common with 34^3.
uint64_t triple_of(uint64_t turn) { return (turn - turn / 8) % kTriples * 25'169 % kTriples; }

Cases::Request Cases::request(uint64_t number) const {
  const uint64_t variant = hash_of(forced_.name());
  Request result;
  result.number = number;
  const std::vector<const char*>& functions = forced_.family->functions;
  for (uint64_t attempt = 0; attempt < 5000; ++attempt) {
    uint64_t slot = mix(mix(seed_, number), attempt);
    if (pool_ != 0) slot = slot % pool_;
    result.shapes = mix(mix(variant, slot), pool_ != 0 ? attempt : 0);
    result.description = &description_of(functions[mix(result.shapes, 1) % functions.size()]);
    bool suitable = true;
    // Sizes, strides and dilations are drawn for each case.
    for (uint64_t drawn = 0; drawn < 6 && suitable; ++drawn) {
      Extents some;
      Draw sizes(mix(slot, drawn));
      if (drawn > 0) some.values = draw_sizes(sizes, result.extents, Extents::kNone, 0, false);
      Draft probe(tuff_fuzz::function_of(result.description->function), Draw(result.shapes), Draw(mix(slot, drawn)));
      probe.extents = &some;
      result.description->draw(probe);
      result.extents = some.asked;
      suitable = suits(forced_.variant, probe);
    }
    // With a pool as many devices have to do, so that their kernels are cached.
    result.device = mix(seed_, number) % (pool_ != 0 ? kDevices * pool_ : ~uint64_t{0});
    if (suitable) return result;
  }
  throw std::logic_error("no request suits " + forced_.name());
}

Cases::Case Cases::at(const Request& request, uint64_t turn) const {
  const uint64_t seed = mix(mix(mix(seed_, hash_of(forced_.name())), request.number), turn);
  Draw draw(mix(seed, 1));
  Case result;
  result.name = forced_.name() + ":" + std::to_string(seed_) + ":" + std::to_string(request.number) + ":" +
                std::to_string(turn) + (pool_ != 0 ? ":" + std::to_string(pool_) : "");
  result.extents = std::make_unique<Extents>();
  Extents& extents = *result.extents;
  // These take rows of whole 16 bytes alone.
  const bool vectors = forced_.variant.starts_with("split_") && !draw.one_in(4);
  const bool gemm = forced_.family->name == "gemm";
  if (request.extents != 0) {
    extents.swept = turn % request.extents;
    const uint64_t value = turn / request.extents % (kLargest + 1);
    if (gemm) {
      const bool batch = request.extents > 3 && turn % 8 == 7;
      extents.swept = batch ? 3 : Extents::kNone;
      extents.values = draw_sizes(draw, request.extents, extents.swept, turn / 8 % (kLargest + 1), vectors);
      if (!batch) {
        const uint64_t triple = triple_of(turn);
        extents.values[0] = triple % 34, extents.values[1] = triple / 34 % 34, extents.values[2] = triple / 34 / 34;
      }
    } else {
      extents.values = draw_sizes(draw, request.extents, extents.swept, value, vectors);
    }
  }
  if (lengths_ != 0 && !extents.values.empty()) lengthen(draw, extents.values, lengths_);
  result.draft = std::make_unique<Draft>(tuff_fuzz::function_of(request.description->function), Draw(request.shapes),
                                         Draw(mix(seed, 2)));
  result.draft->extents = &extents;
  request.description->draw(*result.draft);
  result.offsets = draw_offsets(draw, result.draft->operands, vectors);
  return result;
}

}  // namespace tuff_sweep
