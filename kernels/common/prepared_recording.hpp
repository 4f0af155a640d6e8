// Records operations that change their operands by several dispatches: what all of them need is there before the first
// is recorded, so that a call that fails has no effect, and can be repeated.
#pragma once

#include "planning/recorder.hpp"

namespace tuff {

class PreparedRecording {
 public:
  explicit PreparedRecording(Recorder& to) : recorder(to) {}
  // Records by visit(), which sends all dispatches each time that it is called. `several`: if there may be more than
  // one that changes operands.
  template <typename Visit>
  void record(bool several, const Visit& visit) {
    if (several && recorder.prepares()) {
      prepares_ = true;
      visit();
      prepares_ = false;
    }
    visit();
  }
  void send(const KernelRequest& kernel, const Dispatch& dispatch) const {
    prepares_ ? recorder.prepare(kernel, dispatch) : recorder.dispatch(kernel, dispatch);
  }
  bool prepares() const { return prepares_; }

  Recorder& recorder;

 private:
  bool prepares_ = false;
};

}  // namespace tuff
