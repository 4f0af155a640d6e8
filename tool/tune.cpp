// tuff tune: measures which kernel variants are fastest on this device, and stores them in a table that every process
// then uses.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>

#include "runtime/tuning_file.hpp"
#include "tool/commands.hpp"
#include "tool/format.hpp"
#include "tool/table.hpp"
#include "tool/text.hpp"
#include "tool/tune_trial.hpp"
#include "tool/usage.hpp"

namespace tool {
namespace {

using Clock = std::chrono::steady_clock;
using Json = TuneFile::Json;

// A GEMM is skipped if one call takes more than this share of its time budget: about a hundred calls are needed.
constexpr double kLongestCall = 1.0 / 50;
constexpr int kPasses = 3;  // over the unfinished GEMMs, while time is left

volatile std::sig_atomic_t interrupted = 0;

// The first signal ends the measurements and keeps the results; the third ends the process. (timeout(1) sends two at
// once: to its child, and to the process group.)
extern "C" void on_interrupt(int signal) {
  interrupted = interrupted + 1;
  if (interrupted == 2) std::signal(signal, SIG_DFL);
}

class CatchInterrupts {
 public:
  CatchInterrupts() {
    interrupted = 0;
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, on_interrupt);
  }
  ~CatchInterrupts() {
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  }
  CatchInterrupts(const CatchInterrupts&) = delete;
  CatchInterrupts& operator=(const CatchInterrupts&) = delete;
};

std::filesystem::path output_path(const TuneOptions& options) {
  if (!options.output.empty()) return options.output;
  const auto place = tuff::tuning_place();
  if (!place) {
    throw std::runtime_error(
        "there is no file for the table: TUFF_TUNING is \"off\", or there is no cache folder. "
        "Name a file by --output");
  }
  return place->path;
}

std::vector<tuff::DType> types_of(const TuneOptions& options, const tuff::Context& context,
                                  const tuff::DeviceProperties& device) {
  auto types = parse_types(!options.types.empty()              ? options.types
                           : device.supports_matrix_cores != 0 ? "f32,f16,bf16,i8"
                                                               : "f32");
  const std::map<tuff::DType, const char*> features = {{tuff::DType::f16, "gemm.f16"},
                                                       {tuff::DType::bf16, "gemm.bf16"},
                                                       {tuff::DType::f64, "gemm.f64"},
                                                       {tuff::DType::i8, "gemm.i8"}};
  for (const auto& [type, feature] : features) {
    if (std::find(types.begin(), types.end(), type) == types.end() || context.supports(feature)) continue;
    if (!options.types.empty()) throw std::runtime_error(fmt::format("--type: the device has no {}", feature));
    std::erase(types, type);
  }
  return types;
}

std::string describe(const Candidate& candidate) {
  return candidate.slices == 0 ? candidate.variant : fmt::format("{}, split-K {}", candidate.variant, candidate.slices);
}

// One GEMM of the list and its state.
struct Row {
  enum class State { open, done, done_before, repeated, left_out };
  Product product;
  State state = State::open;
  bool begun = false, measured = false;
  Finding finding{};
  std::string failure{};
};

void print_rows(const std::vector<Row>& rows) {
  Table table(
      {{"gemm"}, {"built in"}, {"time", Align::right}, {"best"}, {"time", Align::right}, {"gain", Align::right}});
  for (const Row& row : rows) {
    const Finding& found = row.finding;
    if (!row.failure.empty()) {
      table.row({row.product.name(), "failed"});
    } else if (row.measured && found.replaced) {
      table.row({row.product.name(), describe(found.built_in), format_seconds(found.built_in_seconds),
                 describe(found.best), format_seconds(found.best_seconds),
                 fmt::format("{:.2f} x", found.built_in_seconds / found.best_seconds)});
    } else if (row.measured) {
      table.row({row.product.name(), describe(found.built_in), format_seconds(found.built_in_seconds),
                 found.complete ? "the same" : "the same so far"});
    }
  }
  table.print();
  for (const Row& row : rows) {
    if (!row.failure.empty()) fmt::print("\n  {}: {}\n", row.product.name(), row.failure);
  }
}

Json choice_of(const Json& entry, const Finding& found) {
  Json choice = entry;
  if (found.replaced) {
    choice["variant"] = found.best.variant;
    if (found.best.slices != 0) choice["slices"] = found.best.slices;
    choice["seconds"] = found.best_seconds;
  }
  choice["built_in"] = found.built_in.variant;
  choice["built_in_seconds"] = found.built_in_seconds;
  choice["complete"] = found.complete;
  return choice;
}

const char* state_name(Row::State state) {
  switch (state) {
    case Row::State::open: return "not finished";
    case Row::State::done: return "done";
    case Row::State::done_before: return "measured before";
    case Row::State::repeated: return "about the size of another";
    case Row::State::left_out: return "too large";
  }
  return "";
}

Json candidate_json(const Candidate& candidate, double seconds) {
  return {{"variant", candidate.variant},
          {"slices", candidate.slices == 0 ? Json(nullptr) : Json(candidate.slices)},
          {"seconds", seconds}};
}

Json row_json(const Row& row) {
  Json json = {{"product", row.product.name()}, {"state", state_name(row.state)}};
  if (!row.failure.empty()) json["error"] = row.failure;
  if (!row.measured) return json;
  json["built_in"] = candidate_json(row.finding.built_in, row.finding.built_in_seconds);
  json["best"] = row.finding.replaced ? candidate_json(row.finding.best, row.finding.best_seconds) : json["built_in"];
  json["complete"] = row.finding.complete;
  return json;
}

// The GEMMs of a run, in order, and its progress.
class Tuner {
 public:
  Tuner(const TuneOptions& options, tuff::Context& context, TuneFile& file)
      : options_(options), context_(context), file_(file), device_(context.info()) {
    for (Product& product : read_products(options.shapes, types_of(options, context, device_))) {
      rows_.push_back({std::move(product)});
    }
  }

  int list() {
    Table table({{"gemm"}, {""}, {"built in"}, {"others"}});
    Json document = Json::array();
    for (const Row& row : rows_) {
      const Product& product = row.product;
      if (options_.json) {
        document.push_back({{"product", product.name()}, {"bytes", product.bytes()}, {"fits", has_room(product)}});
        if (!has_room(product)) continue;
        const Trial trial(context_, product, file_);
        document.back()["done"] = is_done(trial.entry());
        document.back()["variants"] = trial.variants();
        continue;
      }
      if (!has_room(product)) {
        table.row({product.name(), "too large", format_bytes(product.bytes())});
        continue;
      }
      const Trial trial(context_, product, file_);
      std::string others;
      for (size_t i = 1; i < trial.variants().size(); ++i) others += (i > 1 ? " " : "") + trial.variants()[i];
      table.row({product.name(), is_done(trial.entry()) ? "done" : "to do",
                 trial.variants().empty() ? "" : trial.variants()[0], others});
    }
    if (options_.json) {
      print_json(document);
    } else {
      table.print();
    }
    return 0;
  }

  int run() {
    const CatchInterrupts catching;
    begin_ = Clock::now();
    // Each GEMM gets an equal share of the time; what one leaves over goes to the others.
    for (int pass = 0; pass < kPasses && count(Row::State::open) != 0 && !out_of_time(); ++pass) {
      size_t left = count(Row::State::open);
      Progress progress(left, options_.budget - spent());
      for (Row& row : rows_) {
        if (row.state != Row::State::open) continue;
        if (out_of_time()) break;
        progress.step(row.product.name());
        measure(row, (options_.budget - spent()) / static_cast<double>(left--));
      }
    }
    if (options_.json) {
      print_json(report_json());
    } else {
      report();
    }
    return interrupted != 0 ? kExitInterrupted : 0;
  }

 private:
  bool has_room(const Product& product) const {
    const uint64_t room = device_.memory_free_bytes != 0 ? device_.memory_free_bytes : device_.memory_bytes;
    return product.bytes() < room / 2;
  }
  bool is_done(const Json& entry) const {
    const Json* choice = file_.find(entry);
    return choice != nullptr && choice->value("complete", false);
  }
  double spent() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  bool out_of_time() const { return interrupted != 0 || spent() >= options_.budget; }
  size_t count(Row::State state) const {
    return static_cast<size_t>(
        std::count_if(rows_.begin(), rows_.end(), [&](const Row& row) { return row.state == state; }));
  }

  void measure(Row& row, double share) {
    if (!has_room(row.product)) {
      row.state = Row::State::left_out;
      return;
    }
    // A GEMM with more operations than an earlier one is not faster, so one that would take too long is recognised
    // without running it.
    double& rate = best_rate_[row.product.type];
    if (rate != 0 && row.product.flops() / rate > 4 * kLongestCall * share) return;
    try {
      Trial trial(context_, row.product, file_);
      if (!row.begun) row.state = begin(trial.entry());
      row.begun = true;
      if (row.state == Row::State::open) measure(row, trial, share, rate);
    } catch (const tuff::Exception& error) {
      if (error.status() == TUFF_ERROR_DEVICE_LOST) throw;
      row.failure = error.what();
      row.state = Row::State::done;
    }
    context_.set_tuning(nullptr);
  }

  void measure(Row& row, Trial& trial, double share, double& rate) {
    const double end = spent() + share;
    const Finding found = find_best(trial, kLongestCall * share, [&] { return out_of_time() || spent() > end; });
    if (found.skipped) return;
    row.measured = found.measured != 0;
    row.finding = found;
    if (found.complete) row.state = Row::State::done;
    if (!row.measured) return;
    rate = std::max(rate, row.product.flops() / found.best_seconds);
    file_.put(choice_of(trial.entry(), found));
    if (!options_.dry_run) file_.save();
  }

  Row::State begin(const Json& entry) {
    const tuff::TuningKey key = TuneFile::key(entry);
    if (std::find(seen_.begin(), seen_.end(), key) != seen_.end()) return Row::State::repeated;
    seen_.push_back(key);
    return !options_.again && is_done(entry) ? Row::State::done_before : Row::State::open;
  }

  Json report_json() const {
    Json json = {{"device", device_.name},
                 {"driver", device_.driver},
                 {"table", options_.dry_run ? Json(nullptr) : Json(file_.path().string())},
                 {"interrupted", interrupted != 0},
                 {"products", Json::array()}};
    for (const Row& row : rows_) json["products"].push_back(row_json(row));
    return json;
  }

  void report() const {
    const auto measured = std::count_if(rows_.begin(), rows_.end(), [](const Row& row) { return row.measured; });
    const auto replaced =
        std::count_if(rows_.begin(), rows_.end(), [](const Row& row) { return row.finding.replaced; });
    const bool failed = std::any_of(rows_.begin(), rows_.end(), [](const Row& row) { return !row.failure.empty(); });
    if (measured != 0 || failed) {
      print_rows(rows_);
      fmt::print("\n");
    }
    fmt::print("{} GEMMs measured, {} of them faster with another choice.\n", measured, replaced);
    if (const size_t before = count(Row::State::done_before); before != 0) {
      fmt::print("{} were measured before: --again repeats them.\n", before);
    }
    if (const size_t repeated = count(Row::State::repeated); repeated != 0) {
      fmt::print("{} are about the size of another: one choice applies to both.\n", repeated);
    }
    if (const size_t large = count(Row::State::left_out); large != 0) {
      fmt::print("{} do not fit into the device's memory.\n", large);
    }
    if (const size_t open = count(Row::State::open); open != 0) {
      fmt::print("{}: {} are not finished. The same command continues from here{}.\n",
                 interrupted != 0 ? "Interrupted" : "The time is up", open,
                 interrupted != 0 ? "" : "; long calls need a larger --budget");
    }
    if (options_.dry_run) {
      fmt::print("Nothing was written (--dry-run).\n");
    } else if (measured != 0) {
      fmt::print("Written to {}.\n", file_.path().string());
    }
  }

  const TuneOptions& options_;
  tuff::Context& context_;
  TuneFile& file_;
  tuff::DeviceProperties device_;
  std::vector<Row> rows_;
  std::vector<tuff::TuningKey> seen_;  // several GEMMs of the list may fall into the same buckets
  std::map<tuff::DType, double> best_rate_;
  Clock::time_point begin_;
};

}  // namespace

int run_tune(const TuneOptions& options) {
  if (!options.types.empty()) parse_types(options.types);  // rejects unknown types before any device is opened
  setenv("TUFF_CPU_PLUGIN", "off", 1);  // kernels are measured, of which a plug-in has none
  tuff::Context context = open_context(options.device, "vulkan");
  const tuff::DeviceProperties device = context.info();
  TuneFile file(output_path(options), tuff::tuning_device(device, tuff::version()));
  Tuner tuner(options, context, file);
  if (options.list) return tuner.list();
  if (!options.json) fmt::print("{}\n", heading(device));
  return tuner.run();
}

}  // namespace tool
