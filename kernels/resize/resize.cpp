#include "kernels/resize/resize.hpp"

#include "kernels/common/describe.hpp"

namespace tuff {

namespace operations {
const OperationOf<ResizeArgs> resize =
    define_operation<ResizeArgs, check_resize, host_resize, record_resize, describe_planes>("resize", kFloatTypes);
}  // namespace operations

}  // namespace tuff
