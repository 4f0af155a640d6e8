#include "runtime/vulkan/vulkan_stream.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "planning/backend_kernels.hpp"
#include "planning/dry_run.hpp"
#include "planning/kept_vector.hpp"
#include "planning/log.hpp"
#include "runtime/custom/extension.hpp"
#include "runtime/vulkan/custom_pipeline.hpp"
#include "runtime/vulkan/event.hpp"
#include "runtime/vulkan/graph.hpp"
#include "runtime/vulkan/vulkan_backend.hpp"

namespace tuff {

VulkanStream::VulkanStream(VulkanBackend& backend, StreamRecorder& recorder)
    : backend_(backend), recorder_(recorder), transfer_(recorder, backend.memory_pool(), backend.transferred()) {}

VulkanStream::~VulkanStream() {
  if (recorder_.index() == 0) return;
  const std::lock_guard lock(backend_.mutex());
  try {
    backend_.streams().close(recorder_);
  } catch (const std::exception& error) {
    log(TUFF_LOG_WARNING, "destroying {}: {}", recorder_.name(), error.what());
  }
}

void VulkanStream::synchronize() {
  std::unique_lock lock(backend_.mutex());
  backend_.device().require_alive();
  refuse_in_capture(in_capture::kSynchronize);
  const uint64_t submission = recorder_.submit(false);
  lock.unlock();
  recorder_.wait(submission);
  lock.lock();
  backend_.retired().completed(backend_.streams().timelines());
  backend_.kernels().save();
}

void VulkanStream::record(ComputeEvent& event) {
  std::unique_lock lock(backend_.mutex());
  backend_.device().require_alive();
  recorder_.make_room(lock);
  refuse_in_capture(in_capture::kEvent);
  static_cast<VulkanEvent&>(event).record(recorder_);
}

void VulkanStream::wait(ComputeEvent& event) {
  const std::lock_guard lock(backend_.mutex());
  backend_.device().require_alive();
  refuse_in_capture(in_capture::kEvent);
  recorder_.wait_for(static_cast<VulkanEvent&>(event).point());
}

bool VulkanStream::capturing() const {
  const std::lock_guard lock(backend_.mutex());
  return capture_ != nullptr;
}

void VulkanStream::begin_graph() {
  const std::lock_guard lock(backend_.mutex());
  backend_.device().require_alive();
  require(capture_ == nullptr, in_capture::kBegin);
  capture_ = std::make_unique<GraphRecorder>(backend_.streams().base(), recorder_);
}

std::unique_ptr<ComputeGraph> VulkanStream::end_graph() {
  std::unique_ptr<GraphRecorder> capture;  // destroyed after the lock is released
  const std::lock_guard lock(backend_.mutex());
  require(capture_ != nullptr, in_capture::kNotBegun);
  auto graph = std::make_unique<VulkanGraph>(backend_, capture_->contents());
  capture = std::move(capture_);
  return graph;
}

void VulkanStream::launch(ComputeGraph& graph) {
  auto& own = static_cast<VulkanGraph&>(graph);
  std::unique_lock lock(backend_.mutex());
  if (own.has_steps()) finish_earlier_calls(lock);
  own.make_room(lock);
  recorder_.make_room(lock);
  refuse_in_capture(in_capture::kLaunch);
  recorder_.launch_graph(own, backend_.processor_device());
  add_usage(recorder_.usage().calls, uint64_t{1});
}

void VulkanStream::refuse_in_capture(const char* why) const {
  if (capture_ != nullptr) fail(TUFF_ERROR_UNSUPPORTED, "stream is capturing: {}", why);
}

template <typename Attempt>
void VulkanStream::record_once(std::unique_lock<Mutex>& lock, const Attempt& attempt) {
  backend_.device().require_alive();
  if (capture_ == nullptr) recorder_.make_room(lock);
  if (capture_ == nullptr) {
    recorder_.whole(attempt);
    add_usage(recorder_.usage().calls, uint64_t{1});
    return;
  }
  const GraphRecorder::Size before = capture_->size();
  try {
    attempt(*capture_);
  } catch (...) {
    capture_->shrink(before);
    throw;
  }
}

template <typename Attempt>
void VulkanStream::recorded(const Attempt& attempt) {
  backend_.with_memory([&](auto& lock) { record_once(lock, attempt); });
}

void VulkanStream::copy_htod(const Buffer& dst, uint64_t offset, const void* src, uint64_t bytes) {
  backend_.with_memory([&](auto& lock) {
    backend_.device().require_alive();
    refuse_in_capture(in_capture::kUpload);
    transfer_.upload(lock, dst, offset, src, bytes);
    add_usage(recorder_.usage().calls, uint64_t{1});
    add_usage(recorder_.usage().uploaded, bytes);
  });
}

void VulkanStream::copy_dtoh(void* dst, const Buffer& src, uint64_t offset, uint64_t bytes) {
  backend_.with_memory([&](auto& lock) {
    backend_.device().require_alive();
    refuse_in_capture(in_capture::kDownload);
    transfer_.download(lock, dst, src, offset, bytes);
    add_usage(recorder_.usage().calls, uint64_t{1});
    add_usage(recorder_.usage().downloaded, bytes);
    backend_.kernels().save();
  });
}

void VulkanStream::copy_dtod(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                             uint64_t bytes) {
  recorded([&](DeviceRecorder& recorder) {
    if (!backend_kernels.copy(recorder, dst, dst_offset, src, src_offset, bytes)) {
      recorder.copy("copy", dst, dst_offset, src, src_offset, bytes);
    }
  });
}

void VulkanStream::copy_async(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                              uint64_t bytes) {
  std::unique_lock lock(backend_.mutex());
  record_once(lock, [&](auto& recorder) { recorder.copy_pinned(dst, dst_offset, src, src_offset, bytes); });
}

void VulkanStream::fill(const Buffer& dst, uint64_t offset, uint64_t bytes, const void* pattern,
                        uint64_t pattern_bytes) {
  // The device fills whole words; the range may start and end within one. Where the allocation lies does not matter,
  // and it may be moved until the lock is held.
  const uint64_t start = dst.offset + offset;
  const uint64_t head = std::min(bytes, (4 - start % 4) % 4);
  const uint64_t middle = (bytes - head) / 4 * 4;
  const uint64_t tail = bytes - head - middle;
  const auto pattern_at = [&](uint64_t position) {
    std::array<std::byte, 16> text;
    for (uint64_t i = 0; i < text.size(); ++i) {
      text[i] = static_cast<const std::byte*>(pattern)[(position + i) % pattern_bytes];
    }
    return text;
  };
  Buffer texts[2];
  recorded([&](DeviceRecorder& recorder) {
    if (head != 0) recorder.fill_edge(dst, offset, head, pattern_at(0).data(), texts[0]);
    if (middle != 0) {
      std::array<uint32_t, 4> words;
      std::memcpy(words.data(), pattern_at(head).data(), sizeof words);
      if (pattern_bytes <= 4) {
        recorder.fill_words(dst, offset + head, middle, words[0]);
      } else {
        backend_kernels.fill(recorder, dst, offset + head, middle, words);
      }
    }
    if (tail != 0) recorder.fill_edge(dst, offset + head + middle, tail, pattern_at(head + middle).data(), texts[1]);
  });
}

// What was called before in this stream, and the default stream's work, which clears new memory and moves memory
// together. Other threads may call meanwhile, but not for ever.
void VulkanStream::finish_earlier_calls(std::unique_lock<Mutex>& lock) {
  Streams& streams = backend_.streams();
  for (int turn = 0; turn < 2; ++turn) {
    backend_.finish(lock, true);
    if (streams.timelines().done(recorder_.last()) && streams.timelines().done(streams.main().last())) return;
  }
  KeptVector<Use> uses;
  streams.submit_all(true, *uses);
  streams.wait(*uses);
}

bool VulkanStream::computed_by_processor(const Operation& operation) {
  Processor* const processor = backend_.processor(operation);
  if (processor == nullptr) return false;
  std::unique_lock lock(backend_.mutex());
  backend_.device().require_alive();
  operation.check();
  if (!processor->takes(operation)) return false;
  if (capture_ == nullptr) {
    finish_earlier_calls(lock);
    operation.check();  // an operand may have been mapped
  }
  if (capture_ != nullptr) {
    log(TUFF_LOG_DISPATCH, "{}: by the plug-in \"cpu\", at each launch", operation.info().name);
    record_once(lock, [&](auto&) {
      const size_t before = capture_->size().commands;
      capture_->host_step(operation);
      capture_->describe(before, operation.describe());
    });
    return true;
  }
  recorder_.computed(operation.info().name, nullptr, [&] { processor->compute(operation); });
  add_usage(recorder_.usage().calls, uint64_t{1});
  return true;
}

// A failed call has no effect.
void VulkanStream::run(const Operation& operation) {
  if (computed_by_processor(operation)) return;
  // Under the lock, so that no operand can be mapped between the check and the recording.
  recorded([&](DeviceRecorder& recorder) {
    operation.check();
    const size_t before = capture_ != nullptr ? capture_->size().commands : 0;
    if (!recorder.traits().addresses) {
      DryRun all(recorder);
      operation.record(all);
    }
    operation.record(recorder);
    if (capture_ != nullptr) capture_->describe(before, operation.describe());  // for profiles of graph launches
  });
}

void VulkanStream::launch(CustomKernel& kernel, const LaunchArgs& args) {
  auto& own = static_cast<VulkanKernel&>(kernel);
  std::unique_lock lock(backend_.mutex());
  record_once(lock, [&](auto& recorder) {
    check_launch(own.interface(), args, own.launch_limits());
    const size_t before = capture_ != nullptr ? capture_->size().commands : 0;
    static_cast<DeviceRecorder&>(recorder).launch(own, args);
    if (capture_ != nullptr && args.call != nullptr) {
      capture_->describe(before, args.call->operation->describe(*args.call));
    }
  });
}

}  // namespace tuff
