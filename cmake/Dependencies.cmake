# What Debian 12 packages and the CUDA toolkit bring. Every library is linked as the package's static archive, so that a
# program needs only libc: that is what makes a bundle run elsewhere, keeps a jail's root small, and leaves one copy of
# each library in a process.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(absl REQUIRED)
find_package(GTest REQUIRED)
find_package(spdlog REQUIRED)
find_program(PROTOC protoc REQUIRED)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
find_path(CLI11_INCLUDE CLI/CLI.hpp REQUIRED)

# solstice_archive(<name> [<target or library>...]): target archive::<name> for lib<name>.a, which needs the others.
function(solstice_archive name)
  find_library(ARCHIVE_${name} lib${name}.a REQUIRED)
  mark_as_advanced(ARCHIVE_${name})
  add_library(archive::${name} STATIC IMPORTED GLOBAL)
  set_target_properties(archive::${name} PROPERTIES IMPORTED_LOCATION ${ARCHIVE_${name}}
                        INTERFACE_LINK_LIBRARIES "${ARGN}")
endfunction()

# Debian's absl targets name the shared libraries; the archives lie beside them.
get_property(imported DIRECTORY PROPERTY IMPORTED_TARGETS)
foreach(target IN LISTS imported)
  get_target_property(location ${target} IMPORTED_LOCATION_NONE)
  if(target MATCHES "^absl::" AND location MATCHES "^(.*)\\.so[.0-9]*$")
    if(NOT EXISTS ${CMAKE_MATCH_1}.a)
      message(FATAL_ERROR "${CMAKE_MATCH_1}.a is missing: install libabsl-dev (deploy/setup.sh)")
    endif()
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION_NONE ${CMAKE_MATCH_1}.a)
  endif()
endforeach()

# fmt has no archive; its headers alone serve spdlog's.
set_target_properties(spdlog::spdlog_header_only PROPERTIES
                      INTERFACE_LINK_LIBRARIES "Threads::Threads;fmt::fmt-header-only")

# Which parts of absl gRPC needs, its pkg-config file says.
pkg_check_modules(GRPCPP REQUIRED grpc++)
set(grpc_absl ${GRPCPP_STATIC_LIBRARIES})
list(FILTER grpc_absl INCLUDE REGEX "^absl_")
list(REMOVE_DUPLICATES grpc_absl)
list(TRANSFORM grpc_absl REPLACE "^absl_" "absl::")

solstice_archive(z)
solstice_archive(bz2)
solstice_archive(lz4)
solstice_archive(zstd)
solstice_archive(snappy)
solstice_archive(rocksdb archive::snappy archive::lz4 archive::zstd archive::bz2 archive::z Threads::Threads
                 ${CMAKE_DL_LIBS})
solstice_archive(crypto Threads::Threads ${CMAKE_DL_LIBS})
solstice_archive(ssl archive::crypto)
solstice_archive(protobuf archive::z Threads::Threads)
solstice_archive(re2 Threads::Threads)
solstice_archive(cares)
solstice_archive(upb)
solstice_archive(address_sorting)
solstice_archive(gpr ${grpc_absl} Threads::Threads)
solstice_archive(grpc archive::address_sorting archive::re2 archive::upb archive::cares archive::z archive::gpr
                 archive::ssl ${grpc_absl})
solstice_archive(grpc++ archive::grpc archive::protobuf)
solstice_archive(grpc++_reflection archive::grpc++)

# Headers only: NVRTC and nvJitLink are opened at run time.
find_path(CUDA_TOOLKIT_INCLUDE nvrtc.h
          HINTS $ENV{SOLSTICE_CUDA_HOME}/include ${CMAKE_SOURCE_DIR}/.toolkit/include /usr/local/cuda/include
          NO_DEFAULT_PATH REQUIRED)
message(STATUS "CUDA toolkit headers: ${CUDA_TOOLKIT_INCLUDE}")
