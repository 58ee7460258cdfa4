// The server's log: one line a message on stderr, with time and level. Thread-safe. Text from outside goes in through
// base::Quote; line breaks that got in all the same are escaped.
#pragma once

#include <string>
#include <string_view>

namespace solstice::service {

void LogInfo(std::string_view message);
void LogWarning(std::string_view message);
void LogError(std::string_view message);
// "info", "warning", "error", "off"; false for anything else.
bool SetLogLevel(std::string_view level);

}  // namespace solstice::service
