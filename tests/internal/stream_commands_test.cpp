// The commands that streams and graphs submit to the device: the tests inspect them or make some of them fail.
#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <vector>

#include "internal/faults.hpp"
#include "support/stream.hpp"

namespace tuff_test {
namespace {

constexpr size_t kCount = 1 << 20;  // floats, enough to use the copy queue

struct Submission {
  uint64_t signalled = 0;
  std::map<VkSemaphore, uint64_t> waits;
  VkSemaphore timeline = VK_NULL_HANDLE;
};
VolkDeviceTable device_table{};
std::vector<Submission> submissions;
std::vector<VkMemoryBarrier> shown;  // barriers that make writes visible to the host
int pools = 0, refuse_pool_after = -1;

VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos, VkFence fence) {
  for (uint32_t i = 0; i < count; ++i) {
    const auto* timeline = static_cast<const VkTimelineSemaphoreSubmitInfo*>(infos[i].pNext);
    Submission& submission = submissions.emplace_back();
    if (timeline == nullptr) continue;
    submission.signalled = timeline->pSignalSemaphoreValues[0];
    submission.timeline = infos[i].pSignalSemaphores[0];
    for (uint32_t j = 0; j < infos[i].waitSemaphoreCount; ++j) {
      submission.waits[infos[i].pWaitSemaphores[j]] = timeline->pWaitSemaphoreValues[j];
    }
  }
  return device_table.vkQueueSubmit(queue, count, infos, fence);
}
VKAPI_ATTR void VKAPI_CALL barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkPipelineStageFlags to,
                                   VkDependencyFlags flags, uint32_t count, const VkMemoryBarrier* barriers,
                                   uint32_t buffers, const VkBufferMemoryBarrier* of_buffers, uint32_t images,
                                   const VkImageMemoryBarrier* of_images) {
  if (to & VK_PIPELINE_STAGE_HOST_BIT) shown.insert(shown.end(), barriers, barriers + count);
  device_table.vkCmdPipelineBarrier(commands, from, to, flags, count, barriers, buffers, of_buffers, images, of_images);
}
VKAPI_ATTR VkResult VKAPI_CALL create_pool(VkDevice device, const VkCommandPoolCreateInfo* info,
                                           const VkAllocationCallbacks* callbacks, VkCommandPool* pool) {
  if (refuse_pool_after == 0) return VK_ERROR_OUT_OF_HOST_MEMORY;
  --refuse_pool_after;
  ++pools;
  return device_table.vkCreateCommandPool(device, info, callbacks, pool);
}
VKAPI_ATTR void VKAPI_CALL destroy_pool(VkDevice device, VkCommandPool pool, const VkAllocationCallbacks* callbacks) {
  if (pool != VK_NULL_HANDLE) --pools;
  device_table.vkDestroyCommandPool(device, pool, callbacks);
}

// A device that finishes nothing until it is allowed to.
std::atomic<bool> goes_on{true};
VKAPI_ATTR VkResult VKAPI_CALL wait_until_it_goes_on(VkDevice device, const VkSemaphoreWaitInfo* info, uint64_t limit) {
  if (goes_on) return device_table.vkWaitSemaphores(device, info, limit);
  ++calls;
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return VK_TIMEOUT;
}
VKAPI_ATTR VkResult VKAPI_CALL count_once_it_goes_on(VkDevice device, VkSemaphore semaphore, uint64_t* value) {
  if (goes_on) return device_table.vkGetSemaphoreCounterValue(device, semaphore, value);
  *value = 0;
  return VK_SUCCESS;
}

class StreamCommands : public Faults {
 protected:
  void SetUp() override {
    Faults::SetUp();
    device_table = whole_;
    x_ = buffer_of(context(), kCount, 1), y_ = buffer_of(context(), kCount, 0);
    ASSERT_OK(tuff_synchronize(context()));
    forget();
    refuse_pool_after = -1;
    pools = 0;
    vk_->vkQueueSubmit = submit;
    vk_->vkCmdPipelineBarrier = barrier;
    vk_->vkCreateCommandPool = create_pool;
    vk_->vkDestroyCommandPool = destroy_pool;
  }
  static void forget() {
    submissions.clear();
    shown.clear();
  }
  // A stream with a copy queue. On devices without one, the copy queue is an alias of the first queue.
  OwnStream make_stream_that_copies() {
    tuff::Device& own = device(context());
    const VkQueue before = own.copy_queue;
    if (before == VK_NULL_HANDLE) own.copy_queue = own.queues.front();
    OwnStream stream = make_stream(context());
    own.copy_queue = before;
    return stream;
  }

  OwnBuffer x_, y_;
};

TEST_F(StreamCommands, WhoFindsTooMuchUnderWayHoldsNoOtherStream) {
  const OwnStream stream = make_stream(context());
  const OwnBuffer z = buffer_of(context(), 16, 1);
  add(stream, z, z, z, 16);
  ASSERT_OK(tuff_synchronize(stream));
  ASSERT_OK(tuff_synchronize(context()));
  tuff_limits limits{};
  limits.struct_size = sizeof limits;
  limits.wait_milliseconds = 20000;
  ASSERT_OK(tuff_context_set_limits(context(), &limits));
  goes_on = false;
  vk_->vkWaitSemaphores = wait_until_it_goes_on;
  vk_->vkGetSemaphoreCounterValue = count_once_it_goes_on;
  std::atomic<tuff_status> status{77};
  std::thread busy([&] {
    tuff_status last = TUFF_OK;
    for (int i = 0; i < 100000 && last == TUFF_OK && !goes_on; ++i) {
      last = tuff_binary(context(), TUFF_F32, TUFF_BINARY_ADD, x_, x_, y_, 16);
    }
    status = last;
  });
  while (calls == 0 && status == 77) std::this_thread::yield();
  EXPECT_OK(tuff_binary(stream, TUFF_F32, TUFF_BINARY_ADD, z, z, z, 16));
  EXPECT_EQ(status, 77) << "it waits still, and the other stream went on";
  goes_on = true;
  busy.join();
  EXPECT_EQ(status, TUFF_OK);
  EXPECT_EQ(read(stream, z, 16), std::vector<float>(16, 4.0f));
}

// Copies go to the copy queue and kernels do not: each change of queue waits for all earlier work.
TEST_F(StreamCommands, ChangesOfQueues) {
  Pinned up(context(), kCount), down(context(), kCount);
  const OwnStream stream = make_stream_that_copies();
  ASSERT_OK(tuff_synchronize(context()));
  up.fill(3);
  forget();
  ASSERT_OK(tuff_copy_htod_async(stream, x_, 0, up.data(), up.bytes()));
  add(stream, x_, x_, y_, kCount);
  ASSERT_OK(tuff_copy_dtoh_async(stream, down.data(), y_, 0, down.bytes()));
  add(stream, y_, x_, y_, kCount);
  const OwnGraph graph = capture(stream, [&] { add(stream, y_, y_, y_, kCount); });
  ASSERT_OK(tuff_copy_htod_async(stream, x_, 0, up.data(), up.bytes()));
  ASSERT_OK(tuff_graph_launch(stream, graph));
  ASSERT_OK(tuff_synchronize(stream));
  EXPECT_EQ(down.values(), std::vector<float>(kCount, 6.0f));
  EXPECT_EQ(read(stream, y_, kCount), std::vector<float>(kCount, 18.0f));
  uint64_t last = 0, chained = 0;
  for (const Submission& submission : submissions) {
    EXPECT_GT(submission.signalled, last);
    if (const auto found = submission.waits.find(submission.timeline); found != submission.waits.end()) {
      EXPECT_EQ(found->second, last);
      ++chained;
    }
    last = submission.signalled;
  }
  EXPECT_GE(chained, 5u);  // up, add, down, add, up, graph: all but the first
  // Kernel writes are made visible to the host by a queue without compute support.
  ASSERT_FALSE(shown.empty());
  for (const VkMemoryBarrier& barrier : shown) EXPECT_TRUE(barrier.srcAccessMask & VK_ACCESS_MEMORY_WRITE_BIT);
}

TEST_F(StreamCommands, NoMemoryForTheQueueForCopies) {
  Pinned up(context(), kCount);
  const OwnStream stream = make_stream_that_copies();
  up.fill(5);
  refuse_pool_after = 2;
  for (int i = 0; i < 2; ++i) {
    EXPECT_FAILS(tuff_copy_htod_async(stream, x_, 0, up.data(), up.bytes()), TUFF_ERROR_OUT_OF_HOST_MEMORY,
                 "tuff_copy_htod_async", "vkCreateCommandPool");
  }
  refuse_pool_after = -1;
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(tuff_copy_htod_async(stream, x_, 0, up.data(), up.bytes()));
    add(stream, x_, x_, y_, kCount);
  }
  EXPECT_EQ(read(stream, y_, kCount), std::vector<float>(kCount, 10.0f));
}

TEST_F(StreamCommands, NoMemoryForAStream) {
  refuse_pool_after = 3;
  tuff_stream stream = TUFF_NULL_HANDLE;
  EXPECT_FAILS(tuff_stream_create(context(), nullptr, &stream), TUFF_ERROR_OUT_OF_HOST_MEMORY, "tuff_stream_create",
               "vkCreateCommandPool");
  EXPECT_EQ(pools, 0) << "command pools of a stream that there is none of";
  refuse_pool_after = -1;
  const OwnStream made = make_stream(context());
  add(made, x_, x_, y_, kCount);
  EXPECT_EQ(read(made, y_, kCount)[0], 2);
}

// A download into pinned memory is made visible to the host, whatever the stream executes next.
TEST_F(StreamCommands, PinnedCopyBeforeAGraph) {
  Pinned down(context(), kCount);
  const OwnStream stream = make_stream(context());
  const OwnGraph graph = capture(stream, [&] { add(stream, x_, x_, x_, kCount); });
  ASSERT_OK(tuff_synchronize(context()));
  const OwnBuffer small(context(), 64);
  ASSERT_OK(tuff_synchronize(context()));
  forget();
  ASSERT_OK(tuff_copy_dtoh_async(stream, down.data(), small, 0, 64));
  ASSERT_OK(tuff_graph_launch(stream, graph));
  ASSERT_OK(tuff_synchronize(stream));
  EXPECT_EQ(shown.size(), 1u);
}

// The same in a profiled graph, whose commands are submitted one by one.
TEST_F(StreamCommands, PinnedCopyInAProfiledGraph) {
  Pinned down(context(), kCount);
  const OwnStream stream = make_stream(context());
  const OwnGraph graph = capture(stream, [&] {  // as many as fit a submission
    for (int i = 0; i < 128; ++i) ASSERT_OK(tuff_copy_dtoh_async(stream, down.data() + 16 * i, x_, 0, 64));
  });
  ASSERT_OK(tuff_profile_begin(context()));
  forget();
  ASSERT_OK(tuff_graph_launch(stream, graph));
  ASSERT_OK(tuff_synchronize(stream));
  EXPECT_FALSE(shown.empty());
  EXPECT_EQ(shown.size(), submissions.size());
  ASSERT_OK(tuff_profile_end(context()));
}

// The host waited for one stream and reads through another.
TEST_F(StreamCommands, DownloadOfWhatAnotherStreamWrote) {
  const OwnStream stream = make_stream(context());
  read(context(), y_, kCount);
  add(stream, x_, x_, y_, kCount);
  ASSERT_OK(tuff_synchronize(stream));
  forget();
  EXPECT_EQ(read(context(), y_, kCount)[0], 2);
  EXPECT_FALSE(submissions.empty()) << "with a barrier, which on one queue is all that it takes";
  EXPECT_FALSE(shown.empty());
  // With dedicated GPU memory, each read copies to host-visible memory.
  const size_t copies = properties_of(context()).type == TUFF_DEVICE_CPU ? 0 : submissions.size();
  forget();
  read(context(), y_, kCount);
  EXPECT_LE(submissions.size(), copies) << "once is enough";
}

// A destroyed stream's slot is reused once the device is done, even if nobody waited for the stream.
TEST_F(StreamCommands, StreamsComeAndGo) {
  for (int i = 0; i < 20; ++i) {
    {
      const OwnStream stream = make_stream(context());
      add(stream, x_, x_, y_, 64);
    }
    ASSERT_EQ(device_table.vkDeviceWaitIdle(device(context()).handle), VK_SUCCESS);
  }
  EXPECT_EQ(pools, static_cast<int>(tuff::StreamRecorder::kRing));
}

// Without any call of tuff_synchronize.
TEST_F(StreamCommands, GraphsComeAndGo) {
  const OwnStream stream = make_stream(context());
  pools = 0;
  for (int i = 0; i < 500; ++i) {
    const OwnGraph graph = capture(stream, [&] { add(stream, x_, x_, y_, 64); });
    ASSERT_OK(tuff_graph_launch(stream, graph));
    if (i % 10 == 9) read(stream, y_, 64);
  }
  EXPECT_LT(pools, 50);
}

}  // namespace
}  // namespace tuff_test
