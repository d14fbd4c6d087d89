#!/bin/bash
# Writes everything that an installation consists of into a folder: the program, its units, manual pages, documents and shell
# completion. scripts/tree.sh FOLDER [PREFIX], where PREFIX is `usr` (the .deb) or `usr/local` (the archive). STAGE_* choose
# another platform, as in scripts/stage.mjs.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly ROOT=$1 PREFIX=${2:-usr}
VERSION=$(node -p "require('./package.json').version")
readonly VERSION

put() {
  install -D -m "$1" "$2" "$ROOT/$3"
}

compressed() {
  mkdir -p "$(dirname "$2")"
  gzip -9n <"$1" >"$2"
  chmod 644 "$2"
}

# The units name the program by its path.
unit() {
  mkdir -p "$ROOT/$(dirname "$2")"
  sed "s,/usr/bin/,/$PREFIX/bin/," "$1" >"$ROOT/$2"
  chmod 644 "$ROOT/$2"
}

# A document as it is, but for links to internals, which only the repository has.
document() {
  mkdir -p "$(dirname "$ROOT/$2")"
  sed -E "s,\]\((docs/)?(internals/[^)]*)\),](https://github.com/dns11/dns11/blob/v$VERSION/docs/\2),g" "$1" >"$ROOT/$2"
  chmod 644 "$ROOT/$2"
}

main() {
  local share=$PREFIX/share document shell script
  umask 022
  node scripts/stage.mjs "$ROOT" "$PREFIX"
  unit scripts/systemd/dns11.service "$PREFIX/lib/systemd/system/dns11.service"
  unit scripts/systemd/dns11-boot.service "$PREFIX/lib/systemd/system/dns11-boot.service"
  unit scripts/systemd/user/dns11.service "$PREFIX/lib/systemd/user/dns11.service"
  put 644 dist/man/dns11.yaml etc/dns11/dns11.yaml
  put 644 dist/man/dns11.yaml "$share/doc/dns11/examples/dns11.yaml"
  put 644 scripts/image/compose.yaml "$share/doc/dns11/examples/compose.yaml"
  # By the names that the documents have for them.
  for document in image/compose.yaml grafana/dns11.json prometheus/alerts.yaml; do
    put 644 "scripts/$document" "$share/doc/dns11/scripts/$document"
  done
  # What dpkg would run, where there is none.
  if [ "$PREFIX" != usr ]; then
    for script in postinst prerm postrm; do put 755 "scripts/deb/$script" "$PREFIX/lib/dns11/scripts/$script"; done
  fi
  compressed dist/man/dns11.8 "$ROOT/$share/man/man8/dns11.8.gz"
  compressed dist/man/dns11.yaml.5 "$ROOT/$share/man/man5/dns11.yaml.5.gz"
  # In their folders, so that the links between them work. Internals are for those who have the source.
  while read -r document; do
    case $document in
      *.md) document "$document" "$share/doc/dns11/$document" ;;
      *) put 644 "$document" "$share/doc/dns11/$document" ;;
    esac
  done < <(find README.md ARCHITECTURE.md CONTRIBUTING.md SECURITY.md CHANGELOG.md LICENSE docs -path docs/internals -prune -o '(' -name '*.md' -o -name '*.svg' -o -name '*.png' -o -name LICENSE -o -path 'docs/examples/*' ')' -print)
  compressed CHANGELOG.md "$ROOT/$share/doc/dns11/changelog.gz"
  {
    printf 'dns11, Apache-2.0; Node (/%s/lib/dns11/bin/node), MIT and others, https://github.com/nodejs/node/blob/main/LICENSE;\n' "$PREFIX"
    printf 'the packages in /%s/lib/dns11/node_modules, each with its own license there.\n\n' "$PREFIX"
    cat LICENSE
  } >"$ROOT/$share/doc/dns11/copyright"
  # Where zsh looks: vendors' files are for packages.
  local zsh=vendor-completions
  if [ "$PREFIX" != usr ]; then zsh=site-functions; fi
  for shell in bash-completion/completions/dns11 "zsh/$zsh/_dns11" fish/vendor_completions.d/dns11.fish; do
    mkdir -p "$ROOT/$share/$(dirname "$shell")"
    case $shell in
      bash*) node dist/cmd/dns11.js completion bash ;;
      zsh*) node dist/cmd/dns11.js completion zsh ;;
      fish*) node dist/cmd/dns11.js completion fish ;;
    esac >"$ROOT/$share/$shell"
  done
  # Files of npm packages may have any permissions.
  chmod -R u=rwX,go=rX "$ROOT"
}

main
