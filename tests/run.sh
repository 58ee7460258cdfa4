#!/usr/bin/env bash
# Sets up, builds everything and runs every test with CTest. Arguments go to ctest: tests/run.sh -R plan_test
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
started=$SECONDS
deploy/setup.sh
cmake --preset release -DSOLSTICE_WERROR=ON >/dev/null
cmake --build --preset release
built=$SECONDS
ctest --preset release --no-tests=error -j2 "$@"
echo "build $((built - started)) s, tests $((SECONDS - built)) s"
