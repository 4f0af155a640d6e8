#include "planning/element_type.hpp"

#include <algorithm>

#include "planning/status.hpp"

namespace tuff {
namespace {

struct DtypeInfo {
  int32_t dtype;
  uint64_t size;
  const char* name;
};

constexpr DtypeInfo kDtypes[] = {{TUFF_F32, 4, "f32"},   {TUFF_F16, 2, "f16"},         {TUFF_BF16, 2, "bf16"},
                                 {TUFF_F64, 8, "f64"},   {TUFF_I32, 4, "i32"},         {TUFF_U32, 4, "u32"},
                                 {TUFF_I8, 1, "i8"},     {TUFF_U8, 1, "u8"},           {TUFF_I64, 8, "i64"},
                                 {TUFF_U64, 8, "u64"},   {TUFF_I16, 2, "i16"},         {TUFF_U16, 2, "u16"},
                                 {TUFF_BOOL, 1, "bool"}, {TUFF_F8_E4M3, 1, "f8_e4m3"}, {TUFF_F8_E5M2, 1, "f8_e5m2"},
                                 {TUFF_C64, 8, "c64"},   {TUFF_C128, 16, "c128"}};

const DtypeInfo& dtype_info(int32_t dtype) {
  const auto* found = std::find_if(std::begin(kDtypes), std::end(kDtypes),
                                   [dtype](const DtypeInfo& info) { return info.dtype == dtype; });
  require(found != std::end(kDtypes), "dtype is {}, not a TUFF_F32 … TUFF_C128", dtype);
  return *found;
}

}  // namespace

uint64_t dtype_size_of_any(int32_t dtype) { return dtype_info(dtype).size; }

const char* dtype_name(int32_t dtype) { return dtype_info(dtype).name; }

int32_t dtype_by_name(std::string_view name) {
  for (const DtypeInfo& info : kDtypes) {
    if (name == info.name) return info.dtype;
  }
  return 0;
}

std::string names_of(ElementTypes types) {
  std::string names;
  for (const DtypeInfo& info : kDtypes) {
    if (!types.has(info.dtype)) continue;
    types = types - ElementTypes{info.dtype};
    names += (names.empty() ? "" : types == ElementTypes{} ? " or " : ", ");
    names += info.name;
  }
  return names;
}

}  // namespace tuff
