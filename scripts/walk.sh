#!/bin/bash
# Walks through README as a new user: scripts/walk.sh [RELEASE [COMMAND...]], by default on Debian 12 and 13. Each release is a new root file
# system, whose user may use sudo and has a clone of the last commit in a home that others cannot enter, as Ubuntu makes them. Prints how long each command
# took. What the walk makes is removed with the root, and its processes end with their namespace.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly USER_NAME=ann
readonly TOOLS=sudo,git,make,ca-certificates
# What README and CONTRIBUTING name. The user's own commands come after those of root: files of root in a clone must not stop its owner.
readonly README_COMMANDS=(
  'sudo make run'
  'sudo make ten-minutes'
  'make check'
  'make unit || sudo make setup-unit'
  'make unit'
  'make deb'
  'sudo apt-get -qq -y install ./.cache/deb/dns11_*.deb >/dev/null && dns11 version'
  # A daemon of its own for it: the root has none that runs.
  "sudo sh -c 'PATH=\$PWD/.cache/node/bin:\$PATH node scripts/with-engine.mjs dns11 doctor'"
  'sudo apt-get -qq -y purge dns11 >/dev/null && ! command -v dns11'
  'chmod 700 ~ && sudo make run'
  'sudo git clone -q . /root/dns11 && sudo make -C /root/dns11 run'
)

work=$(mktemp -d "${TMPDIR:-/tmp}/d11-walk-XXXXXX")
readonly work
trap 'rm -rf --one-file-system "$work"' EXIT

make_root() {
  local root=$1 release=$2 home
  mmdebstrap --quiet --variant=minbase --include=$TOOLS "$release" "$root"
  chroot "$root" useradd --create-home --shell /bin/bash $USER_NAME
  echo "$USER_NAME ALL=(ALL) NOPASSWD: ALL" >"$root/etc/sudoers.d/$USER_NAME"
  # What this machine trusts, for downloads.
  cat /etc/ssl/certs/ca-certificates.crt >"$root/etc/ssl/certs/ca-certificates.crt"
  for home in "$root/root" "$root/home/$USER_NAME"; do
    echo 'cafile=/etc/ssl/certs/ca-certificates.crt' >"$home/.npmrc"
  done
  printf '127.0.0.1 localhost %s\n' "$(hostname)" >"$root/etc/hosts"
  git clone --quiet --no-hardlinks . "$root/home/$USER_NAME/dns11"
  chroot "$root" chown -R $USER_NAME: "/home/$USER_NAME"
  chmod 750 "$root/home/$USER_NAME"
}

# Reads a command from each line. A changed root alone would end where a program enters a mount namespace.
# shellcheck disable=SC2016
readonly INSIDE='
set -eu
mount --bind "$1" "$1"
cd "$1"
mount --rbind /sys sys && mount --make-rslave sys
mount --rbind /dev dev && mount --make-rslave dev
mount -t proc proc proc
mount -t tmpfs -o mode=755 run run
pivot_root . . && umount --lazy . && cd /
exec su --login ann --command "cd dns11 && while IFS= read -r command; do
  start=\$(date +%s)
  echo \"walk: \\\$ \$command\"
  (eval \"\$command\") </dev/null || { echo \"walk: failed: \$command\"; exit 1; }
  echo \"walk: \$((\$(date +%s) - start)) s: \$command\"
done"
'

walk() {
  local release=$1
  shift
  echo "walk: Debian $release"
  make_root "$work/$release" "$release"
  printf '%s\n' "$@" | unshare --mount --propagation private --pid --fork --kill-child sh -c "$INSIDE" sh "$work/$release"
}

main() {
  local release=${1-}
  if [ "$(id -u)" -ne 0 ]; then
    echo 'walk: a new root file system needs root; run this as root' >&2
    exit 1
  fi
  if [ $# -gt 1 ]; then
    shift
    walk "$release" "$@"
    return
  fi
  for release in ${release:-bookworm trixie}; do walk "$release" "${README_COMMANDS[@]}"; done
}

main "$@"
