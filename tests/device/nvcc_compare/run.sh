#!/usr/bin/env bash
# Compiles the ten kernels by nvcc and by Solstice, and compares outputs and latencies on the GPU (compare.cc).
#
#   tests/device/nvcc_compare/run.sh [build|time|all] [FOLDER]
#
# `build` leaves two cubins of each kernel in FOLDER and needs no GPU; `time` needs one and uses them; `all`, the default,
# does both. SOLSTICE names the client (build/release/bin/solstice), SOLSTICE_CUDA_HOME the toolkit, with nvcc and cuda.h
# (/usr/local/cuda).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
step=${1:-all}
folder=${2:-$(mktemp -d)}
(($# >= 2)) || trap 'rm -rf "$folder"' EXIT
solstice=${SOLSTICE:-$here/../../../build/release/bin/solstice}
cuda=${SOLSTICE_CUDA_HOME:-/usr/local/cuda}
[[ $step == build || $step == time || $step == all ]] || { echo "usage: run.sh [build|time|all] [FOLDER]" >&2; exit 2; }
mkdir -p "$folder"

if [[ $step != time ]]; then
  for source in "$here"/kernels/*.cu; do
    stem=$folder/$(basename "$source" .cu)
    "$cuda/bin/nvcc" -std=c++17 -arch=sm_90a -cubin -o "$stem.nvcc.cubin" "$source"
    # A failure must not leave the cubin of an earlier run.
    rm -f "$stem.solstice.cubin"
    "$solstice" compile "$source" --arch sm_90a --emit cubin -o "$stem.solstice.cubin" >"$stem.log" ||
      { cat "$stem.log" >&2; exit 1; }
  done
fi
if [[ $step != build ]]; then
  "${CXX:-g++}" -std=c++17 -O2 -I"$cuda/include" "$here/compare.cc" -o "$folder/compare" -ldl
  "$folder/compare" "$folder"
fi
