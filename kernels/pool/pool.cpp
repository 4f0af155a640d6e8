#include "kernels/pool/pool.hpp"

#include "kernels/common/describe.hpp"

namespace tuff {

namespace operations {
const OperationOf<PoolArgs> max_pool =
    define_operation<PoolArgs, check_pool, host_pool, record_pool, describe_planes, nullptr, offer_pool>("max_pool",
                                                                                                         kFloatTypes);
const OperationOf<PoolArgs> avg_pool =
    define_operation<PoolArgs, check_pool, host_pool, record_pool, describe_planes, nullptr, offer_pool>("avg_pool",
                                                                                                         kFloatTypes);
}  // namespace operations

}  // namespace tuff
