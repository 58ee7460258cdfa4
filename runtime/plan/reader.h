// From plan lines to whole statements. Internal to this folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/plan/plan.h"

namespace solstice::plan {

// The lines of one statement joined by spaces, and where each part of the text stood.
class StatementText {
 public:
  StatementText(const PlanLine& line, std::string_view keyword);
  void Append(const PlanLine& line);

  std::string_view keyword() const { return keyword_; }
  // What follows the keyword.
  std::string_view text() const { return text_; }
  const std::string& file() const { return segments_[0].file; }
  int line() const { return segments_[0].line; }

  // INVALID_ARGUMENT "<file>:<line>: <what>" for the line that holds `offset` of text().
  Status ErrorAt(size_t offset, std::string_view what, std::string_view mend = {}) const;
  // The same for an error of a formula or name that starts at `offset`: "<file>:<line>: <what>: <message>".
  Status Explain(size_t offset, std::string_view what, const Status& status) const;

 private:
  struct Segment {
    size_t begin;
    std::string file;
    int line;
    std::string mend;  // if the line looks as if it should have been a statement of its own
  };
  const Segment& At(size_t offset) const;

  std::string keyword_;
  std::string text_;
  std::vector<Segment> segments_;
};

// INVALID_ARGUMENT for too many lines, control characters, a first line that begins nothing.
StatusOr<std::vector<StatementText>> JoinLines(const std::vector<PlanLine>& lines);

}  // namespace solstice::plan
