#!/bin/bash
# Builds a .deb that includes Node: scripts/deb.sh [FOLDER], the folder for the package (default: .cache/deb). It includes the
# first Node in PATH, which must be 20 or later; `make deb` makes sure of that. DEB_VERSION overrides the version of
# package.json, DEB_COMPRESS the compression (xz), and STAGE_* the platform, as in scripts/stage.mjs. With SOURCE_DATE_EPOCH the
# same sources make the same package.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly OUT=${1:-.cache/deb}
work=''
part=''

fail() {
  printf 'deb: %s\n' "$*" >&2
  exit 1
}

# The newest glibc symbol version in use is the oldest glibc that works.
glibc_wanted() {
  find "$1" \( -name node -o -name '*.node' \) -type f -exec grep -ahoE 'GLIBC_2\.[0-9]+' {} + | sed 's/GLIBC_//' | sort -uV | tail -1
}

# In KiB, each file rounded up, as dpkg-gencontrol counts: what du says depends on the file system.
size_of() {
  find "$1" -path "$1/DEBIAN" -prune -o \( -type f -printf '%s\n' -o -printf '1\n' \) | awk '{ sum += int(($1 + 1023) / 1024) } END { print sum }'
}

field() {
  node -p "require('./package.json').$1"
}

architecture() {
  case ${STAGE_ARCH:-} in
    '') dpkg --print-architecture ;;
    x64) echo amd64 ;;
    arm64) echo arm64 ;;
    *) fail "no Debian architecture for $STAGE_ARCH" ;;
  esac
}

control() {
  cat <<END
Package: dns11
Version: $version
Architecture: $(architecture)
Maintainer: ${DEB_MAINTAINER:-$(field author)}
Installed-Size: $(size_of "$root")
Depends: libc6 (>= $(glibc_wanted "$root/usr/lib/dns11")), libgcc-s1, libstdc++6
Recommends: docker.io (>= 20.10) | docker-ce | moby-engine
Section: net
Priority: optional
Homepage: $(field homepage)
Description: $(field description)
 One process on the Docker host resolves container names for every
 container and forwards all other queries upstream. When it stops, Docker's
 own resolver answers again.
 .
 Installing it enables and starts nothing. To start it:
 systemctl enable --now dns11
END
}

main() {
  local version root command file
  for command in node dpkg-deb dpkg gzip install find; do
    command -v "$command" >/dev/null || fail "$command is missing"
  done
  version=${DEB_VERSION:-$(field version)}
  work=$(mktemp -d "${TMPDIR:-/tmp}/d11-deb-XXXXXX")
  trap 'rm -rf "$work" "$part"' EXIT
  root=$work/root
  umask 022
  scripts/tree.sh "$root"

  mkdir "$root/DEBIAN"
  control >"$root/DEBIAN/control"
  echo /etc/dns11/dns11.yaml >"$root/DEBIAN/conffiles"
  for command in postinst prerm postrm; do install -m 755 "scripts/deb/$command" "$root/DEBIAN/$command"; done
  mkdir -p "$OUT" "$work/built"
  dpkg-deb --root-owner-group "-Z${DEB_COMPRESS:-xz}" --build "$root" "$work/built" >/dev/null
  file=$(basename "$work"/built/*.deb)
  # Whoever finds a file of this name has a whole package.
  part=$OUT/.$file.part
  cp "$work/built/$file" "$part"
  mv "$part" "$OUT/$file"
  printf 'deb: wrote %s (%s)\n' "$OUT/$file" "$(du -h "$OUT/$file" | cut -f1)"
  case $OUT in /* | ./*) file=$OUT/$file ;; *) file=./$OUT/$file ;; esac
  printf 'deb: install it with: sudo apt install %s\n' "$file"
}

main "$@"
