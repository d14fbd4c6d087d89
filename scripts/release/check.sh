#!/bin/bash
# Proves that a release can be built again: builds the last commit twice, in clones in different folders, with another umask, time zone,
# language and number of processors, and compares all files. Then it starts what it has built, for both architectures, that of
# another machine in an emulator.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d "${TMPDIR:-/tmp}/d11-twice-XXXXXX")
readonly work
trap 'rm -rf "$work"' EXIT
# Downloads are verified by their hashes each time.
DNS11_CACHE=${DNS11_CACHE:-$PWD/.cache/release}
export DNS11_CACHE
revision=$(git rev-parse HEAD)
readonly revision

# build FOLDER COMMAND... builds in a new clone, by a command before the build.
build() {
  local folder=$1
  shift
  mkdir -p "$folder"
  git clone --quiet --no-checkout . "$folder/clone"
  git -C "$folder/clone" checkout --quiet --detach "$revision"
  (cd "$folder/clone" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error --prefer-offline >/dev/null)
  (cd "$folder/clone" && "$@" node scripts/release.mjs "$folder/out")
}

# starts ROOT [EMULATOR...]: the program and its native library, with the libraries of the image.
starts() {
  local root=$1 home=/usr/lib/dns11
  shift
  if [ $# -eq 0 ]; then set -- chroot "$root"; else home=$root$home; fi
  "$@" "$home/bin/node" "$home/dist/cmd/dns11.js" version
  "$@" "$home/bin/node" -e "
    const libc = require('$home/node_modules/koffi').load('libc.so.6');
    if (libc.func('int getpid()')() !== process.pid) throw new Error('a call into libc fails');
  "
}

main() {
  local arch layer version
  umask 022
  build "$work/one" env TZ=UTC
  umask 077
  build "$work/with another/path" env TZ=Pacific/Kiritimati LC_ALL=C DPKG_DEB_THREADS_MAX=1
  umask 022
  if ! diff "$work/one/out/SHA256SUMS" "$work/with another/path/out/SHA256SUMS"; then
    echo 'release: these files differ between two builds of one commit' >&2
    exit 1
  fi
  (cd "$work/one/out" && sha256sum --quiet --check SHA256SUMS)
  version=$(node -p "require('./package.json').version")
  for arch in amd64 arm64; do
    mkdir -p "$work/$arch/"{image,root,deb}
    tar -xf "$work/one/out/dns11-$version-image-$arch.tar" -C "$work/$arch/image"
    for layer in $(node -p "require('$work/$arch/image/manifest.json')[0].Layers.join(' ')"); do
      tar -xzf "$work/$arch/image/$layer" -C "$work/$arch/root"
    done
    dpkg-deb --extract "$work/one/out/dns11_${version}_$arch.deb" "$work/$arch/deb"
    cmp "$work/$arch/root/usr/lib/dns11/bin/node" "$work/$arch/deb/usr/lib/dns11/bin/node"
    if [ "$arch" = "$(dpkg --print-architecture)" ]; then starts "$work/$arch/root"; else starts "$work/$arch/root" "$(emulator "$arch")" -L "$work/$arch/root"; fi
  done
  echo "release: two builds of ${revision:0:12} are the same, and start on amd64 and arm64:"
  cat "$work/one/out/SHA256SUMS"
}

emulator() {
  case $1 in amd64) echo qemu-x86_64-static ;; arm64) echo qemu-aarch64-static ;; esac
}

main
