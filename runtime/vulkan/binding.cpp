#include "runtime/vulkan/binding.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <iterator>

#include "planning/backend_kernels.hpp"
#include "planning/log.hpp"
#include "platform/platform.hpp"

namespace tuff {
namespace {

constexpr uint64_t kBytes = 4u << 20;
constexpr int kRepetitions = 15;
constexpr std::chrono::seconds kLockPatience{30};  // with another process that measures

// A binding method and a way to load 16 bytes.
struct Form {
  const char* name;
  bool addresses, words;
  double price;  // factor on its measured time
};
// A descriptor costs the host more per operation, so addresses are chosen unless they are clearly slower.
constexpr Form kForms[] = {
    {"descriptors", false, false, 1.1},
    {"addresses", true, false, 1.0},
    {"descriptors, words", false, true, 1.15},
};
constexpr size_t kBindings = 2;  // the forms that differ in binding only; no driver was faster with addresses and words

// What is measured, and the key under which the chosen form's index is stored. The key changes with the measurement, so
// that older answers are not reused.
struct Trial {
  const char* name;
  CacheKey key;
  void (*record)(StreamRecorder& recorder, const Buffer& in, const Buffer& out);
};

void record_stream(StreamRecorder& recorder, const Buffer& in, const Buffer& out) {
  backend_kernels.bind(recorder, in, out, kBytes);
}

// A GEMM without packing, of a size whose kernel compiles quickly.
void record_tiles(StreamRecorder& recorder, const Buffer& in, const Buffer& out) {
  backend_kernels.multiply_tiles(recorder, in, in, out, 64);
}

constexpr Trial kStreams = {"streams", {0, 4}, record_stream};
constexpr Trial kTiles = {"tiles", {1, 1}, record_tiles};

double seconds(StreamRecorder& recorder, const Trial& trial, const Buffer& in, const Buffer& out, const Form& form) {
  recorder.set_binding(form.addresses, form.addresses, form.addresses);
  recorder.set_stream_words(form.words);
  const auto start = std::chrono::steady_clock::now();
  trial.record(recorder, in, out);
  recorder.wait(recorder.submit(false));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

size_t measure(StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool, const Trial& trial, size_t forms) {
  Buffer buffers[2];
  for (Buffer& buffer : buffers) {
    buffer.allocation = std::make_shared<VulkanAllocation>(pool, kBytes, MemoryKind::device);
    buffer.bytes = kBytes;
    recorder.fill_words(buffer, 0, kBytes, 0);
  }
  std::array<double, std::size(kForms)> best;
  best.fill(1e9);
  // Forms alternate, so that other load on the machine affects all of them. The first runs compile and touch the pages.
  for (int i = 0; i <= kRepetitions; ++i) {
    for (size_t form = 0; form < forms; ++form) {
      const double time = seconds(recorder, trial, buffers[0], buffers[1], kForms[form]);
      if (i != 0) best[form] = std::min(best[form], time);
    }
  }
  size_t chosen = 0;
  for (size_t form = 0; form < forms; ++form) {
    log(TUFF_LOG_INFO, "binding: {} take {:.3f} ms by {}", trial.name, 1e3 * best[form], kForms[form].name);
    if (best[form] * kForms[form].price < best[chosen] * kForms[chosen].price) chosen = form;
  }
  return chosen;
}

// The fastest of the first `forms` forms for kernels like the trial's. The device must support all of them.
const Form& best_form(StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool, KernelCache& kernels,
                      const Trial& trial, size_t forms) {
  const auto stored_form = [&]() -> const Form* {
    const auto stored = kernels.disk().load("binding", trial.key);
    const size_t form = stored && stored->size() == 1 ? std::to_integer<size_t>(stored->front()) : forms;
    return form < forms ? &kForms[form] : nullptr;
  };
  if (const Form* form = stored_form()) return *form;
  // Processes that measure at the same time would measure each other.
  const platform::FileLock lock = kernels.disk().lock("binding", kLockPatience);
  if (const Form* form = stored_form()) return *form;
  const size_t chosen = measure(recorder, pool, trial, forms);
  const std::byte answer{static_cast<unsigned char>(chosen)};
  kernels.disk().store("binding", trial.key, {&answer, 1});
  return kForms[chosen];
}

}  // namespace

void choose_binding(StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool, const Device& device,
                    KernelCache& kernels) {
  const auto all = [&](bool addresses) { recorder.set_binding(addresses, addresses, addresses); };
  if (!device.traits.addresses) return all(false);
  if (!device.physical.push_descriptors) return all(true);
  all(true);
  // On GPUs, only the host's cost per operation differs: measuring pays off for CPU devices only.
  bool words = false;
  if (device.traits.cpu) {
    const bool tiles = best_form(recorder, pool, kernels, kTiles, kBindings).addresses;
    const Form& streams = best_form(recorder, pool, kernels, kStreams, std::size(kForms));
    recorder.set_binding(streams.addresses, tiles, true);
    recorder.set_stream_words(words = streams.words);
  }
  if (const auto wanted = platform::environment("TUFF_BINDING")) {
    const bool addresses = *wanted == "addresses";
    if (!addresses && *wanted != "descriptors") return;
    words = words && device.traits.streams_by_addresses == addresses;
    all(addresses);
    recorder.set_no_texels();
    recorder.set_stream_words(words);
  }
}

}  // namespace tuff
