#include "kernels/native/refusals.hpp"

#include "planning/log.hpp"

namespace tuff {

bool Refusals::dispatch(Recorder& recorder, const KernelRequest& kernel, const Dispatch& dispatch, const char* family,
                        uint32_t row) {
  try {
    recorder.dispatch(kernel, dispatch);
  } catch (const Error& error) {
    if (error.code() != TUFF_ERROR_UNSUPPORTED) throw;
    add(row, family, dispatch.variant(), error);
    return false;
  }
  return true;
}

void Refusals::add(uint32_t row, const char* family, const char* variant, const Error& error) {
  const uint32_t bit = 1u << row;
  if ((rows_.fetch_or(bit) & bit) == 0) {
    log(TUFF_LOG_WARNING, "{}: {} is not used: {}", family, variant, error.what());
  }
}

}  // namespace tuff
