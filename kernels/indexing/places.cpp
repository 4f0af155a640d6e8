// Indices: argument check, and the places that they name.
#include "kernels/indexing/places.hpp"

#include "kernels/common/check.hpp"

namespace tuff {
namespace {

constexpr uint64_t kNone = ~uint64_t{0};  // beyond any axis

bool is_signed(int32_t index_type) { return index_type == TUFF_I32 || index_type == TUFF_I64; }

// Number k of the indices as a position along an axis.
uint64_t number_at(const IndexArgs& args, uint64_t k, uint64_t extent) {
  uint64_t number = 0;
  if (dtype_size(args.index_type) == 8) {
    number = args.indices->host<uint64_t>()[k];
  } else if (args.index_type == TUFF_I32) {
    number = static_cast<uint64_t>(int64_t{args.indices->host<int32_t>()[k]});
  } else {
    number = args.indices->host<uint32_t>()[k];
  }
  if (is_signed(args.index_type) && number >> 63 != 0) {
    if (!args.negative) return kNone;
    number += extent;
  }
  return number < extent ? number : kNone;
}

}  // namespace

bool IndexArgs::computed() const { return numbers() > 1 || (negative && is_signed(index_type)); }

IndexView view_indices(const IndexArgs& args) {
  if (args.index_shape != nullptr) {
    return {1, checked_product({args.shape, args.rank}, "shape"), 1,
            checked_product({args.index_shape, args.rank}, "index_shape")};
  }
  const uint32_t end = args.axis + args.numbers();
  return {checked_product({args.shape, args.axis}, "shape"),
          checked_product({args.shape + args.axis, args.numbers()}, "shape"),
          checked_product({args.shape + end, args.rank - end}, "shape"), args.count};
}

IndexView check_indices(const IndexArgs& args) {
  check_known_type(args.index_type, "index_type");
  constexpr ElementTypes kIndexTypes = {TUFF_I32, TUFF_U32, TUFF_I64, TUFF_U64};
  if (!kIndexTypes.has(args.index_type)) {
    fail(TUFF_ERROR_UNSUPPORTED, "index_type is {}, needs {}", dtype_name(args.index_type), names_of(kIndexTypes));
  }
  check_axis(args.shape, args.rank, args.axis);
  if (args.index_shape == nullptr) {
    require(args.numbers() <= args.rank - args.axis, "coordinates is {}, and from axis {} of rank {} there are {} axes",
            args.coordinates, args.axis, args.rank, args.rank - args.axis);
  } else {
    require(args.coordinates == 0, "coordinates is {}, needs 0 if elementwise", args.coordinates);
    for (uint32_t i = 0; i < args.rank; ++i) {
      require(i == args.axis || args.index_shape[i] <= args.shape[i], "index_shape[{}] is {}, at most shape[{}]={}", i,
              args.index_shape[i], i, args.shape[i]);
    }
  }
  return view_indices(args);
}

uint64_t place_named(const IndexArgs& args, uint64_t i) {
  uint64_t place = 0;
  if (args.index_shape != nullptr) {
    uint64_t rest = i, stride = 1;
    for (uint32_t d = args.rank; d-- > 0; rest /= args.index_shape[d], stride *= args.shape[d]) {
      uint64_t coordinate = rest % args.index_shape[d];
      if (d == args.axis) {
        coordinate = number_at(args, i, args.shape[d]);
        if (coordinate == kNone) return kNone;
      }
      place += coordinate * stride;
    }
    return place;
  }
  for (uint32_t c = 0; c < args.numbers(); ++c) {
    const uint64_t extent = args.shape[args.axis + c];
    const uint64_t number = number_at(args, i * args.numbers() + c, extent);
    if (number == kNone) return kNone;
    place = place * extent + number;
  }
  return place;
}

}  // namespace tuff
