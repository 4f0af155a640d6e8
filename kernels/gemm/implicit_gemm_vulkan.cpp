// Plans implicit GEMM: by a kernel in PTX, or by cooperative matrices.
#include "kernels/gemm/gemm_plan.hpp"

namespace tuff::gemm {
namespace {

void offer_native(const DeviceTraits& traits, const GemmArgs& args, const Windows& windows, Offers& offers) {
  const Plan plan(args, &windows);
  offer_native(traits, plan, offers);
}

// The variants of the first kind of kernel that computes it.
Offers window_offers(const DeviceTraits& traits, const GemmArgs& args, const Windows& windows) {
  Offers named(forced_variant()), offers;
  if (named.by_name()) {
    offer_native(traits, args, windows, named);
    if (!windows.padded) offer_windows(traits, args, windows, named);
  }
  if (named.found()) return named;
  offer_native(traits, args, windows, offers);
  if (!offers.found() && !windows.padded) offer_windows(traits, args, windows, offers);
  return offers;
}

}  // namespace

Extents extents_of(const GemmArgs& args, const Windows* windows) {
  if (windows == nullptr) return {args.m, args.n, args.batch_count};
  return windows->of_a ? Extents{args.m * args.batch_count, args.n, 1} : Extents{args.m, args.n * args.batch_count, 1};
}

bool runs_windows(const DeviceTraits& traits, const GemmArgs& args, const Windows& windows) {
  return windows.width < 1u << 16 && windows.step < 1u << 16 && windows.channels < 1u << 16 && windows.taps < 1u << 8 &&
         windows.dilation < 1u << 8 && !Plan(args, &windows).wide && window_offers(traits, args, windows).found();
}

bool record_windows(Recorder& recorder, const GemmArgs& args, const Windows& windows) {
  const DeviceTraits& traits = recorder.traits();
  const auto record_second_pass = [&](const Plan& plan) {
    if (plan.to_scratch) record_finish(recorder, args, plan.out, plan.slices);
    return true;
  };
  const Offer offer = window_offers(traits, args, windows).best();
  if (offer.kind == Kind::native) {
    Plan plan(args, &windows);
    plan.choice.offer = offer;
    if (record_native(recorder, plan)) return record_second_pass(plan);
  }
  Offers others;
  if (!windows.padded) offer_windows(traits, args, windows, others);
  if (!others.found()) return false;
  Plan plan(args, &windows);
  plan.choice.offer = offer.kind == Kind::native ? others.best() : offer;
  record_matrices(recorder, plan);
  return record_second_pass(plan);
}

}  // namespace tuff::gemm
