// Every operation, in the order of the header, and every kernel in PTX.
#include "kernels/attention/attention.hpp"
#include "kernels/attention/attention_backward.hpp"
#include "kernels/attention/native/attention_backward_wgmma.hpp"
#include "kernels/attention/native/attention_decode.hpp"
#include "kernels/attention/native/attention_planes.hpp"
#include "kernels/attention/native/attention_wgmma.hpp"
#include "kernels/conv/conv.hpp"
#include "kernels/conv/conv_backward.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/expression/expression.hpp"
#include "kernels/fft/dct.hpp"
#include "kernels/fft/fft.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/gemm/native/gemm_dmma.hpp"
#include "kernels/gemm/native/gemm_narrow.hpp"
#include "kernels/gemm/native/gemm_split.hpp"
#include "kernels/gemm/native/gemm_wgmma.hpp"
#include "kernels/indexing/scatter.hpp"
#include "kernels/indexing/select.hpp"
#include "kernels/linalg/linalg.hpp"
#include "kernels/norm/norm.hpp"
#include "kernels/norm/norm_backward.hpp"
#include "kernels/optimizer/optimizer.hpp"
#include "kernels/pool/pool.hpp"
#include "kernels/pool/pool_backward.hpp"
#include "kernels/position/rope.hpp"
#include "kernels/quant/native/qgemm_blocks.hpp"
#include "kernels/quant/native/qgemm_mma.hpp"
#include "kernels/quant/native/qgemm_wgmma.hpp"
#include "kernels/quant/quant.hpp"
#include "kernels/random/dropout.hpp"
#include "kernels/random/random.hpp"
#include "kernels/random/variates.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/resize/resize.hpp"
#include "kernels/rnn/native/rnn_persistent.hpp"
#include "kernels/rnn/rnn.hpp"
#include "kernels/rnn/rnn_backward.hpp"
#include "kernels/scan/scan.hpp"
#include "kernels/shape/shape.hpp"
#include "kernels/softmax/cross_entropy.hpp"
#include "kernels/softmax/softmax.hpp"
#include "kernels/softmax/softmax_backward.hpp"
#include "kernels/sort/sort.hpp"
#include "kernels/sparse/sparse.hpp"

namespace tuff {
namespace {

const OperationInfo* const kOperations[] = {
    &operations::gemm.info(),
    &operations::batched_gemm.info(),
    &operations::conv1d.info(),
    &operations::conv2d.info(),
    &operations::conv3d.info(),
    &operations::conv_transpose2d.info(),
    &operations::conv_backward_data.info(),
    &operations::conv_backward_filter.info(),
    &operations::attention.info(),
    &operations::attention_backward.info(),
    &operations::reduce.info(),
    &operations::cumsum.info(),
    &operations::cumprod.info(),
    &operations::cummax.info(),
    &operations::cummin.info(),
    &operations::cumlogsumexp.info(),
    &operations::sort.info(),
    &operations::softmax.info(),
    &operations::random.info(),
    &operations::dropout.info(),
    &operations::variates.info(),
    &operations::unary.info(),
    &operations::binary.info(),
    &operations::permute.info(),
    &operations::cast.info(),
    &operations::slice.info(),
    &operations::concat.info(),
    &operations::gather.info(),
    &operations::max_pool.info(),
    &operations::avg_pool.info(),
    &operations::pool_backward.info(),
    &operations::rope.info(),
    &operations::layer_norm.info(),
    &operations::rms_norm.info(),
    &operations::group_norm.info(),
    &operations::batch_norm.info(),
    &operations::norm_backward.info(),
    &operations::batch_norm_training.info(),
    &operations::resize.info(),
    &operations::cholesky.info(),
    &operations::lu.info(),
    &operations::triangular_solve.info(),
    &operations::lu_solve.info(),
    &operations::lu_determinant.info(),
    &operations::qr.info(),
    &operations::eigh.info(),
    &operations::eig.info(),
    &operations::svd.info(),
    &operations::scatter.info(),
    &operations::select.info(),
    &operations::pad.info(),
    &operations::copy_strided.info(),
    &operations::fft.info(),
    &operations::dct.info(),
    &operations::rnn.info(),
    &operations::rnn_backward.info(),
    &operations::optimizer_step.info(),
    &operations::gradient_norm.info(),
    &operations::cross_entropy.info(),
    &operations::softmax_backward.info(),
    &operations::spmm.info(),
    &operations::sparse_convert.info(),
    &operations::sddmm.info(),
    &operations::spgemm.info(),
    &operations::sparse_triangular_solve.info(),
    &operations::quantize.info(),
    &operations::dequantize.info(),
    &operations::qgemm.info(),
    &operations::expr.info(),
};

const KernelSource* const kNative[] = {
    &gemm::wgmma_source,      &gemm::split_source,       &gemm::dmma_source,        &gemm::narrow_source,
    &attention::wgmma_source, &attention::planes_source, &attention::decode_source, &attention_backward::wgmma_source,
    &quant::mma_source,       &quant::wgmma_source,      &quant::blocks_source,     &rnn::persistent_source};

}  // namespace

const std::span<const OperationInfo* const> all_operations = kOperations;
const std::span<const KernelSource* const> shaders::native = kNative;

}  // namespace tuff
