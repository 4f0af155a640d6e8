// A stream of the Vulkan backend: checks the arguments, then records under the context's lock.
#pragma once

#include "platform/mutex.hpp"
#include "runtime/compute_stream.hpp"
#include "runtime/vulkan/streams.hpp"
#include "runtime/vulkan/transfer.hpp"

namespace tuff {

class VulkanBackend;
class GraphRecorder;

class VulkanStream final : public ComputeStream {
 public:
  VulkanStream(VulkanBackend& backend, StreamRecorder& recorder);
  ~VulkanStream() override;

  void synchronize() override;
  void record(ComputeEvent& event) override;
  void wait(ComputeEvent& event) override;
  bool capturing() const override;
  void begin_graph() override;
  std::unique_ptr<ComputeGraph> end_graph() override;
  void launch(ComputeGraph& graph) override;

  void copy_htod(const Buffer& dst, uint64_t offset, const void* src, uint64_t bytes) override;
  void copy_dtoh(void* dst, const Buffer& src, uint64_t offset, uint64_t bytes) override;
  void copy_dtod(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                 uint64_t bytes) override;
  void fill(const Buffer& dst, uint64_t offset, uint64_t bytes, const void* pattern, uint64_t pattern_bytes) override;
  void copy_async(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                  uint64_t bytes) override;

  void run(const Operation& operation) override;
  void launch(CustomKernel& kernel, const LaunchArgs& args) override;

  const Transfer& transfer() const { return transfer_; }

 private:
  // Runs attempt() under the context's lock and handles memory shortage. A captured call that fails leaves nothing
  // behind.
  template <typename Attempt>
  void recorded(const Attempt& attempt);
  // The same with a single attempt, for work that needs no memory.
  template <typename Attempt>
  void record_once(std::unique_lock<Mutex>& lock, const Attempt& attempt);
  void refuse_in_capture(const char* why) const;
  void finish_earlier_calls(std::unique_lock<Mutex>& lock);
  // Whether the processor computes the call: now, or with each launch of the graph that is captured.
  bool computed_by_processor(const Operation& operation);

  VulkanBackend& backend_;
  StreamRecorder& recorder_;
  Transfer transfer_;
  std::unique_ptr<GraphRecorder> capture_;
};

}  // namespace tuff
