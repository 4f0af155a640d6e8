#include "runtime/vulkan/submission_notes.hpp"

#include <fmt/format.h>

namespace tuff {

void SubmissionNotes::begin(std::string_view operation, std::string_view kernel) noexcept {
  char* at = open_.data();
  char* const end = at + open_.size() - 1;
  const auto append = [&](std::string_view text) { at += text.copy(at, static_cast<size_t>(end - at)); };
  append(operation);
  if (!kernel.empty()) {
    append(" (");
    append(kernel);
    append(")");
  }
  *at = '\0';
}

void SubmissionNotes::submitted(uint64_t number, uint32_t operations) noexcept {
  const std::lock_guard lock(mutex_);
  notes_[number % kKept] = {number, operations, open_};
  last_ = number;
}

std::string SubmissionNotes::describe(uint64_t completed) const {
  const std::lock_guard lock(mutex_);
  if (last_ <= completed) return "nothing is in flight any more";
  const uint64_t count = last_ - completed;
  const Note& first = notes_[(completed + 1) % kKept];
  std::string text = count == 1 ? "1 submission is in flight" : fmt::format("{} submissions are in flight", count);
  if (first.number != completed + 1 || first.operations == 0) return text;
  text += count == 1 ? ", with " : ", the first with ";
  if (first.operations == 1) return text + fmt::format("1 operation, {}", first.text.data());
  return text + fmt::format("{} operations, from {} on", first.operations, first.text.data());
}

}  // namespace tuff
