#!/bin/bash
# Builds a .deb that includes Node: scripts/deb.sh [FOLDER], the folder for the package (default: .cache/deb). It includes the
# first Node in PATH, which must be 20 or later; `make deb` makes sure of that. DEB_VERSION overrides the version of
# package.json, DEB_COMPRESS the compression (xz).
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

compressed() {
  mkdir -p "$(dirname "$2")"
  gzip -9n <"$1" >"$2"
  chmod 644 "$2"
}

put() {
  install -D -m "$1" "$2" "$root/$3"
}

control() {
  local size
  size=$(du -sk --exclude=DEBIAN "$root" | cut -f1)
  cat <<END
Package: dns11
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: $maintainer
Installed-Size: $size
Depends: libc6 (>= $(glibc_wanted "$root/usr/lib/dns11")), libgcc-s1, libstdc++6
Recommends: docker.io (>= 20.10) | docker-ce | moby-engine
Section: net
Priority: optional
Description: $(node -p "require('./package.json').description")
 One process on the Docker host resolves container names for every
 container and forwards all other queries upstream. When it stops, even by
 kill -9, Docker's own resolver takes over at once.
 .
 Installing it enables and starts nothing. To start it:
 systemctl enable --now dns11
END
}

main() {
  local version maintainer root command document file
  for command in node dpkg-deb dpkg gzip install find; do
    command -v "$command" >/dev/null || fail "$command is missing"
  done
  version=${DEB_VERSION:-$(node -p "require('./package.json').version")}
  maintainer=${DEB_MAINTAINER:-dns11 <root@localhost>}
  work=$(mktemp -d "${TMPDIR:-/tmp}/d11-deb-XXXXXX")
  trap 'rm -rf "$work" "$part"' EXIT
  root=$work/root
  umask 022
  node scripts/stage.mjs "$root"

  put 644 scripts/systemd/dns11.service usr/lib/systemd/system/dns11.service
  put 644 scripts/systemd/user/dns11.service usr/lib/systemd/user/dns11.service
  put 644 dist/man/dns11.yaml etc/dns11/dns11.yaml
  put 644 dist/man/dns11.yaml usr/share/doc/dns11/examples/dns11.yaml
  put 644 scripts/image/compose.yaml usr/share/doc/dns11/examples/compose.yaml
  compressed dist/man/dns11.8 "$root/usr/share/man/man8/dns11.8.gz"
  compressed dist/man/dns11.yaml.5 "$root/usr/share/man/man5/dns11.yaml.5.gz"
  # Unchanged, so that the links between them work.
  for document in README.md ARCHITECTURE.md SECURITY.md CHANGELOG.md LICENSE docs/*.md docs/internals/*.md docs/img/*.svg; do
    put 644 "$document" "usr/share/doc/dns11/$document"
  done
  compressed CHANGELOG.md "$root/usr/share/doc/dns11/changelog.gz"
  {
    printf 'dns11, Apache-2.0; Node (/usr/lib/dns11/bin/node), MIT and others, https://github.com/nodejs/node/blob/main/LICENSE;\n'
    printf 'the packages in /usr/lib/dns11/node_modules, each with its own license there.\n\n'
    cat LICENSE
  } >"$root/usr/share/doc/dns11/copyright"
  mkdir -p "$root"/usr/share/{bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
  node dist/cmd/dns11.js completion bash >"$root/usr/share/bash-completion/completions/dns11"
  node dist/cmd/dns11.js completion zsh >"$root/usr/share/zsh/vendor-completions/_dns11"
  node dist/cmd/dns11.js completion fish >"$root/usr/share/fish/vendor_completions.d/dns11.fish"

  mkdir "$root/DEBIAN"
  control >"$root/DEBIAN/control"
  echo /etc/dns11/dns11.yaml >"$root/DEBIAN/conffiles"
  for command in postinst prerm postrm; do put 755 "scripts/deb/$command" "DEBIAN/$command"; done
  # Files of npm packages may have any permissions.
  chmod -R u=rwX,go=rX "$root"
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
