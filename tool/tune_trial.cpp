#include "tool/tune_trial.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>

namespace tool {
namespace {

using Clock = std::chrono::steady_clock;
using tuff::DType;

constexpr double kWarmTrialSeconds = 0.03;
constexpr int kSamplesOfCandidate = 3;  // for each candidate; the best one counts
// Variants are tried in order of expected speed. After this many in a row that are this much slower than the best, the
// rest are not worth measuring.
constexpr uint32_t kMaxWorse = 3;
constexpr double kWorse = 1.5;
// The duel: in each round both candidates run, one after the other. If both are equally fast, each wins a round with
// probability 1/2, and 12 or 13 of 13 rounds with probability 14/8192. That is below 0.2 %, for a table of some
// hundred rows. A gain below kMinGain is not worth a row.
constexpr size_t kRounds = 13, kRoundsLost = 1;
constexpr double kMinGain = 1.02;
// Split-K pays where C is small, as long as the parts of k are not.
constexpr uint64_t kMaxSlicedResults = 1u << 20, kMinSlice = 128;
constexpr uint32_t kSlices[] = {1, 2, 4, 8, 16, 32};

// Random values between -1 and 1 (-8 and 8 for i8): a device's power draw, and so its clock, depends on the bits
// moved.
std::vector<unsigned char> random_bytes(DType type, uint64_t count) {
  std::vector<unsigned char> bytes(count * type_bytes(type));
  std::minstd_rand random(1);
  for (uint64_t i = 0; i < count; ++i) {
    const auto number = static_cast<uint32_t>(random());
    const float value = static_cast<float>(static_cast<int32_t>(number % 2048) - 1024) / 1024.0f;
    unsigned char* out = &bytes[i * type_bytes(type)];
    uint32_t word;
    std::memcpy(&word, &value, sizeof word);
    if (type == DType::f32) {
      std::memcpy(out, &word, 4);
    } else if (type == DType::f64) {
      const double wide = value;
      std::memcpy(out, &wide, 8);
    } else if (type == DType::bf16) {
      const auto half = static_cast<uint16_t>(word >> 16);
      std::memcpy(out, &half, 2);
    } else if (type == DType::f16) {
      // Sign, an exponent of 2^-4 to 2^-1, any mantissa.
      const auto half = static_cast<uint16_t>((number & 0x83ffu) | (11 + number / 1024 % 4) << 10);
      std::memcpy(out, &half, 2);
    } else {
      *out = static_cast<unsigned char>(static_cast<int>(number / 16 % 17) - 8);
    }
  }
  return bytes;
}

tuff::Buffer random_buffer(const tuff::Context& context, DType type, uint64_t count) {
  const uint64_t bytes = count * type_bytes(type);
  tuff::AllocOptions options;
  options.uninitialized = true;
  tuff::Buffer buffer = context.alloc_bytes(bytes, options);
  const auto values = random_bytes(type, std::min<uint64_t>(count, 1u << 18));
  buffer.upload(values);
  for (uint64_t done = values.size(); done < bytes;) {
    const uint64_t part = std::min(done, bytes - done);
    buffer.copy_from(buffer, part, done);
    done += part;
  }
  return buffer;
}

double best_of(const Trial& trial, double expected) {
  double best = trial.sample(expected);
  for (int i = 1; i < kSamplesOfCandidate; ++i) best = std::min(best, trial.sample(expected));
  return best;
}

// True if b beats a by more than the noise. Both times become medians over the rounds that the decision took.
bool wins(Trial& trial, const Candidate& a, const Candidate& b, double& a_seconds, double& b_seconds) {
  std::vector<double> as, bs;
  size_t lost = 0;
  while (as.size() < kRounds && lost <= kRoundsLost) {
    const bool b_first = as.size() % 2 == 0;
    for (const bool of_b : {b_first, !b_first}) {
      trial.choose(of_b ? b : a);
      (of_b ? bs : as).push_back(trial.sample(of_b ? b_seconds : a_seconds));
    }
    lost += bs.back() >= as.back();
  }
  const auto median = [](std::vector<double> times) {
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    return *middle;
  };
  a_seconds = median(as);
  b_seconds = median(bs);
  return lost <= kRoundsLost && a_seconds >= kMinGain * b_seconds;
}

// Measures one candidate, keeps it if it is the best so far, and returns its seconds.
double try_out(Trial& trial, const Candidate& candidate, Finding& finding) {
  double seconds = trial.warm_up();
  // A candidate several times slower than the best needs no exact time.
  if (seconds < 3 * finding.best_seconds) seconds = best_of(trial, seconds);
  ++finding.measured;
  if (seconds < finding.best_seconds) {
    finding.best = candidate;
    finding.best_seconds = seconds;
  }
  return seconds;
}

bool try_variants(Trial& trial, Finding& finding, const std::function<bool()>& out_of_time) {
  uint32_t worse = 0;
  for (size_t i = 1; i < trial.variants().size() && worse < kMaxWorse; ++i) {
    if (out_of_time()) return false;
    const Candidate candidate{trial.variants()[i], 0};
    try {
      if (!trial.choose(candidate)) continue;
      worse = try_out(trial, candidate, finding) > kWorse * finding.best_seconds ? worse + 1 : 0;
    } catch (const tuff::Exception& error) {
      // any other error means that it cannot run, for example for lack of memory
      if (error.status() == TUFF_ERROR_DEVICE_LOST) throw;
    }
  }
  return true;
}

bool try_slices(Trial& trial, Finding& finding, const std::function<bool()>& out_of_time) {
  const auto& sizes = trial.entry()["sizes"];
  const auto results = sizes[0].get<uint64_t>() * sizes[1].get<uint64_t>() * sizes[3].get<uint64_t>();
  if (results > kMaxSlicedResults) return true;
  const std::string variant = finding.best.variant;
  for (const uint32_t slices : kSlices) {
    if (sizes[2].get<uint64_t>() / slices < kMinSlice) break;
    if (out_of_time()) return false;
    const Candidate candidate{variant, slices};
    if (trial.choose(candidate)) try_out(trial, candidate, finding);
  }
  return true;
}

}  // namespace

Trial::Trial(tuff::Context& context, const Product& product, const TuneFile& file)
    : context_(context),
      file_(file),
      a_(random_buffer(context, product.type, product.batch * product.m * product.k)),
      b_(random_buffer(context, product.type, product.batch * product.k * product.n)),
      c_(context.alloc_bytes(product.batch * product.m * product.n * type_bytes(product.c_type()))) {
  desc_.dtype = static_cast<int32_t>(product.type);
  desc_.ta = product.ta ? TUFF_TRANS : TUFF_NO_TRANS;
  desc_.tb = product.tb ? TUFF_TRANS : TUFF_NO_TRANS;
  desc_.m = product.m, desc_.n = product.n, desc_.k = product.k;
  desc_.alpha = 1;
  desc_.a = a_.handle(), desc_.b = b_.handle(), desc_.c = c_.handle();
  desc_.stride_a = product.m * product.k;
  desc_.stride_b = product.k * product.n;
  desc_.stride_c = product.m * product.n;
  desc_.batch_count = product.batch;
  context_.set_tuning(nullptr);
  entry_ = ask();
  for (const auto& name : entry_["variants"]) variants_.push_back(name);
  entry_.erase("variants");
  entry_.erase("slices");
}

TuneFile::Json Trial::ask() const { return TuneFile::Json::parse(context_.batched_gemm_variants(desc_)); }

bool Trial::choose(const Candidate& candidate) {
  TuneFile::Json choice = entry_;
  if (!candidate.variant.empty()) choice["variant"] = candidate.variant;
  if (candidate.slices != 0) choice["slices"] = candidate.slices;
  context_.set_tuning(candidate.variant.empty() ? nullptr : file_.table_of(choice).c_str());
  if (candidate.variant.empty()) return true;
  const TuneFile::Json now = ask();
  return now["variants"][0] == candidate.variant && now["slices"] == candidate.slices;
}

double Trial::elapsed(uint64_t calls) const {
  context_.synchronize();
  const auto begin = Clock::now();
  for (uint64_t i = 0; i < calls; ++i) context_.batched_gemm(desc_);
  context_.synchronize();
  return std::chrono::duration<double>(Clock::now() - begin).count() / static_cast<double>(calls);
}

double Trial::warm_up() const {
  elapsed(1);
  double last = elapsed(1);
  for (double spent = last; spent < kWarmTrialSeconds; spent += last) last = elapsed(1);
  return last;
}

double Trial::sample(double expected_seconds) const {
  return elapsed(static_cast<uint64_t>(std::clamp(kSampleSeconds / expected_seconds, 1.0, 10'000.0)));
}

Finding find_best(Trial& trial, double longest_call, const std::function<bool()>& out_of_time) {
  Finding finding;
  finding.candidates = static_cast<uint32_t>(trial.variants().size());
  if (trial.variants().empty()) {
    finding.complete = true;
    return finding;
  }
  trial.choose({});
  finding.built_in.variant = trial.variants()[0];
  finding.best_seconds = trial.warm_up();
  finding.skipped = finding.best_seconds > longest_call;
  if (finding.skipped) return finding;
  finding.best = finding.built_in;
  finding.built_in_seconds = finding.best_seconds = best_of(trial, finding.best_seconds);
  finding.measured = 1;
  finding.complete = try_variants(trial, finding, out_of_time) && try_slices(trial, finding, out_of_time);
  const bool same = finding.best.variant == finding.built_in.variant && finding.best.slices == 0;
  if (!same) {
    finding.replaced = wins(trial, {}, finding.best, finding.built_in_seconds, finding.best_seconds);
  }
  return finding;
}

}  // namespace tool
