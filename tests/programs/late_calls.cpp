// Calls at the end of threads and of the process: late_calls LIBRARY MODE BACKEND. Exits with 0 and prints nothing if
// everything was correct.
//
// The following run then, in this order: destructors of thread_local objects; those of pthread keys (repeatedly, while
// they set a value); and, when the process ends, destructors of static objects and atexit handlers, in the reverse
// order of their registration. Some of them are registered before the library is loaded, so that they run after
// everything that the library might have registered.
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tuff/tuff.h"

namespace {

#define FUNCTIONS(X)                                                                                           \
  X(tuff_version)                                                                                              \
  X(tuff_build_info)                                                                                           \
  X(tuff_status_name)                                                                                          \
  X(tuff_status_hint)                                                                                          \
  X(tuff_last_error)                                                                                           \
  X(tuff_set_log)                                                                                              \
  X(tuff_device_count)                                                                                         \
  X(tuff_device_refusals)                                                                                      \
  X(tuff_context_create)                                                                                       \
  X(tuff_context_destroy)                                                                                      \
  X(tuff_context_info) X(tuff_synchronize) X(tuff_supports) X(tuff_context_stats) X(tuff_context_memory)       \
      X(tuff_context_trim) X(tuff_alloc) X(tuff_alloc_ex) X(tuff_view) X(tuff_free) X(tuff_buffer_size)        \
          X(tuff_copy_htod) X(tuff_copy_dtoh) X(tuff_copy_dtod) X(tuff_copy_peer) X(tuff_fill) X(tuff_map)     \
              X(tuff_unmap) X(tuff_gemm) X(tuff_batched_gemm_ex) X(tuff_unary) X(tuff_binary) X(tuff_reduce)   \
                  X(tuff_softmax) X(tuff_concat) X(tuff_slice) X(tuff_permute) X(tuff_gather) X(tuff_cast)     \
                      X(tuff_layer_norm) X(tuff_conv2d) X(tuff_stream_create) X(tuff_stream_destroy)           \
                          X(tuff_event_create) X(tuff_event_destroy) X(tuff_event_record) X(tuff_event_wait)   \
                              X(tuff_graph_begin) X(tuff_graph_end) X(tuff_graph_launch) X(tuff_graph_destroy) \
                                  X(tuff_profile_begin) X(tuff_profile_end) X(tuff_profile_table)              \
                                      X(tuff_kernel_create) X(tuff_kernel_launch) X(tuff_kernel_destroy)

#define DECLARE(name) decltype(&::name) p_##name = nullptr;
FUNCTIONS(DECLARE)

const char* mode = "";
const char* backend = "";
const char* where = "";  // for messages
tuff_context context = 0, peer = 0;
tuff_kernel kernel = 0;

[[noreturn]] void give_up(const std::string& why) {
  std::printf("%s, %s: %s\n", mode, where, why.c_str());
  std::fflush(stdout);
  _exit(9);
}

std::string last_error() {
  uint64_t length = 0;
  p_tuff_last_error(nullptr, 0, &length);
  std::vector<char> text(length + 1);
  p_tuff_last_error(text.data(), text.size(), nullptr);
  return text.data();
}

void ok(tuff_status status, const char* call) {
  if (status != TUFF_OK) give_up(std::string(call) + ": " + p_tuff_status_name(status) + ": " + last_error());
}
#define OK(name, ...) ok(p_##name(__VA_ARGS__), #name)

// Checks that the message belongs to this call and is complete.
void refused(tuff_status status, const char* call) {
  const std::string message = last_error();
  if (status == TUFF_OK || message.rfind(std::string(call) + ": ", 0) != 0 || message.size() < 20) {
    give_up(std::string(call) + " answers " + std::to_string(status) + ", with the message \"" + message + "\"");
  }
}
#define REFUSED(name, ...) refused(p_##name(__VA_ARGS__), #name)

template <typename T>
T sized() {
  T desc{};
  desc.struct_size = sizeof(T);
  return desc;
}

bool vulkan() { return std::strcmp(backend, "vulkan") == 0; }

constexpr uint64_t kCount = 64, kBytes = kCount * sizeof(float);

tuff_buffer buffer_of(tuff_context owner, float value) {
  tuff_buffer buffer = 0;
  const std::vector<float> values(kCount, value);
  OK(tuff_alloc, owner, kBytes, &buffer);
  OK(tuff_copy_htod, owner, buffer, 0, values.data(), kBytes);
  return buffer;
}

void expect(tuff_context owner, tuff_buffer buffer, float value, const char* what) {
  std::vector<float> values(kCount);
  OK(tuff_copy_dtoh, owner, values.data(), buffer, 0, kBytes);
  for (const float element : values) {
    if (element != value) give_up(std::string(what) + " gave " + std::to_string(element));
  }
}

// Consecutive failing calls, each with its own message; the messages are short and long.
void failures() {
  float value = 0;
  for (int i = 0; i < 3; ++i) {
    REFUSED(tuff_free, 12345);
    REFUSED(tuff_unary, context, 0, TUFF_UNARY_NEG, 1, 2, 3);
    REFUSED(tuff_copy_dtoh, context, &value, 99, 0, 4);
    REFUSED(tuff_context_create, nullptr, nullptr);
  }
}

void operations() {
  const uint64_t shape[1] = {kCount}, matrix[2] = {8, 8}, half[1] = {kCount / 2}, sizes[2] = {kCount / 2, kCount / 2};
  const uint64_t start[1] = {2}, part[1] = {32}, rows[2] = {kCount / 8, 8};
  const uint32_t order[2] = {1, 0};
  const tuff_buffer a = buffer_of(context, 2), b = buffer_of(context, -3), c = buffer_of(context, 0);
  const tuff_buffer inputs[2] = {a, a};
  OK(tuff_gemm, context, TUFF_F32, TUFF_NO_TRANS, TUFF_NO_TRANS, 8, 8, 8, 1, a, 8, b, 8, 0, c, 8);
  expect(context, c, -48, "tuff_gemm");
  OK(tuff_concat, context, TUFF_F32, inputs, sizes, 2, c, shape, 1, 0);
  expect(context, c, 2, "tuff_concat");
  REFUSED(tuff_concat, context, TUFF_F32, inputs, sizes, 2, c, half, 1, 0);
  OK(tuff_slice, context, TUFF_F32, b, c, shape, 1, start, nullptr, part);
  OK(tuff_slice, context, TUFF_F32, b, c, shape, 1, start, nullptr, part);
  auto batch = sized<tuff_batched_gemm_desc>();
  batch.dtype = TUFF_F32, batch.m = batch.n = batch.k = 8, batch.alpha = 1, batch.batch_count = 1;
  batch.a_array = &a, batch.b_array = &b, batch.c_array = &c;
  OK(tuff_batched_gemm_ex, context, &batch);
  expect(context, c, -48, "tuff_batched_gemm_ex");
  OK(tuff_unary, context, TUFF_F32, TUFF_UNARY_NEG, a, c, kCount);
  OK(tuff_binary, context, TUFF_F32, TUFF_BINARY_ADD, a, c, c, kCount);
  expect(context, c, 0, "tuff_binary");
  OK(tuff_reduce, context, TUFF_F32, TUFF_REDUCE_SUM, a, c, shape, 1, 0);
  OK(tuff_softmax, context, TUFF_F32, a, c, matrix, 2, 1);
  OK(tuff_permute, context, TUFF_F32, a, c, matrix, 2, order);
  OK(tuff_cast, context, TUFF_F32, TUFF_I32, a, c, kCount);
  OK(tuff_gather, context, TUFF_F32, TUFF_I32, a, c, b, rows, 2, 0, 4);
  OK(tuff_layer_norm, context, TUFF_F32, a, 0, 0, c, 8, 8, 1e-5);
  OK(tuff_copy_dtod, context, c, 0, a, 0, kBytes);
  OK(tuff_fill, context, c, 1, 5, "x", 1);
  for (const tuff_buffer buffer : {a, b, c}) OK(tuff_free, buffer);
}

void objects() {
  tuff_buffer mapped = 0, view = 0;
  tuff_stream stream = 0;
  tuff_event event = 0;
  auto desc = sized<tuff_alloc_desc>();
  desc.bytes = 4096, desc.flags = TUFF_ALLOC_HOST_VISIBLE;
  OK(tuff_alloc_ex, context, &desc, &mapped);
  OK(tuff_view, mapped, 64, 64, &view);
  void* pointer = nullptr;
  OK(tuff_map, mapped, &pointer);
  OK(tuff_unmap, mapped);
  OK(tuff_free, mapped);
  OK(tuff_free, view);
  OK(tuff_stream_create, context, nullptr, &stream);
  OK(tuff_event_create, context, nullptr, &event);
  const tuff_buffer a = buffer_of(context, 2), b = buffer_of(peer, 0);
  OK(tuff_unary, stream, TUFF_F32, TUFF_UNARY_NEG, a, a, kCount);
  OK(tuff_event_record, stream, event);
  OK(tuff_event_wait, event);
  OK(tuff_copy_peer, peer, b, 0, stream, a, 0, kBytes);
  expect(peer, b, -2, "tuff_copy_peer");
  if (vulkan()) {
    tuff_graph graph = 0;
    OK(tuff_graph_begin, stream);
    OK(tuff_unary, stream, TUFF_F32, TUFF_UNARY_NEG, a, a, kCount);
    OK(tuff_graph_end, stream, &graph);
    OK(tuff_graph_launch, stream, graph);
    OK(tuff_graph_destroy, graph);
    const tuff_buffer operands[1] = {a};
    OK(tuff_kernel_launch, stream, kernel, operands, 1, nullptr, 0, 1, 1, 1);
    OK(tuff_synchronize, stream);
    expect(context, a, 4, "tuff_kernel_launch");
  }
  OK(tuff_profile_begin, context);
  OK(tuff_unary, context, TUFF_F32, TUFF_UNARY_NEG, a, a, kCount);
  OK(tuff_profile_end, context);
  char table[256];
  OK(tuff_profile_table, context, table, sizeof table, nullptr);
  OK(tuff_event_destroy, event);
  OK(tuff_stream_destroy, stream);
  OK(tuff_free, a);
  OK(tuff_free, b);
  auto memory = sized<tuff_memory_stats>();
  auto stats = sized<tuff_stats>();
  int32_t yes = 0;
  OK(tuff_context_memory, context, &memory);
  OK(tuff_context_stats, context, &stats);
  OK(tuff_supports, context, "f16", &yes);
  OK(tuff_context_trim, context);
}

// Everything at once, at a point where all that the library might have registered has run.
void everything(const char* place) {
  where = place;
  if (context == 0) return;  // registered before the library was loaded, and the process ends early
  failures();
  operations();
  objects();
  failures();
}

void open_contexts() {
  auto desc = sized<tuff_context_desc>();
  desc.backend = backend;
  OK(tuff_context_create, &desc, &context);
  OK(tuff_context_create, &desc, &peer);
  if (!vulkan()) return;
  auto source = sized<tuff_kernel_desc>();
  source.source =
      "#version 450\nlayout(local_size_x = 64) in;\nlayout(binding = 0) buffer X { float x[]; };\n"
      "void main() { x[gl_GlobalInvocationID.x] *= 2; }\n";
  OK(tuff_kernel_create, context, &source, &kernel);
}

void load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) give_up(dlerror());
#define RESOLVE(name) p_##name = reinterpret_cast<decltype(p_##name)>(dlsym(library, #name));
  FUNCTIONS(RESOLVE)
}

// --- what runs at the end ----------------------------------------------------------------------------------

bool at_end(const char* wanted) { return std::strcmp(mode, wanted) == 0; }

struct Early {
  Early() {}
  ~Early() {
    if (at_end("statics")) everything("a static object made before the library was loaded");
  }
} early;

struct Late {
  ~Late() { everything("a static object made after the library was used"); }
};

struct OfThread {
  const char* place = nullptr;
  ~OfThread() {
    if (place != nullptr) everything(place);
  }
};
thread_local OfThread first_of_thread, last_of_thread;

pthread_key_t early_key, late_key;
int key_rounds = 0;
void end_of_key(void*) {
  everything("a key's destructor");
  // Repeats as often as the system calls it, which is four times.
  if (++key_rounds < 10) pthread_setspecific(early_key, &key_rounds);
}

// Failing and succeeding calls in the thread, and then at its end.
template <typename Prepare>
void in_thread(Prepare prepare) {
  std::thread([&] {
    prepare();
    everything("a thread");
    last_of_thread.place = at_end("thread_locals") ? "a thread-local object made after the first call" : nullptr;
  }).join();
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) return 2;
  mode = words[2], backend = words[3];
  if (at_end("statics")) std::atexit([] { everything("an exit handler from before the library was loaded"); });
  pthread_key_create(&early_key, end_of_key);
  load(words[1]);
  where = "the beginning";
  open_contexts();
  pthread_key_create(&late_key, end_of_key);
  if (at_end("thread_locals")) {
    in_thread([] { first_of_thread.place = "a thread-local object made before the first call"; });
    // The end of the main thread, with the process.
    first_of_thread.place = "a thread-local object of the main thread";
  } else if (at_end("keys")) {
    for (const pthread_key_t key : {early_key, late_key}) {
      key_rounds = 0;
      in_thread([key] { pthread_setspecific(key, &key_rounds); });
    }
    // A thread whose first call is at its end.
    key_rounds = 0;
    std::thread([] { pthread_setspecific(early_key, &key_rounds); }).join();
  } else if (at_end("threads")) {
    // Memory of ended threads is reused by later ones: a thousand threads need no more than a few.
    for (int i = 0; i < 1000; ++i) std::thread(failures).join();
  } else {
    everything("the middle");
    static Late late;
    std::atexit([] { everything("an exit handler from after the library was used"); });
  }
  return 0;
}
