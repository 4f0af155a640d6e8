// What a call was about, for people who look at a profile.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/compute_stream.hpp"

namespace tuff {

// Of arguments that were checked.
struct CallText {
  std::string shape;
  int32_t dtype = 0;
};

CallText describe(const GemmArgs& args);
CallText describe(const ConvArgs& args);
CallText describe(const AttentionArgs& args);
CallText describe(const ReduceArgs& args);
CallText describe(const SoftmaxArgs& args);
CallText describe(const UnaryArgs& args);
CallText describe(const BinaryArgs& args);
CallText describe(const NormArgs& args);
CallText describe(const BatchNormArgs& args);
CallText describe(const PermuteArgs& args);
CallText describe(const CastArgs& args);
CallText describe(const SliceArgs& args);
CallText describe(const ConcatArgs& args);
CallText describe(const GatherArgs& args);
CallText describe(const PoolArgs& args);
CallText describe(const ResizeArgs& args);
CallText describe(const RopeArgs& args);

}  // namespace tuff
