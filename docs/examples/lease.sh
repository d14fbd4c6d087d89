#!/bin/bash
# Faults in DNS for a test in bash, with curl: lease.sh CONTROL_SOCKET CONTAINER NAME
# Rules are in force when `ask` returns, and gone with curl, which ends with this shell.
set -euo pipefail
socket=$1 container=$2 name=$3

# "." and not "-": replies are printed while curl waits for the next line.
coproc curl --silent --no-buffer --unix-socket "$socket" -X POST -T . http://dns11/v1/lease

# Sends a line, and prints the one that answers it.
ask() {
  local reply
  printf '%s\n' "$1" >&"${COPROC[1]}"
  read -r reply <&"${COPROC[0]}"
  printf '%s\n' "$reply"
  [[ $reply != *'"error":'* ]]
}

ask '{"rule": {"name": "'"$name"'", "action": "servfail", "count": 2, "in": {"container": "'"$container"'"}}}'
echo 'in force'
read -r _ || true
ask '{"report": true}'
