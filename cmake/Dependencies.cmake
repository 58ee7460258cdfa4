# What Debian 12 packages and the CUDA toolkit bring. Workers link protobuf, Abseil and OpenSSL statically, so that a
# jail's root needs nothing but libc beside them.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(absl REQUIRED)
find_package(GTest REQUIRED)
find_program(PROTOC protoc REQUIRED)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
find_library(PROTOBUF_STATIC libprotobuf.a REQUIRED)
find_library(CRYPTO_STATIC libcrypto.a REQUIRED)
pkg_check_modules(GRPCPP REQUIRED IMPORTED_TARGET grpc++)
find_library(GRPCPP_REFLECTION grpc++_reflection REQUIRED)
find_library(ROCKSDB rocksdb REQUIRED)
find_path(CLI11_INCLUDE CLI/CLI.hpp REQUIRED)

# Headers only: NVRTC and nvJitLink are opened at run time.
find_path(CUDA_TOOLKIT_INCLUDE nvrtc.h
          HINTS $ENV{SOLSTICE_CUDA_HOME}/include ${CMAKE_SOURCE_DIR}/.toolkit/include /usr/local/cuda/include
          NO_DEFAULT_PATH REQUIRED)
message(STATUS "CUDA toolkit headers: ${CUDA_TOOLKIT_INCLUDE}")
