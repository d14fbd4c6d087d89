#!/bin/bash
# Installs the Debian packages that the demo, the tests or the bench of dns11 need: scripts/setup.sh [demo|unit|test|bench|vm|docs|release].
# Prints what is missing and why. Starts no service: the demo and the tests start private engines and do not touch the
# system's engine.
set -euo pipefail

# A required command, its package, and why it is needed. Checked by command and not by package, so that a machine with
# Docker's own packages keeps them.
readonly DEMO='
dockerd     docker.io       the engine whose containers dns11 serves
docker      docker.io       the command that creates containers
iptables    iptables        rules of engines that use iptables
nft         nftables        rules of engines that use nftables, and listing them
ip          iproute2        private network namespaces for the engines
nsenter     util-linux      entering the namespaces of containers
dig         bind9-dnsutils  queries inside containers
busybox     busybox-static  the only program in the containers
ps          procps          listing processes
'
readonly UNIT='
fish        fish            testing shell completion
groff       groff-base      checking the manual pages with a second formatter
mandoc      mandoc          checking the manual pages
zsh         zsh             testing shell completion
'
readonly TEST_ONLY='
avahi-daemon avahi-daemon   names of the local network
chromium-headless-shell chromium-headless-shell opening the page of dns11 ui as a user does
conntrack   conntrack       listing conntrack entries
curl        curl            downloading with install.sh
dnsdist     dnsdist         a DNS server by TLS
dnsmasq     dnsmasq-base    a DNS server, as an upstream and for comparison
dnsperf     dnsperf         query load
dnstap-ldns dnstap-ldns     decoding what a reader of dnstap was sent
etcd        etcd-server     the store that machines share names through
kresd       knot-resolver   another DNS server by TLS
mmdebstrap  mmdebstrap      root file systems of other Debian releases, for other versions of dockerd
fstrm_capture fstrm-bin     a reader of dnstap
gcc         gcc             compiling a client for musl
musl-gcc    musl-tools      another C library, which resolves names in its own way
ipset       ipset           a firewall inside a container, as people have it
javac       default-jdk-headless an example in Java, and its resolver
python3     python3         an example in Python
qemu-system-x86_64 qemu-system-x86 booting other kernels
qemu-system-aarch64 qemu-system-arm booting other kernels, for arm64
named       bind9           a DNS server that logs what it is told of who asks
prometheus  prometheus      running the queries of the dashboard and the alerts
strace      strace          tracing system calls
systemd-analyze systemd     checking the unit, and running it
unbound     unbound         another DNS server, as an upstream and for comparison
'
# Not every Debian release has these; the bench skips what is not available.
readonly BENCH_ONLY='
aardvark-dns aardvark-dns   the DNS server of another container engine, for comparison
go          golang-go       compiling a client with the resolver of Go
'
readonly VM_ONLY='
busybox     busybox-static  the only program in the containers
curl        curl            the list of kernels
xz          xz-utils        the same
mmdebstrap  mmdebstrap      root file systems of other Debian releases
mke2fs      e2fsprogs       images of them
arch-test   arch-test       root file systems for arm64
qemu-aarch64-static qemu-user-static the same
qemu-system-x86_64 qemu-system-x86 booting them
qemu-system-aarch64 qemu-system-arm booting those for arm64
'
readonly DOCS_ONLY='
chromium-headless-shell chromium-headless-shell pictures of the page of dns11 ui
asciinema   asciinema       recording the demonstration in README
termtosvg   termtosvg       drawing that recording
'
readonly RELEASE_ONLY='
xz          xz-utils        compressing Debian packages
apt-get     apt             the Debian packages of the image
qemu-aarch64-static qemu-user-static starting the programs for arm64
'
# Folders of helper programs.
readonly INNER_PATH=/usr/lib/podman:/usr/libexec/podman
readonly POLICY=/usr/sbin/policy-rc.d
readonly OURS='# Of dns11, while it installs packages.'

say() {
  printf 'setup: %s\n' "$*"
}

fail() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}

# Containers contain only busybox, so it must be statically linked.
has() {
  local path
  path=$(command -v "$1") || return 1
  if [ "$1" = busybox ] && ldd "$path" >/dev/null 2>&1; then return 1; fi
}

# Debian runs this program before it starts the service of a newly installed package; exit code 101 forbids it.
deny_services() {
  # Waits for another run, and undoes what a killed one left.
  exec 9</var/lib/dpkg
  flock 9
  allow_services
  if [ -e "$POLICY" ] || [ -L "$POLICY" ]; then mv "$POLICY" "$POLICY.dns11-aside"; fi
  trap allow_services EXIT
  trap 'exit 130' INT TERM HUP
  printf '#!/bin/sh\n%s\nexit 101\n' "$OURS" >"$POLICY"
  chmod 755 "$POLICY"
}

allow_services() {
  if grep -qsxF "$OURS" "$POLICY"; then rm -f "$POLICY"; fi
  if [ -e "$POLICY" ] || [ -L "$POLICY" ]; then return; fi
  if [ -e "$POLICY.dns11-aside" ] || [ -L "$POLICY.dns11-aside" ]; then mv "$POLICY.dns11-aside" "$POLICY"; fi
}

# Sets `known` to the packages that are available, and to those that are required.
without_unknown() {
  local package
  known=()
  for package in "$@"; do
    if [[ $BENCH_ONLY == *" $package "* ]] && ! apt-cache show "$package" >/dev/null 2>&1; then
      say "$package is not available here; the bench skips it"
    else
      known+=("$package")
    fi
  done
}

install_packages() {
  command -v apt-get >/dev/null || fail 'these are Debian packages, and apt-get is not available'
  export DEBIAN_FRONTEND=noninteractive
  deny_services
  say 'reading the package lists'
  apt-get -qq update
  # From Debian 13 on the docker command has its own package.
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
    unit) list=$UNIT ;;
    test) list=$DEMO$UNIT$TEST_ONLY ;;
    bench) list=$DEMO$UNIT$TEST_ONLY$BENCH_ONLY ;;
    vm) list=$VM_ONLY ;;
    docs) list=$DEMO$DOCS_ONLY ;;
    release) list=$RELEASE_ONLY ;;
    *) fail 'usage: scripts/setup.sh [demo|unit|test|bench|vm|docs|release]' ;;
  esac
  if [ "$(id -u)" -ne 0 ] && [ "$wanted" != unit ]; then fail "the $wanted of dns11 needs root; run this as root"; fi
  export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:$INNER_PATH
  while read -r command package reason; do
    if [ -z "$command" ] || has "$command"; then continue; fi
    say "$package is missing: $reason"
    if [[ " ${missing[*]-} " != *" $package "* ]]; then missing+=("$package"); fi
  done <<<"$list"
  if [ ${#missing[@]} -eq 0 ]; then return; fi
  # The tests themselves need no root.
  if [ "$(id -u)" -ne 0 ]; then fail "install them first: sudo apt-get install -y --no-install-recommends ${missing[*]}"; fi
  install_packages "${missing[@]}"
  say 'done; no service was started'
}

main "$@"
