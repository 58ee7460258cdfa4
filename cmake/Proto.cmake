# solstice_proto: messages (linked by everything); solstice_proto_grpc: service stubs (server and client only).
set(proto_dir ${CMAKE_SOURCE_DIR}/proto)
set(out_dir ${CMAKE_BINARY_DIR}/proto)
file(MAKE_DIRECTORY ${out_dir})
set(message_sources)
foreach(name definition solution evaluation host service worker config)
  set(file solstice/v1/${name}.proto)
  add_custom_command(
    OUTPUT ${out_dir}/solstice/v1/${name}.pb.cc ${out_dir}/solstice/v1/${name}.pb.h
    COMMAND ${PROTOC} -I${proto_dir} --cpp_out=${out_dir} ${file}
    WORKING_DIRECTORY ${proto_dir} DEPENDS ${proto_dir}/${file}
    ${proto_dir}/solstice/v1/definition.proto ${proto_dir}/solstice/v1/solution.proto ${proto_dir}/solstice/v1/evaluation.proto)
  list(APPEND message_sources ${out_dir}/solstice/v1/${name}.pb.cc)
endforeach()
add_library(solstice_proto STATIC ${message_sources})
target_include_directories(solstice_proto SYSTEM PUBLIC ${out_dir})
target_link_libraries(solstice_proto PUBLIC archive::protobuf Threads::Threads)
target_compile_options(solstice_proto PRIVATE -w)

add_custom_command(
  OUTPUT ${out_dir}/solstice/v1/service.grpc.pb.cc ${out_dir}/solstice/v1/service.grpc.pb.h
  COMMAND ${PROTOC} -I${proto_dir} --grpc_out=${out_dir} --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN} solstice/v1/service.proto
  WORKING_DIRECTORY ${proto_dir} DEPENDS ${proto_dir}/solstice/v1/service.proto)
add_library(solstice_proto_grpc STATIC ${out_dir}/solstice/v1/service.grpc.pb.cc)
target_link_libraries(solstice_proto_grpc PUBLIC solstice_proto archive::grpc++)
target_compile_options(solstice_proto_grpc PRIVATE -w)
