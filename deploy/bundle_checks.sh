# What a bundle must keep to. Sourced by bundle.sh and its test, under pipefail; needs binutils. Each check says on
# stderr what is wrong.

bundle_max_bytes=$((40 * 1024 * 1024))
bundle_max_glibc=2.36  # Debian 12's, where bundles are built

# needs_only_libc FILE: the program or library needs nothing but glibc's own libraries.
needs_only_libc() {
  local library libraries wrong=0
  libraries=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p') || return 1
  for library in $libraries; do
    case $library in
      libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | librt.so.1 | ld-linux-x86-64.so.2) ;;
      *) echo "bundle: $1 needs $library" >&2; wrong=1 ;;
    esac
  done
  return $wrong
}

# highest_glibc FILE: the newest version of glibc that it asks for.
highest_glibc() { readelf -W -V "$1" | grep -o 'GLIBC_[0-9][0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -n 1; }

# runs_on_glibc FILE VERSION: it asks for no newer glibc than VERSION.
runs_on_glibc() {
  local highest
  highest=$(highest_glibc "$1") || highest=''
  [[ -n $highest && $(printf '%s\n' "$highest" "$2" | sort -V | tail -n 1) == "$2" ]] && return 0
  echo "bundle: $1 needs glibc ${highest:-of an unknown version}; at most $2 is allowed" >&2
  return 1
}

# fits FILE BYTES
fits() {
  local bytes
  bytes=$(stat -c %s "$1") || return 1
  ((bytes <= $2)) && return 0
  echo "bundle: $1 has $bytes bytes; at most $2 are allowed" >&2
  return 1
}
