#!/bin/bash
# Makes sure that Node 20 or later is available. Otherwise installs one from the npm registry into .cache/node: Debian's own
# may be older, and nothing on the system is replaced.
set -euo pipefail

readonly WANTED=20
readonly PACKAGE_VERSION=22
readonly FOLDER=.cache/node

major() {
  node --version 2>/dev/null | sed -E 's/^v([0-9]+).*/\1/'
}

main() {
  local found machine
  export PATH="$PWD/$FOLDER/bin:$PATH"
  found=$(major || true)
  if [ -n "$found" ] && [ "$found" -ge "$WANTED" ]; then return; fi
  echo "setup: Node $WANTED or later is missing (found: ${found:-none})"
  if ! command -v npm >/dev/null; then
    if [ "$(id -u)" -ne 0 ]; then
      echo "setup: npm is missing too; install it, or run this as root" >&2
      exit 1
    fi
    echo 'setup: installing npm from Debian to download it'
    apt-get -qq update
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install npm >/dev/null
  fi
  case $(uname -m) in
    x86_64) machine=x64 ;;
    aarch64) machine=arm64 ;;
    *)
      echo "setup: no Node for $(uname -m) in the npm registry; install Node $WANTED or later" >&2
      exit 1
      ;;
  esac
  echo "setup: installing Node $PACKAGE_VERSION into $FOLDER"
  npm install --prefix "$FOLDER" --ignore-scripts --no-save --no-audit --no-fund --loglevel=error \
    "node-linux-$machine@$PACKAGE_VERSION"
  mkdir -p "$FOLDER/bin"
  ln -sf "../node_modules/node-linux-$machine/bin/node" "$FOLDER/bin/node"
}

main "$@"
