// The services that every gRPC tool expects: health and reflection, called as bytes, for their stubs are not installed.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include "server/service/service_fixture.h"

namespace solstice::service {
namespace {

grpc::ByteBuffer Bytes(const std::string& text) {
  grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

std::string Text(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string text;
  for (const auto& slice : slices) text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

// One request, one answer, over a stream; the status of the call.
grpc::Status CallBytes(const std::shared_ptr<grpc::Channel>& channel, grpc::ClientContext* context,
                       const std::string& method, const std::string& request, std::string* answer) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  void* tag = nullptr;
  bool ok = false;
  auto stream = stub.PrepareCall(context, method, &queue);
  stream->StartCall(&tag);
  queue.Next(&tag, &ok);
  stream->WriteLast(Bytes(request), {}, &tag);
  queue.Next(&tag, &ok);
  grpc::ByteBuffer reply;
  stream->Read(&reply, &tag);
  queue.Next(&tag, &ok);
  if (ok) *answer = Text(reply);
  grpc::Status status;
  stream->Finish(&status, &tag);
  queue.Next(&tag, &ok);
  return status;
}

TEST_F(ServiceTest, HealthSaysServing) {
  Start();
  auto context = Context();
  std::string answer;
  grpc::Status status = CallBytes(channel_, context.get(), "/grpc.health.v1.Health/Check", "", &answer);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(answer, std::string("\x08\x01"));  // HealthCheckResponse {status: SERVING}
}

TEST_F(ServiceTest, HealthOfAnUnknownServiceIsNotFound) {
  Start();
  auto context = Context();
  std::string answer;
  // HealthCheckRequest {service: "none"}
  grpc::Status status = CallBytes(channel_, context.get(), "/grpc.health.v1.Health/Check", "\x0a\x04none", &answer);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ServiceTest, ReflectionListsTheServices) {
  Start();
  auto context = Context();
  std::string answer;
  // ServerReflectionRequest {list_services: ""}
  grpc::Status status =
      CallBytes(channel_, context.get(), "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                std::string("\x3a\x00", 2), &answer);
  ASSERT_TRUE(status.ok()) << status.error_message();
  for (const char* name : {"solstice.v1.Evaluations", "solstice.v1.Catalogue", "solstice.v1.Server"}) {
    EXPECT_NE(answer.find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace solstice::service
