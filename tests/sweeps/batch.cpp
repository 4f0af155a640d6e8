#include "sweeps/batch.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "fuzz/numbers.hpp"
#include "fuzz/operands.hpp"

namespace tuff_sweep {
namespace {

using tuff_fuzz::bytes_of;
using tuff_fuzz::Draft;
using tuff_fuzz::Draw;
using tuff_fuzz::Fill;
using tuff_fuzz::Operand;
using tuff_fuzz::size_of;

constexpr uint64_t kGuard = 64;  // bytes before and after each operand, and what offsets are counted from
constexpr const char* kBackends[] = {"host", "vulkan"};

void check(tuff_status status, const char* what) {
  if (status == TUFF_OK) return;
  char text[2048];
  uint64_t length = 0;
  tuff_last_error(text, sizeof text, &length);
  throw std::runtime_error(std::string(what) + ": " + tuff_status_name(status) + " " + text);
}

struct Handles final : tuff_fuzz::Resolver {
  std::vector<uint64_t> handles;
  uint64_t handle(uint64_t reference) const override { return reference == 0 ? 0 : handles[reference - 1]; }
  uint64_t memory(uint64_t reference) const override { return reference; }
};

// Products of these stay exact: few of them are not 1 or -1.
void fill_powers(const Operand& operand, Draw& draw, uint8_t* to) {
  int large = 0;
  for (uint64_t i = 0; i < operand.elements; ++i) {
    double value = tuff_fuzz::draw_value(operand, draw);
    if ((value == 2 || value == -2) && ++large > 8) value /= 2;
    tuff_fuzz::encode(operand.dtype, value, to + i * size_of(operand.dtype));
  }
}

void fill(const Operand& operand, Draw& draw, uint8_t* to) {
  if (tuff_fuzz::fill_bits(operand, draw, to)) return;
  if (operand.fill == Fill::powers) {
    fill_powers(operand, draw, to);
  } else {
    for (uint64_t i = 0; i < operand.elements; ++i) {
      tuff_fuzz::encode(operand.dtype, tuff_fuzz::draw_value(operand, draw), to + i * size_of(operand.dtype));
    }
  }
}

}  // namespace

struct Runner::Placed {
  Cases::Case one;
  std::array<Handles, 2> sides{};
  bool suits = true, refused = false;

  Draft& draft() const { return *one.draft; }
  std::string text() const {
    std::string result = "case " + one.name + "\n  " + draft().call.text();
    for (size_t i = 0; i < draft().operands.size(); ++i) {
      const Operand& operand = draft().operands[i];
      result += "\n  #" + std::to_string(i + 1) + " " + operand.name + ": " + std::to_string(operand.elements) +
                " elements of type " + std::to_string(operand.dtype);
      if (operand.elements == 0) continue;
      result += operand.same >= 0 ? " in place of #" + std::to_string(operand.same + 1)
                                  : ", " + std::to_string(one.offsets[i]) + " bytes beyond a multiple of 64";
    }
    return result;
  }
};

std::pair<uint64_t, uint64_t> Coverage::count(const std::map<std::string, Bits>& all) {
  std::pair<uint64_t, uint64_t> result;
  for (const auto& [name, bits] : all) {
    result.first += static_cast<uint64_t>(std::popcount(bits.tried));
    result.second += static_cast<uint64_t>(std::popcount(bits.possible));
  }
  return result;
}

Runner::Runner(const Forced& forced, bool host) : forced_(forced), host_(host), mirror_(kBytes) {
  for (size_t s = 0; s < 2; ++s) {
    tuff_context_desc desc{};
    desc.struct_size = sizeof desc, desc.backend = host ? kBackends[0] : kBackends[s];
    check(tuff_context_create(&desc, &contexts_[s]), "tuff_context_create");
    tuff_alloc_desc memory{};
    memory.struct_size = sizeof memory, memory.bytes = kBytes;
    check(tuff_alloc_ex(contexts_[s], &memory, &memories_[s]), "tuff_alloc_ex");
  }
  tuff_device_properties properties{};
  properties.struct_size = sizeof properties;
  check(tuff_context_info(contexts_[1], &properties), "tuff_context_info");
  subgroup_ = properties.subgroup_size, matrices_ = properties.supports_matrix_cores != 0;
  check(tuff_set_log(hear, this, TUFF_LOG_DISPATCH), "tuff_set_log");
}

Runner::~Runner() {
  tuff_set_log(nullptr, nullptr, TUFF_LOG_OFF);
  limited_.reset();
  for (const uint64_t context : contexts_) tuff_context_destroy(context);
}

void Runner::hear(void* user, int32_t level, const char* message) {
  auto* const runner = static_cast<Runner*>(user);
  if (runner->verbose) std::printf("    %s\n", message);
  if (level != TUFF_LOG_DISPATCH) return;
  runner->dispatched_ = true;
  runner->told_kind_ = runner->told_kind_ || tells_kind(message);
  runner->told_ = runner->told_ || tells(message, runner->forced_, runner->subgroup_);
}

void Runner::limit(uint64_t device) {
  if (host_) return;
  if (!limited_) limited_.emplace(contexts_[1]);
  limited_->limit(device);
  if (verbose) std::printf("  %s\n", limited_->text().c_str());
}

bool Runner::lacks_matrices() const {
  return !matrices_ && (forced_.variant.starts_with("matrix_") || forced_.variant == "matrices");
}

uint64_t Runner::kernels() const {
  tuff_stats stats{};
  stats.struct_size = sizeof stats;
  return tuff_context_stats(contexts_[1], &stats) == TUFF_OK ? stats.pipelines_created : 0;
}

// Gives each operand its place, with guards around it, and its elements. False if memory is full.
bool Runner::place(Placed& placed) {
  Draft& draft = placed.draft();
  uint64_t end = used_;
  for (size_t i = 0; i < draft.operands.size(); ++i) {
    Operand& operand = draft.operands[i];
    if (operand.elements == 0) {
      operand.same = -1;
      continue;
    }
    if (operand.same >= 0 && draft.operands[static_cast<size_t>(operand.same)].elements == 0) operand.same = -1;
    if (operand.same >= 0) continue;
    operand.offset = (end + kGuard - 1) / kGuard * kGuard + kGuard + placed.one.offsets[i];
    end = operand.offset + bytes_of(operand) + kGuard;
  }
  if (end > kBytes) return false;
  // The guards, and results before the call, are any bytes.
  Draw draw(placed.draft().free);
  for (uint64_t at = used_ / 8 * 8; at < std::min(kBytes, (end + 7) / 8 * 8); at += 8) {
    const uint64_t value = draw.next();
    if (at >= used_) std::memcpy(mirror_.data() + at, &value, 8);
  }
  used_ = std::min(kBytes, (end + 7) / 8 * 8);
  for (Operand& operand : draft.operands) {
    if (operand.same >= 0) operand.offset = draft.operands[static_cast<size_t>(operand.same)].offset;
    if (operand.read && operand.elements != 0) fill(operand, draw, mirror_.data() + operand.offset);
  }
  for (Operand& operand : draft.operands) {
    if (operand.read && operand.elements != 0) tuff_fuzz::look(operand, mirror_.data() + operand.offset);
  }
  placed.suits = !draft.suits || draft.suits();
  return true;
}

void Runner::note(const Placed& placed) {
  const Draft& draft = placed.draft();
  const std::string function = draft.call.function().name;
  for (size_t i = 0; i < draft.operands.size(); ++i) {
    const Operand& operand = draft.operands[i];
    if (operand.elements == 0 || operand.same >= 0) continue;
    Coverage::Bits& bits = coverage.offsets[function + " " + operand.name];
    bits.tried |= uint64_t{1} << placed.one.offsets[i];
    for (uint64_t at = 0; at <= kMaxOffset; at += size_of(operand.dtype)) bits.possible |= uint64_t{1} << at;
  }
  const tuff_fuzz::Extents& extents = *placed.one.extents;
  const bool gemm = forced_.family->functions[0] == std::string_view("tuff_gemm");
  const auto swept = [](uint64_t size) { return size <= kLargest; };
  if (gemm && (told_ || !dispatched_) && std::all_of(extents.values.begin(), extents.values.begin() + 3, swept)) {
    coverage.triples[extents.values[0] + 34 * (extents.values[1] + 34 * extents.values[2])] = true;
  }
  for (size_t i = 0; i < extents.values.size(); ++i) {
    if ((extents.swept != i && !(gemm && i < 3)) || extents.values[i] > kLargest) continue;
    Coverage::Bits& bits =
        coverage.sizes[function + " " + std::to_string(extents.values.size()) + " " + std::to_string(i)];
    bits.tried |= uint64_t{1} << extents.values[i];
    bits.possible = (uint64_t{1} << (kLargest + 1)) - 1;
  }
}

std::string Runner::call(Placed& placed) {
  Draft& draft = placed.draft();
  for (size_t i = 0; i < draft.operands.size(); ++i) {
    const Operand& operand = draft.operands[i];
    for (size_t s = 0; s < 2; ++s) {
      uint64_t view = 0;
      if (operand.elements != 0) {
        check(tuff_view(memories_[s], operand.offset, bytes_of(operand), &view), "tuff_view");
      }
      placed.sides[s].handles.push_back(view);
    }
    const auto place = static_cast<size_t>(draft.call.find(operand.name));
    draft.call.slot(place).set = true;
    draft.call.put(place, operand.index, i + 1);
  }
  for (size_t s = 0; s < 2; ++s) placed.sides[s].handles.push_back(contexts_[s]);
  draft.call.set("stream", uint64_t{draft.operands.size() + 1});
  if (verbose) std::printf("  %s\n", placed.text().c_str());
  std::array<tuff_fuzz::Outcome, 2> outcomes;
  told_ = told_kind_ = dispatched_ = false;
  for (size_t s = 0; s < 2; ++s) outcomes[s] = draft.call.invoke(placed.sides[s]);
  for (size_t s = 0; s < 2; ++s) {
    const tuff_fuzz::Outcome& outcome = outcomes[s];
    if (outcome.status == TUFF_OK) continue;
    if (outcome.message.find(forced_.variant + " does not run on this device") != std::string::npos) {
      absent = true;
      return "";
    }
    if (s == 1 && limited_ &&
        (outcome.status == TUFF_ERROR_UNSUPPORTED || outcome.status == TUFF_ERROR_LIMIT_EXCEEDED)) {
      placed.refused = true;
      ++tally.refused;
      return "";
    }
    return text_of(placed) + "\n  " + kBackends[s] + ": " + tuff_status_name(outcome.status) + " " + outcome.message;
  }
  ++tally.cases;
  tally.chosen += told_;
  tally.nothing += !dispatched_;
  Tally::Messages& messages = tally.messages[draft.call.function().name];
  messages.dispatched += dispatched_;
  messages.told_kind += told_kind_;
  tally.unjudged += !placed.suits;
  note(placed);
  return "";
}

std::string Runner::text_of(const Placed& placed) const {
  return placed.text() + (limited_ ? "\n  device: " + limited_->text() : "");
}

// All bytes outside the results are unchanged on both; the device's results are what the host backend's allow.
std::string Runner::compare(std::vector<Placed>& all) {
  for (size_t s = 0; s < 2; ++s) {
    read_[s].resize(used_);
    check(tuff_copy_dtoh(contexts_[s], read_[s].data(), memories_[s], 0, used_), "tuff_copy_dtoh");
  }
  written_.assign(used_, 0);
  for (const Placed& placed : all) {
    for (const Operand& operand : placed.draft().operands) {
      if (operand.written && operand.elements != 0) tuff_fuzz::mark(operand, written_.data() + operand.offset);
    }
  }
  const auto nearest = [&](uint64_t at) {
    const Placed* result = &all.front();
    for (const Placed& placed : all) {
      for (const Operand& operand : placed.draft().operands) {
        if (operand.elements != 0 && operand.offset <= at + kGuard) result = &placed;
      }
    }
    return result;
  };
  for (size_t s = 0; s < 2; ++s) {
    for (const Placed& placed : all) {  // a call that is refused writes nothing
      for (const Operand& operand : placed.draft().operands) {
        if (s == 0 || !placed.refused) continue;
        std::fill_n(written_.begin() + static_cast<ptrdiff_t>(operand.offset), bytes_of(operand), uint8_t{0});
      }
    }
    for (uint64_t at = 0; at < used_; ++at) {
      if (written_[at] != 0 || read_[s][at] == mirror_[at]) continue;
      const Placed* const placed = nearest(at);
      std::string text = text_of(*placed) + "\n  " + kBackends[s] + ": a byte was written that is no result: ";
      for (const Operand& operand : placed->draft().operands) {
        if (operand.elements == 0) continue;
        text += std::to_string(static_cast<int64_t>(at - operand.offset)) + " bytes from the beginning of " +
                operand.name + "; ";
      }
      return text;
    }
  }
  for (const Placed& placed : all) {
    for (const Operand& operand : placed.draft().operands) {
      if (!operand.written || operand.elements == 0 || placed.refused) continue;
      const uint64_t unit = size_of(operand.dtype);
      if (std::memcmp(read_[0].data() + operand.offset, read_[1].data() + operand.offset, bytes_of(operand)) == 0) {
        continue;
      }
      for (uint64_t i = 0; i < operand.elements; ++i) {
        const uint8_t *const host = read_[0].data() + operand.offset + i * unit, *const got = read_[1].data() +
                                                                                              operand.offset + i * unit;
        if (std::memcmp(host, got, unit) == 0 || !placed.suits) continue;
        if (!operand.moved && tuff_fuzz::alike(operand, i, host, got)) continue;
        char text[256];
        const double y = tuff_fuzz::decode(operand.dtype, host);
        std::snprintf(text, sizeof text, "\n  vulkan: element %llu of %s is %.17g, host %.17g; allowed %g",
                      static_cast<unsigned long long>(i), operand.name, tuff_fuzz::decode(operand.dtype, got), y,
                      operand.allowed ? operand.allowed(i, y) : 0.0);
        return text_of(placed) + text;
      }
    }
  }
  return "";
}

std::string Runner::run_placed(std::vector<Placed>& all) {
  if (all.empty()) return "";
  for (size_t s = 0; s < 2; ++s) {
    check(tuff_copy_htod(contexts_[s], memories_[s], 0, mirror_.data(), used_), "tuff_copy_htod");
  }
  std::string wrong;
  for (size_t i = 0; i < all.size(); ++i) {
    wrong = call(all[i]);
    if (!wrong.empty() || absent) break;
    // The others have been given a place and elements, which stay as they are.
    if (std::chrono::steady_clock::now() >= deadline) all.resize(i + 1);
  }
  if (wrong.empty() && !absent) wrong = compare(all);
  for (const Placed& placed : all) {
    for (size_t s = 0; s < 2; ++s) {
      for (size_t i = 0; i + 1 < placed.sides[s].handles.size(); ++i) {
        if (placed.sides[s].handles[i] != 0) check(tuff_free(placed.sides[s].handles[i]), "tuff_free");
      }
    }
  }
  all.clear();
  used_ = 0;
  return wrong;
}

std::string Runner::run(const Cases& cases, const Cases::Request& request, std::span<const uint64_t> turns) {
  std::vector<Placed> all;
  for (const uint64_t turn : turns) {
    Placed placed{cases.at(request, turn)};
    if (!place(placed)) {
      if (const std::string wrong = run_placed(all); !wrong.empty() || absent) return wrong;
      if (!place(placed)) {
        ++tally.too_large;
        continue;
      }
    }
    all.push_back(std::move(placed));
  }
  return run_placed(all);
}

}  // namespace tuff_sweep
