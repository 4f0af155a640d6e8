#include "kernels/pool/pool.hpp"

#include "kernels/common/describe.hpp"
#include "kernels/pool/pool_backward.hpp"

namespace tuff {
namespace {

CallText describe_backward(const PoolBackwardArgs& args) { return describe_planes(args.pool); }

}  // namespace

namespace operations {
const OperationOf<PoolArgs> max_pool =
    define_operation<PoolArgs, check_pool, host_pool, record_pool, describe_planes, nullptr, offer_pool>("max_pool",
                                                                                                         kFloatTypes);
const OperationOf<PoolArgs> avg_pool =
    define_operation<PoolArgs, check_pool, host_pool, record_pool, describe_planes, nullptr, offer_pool>("avg_pool",
                                                                                                         kFloatTypes);
const OperationOf<PoolBackwardArgs> pool_backward =
    define_operation<PoolBackwardArgs, check_pool_backward, host_pool_backward, record_pool_backward,
                     describe_backward>("pool_backward", kFloatTypes);
}  // namespace operations

}  // namespace tuff
