#include "runtime/profile.hpp"

#include <algorithm>
#include <chrono>

#include "planning/log.hpp"
#include "planning/operation.hpp"
#include "platform/mutex.hpp"
#include "platform/platform.hpp"

namespace tuff {
namespace {

constexpr size_t kMaxPlan = 1000;  // maximum total bytes of the planner's lines for a kernel

thread_local ProfiledCall* current_call = nullptr;

uint64_t this_thread() noexcept {
  static std::atomic<uint64_t> threads{0};
  thread_local const uint64_t number = ++threads;
  return number;
}

// Planners log what they chose and why. Profiled calls keep these lines.
void note_plan_of_current_call(std::string_view line) {
  if (current_call != nullptr) current_call->note_plan(line);
}

void listen(int change) {
  static constinit Mutex mutex(LockRank::profile_count);
  static int profiles = 0;
  const std::lock_guard lock(mutex);
  profiles += change;
  set_dispatch_listener(profiles > 0 ? note_plan_of_current_call : nullptr);
}

template <typename Span>
bool added(std::vector<Span>& spans, const Span& span, size_t most) noexcept {
  if (spans.size() >= most) return false;
  try {
    spans.push_back(span);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace

HostTime host_now() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double DeviceClock::host_time(uint64_t ticks) const {
  const double since = static_cast<double>(static_cast<int64_t>(ticks - first.ticks));
  const double between = static_cast<double>(last.ticks - first.ticks);
  // Over less than a second, the uncertainty of the points exceeds the clocks' drift.
  const bool apart = last.ticks > first.ticks && last.host - first.host > 1'000'000'000;
  const double slope = apart ? static_cast<double>(last.host - first.host) / between : period;
  return static_cast<double>(first.host) + since * slope;
}

Profile::Profile(size_t max_spans) : max_spans_(max_spans) { text(""); }

Profile::~Profile() {
  if (recording()) listen(-1);
}

void Profile::start() {
  listen(+1);
  const std::lock_guard lock(mutex_);
  host_.clear();
  device_.clear();
  dropped_ = 0;
  began_ = host_now();
  recording_.store(true, std::memory_order_relaxed);
}

void Profile::set_before(const tuff_stats& stats) {
  const std::lock_guard lock(mutex_);
  before_ = stats;
}

void Profile::stop(const tuff_stats& stats) {
  listen(-1);
  const std::lock_guard lock(mutex_);
  after_ = stats;
  ended_ = host_now();
  recording_.store(false, std::memory_order_relaxed);
}

uint32_t Profile::text(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (const auto found = numbers_.find(text); found != numbers_.end()) return found->second;
  texts_.emplace_back(text);
  return numbers_.emplace(texts_.back(), static_cast<uint32_t>(texts_.size() - 1)).first->second;
}

uint32_t Profile::thread_number() {
  const uint64_t id = this_thread();
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(threads_.begin(), threads_.end(), [id](const Thread& thread) { return thread.id == id; });
  const auto number = static_cast<uint32_t>(found - threads_.begin());
  if (found == threads_.end()) threads_.push_back({id, platform::thread_name()});
  return number;
}

void Profile::add(const HostSpan& span) noexcept {
  const std::lock_guard lock(mutex_);
  if (!recording() || span.begin < began_) return;  // a call from before the profile
  if (!added(host_, span, max_spans_)) ++dropped_;
}

void Profile::add(const DeviceSpan& span) noexcept {
  const std::lock_guard lock(mutex_);
  if (!added(device_, span, max_spans_)) ++dropped_;
}

void Profile::add_dropped(uint64_t count) {
  const std::lock_guard lock(mutex_);
  dropped_ += count;
}

void Profile::set_device(std::string_view name, bool timed, const DeviceRates& rates) {
  const std::lock_guard lock(mutex_);
  device_name_ = name;
  has_device_ = timed;
  rates_ = rates;
}

void Profile::set_clock(const DeviceClock& clock) {
  const std::lock_guard lock(mutex_);
  clock_ = clock;
}

std::vector<DeviceSpan> Profile::device_spans() const {
  const std::lock_guard lock(mutex_);
  return device_;
}

double Profile::seconds(const DeviceSpan& span) const {
  const std::lock_guard lock(mutex_);
  return clock_.nanoseconds(span.begin, span.end) * 1e-9;
}

ProfiledCall::ProfiledCall(Profile& profile, const char* name) : profile_(profile), outer_(current_call) {
  span_.name = profile.text(name);
  span_.thread = profile.thread_number();
  span_.call = profile.next_call();
  span_.failed = true;  // until done()
  current_call = this;
  span_.begin = host_now();
}

ProfiledCall::~ProfiledCall() {
  current_call = outer_;
  if (span_.end == 0) span_.end = host_now();
  profile_.add(span_);
}

ProfiledCall* ProfiledCall::current() noexcept { return current_call; }

void ProfiledCall::about(const CallText& text) {
  span_.shape = profile_.text(text.shape);
  span_.dtype = text.dtype;
}

void ProfiledCall::note_plan(std::string_view line) {
  if (noted_.size() + line.size() > kMaxPlan) return;
  if (!noted_.empty()) noted_ += "; ";
  noted_ += line;
}

uint32_t ProfiledCall::take_plan() {
  const uint32_t plan = profile_.text(noted_);
  noted_.clear();
  return plan;
}

void ProfiledStep::finish() noexcept {
  try {
    HostSpan span = call_->span();
    span.name = call_->profile().text(name_);
    span.step = true;
    span.failed = false;
    span.begin = begin_;
    span.end = host_now();
    call_->profile().add(span);
  } catch (...) {
  }
}

}  // namespace tuff
