#!/bin/bash
# The first ten minutes of a new user, from installation to removal: install, start, resolve names, break a container,
# diagnose and repair it, uninstall, and check that nothing is left. It starts and removes a private engine and touches nothing
# else on the machine. It fails where a step does not work as described.
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
  printf '   FAILED: %s\n' "$*" >&2
  exit 1
}

# Shows a command and its output.
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
  fail "$what, after $tries tries"
}

inside() {
  local name=$1
  shift
  nsenter --target "$(docker inspect --format '{{.State.Pid}}' "$name")" --net -- "$@"
}

# Docker's own answers have a TTL of 600 seconds, those of dns11 5.
answered_by() {
  local ttl
  ttl=$(inside web dig @127.0.0.11 +noall +answer +time=10 +tries=1 db | awk '{print $2; exit}')
  case $ttl in
    5) echo dns11 ;;
    600) echo Docker ;;
    *) echo nobody ;;
  esac
}

answers_from() {
  [ "$(answered_by)" = "$1" ]
}

# Matches the column STATE.
web_is() {
  dns11 ps | grep -Eq "^web +$1( |\$)"
}

# Exit code 1: problems, others: some checks could not run.
doctor_finds_it() {
  local code=0
  show dns11 doctor web || code=$?
  [ "$code" -eq 1 ] || fail "the doctor exited with $code although names do not resolve"
  echo '   (the doctor found it)'
}

say 'Install dns11 from its npm package, into a separate folder'
npm pack --silent --ignore-scripts --pack-destination "$work" >/dev/null
# No dependency of dns11 has to be compiled.
npm install --global --ignore-scripts --prefix "$work/prefix" --no-audit --no-fund --prefer-offline --loglevel=error "$work"/dns11-*.tgz >/dev/null
show dns11 version

say 'A small project that runs already: web and db on one network'
docker network create shop >/dev/null
for name in web db; do docker run --detach --name "$name" --network shop "$DNS11_IMAGE" >/dev/null; done
show docker exec web nslookup db 127.0.0.11
answers_from Docker || fail "expected an answer of Docker's own resolver, got one of $(answered_by)"

say 'Preview what dns11 would do, without changing anything'
show dns11 run --dry-run

say 'Start it'
dns11 run >"$work/log" 2>&1 &
daemon=$!
until_true 'web is not attached' web_is ok
show dns11 status

say 'dns11 answers the same name now; new containers are known at once'
answers_from dns11 || fail "expected an answer of dns11, got one of $(answered_by)"
docker run --detach --name late --network shop --network-alias newcomer "$DNS11_IMAGE" >/dev/null
until_true 'the name of a new container does not resolve' docker exec web nslookup newcomer 127.0.0.11
show docker exec web nslookup newcomer 127.0.0.11

say 'Break it: db is moved to a network on which web is not'
docker network create back >/dev/null
docker network disconnect shop db
docker network connect back db
resolves_db() {
  docker exec web nslookup db 127.0.0.11 >/dev/null 2>&1
}
until_true 'db still resolves in web' eval '! resolves_db'
echo '   db no longer resolves in web.'

say 'Find out why'
show dns11 failures
doctor_finds_it
show dns11 explain db --in web

say 'Fix it, with the command that explain prints'
fix=$(dns11 explain db --in web | sed -n 's/^ *fix *\(docker .*\)$/\1/p')
[ -n "$fix" ] || fail 'explain prints no fix'
# shellcheck disable=SC2086 # It is a command with its arguments.
show $fix
until_true 'db does not resolve in web after the fix' resolves_db
until_true 'the doctor is not content after the fix' dns11 doctor web
show dns11 ps

say "Stop it: Docker's own resolver answers as before"
kill -TERM "$daemon"
wait "$daemon" || fail 'dns11 failed while stopping'
daemon=''
answers_from Docker || fail "expected an answer of Docker's own resolver, got one of $(answered_by)"
show dns11 cleanup

say 'Uninstall it, and check for leftovers'
npm uninstall --global --prefix "$work/prefix" --loglevel=error dns11 >/dev/null
left=$(find "$work/prefix" -type f -o -type l)
[ -z "$left" ] || fail "files: $left"
left=$(ls "$DNS11_STATE_DIR")
[ -z "$left" ] || fail "state: $left"
for name in web db late; do
  left=$(inside "$name" nft list tables | grep dns11 || true)
  [ -z "$left" ] || fail "rules in $name: $left"
done
echo '   No files, rules or processes of dns11 are left.'
