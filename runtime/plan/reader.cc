#include "runtime/plan/reader.h"

#include <algorithm>

#include "runtime/base/strings.h"
#include "runtime/expr/formula.h"

namespace solstice::plan {
namespace {

using base::InvalidArgument;
using base::Quote;
using base::StrCat;

constexpr size_t kMaxLineBytes = 16 << 10;
constexpr size_t kMaxStatementBytes = 64 << 10;
constexpr std::string_view kKeywords[] = {"let", "scratch", "memset", "define", "launch", "tensor_map"};
constexpr char kStart[] = "a statement starts with let, scratch, memset, define or launch";
constexpr char kExample[] =
    "give the launches in lines that start with //@, such as //@ launch my_kernel grid=(ceil_div(N, 256)) block=(256) "
    "args=(x, y, i64(N))";

// The first word, if blanks or the end follow it.
std::string_view FirstWord(std::string_view text) {
  size_t end = text.find_first_of(" \t");
  std::string_view word = text.substr(0, end);
  return expr::IsIdentifier(word) ? word : std::string_view();
}

bool IsKeyword(std::string_view word) {
  return std::find(std::begin(kKeywords), std::end(kKeywords), word) != std::end(kKeywords);
}

std::string NearestKeyword(std::string_view word) {
  if (word.size() < 3) return "";
  return base::Nearest(word, std::vector<std::string>(std::begin(kKeywords), std::end(kKeywords)));
}

Status CheckLine(const PlanLine& line) {
  if (line.text.size() > kMaxLineBytes) {
    return InvalidArgument(
        StrCat(line.file, ":", line.line, ": the line has ", line.text.size(), " bytes, more than ", kMaxLineBytes),
        "continue the statement on further lines");
  }
  for (char c : line.text) {
    unsigned char byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t') || byte == 0x7F) {
      return InvalidArgument(StrCat(line.file, ":", line.line, ": control character ", Quote(std::string_view(&c, 1))),
                             "a plan line is one line of printable text");
    }
  }
  return absl::OkStatus();
}

}  // namespace

StatementText::StatementText(const PlanLine& line, std::string_view keyword) : keyword_(keyword) {
  std::string_view rest = base::Trim(line.text);
  text_ = std::string(base::Trim(rest.substr(keyword.size())));
  segments_.push_back({0, line.file, line.line, ""});
}

void StatementText::Append(const PlanLine& line) {
  std::string_view rest = base::Trim(line.text);
  text_ += ' ';
  std::string mend;
  std::string nearest = NearestKeyword(FirstWord(rest));
  if (!nearest.empty()) {
    mend = StrCat("this line continues the statement above it; if it should start one, did you mean ", Quote(nearest),
                  "?");
  }
  segments_.push_back({text_.size(), line.file, line.line, std::move(mend)});
  text_ += rest;
}

const StatementText::Segment& StatementText::At(size_t offset) const {
  size_t i = segments_.size() - 1;
  while (i > 0 && segments_[i].begin > offset) --i;
  return segments_[i];
}

Status StatementText::ErrorAt(size_t offset, std::string_view what, std::string_view mend) const {
  const Segment& segment = At(offset);
  return InvalidArgument(StrCat(segment.file, ":", segment.line, ": ", what),
                         segment.mend.empty() ? mend : segment.mend);
}

Status StatementText::Explain(size_t offset, std::string_view what, const Status& status) const {
  return ErrorAt(offset, StrCat(what, ": ", base::MessageOf(status)), base::MendOf(status));
}

StatusOr<std::vector<StatementText>> JoinLines(const std::vector<PlanLine>& lines) {
  if (lines.size() > static_cast<size_t>(kMaxPlanLines)) {
    return InvalidArgument(StrCat(lines[0].file, ": the plan has more than ", kMaxPlanLines, " lines"));
  }
  std::vector<StatementText> statements;
  for (const PlanLine& line : lines) {
    SOLSTICE_RETURN_IF_ERROR(CheckLine(line));
    std::string_view text = base::Trim(line.text);
    if (text.empty()) continue;
    std::string_view word = FirstWord(text);
    if (IsKeyword(word)) {
      statements.emplace_back(line, word);
      continue;
    }
    if (statements.empty() || statements.back().file() != line.file) {
      std::string nearest = NearestKeyword(word);
      return InvalidArgument(StrCat(line.file, ":", line.line, ": ", Quote(text, 40), " starts no statement"),
                             nearest.empty() ? kStart : StrCat("did you mean ", Quote(nearest), "?"));
    }
    statements.back().Append(line);
    if (statements.back().text().size() > kMaxStatementBytes) {
      return InvalidArgument(
          StrCat(line.file, ":", line.line, ": the statement has more than ", kMaxStatementBytes, " bytes"));
    }
  }
  return statements;
}

std::vector<PlanLine> ExtractPlanLines(std::string_view file, std::string_view source) {
  std::vector<PlanLine> lines;
  if (source.substr(0, 3) == "\xEF\xBB\xBF") source.remove_prefix(3);
  int number = 0;
  while (!source.empty()) {
    size_t end = source.find('\n');
    std::string_view line = source.substr(0, end);
    source.remove_prefix(end == std::string_view::npos ? source.size() : end + 1);
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos || line.substr(begin, 3) != "//@") continue;
    lines.push_back({std::string(file), number, std::string(line.substr(begin + 3))});
    // One more than Parse accepts is enough for it to refuse the plan.
    if (lines.size() > static_cast<size_t>(kMaxPlanLines)) break;
  }
  return lines;
}

StatusOr<std::vector<PlanLine>> PlanLines(const v1::Solution& solution) {
  std::vector<PlanLine> lines;
  if (solution.launch_plan_size() > kMaxPlanLines) {
    return InvalidArgument(StrCat("launch_plan: the plan has more than ", kMaxPlanLines, " lines"));
  }
  for (int i = 0; i < solution.launch_plan_size(); ++i) {
    const std::string& text = solution.launch_plan(i);
    if (base::Trim(text).substr(0, 3) == "//@") {
      return InvalidArgument(StrCat("launch_plan:", i + 1, ": the line starts with //@"),
                             "leave //@ out in launch_plan");
    }
    lines.push_back({"launch_plan", i + 1, text});
  }
  if (lines.empty()) {
    for (const v1::SourceFile& source : solution.sources()) {
      for (PlanLine& line : ExtractPlanLines(source.path(), source.content())) lines.push_back(std::move(line));
    }
  }
  bool blank =
      std::all_of(lines.begin(), lines.end(), [](const PlanLine& line) { return base::Trim(line.text).empty(); });
  if (blank) return InvalidArgument("the submission has no launch plan", kExample);
  return lines;
}

}  // namespace solstice::plan
