// The server's configuration: reading, defaults, limits. Pure functions but for files they read.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "server/pipeline/pipeline.h"
#include "solstice/v1/config.pb.h"

namespace solstice::service {

inline constexpr char kDefaultListen[] = "127.0.0.1:7411";

// Protobuf text format, at most 1 MiB. INVALID_ARGUMENT "<file>:<line>:<column>: ...".
StatusOr<v1::ServerConfig> ReadConfig(const std::string& path);
StatusOr<v1::ServerConfig> ParseConfig(const std::string& text, const std::string& file);

// Fills what is not set: listen addresses, data folder, definitions and reference kernels of this installation
// (`program_directory`/../share/solstice or an ancestor of it), figures. INVALID_ARGUMENT for a value out of range.
Status CompleteConfig(const std::string& program_directory, v1::ServerConfig* config);

// "emulator", "cuda:0", "cuda" (every GPU: pipeline::kEveryOrdinal). INVALID_ARGUMENT.
StatusOr<pipeline::DeviceSpec> ParseDevice(const std::string& text);
// Of a completed configuration. INVALID_ARGUMENT.
StatusOr<pipeline::Options> PipelineOptions(const v1::ServerConfig& config, const std::string& build_id);

}  // namespace solstice::service
