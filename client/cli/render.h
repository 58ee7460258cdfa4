// What people read: tables and a progress line. Pure functions but for Progress, which writes to a terminal.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "solstice/v1/evaluation.pb.h"
#include "solstice/v1/service.pb.h"

namespace solstice::cli {

// Columns padded to their widest cell; the last is not padded. Cells are printed as they are, control characters
// replaced, so that nothing from a server moves the cursor.
std::string Table(const std::vector<std::vector<std::string>>& rows);

std::string RenderEvaluation(const v1::Evaluation& evaluation);
// What the sanitizer found, and what stopped workloads.
std::string RenderFindings(const v1::Evaluation& evaluation);
std::string RenderCompile(const v1::CompileReport& report);
std::string RenderList(const v1::ListResponse& response);
std::string RenderDefinitions(const v1::ListDefinitionsResponse& response);
std::string RenderDefinition(const v1::DefinitionBundle& bundle);
std::string RenderInfo(const v1::ServerInfo& info, const std::string& address);

// One line on stderr that is rewritten on a terminal, and a line an event elsewhere.
class Progress {
 public:
  explicit Progress(bool enabled);
  ~Progress();
  void Show(const v1::Event& event);
  void Clear();

 private:
  void Line(const std::string& text, bool transient);
  bool enabled_;
  bool terminal_;
  bool shown_ = false;
};

}  // namespace solstice::cli
