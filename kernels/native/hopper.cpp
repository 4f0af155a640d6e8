#include "kernels/native/hopper.hpp"

#include <cstddef>
#include <vector>

#include "kernels/native/elements.hpp"

namespace tuff::ptx {

U32 aligned_memory(Writer& w) {
  const U32 memory = w.make<Type::u32>();
  w.emit("mov.u32 {}, shared;", memory.text);
  return (memory + (kSharedAlignment - 1)) & ~(kSharedAlignment - 1);
}

Ring make_ring(Writer& w, uint32_t parity) { return {w.variable(w.constant(0)), w.variable(w.constant(parity))}; }

void advance(const Ring& ring, uint32_t stages) {
  Writer& w = *ring.stage.writer;
  const U32 next = ring.stage + 1;
  const Pred around = next == stages;
  w.assign(ring.stage, select(around, w.constant(0), next));
  w.assign(ring.parity, select(around, ring.parity ^ 1, ring.parity));
}

void make_barrier(const U32& barrier, uint32_t arrivals) {
  barrier.writer->emit("mbarrier.init.shared::cta.b64 [{}], {};", barrier.text, arrivals);
}

void make_stage_barriers(const U32& full, const U32& empty, uint32_t stages, uint32_t fill, uint32_t leave) {
  for (uint32_t s = 0; s < stages; ++s) {
    make_barrier(full + s * kBarrierBytes, fill);
    make_barrier(empty + s * kBarrierBytes, leave);
  }
}

void wait_at(const U32& barrier, const U32& parity) {
  Writer& w = *barrier.writer;
  const Label again = w.label();
  const Pred done = w.make<Type::pred>();
  w.place(again);
  w.emit("mbarrier.try_wait.parity.shared::cta.b64 {}, [{}], {};", done.text, barrier.text, parity.text);
  w.jump_unless(done, again);
}

void arrive_at(const U32& barrier, const Guard& guard) {
  barrier.writer->emit(guard, "mbarrier.arrive.shared::cta.b64 _, [{}];", barrier.text);
}

U64 matrix(const U32& low, const U32& high) {
  const U64 made = low.writer->make<Type::u64>();
  low.writer->emit("mov.b64 {}, {{{}, {}}};", made.text, low.text, high.text);
  return made;
}

U32 piece_at(const U32& base, const U32& row, const U32& piece) {
  return base + (row << 7) + ((piece ^ (row & 7)) << 4);
}

void arrive_with_writes(const U32& barriers, const U32& stage, const Pred& elected) {
  Writer& w = *barriers.writer;
  w.emit("fence.proxy.async.shared::cta;");
  w.emit("bar.warp.sync 0xffffffff;");
  arrive_at(barriers + (stage << 3), if_true(elected));
}

CopiedStages::CopiedStages(const U32& thread, const U32& full, uint32_t stages, uint32_t in_flight)
    : stages_(stages), in_flight_(in_flight), full_(full) {
  Writer& w = *thread.writer;
  ring_ = make_ring(w, 1);
  elected_ = (thread & (kWarp - 1)) == 0u;
  issued_ = w.variable(w.constant(0));
}

void CopiedStages::started() {
  Writer& w = *issued_.writer;
  w.emit("cp.async.commit_group;");
  w.emit("cp.async.wait_group {};", in_flight_);
  w.when(issued_ >= in_flight_, [&] { arrived(in_flight_); });
  w.assign(issued_, issued_ + 1);
  advance(ring_, stages_);
}

void CopiedStages::finish() {
  Writer& w = *issued_.writer;
  w.emit("cp.async.wait_all;");
  for (uint32_t i = in_flight_; i > 0; --i) w.when(issued_ >= i, [&] { arrived(i); });
}

void CopiedStages::arrived(uint32_t ago) {
  const U32 stage = select(ring_.stage >= ago, ring_.stage - ago, ring_.stage + (stages_ - ago));
  arrive_with_writes(full_, stage, elected_);
}

void transpose_in_four(std::array<U32, 4>& v, const Pred& odd, const Pred& high) {
  const auto exchange = [](U32& x, U32& y, const Pred& upper, uint32_t distance) {
    const U32 got = from_neighbour(select(upper, x, y), distance);
    x = select(upper, got, x);
    y = select(upper, y, got);
  };
  exchange(v[0], v[1], odd, 1);
  exchange(v[2], v[3], odd, 1);
  exchange(v[0], v[2], high, 2);
  exchange(v[1], v[3], high, 2);
}

void multiply_16x8(int32_t dtype, const F32* sums, const std::array<U32, 4>& a, const U32& b0, const U32& b1) {
  const char* const type = name_of_half(dtype);
  b0.writer->emit(
      "mma.sync.aligned.m16n8k16.row.col.f32.{}.{}.f32 {{{}, {}, {}, {}}}, {{{}, {}, {}, {}}}, {{{}, {}}}, "
      "{{{}, {}, {}, {}}};",
      type, type, sums[0].text, sums[1].text, sums[2].text, sums[3].text, a[0].text, a[1].text, a[2].text, a[3].text,
      b0.text, b1.text, sums[0].text, sums[1].text, sums[2].text, sums[3].text);
}

F32 sum_of_parts(const U32& at, uint32_t offset, uint32_t count, uint32_t distance) {
  Writer& w = *at.writer;
  std::vector<F32> parts;
  for (uint32_t i = 0; i < count; ++i) {
    parts.push_back(w.make<Type::f32>());
    w.emit("ld.shared.f32 {}, [{}+{}];", parts.back().text, at.text, i * distance + offset);
  }
  for (size_t step = 1; step < parts.size(); step *= 2) {
    for (size_t i = 0; i + step < parts.size(); i += 2 * step) parts[i] = parts[i] + parts[i + step];
  }
  return parts[0];
}

}  // namespace tuff::ptx
