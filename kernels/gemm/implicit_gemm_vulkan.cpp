// Plans implicit GEMM: by a kernel in PTX, or by cooperative matrices.
#include "kernels/gemm/gemm_plan.hpp"

namespace tuff::gemm {
namespace {

// The variants of the first kind of kernel that computes it.
Offers window_offers(const DeviceTraits& traits, const Plan& plan) {
  const auto offer_others = [&](Offers& offers) {
    if (!plan.windows->padded && plan.windows->groups == 1) offer_windows(traits, plan.args, *plan.windows, offers);
  };
  Offers named(forced_variant()), offers;
  if (named.by_name()) {
    offer_native(traits, plan, named);
    offer_split(traits, plan, named);
    offer_others(named);
  }
  if (named.found()) return named;
  offer_native(traits, plan, offers);
  if (!offers.found()) offer_split(traits, plan, offers);
  if (!offers.found()) offer_others(offers);
  return offers;
}

}  // namespace

Extents extents_of(const GemmArgs& args, const Windows* windows) {
  if (windows == nullptr || windows->of_k) return {args.m, args.n, args.batch_count};
  return windows->of_a ? Extents{args.m * args.batch_count, args.n, windows->groups}
                       : Extents{args.m, args.n * args.batch_count, 1};
}

bool runs_windows(const DeviceTraits& traits, const GemmArgs& args, const Windows& windows) {
  if (windows.width >= 1u << 16 || windows.step >= 1u << 16 || windows.channels >= 1u << 16 ||
      windows.taps >= 1u << 8 || windows.dilation >= 1u << 8) {
    return false;
  }
  const Plan plan(args, &windows);
  return !plan.wide && window_offers(traits, plan).found();
}

bool record_windows(Recorder& recorder, const GemmArgs& args, const Windows& windows) {
  const auto record_second_pass = [&](const Plan& plan) {
    if (plan.to_scratch) record_finish(recorder, args, plan.out, plan.slices);
  };
  // A kernel in PTX that the driver refuses is not offered again.
  for (;;) {
    Plan plan(args, &windows);
    const Offers offers = window_offers(recorder.traits(), plan);
    if (!offers.found()) return false;
    plan.choice.offer = offers.best();
    if (plan.choice.offer.kind == Kind::native) {
      if (!record_native(recorder, plan)) continue;
    } else if (plan.choice.offer.kind == Kind::split) {
      if (!record_split(recorder, plan)) continue;
    } else {
      record_matrices(recorder, plan);
    }
    record_second_pass(plan);
    return true;
  }
}

}  // namespace tuff::gemm
