// Random GEMMs of the exact tier, by the thousand, compared bit for bit; and repeated GEMMs, whose results must all
// equal the first.
//
//   tuff_gemm_cases --cases 100000 --seed 1
//   tuff_gemm_cases --only 4711 --seed 1      a single case
//   tuff_gemm_cases --repeats 1000
//
// Case N of a seed is always the same GEMM, whatever else runs. The cases of a class share their kernels; they are
// enqueued together, with operands in one buffer, and checked together: every byte of that buffer.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "programs/gemm_case.hpp"
#include "support/tensor.hpp"

namespace tuff_test {
namespace {

struct Options {
  uint64_t cases = 3000, first = 0, seed = 1, repeats = 0;
  double time_limit = 0;  // seconds; 0: none
  std::string device, backend = "vulkan";
};

constexpr const char* kUsage =
    "usage: tuff_gemm_cases [--cases N] [--first N] [--only N] [--seed S] [--time-limit SECONDS]\n"
    "                       [--device D] [--backend vulkan|host] [--repeats N]\n"
    "  --cases       how many cases, from --first on (3000, 0)\n"
    "  --only        one case by itself\n"
    "  --time-limit  draws no more cases (repeats) from then on\n"
    "  --repeats     instead of cases: a set of products, each this many times\n";

[[noreturn]] void fail(const std::string& message) { throw std::runtime_error(message); }

void check(tuff_status status, const char* call) {
  if (status != TUFF_OK) fail(std::string(call) + " gave " + tuff_status_name(status) + ": " + last_error());
}

uint64_t to_number(std::string_view option, std::string_view word) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) {
    fail(std::string(option) + " is \"" + std::string(word) + "\", needs a whole number\n" + kUsage);
  }
  return number;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--help") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    }
    if (i + 1 == argc) fail(std::string(option) + " needs a value, or is unknown\n" + kUsage);
    const std::string_view word = argv[++i];
    if (option == "--cases") {
      options.cases = to_number(option, word);
    } else if (option == "--first") {
      options.first = to_number(option, word);
    } else if (option == "--only") {
      options.first = to_number(option, word), options.cases = 1;
    } else if (option == "--seed") {
      options.seed = to_number(option, word);
    } else if (option == "--repeats") {
      options.repeats = to_number(option, word);
      if (options.repeats < 2) fail("--repeats is " + std::string(word) + ", needs at least 2");
    } else if (option == "--time-limit") {
      options.time_limit = static_cast<double>(to_number(option, word));
    } else if (option == "--device") {
      options.device = word;
    } else if (option == "--backend") {
      options.backend = word;
    } else {
      fail("unknown option " + std::string(option) + "\n" + kUsage);
    }
  }
  if (options.cases == 0) fail("--cases is 0, needs at least 1");
  return options;
}

class Seconds {
 public:
  double operator()() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// One line that is rewritten in place on a terminal, otherwise an occasional new line.
class Progress {
 public:
  void show(const std::string& line) {
    const double every = terminal_ ? 0.2 : 15;
    if (since_() - last_ < every) return;
    last_ = since_();
    std::fprintf(stderr, terminal_ ? "\r\033[K%s" : "%s\n", line.c_str());
    std::fflush(stderr);
    shown_ = true;
  }
  ~Progress() {
    if (terminal_ && shown_) std::fputs("\r\033[K", stderr);
  }

 private:
  bool terminal_ = isatty(2) != 0, shown_ = false;
  double last_ = 0;
  Seconds since_;
};

// A buffer that can be filled, used through views and read back repeatedly.
class Arena {
 public:
  explicit Arena(tuff_context context) : context_(context) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    drop_views();
    if (buffer_ != 0) tuff_free(buffer_);
  }
  void upload(const Bytes& bytes) {
    drop_views();
    if (bytes.size() > size_) {
      if (buffer_ != 0) check(tuff_free(buffer_), "tuff_free");
      check(tuff_alloc(context_, bytes.size(), &buffer_), "tuff_alloc");
      size_ = bytes.size();
    }
    check(tuff_copy_htod(context_, buffer_, 0, bytes.data(), bytes.size()), "tuff_copy_htod");
  }
  void download(Bytes& bytes) {
    check(tuff_copy_dtoh(context_, bytes.data(), buffer_, 0, bytes.size()), "tuff_copy_dtoh");
  }
  tuff_buffer view(uint64_t offset, uint64_t bytes) {
    tuff_buffer handle = 0;
    check(tuff_view(buffer_, offset, bytes, &handle), "tuff_view");
    views_.push_back(handle);
    return handle;
  }

 private:
  void drop_views() {
    for (const tuff_buffer view : views_) tuff_free(view);
    views_.clear();
  }
  tuff_context context_;
  tuff_buffer buffer_ = 0;
  uint64_t size_ = 0;
  std::vector<tuff_buffer> views_;
};

// --- one GEMM ---------------------------------------------------------------------------------------------

// An operand's view, including the guards after it; none for an operand without elements.
tuff_buffer view_of(Arena& arena, uint64_t at, const StoredMatrices& where) {
  if (where.elements() == 0) return TUFF_NULL_HANDLE;
  return arena.view(at, (where.elements() + kInnerGuard) * size_of(where.dtype));
}

std::vector<tuff_buffer> views_of(Arena& arena, uint64_t at, const StoredMatrices& where) {
  StoredMatrices one = where;
  one.count = 1;
  const uint64_t step = where.stride * size_of(where.dtype);
  std::vector<tuff_buffer> views;
  for (uint64_t i = 0; i < where.count; ++i) views.push_back(view_of(arena, at + i * step, one));
  return views;
}

tuff_gemm_desc single(const tuff_batched_gemm_desc& d) {
  tuff_gemm_desc one{};
  one.struct_size = sizeof one;
  one.dtype = d.dtype, one.a_type = d.a_type, one.b_type = d.b_type, one.c_type = d.c_type;
  one.accumulate = d.accumulate, one.precision = d.precision;
  one.ta = d.ta, one.tb = d.tb, one.m = d.m, one.n = d.n, one.k = d.k;
  one.alpha = d.alpha, one.beta = d.beta;
  one.a = d.a, one.b = d.b, one.c = d.c;
  one.lda = d.lda, one.ldb = d.ldb, one.ldc = d.ldc;
  one.activation = d.activation, one.bias_axis = d.bias_axis, one.bias = d.bias;
  one.residual = d.residual, one.ld_residual = d.ld_residual;
  one.scale_a = d.scale_a, one.scale_b = d.scale_b, one.scale_c = d.scale_c;
  return one;
}

// Buffers of one f32 each.
class Scales {
 public:
  explicit Scales(tuff_context context) : context_(context) {}
  tuff_buffer get(double scale) {
    if (scale == 0) return TUFF_NULL_HANDLE;
    tuff_buffer& buffer = buffers_[scale];
    if (buffer != TUFF_NULL_HANDLE) return buffer;
    const auto value = static_cast<float>(scale);
    check(tuff_alloc(context_, sizeof value, &buffer), "tuff_alloc");
    check(tuff_copy_htod(context_, buffer, 0, &value, sizeof value), "tuff_copy_htod");
    return buffer;
  }

 private:
  tuff_context context_;  // which owns the buffers
  std::map<double, tuff_buffer> buffers_;
};

// Enqueues a case whose image starts at `base` in the arena.
tuff_status call(tuff_context context, Arena& arena, Scales& scales, uint64_t base, const GemmCase& gemm,
                 const GemmImage& image) {
  tuff_batched_gemm_desc d = gemm.desc;
  d.scale_a = scales.get(gemm.scales[0]), d.scale_b = scales.get(gemm.scales[1]);
  d.scale_c = scales.get(gemm.scales[2]);
  const GemmLayout& layout = image.layout;
  d.bias = view_of(arena, base + image.bias, layout.bias);
  d.residual = view_of(arena, base + image.residual, layout.residual);
  if (d.bias_axis != 0 && d.bias == 0 && d.m != 0 && d.n != 0 && d.batch_count != 0) fail("a bias without elements");
  if (gemm.arrays) {
    const auto a = views_of(arena, base + image.a, layout.a), b = views_of(arena, base + image.b, layout.b);
    const auto c = views_of(arena, base + image.c, layout.c);
    d.a_array = a.data(), d.b_array = b.data(), d.c_array = c.data();
    d.stride_a = d.stride_b = d.stride_c = 0;
    return tuff_batched_gemm_ex(context, &d);
  }
  d.a = view_of(arena, base + image.a, layout.a);
  d.b = view_of(arena, base + image.b, layout.b);
  d.c = view_of(arena, base + image.c, layout.c);
  if (gemm.residual == Residual::in_place) d.residual = d.c;
  if (d.batch_count != 1) {
    if (!gemm.flat) return tuff_batched_gemm_ex(context, &d);
    return tuff_batched_gemm(context, d.dtype, d.ta, d.tb, d.m, d.n, d.k, d.alpha, d.a, d.lda, d.stride_a, d.b, d.ldb,
                             d.stride_b, d.beta, d.c, d.ldc, d.stride_c, d.batch_count);
  }
  if (gemm.flat) {
    return tuff_gemm(context, d.dtype, d.ta, d.tb, d.m, d.n, d.k, d.alpha, d.a, d.lda, d.b, d.ldb, d.beta, d.c, d.ldc);
  }
  const tuff_gemm_desc one = single(d);
  return tuff_gemm_ex(context, &one);
}

// The first error in a case's part of the arena, if any. Zeros of either sign are equal.
std::optional<std::string> difference(const GemmImage& image, Bytes got) {
  if (std::memcmp(got.data(), image.after.data(), got.size()) == 0) return std::nullopt;
  const StoredMatrices& c = image.layout.c;
  const uint64_t size = size_of(c.dtype);
  for (uint64_t i = 0; i < c.count; ++i) {
    for (uint64_t row = 0; row < c.rows; ++row) {
      for (uint64_t col = 0; col < c.cols; ++col) {
        const uint64_t byte = image.c + c.at(i, row, col) * size;
        unsigned char* is = got.data() + byte;
        const unsigned char* wanted = image.after.data() + byte;
        if (std::memcmp(is, wanted, size) == 0) continue;
        const Bytes x(is, is + size), y(wanted, wanted + size);
        const double value = element(c.dtype, x, 0), expected = element(c.dtype, y, 0);
        if (value != 0 || expected != 0) {
          char text[160];
          std::snprintf(text, sizeof text, "c[%llu][%llu][%llu] is %.17g, expected %.17g",
                        static_cast<unsigned long long>(i), static_cast<unsigned long long>(row),
                        static_cast<unsigned long long>(col), value, expected);
          return text;
        }
        std::memcpy(is, wanted, size);
      }
    }
  }
  for (uint64_t i = 0; i < got.size(); ++i) {
    if (got[i] != image.after[i]) {
      return "byte " + std::to_string(i) + " was written; c has " + std::to_string(c.elements() * size) +
             " bytes from byte " + std::to_string(image.c) + " on, so this is in a gap, a guard or another operand";
    }
  }
  return std::nullopt;
}

// --- cases by class ---------------------------------------------------------------------------------------

struct Count {
  uint64_t cases = 0, wrong = 0, skipped = 0;
  double work = 0;
};

class Cases {
 public:
  Cases(tuff_context context, const Options& options)
      : context_(context), options_(options), arena_(context), scales_(context) {}

  // Returns the exit status.
  int run() {
    const uint64_t end = options_.first + options_.cases;
    Progress progress;
    uint64_t number = options_.first;
    while (number < end && !(options_.time_limit > 0 && elapsed_() >= options_.time_limit)) {
      const GemmCase gemm = draw_gemm_case(options_.seed, number);
      if (!queue_.empty() &&
          (queue_.size() == kQueued || class_of(number) != class_of(number - 1) || bytes_.size() > kMaxBytes))
        check_queue();
      if (supported(gemm)) {
        add(gemm);
      } else {
        ++counts_[gemm.types()].skipped;
      }
      ++number;
      progress.show(std::to_string(number - options_.first) + " of " + std::to_string(options_.cases) + " cases, " +
                    std::to_string(wrong_) + " wrong, " + std::to_string(static_cast<int>(elapsed_())) + " s");
    }
    check_queue();
    return summary(number - options_.first);
  }

 private:
  static constexpr uint64_t kMaxBytes = 24u << 20, kQueued = 100;
  struct Queued {
    GemmCase gemm;
    GemmImage image;
    uint64_t base;
  };

  bool supported(const GemmCase& gemm) {
    for (const int32_t type : {gemm.desc.a_type, gemm.desc.b_type, gemm.desc.c_type}) {
      if (type == TUFF_I32) continue;
      auto [at, fresh] = supported_.try_emplace(type, 0);
      if (fresh) {
        check(tuff_supports(context_, (std::string("gemm.") + name_of(type)).c_str(), &at->second), "tuff_supports");
      }
      if (at->second == 0) return false;
    }
    return true;
  }

  void add(const GemmCase& gemm) {
    GemmImage image(gemm);
    const uint64_t base = bytes_.size();
    bytes_.insert(bytes_.end(), image.before.begin(), image.before.end());
    image.before = Bytes();
    queue_.push_back({gemm, std::move(image), base});
  }

  void report(const Queued& queued, const std::string& what) {
    Count& count = counts_[queued.gemm.types()];
    ++count.wrong;
    if (++wrong_ > 10) return;  // the summary counts the rest
    std::printf(
        "WRONG case %llu: %s\n  %s\n  again: --only %llu --seed %llu; with those queued around it: --first %llu "
        "--cases %llu --seed %llu\n",
        number(queued.gemm.number), queued.gemm.describe().c_str(), what.c_str(), number(queued.gemm.number),
        number(options_.seed), number(queue_.front().gemm.number), number(queue_.size()), number(options_.seed));
    std::fflush(stdout);
  }

  void check_queue() {
    if (queue_.empty()) return;
    arena_.upload(bytes_);
    std::vector<bool> refused(queue_.size(), false);
    for (size_t i = 0; i < queue_.size(); ++i) {
      const Queued& queued = queue_[i];
      Count& count = counts_[queued.gemm.types()];
      ++count.cases;
      count.work += queued.gemm.work();
      const tuff_status status = call(context_, arena_, scales_, queued.base, queued.gemm, queued.image);
      if (status == TUFF_ERROR_DEVICE_LOST || status == TUFF_ERROR_TIMEOUT) check(status, "a product");
      refused[i] = status != TUFF_OK;
      if (refused[i]) report(queued, std::string(tuff_status_name(status)) + ": " + last_error());
    }
    arena_.download(bytes_);
    for (size_t i = 0; i < queue_.size(); ++i) {
      const Queued& queued = queue_[i];
      if (refused[i]) continue;
      const auto begin = bytes_.begin() + static_cast<ptrdiff_t>(queued.base);
      const Bytes part(begin, begin + static_cast<ptrdiff_t>(queued.image.after.size()));
      if (const auto what = difference(queued.image, part)) report(queued, *what);
    }
    queue_.clear();
    bytes_.clear();
  }

  int summary(uint64_t drawn) {
    std::printf("%-20s %10s %10s %14s\n", "types", "cases", "wrong", "operations");
    Count all;
    for (const auto& [types, count] : counts_) {
      std::printf("%-20s %10llu %10llu %14.3g%s\n", types.c_str(), number(count.cases), number(count.wrong), count.work,
                  count.skipped != 0 ? "  (the device lacks a type: skipped)" : "");
      all.cases += count.cases, all.wrong += count.wrong, all.work += count.work;
    }
    std::printf("%-20s %10llu %10llu %14.3g  in %.1f s, %llu pipelines\n", "all", number(all.cases), number(all.wrong),
                all.work, elapsed_(), number(stats_of(context_).pipelines_created));
    if (drawn < options_.cases)
      std::printf("ended at the time limit, %llu cases were not run\n", number(options_.cases - drawn));
    if (all.cases == 0) std::printf("WRONG no case was run\n");
    return all.wrong == 0 && all.cases > 0 ? 0 : 1;
  }

  static unsigned long long number(uint64_t x) { return x; }

  tuff_context context_;
  const Options& options_;
  Arena arena_;
  Scales scales_;
  std::vector<Queued> queue_;
  Bytes bytes_;
  std::map<std::string, Count> counts_;
  std::map<int32_t, int32_t> supported_;
  uint64_t wrong_ = 0;
  Seconds elapsed_;
};

// --- repeats ----------------------------------------------------------------------------------------------

struct Product {
  tuff_batched_gemm_desc desc;
  std::string name;
  uint64_t c_bytes;
  std::vector<tuff_buffer> buffers;
};

// Each kind of kernel: many tiny matrices, one row, one column, few rows, small and large tiles, split-K.
std::vector<Product> products(tuff_context context) {
  struct Shape {
    int32_t ta, tb;
    uint64_t m, n, k, batch;
  };
  constexpr Shape kShapes[] = {{0, 0, 5, 6, 7, 500},    {0, 1, 1, 900, 700, 1},  {0, 0, 900, 1, 700, 1},
                               {0, 0, 1, 900, 700, 1},  {0, 0, 8, 300, 200, 1},  {1, 0, 33, 29, 130, 3},
                               {0, 0, 9, 8, 20'000, 1}, {0, 1, 1, 7, 50'000, 1}, {0, 0, 256, 256, 264, 1}};
  constexpr int32_t kTypes[][2] = {{TUFF_F32, TUFF_F32},   {TUFF_F16, TUFF_F16},    {TUFF_F16, TUFF_F32},
                                   {TUFF_BF16, TUFF_BF16}, {TUFF_I8, TUFF_F16},     {TUFF_I8, TUFF_I32},
                                   {TUFF_F64, TUFF_F64},   {TUFF_F8_E4M3, TUFF_F16}};
  Random random(1);
  std::vector<Product> all;
  for (const auto& [in, out] : kTypes) {
    int32_t yes = 0;
    check(tuff_supports(context, (std::string("gemm.") + name_of(in)).c_str(), &yes), "tuff_supports");
    if (yes == 0) continue;
    for (const Shape& s : kShapes) {
      Product p{};
      tuff_batched_gemm_desc& d = p.desc;
      d.struct_size = sizeof d;
      d.dtype = in, d.c_type = out, d.ta = s.ta, d.tb = s.tb;
      d.m = s.m, d.n = s.n, d.k = s.k, d.batch_count = s.batch;
      d.stride_a = s.m * s.k, d.stride_b = s.k * s.n, d.stride_c = s.m * s.n;
      d.alpha = out == TUFF_I32 ? 1 : in == TUFF_I8 ? 0x1p-12 : 0.37;
      p.name = std::string(name_of(in)) + " -> " + name_of(out) + " " + (s.ta != 0 ? "T" : "N") +
               (s.tb != 0 ? "T" : "N") + " " + std::to_string(s.m) + "x" + std::to_string(s.n) + "x" +
               std::to_string(s.k);
      const auto operand = [&](int32_t type, uint64_t elements, bool fill) {
        Bytes bytes(elements * size_of(type));
        for (uint64_t i = 0; fill && i < elements; ++i) {
          set_element(type, bytes, i, double{type == TUFF_I8 ? random.integer(127) : random.spread()});
        }
        tuff_buffer buffer = 0;
        check(tuff_alloc(context, bytes.size(), &buffer), "tuff_alloc");
        check(tuff_copy_htod(context, buffer, 0, bytes.data(), bytes.size()), "tuff_copy_htod");
        p.buffers.push_back(buffer);
        return buffer;
      };
      d.a = operand(in, d.stride_a * s.batch, true);
      d.b = operand(in, d.stride_b * s.batch, true);
      p.c_bytes = d.stride_c * s.batch * size_of(out);
      all.push_back(std::move(p));
    }
  }
  return all;
}

// Repeats all GEMMs in turn. Each iteration stores C in the same place, filled with another byte before.
int repeat(tuff_context context, const Options& options) {
  const Seconds elapsed;
  std::vector<Product> all = products(context);
  uint64_t bytes = 0;
  for (const Product& p : all) bytes += (p.c_bytes + 255) / 256 * 256;
  Bytes first(bytes), now(bytes);
  std::vector<uint64_t> wrong(all.size(), 0);
  Arena arena(context);
  Progress progress;
  uint64_t round = 0;
  for (; round < options.repeats && !(options.time_limit > 0 && elapsed() >= options.time_limit); ++round) {
    Bytes& into = round == 0 ? first : now;
    std::fill(into.begin(), into.end(), static_cast<unsigned char>(round));
    arena.upload(into);
    uint64_t at = 0;
    for (Product& p : all) {
      p.desc.c = arena.view(at, p.c_bytes);
      check(tuff_batched_gemm_ex(context, &p.desc), p.name.c_str());
      at += (p.c_bytes + 255) / 256 * 256;
    }
    arena.download(into);
    at = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (std::memcmp(into.data() + at, first.data() + at, all[i].c_bytes) != 0 && wrong[i]++ == 0) {
        std::printf("WRONG %s: repeat %llu differs from the first\n", all[i].name.c_str(),
                    static_cast<unsigned long long>(round));
      }
      at += (all[i].c_bytes + 255) / 256 * 256;
    }
    progress.show(std::to_string(round + 1) + " of " + std::to_string(options.repeats) + " repeats, " +
                  std::to_string(static_cast<int>(elapsed())) + " s");
  }
  for (const Product& p : all) {
    for (const tuff_buffer buffer : p.buffers) check(tuff_free(buffer), "tuff_free");
  }
  const auto differing =
      static_cast<size_t>(std::count_if(wrong.begin(), wrong.end(), [](uint64_t n) { return n != 0; }));
  std::printf("%zu products, %llu times each, %zu of them not always the same, in %.1f s\n", all.size(),
              static_cast<unsigned long long>(round), differing, elapsed());
  return differing == 0 && round > 1 && !all.empty() ? 0 : 1;
}

int run(const Options& options) {
  tuff_context_desc desc{};
  desc.struct_size = sizeof desc;
  desc.backend = options.backend.c_str();
  if (!options.device.empty()) desc.device = options.device.c_str();
  tuff_context context = 0;
  check(tuff_context_create(&desc, &context), "tuff_context_create");
  const tuff_device_properties device = properties_of(context);
  std::printf("%s, %s\n", device.name, device.driver);
  const int result = options.repeats != 0 ? repeat(context, options) : Cases(context, options).run();
  check(tuff_context_destroy(context), "tuff_context_destroy");
  return result;
}

}  // namespace
}  // namespace tuff_test

int main(int argc, char** argv) {
  try {
    return tuff_test::run(tuff_test::parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tuff_gemm_cases: %s\n", error.what());
    return 2;
  }
}
