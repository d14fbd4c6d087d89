#!/bin/bash
# The base of the image: a shell and the libraries that Node needs, from Debian packages whose versions and hashes are in
# base.lock. `base.sh ARCH FOLDER` unpacks them (ARCH: amd64 or arm64); `base.sh --update` writes base.lock anew with the newest
# versions. It installs nothing and leaves the machine's own apt alone. DNS11_CACHE has the downloads.
set -euo pipefail
cd "$(dirname "$0")"

readonly SUITE=trixie PACKAGES='base-files dash gcc-14-base libc6 libgcc-s1 libstdc++6'
readonly CACHE=${DNS11_CACHE:-$(cd ../.. && pwd)/.cache/release}/debian
readonly KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
updated=

fail() {
  printf 'base: %s\n' "$*" >&2
  exit 1
}

# apt with folders of its own, for one architecture.
own_apt() {
  local arch=$1 state=$CACHE/$1
  shift
  mkdir -p "$state"/{lists/partial,archives/partial}
  : >>"$state/status"
  printf 'deb [signed-by=%s] %s %s main\n' "$KEYRING" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" "$SUITE" >"$state/sources.list"
  # A mirror may be frozen at a day in the past.
  apt-get -qq -o Dir::State="$state" -o Dir::State::status="$state/status" -o Dir::Cache="$state" \
    -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=/dev/null -o APT::Architecture="$arch" \
    -o APT::Architectures::="$arch" -o APT::Sandbox::User=root -o Acquire::Check-Valid-Until=false -o Acquire::Languages=none "$@"
}

# Lines of base.lock: hash, file.
newest() {
  own_apt "$1" update
  # shellcheck disable=SC2086
  own_apt "$1" --print-uris download $PACKAGES | sed -E "s/^'[^']*' (\S+) [0-9]+ SHA256:(\S+)$/\2  \1/"
}

# NAME_VERSION_ARCH.deb, where a colon in the version is %3a.
download() {
  local arch=$1 file=$2 name version
  name=${file%%_*}
  version=${file#*_}
  version=${version%_*}
  if [ -z "$updated" ]; then own_apt "$arch" update; fi
  updated=yes
  (cd "$CACHE/$arch" && own_apt "$arch" download "$name=${version//%3a/:}") ||
    fail "Debian has no $name $version any more: scripts/release/base.sh --update; for an earlier release, DEBIAN_MIRROR=http://snapshot.debian.org/archive/debian/DAY"
}

main() {
  local arch=${1:-} out=${2:-} hash file
  [ -e "$KEYRING" ] || fail "$KEYRING is missing: install debian-archive-keyring"
  if [ "$arch" = --update ]; then
    { newest amd64 && newest arm64; } >base.lock.new
    mv base.lock.new base.lock
    return
  fi
  if [ -z "$out" ]; then fail 'usage: base.sh ARCH FOLDER, or base.sh --update'; fi
  mkdir -p "$out" "$CACHE/$arch"
  out=$(cd "$out" && pwd)
  while read -r hash file; do
    [[ $file == *_$arch.deb ]] || continue
    [ -e "$CACHE/$arch/$file" ] || download "$arch" "$file"
    if ! sha256sum --status --check <<<"$hash  $CACHE/$arch/$file"; then
      rm -f "$CACHE/$arch/$file"
      fail "$file has another hash than in base.lock"
    fi
    dpkg-deb --extract "$CACHE/$arch/$file" "$out"
  done <base.lock
  # What the packages would write when they are configured.
  printf 'root:x:0:0:root:/root:/bin/sh\n' >"$out/etc/passwd"
  printf 'root:x:0:\n' >"$out/etc/group"
  if [ ! -e "$out/var/run" ]; then ln -s /run "$out/var/run"; fi
}

main "$@"
