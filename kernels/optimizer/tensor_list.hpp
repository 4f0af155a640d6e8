// How a list of tensors becomes dispatches: short tensors share them, by a table of their sizes (tensors.glsl), and
// long ones have their own, in pieces that a descriptor covers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "kernels/common/stream_device.hpp"
#include "planning/arithmetic.hpp"
#include "planning/dispatch.hpp"
#include "planning/kept_vector.hpp"
#include "planning/recorder.hpp"

namespace tuff::optimizer {

constexpr size_t kListed = 80;  // tensors that share a dispatch
constexpr size_t kArrays = 5;   // operands with one buffer for each tensor

// An entry of the table: a tensor's elements, and where its workgroups end in the dispatch.
struct Entry {
  uint32_t elements, end;
};
static_assert(sizeof(Entry) * kListed <= Recorder::kMaxParameterBytes);

// Tensors that share a dispatch, or a long one, whose pieces have one each.
struct Part {
  size_t first, count;   // of the tensors in TensorList::order(); with more than one, there is a table
  bool aligned;          // all operands are, to 16 bytes
  uint64_t groups;       // workgroups
  uint64_t first_group;  // of those of all parts
};

// Adds an operand of one number in a buffer of its own, or null.
inline void add_number(Dispatch& dispatch, const Buffer* buffer, Access access) {
  dispatch.operand(buffer, 0, buffer != nullptr ? sizeof(float) : 0, access);
}

// What a dispatch computes: a part, or a piece of its only tensor.
struct Piece {
  const Part& part;
  uint64_t begin, elements;  // of the only tensor
  uint64_t groups, first_group;

  bool listed() const { return part.count > 1; }
};

class TensorList {
 public:
  // `aligned(i)`: whether all operands of tensor i are. `block`: elements that a lane takes at once.
  template <typename Aligned>
  TensorList(const DeviceTraits& traits, const StreamDevice& device, std::span<const uint64_t> sizes, uint64_t block,
             const Aligned& aligned)
      : sizes_(sizes), piece_(device.piece), per_group_(device.workgroup * block) {
    uint64_t all = 0;
    for (const uint64_t size : sizes) all += size;
    // A workgroup's share: on CPU devices as long as all cores have some, on GPUs a few blocks.
    run_ = device.cpu ? few_values(all / per_group_ / (8 * device.cores), 1, 1u << 15)
                      : few_values(all / per_group_ >> 16, 4, 1u << 12);
    per_group_ *= run_;
    // Where a dispatch costs as much as its work, tensors share one.
    const uint64_t longest = std::min<uint64_t>(device.piece, device.cpu ? 1u << 16 : 1u << 24);
    for (const bool wanted : {true, false}) {
      size_t first = order_->size();
      for (size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] == 0 || aligned(i) != wanted) continue;
        if (sizes[i] > longest || !traits.addresses) {
          // A part's tensors are adjacent: those that wait for more come after this one.
          order_->insert(order_->begin() + static_cast<ptrdiff_t>(first), i);
          add(first++, 1, wanted);
          continue;
        }
        order_->push_back(i);
        if (order_->size() - first == kListed) add(first, kListed, wanted), first = order_->size();
      }
      if (order_->size() > first) add(first, order_->size() - first, wanted);
    }
  }

  const std::vector<Part>& parts() const { return *parts_; }
  const std::vector<size_t>& order() const { return *order_; }
  uint64_t run() const { return run_; }
  uint64_t groups() const { return groups_; }
  uint64_t pieces() const { return pieces_; }
  template <typename Visit>
  void for_each_piece(const Visit& visit) const {
    for (const Part& part : *parts_) {
      const uint64_t size = size_of(part, 0);
      if (part.count > 1) {
        visit(Piece{part, 0, size, part.groups, part.first_group});
        continue;
      }
      uint64_t first_group = part.first_group;
      for (uint64_t begin = 0; begin < size; begin += piece_) {
        const uint64_t elements = std::min(piece_, size - begin), groups = groups_of(elements);
        visit(Piece{part, begin, elements, groups, first_group});
        first_group += groups;
      }
    }
  }
  uint64_t elements(const Piece& piece) const {
    if (!piece.listed()) return piece.elements;
    uint64_t all = 0;
    for (size_t t = 0; t < piece.part.count; ++t) all += size_of(piece.part, t);
    return all;
  }

  // Adds the table of a part with several tensors to a dispatch; null for others.
  void add_table(Dispatch& dispatch, Recorder& recorder, const Part& part) const {
    if (part.count == 1) {
      dispatch.operand(nullptr, 0, 0, Access::read);
      return;
    }
    std::array<Entry, kListed> entries{};
    uint64_t end = 0;
    for (size_t t = 0; t < part.count; ++t) {
      const uint64_t size = size_of(part, t);
      end += groups_of(size);
      entries[t] = {narrow(size), narrow(end)};
    }
    const uint32_t bytes = narrow(part.count * sizeof(Entry));
    dispatch.operand(&recorder.parameters(entries.data(), bytes), 0, bytes, Access::read);
  }

  // Adds an operand with a buffer for each tensor to a piece's dispatch. An object of this class lives as long as the
  // dispatch.
  class Arrays {
   public:
    void add(Dispatch& dispatch, const TensorList& list, const Piece& piece, std::span<const Buffer* const> buffers,
             uint64_t element, Access access) {
      const Part& part = piece.part;
      if (buffers.empty()) {
        dispatch.operand(nullptr, 0, 0, access);
        return;
      }
      if (part.count == 1) {
        dispatch.operand(buffers[list.order()[part.first]], piece.begin * element, piece.elements * element, access);
        return;
      }
      auto& pointers = buffers_[used_];
      auto& bytes = bytes_[used_++];
      for (size_t t = 0; t < part.count; ++t) {
        pointers[t] = buffers[list.order()[part.first + t]];
        bytes[t] = list.size_of(part, t) * element;
      }
      dispatch.operand_each(pointers.data(), part.count, bytes.data(), access);
    }

   private:
    std::array<std::array<const Buffer*, kListed>, kArrays> buffers_;
    std::array<std::array<uint64_t, kListed>, kArrays> bytes_;
    size_t used_ = 0;
  };

 private:
  uint64_t size_of(const Part& part, size_t t) const { return sizes_[order()[part.first + t]]; }
  uint64_t groups_of(uint64_t elements) const { return ceil_div(elements, per_group_); }

  void add(size_t first, size_t count, bool aligned) {
    Part part{first, count, aligned, 0, groups_};
    for (size_t t = 0; t < count; ++t) {
      // By pieces, as for_each_piece() has them; those in lists are shorter than one.
      const uint64_t size = size_of(part, t);
      part.groups += size / piece_ * groups_of(piece_) + groups_of(size % piece_);
    }
    pieces_ += count == 1 ? ceil_div(size_of(part, 0), piece_) : 1;
    groups_ += part.groups;
    parts_->push_back(part);
  }

  std::span<const uint64_t> sizes_;
  uint64_t piece_;
  uint64_t per_group_;  // elements of a workgroup's share
  uint64_t run_ = 1, groups_ = 0, pieces_ = 0;
  KeptVector<Part> parts_;
  KeptVector<size_t> order_;
};

}  // namespace tuff::optimizer
