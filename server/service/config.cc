#include "server/service/config.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "runtime/base/file.h"
#include "runtime/base/installation.h"
#include "runtime/base/strings.h"
#include "runtime/rpc/private_server.h"

namespace solstice::service {
namespace {

constexpr int64_t kMaxConfigBytes = 1 << 20;
constexpr int kMaxDeviceOrdinal = 63;

// Keeps the first error with its place.
class Errors : public google::protobuf::io::ErrorCollector {
 public:
  explicit Errors(std::string file) : file_(std::move(file)) {}
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (first_.empty()) first_ = base::StrCat(file_, ":", line + 1, ":", column + 1, ": ", message);
  }
  const std::string& first() const { return first_; }

 private:
  const std::string file_;
  std::string first_;
};

// Sets the default where the field is 0, then checks the range.
template <typename T>
Status Complete(const char* name, T low, T high, T standard, T value, T* result) {
  *result = value == 0 ? standard : value;
  if (*result >= low && *result <= high) return absl::OkStatus();
  return base::InvalidArgument(base::StrCat(name, ": ", value, " is out of range"),
                               base::StrCat("use ", low, " to ", high, ", or 0 for ", standard));
}

}  // namespace

StatusOr<v1::ServerConfig> ParseConfig(const std::string& text, const std::string& file) {
  Errors errors(file);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  v1::ServerConfig config;
  if (!parser.ParseFromString(text, &config)) {
    return base::InvalidArgument(errors.first().empty() ? base::StrCat(file, ": not a configuration") : errors.first(),
                                 "write fields of ServerConfig (proto/solstice/v1/config.proto) as `name: value`");
  }
  return config;
}

StatusOr<v1::ServerConfig> ReadConfig(const std::string& path) {
  StatusOr<std::string> text = base::ReadFile(path, kMaxConfigBytes);
  if (!text.ok()) {
    return base::InvalidArgument(base::StrCat("cannot read the configuration: ", base::MessageOf(text.status())),
                                 "pass --config a text file");
  }
  return ParseConfig(*text, path);
}

Status CompleteConfig(const std::string& program_directory, v1::ServerConfig* config) {
  if (config->listen().empty()) config->add_listen(kDefaultListen);
  if (config->data_dir().empty()) {
    SOLSTICE_ASSIGN_OR_RETURN(std::string data_dir, rpc::DefaultDataDir());
    config->set_data_dir(data_dir);
  }
  if (config->definition_roots().empty()) {
    std::string found = base::FindShared(program_directory, "definitions");
    if (!found.empty()) config->add_definition_roots(found);
  }
  if (config->reference_kernels().empty()) {
    config->set_reference_kernels(base::FindShared(program_directory, "reference_kernels"));
  }
  const pipeline::Options standard;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  int number = 0;
  double amount = 0;
  SOLSTICE_RETURN_IF_ERROR(
      Complete("queue_capacity", 1, 1000000, standard.queue_capacity, config->queue_capacity(), &number));
  config->set_queue_capacity(number);
  SOLSTICE_RETURN_IF_ERROR(
      Complete("compile_workers", 1, 256, std::clamp(cores, 1, 8), config->compile_workers(), &number));
  config->set_compile_workers(number);
  SOLSTICE_RETURN_IF_ERROR(Complete("max_attempts", 1, 10, standard.max_attempts, config->max_attempts(), &number));
  config->set_max_attempts(number);
  SOLSTICE_RETURN_IF_ERROR(
      Complete("max_timeout_s", 0.1, 86400.0, standard.max_timeout_s, config->max_timeout_s(), &amount));
  config->set_max_timeout_s(amount);
  SOLSTICE_RETURN_IF_ERROR(Complete("default_timeout_s", 0.1, config->max_timeout_s(),
                                    std::min(standard.default_timeout_s, config->max_timeout_s()),
                                    config->default_timeout_s(), &amount));
  config->set_default_timeout_s(amount);
  SOLSTICE_RETURN_IF_ERROR(
      Complete("compile_timeout_s", 0.1, 3600.0, standard.compile_timeout_s, config->compile_timeout_s(), &amount));
  config->set_compile_timeout_s(amount);
  SOLSTICE_RETURN_IF_ERROR(
      Complete("instruction_budget", 1.0, 1e18, standard.instruction_budget, config->instruction_budget(), &amount));
  config->set_instruction_budget(amount);
  if (config->debug_pointer_shift_bytes() < 0 || config->debug_pointer_shift_bytes() > 255) {
    return base::InvalidArgument("debug_pointer_shift_bytes: must lie between 0 and 255");
  }
  return absl::OkStatus();
}

StatusOr<pipeline::DeviceSpec> ParseDevice(const std::string& text) {
  pipeline::DeviceSpec spec;
  if (text == "emulator") return spec;
  spec.kind = v1::CUDA;
  spec.ordinal = pipeline::kEveryOrdinal;
  if (text == "cuda") return spec;
  if (text.starts_with("cuda:") && text.size() > 5) {
    auto [end, error] = std::from_chars(text.data() + 5, text.data() + text.size(), spec.ordinal);
    if (error == std::errc() && end == text.data() + text.size() && spec.ordinal >= 0 &&
        spec.ordinal <= kMaxDeviceOrdinal) {
      return spec;
    }
  }
  return base::InvalidArgument(base::StrCat("device ", base::Quote(text), " does not exist"),
                               base::StrCat("use emulator, cuda, or cuda:0 to cuda:", kMaxDeviceOrdinal));
}

StatusOr<pipeline::Options> PipelineOptions(const v1::ServerConfig& config, const std::string& build_id) {
  pipeline::Options options;
  for (const std::string& device : config.devices()) {
    SOLSTICE_ASSIGN_OR_RETURN(pipeline::DeviceSpec spec, ParseDevice(device));
    for (const pipeline::DeviceSpec& known : options.devices) {
      // Two judges on one GPU would disturb each other's measurements.
      const bool covered = known.ordinal == spec.ordinal || known.ordinal == pipeline::kEveryOrdinal ||
                           spec.ordinal == pipeline::kEveryOrdinal;
      if (known.kind == v1::CUDA && spec.kind == v1::CUDA && covered) {
        return base::InvalidArgument(base::StrCat("device ", base::Quote(device), " is given twice"),
                                     "name it once; `cuda` is every GPU");
      }
    }
    options.devices.push_back(spec);
  }
  options.compile_workers = config.compile_workers();
  options.queue_capacity = config.queue_capacity();
  options.default_timeout_s = config.default_timeout_s();
  options.max_timeout_s = config.max_timeout_s();
  options.compile_timeout_s = config.compile_timeout_s();
  options.max_attempts = config.max_attempts();
  options.instruction_budget = config.instruction_budget();
  options.accept_inline_definitions = config.accept_inline_definitions();
  options.debug_pointer_shift_bytes = config.debug_pointer_shift_bytes();
  options.build_id = build_id;
  return options;
}

}  // namespace solstice::service
