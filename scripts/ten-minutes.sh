#!/bin/bash
# Somebody's first ten minutes with dns11, from the package to its removal: install, start, see names, break a container, find
# out why, mend it, uninstall, and see that nothing is left. Beside a private engine, which it starts and removes; of the
# machine it touches nothing. It fails where a step does not do what it says.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${DNS11_ENGINE_NETNS-}" ]; then exec node scripts/with-engine.mjs "$0" "$@"; fi

work=$(mktemp -d "${TMPDIR:-/tmp}/d11-ten-XXXXXX")
readonly work
export DNS11_STATE_DIR=$work/run PATH=$work/prefix/bin:$PATH:/usr/sbin:/sbin
step=0 daemon=''

finish() {
  local code=$?
  if [ -n "$daemon" ]; then kill -KILL "$daemon" 2>/dev/null || true; fi
  if [ "$code" -ne 0 ]; then
    printf '\nten minutes: step %s failed. What dns11 logged:\n' "$step" >&2
    tail -n 20 "$work/log" >&2 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap finish EXIT

say() {
  step=$((step + 1))
  printf '\n%s. %s\n' "$step" "$*"
}

fail() {
  printf '   NO: %s\n' "$*" >&2
  exit 1
}

# Shows a command and what it says.
show() {
  printf '   $ %s\n' "$*"
  "$@" 2>&1 | sed 's/^/   /'
}

# Waits until a command succeeds.
until_true() {
  local what=$1 tries
  shift
  for tries in {1..200}; do
    if "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.1
  done
  fail "$what, after $tries looks"
}

inside() {
  local name=$1
  shift
  nsenter --target "$(docker inspect --format '{{.State.Pid}}' "$name")" --net -- "$@"
}

# Docker's own answers live for 600 seconds, those of dns11 for 5.
answered_by() {
  local ttl
  ttl=$(inside web dig @127.0.0.11 +noall +answer +time=2 +tries=1 db | awk '{print $2; exit}')
  case $ttl in
    5) echo dns11 ;;
    600) echo Docker ;;
    *) echo nobody ;;
  esac
}

answers_from() {
  [ "$(answered_by)" = "$1" ]
}

# Of the column STATE.
web_is() {
  dns11 status | grep -Eq "^web +$1( |\$)"
}

# Exit code 0: healthy, 1: problems, others: could not look at everything.
doctor() {
  local code=0
  show dns11 doctor web || code=$?
  case $1:$code in
    broken:1) echo '   (the doctor found it)' ;;
    broken:*) fail "the doctor ended with $code, and names are broken" ;;
    healthy:1) fail 'the doctor finds problems where there are none' ;;
  esac
}

say 'Install dns11 from its npm package, into a folder of its own'
npm pack --silent --ignore-scripts --pack-destination "$work" >/dev/null
# Nothing that dns11 needs has to be compiled.
npm install --global --ignore-scripts --prefix "$work/prefix" --no-audit --no-fund --prefer-offline --loglevel=error "$work"/dns11-*.tgz >/dev/null
show dns11 version

say 'A small project, as it may run already: web and db on one network'
docker network create shop >/dev/null
for name in web db; do docker run --detach --name "$name" --network shop "$DNS11_IMAGE" >/dev/null; done
show docker exec web nslookup db 127.0.0.11
answers_from Docker || fail "Docker's own resolver should answer, and $(answered_by) does"

say 'What would dns11 do here? (It does nothing yet)'
show dns11 run --dry-run

say 'Start it'
dns11 run >"$work/log" 2>&1 &
daemon=$!
until_true 'web is not attached' web_is attached
show dns11 status

say 'The same name, answered by dns11; a container that comes is known at once'
answers_from dns11 || fail "dns11 should answer, and $(answered_by) does"
docker run --detach --name late --network shop --network-alias newcomer "$DNS11_IMAGE" >/dev/null
until_true 'the name of a new container is not known' docker exec web nslookup newcomer 127.0.0.11
show docker exec web nslookup newcomer 127.0.0.11

say 'Break it: a firewall in the container web that drops what goes to port 53'
inside web nft -f - <<'END'
table ip firewall {
  chain out {
    type filter hook output priority -200; policy accept;
    meta l4proto { tcp, udp } th dport 53 drop
  }
}
END
answers_from nobody || fail 'names still resolve'
until_true 'dns11 does not notice' web_is failed
echo '   Names in web do not resolve any more.'

say 'Why?'
show dns11 status
dns11 status | grep -E '^web ' | grep -q firewall || fail 'status does not name the firewall'
doctor broken

say 'Mend it: take that firewall away. dns11 comes back by itself'
inside web nft delete table ip firewall
until_true 'web is not attached again' web_is attached
answers_from dns11 || fail "dns11 should answer again, and $(answered_by) does"
doctor healthy
show dns11 status

say "Stop it: Docker's own resolver answers, as if nothing had been"
kill -TERM "$daemon"
wait "$daemon" || fail 'dns11 did not end well'
daemon=''
answers_from Docker || fail "Docker's own resolver should answer, and $(answered_by) does"
show dns11 cleanup

say 'Uninstall it, and look for what is left'
npm uninstall --global --prefix "$work/prefix" --loglevel=error dns11 >/dev/null
left=$(find "$work/prefix" -type f -o -type l)
[ -z "$left" ] || fail "files: $left"
left=$(ls "$DNS11_STATE_DIR")
[ -z "$left" ] || fail "state: $left"
for name in web db late; do
  left=$(inside "$name" nft list tables | grep dns11 || true)
  [ -z "$left" ] || fail "rules in $name: $left"
done
echo '   No file, no rule and no process of dns11 is left.'
