// Chooses the variant that computes a GEMM: the one that is forced, or tuned for its size, or else the best by the
// model of its kind of kernel.
#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/gemm/gemm_plan.hpp"
#include "kernels/gemm/panels/gemm_panels.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/status.hpp"

namespace tuff::gemm {
namespace {

void offer_all(const Recorder& recorder, const Plan& plan, Offers& offers) {
  offer_tiny(recorder.traits(), plan.args, offers);
  offer_skinny(recorder.traits(), plan, offers);
  offer_narrow(recorder.traits(), plan, offers);
  offer_native(recorder.traits(), plan, offers);
  offer_split(recorder.traits(), plan, offers);
  offer_dmma(recorder.traits(), plan, offers);
  offer_matrices(recorder.traits(), plan.args, offers);
  offer_panels(recorder, plan, offers);
  offer_tiles(recorder, plan, offers);
}

bool is_variant(std::string_view name) {
  constexpr std::string_view kOthers[] = {"panels", "skinny", "tiny_lanes", "tiny_columns"};
  return is_tile_variant(name) || is_matrix_variant(name) || is_native_variant(name) || is_narrow_variant(name) ||
         is_split_variant(name) || is_dmma_variant(name) ||
         std::find(std::begin(kOthers), std::end(kOthers), name) != std::end(kOthers);
}

Choice choice_of(const Offers& offers, Why why) {
  Choice choice;
  choice.offer = offers.best();
  choice.why = why;
  if (offers.next() != nullptr) choice.next = *offers.next();
  return choice;
}

Choice choose_by_model(const Recorder& recorder, const Plan& plan) {
  const DeviceTraits& traits = recorder.traits();
  Offers offers;  // each kind is asked only if the ones before it offered nothing
  offer_tiny(traits, plan.args, offers);
  if (!offers.found()) offer_narrow(traits, plan, offers);
  if (!offers.found() && is_few(plan.args)) offer_skinny(traits, plan, offers);
  if (!offers.found()) offer_native(traits, plan, offers);
  if (!offers.found()) offer_split(traits, plan, offers);
  if (!offers.found()) offer_dmma(traits, plan, offers);
  // Cooperative matrices compute five to sixteen rows or columns at the speed of memory.
  if (!offers.found()) offer_matrices(traits, plan.args, offers);
  if (!offers.found()) offer_skinny(traits, plan, offers);
  if (!offers.found()) offer_panels(recorder, plan, offers);
  if (!offers.found()) offer_tiles(recorder, plan, offers);
  if (!offers.found()) fail(TUFF_ERROR_UNSUPPORTED, "no tile of gemm fits the device");
  return choice_of(offers, Why::model);
}

}  // namespace

std::string_view forced_variant() {
  const std::optional<std::string>& name = tuff::forced_variant<"TUFF_GEMM_VARIANT">();
  return name ? std::string_view(*name) : std::string_view();
}

Choice choose(const Recorder& recorder, const Plan& plan) {
  const std::string_view forced = forced_variant();
  if (!forced.empty() && forced != "wide") {
    Offers named(forced), tiles;
    offer_all(recorder, plan, named);
    if (named.found()) return choice_of(named, Why::forced);
    require(is_variant(forced), "TUFF_GEMM_VARIANT={} is not a variant of gemm", forced);
    offer_tiles(recorder, plan, tiles);
    return tiles.found() ? choice_of(tiles, Why::model) : choose_by_model(recorder, plan);
  }
  const TuningTable* table = recorder.tuning();
  const TunedChoice* tuned = table != nullptr && !table->empty() ? table->find(gemm_key(plan.args)) : nullptr;
  if (tuned == nullptr) return choose_by_model(recorder, plan);
  Offers named(tuned->variant);
  offer_all(recorder, plan, named);
  if (named.found()) {
    Choice choice = choice_of(named, Why::tuned);
    // Panels take k block by block, and tiny matrices take all of it at once: neither splits k.
    const bool whole = choice.offer.kind == Kind::panels || choice.offer.kind == Kind::tiny;
    if (!whole) choice.slices = tuned->slices;
    return choice;
  }
  Choice choice = choose_by_model(recorder, plan);
  choice.unfit = tuned;
  if (!tuned->reported) {
    tuned->reported = true;
    log(TUFF_LOG_WARNING, "tuning: {} for {} {}x{}x{} does not run here; ignored", tuned->variant,
        gemm_key(plan.args).text(), plan.args.m, plan.args.n, plan.args.k);
  }
  return choice;
}

std::string reason(const Plan& plan) {
  const Choice& choice = plan.choice;
  if (choice.why == Why::forced) return "forced";
  if (choice.why == Why::tuned) return "tuned";
  const std::string unfit =
      choice.unfit != nullptr ? fmt::format("; tuned {} does not run", choice.unfit->variant) : "";
  switch (choice.offer.kind) {
    case Kind::tiny:
      return fmt::format("model: {} matrices of {} elements{}", plan.args.batch_count, plan.args.m * plan.args.n,
                         unfit);
    case Kind::skinny: return fmt::format("model: {} rows or columns{}", std::min(plan.args.m, plan.args.n), unfit);
    case Kind::panels:
      return fmt::format("model: whole tiles compute {:.2f} times the operations{}", choice.offer.time, unfit);
    case Kind::native:
    case Kind::narrow:
    case Kind::split:
    case Kind::dmma:
    case Kind::matrices:
    case Kind::tiles: break;
  }
  if (choice.next.name == nullptr) return fmt::format("model: no other variant fits{}", unfit);
  return fmt::format("model: {} would take {:.2f} times as long{}", choice.next.name,
                     choice.next.time / choice.offer.time, unfit);
}

std::vector<Offer> list_variants(const Recorder& recorder, const Plan& plan) {
  std::vector<Offer> all;
  Offers offers(all);
  offer_all(recorder, plan, offers);
  const Offer& chosen = plan.choice.offer;
  std::stable_sort(all.begin(), all.end(),
                   [](const Offer& x, const Offer& y) { return x.kind != y.kind ? x.kind < y.kind : x.time < y.time; });
  // The order is: the chosen variant, the best of each other kind, the rest of its own kind, the rest of the others. A
  // tuner that stops when times get worse has then measured each kind.
  const auto rank = [&](const Offer& offer) {
    if (offer.name == chosen.name) return 0;
    if (offer.kind == chosen.kind) return 2;
    const auto first = std::find_if(all.begin(), all.end(), [&](const Offer& x) { return x.kind == offer.kind; });
    return first->name == offer.name ? 1 : 3;
  };
  std::vector<std::pair<int, Offer>> ranked;
  for (const Offer& offer : all) ranked.emplace_back(rank(offer), offer);
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<Offer> result;
  if (ranked.empty() || ranked.front().first != 0) result.push_back(chosen);  // it was requested by name
  for (const auto& [order, offer] : ranked) result.push_back(offer);
  return result;
}

}  // namespace tuff::gemm

namespace tuff {

TuningKey gemm_key(const GemmArgs& args) {
  const bool ta = args.ta != TUFF_NO_TRANS, tb = args.tb != TUFF_NO_TRANS;
  TuningKey key("gemm");
  key.word(ta ? (tb ? "tt" : "tn") : (tb ? "nt" : "nn"));
  key.word(dtype_name(args.a_type)).word(dtype_name(args.b_type)).word(dtype_name(args.c_type));
  if (args.precision == TUFF_PRECISION_ALLOW_F16) key.word("allow_f16");
  if (args.precision == TUFF_PRECISION_ALLOW_BF16) key.word("allow_bf16");
  if (args.precision == TUFF_PRECISION_ALLOW_TF32) key.word("allow_tf32");
  key.size(args.m).size(args.n).size(args.k).size(args.batch_count);
  return key;
}

}  // namespace tuff
