#!/usr/bin/env bash
# Sets up, builds, and judges an example kernel: the whole way from CUDA source to a verdict, without a GPU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
deploy/setup.sh
[[ -f build/release/CMakeCache.txt ]] || cmake --preset release >/dev/null
echo "quickstart: building (a few minutes the first time)"
cmake --build --preset release --target solstice solsticed solstice-worker
exec build/release/bin/solstice run examples/fused_add_rmsnorm.cu -d fused_add_rmsnorm_h2048 "$@"
