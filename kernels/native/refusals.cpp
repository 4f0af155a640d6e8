#include "kernels/native/refusals.hpp"

#include "planning/log.hpp"
#include "planning/status.hpp"

namespace tuff {

bool Refusals::dispatch(Recorder& recorder, const KernelRequest& kernel, const Dispatch& dispatch, const char* family,
                        uint32_t row) {
  try {
    recorder.dispatch(kernel, dispatch);
  } catch (const Error& error) {
    if (error.code() != TUFF_ERROR_UNSUPPORTED) throw;
    const uint32_t bit = 1u << row;
    if ((rows_.fetch_or(bit) & bit) == 0) {
      log(TUFF_LOG_WARNING, "{}: {} is not used: {}", family, dispatch.variant(), error.what());
    }
    return false;
  }
  return true;
}

}  // namespace tuff
