#include "runtime/vulkan/streams.hpp"

#include <algorithm>
#include <chrono>

namespace tuff {

Streams::Streams(RecorderBase& base) : base_(base) {
  // Reserved up front and never reallocated, so waiting threads read them without a lock.
  all_.reserve(kMaxStreams);
  closed_.reserve(kMaxStreams);
  all_.push_back(std::make_unique<StreamRecorder>(*this, base_, 0, StreamRecorder::kDefaultRing));
}

Streams::~Streams() {
  Device& device = *base_.device;
  // at_rest() has been called before: work that still runs belongs to no context. A driver may wait for a lost device
  // for ever.
  if (!device.lost()) device.vk.vkDeviceWaitIdle(device.handle);
  for (const auto& stream : all_) stream->mark_completed(stream->submitted() + 1);
}

StreamRecorder& Streams::open(std::string name) {
  // Prefer a closed stream whose work is done, then a new stream, then a closed one whose work runs first.
  const auto idle = [this] {
    return std::find_if(closed_.begin(), closed_.end(),
                        [this](uint32_t index) { return timelines().done(all_[index]->last()); });
  };
  auto taken = idle();
  if (taken == closed_.end() && !closed_.empty()) {
    poll_all();  // may find that more work has finished
    taken = idle();
  }
  if (taken == closed_.end() && all_.size() < kMaxStreams) {
    const auto index = static_cast<uint32_t>(all_.size());
    all_.push_back(std::make_unique<StreamRecorder>(*this, base_, index, StreamRecorder::kRing));
    closed_.push_back(index);
    taken = closed_.end() - 1;
  }
  if (closed_.empty()) {
    fail(TUFF_ERROR_LIMIT_EXCEEDED, "the context has {} streams, which is the maximum", kMaxStreams);
  }
  if (taken == closed_.end()) taken = closed_.begin();
  StreamRecorder& stream = *all_[*taken];
  stream.set_name(std::move(name));
  if (profile_ != nullptr) stream.profile_begin(*profile_);
  closed_.erase(taken);  // only after everything that can fail, so that a failure leaves the stream available
  return stream;
}

void Streams::close(StreamRecorder& stream) {
  stream.release_scratch();
  closed_.push_back(stream.index());  // room for all is reserved
  stream.submit(false);
}

void Streams::submit_all(bool for_host, std::vector<Use>& uses) {
  uses.clear();
  for (const auto& stream : all_) {
    const Use use{stream->index(), stream->submit(for_host)};
    if (!timelines().done(use)) uses.push_back(use);
  }
}

void Streams::wait(const std::vector<Use>& uses) {
  for (const Use use : uses) all_[use.stream]->wait(use.submission);
}

bool Streams::at_rest(bool wait) noexcept {
  using std::chrono::steady_clock;
  const auto start = steady_clock::now();
  const uint64_t limit = wait ? wait_limit() : 0;
  return std::all_of(all_.begin(), all_.end(), [&](const auto& stream) {
    const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - start).count();
    return stream->at_rest(limit - std::min(limit, static_cast<uint64_t>(passed)));
  });
}

void Streams::drain() {
  std::vector<Use> uses;
  release_scratch();
  submit_all(false, uses);
  wait(uses);
  release_written();
}

void Streams::release_written() noexcept {
  for (const auto& stream : all_) stream->release_written();
}

void Streams::release_scratch() noexcept {
  for (const auto& stream : all_) stream->release_scratch();
}

void Streams::poll_all() {
  for (const auto& stream : all_) {
    if (stream->submitted() > stream->completed()) stream->poll();
  }
}

StreamRecorder::Counters Streams::counters() const {
  StreamRecorder::Counters sum;
  for (const auto& stream : all_) {
    const StreamRecorder::Counters counters = stream->counters();
    sum.dispatches += counters.dispatches;
    sum.submissions += counters.submissions;
    sum.barriers += counters.barriers;
  }
  return sum;
}

void Streams::show_usage() noexcept {
  for (const auto& stream : all_) stream->show_usage();
}

void Streams::profile_begin(Profile& profile) {
  try {
    for (const auto& stream : all_) stream->profile_begin(profile);
  } catch (...) {
    profile_end();
    throw;
  }
  profile_ = &profile;
}

void Streams::profile_collect() {
  for (const auto& stream : all_) stream->profile_collect();
}

void Streams::profile_end() noexcept {
  profile_ = nullptr;
  for (const auto& stream : all_) stream->profile_end();
}

}  // namespace tuff
