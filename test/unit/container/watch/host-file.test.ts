// Proves that changes of the host's resolv.conf are noticed however they are made: with real files, symlinks and folders in
// a root folder of the test, and real inotify watches.

import assert from "node:assert/strict";
import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { type TestContext, test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { HostFile, type HostServers, readHostServers } from "../../../../src/container/watch/host-file.ts";
import { pause, waitFor } from "../../../support/rig/wait.ts";
import { MachineRoot } from "../../support/machine-root.ts";

const FILE = "/etc/resolv.conf";
const STUB_FILE = "/run/systemd/resolve/stub-resolv.conf";
const UPLINKS = "/run/systemd/resolve/resolv.conf";
const A = "nameserver 192.0.2.1\n";
const B = "nameserver 192.0.2.2\n";
const STUB = "nameserver 127.0.0.53\noptions edns0 trust-ad\n";
// Longer than every delay before the file is trusted.
const QUIET_MS = LIMITS.hostFileMissingMs + LIMITS.hostFileBusyMs;

class Followed {
  readonly changes: string[] = [];
  readonly file: HostFile;

  constructor(t: TestContext, machine: { readonly root: number }, path?: string) {
    this.file = new HostFile({ host: () => machine, path, onChange: (now) => this.changes.push(textOf(now)) });
    t.after(() => this.file.close());
  }

  get now(): string {
    return textOf(this.file.now);
  }

  async waitFor(servers: string): Promise<void> {
    try {
      await waitFor(`"${servers}"`, () => (this.now === servers ? true : undefined));
    } catch (error) {
      throw new Error(`It is "${this.now}" after ${JSON.stringify(this.changes)}`, { cause: error });
    }
  }
}

function textOf({ servers }: HostServers): string {
  return servers.map(({ address, isBackup }) => (isBackup === true ? `(${address})` : address)).join(" ");
}

function machineOf(t: TestContext, files: Readonly<Record<string, string>>): MachineRoot {
  const machine = new MachineRoot(files);
  t.after(() => machine[Symbol.dispose]());
  return machine;
}

function relink(machine: MachineRoot, path: string, target: string): void {
  symlinkSync(target, `${machine.at(path)}.new`);
  renameSync(`${machine.at(path)}.new`, machine.at(path));
}

test("the file at the start is read at once and is not reported as a change", async (t) => {
  const followed = new Followed(t, machineOf(t, { [FILE]: A + B }));
  assert.equal(followed.now, "192.0.2.1 192.0.2.2");
  await pause(LIMITS.hostFileQuietMs * 2);
  assert.deepEqual(followed.changes, []);
});

// The ways in which programs change a file; each starts with A and ends with B.
for (const [what, act] of [
  ["written to in place", (machine) => machine.write(FILE, B)],
  [
    "replaced by another one",
    (machine) => {
      machine.write("/etc/new", B);
      renameSync(machine.at("/etc/new"), machine.at(FILE));
    },
  ],
  [
    "removed and re-created",
    (machine) => {
      unlinkSync(machine.at(FILE));
      machine.write(FILE, B);
    },
  ],
  [
    "moved away, as editors do, and re-created",
    (machine) => {
      renameSync(machine.at(FILE), machine.at(`${FILE}~`));
      machine.write(FILE, B);
    },
  ],
  [
    "replaced by a link",
    (machine) => {
      machine.write("/run/resolvconf/resolv.conf", B);
      relink(machine, FILE, "../run/resolvconf/resolv.conf");
    },
  ],
  [
    "in a folder that is removed and re-created",
    (machine) => {
      rmSync(machine.at("/etc"), { recursive: true });
      machine.write(FILE, B);
    },
  ],
  [
    "in a folder that another one replaces",
    (machine) => {
      machine.write("/etc.new/resolv.conf", B);
      renameSync(machine.at("/etc"), machine.at("/etc.old"));
      renameSync(machine.at("/etc.new"), machine.at("/etc"));
    },
  ],
] as const satisfies readonly (readonly [string, (machine: MachineRoot) => void])[]) {
  test(`a file that is ${what} is noticed, and so are its later changes`, async (t) => {
    const machine = machineOf(t, { [FILE]: A });
    const followed = new Followed(t, machine);
    act(machine);
    await followed.waitFor("192.0.2.2");
    machine.write(FILE, A);
    await followed.waitFor("192.0.2.1");
    assert.deepEqual(followed.changes, ["192.0.2.2", "192.0.2.1"]);
  });
}

test("a symlink and its target are watched, through folders that come and go", async (t) => {
  const machine = machineOf(t, { [STUB_FILE]: A, "/run/other/resolv.conf": B });
  mkdirSync(machine.at("/etc"));
  relink(machine, FILE, "../run/systemd/resolve/stub-resolv.conf");
  const followed = new Followed(t, machine);
  machine.write(STUB_FILE, B);
  await followed.waitFor("192.0.2.2");
  rmSync(machine.at("/run/systemd"), { recursive: true });
  await pause(LIMITS.hostFileQuietMs * 2);
  machine.write(STUB_FILE, A);
  await followed.waitFor("192.0.2.1");
  relink(machine, FILE, "../run/other/resolv.conf");
  await followed.waitFor("192.0.2.2");
  machine.write("/run/other/resolv.conf", A);
  await followed.waitFor("192.0.2.1");
  assert.deepEqual(followed.changes, ["192.0.2.2", "192.0.2.1", "192.0.2.2", "192.0.2.1"]);
});

test("absolute symlinks stay inside the root, and none can leave it", async (t) => {
  const machine = machineOf(t, { "/run/here/resolv.conf": A });
  mkdirSync(machine.at("/etc"));
  mkdirSync(machine.at("/var"));
  symlinkSync("/run", machine.at("/var/run"));
  symlinkSync("/../../var/run/../run/here/resolv.conf", machine.at(FILE));
  const followed = new Followed(t, machine);
  assert.equal(followed.now, "192.0.2.1");
  machine.write("/run/here/resolv.conf", B);
  await followed.waitFor("192.0.2.2");
});

test("a symlink loop counts as no file, until it is resolved", async (t) => {
  const machine = machineOf(t, {});
  mkdirSync(machine.at("/etc"));
  symlinkSync("other.conf", machine.at(FILE));
  symlinkSync("resolv.conf", machine.at("/etc/other.conf"));
  const followed = new Followed(t, machine);
  assert.equal(followed.now, "");
  relink(machine, FILE, "real.conf");
  machine.write("/etc/real.conf", A);
  await followed.waitFor("192.0.2.1");
});

test("a file that appears later, with all its folders, is noticed", async (t) => {
  const machine = machineOf(t, {});
  const followed = new Followed(t, machine, "/opt/dns/resolv.conf");
  mkdirSync(machine.at("/opt"));
  await pause(LIMITS.hostFileQuietMs * 2);
  machine.write("/opt/dns/resolv.conf", A);
  await followed.waitFor("192.0.2.1");
});

test("a file that is written by another path is noticed", async (t) => {
  // As in a container whose resolv.conf is a bind mount of another engine's file.
  const machine = machineOf(t, { [FILE]: A });
  const followed = new Followed(t, machine);
  writeFileSync(`/proc/self/fd/${machine.root}${FILE}`, B);
  await followed.waitFor("192.0.2.2");
});

/** A busy machine makes the moment too long to prove anything; then `act` starts over. */
async function inOneMoment(act: () => Promise<Followed>): Promise<Followed> {
  return await waitFor("a moment that is short enough", async () => {
    const sinceMs = performance.now();
    const followed = await act();
    const isShort = performance.now() - sinceMs < LIMITS.hostFileMissingMs * 0.8;
    if (!isShort) followed.file.close();
    return isShort ? followed : undefined;
  });
}

test("a file that is empty or missing for a moment changes nothing", async (t) => {
  const machine = machineOf(t, { [FILE]: A });
  const followed = await inOneMoment(async () => {
    const each = new Followed(t, machine);
    machine.write(FILE, "");
    await pause(LIMITS.hostFileQuietMs * 2);
    unlinkSync(machine.at(FILE));
    await pause(LIMITS.hostFileQuietMs * 2);
    machine.write(FILE, A);
    return each;
  });
  await pause(QUIET_MS);
  assert.deepEqual([followed.now, followed.changes], ["192.0.2.1", []]);
});

test("a file that stays empty is a change, once, and one that comes back is, too", async (t) => {
  const machine = machineOf(t, { [FILE]: A });
  const followed = new Followed(t, machine);
  machine.write(FILE, "# empty\n");
  await followed.waitFor("");
  await pause(QUIET_MS);
  machine.write(FILE, B);
  await followed.waitFor("192.0.2.2");
  assert.deepEqual(followed.changes, ["", "192.0.2.2"]);
});

test("a burst of changes is reported once", async (t) => {
  const machine = machineOf(t, { [FILE]: A });
  const followed = new Followed(t, machine);
  for (let last = 2; last <= 50; last++) machine.write(FILE, `nameserver 192.0.2.${last}\n`);
  await followed.waitFor("192.0.2.50");
  await pause(QUIET_MS);
  assert.deepEqual(followed.changes, ["192.0.2.50"]);
});

test("changes that never stop are reported, too", async (t) => {
  const machine = machineOf(t, { [FILE]: A });
  const followed = new Followed(t, machine);
  const writer = setInterval(() => machine.write(FILE, B), LIMITS.hostFileQuietMs / 5);
  t.after(() => clearInterval(writer));
  await followed.waitFor("192.0.2.2");
});

test("other text around the same servers is not a change", async (t) => {
  const machine = machineOf(t, { [FILE]: A });
  const followed = new Followed(t, machine);
  machine.write(FILE, `# a comment\nsearch example.org\noptions ndots:2\n${A}nameserver invalid\n`);
  await pause(QUIET_MS);
  assert.deepEqual(followed.changes, []);
});

test("the upstreams of systemd-resolved's stub are used as backups, and their change is a change", async (t) => {
  const machine = machineOf(t, { [FILE]: STUB, [UPLINKS]: `${A}nameserver 127.0.0.1\nnameserver ::1\n` });
  const followed = new Followed(t, machine);
  assert.equal(followed.now, "127.0.0.53 (192.0.2.1)");
  machine.write(UPLINKS, B);
  await followed.waitFor("127.0.0.53 (192.0.2.2)");
  machine.write(FILE, A);
  await followed.waitFor("192.0.2.1");
  machine.write(UPLINKS, A);
  machine.write(FILE, "nameserver 127.0.0.54\n");
  await followed.waitFor("127.0.0.54 (192.0.2.1)");
  assert.deepEqual(followed.changes, ["127.0.0.53 (192.0.2.2)", "192.0.2.1", "127.0.0.54 (192.0.2.1)"]);
});

test("a change of the stub's upstreams is reported even if there are too many to use", async (t) => {
  const many = Array.from({ length: LIMITS.hostServers }, (_, index) => `nameserver 192.0.2.${index}\n`).join("");
  const machine = machineOf(t, { [FILE]: STUB, [UPLINKS]: many });
  const followed = new Followed(t, machine);
  const before = followed.now;
  machine.write(UPLINKS, `${many}nameserver 192.0.2.99\n`);
  await waitFor("the change", () => (followed.changes.length > 0 ? true : undefined));
  assert.deepEqual(followed.changes, [before]);
});

test("a stub without upstreams for a moment, as when systemd-resolved restarts, changes nothing", async (t) => {
  const machine = machineOf(t, { [FILE]: STUB, [UPLINKS]: A });
  const followed = await inOneMoment(async () => {
    const each = new Followed(t, machine);
    rmSync(machine.at("/run/systemd"), { recursive: true });
    await pause(LIMITS.hostFileQuietMs * 2);
    machine.write(UPLINKS, A);
    return each;
  });
  await pause(QUIET_MS);
  assert.deepEqual([followed.now, followed.changes], ["127.0.0.53 (192.0.2.1)", []]);
});

test("another root, as after a restart of the engine, is used after reread() and watched from then on", async (t) => {
  const [first, second] = [machineOf(t, { [FILE]: A }), machineOf(t, { [FILE]: B })];
  const place = { root: first.root };
  const followed = new Followed(t, place);
  place.root = second.root;
  followed.file.reread();
  assert.deepEqual(followed.changes, ["192.0.2.2"]);
  second.write(FILE, A);
  await followed.waitFor("192.0.2.1");
  followed.file.reread();
  assert.deepEqual(followed.changes, ["192.0.2.2", "192.0.2.1"]);
});

test("after close() nothing is watched", async (t) => {
  const machine = machineOf(t, { [FILE]: A });
  const followed = new Followed(t, machine);
  machine.write(FILE, B);
  followed.file.close();
  await pause(QUIET_MS);
  assert.deepEqual(followed.changes, []);
});

for (const [what, text, expected] of [
  ["each once, however it is written", `${A}${A}nameserver 2001:db8::1\nnameserver 2001:DB8:0::1\n`, 2],
  ["the same address in two zones twice", "nameserver fe80::1%eth0\nnameserver fe80::1%eth1\n", 2],
  ["of very many the first", Array.from({ length: 99 }, (_, index) => `nameserver 192.0.2.${index}\n`).join(""), 8],
] as const) {
  test(`the file's servers are ${what}`, () => {
    using machine = new MachineRoot({ [FILE]: text });
    assert.equal(readHostServers(machine).servers.length, expected);
  });
}

test("all servers are queried from the host at port 53, and only the upstreams of a stub are backups", () => {
  using machine = new MachineRoot({ [FILE]: STUB, [UPLINKS]: `${A}nameserver 127.0.0.53\n` });
  assert.deepEqual(readHostServers(machine).servers, [
    { from: "host", address: "127.0.0.53", port: 53 },
    { from: "host", address: "192.0.2.1", port: 53, isBackup: true },
  ]);
  machine.write(FILE, `${STUB}${B}`);
  assert.deepEqual(readHostServers(machine).servers, [
    { from: "host", address: "127.0.0.53", port: 53 },
    { from: "host", address: "192.0.2.2", port: 53 },
  ]);
});

test("a file over the size limit is read up to the last whole line", () => {
  const line = "nameserver 192.0.2.1\n";
  using machine = new MachineRoot({
    [FILE]: `#${"-".repeat(64 * 1024 - line.length - 20)}\n${line}nameserver 192.0.2.255\n`,
  });
  assert.deepEqual(readHostServers(machine).nameservers, ["192.0.2.1"]);
});

test("invalid addresses are returned for a warning", () => {
  using machine = new MachineRoot({ [FILE]: `nameserver dns.example\n${A}` });
  assert.deepEqual(readHostServers(machine).invalid, ["dns.example"]);
});
