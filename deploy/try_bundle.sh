#!/usr/bin/env bash
# Unpacks a bundle and tries it where nothing but glibc, a shell, `true`, a CUDA toolkit and what that needs exists:
# `doctor`, an example that must pass, a faulty one that must not. As root the server runs once as root and once as an
# ordinary user.
#
#   deploy/try_bundle.sh ARCHIVE
set -euo pipefail
archive=$(realpath "${1:?usage: deploy/try_bundle.sh ARCHIVE}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

toolkit=''
for folder in "${SOLSTICE_CUDA_HOME:-}" .toolkit /usr/local/cuda; do
  [[ -n $folder && -f $folder/include/cuda.h ]] && { toolkit=$(realpath "$folder"); break; }
done
[[ -n $toolkit ]] || { echo "bundle: no CUDA toolkit to try it with" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{bin,usr/bin,lib64,lib/x86_64-linux-gnu,opt,proc,dev,tmp,run,etc/alternatives,old}
chmod 755 "$work" "$root"
chmod 1777 "$root/tmp"
mkdir "$root/opt/solstice"
tar -xzf "$archive" -C "$root/opt/solstice" --strip-components=1

# glibc, a shell, three commands.
cp -L /lib64/ld-linux-x86-64.so.2 "$root/lib64/"
for library in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1; do
  cp -L "/lib/x86_64-linux-gnu/$library" "$root/lib/x86_64-linux-gnu/"
done
cp -L /bin/bash "$root/bin/bash"
cp -L "$(ldd /bin/bash | sed -n 's/.*libtinfo[^ ]* => \([^ ]*\) .*/\1/p')" "$root/lib/x86_64-linux-gnu/libtinfo.so.6"
for command in true env chroot; do cp -L "$(PATH=$PATH:/usr/sbin type -P "$command")" "$root/usr/bin/"; done
for node in null zero urandom; do : >"$root/dev/$node"; done

# The toolkit as its own packages lay it out, and the C++ library that libnvrtc-builtins needs.
for library in libstdc++.so.6 libgcc_s.so.1; do
  cp -L "/lib/x86_64-linux-gnu/$library" "$root/lib/x86_64-linux-gnu/"
done
cuda=$root/usr/local/cuda-13.0
mkdir -p "$cuda"/targets/x86_64-linux/{lib,include}
ln -s targets/x86_64-linux/lib "$cuda/lib64"
ln -s targets/x86_64-linux/include "$cuda/include"
ln -s /usr/local/cuda-13.0 "$root/etc/alternatives/cuda"
ln -s /etc/alternatives/cuda "$root/usr/local/cuda"

cat >"$root/try" <<'END'
cd /opt/solstice
case $(bin/solstice doctor) in *jail=bubblewrap*) ;; *) echo "doctor names no jail"; exit 1 ;; esac
bin/solstice -q run examples/rmsnorm_two_kernels.cu -d rmsnorm_h2048 || { echo "the example ended with $?"; exit 1; }
bin/solstice -q run examples/faulty/out_of_bounds_write.cu -d rmsnorm_h2048 >/dev/null && code=0 || code=$?
[[ $code == 1 ]] || { echo "the faulty example ended with $code"; exit 1; }
END

# in_bare_root COMMAND...: inside, with an empty environment. Its mounts go with its namespace; what it started ends with
# it.
in_bare_root() {
  if ((EUID == 0)); then
    unshare --mount --pid --fork --kill-child bash -ec '
      root=$1 toolkit=$2; shift 2
      mount --bind "$root" "$root"
      for node in null zero urandom; do mount --bind "/dev/$node" "$root/dev/$node"; done
      mount --bind "$(realpath "$toolkit/lib64")" "$root/usr/local/cuda-13.0/targets/x86_64-linux/lib"
      mount --bind "$(realpath "$toolkit/include")" "$root/usr/local/cuda-13.0/targets/x86_64-linux/include"
      mount -t proc proc "$root/proc"
      umount=$(type -P umount)
      cd "$root"
      pivot_root . old
      /lib64/ld-linux-x86-64.so.2 --library-path /old/lib/x86_64-linux-gnu "/old$umount" -l /old
      exec /usr/bin/env -i HOME=/tmp PATH=/usr/bin "$@"' bare "$root" "$toolkit" "$@"
  else
    bwrap --bind "$root" / --unshare-pid --proc /proc --die-with-parent \
      --dev-bind /dev/null /dev/null --dev-bind /dev/zero /dev/zero --dev-bind /dev/urandom /dev/urandom \
      --ro-bind "$(realpath "$toolkit/lib64")" /usr/local/cuda-13.0/targets/x86_64-linux/lib \
      --ro-bind "$(realpath "$toolkit/include")" /usr/local/cuda-13.0/targets/x86_64-linux/include \
      /usr/bin/env -i HOME=/tmp PATH=/usr/bin "$@"
  fi
}

echo "bundle: in a bare root$( ((EUID == 0)) && echo ', as root')"
in_bare_root /bin/bash /try
if ((EUID == 0)); then
  echo "bundle: in a bare root, as an ordinary user"
  mkdir -m 700 "$root/tmp/user"
  chown 54321:54321 "$root/tmp/user"
  in_bare_root /usr/bin/chroot --userspec=54321:54321 / /usr/bin/env HOME=/tmp/user /bin/bash /try
fi
