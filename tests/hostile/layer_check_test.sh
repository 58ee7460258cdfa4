#!/usr/bin/env bash
# The configure step must fail on an upward edge between libraries, naming both, and pass without one.
set -euo pipefail
cmake=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tree"
cat >"$work/tree/CMakeLists.txt" <<EOF
cmake_minimum_required(VERSION 3.25)
project(layers LANGUAGES CXX)
include($source/cmake/SolsticeLibrary.cmake)
add_library(solstice_core INTERFACE)
add_library(solstice_service INTERFACE)
add_subdirectory(lower)
EOF
mkdir "$work/tree/lower"
echo 'solstice_library(NAME plan DEPS core)' >"$work/tree/lower/CMakeLists.txt"
"$cmake" -S "$work/tree" -B "$work/good" >/dev/null
echo 'solstice_library(NAME plan DEPS core service)' >"$work/tree/lower/CMakeLists.txt"
if "$cmake" -S "$work/tree" -B "$work/bad" >"$work/log" 2>&1; then
  echo "configure accepted an upward edge"; exit 1
fi
grep -q 'layer check: plan may not depend on service' "$work/log" || { cat "$work/log"; exit 1; }
echo 'an upward edge is refused: 1 passed, 0 failed'
