// The header's "Memory" group.
#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"

using tuff::capi::acquire_context;
using tuff::capi::guarded;

extern "C" {

tuff_status tuff_context_memory(tuff_context context, tuff_memory_stats* stats) {
  return guarded("tuff_context_memory", [&] {
    const auto object = acquire_context(context);
    tuff::capi::check_output_structure(stats, "stats");
    tuff_memory_stats memory{};
    object->backend().memory(memory);
    tuff::capi::write_structure(stats, memory);
  });
}

tuff_status tuff_context_trim(tuff_context context) {
  return guarded("tuff_context_trim", [&] { acquire_context(context)->backend().trim(); });
}

tuff_status tuff_context_reset_peak(tuff_context context) {
  return guarded("tuff_context_reset_peak", [&] { acquire_context(context)->backend().reset_peak(); });
}

tuff_status tuff_context_set_memory_callback(tuff_context context, tuff_memory_callback callback, void* user) {
  return guarded("tuff_context_set_memory_callback",
                 [&] { acquire_context(context)->backend().pressure().set(callback, user); });
}

}  // extern "C"
