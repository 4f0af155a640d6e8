// Graphs whose kernels read memory by texel buffers, as CPU devices do for sparse matrices: what a replacement needs.
#include <gtest/gtest.h>

#include <vector>

#include "internal/faults.hpp"
#include "support/tensor.hpp"

namespace tuff_test::graph_texels_test {
namespace {

constexpr uint64_t kCount = 4;

const tuff::MemoryBlock& block_of(tuff_buffer handle) {
  const auto buffer = tuff::capi::acquire_buffer(handle, "buffer");
  return *static_cast<const tuff::VulkanAllocation&>(*buffer->buffer().allocation).range().block;
}
VkBufferView view_of(tuff_buffer handle) { return block_of(handle).texels[1]; }  // of 4-byte elements

OwnBuffer ints(tuff_context context, const std::vector<int32_t>& values) {
  OwnBuffer result(context, values.size() * sizeof(int32_t));
  EXPECT_OK(tuff_copy_htod(context, result, 0, values.data(), values.size() * sizeof(int32_t)));
  return result;
}
OwnBuffer floats(tuff_context context, const std::vector<float>& values, uint64_t bytes) {
  OwnBuffer result(context, bytes);
  EXPECT_OK(tuff_copy_htod(context, result, 0, values.data(), values.size() * sizeof(float)));
  return result;
}

class GraphTexels : public Faults {};

// c = A * b, where A has 2 on its diagonal.
TEST_F(GraphTexels, AReplacementThatNoViewCoversIsRefused) {
  const OwnBuffer offsets = ints(context(), {0, 1, 2, 3, 4}), indices = ints(context(), {0, 1, 2, 3});
  const OwnBuffer values = floats(context(), {2, 2, 2, 2}, 16), b = floats(context(), {1, 2, 3, 4}, 16);
  const OwnBuffer near = floats(context(), {5, 6, 7, 8}, 16);
  const Tensor c(context(), kCount);
  tuff_stream stream = 0;
  ASSERT_OK(tuff_stream_create(context(), nullptr, &stream));
  ASSERT_OK(tuff_graph_begin(stream));
  tuff_spmm_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32, desc.index_type = TUFF_I32, desc.transpose = TUFF_NO_TRANS, desc.side = TUFF_SIDE_LEFT;
  desc.rows = desc.columns = desc.nnz = kCount, desc.n = desc.batch_count = 1, desc.alpha = 1;
  desc.offsets = offsets, desc.indices = indices, desc.values = values, desc.b = b, desc.c = c;
  ASSERT_OK(tuff_spmm(stream, &desc));
  tuff_graph graph = 0;
  ASSERT_OK(tuff_graph_end(stream, &graph));
  const auto expect_product = [&](const std::vector<float>& expected) {
    ASSERT_OK(tuff_graph_launch(stream, graph));
    ASSERT_OK(tuff_synchronize(context()));
    expect_same_bits(c.read(), expected);
  };
  if (view_of(b) != VK_NULL_HANDLE) {
    // The limit is what the operands' own block has. A larger buffer has a block of its own.
    uint64_t& limit = device(context()).traits.max_texels;
    const uint64_t kept = limit;
    limit = block_of(b).size / sizeof(float);
    const OwnBuffer far = floats(context(), {9, 10, 11, 12}, 2 * block_of(b).size);
    ASSERT_GT(block_of(far).size, block_of(b).size);
    EXPECT_FAILS(tuff_graph_bind(graph, b, far), TUFF_ERROR_UNSUPPORTED, "tuff_graph_bind", "replacement");
    EXPECT_NE(last_error().find(std::to_string(limit)), std::string::npos) << last_error();
    EXPECT_EQ(view_of(far), VkBufferView{VK_NULL_HANDLE});
    expect_product({2, 4, 6, 8});
    ASSERT_OK(tuff_graph_bind(graph, b, near));
    expect_product({10, 12, 14, 16});
    limit = kept;
    ASSERT_OK(tuff_graph_bind(graph, b, far));
    EXPECT_NE(view_of(far), VkBufferView{VK_NULL_HANDLE});  // a launch makes none
    expect_product({18, 20, 22, 24});
  } else {
    EXPECT_EQ(device(context()).traits.max_texels, 0u) << "the kernel reads no texels";
  }
  ASSERT_OK(tuff_graph_destroy(graph));
  ASSERT_OK(tuff_stream_destroy(stream));
}

}  // namespace
}  // namespace tuff_test::graph_texels_test
