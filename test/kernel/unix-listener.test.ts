/**
 * The sockets in the state folder, whatever the umask: their files are made with a mode that lets nobody else in, and nothing is
 * left to be changed when they listen.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { connectTo, closeQuietly, listenOn, socket, AF_UNIX, SOCK_STREAM } from "../../src/kernel/libc.ts";
import { bindUnix, unixAddress } from "../../src/kernel/unix-listener.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { ScriptedEngine } from "../support/scripted/scripted-engine.ts";
import { waitFor } from "../support/rig/wait.ts";

const folder = mkdtempSync(join(tmpdir(), "d11-listener-"));
after(() => rmSync(folder, { recursive: true }));

test("a socket has its mode before anybody can connect, with any umask", () => {
  for (const [umask, sharedWith, mode] of [
    [0, undefined, 0o600],
    [0, 65_534, 0o660],
    [0o77, "own", 0o660],
  ] as const) {
    const path = join(folder, `${umask}-${sharedWith}`);
    const before = process.umask(umask);
    const listener = bindUnix(path, SOCK_STREAM, sharedWith);
    process.umask(before);
    const client = socket(AF_UNIX, SOCK_STREAM);
    try {
      const { mode: found, gid } = statSync(path);
      assert.deepEqual([found & 0o777, gid], [mode, sharedWith === 65_534 ? 65_534 : process.getgid?.()]);
      assert.throws(() => connectTo(client, unixAddress(path), path), { code: "ECONNREFUSED" });
      listenOn(listener, 1);
      connectTo(client, unixAddress(path), path);
    } finally {
      for (const fd of [listener, client]) closeQuietly(fd);
    }
  }
});

test("dns11 and its keeper change no mode of a socket that listens, and make none that others may use", async () => {
  const trace = join(folder, "trace");
  // strace is not its parent (-D), so a signal to the child reaches dns11.
  const calls = "trace=bind,listen,fchmod,chmod,fchmodat,chown,fchownat";
  const prefix = ["sh", "-c", 'umask 0; exec "$@"', "sh", "strace", "-D", "-f", "-qq", "-o", trace, "-e", calls];
  await using engine = await ScriptedEngine.start();
  await using dns11 = await startDns11(engine, { prefix });
  await waitFor("its keeper", async () => ((await dns11.status()).keeper.state === "watching" ? true : undefined));
  const lines = readFileSync(trace, "utf8").split("\n");
  for (const name of ["control.sock", "keeper/sock"]) {
    const bound = lines.findIndex((line) => line.includes("bind(") && line.includes(`${name}"`));
    const [, fd = ""] = /bind\((\d+),/.exec(lines[bound] ?? "") ?? [];
    const isCall = (call: string) => (line: string) => line.includes(`${call}(${fd}, `);
    const restricted = lines.slice(0, bound).findLast(isCall("fchmod"));
    assert.match(restricted ?? "", /0600\)\s+= 0$/, name);
    const listens = lines.findIndex((line, index) => index > bound && isCall("listen")(line));
    assert.ok(listens > bound, name);
    const later = lines.slice(listens).filter((line) => /ch(?:mod|own)/.test(line) && line.includes(`${name}"`));
    assert.deepEqual(later, [], name);
  }
});
