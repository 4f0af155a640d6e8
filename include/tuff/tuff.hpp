// Tuff for C++17 and later: owners for the handles of tuff.h, and nothing else. tuff.h is the reference
// for what every function does; here is only how it looks from C++.
//
//   tuff::Context context = tuff::Context::create();
//   std::vector<float> x = {-1, 2, -3, 4};
//   tuff::Buffer buffer = context.upload(x);
//   context.unary(tuff::DType::f32, tuff::Unary::relu, buffer, buffer, x.size());
//   buffer.download(x);
//
// Owners     Context, Stream, Event, Graph, Buffer and Kernel are move-only and free what they hold. An empty one (made
//            by default, or moved from) holds TUFF_NULL_HANDLE. Destroying a Context makes the handles of what was made
//            from it stale, which is harmless: they may be destroyed later.
// Streams    A Context has every operation, on its default stream; a Stream has the same ones on itself.
// Ranges     "Range" is whatever std::data and std::size accept: std::span, std::vector, std::array, an
//            array. Its elements are copied as bytes and so must be trivially copyable.
// Errors     An error throws tuff::Exception, which carries the status and the message. With
//            TUFF_NO_EXCEPTIONS defined (or exceptions switched off in the compiler) nothing is thrown:
//            what is declared below as Outcome returns a tuff::Status, as Returned<T> a tuff::Result<T>:
//
//              auto context = tuff::Context::create();
//              if (!context) return fail(context.message());
//              tuff::Status status = context->synchronize();
//
// Threads    As in tuff.h. One object may not be moved from, or assigned, while another thread uses it.
#ifndef TUFF_TUFF_HPP
#define TUFF_TUFF_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tuff.h"

#if !defined(TUFF_NO_EXCEPTIONS) && !defined(__cpp_exceptions)
#define TUFF_NO_EXCEPTIONS
#endif
#ifndef TUFF_NO_EXCEPTIONS
#include <stdexcept>
#endif

namespace tuff {
// Files of one program may be compiled either way: their classes have different names for the linker.
#ifdef TUFF_NO_EXCEPTIONS
inline namespace cpp_status {
#else
inline namespace cpp_exceptions {
#endif

enum class DType : int32_t {
  f32 = TUFF_F32,
  f16 = TUFF_F16,
  bf16 = TUFF_BF16,
  f64 = TUFF_F64,
  i32 = TUFF_I32,
  u32 = TUFF_U32,
  i8 = TUFF_I8,
  u8 = TUFF_U8
};
enum class Transpose : int32_t { no = TUFF_NO_TRANS, yes = TUFF_TRANS, conjugate = TUFF_CONJ_TRANS };
enum class Causal : int32_t {
  none = TUFF_CAUSAL_NONE,
  top_left = TUFF_CAUSAL_TOP_LEFT,
  bottom_right = TUFF_CAUSAL_BOTTOM_RIGHT
};
// Unary, Binary and Reduce: made by scripts/api/generate.py. Results of argmax and argmin are of u32.
enum class Unary : int32_t {
  relu = TUFF_UNARY_RELU,
  sigmoid = TUFF_UNARY_SIGMOID,
  tanh = TUFF_UNARY_TANH,
  exp = TUFF_UNARY_EXP,
  log = TUFF_UNARY_LOG,
  sqrt = TUFF_UNARY_SQRT,
  abs = TUFF_UNARY_ABS,
  neg = TUFF_UNARY_NEG,
  gelu = TUFF_UNARY_GELU,
  gelu_tanh = TUFF_UNARY_GELU_TANH,
  silu = TUFF_UNARY_SILU,
  leaky_relu = TUFF_UNARY_LEAKY_RELU,
  elu = TUFF_UNARY_ELU,
  hardswish = TUFF_UNARY_HARDSWISH,
  softplus = TUFF_UNARY_SOFTPLUS,
  sin = TUFF_UNARY_SIN,
  cos = TUFF_UNARY_COS,
  erf = TUFF_UNARY_ERF
};
enum class Binary : int32_t {
  add = TUFF_BINARY_ADD,
  sub = TUFF_BINARY_SUB,
  mul = TUFF_BINARY_MUL,
  div = TUFF_BINARY_DIV,
  max = TUFF_BINARY_MAX,
  min = TUFF_BINARY_MIN,
  pow = TUFF_BINARY_POW
};
enum class Reduce : int32_t {
  sum = TUFF_REDUCE_SUM,
  max = TUFF_REDUCE_MAX,
  min = TUFF_REDUCE_MIN,
  mean = TUFF_REDUCE_MEAN,
  prod = TUFF_REDUCE_PROD,
  argmax = TUFF_REDUCE_ARGMAX,
  argmin = TUFF_REDUCE_ARGMIN
};

// For fields of tuff_gemm_desc and tuff_batched_gemm_desc:
//   desc.activation = static_cast<int32_t>(tuff::Activation::gelu);
enum class Activation : int32_t {
  none = TUFF_ACTIVATION_NONE,
  relu = TUFF_ACTIVATION_RELU,
  gelu = TUFF_ACTIVATION_GELU,
  gelu_tanh = TUFF_ACTIVATION_GELU_TANH,
  silu = TUFF_ACTIVATION_SILU,
  relu6 = TUFF_ACTIVATION_RELU6
};
enum class BiasAxis : int32_t { none = TUFF_BIAS_NONE, rows = TUFF_BIAS_ROWS, columns = TUFF_BIAS_COLUMNS };
enum class Precision : int32_t {
  exact = TUFF_PRECISION_DEFAULT,
  allow_f16 = TUFF_PRECISION_ALLOW_F16,
  allow_bf16 = TUFF_PRECISION_ALLOW_BF16,
  allow_winograd = TUFF_PRECISION_ALLOW_WINOGRAD  // of conv2d
};

using DeviceProperties = tuff_device_properties;
using Stats = tuff_stats;
using Limits = tuff_limits;
using KernelProperties = tuff_kernel_properties;
using MemoryStats = tuff_memory_stats;
using MemoryFd = tuff_memory_fd;
using QueueFamily = tuff_queue_family;
using MatrixShape = tuff_matrix_shape;

inline uint32_t version() noexcept { return tuff_version(); }
inline uint32_t abi_version() noexcept { return tuff_abi_version(); }
inline const char* build_info() noexcept { return tuff_build_info(); }
inline const char* status_name(tuff_status status) noexcept { return tuff_status_name(status); }
inline const char* status_hint(tuff_status status) noexcept { return tuff_status_hint(status); }

// This thread's last error message.
inline std::string last_error() {
  uint64_t length = 0;
  tuff_last_error(nullptr, 0, &length);
  std::string message(static_cast<std::size_t>(length), '\0');
  if (length != 0) tuff_last_error(message.data(), length + 1, nullptr);  // the NUL replaces string's own
  return message;
}

#ifdef TUFF_NO_EXCEPTIONS

// Whether a call succeeded, and the message if not.
class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  explicit Status(tuff_status code) : code_(code) {
    if (code != TUFF_OK) message_ = last_error();
  }

  bool ok() const noexcept { return code_ == TUFF_OK; }
  explicit operator bool() const noexcept { return ok(); }
  tuff_status code() const noexcept { return code_; }
  const char* name() const noexcept { return tuff_status_name(code_); }
  const char* hint() const noexcept { return tuff_status_hint(code_); }
  const std::string& message() const noexcept { return message_; }

 private:
  tuff_status code_ = TUFF_OK;
  std::string message_;
};

// A status, and the value if it is TUFF_OK (else an empty one).
template <typename T>
class [[nodiscard]] Result : public Status {
 public:
  Result(tuff_status code, T value) : Status(code), value_(std::move(value)) {}

  T& value() & noexcept { return value_; }
  const T& value() const& noexcept { return value_; }
  T&& value() && noexcept { return std::move(value_); }
  T& operator*() & noexcept { return value_; }
  const T& operator*() const& noexcept { return value_; }
  T&& operator*() && noexcept { return std::move(value_); }
  T* operator->() noexcept { return &value_; }
  const T* operator->() const noexcept { return &value_; }

 private:
  T value_;
};

using Outcome = Status;
template <typename T>
using Returned = Result<T>;

namespace detail {
inline Outcome finish(tuff_status code) { return Status(code); }
template <typename T>
Returned<T> give(tuff_status code, T&& value) {
  return Result<T>(code, std::forward<T>(value));
}
}  // namespace detail

#else

// what() is the message: it names the function and the argument.
class Exception : public std::runtime_error {
 public:
  Exception(tuff_status status, const std::string& message) : std::runtime_error(message), status_(status) {}

  tuff_status status() const noexcept { return status_; }
  const char* name() const noexcept { return tuff_status_name(status_); }
  const char* hint() const noexcept { return tuff_status_hint(status_); }

 private:
  tuff_status status_;
};

using Outcome = void;
template <typename T>
using Returned = T;

namespace detail {
inline Outcome finish(tuff_status code) {
  if (code != TUFF_OK) throw Exception(code, last_error());
}
template <typename T>
Returned<T> give(tuff_status code, T&& value) {
  finish(code);
  return std::forward<T>(value);
}
}  // namespace detail

#endif

namespace detail {

template <typename Range>
using Element = std::remove_reference_t<decltype(*std::data(std::declval<Range&>()))>;

// Bytes of count elements; more than any buffer holds if that overflows.
template <typename T>
constexpr uint64_t bytes_of(uint64_t count) noexcept {
  static_assert(std::is_trivially_copyable_v<T>, "elements are copied as bytes");
  return count <= UINT64_MAX / sizeof(T) ? count * sizeof(T) : UINT64_MAX;
}

template <typename T>
struct Explicit {  // keeps T from being deduced from an argument
  using Type = T;
};

// Owns a handle; destroys it by Destroy.
template <tuff_status (*Destroy)(uint64_t)>
class Owner {
 public:
  Owner() noexcept = default;
  explicit Owner(uint64_t handle) noexcept : handle_(handle) {}
  Owner(Owner&& other) noexcept : handle_(std::exchange(other.handle_, TUFF_NULL_HANDLE)) {}
  Owner& operator=(Owner&& other) noexcept {
    reset(std::exchange(other.handle_, TUFF_NULL_HANDLE));
    return *this;
  }
  ~Owner() { reset(TUFF_NULL_HANDLE); }

  uint64_t get() const noexcept { return handle_; }
  uint64_t release() noexcept { return std::exchange(handle_, TUFF_NULL_HANDLE); }
  void reset(uint64_t handle) noexcept {
    const uint64_t old = std::exchange(handle_, handle);
    if (old != TUFF_NULL_HANDLE) Destroy(old);
  }

 private:
  uint64_t handle_ = TUFF_NULL_HANDLE;
};

}  // namespace detail

// The sizes of a tensor, for reduce and softmax: {2, 3, 4}, a Range of integers, or a pointer and a rank.
class Shape {
 public:
  Shape(std::initializer_list<uint64_t> sizes) : Shape(sizes.begin(), sizes.size()) {}
  template <typename Range, typename = std::enable_if_t<std::is_integral_v<detail::Element<const Range>>>>
  Shape(const Range& sizes) : Shape(std::data(sizes), std::size(sizes)) {}
  template <typename Integer>
  Shape(const Integer* sizes, std::size_t rank) : rank_(static_cast<uint32_t>(rank)) {
    // A larger rank is kept as a number, for the library to refuse.
    for (std::size_t i = 0; i < rank && i < sizes_.size(); ++i) sizes_[i] = static_cast<uint64_t>(sizes[i]);
  }

  const uint64_t* data() const noexcept { return sizes_.data(); }
  uint32_t rank() const noexcept { return rank_; }

 private:
  std::array<uint64_t, 8> sizes_{};
  uint32_t rank_;
};

class Buffer;

// A host-visible buffer's memory as elements of T, until destroyed. Itself a Range.
template <typename T>
class Mapping {
 public:
  Mapping() noexcept = default;
  Mapping(tuff_buffer buffer, T* data, std::size_t size) noexcept : unmap_(buffer), data_(data), size_(size) {}

  T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  T* begin() const noexcept { return data_; }
  T* end() const noexcept { return data_ + size_; }
  T& operator[](std::size_t i) const noexcept { return data_[i]; }

 private:
  detail::Owner<tuff_unmap> unmap_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

// Device memory. Made by Context::alloc, Context::upload and Buffer::view. Offsets count bytes. Copies go
// through the default stream of its context; on another they are methods of the Stream: copy_htod and the rest.
class Buffer {
 public:
  Buffer() noexcept = default;
  // Takes ownership of a handle that came from tuff_alloc, tuff_alloc_ex or tuff_view.
  Buffer(tuff_context context, tuff_buffer handle) noexcept : owner_(handle), context_(context) {}

  tuff_buffer handle() const noexcept { return owner_.get(); }
  tuff_context context() const noexcept { return context_; }
  explicit operator bool() const noexcept { return handle() != TUFF_NULL_HANDLE; }
  // Gives up ownership: the caller frees the handle.
  tuff_buffer release() noexcept { return owner_.release(); }
  // Frees the memory now.
  void reset() noexcept { owner_.reset(TUFF_NULL_HANDLE); }

  Returned<uint64_t> size_bytes() const {
    uint64_t bytes = 0;
    const tuff_status status = tuff_buffer_size(handle(), &bytes);
    return detail::give(status, std::move(bytes));
  }

  Returned<Buffer> view(uint64_t offset, uint64_t bytes) const {
    tuff_buffer part = TUFF_NULL_HANDLE;
    const tuff_status status = tuff_view(handle(), offset, bytes, &part);
    return detail::give(status, Buffer(context_, part));
  }

  // From the host, to the buffer's beginning or (…_at) to a byte offset.
  template <typename Range>
  Outcome upload(const Range& source) {
    return upload_at(0, std::data(source), std::size(source));
  }
  template <typename T>
  Outcome upload(std::initializer_list<T> source) {
    return upload_at(0, source.begin(), source.size());
  }
  template <typename T>
  Outcome upload(const T* source, std::size_t count) {
    return upload_at(0, source, count);
  }
  template <typename Range>
  Outcome upload_at(uint64_t offset, const Range& source) {
    return upload_at(offset, std::data(source), std::size(source));
  }
  template <typename T>
  Outcome upload_at(uint64_t offset, const T* source, std::size_t count) {
    return detail::finish(tuff_copy_htod(context_, handle(), offset, source, detail::bytes_of<T>(count)));
  }

  // To the host, from the buffer's beginning or (…_at) from a byte offset. Fills the whole target.
  template <typename Range>
  Outcome download(Range&& target) const {
    return download_at(0, std::data(target), std::size(target));
  }
  template <typename T>
  Outcome download(T* target, std::size_t count) const {
    return download_at(0, target, count);
  }
  template <typename Range>
  Outcome download_at(uint64_t offset, Range&& target) const {
    return download_at(offset, std::data(target), std::size(target));
  }
  template <typename T>
  Outcome download_at(uint64_t offset, T* target, std::size_t count) const {
    return detail::finish(tuff_copy_dtoh(context_, target, handle(), offset, detail::bytes_of<T>(count)));
  }
  // The first count elements.
  template <typename T>
  Returned<std::vector<T>> download_vector(std::size_t count) const {
    std::vector<T> target(count);
    const tuff_status status = tuff_copy_dtoh(context_, target.data(), handle(), 0, detail::bytes_of<T>(count));
    return detail::give(status, std::move(target));
  }

  // From another buffer of the same context.
  Outcome copy_from(const Buffer& source, uint64_t bytes, uint64_t offset = 0, uint64_t source_offset = 0) {
    return detail::finish(tuff_copy_dtod(context_, handle(), offset, source.handle(), source_offset, bytes));
  }
  // From a buffer of any context.
  Outcome copy_from_peer(const Buffer& source, uint64_t bytes, uint64_t offset = 0, uint64_t source_offset = 0) {
    return detail::finish(
        tuff_copy_peer(context_, handle(), offset, source.context(), source.handle(), source_offset, bytes));
  }

  // Repeats a value of 1, 2, 4, 8 or 16 bytes over count elements from a byte offset on: fill<float>(1, n).
  template <typename T>
  Outcome fill(const typename detail::Explicit<T>::Type& value, uint64_t count, uint64_t offset = 0) {
    return detail::finish(tuff_fill(context_, handle(), offset, detail::bytes_of<T>(count), &value, sizeof(T)));
  }

  // Its memory as a file descriptor that the caller owns; of a buffer made exportable.
  Returned<MemoryFd> export_fd() const {
    MemoryFd info = {};
    info.struct_size = sizeof(info);
    const tuff_status status = tuff_buffer_export_fd(handle(), &info);
    return detail::give(status, std::move(info));
  }

  template <typename T>
  Returned<Mapping<T>> map() {
    static_assert(std::is_trivially_copyable_v<T>, "elements are copied as bytes");
    uint64_t bytes = 0;
    void* data = nullptr;
    tuff_status status = tuff_buffer_size(handle(), &bytes);
    if (status == TUFF_OK) status = tuff_map(handle(), &data);
    if (status != TUFF_OK) return detail::give(status, Mapping<T>());
    return detail::give(status,
                        Mapping<T>(handle(), static_cast<T*>(data), static_cast<std::size_t>(bytes / sizeof(T))));
  }

 private:
  detail::Owner<tuff_free> owner_;
  tuff_context context_ = TUFF_NULL_HANDLE;
};

// An operand: a Buffer, a handle, or nullptr where it has no elements.
class Operand {
 public:
  Operand(const Buffer& buffer) noexcept : handle_(buffer.handle()) {}
  Operand(std::nullptr_t) noexcept {}
  explicit Operand(tuff_buffer handle) noexcept : handle_(handle) {}

  tuff_buffer handle() const noexcept { return handle_; }

 private:
  tuff_buffer handle_ = TUFF_NULL_HANDLE;
};

// tuff_context_desc: zero and null mean default.
struct ContextOptions {
  const char* device = nullptr;   // index or part of a name
  const char* backend = nullptr;  // "vulkan", "host" or "auto"
  bool validation = false;
  uint64_t memory_limit_bytes = 0;
  bool prewarm = false;
};

// tuff_alloc_desc without the size.
struct AllocOptions {
  bool host_visible = false;   // Buffer::map works
  bool uninitialized = false;  // saves the clearing
  const char* name = nullptr;  // for tools and error messages
  bool host_pinned = false;    // in the host's memory; Buffer::map works
  bool exportable = false;     // Buffer::export_fd works
};

// A specialisation constant, layout(constant_id = id): of the type that the kernel declares.
template <typename T>
tuff_kernel_constant constant(uint32_t id, T value) noexcept {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8, "a constant is a number");
  tuff_kernel_constant result = {id, 0, 0};
  if constexpr (std::is_integral_v<T>) {
    result.bits = static_cast<uint64_t>(value);
  } else {
    std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t> bits = 0;
    static_assert(sizeof(T) == sizeof(bits), "float or double");
    std::memcpy(&bits, &value, sizeof(bits));
    result.bits = bits;
  }
  return result;
}

// tuff_kernel_desc without the source: null, zero and empty mean default.
struct KernelOptions {
  const char* name = nullptr;   // for messages: "name:line: error: ..."
  const char* entry = nullptr;  // of SPIR-V
  std::vector<tuff_kernel_define> defines;
  std::vector<tuff_kernel_constant> constants;
  bool robust = false;     // accesses beyond a buffer's end do nothing
  bool untrusted = false;  // compiled in a process of its own, within these:
  uint64_t max_source_bytes = 0;
  uint64_t compile_milliseconds = 0;
  uint64_t compile_memory_bytes = 0;
};

// A compute shader of the caller's own. Made by Context::kernel.
class Kernel {
 public:
  Kernel() noexcept = default;
  // Takes ownership of a handle that came from tuff_kernel_create.
  Kernel(tuff_context context, tuff_kernel handle) noexcept : owner_(handle), context_(context) {}

  tuff_kernel handle() const noexcept { return owner_.get(); }
  tuff_context context() const noexcept { return context_; }
  explicit operator bool() const noexcept { return handle() != TUFF_NULL_HANDLE; }
  // Gives up ownership: the caller destroys the handle.
  tuff_kernel release() noexcept { return owner_.release(); }
  void reset() noexcept { owner_.reset(TUFF_NULL_HANDLE); }

  Returned<KernelProperties> info() const {
    KernelProperties properties = {};
    properties.struct_size = sizeof(properties);
    const tuff_status status = tuff_kernel_info(handle(), &properties);
    return detail::give(status, std::move(properties));
  }

  // Workgroups in x, y and z; buffer i is that of binding i; push: the push constants as one plain structure.
  // kernel.launch({groups}, {x, y}, Parameters{n, 0.5f}). Through the context's default stream.
  Outcome launch(const std::array<uint32_t, 3>& groups, std::initializer_list<Operand> buffers) const {
    return launch_bytes(context_, groups, buffers, nullptr, 0);
  }
  template <typename Push>
  Outcome launch(const std::array<uint32_t, 3>& groups, std::initializer_list<Operand> buffers,
                 const Push& push) const {
    static_assert(std::is_trivially_copyable_v<Push>, "push constants are copied as bytes");
    return launch_bytes(context_, groups, buffers, &push, sizeof(Push));
  }
  // Through any stream of its context (Stream::launch), with parameters of any size.
  Outcome launch_bytes(tuff_stream stream, const std::array<uint32_t, 3>& groups,
                       std::initializer_list<Operand> buffers, const void* push, uint32_t push_bytes) const {
    std::array<tuff_buffer, TUFF_KERNEL_MAX_BINDINGS> handles = {};
    std::size_t count = 0;
    for (const Operand& buffer : buffers) {
      if (count < handles.size()) handles[count] = buffer.handle();
      ++count;  // more than there can be is for the library to refuse
    }
    return detail::finish(tuff_kernel_launch(stream, handle(), handles.data(), static_cast<uint32_t>(count), push,
                                             push_bytes, groups[0], groups[1], groups[2]));
  }

 private:
  detail::Owner<tuff_kernel_destroy> owner_;
  tuff_context context_ = TUFF_NULL_HANDLE;
};

// A point in a stream, once it is recorded. Made by Context::event, and by record of a stream.
class Event {
 public:
  Event() noexcept = default;
  // Takes ownership of a handle that came from tuff_event_create.
  explicit Event(tuff_event handle) noexcept : owner_(handle) {}

  tuff_event handle() const noexcept { return owner_.get(); }
  explicit operator bool() const noexcept { return handle() != TUFF_NULL_HANDLE; }
  // Gives up ownership: the caller destroys the handle.
  tuff_event release() noexcept { return owner_.release(); }
  void reset() noexcept { owner_.reset(TUFF_NULL_HANDLE); }

  // Whether it has happened, or was never recorded.
  Returned<bool> query() const {
    int32_t done = 0;
    const tuff_status status = tuff_event_query(handle(), &done);
    return detail::give(status, done != 0);
  }
  Outcome wait() const { return detail::finish(tuff_event_wait(handle())); }
  // Milliseconds from this event to that one.
  Returned<double> elapsed(const Event& end) const {
    double milliseconds = 0;
    const tuff_status status = tuff_event_elapsed(handle(), end.handle(), &milliseconds);
    return detail::give(status, std::move(milliseconds));
  }

 private:
  detail::Owner<tuff_event_destroy> owner_;
};

// Operations that were called once, to be launched again and again. Made by capture, or by begin_graph and end_graph,
// of a stream.
class Graph {
 public:
  Graph() noexcept = default;
  // Takes ownership of a handle that came from tuff_graph_end.
  explicit Graph(tuff_graph handle) noexcept : owner_(handle) {}

  tuff_graph handle() const noexcept { return owner_.get(); }
  explicit operator bool() const noexcept { return handle() != TUFF_NULL_HANDLE; }
  // Gives up ownership: the caller destroys the handle.
  tuff_graph release() noexcept { return owner_.release(); }
  void reset() noexcept { owner_.reset(TUFF_NULL_HANDLE); }

  // From the next launch on, what was captured with memory of `captured` uses the same place in `replacement`.
  Outcome bind(const Buffer& captured, const Buffer& replacement) {
    return detail::finish(tuff_graph_bind(handle(), captured.handle(), replacement.handle()));
  }

 private:
  detail::Owner<tuff_graph_destroy> owner_;
};

inline Returned<uint32_t> device_count() {
  uint32_t count = 0;
  const tuff_status status = tuff_device_count(&count);
  return detail::give(status, std::move(count));
}

inline Returned<DeviceProperties> device_info(uint32_t index) {
  DeviceProperties properties = {};
  properties.struct_size = sizeof(properties);
  const tuff_status status = tuff_device_info(index, &properties);
  return detail::give(status, std::move(properties));
}

// The devices that were passed over, one a line, with the reasons.
inline Returned<std::string> device_refusals() {
  uint64_t length = 0;
  tuff_status status = tuff_device_refusals(nullptr, 0, &length);
  std::string text(static_cast<std::size_t>(length), '\0');
  // The NUL replaces string's own.
  if (status == TUFF_OK) status = tuff_device_refusals(text.data(), length + 1, nullptr);
  return detail::give(status, std::move(text));
}

// level is a TUFF_LOG_*.
inline Outcome set_log(tuff_log_callback callback, void* user, int32_t level) {
  return detail::finish(tuff_set_log(callback, user, level));
}

// A context that is being profiled, or was: begun by Context::profile.
class Profile {
 public:
  Profile() noexcept = default;
  // Takes it upon itself to end what tuff_profile_begin began.
  explicit Profile(tuff_context context) noexcept : running_(context), context_(context) {}

  explicit operator bool() const noexcept { return running_.get() != TUFF_NULL_HANDLE; }
  // Waits for the work so far, and profiles no more.
  Outcome end() { return detail::finish(tuff_profile_end(running_.release())); }

  // What was profiled, until the context's next profile: a trace for https://ui.perfetto.dev, and text for a person.
  Outcome write(const std::string& path) const { return detail::finish(tuff_profile_write(context_, path.c_str())); }
  Returned<std::string> table() const {
    std::string text;
    uint64_t length = 0;
    tuff_status status = tuff_profile_table(context_, nullptr, 0, &length);
    while (status == TUFF_OK && text.size() < length) {
      text.resize(static_cast<std::size_t>(length));
      status = tuff_profile_table(context_, text.data(), text.size() + 1, &length);  // the NUL replaces string's own
    }
    text.resize(static_cast<std::size_t>(length));
    return detail::give(status, std::move(text));
  }

 private:
  detail::Owner<tuff_profile_end> running_;
  tuff_context context_ = TUFF_NULL_HANDLE;
};

// What is called on a stream, of which a Context is one and a Stream another: the operations, each of which also takes
// its descriptor, whose struct_size is set here; copies; events; graphs. Owns its handle.
template <tuff_status (*Destroy)(uint64_t)>
class Operations {
 public:
  tuff_stream handle() const noexcept { return owner_.get(); }
  explicit operator bool() const noexcept { return handle() != TUFF_NULL_HANDLE; }
  // Gives up ownership: the caller destroys the handle.
  uint64_t release() noexcept { return owner_.release(); }
  // Destroys it now: a stream's work goes on to its end; a context's is waited for, and all that was made from it goes.
  void reset() noexcept { owner_.reset(TUFF_NULL_HANDLE); }

  // Of a context, all its streams.
  Outcome synchronize() const { return detail::finish(tuff_synchronize(handle())); }

  // The event now means all that was called here so far.
  Outcome record(const Event& event) const { return detail::finish(tuff_event_record(handle(), event.handle())); }
  // A new event that means it.
  Returned<Event> record(bool timing = true) const {
    tuff_event event = TUFF_NULL_HANDLE;
    tuff_status status = create_event(timing, &event);
    Event result(event);
    if (status == TUFF_OK) status = tuff_event_record(handle(), event);
    if (status != TUFF_OK) result.reset();
    return detail::give(status, std::move(result));
  }
  // What is called here from now on happens after the event.
  Outcome wait(const Event& event) const { return detail::finish(tuff_stream_wait_event(handle(), event.handle())); }

  // What is called here from now on is not carried out, but captured: up to end_graph, or to the end of body().
  Outcome begin_graph() const { return detail::finish(tuff_graph_begin(handle())); }
  Returned<Graph> end_graph() const {
    tuff_graph graph = TUFF_NULL_HANDLE;
    const tuff_status status = tuff_graph_end(handle(), &graph);
    return detail::give(status, Graph(graph));
  }
  template <typename Body>
  Returned<Graph> capture(Body&& body) const {
    const tuff_status status = tuff_graph_begin(handle());
    if (status != TUFF_OK) return detail::give(status, Graph());
    Capture capture{handle()};
    std::forward<Body>(body)();
    capture.stream = TUFF_NULL_HANDLE;
    return end_graph();
  }
  Outcome launch(const Graph& graph) const { return detail::finish(tuff_graph_launch(handle(), graph.handle())); }

  // As Kernel::launch.
  Outcome launch(const Kernel& kernel, const std::array<uint32_t, 3>& groups,
                 std::initializer_list<Operand> buffers) const {
    return kernel.launch_bytes(handle(), groups, buffers, nullptr, 0);
  }
  template <typename Push>
  Outcome launch(const Kernel& kernel, const std::array<uint32_t, 3>& groups, std::initializer_list<Operand> buffers,
                 const Push& push) const {
    static_assert(std::is_trivially_copyable_v<Push>, "push constants are copied as bytes");
    return kernel.launch_bytes(handle(), groups, buffers, &push, sizeof(Push));
  }

  // From a Range, or count elements, to a byte offset of a buffer, and back. The _async ones return at once; the host's
  // side lies in pinned memory (a Mapping, or a part of one) and must not be touched before the copy has happened.
  template <typename Range>
  Outcome copy_htod(const Buffer& target, const Range& source, uint64_t offset = 0) const {
    return copy_htod(target, offset, std::data(source), std::size(source));
  }
  template <typename T>
  Outcome copy_htod(const Buffer& target, uint64_t offset, const T* source, std::size_t count) const {
    return detail::finish(tuff_copy_htod(handle(), target.handle(), offset, source, detail::bytes_of<T>(count)));
  }
  template <typename Range>
  Outcome copy_dtoh(Range&& target, const Buffer& source, uint64_t offset = 0) const {
    return copy_dtoh(std::data(target), source, offset, std::size(target));
  }
  template <typename T>
  Outcome copy_dtoh(T* target, const Buffer& source, uint64_t offset, std::size_t count) const {
    return detail::finish(tuff_copy_dtoh(handle(), target, source.handle(), offset, detail::bytes_of<T>(count)));
  }
  template <typename Range>
  Outcome copy_htod_async(const Buffer& target, const Range& source, uint64_t offset = 0) const {
    return copy_htod_async(target, offset, std::data(source), std::size(source));
  }
  template <typename T>
  Outcome copy_htod_async(const Buffer& target, uint64_t offset, const T* source, std::size_t count) const {
    return detail::finish(tuff_copy_htod_async(handle(), target.handle(), offset, source, detail::bytes_of<T>(count)));
  }
  template <typename Range>
  Outcome copy_dtoh_async(Range&& target, const Buffer& source, uint64_t offset = 0) const {
    return copy_dtoh_async(std::data(target), source, offset, std::size(target));
  }
  template <typename T>
  Outcome copy_dtoh_async(T* target, const Buffer& source, uint64_t offset, std::size_t count) const {
    return detail::finish(tuff_copy_dtoh_async(handle(), target, source.handle(), offset, detail::bytes_of<T>(count)));
  }
  Outcome copy_dtod(const Buffer& target, const Buffer& source, uint64_t bytes, uint64_t offset = 0,
                    uint64_t source_offset = 0) const {
    return detail::finish(tuff_copy_dtod(handle(), target.handle(), offset, source.handle(), source_offset, bytes));
  }
  // Repeats a value of 1, 2, 4, 8 or 16 bytes over count elements from a byte offset on.
  template <typename T>
  Outcome fill(const Buffer& target, const typename detail::Explicit<T>::Type& value, uint64_t count,
               uint64_t offset = 0) const {
    return detail::finish(tuff_fill(handle(), target.handle(), offset, detail::bytes_of<T>(count), &value, sizeof(T)));
  }

  Outcome gemm(DType dtype, Transpose ta, Transpose tb, uint64_t m, uint64_t n, uint64_t k, double alpha, Operand a,
               uint64_t lda, Operand b, uint64_t ldb, double beta, Operand c, uint64_t ldc) const {
    return detail::finish(tuff_gemm(handle(), value(dtype), value(ta), value(tb), m, n, k, alpha, a.handle(), lda,
                                    b.handle(), ldb, beta, c.handle(), ldc));
  }
  Outcome gemm(tuff_gemm_desc desc) const { return with_size(tuff_gemm_ex, desc); }

  Outcome batched_gemm(DType dtype, Transpose ta, Transpose tb, uint64_t m, uint64_t n, uint64_t k, double alpha,
                       Operand a, uint64_t lda, uint64_t stride_a, Operand b, uint64_t ldb, uint64_t stride_b,
                       double beta, Operand c, uint64_t ldc, uint64_t stride_c, uint64_t batch_count) const {
    return detail::finish(tuff_batched_gemm(handle(), value(dtype), value(ta), value(tb), m, n, k, alpha, a.handle(),
                                            lda, stride_a, b.handle(), ldb, stride_b, beta, c.handle(), ldc, stride_c,
                                            batch_count));
  }
  Outcome batched_gemm(tuff_batched_gemm_desc desc) const { return with_size(tuff_batched_gemm_ex, desc); }

  Outcome conv2d(DType dtype, Operand input, const std::array<uint64_t, 4>& in_shape, Operand filter,
                 const std::array<uint64_t, 4>& filter_shape, Operand output, const std::array<uint64_t, 4>& out_shape,
                 const std::array<uint64_t, 2>& stride = {1, 1},
                 const std::array<uint64_t, 2>& padding = {0, 0}) const {
    return detail::finish(tuff_conv2d(handle(), value(dtype), input.handle(), in_shape.data(), filter.handle(),
                                      filter_shape.data(), output.handle(), out_shape.data(), stride.data(),
                                      padding.data()));
  }
  Outcome conv2d(tuff_conv2d_desc desc) const { return with_size(tuff_conv2d_ex, desc); }

  Outcome conv1d(DType dtype, Operand input, const std::array<uint64_t, 3>& in_shape, Operand filter,
                 const std::array<uint64_t, 3>& filter_shape, Operand output, const std::array<uint64_t, 3>& out_shape,
                 uint64_t stride = 1, uint64_t padding = 0) const {
    return detail::finish(tuff_conv1d(handle(), value(dtype), input.handle(), in_shape.data(), filter.handle(),
                                      filter_shape.data(), output.handle(), out_shape.data(), stride, padding));
  }
  Outcome conv1d(tuff_conv1d_desc desc) const { return with_size(tuff_conv1d_ex, desc); }

  Outcome conv3d(DType dtype, Operand input, const std::array<uint64_t, 5>& in_shape, Operand filter,
                 const std::array<uint64_t, 5>& filter_shape, Operand output, const std::array<uint64_t, 5>& out_shape,
                 const std::array<uint64_t, 3>& stride = {1, 1, 1},
                 const std::array<uint64_t, 3>& padding = {0, 0, 0}) const {
    return detail::finish(tuff_conv3d(handle(), value(dtype), input.handle(), in_shape.data(), filter.handle(),
                                      filter_shape.data(), output.handle(), out_shape.data(), stride.data(),
                                      padding.data()));
  }
  Outcome conv3d(tuff_conv3d_desc desc) const { return with_size(tuff_conv3d_ex, desc); }

  Outcome conv_transpose2d(DType dtype, Operand input, const std::array<uint64_t, 4>& in_shape, Operand filter,
                           const std::array<uint64_t, 4>& filter_shape, Operand output,
                           const std::array<uint64_t, 4>& out_shape, const std::array<uint64_t, 2>& stride = {1, 1},
                           const std::array<uint64_t, 2>& padding = {0, 0},
                           const std::array<uint64_t, 2>& output_padding = {0, 0}) const {
    return detail::finish(tuff_conv_transpose2d(handle(), value(dtype), input.handle(), in_shape.data(),
                                                filter.handle(), filter_shape.data(), output.handle(), out_shape.data(),
                                                stride.data(), padding.data(), output_padding.data()));
  }
  Outcome conv_transpose2d(tuff_conv_transpose2d_desc desc) const { return with_size(tuff_conv_transpose2d_ex, desc); }

  Outcome attention(DType dtype, Operand q, Operand k, Operand v, Operand o, uint64_t batch, uint64_t heads,
                    uint64_t seq_q, uint64_t seq_kv, uint64_t head_dim, double scale,
                    Causal causal = Causal::none) const {
    return detail::finish(tuff_attention(handle(), value(dtype), q.handle(), k.handle(), v.handle(), o.handle(), batch,
                                         heads, seq_q, seq_kv, head_dim, scale, value(causal)));
  }
  Outcome attention(tuff_attention_desc desc) const { return with_size(tuff_attention_ex, desc); }

  Outcome reduce(DType dtype, Reduce op, Operand input, Operand output, const Shape& shape, uint32_t axis) const {
    return detail::finish(tuff_reduce(handle(), value(dtype), value(op), input.handle(), output.handle(), shape.data(),
                                      shape.rank(), axis));
  }
  Outcome reduce(tuff_reduce_desc desc) const { return with_size(tuff_reduce_ex, desc); }

  Outcome cumsum(DType dtype, Operand input, Operand output, const Shape& shape, uint32_t axis, bool exclusive = false,
                 bool reverse = false) const {
    return cumsum(scan(dtype, input, output, shape, axis, exclusive, reverse));
  }
  Outcome cumsum(tuff_scan_desc desc) const { return with_size(tuff_cumsum, desc); }
  Outcome cumprod(DType dtype, Operand input, Operand output, const Shape& shape, uint32_t axis, bool exclusive = false,
                  bool reverse = false) const {
    return cumprod(scan(dtype, input, output, shape, axis, exclusive, reverse));
  }
  Outcome cumprod(tuff_scan_desc desc) const { return with_size(tuff_cumprod, desc); }

  Outcome unary(DType dtype, Unary op, Operand input, Operand output, uint64_t n) const {
    return detail::finish(tuff_unary(handle(), value(dtype), value(op), input.handle(), output.handle(), n));
  }
  Outcome unary(tuff_unary_desc desc) const { return with_size(tuff_unary_ex, desc); }

  Outcome binary(DType dtype, Binary op, Operand a, Operand b, Operand output, uint64_t n) const {
    return detail::finish(tuff_binary(handle(), value(dtype), value(op), a.handle(), b.handle(), output.handle(), n));
  }
  Outcome binary(tuff_binary_desc desc) const { return with_size(tuff_binary_ex, desc); }

  Outcome softmax(DType dtype, Operand input, Operand output, const Shape& shape, uint32_t axis) const {
    return detail::finish(
        tuff_softmax(handle(), value(dtype), input.handle(), output.handle(), shape.data(), shape.rank(), axis));
  }
  Outcome softmax(tuff_softmax_desc desc) const { return with_size(tuff_softmax_ex, desc); }

  Outcome layer_norm(DType dtype, Operand input, Operand weight, Operand bias, Operand output, uint64_t rows,
                     uint64_t cols, double epsilon) const {
    return detail::finish(tuff_layer_norm(handle(), value(dtype), input.handle(), weight.handle(), bias.handle(),
                                          output.handle(), rows, cols, epsilon));
  }
  Outcome layer_norm(tuff_layer_norm_desc desc) const { return with_size(tuff_layer_norm_ex, desc); }

  Outcome rms_norm(DType dtype, Operand input, Operand weight, Operand output, uint64_t rows, uint64_t cols,
                   double epsilon) const {
    return detail::finish(
        tuff_rms_norm(handle(), value(dtype), input.handle(), weight.handle(), output.handle(), rows, cols, epsilon));
  }
  Outcome rms_norm(tuff_rms_norm_desc desc) const { return with_size(tuff_rms_norm_ex, desc); }

  Outcome group_norm(DType dtype, Operand input, Operand weight, Operand bias, Operand output, uint64_t batch,
                     uint64_t channels, uint64_t inner, uint64_t groups, double epsilon) const {
    return detail::finish(tuff_group_norm(handle(), value(dtype), input.handle(), weight.handle(), bias.handle(),
                                          output.handle(), batch, channels, inner, groups, epsilon));
  }
  Outcome group_norm(tuff_group_norm_desc desc) const { return with_size(tuff_group_norm_ex, desc); }

  Outcome batch_norm(DType dtype, Operand input, Operand mean, Operand variance, Operand weight, Operand bias,
                     Operand output, uint64_t batch, uint64_t channels, uint64_t inner, double epsilon) const {
    return detail::finish(tuff_batch_norm(handle(), value(dtype), input.handle(), mean.handle(), variance.handle(),
                                          weight.handle(), bias.handle(), output.handle(), batch, channels, inner,
                                          epsilon));
  }
  Outcome batch_norm(tuff_batch_norm_desc desc) const { return with_size(tuff_batch_norm_ex, desc); }

  // order: as many axes as shape has.
  Outcome permute(DType dtype, Operand input, Operand output, const Shape& shape,
                  std::initializer_list<uint32_t> order) const {
    return detail::finish(tuff_permute(handle(), value(dtype), input.handle(), output.handle(), shape.data(),
                                       order.size() == shape.rank() ? shape.rank() : 0, order.begin()));
  }
  Outcome permute(tuff_permute_desc desc) const { return with_size(tuff_permute_ex, desc); }

  Outcome cast(DType input_type, DType output_type, Operand input, Operand output, uint64_t n) const {
    return detail::finish(
        tuff_cast(handle(), value(input_type), value(output_type), input.handle(), output.handle(), n));
  }
  Outcome cast(tuff_cast_desc desc) const { return with_size(tuff_cast_ex, desc); }

  // Part of the input, step 1.
  Outcome slice(DType dtype, Operand input, Operand output, const Shape& shape, const Shape& start,
                const Shape& out_shape) const {
    const uint32_t rank = start.rank() == shape.rank() && out_shape.rank() == shape.rank() ? shape.rank() : 0;
    return detail::finish(tuff_slice(handle(), value(dtype), input.handle(), output.handle(), shape.data(), rank,
                                     start.data(), nullptr, out_shape.data()));
  }
  Outcome slice(tuff_slice_desc desc) const { return with_size(tuff_slice_ex, desc); }

  // sizes: of each input along the axis.
  Outcome concat(DType dtype, std::initializer_list<Operand> inputs, std::initializer_list<uint64_t> sizes,
                 Operand output, const Shape& shape, uint32_t axis) const {
    std::vector<tuff_buffer> handles;
    for (const Operand& input : inputs) handles.push_back(input.handle());
    std::vector<uint64_t> along(sizes);
    along.resize(handles.size());
    return detail::finish(tuff_concat(handle(), value(dtype), handles.data(), along.data(),
                                      static_cast<uint32_t>(handles.size()), output.handle(), shape.data(),
                                      shape.rank(), axis));
  }
  Outcome concat(tuff_concat_desc desc) const { return with_size(tuff_concat_ex, desc); }

  Outcome gather(DType dtype, DType index_type, Operand input, Operand indices, Operand output, const Shape& shape,
                 uint32_t axis, uint64_t count) const {
    return detail::finish(tuff_gather(handle(), value(dtype), value(index_type), input.handle(), indices.handle(),
                                      output.handle(), shape.data(), shape.rank(), axis, count));
  }
  Outcome gather(tuff_gather_desc desc) const { return with_size(tuff_gather_ex, desc); }

  Outcome max_pool(tuff_pool_desc desc) const { return with_size(tuff_max_pool, desc); }
  Outcome avg_pool(tuff_pool_desc desc) const { return with_size(tuff_avg_pool, desc); }
  Outcome resize(tuff_resize_desc desc) const { return with_size(tuff_resize, desc); }

  Outcome rope(DType dtype, Operand input, Operand output, uint64_t batch, uint64_t heads, uint64_t seq,
               uint64_t head_dim, int64_t offset = 0, double base = 10000) const {
    return detail::finish(
        tuff_rope(handle(), value(dtype), input.handle(), output.handle(), batch, heads, seq, head_dim, offset, base));
  }
  Outcome rope(tuff_rope_desc desc) const { return with_size(tuff_rope_ex, desc); }

 protected:
  Operations() noexcept = default;
  Operations(uint64_t handle, tuff_context context) noexcept : owner_(handle), context_(context) {}
  tuff_context owner() const noexcept { return context_; }
  tuff_status create_event(bool timing, tuff_event* event) const noexcept {
    tuff_event_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.flags = timing ? 0u : uint32_t{TUFF_EVENT_NO_TIMING};
    return tuff_event_create(context_, &desc, event);
  }

 private:
  struct Capture {  // ends what an exception has left
    tuff_stream stream;
    ~Capture() {
      tuff_graph graph = TUFF_NULL_HANDLE;
      if (stream != TUFF_NULL_HANDLE && tuff_graph_end(stream, &graph) == TUFF_OK) tuff_graph_destroy(graph);
    }
  };
  template <typename Enum>
  static constexpr int32_t value(Enum constant) noexcept {
    return static_cast<int32_t>(constant);
  }
  // A shape of more than eight sizes is left to the library to refuse.
  static tuff_scan_desc scan(DType dtype, Operand input, Operand output, const Shape& shape, uint32_t axis,
                             bool exclusive, bool reverse) noexcept {
    tuff_scan_desc desc{};
    desc.dtype = value(dtype), desc.input = input.handle(), desc.output = output.handle();
    for (uint32_t i = 0; i < shape.rank() && i < 8; ++i) desc.shape[i] = shape.data()[i];
    desc.rank = shape.rank(), desc.axis = axis, desc.exclusive = exclusive, desc.reverse = reverse;
    return desc;
  }
  template <typename Desc>
  Outcome with_size(tuff_status (*operation)(tuff_stream, const Desc*), Desc& desc) const {
    desc.struct_size = sizeof(Desc);
    return detail::finish(operation(handle(), &desc));
  }

  detail::Owner<Destroy> owner_;
  tuff_context context_ = TUFF_NULL_HANDLE;
};

// An order of work beside the context's own. Made by Context::stream.
class Stream : public Operations<tuff_stream_destroy> {
 public:
  Stream() noexcept = default;
  // Takes ownership of a handle that came from tuff_stream_create.
  Stream(tuff_context context, tuff_stream handle) noexcept : Operations(handle, context) {}

  tuff_context context() const noexcept { return owner(); }
};

// An open device and its default stream, to which the operations go.
class Context : public Operations<tuff_context_destroy> {
 public:
  Context() noexcept = default;
  // Takes ownership of a handle that came from tuff_context_create.
  explicit Context(tuff_context handle) noexcept : Operations(handle, handle) {}

  static Returned<Context> create(const ContextOptions& options = {}) {
    tuff_context_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.validation = options.validation ? 1 : 0;
    desc.device = options.device;
    desc.backend = options.backend;
    desc.memory_limit_bytes = options.memory_limit_bytes;
    desc.prewarm = options.prewarm ? 1 : 0;
    tuff_context handle = TUFF_NULL_HANDLE;
    const tuff_status status = tuff_context_create(&desc, &handle);
    return detail::give(status, Context(handle));
  }

  // name: for profiles and errors.
  Returned<Stream> stream(const char* name = nullptr) const {
    tuff_stream_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.name = name;
    tuff_stream made = TUFF_NULL_HANDLE;
    const tuff_status status = tuff_stream_create(handle(), &desc, &made);
    return detail::give(status, Stream(handle(), made));
  }
  // Without timing it costs less to record, and there is no Event::elapsed.
  Returned<Event> event(bool timing = true) const {
    tuff_event made = TUFF_NULL_HANDLE;
    const tuff_status status = create_event(timing, &made);
    return detail::give(status, Event(made));
  }

  Returned<DeviceProperties> info() const {
    DeviceProperties properties = {};
    properties.struct_size = sizeof(properties);
    const tuff_status status = tuff_context_info(handle(), &properties);
    return detail::give(status, std::move(properties));
  }
  Returned<Stats> stats() const {
    Stats counters = {};
    counters.struct_size = sizeof(counters);
    const tuff_status status = tuff_context_stats(handle(), &counters);
    return detail::give(status, std::move(counters));
  }
  Returned<bool> supports(const char* feature) const {
    int32_t yes = 0;
    const tuff_status status = tuff_supports(handle(), feature, &yes);
    return detail::give(status, yes != 0);
  }
  Outcome set_limits(Limits limits) {
    limits.struct_size = sizeof(limits);
    return detail::finish(tuff_context_set_limits(handle(), &limits));
  }
  // A table of tuned choices as JSON; null: the built-in choices.
  Outcome set_tuning(const char* json) { return detail::finish(tuff_context_set_tuning(handle(), json)); }
  // Profiles what the context does until the result ends, or is destroyed. It may be destroyed after the context.
  Returned<Profile> profile() const {
    const tuff_status status = tuff_profile_begin(handle());
    return detail::give(status, status == TUFF_OK ? Profile(handle()) : Profile());
  }

  Returned<MemoryStats> memory() const {
    MemoryStats memory = {};
    memory.struct_size = sizeof(memory);
    const tuff_status status = tuff_context_memory(handle(), &memory);
    return detail::give(status, std::move(memory));
  }
  // Gives what nobody uses back to the device.
  Outcome trim() { return detail::finish(tuff_context_trim(handle())); }
  Outcome reset_peak() { return detail::finish(tuff_context_reset_peak(handle())); }
  // Called before memory is refused; null: none.
  Outcome set_memory_callback(tuff_memory_callback callback, void* user) {
    return detail::finish(tuff_context_set_memory_callback(handle(), callback, user));
  }
  // A buffer over the caller's own memory, which stays until the buffer was freed and synchronize() has returned.
  Returned<Buffer> import_host(void* memory, uint64_t bytes) const {
    tuff_buffer buffer = TUFF_NULL_HANDLE;
    const tuff_status status = tuff_buffer_import_host(handle(), memory, bytes, &buffer);
    return detail::give(status, Buffer(handle(), buffer));
  }
  // A buffer over memory that Buffer::export_fd exported; info.fd stays the caller's.
  Returned<Buffer> import_fd(const MemoryFd& info) const {
    tuff_buffer buffer = TUFF_NULL_HANDLE;
    const tuff_status status = tuff_buffer_import_fd(handle(), &info, &buffer);
    return detail::give(status, Buffer(handle(), buffer));
  }

  // Device memory that reads as zero.
  Returned<Buffer> alloc_bytes(uint64_t bytes) const {
    tuff_buffer buffer = TUFF_NULL_HANDLE;
    const tuff_status status = tuff_alloc(handle(), bytes, &buffer);
    return detail::give(status, Buffer(handle(), buffer));
  }
  Returned<Buffer> alloc_bytes(uint64_t bytes, const AllocOptions& options) const {
    tuff_alloc_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.flags = (options.host_visible ? uint32_t{TUFF_ALLOC_HOST_VISIBLE} : 0u) |
                 (options.uninitialized ? uint32_t{TUFF_ALLOC_UNINITIALIZED} : 0u) |
                 (options.host_pinned ? uint32_t{TUFF_ALLOC_HOST_PINNED} : 0u) |
                 (options.exportable ? uint32_t{TUFF_ALLOC_EXPORTABLE} : 0u);
    desc.bytes = bytes;
    desc.name = options.name;
    tuff_buffer buffer = TUFF_NULL_HANDLE;
    const tuff_status status = tuff_alloc_ex(handle(), &desc, &buffer);
    return detail::give(status, Buffer(handle(), buffer));
  }
  // The same, of count elements.
  template <typename T>
  Returned<Buffer> alloc(uint64_t count) const {
    return alloc_bytes(detail::bytes_of<T>(count));
  }
  template <typename T>
  Returned<Buffer> alloc(uint64_t count, const AllocOptions& options) const {
    return alloc_bytes(detail::bytes_of<T>(count), options);
  }
  // A new buffer that holds a copy of source.
  template <typename Range>
  Returned<Buffer> upload(const Range& source) const {
    return upload(std::data(source), std::size(source));
  }
  template <typename T>
  Returned<Buffer> upload(std::initializer_list<T> source) const {
    return upload(source.begin(), source.size());
  }
  template <typename T>
  Returned<Buffer> upload(const T* source, std::size_t count) const {
    tuff_alloc_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.flags = TUFF_ALLOC_UNINITIALIZED;  // overwritten next
    desc.bytes = detail::bytes_of<T>(count);
    tuff_buffer buffer = TUFF_NULL_HANDLE;
    tuff_status status = tuff_alloc_ex(handle(), &desc, &buffer);
    Buffer result(handle(), buffer);
    if (status == TUFF_OK) status = tuff_copy_htod(handle(), buffer, 0, source, desc.bytes);
    if (status != TUFF_OK) result.reset();
    return detail::give(status, std::move(result));
  }

  // A compute shader: GLSL, or (kernel_spirv) the words of a module, a Range.
  Returned<Kernel> kernel(const std::string& glsl, const KernelOptions& options = {}) const {
    // An empty text is one that does not compile, and no pointer without a size.
    return make_kernel(TUFF_KERNEL_GLSL, glsl.c_str(), glsl.size(), options);
  }
  template <typename Range>
  Returned<Kernel> kernel_spirv(const Range& words, const KernelOptions& options = {}) const {
    return make_kernel(TUFF_KERNEL_SPIRV, std::data(words),
                       detail::bytes_of<std::remove_cv_t<detail::Element<const Range>>>(std::size(words)), options);
  }

  // What a table of tuned choices can say of the product, as JSON.
  Returned<std::string> batched_gemm_variants(tuff_batched_gemm_desc desc) const {
    desc.struct_size = sizeof(desc);
    uint64_t length = 0;
    tuff_status status = tuff_batched_gemm_variants(handle(), &desc, nullptr, 0, &length);
    std::string json(static_cast<std::size_t>(length), '\0');
    // The NUL replaces string's own.
    if (status == TUFF_OK) status = tuff_batched_gemm_variants(handle(), &desc, json.data(), length + 1, nullptr);
    return detail::give(status, std::move(json));
  }

 private:
  Returned<Kernel> make_kernel(int32_t language, const void* source, uint64_t bytes,
                               const KernelOptions& options) const {
    tuff_kernel_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.language = language;
    desc.source = source;
    desc.source_bytes = bytes;
    desc.name = options.name;
    desc.entry = options.entry;
    desc.defines = options.defines.data();
    desc.constants = options.constants.data();
    desc.define_count = static_cast<uint32_t>(options.defines.size());
    desc.constant_count = static_cast<uint32_t>(options.constants.size());
    desc.flags = (options.robust ? uint32_t{TUFF_KERNEL_ROBUST} : 0u) |
                 (options.untrusted ? uint32_t{TUFF_KERNEL_UNTRUSTED} : 0u);
    desc.max_source_bytes = options.max_source_bytes;
    desc.compile_milliseconds = options.compile_milliseconds;
    desc.compile_memory_bytes = options.compile_memory_bytes;
    tuff_kernel made = TUFF_NULL_HANDLE;
    const tuff_status status = tuff_kernel_create(handle(), &desc, &made);
    return detail::give(status, Kernel(handle(), made));
  }
};

#ifdef TUFF_NO_EXCEPTIONS
}  // inline namespace cpp_status
#else
}  // inline namespace cpp_exceptions
#endif
}  // namespace tuff

#endif  // TUFF_TUFF_HPP
