#include "runtime/rpc/status.h"

#include "runtime/base/strings.h"
#include "runtime/rpc/details.pb.h"

namespace solstice::rpc {
namespace {

constexpr char kErrorInfoUrl[] = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr char kRetryInfoUrl[] = "type.googleapis.com/google.rpc.RetryInfo";
constexpr char kMendKey[] = "mend";

std::string Printable(std::string text, size_t limit) {
  if (!base::IsValidUtf8(text)) text = base::Quote(text, limit);
  if (text.size() <= limit) return text;
  return base::StrCat(base::Utf8Prefix(text, limit - 3), "...");
}

void Pack(const google::protobuf::MessageLite& message, const char* url, wire::RichStatus* rich) {
  google::protobuf::Any* any = rich->add_details();
  any->set_type_url(url);
  any->set_value(message.SerializeAsString());
}

// The first detail of type `url`.
template <typename Message>
std::optional<Message> Find(const grpc::Status& status, const char* url) {
  wire::RichStatus rich;
  if (status.error_details().empty() || !rich.ParseFromString(status.error_details())) return std::nullopt;
  for (const google::protobuf::Any& any : rich.details()) {
    Message message;
    if (any.type_url() == url && message.ParseFromString(any.value())) return message;
  }
  return std::nullopt;
}

}  // namespace

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const std::string message = Printable(base::MessageOf(status), kMaxMessageBytes);
  wire::RichStatus rich;
  rich.set_code(static_cast<int>(status.code()));
  rich.set_message(message);
  wire::ErrorInfo info;
  info.set_reason(std::string(absl::StatusCodeToString(status.code())));
  info.set_domain(kErrorDomain);
  std::string mend = Printable(base::MendOf(status), kMaxMendBytes);
  if (!mend.empty()) (*info.mutable_metadata())[kMendKey] = std::move(mend);
  Pack(info, kErrorInfoUrl, &rich);
  if (status.code() == absl::StatusCode::kResourceExhausted) {
    wire::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(kRetryDelay.count() / 1000);
    retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(kRetryDelay.count() % 1000 * 1000000));
    Pack(retry, kRetryInfoUrl, &rich);
  }
  // gRPC's codes are google.rpc's, as Abseil's are.
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message, rich.SerializeAsString());
}

Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  std::string mend;
  if (auto info = Find<wire::ErrorInfo>(status, kErrorInfoUrl)) {
    auto found = info->metadata().find(kMendKey);
    if (found != info->metadata().end()) mend = found->second;
  }
  return base::MakeStatus(static_cast<absl::StatusCode>(status.error_code()), status.error_message(), mend);
}

std::optional<std::chrono::milliseconds> RetryDelay(const grpc::Status& status) {
  auto retry = Find<wire::RetryInfo>(status, kRetryInfoUrl);
  if (!retry) return std::nullopt;
  const auto& delay = retry->retry_delay();
  if (delay.seconds() < 0 || delay.seconds() > 3600 || delay.nanos() < 0) return std::nullopt;
  return std::chrono::milliseconds(delay.seconds() * 1000 + delay.nanos() / 1000000);
}

}  // namespace solstice::rpc
