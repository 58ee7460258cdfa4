#!/usr/bin/env bash
# The checks that bundle.sh makes accept what a bundle may hold and refuse, with words, what it may not.
set -euo pipefail
source "$1/deploy/bundle_checks.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checked=0

accepts() { "$@" || { echo "refused: $*"; exit 1; }; checked=$((checked + 1)); }
# refuses WORDS CHECK...
refuses() {
  local words=$1; shift
  if "$@" 2>"$work/errors"; then echo "accepted: $*"; exit 1; fi
  grep -qF -- "$words" "$work/errors" || { echo "no \"$words\" from: $*"; cat "$work/errors"; exit 1; }
  checked=$((checked + 1))
}

echo '#include <string>
int main(int argc, char**) { throw std::string(argc, 1); }' >"$work/program.cc"
g++ -o "$work/shared" "$work/program.cc"
g++ -static-libstdc++ -static-libgcc -o "$work/static" "$work/program.cc"

accepts needs_only_libc "$work/static"
refuses "needs libstdc++.so.6" needs_only_libc "$work/shared"
accepts runs_on_glibc "$work/static" 2.99
accepts runs_on_glibc "$work/static" "$(highest_glibc "$work/static")"
refuses "at most 2.2.5 is allowed" runs_on_glibc "$work/static" 2.2.5
refuses "unknown version" runs_on_glibc "$work/program.cc" 2.36
printf '12345' >"$work/five"
accepts fits "$work/five" 5
refuses "has 5 bytes; at most 4 are allowed" fits "$work/five" 4
[[ $bundle_max_bytes == 41943040 && $bundle_max_glibc == 2.36 ]] || { echo "the limits changed"; exit 1; }
echo "$checked passed, 0 failed"
