// Registered operations: the same integer arithmetic by a kernel and by a host function, on views at any place where
// the device binds.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "fuzz/world.hpp"

namespace tuff_fuzz {
namespace {

constexpr const char* kRegisteredSource = R"(#version 450
layout(local_size_x = 32) in;
layout(binding = 0) readonly buffer From { uint from[]; };
layout(binding = 1) writeonly buffer To { uint to[]; };
layout(push_constant) uniform Parameters { uint n; uint by; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < n) to[i] = from[i] * 5 + by;
}
)";

void compute(void*, const tuff_op_operand* arguments, uint32_t, tuff_status*) {
  const auto* from = static_cast<const uint8_t*>(arguments[2].data);
  auto* to = static_cast<uint8_t*>(arguments[3].data);
  for (int64_t i = 0; i < arguments[0].integer; ++i) {
    uint32_t value = 0;
    std::memcpy(&value, from + 4 * i, 4);
    value = value * 5 + static_cast<uint32_t>(arguments[1].integer);
    std::memcpy(to + 4 * i, &value, 4);
  }
}

void op_register(Step& s) {
  static constexpr tuff_op_argument kArguments[] = {{"n", TUFF_OP_SCALAR, TUFF_U32, 0, 0, nullptr, 0, 1000},
                                                    {"by", TUFF_OP_SCALAR, TUFF_U32, 0, 0, nullptr, 0, 0},
                                                    {"from", TUFF_OP_BUFFER, TUFF_U32, TUFF_OP_READ, 0, "n", 0, 0},
                                                    {"to", TUFF_OP_BUFFER, TUFF_I32, TUFF_OP_WRITE, 0, "n", 0, 0}};
  static uint64_t made = 0;
  const std::string name = "fuzz.affine." + std::to_string(++made);
  tuff_kernel_desc kernel{};
  kernel.struct_size = sizeof kernel;
  kernel.source = kRegisteredSource;
  Call call(function_of("tuff_op_register"));
  const auto address = [](const auto* what) { return reinterpret_cast<uint64_t>(what); };
  call.set("context", reference(0)), call.set("name", address(name.c_str()));
  call.set("arguments", address(kArguments)), call.set("argument_count", uint64_t{4});
  call.set("kernel", address(&kernel)), call.set("invocations", address("n"));
  call.set("host", reinterpret_cast<uint64_t>(&compute));
  if (s.spoil) {
    s.spoil = false;
    switch (s.draw.below(5)) {
      case 0: call.set("name", address(s.draw.of<const char*>({"affine", "gemm.x", "a.", "A.b", "f32.b"}))); break;
      case 1: call.set("argument_count", s.draw.of<uint64_t>({0, 65, 0xffffffff})); break;
      case 2: call.set("invocations", address(s.draw.of<const char*>({"m", "n+", "", "n,n,n,n", "min(n)"}))); break;
      case 3: call.set("groups", address("n")); break;
      default: call.set("flops", address("1 / n /")); break;
    }
    return s.run(call, {Answer::refusal, bit_of(TUFF_ERROR_INVALID_ARGUMENT), ""});
  }
  s.run(call, {}, [&](const std::array<Outcome, 2>& outcomes) { s.world.add({Type::op, true, 0}, outcomes, 4); });
}

void op_run(Step& s) {
  const int op = s.world.pick(s.draw, Type::op), other = s.draw.one_in(2) ? s.world.pick(s.draw, Type::stream) : 0;
  if (op < 0) return op_register(s);
  const int stream = other < 0 ? 0 : other;
  uint64_t step = 4;
  if (s.world.device()) {
    tuff_device_properties info{};
    info.struct_size = sizeof info;
    s.world.check(1, "tuff_context_info", tuff_context_info(s.world.handle(1, 0), &info));
    step = std::max<uint64_t>(step, info.min_storage_alignment);
  }
  const uint64_t n = s.draw.between(1, 200), bytes = n * 4;
  std::array<int, 2> views{-1, -1}, roots{-1, -1};
  std::array<uint64_t, 2> offsets{};
  bool placed = true;
  for (size_t i = 0; i < 2 && placed; ++i) {
    const int buffer = s.world.pick(s.draw, Type::buffer);
    placed = buffer >= 0;
    if (!placed) break;
    roots[i] = s.world.objects[static_cast<size_t>(buffer)].root;
    const Root& root = s.world.roots[static_cast<size_t>(roots[i])];
    const uint64_t first = (root.begin + step - 1) / step;
    placed = !root.mapped && root.object >= 0 && root.context == 0 && first * step + bytes <= root.end;
    if (!placed) break;
    offsets[i] = (first + s.draw.below((root.end - bytes) / step - first + 1)) * step;
    views[i] = s.world.view(root.object, offsets[i], bytes);
    s.world.order(s.draw, roots[i], stream);
  }
  if (placed) {
    const bool overlap = roots[0] == roots[1] && offsets[0] < offsets[1] + bytes && offsets[1] < offsets[0] + bytes;
    // One of these is wrong, if any.
    const uint64_t wrong = s.spoil ? s.draw.between(1, 5) : 0;
    const int64_t by = static_cast<uint32_t>(s.draw.next());
    for (size_t side = 0; side < s.world.sides(); ++side) {
      tuff_op_value values[4] = {{0, static_cast<int64_t>(wrong == 1 ? n + 1 : n), 0},
                                 {0, wrong == 2 ? -1 : by, wrong == 3 ? 0.5 : 0.0},
                                 {s.world.handle(side, views[0]), 0, 0},
                                 {wrong == 4 ? 0 : s.world.handle(side, views[1]), 0, 0}};
      const tuff_status status =
          tuff_op_run(s.world.handle(side, stream), s.world.handle(side, op), values, wrong == 5 ? 3u : 4u);
      const tuff_status wanted = overlap || wrong != 0 ? TUFF_ERROR_INVALID_ARGUMENT : TUFF_OK;
      if (status != wanted) {
        s.world.fail("tuff_op_run: side " + std::to_string(side) + ": " + tuff_status_name(status) + ", expected " +
                     tuff_status_name(wanted));
      }
    }
    if (!overlap && wrong == 0) {
      Root& to = s.world.roots[static_cast<size_t>(roots[1])];
      std::vector<uint8_t> may_differ(to.bytes);
      std::fill_n(may_differ.begin() + static_cast<ptrdiff_t>(offsets[1]), bytes, uint8_t{1});
      s.world.compare_host(roots[1], &may_differ, true);
      to.dirty = true;
    }
  }
  for (const int view : views) {
    if (view >= 0) s.world.free(view);
  }
}

void op_find(Step& s) {
  const int op = s.world.pick(s.draw, Type::op);
  if (op < 0) return op_register(s);
  for (size_t side = 0; side < s.world.sides(); ++side) {
    std::array<char, 4096> text{};
    uint64_t length = 0;
    s.world.check(side, "tuff_op_list", tuff_op_list(s.world.handle(side, 0), text.data(), text.size(), &length));
    // Each line begins with a name that finds an operation of its own.
    std::vector<uint64_t> found;
    const std::string all(text.data(), std::min<size_t>(length, text.size() - 1));
    for (size_t begin = 0; begin < all.size(); begin = std::min(all.find('\n', begin), all.size() - 1) + 1) {
      const size_t end = all.find('(', begin);
      if (end == std::string::npos) break;  // the text was cut
      uint64_t one = 0;
      s.world.check(side, "tuff_op_find",
                    tuff_op_find(s.world.handle(side, 0), all.substr(begin, end - begin).c_str(), &one));
      if (std::find(found.begin(), found.end(), one) != found.end()) s.world.fail("two names of one operation");
      found.push_back(one);
    }
    if (length < text.size() && std::find(found.begin(), found.end(), s.world.handle(side, op)) == found.end()) {
      s.world.fail("an operation that is not listed");
    }
    uint64_t none = 0;
    if (tuff_op_find(s.world.handle(side, 0), "fuzz.none", &none) != TUFF_ERROR_INVALID_ARGUMENT) {
      s.world.fail("an operation that nobody has registered");
    }
  }
}

void op_destroy(Step& s) {
  const int op = s.world.pick(s.draw, Type::op);
  if (op < 0) return op_register(s);
  Call call(function_of("tuff_op_destroy"));
  call.set("op", reference(op));
  s.run(call, {}, [&](const std::array<Outcome, 2>&) { s.world.forget(op); });
}

constexpr StepOf kOperationSteps[] = {
    {"tuff_op_register", op_register}, {"tuff_op_run", op_run},         {"tuff_op_find", op_find},
    {"tuff_op_list", op_find},         {"tuff_op_destroy", op_destroy},
};

}  // namespace

std::span<const StepOf> operation_steps() { return kOperationSteps; }

}  // namespace tuff_fuzz
