// Proves how the engine's own list of nameservers is determined: with real processes named dockerd, their command lines and
// files.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, realpathSync, symlinkSync } from "node:fs";
import { test } from "node:test";

import { sleepSync } from "../../../../src/base/lib/async.ts";
import { DaemonDns } from "../../../../src/container/watch/daemon-dns.ts";
import { MachineRoot } from "../../support/machine-root.ts";

const USUAL = "/etc/docker/daemon.json";

class FakeDaemon implements Disposable {
  readonly #process: ChildProcess;

  // A shell that waits for input for ever, with an engine's arguments in its command line.
  constructor(machine: MachineRoot, words: readonly string[], program = "dockerd") {
    mkdirSync(machine.at("/usr/bin"), { recursive: true });
    copyFileSync(realpathSync("/bin/sh"), machine.at(`/usr/bin/${program}`));
    this.#process = spawn(machine.at(`/usr/bin/${program}`), ["-c", "read word", ...words], {
      stdio: ["pipe", "ignore", "ignore"],
    });
    // The kernel shows its words a moment after its name.
    while (readFileSync(`/proc/${this.pid}/cmdline`).length === 0) sleepSync(1);
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  [Symbol.dispose](): void {
    this.#process.kill("SIGKILL");
  }
}

type Case = { readonly words?: readonly string[]; readonly files?: Readonly<Record<string, string>> };

function listOf({ words = [], files = {} }: Case, program?: string): readonly string[] | undefined {
  using machine = new MachineRoot(files);
  using daemon = new FakeDaemon(machine, words, program);
  const host = { pid: daemon.pid, root: machine.root, sharesPids: true };
  return new DaemonDns(() => host).readServers();
}

for (const [what, oneCase] of [
  ["no word and no file", {}],
  ["a file without it", { files: { [USUAL]: '{"log-driver":"local"}' } }],
  ["a file with an empty list", { files: { [USUAL]: '{"dns":[]}' } }],
  ["search domains and options", { words: ["--dns-search", "lan", "--dns-opt=ndots:1"] }],
  ["another file without it", { words: ["--config-file", "/opt/d.json"], files: { "/opt/d.json": "{}" } }],
  [
    "another file without it, beside the usual one with it",
    { words: ["--config-file=/opt/d.json"], files: { "/opt/d.json": "{}", [USUAL]: '{"dns":["192.0.2.1"]}' } },
  ],
] as const) {
  test(`an engine with ${what} gives no list`, () => assert.deepEqual(listOf(oneCase), []));
}

for (const [what, oneCase] of [
  ["a server as a separate argument", { words: ["--dns", "192.0.2.1"] }],
  ["a server in one word", { words: ["--debug", "--dns=192.0.2.1"] }],
  ["a server in its file", { files: { [USUAL]: '{"dns":["192.0.2.1"]}' } }],
  [
    "a server in another file",
    { words: ["--config-file=/opt/d.json"], files: { "/opt/d.json": '{"dns":["192.0.2.1"]}' } },
  ],
] as const) {
  test(`an engine with ${what} gives the list to every container`, () =>
    assert.deepEqual(listOf(oneCase), ["192.0.2.1"]));
}

for (const [what, oneCase] of [
  ["another file that is not there", { words: ["--config-file=/opt/d.json"] }],
  ["a file that cannot be understood", { files: { [USUAL]: '{"dns":' } }],
  ["a file with something else in its place", { files: { [USUAL]: '{"dns":"192.0.2.1"}' } }],
  ["a file with something else in the list", { files: { [USUAL]: '{"dns":[4]}' } }],
  ["a server that is no address", { words: ["--dns", "one"] }],
  ["a file that is no settings", { files: { [USUAL]: "null" } }],
  ["servers in both places", { words: ["--dns", "192.0.2.1"], files: { [USUAL]: '{"dns":["192.0.2.2"]}' } }],
] as const) {
  test(`the list of an engine with ${what} cannot be determined`, () => assert.equal(listOf(oneCase), undefined));
}

test("the file is read in the engine's own root, following its symlinks", () => {
  using machine = new MachineRoot({ "/usr/lib/engine.json": '{"dns":["192.0.2.1"]}' });
  mkdirSync(machine.at("/etc/docker"), { recursive: true });
  symlinkSync("/usr/lib/engine.json", machine.at(USUAL));
  using daemon = new FakeDaemon(machine, []);
  const host = { pid: daemon.pid, root: machine.root, sharesPids: true };
  assert.deepEqual(new DaemonDns(() => host).readServers(), ["192.0.2.1"]);
});

test("a process of another name is not an engine, so the list cannot be determined", () => {
  assert.equal(listOf({}, "systemd"), undefined);
});

for (const [what, words, sharesPids, expected] of [
  ["that takes its sockets from the service manager is the one", ["-H", "fd://"], true, []],
  ["with its own sockets is another one", ["-H", "unix:///run/docker.sock"], true, undefined],
  ["of other process numbers is not to be found", ["-H", "fd://"], false, undefined],
  ["with a server gives a list", ["-H", "fd://", "--dns", "192.0.2.1"], true, ["192.0.2.1"]],
] as const) {
  test(`behind the socket of a service manager, an engine ${what}`, () => {
    using machine = new MachineRoot();
    using daemon = new FakeDaemon(machine, words);
    using manager = new FakeDaemon(machine, [], "systemd");
    machine.write("/var/run/docker.pid", `${daemon.pid}`);
    const host = { pid: manager.pid, root: machine.root, sharesPids };
    assert.deepEqual(new DaemonDns(() => host).readServers(), expected);
  });
}

test("settings are read once for each engine process", () => {
  using machine = new MachineRoot();
  using daemon = new FakeDaemon(machine, []);
  let host = { pid: daemon.pid, root: machine.root, sharesPids: true };
  const dns = new DaemonDns(() => host);
  assert.deepEqual(dns.readServers(), []);
  machine.write(USUAL, '{"dns":["192.0.2.1"]}');
  assert.deepEqual(dns.readServers(), []);
  host = { ...host };
  assert.deepEqual(dns.readServers(), ["192.0.2.1"]);
});
