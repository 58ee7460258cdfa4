#include "server/service/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace solstice::service {
namespace {

// Made at first use and never destroyed: threads may log while the process ends.
spdlog::logger& Logger() {
  static spdlog::logger* logger = [] {
    auto* made = new spdlog::logger("solsticed", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
    made->flush_on(spdlog::level::info);
    return made;
  }();
  return *logger;
}

std::string OneLine(std::string_view message) {
  std::string line;
  for (char c : message) {
    unsigned char byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7F) {
      line += c;
    } else {
      line += c == '\n' ? "\\n" : "?";
    }
  }
  return line;
}

}  // namespace

void LogInfo(std::string_view message) { Logger().log(spdlog::level::info, "{}", OneLine(message)); }
void LogWarning(std::string_view message) { Logger().log(spdlog::level::warn, "{}", OneLine(message)); }
void LogError(std::string_view message) { Logger().log(spdlog::level::err, "{}", OneLine(message)); }

bool SetLogLevel(std::string_view level) {
  if (level == "info") {
    Logger().set_level(spdlog::level::info);
  } else if (level == "warning") {
    Logger().set_level(spdlog::level::warn);
  } else if (level == "error") {
    Logger().set_level(spdlog::level::err);
  } else if (level == "off") {
    Logger().set_level(spdlog::level::off);
  } else {
    return false;
  }
  return true;
}

}  // namespace solstice::service
