#!/usr/bin/env bash
# Makes a relocatable archive of Solstice for hosts that have a CUDA toolkit and glibc 2.36 or later, and tries it in a
# root that has nothing else (docs/operations.md, "Bundle").
#
#   deploy/bundle.sh [--build FOLDER] [OUTPUT_FOLDER]
#
# --build FOLDER packs the programs of a build tree as they are; otherwise build/release is set up and built. The output
# folder is build/bundle unless named.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source deploy/bundle_checks.sh

build='' output=build/bundle
while (($#)); do
  case $1 in
    --build) build=${2:?--build needs a folder}; shift 2 ;;
    -*) echo "usage: deploy/bundle.sh [--build FOLDER] [OUTPUT_FOLDER]" >&2; exit 2 ;;
    *) output=$1; shift ;;
  esac
done

if [[ -z $build ]]; then
  build=build/release
  deploy/setup.sh
  cmake --preset release >/dev/null
  cmake --build --preset release --target solstice solsticed solstice-worker solstice-agreement solstice-conformance
fi

version=$(sed -n 's/^project(solstice VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
[[ -n $version ]] || { echo "bundle: CMakeLists.txt states no version" >&2; exit 1; }
[[ $(uname -m) == x86_64 ]] || { echo "bundle: only x86_64 is supported" >&2; exit 1; }
name=solstice-$version-linux-x86_64
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/$name
mkdir -p "$root"/{bin,libexec/solstice/bwrap-libraries,share/solstice,share/doc/solstice/packages,tests}

for program in solstice solsticed solstice-worker; do
  strip -o "$root/bin/$program" "$build/bin/$program"
done

# Debian's bubblewrap with the libraries that a host may lack.
bwrap=$(PATH=$PATH:/usr/bin:/bin type -P bwrap) ||
  { echo "bundle: bubblewrap is missing (deploy/setup.sh)" >&2; exit 1; }
strip -o "$root/libexec/solstice/bwrap" "$(realpath "$bwrap")"
ldd "$bwrap" | sed -n 's/^[[:space:]]*\([^ ]*\) => \(\/[^ ]*\) .*/\1 \2/p' | while read -r library path; do
  case $library in
    libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | librt.so.1) ;;
    *) strip -o "$root/libexec/solstice/bwrap-libraries/$library" "$(realpath "$path")" ;;
  esac
done

cp -r runtime/compile/headers "$root/share/solstice/headers"
cp -r definitions reference_kernels "$root/share/solstice/"
# The paths that the documents and the tests use.
ln -s share/solstice/definitions share/solstice/reference_kernels "$root/"
cp -r examples docs README.md LICENSE "$root/"
for folder in cases device; do
  [[ -d tests/$folder ]] && cp -r "tests/$folder" "$root/tests/"
done
rm -r "$root"/tests/cases/*.cc "$root/tests/device/agreement"
mkdir "$root/tests/device/bin"
for program in agreement conformance; do
  strip -o "$root/tests/device/bin/$program" "$build/bin/solstice-$program"
done
# What the emulator is compared with, where it has been recorded.
mkdir -p "$root/tests/conformance/answers"
cp tests/conformance/README.md "$root/tests/conformance/"
find tests/conformance/answers -name '*.bin' -exec cp {} "$root/tests/conformance/answers/" \;
find "$root" \( -name CMakeLists.txt -o -name __pycache__ \) -prune -exec rm -r {} +
chmod -R u=rwX,go=rX "$root"

# Licences and versions of what is linked or copied.
for package in bubblewrap libselinux1 libcap2 libpcre2-8-0 libgrpc++-dev libgrpc-dev libprotobuf-dev libabsl-dev \
  libre2-dev libc-ares-dev librocksdb-dev libsnappy-dev liblz4-dev libzstd-dev libbz2-dev zlib1g-dev libssl-dev \
  nlohmann-json3-dev libcli11-dev libspdlog-dev libfmt-dev libstdc++-12-dev; do
  installed=$(dpkg-query -W -f '${Package} ${Version}\n' "$package" 2>/dev/null) || continue
  echo "$installed" >>"$root/share/doc/solstice/packages/versions.txt"
  if [[ -e /usr/share/doc/$package/copyright ]]; then
    cp -L "/usr/share/doc/$package/copyright" "$root/share/doc/solstice/packages/$package.copyright"
  fi
done

for program in "$root"/bin/* "$root"/tests/device/bin/*; do needs_only_libc "$program"; done
for file in "$root"/bin/* "$root"/libexec/solstice/bwrap "$root"/libexec/solstice/bwrap-libraries/*; do
  runs_on_glibc "$file" "$bundle_max_glibc"
done

mkdir -p "$output"
archive=$output/$name.tar.gz
changed=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
tar --sort=name --mtime="@$changed" --owner=0 --group=0 --numeric-owner -C "$work" -cf - "$name" |
  gzip -n >"$work/archive"
fits "$work/archive" "$bundle_max_bytes"

deploy/try_bundle.sh "$work/archive"
mv "$work/archive" "$archive"
chmod 644 "$archive"
echo "bundle: $archive ($(stat -c %s "$archive") bytes)"
