#!/usr/bin/env bash
# Brings a Debian 12 machine to the point where Solstice builds: system packages, and, where no CUDA toolkit is found,
# NVIDIA's wheels from PyPI in .toolkit/. Re-runnable; does nothing when everything is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(g++ cmake ninja-build ccache pkg-config git ca-certificates python3
  libgrpc++-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libabsl-dev libre2-dev libc-ares-dev
  librocksdb-dev libsnappy-dev liblz4-dev libzstd-dev libbz2-dev zlib1g-dev libssl-dev
  nlohmann-json3-dev libcli11-dev libspdlog-dev libgtest-dev libgmock-dev bubblewrap)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if ((${#missing[@]})); then
  echo "setup: installing ${missing[*]}"
  sudo=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || { echo "setup: run as root, or install sudo, to install: ${missing[*]}" >&2; exit 1; }
    sudo=(sudo)
  fi
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# The toolkit: headers, NVRTC and nvJitLink of one release.
toolkit_found() {
  local root
  for root in "${SOLSTICE_CUDA_HOME:-}" .toolkit /usr/local/cuda; do
    [[ -n $root && -f $root/include/nvrtc.h && -f $root/include/nvJitLink.h && -f $root/include/cuda.h ]] || continue
    [[ -f $root/include/cupti.h || -f $root/extras/CUPTI/include/cupti.h ]] && return 0
  done
  return 1
}
if ! toolkit_found; then
  echo "setup: no CUDA toolkit found; fetching NVIDIA's wheels (140 MB) into .toolkit"
  wheels=(nvidia-cuda-nvrtc==13.0.88 nvidia-nvjitlink==13.0.88 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85
    nvidia-cuda-crt==13.0.88 nvidia-cuda-cupti==13.0.85)
  if ! python3 -m pip --version >/dev/null 2>&1; then
    sudo=(); ((EUID != 0)) && sudo=(sudo)
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-pip >/dev/null
  fi
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  python3 -m pip download -q --no-deps --only-binary=:all: -d "$work" "${wheels[@]}"
  for wheel in "$work"/*.whl; do python3 -m zipfile -e "$wheel" "$work/tree"; done
  rm -rf .toolkit.new && mkdir .toolkit.new
  cp -r "$work"/tree/nvidia/cu13/. .toolkit.new/
  [[ -e .toolkit.new/lib64 ]] || ln -s lib .toolkit.new/lib64
  rm -rf .toolkit && mv .toolkit.new .toolkit
fi
