#!/bin/bash
# Installs from Debian what the demo, the tests or the bench of dns11 run: scripts/setup.sh [demo|test|bench]. Says what
# is missing and what for; says and does nothing when nothing is. Starts no service: dns11's demo and tests start engines
# of their own and leave the machine's alone.
set -euo pipefail

# A command that has to be there, the package that brings it, and why. Asked for by command, not by package, so that a
# machine with Docker's own packages keeps them.
readonly DEMO='
dockerd     docker.io       the engine whose containers dns11 serves
docker      docker.io       the command to make containers with
iptables    iptables        rules of engines that use iptables
nft         nftables        rules of engines that use nftables, and a look at them
ip          iproute2        network namespaces of their own for the engines
nsenter     util-linux      entering the namespaces of containers
dig         bind9-dnsutils  asking questions inside containers
busybox     busybox-static  the only program in the containers
ps          procps          a look at what runs
'
readonly TEST_ONLY='
conntrack   conntrack       a look at the connections that the kernel tracks
dnsmasq     dnsmasq-base    a name server to ask, and to be measured beside
dnsperf     dnsperf         many questions at once
fish        fish            a shell whose completion is tried
groff       groff-base      a look at how the manual pages are written, by another one
mandoc      mandoc          a look at how the manual pages are written
mmdebstrap  mmdebstrap      root file systems of other Debian releases, for other versions of dockerd
strace      strace          a look at system calls
systemd-analyze systemd     a look at the unit, and a manager to run it under
unbound     unbound         another name server to ask, and to be measured beside
zsh         zsh             a shell whose completion is tried
'
# The bench leaves out what is not to be had of these; not every release of Debian has them.
readonly BENCH_ONLY='
aardvark-dns aardvark-dns   the name server of another container engine, to be measured beside
'
# Where programs lie that are for other programs.
readonly INNER_PATH=/usr/lib/podman:/usr/libexec/podman
readonly POLICY=/usr/sbin/policy-rc.d

say() {
  printf 'setup: %s\n' "$*"
}

fail() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}

# Containers hold nothing but busybox, so it must not need a library.
has() {
  local path
  path=$(command -v "$1") || return 1
  if [ "$1" = busybox ] && ldd "$path" >/dev/null 2>&1; then return 1; fi
}

# Debian asks this program before it starts the service of a package just installed; 101 means "do not".
deny_services() {
  if [ -e "$POLICY" ] || [ -L "$POLICY" ]; then mv "$POLICY" "$POLICY.dns11-aside"; fi
  trap allow_services EXIT
  trap 'exit 130' INT TERM HUP
  printf '#!/bin/sh\nexit 101\n' >"$POLICY"
  chmod 755 "$POLICY"
}

allow_services() {
  rm -f "$POLICY"
  if [ -e "$POLICY.dns11-aside" ] || [ -L "$POLICY.dns11-aside" ]; then mv "$POLICY.dns11-aside" "$POLICY"; fi
}

# Leaves in `known` the packages that are to be had, and those that have to be.
without_unknown() {
  local package
  known=()
  for package in "$@"; do
    if [[ $BENCH_ONLY == *" $package "* ]] && ! apt-cache show "$package" >/dev/null 2>&1; then
      say "$package is not to be had here; the bench goes without it"
    else
      known+=("$package")
    fi
  done
}

install_packages() {
  command -v apt-get >/dev/null || fail 'these come from Debian packages, and there is no apt-get here'
  export DEBIAN_FRONTEND=noninteractive
  deny_services
  say 'reading the package lists'
  apt-get -qq update
  # docker.io leaves the command to a package of its own from Debian 13 on; both names may be missing or known.
  if [[ " $* " == *' docker.io '* ]] && apt-cache show docker-cli >/dev/null 2>&1; then set -- "$@" docker-cli; fi
  without_unknown "$@"
  if [ ${#known[@]} -eq 0 ]; then return; fi
  set -- "${known[@]}"
  say "installing $*"
  apt-get -qq -y --no-install-recommends install "$@" >/dev/null
}

main() {
  local wanted=${1:-test} list missing=() known=() command package reason
  case $wanted in
    demo) list=$DEMO ;;
    test) list=$DEMO$TEST_ONLY ;;
    bench) list=$DEMO$TEST_ONLY$BENCH_ONLY ;;
    *) fail 'usage: scripts/setup.sh [demo|test|bench]' ;;
  esac
  if [ "$(id -u)" -ne 0 ]; then fail "the $wanted of dns11 needs root; run this as root, too"; fi
  export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:$INNER_PATH
  while read -r command package reason; do
    if [ -z "$command" ] || has "$command"; then continue; fi
    say "$package is missing: $reason"
    if [[ " ${missing[*]-} " != *" $package "* ]]; then missing+=("$package"); fi
  done <<<"$list"
  if [ ${#missing[@]} -eq 0 ]; then return; fi
  install_packages "${missing[@]}"
  say 'done; no service was started'
}

main "$@"
