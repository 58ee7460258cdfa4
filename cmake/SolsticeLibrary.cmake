# One library per folder, each depending only on those left of it. solstice_library() refuses an upward edge, so the
# order below is the architecture.
set(SOLSTICE_LAYERS
  proto
  base core expr catalog ptx plan compile nvrtc nvjitlink device emulator cuda exec generate verify bulk timing sandbox worker rpc
  store rocksdb state queue pipeline service
  client_lib cli)

# solstice_library(NAME <layer> [DEPS <layer>...] [LINK <target or file>...] [INCLUDE <dir>...])
#
# Makes solstice_<layer> from every .cc of the folder, except *_test.cc, which become <layer>_test, registered with
# CTest, and *_main.cc, which the folder's own CMakeLists turns into programs.
function(solstice_library)
  cmake_parse_arguments(ARG "" "NAME" "DEPS;LINK;INCLUDE;TEST_LINK" ${ARGN})
  list(FIND SOLSTICE_LAYERS ${ARG_NAME} own)
  if(own EQUAL -1)
    message(FATAL_ERROR "layer check: ${ARG_NAME} is not in SOLSTICE_LAYERS (cmake/SolsticeLibrary.cmake)")
  endif()
  foreach(dep IN LISTS ARG_DEPS)
    list(FIND SOLSTICE_LAYERS ${dep} other)
    if(other EQUAL -1)
      message(FATAL_ERROR "layer check: ${ARG_NAME} depends on ${dep}, which is not a layer")
    endif()
    if(NOT other LESS own)
      message(FATAL_ERROR "layer check: ${ARG_NAME} may not depend on ${dep}: "
                          "a library depends only on those left of it in SOLSTICE_LAYERS")
    endif()
  endforeach()

  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cc)
  file(GLOB mains CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_main.cc)
  if(tests)
    list(REMOVE_ITEM sources ${tests})
  endif()
  if(mains)
    list(REMOVE_ITEM sources ${mains})
  endif()
  list(TRANSFORM ARG_DEPS PREPEND solstice_ OUTPUT_VARIABLE libraries)
  if(sources)
    add_library(solstice_${ARG_NAME} STATIC ${sources})
    target_include_directories(solstice_${ARG_NAME} PUBLIC ${CMAKE_SOURCE_DIR} PRIVATE ${ARG_INCLUDE})
    target_link_libraries(solstice_${ARG_NAME} PUBLIC ${libraries} ${ARG_LINK})
  else()
    add_library(solstice_${ARG_NAME} INTERFACE)
    target_include_directories(solstice_${ARG_NAME} INTERFACE ${CMAKE_SOURCE_DIR})
    target_link_libraries(solstice_${ARG_NAME} INTERFACE ${libraries} ${ARG_LINK})
  endif()
  if(tests)
    solstice_test(NAME ${ARG_NAME}_test SOURCES ${tests} LINK solstice_${ARG_NAME} ${ARG_TEST_LINK})
  endif()
endfunction()

# solstice_test(NAME <name> SOURCES <file>... [LINK <target>...] [LABELS <label>...]): a GoogleTest program under CTest.
# A program in which no test ran fails.
function(solstice_test)
  cmake_parse_arguments(ARG "" "NAME;TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  set_target_properties(${ARG_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_include_directories(${ARG_NAME} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_LINK} GTest::gmock GTest::gtest GTest::gtest_main)
  target_compile_definitions(${ARG_NAME} PRIVATE SOLSTICE_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                             SOLSTICE_BINARY_DIR="${CMAKE_BINARY_DIR}")
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set_tests_properties(${ARG_NAME} PROPERTIES FAIL_REGULAR_EXPRESSION "Running 0 tests" TIMEOUT ${ARG_TIMEOUT}
                       LABELS "${ARG_LABELS}")
endfunction()

# solstice_program(NAME <name> SOURCES <file>... LINK <target>...): an executable in build/<preset>/bin that needs libc
# and libm alone (cmake/Dependencies.cmake). Sanitizers need the shared C++ library.
function(solstice_program)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;LINK" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_include_directories(${ARG_NAME} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_LINK})
  if(NOT SOLSTICE_SANITIZE)
    target_link_options(${ARG_NAME} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()
