// What the package leaves when it is removed, and what it says of processes that go on: in a mount namespace with a /run of its own.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { run } from "../support/program/command.ts";

const POSTRM = fileURLToPath(new URL("../../../scripts/deb/postrm", import.meta.url));
/** Its name is not in the script as it is, which is the argument of a process, too. */
const KEEPER = `program=keeper-main
bash -c "exec -a '$program.js /run/dns11/x/keeper/keeper.sock' sleep 60" & at=$!
until tr '\\0' ' ' <"/proc/$at/cmdline" | grep -q $program.js; do :; done`;
const RUNNING = `exec 9<>/run/dns11/x/lock; flock 9`;
const KEPT = "lock nodes\n";

for (const [action, what, goesOn, said, left] of [
  ["remove", "a run has ended", "", /^$/, KEPT],
  ["purge", "a run has ended", "", /^$/, ""],
  ["remove", "its keeper refuses queries", KEEPER, /resolve nothing.*kill -KILL \d+\n$/, KEPT],
  ["purge", "its keeper refuses queries", KEEPER, /resolve nothing.*kill -KILL \d+\n$/, KEPT],
  ["remove", "it runs", RUNNING, /an instance is still running.*"pid":1/, KEPT],
] as const) {
  test(`${action}, where a container is to be restored, and ${what}`, async () => {
    const script = `set -e
      mount -t tmpfs tmpfs /run
      mount -t tmpfs tmpfs /var/lib
      mkdir -p /run/dns11/x/nodes
      echo '{"pid":1}' >/run/dns11/x/lock
      at=
      ${goesOn}
      sh ${POSTRM} ${action}
      if [ -d /run/dns11/x ]; then echo $(ls /run/dns11/x); fi
      if [ -n "$at" ]; then kill -KILL $at; fi`;
    const { code, stdout, stderr } = await run("unshare", ["--mount", "bash", "-c", script]);
    assert.equal(code, 0, stderr);
    assert.match(stderr, said);
    assert.equal(stdout, left);
  });
}
