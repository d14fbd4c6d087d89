// Tests that our address is written into a node's resolv.conf and removed again, and that other writers of the file are not
// fought: with a real file, real shells that write it, KIND's entrypoint among them, and inotify.

import assert from "node:assert/strict";
import { appendFileSync, readFileSync, rmSync, statSync, truncateSync, utimesSync } from "node:fs";
import { type TestContext, test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import type { ResolvConfRecord } from "../../../../src/container/files/journal.ts";
import {
  ResolvConfWriter,
  isOurs,
  reactionTo,
  restoreFile,
} from "../../../../src/container/files/resolv-conf-writer.ts";
import { ResolvConfFile, intermediateTexts } from "../../../../src/container/files/resolv-conf-file.ts";
import { nameserversIn } from "../../../../src/container/files/resolv-conf-text.ts";
import { openInRoot } from "../../../../src/kernel/libc.ts";
import { check } from "../../../support/program/command.ts";
import { pause, waitFor } from "../../../support/rig/wait.ts";
import { MachineRoot } from "../../support/machine-root.ts";
import { NEEDS_ROOT } from "../../support/needs-root.ts";
import { NodeMount } from "../../support/node-mount.ts";

const PATH = "/containers/c/resolv.conf";
const OURS = "172.18.0.1";
const CHANGE = { addresses: [OURS], search: undefined };
const DOCKER = "# \xfc by Docker\nnameserver 127.0.0.11\noptions ndots:0\n";
const WRITTEN = "# \xfc by Docker\nnameserver 172.18.0.1\noptions ndots:0\n";
// Longer than all delays before a change is handled.
const SETTLED_MS = LIMITS.hostFileMissingMs + LIMITS.hostFileBusyMs;

// What KIND's entrypoint does to the file: $1 is the file, $2 its copy, $3 the address.
const ENTRYPOINT = `
cp "$1" "$2"
replaced="$(sed -e "s/127.0.0.11/$3/g" "$2")"
if test -n "$4"; then
  { echo "search $4"; echo "$replaced" | grep -av "^search"; } > "$1"
else
  echo "$replaced" > "$1"
fi
`;

class Node {
  readonly machine: MachineRoot;
  readonly file: ResolvConfFile;
  readonly writer: ResolvConfWriter;
  readonly saved: { original: string; written: string; found: string }[] = [];
  readonly reported: string[] = [];

  constructor(t: TestContext, text = DOCKER, machine = new MachineRoot()) {
    this.machine = machine;
    t.after(() => machine[Symbol.dispose]());
    this.write(text);
    this.file = new ResolvConfFile((flags) => openInRoot(machine.root, PATH, flags));
    this.writer = this.another(t);
  }

  // A writer of a later process.
  another(t: TestContext, file = this.file): ResolvConfWriter {
    const writer = new ResolvConfWriter({
      file,
      save: ({ original, written }) =>
        this.saved.push({
          original: original.toString("latin1"),
          written: written.toString("latin1"),
          found: this.text,
        }),
      onRewritten: (reaction, nameservers) => this.reported.push(`${reaction}: ${nameservers.join(" ")}`),
    });
    t.after(() => writer.close());
    return writer;
  }

  get path(): string {
    return this.machine.at(PATH);
  }

  get text(): string {
    return readFileSync(this.path, "latin1");
  }

  get record(): ResolvConfRecord {
    const { original = "", written = "" } = this.saved.at(-1) ?? {};
    return {
      path: PATH,
      original: Buffer.from(original, "latin1").toString("base64"),
      written: Buffer.from(written, "latin1").toString("base64"),
    };
  }

  // In place, with an old modification time, so that no write seems to be in progress.
  write(text: string): void {
    this.machine.write(PATH, "");
    appendFileSync(this.path, text, "latin1");
    const before = Date.now() / 1000 - 60;
    utimesSync(this.path, before, before);
  }

  restore(): string {
    const { original, written } = this.record;
    return restoreFile(this.file, {
      original: Buffer.from(original, "base64"),
      written: Buffer.from(written, "base64"),
    });
  }

  async waitForReport(what: string): Promise<void> {
    await waitFor(`"${what}"; reported so far: ${JSON.stringify(this.reported)}`, () =>
      this.reported.includes(what) ? true : undefined,
    );
    this.reported.length = 0;
  }

  async entrypoint(address: string, search = ""): Promise<void> {
    await check("sh", ["-c", ENTRYPOINT, "entrypoint", this.path, `${this.path}.original`, address, search]);
  }
}

test("Docker's file is rewritten, after its text was saved", (t) => {
  const node = new Node(t);
  const { ino } = statSync(node.path);
  assert.deepEqual(node.writer.advertise(CHANGE), {
    outcome: "advertised",
    addresses: [OURS],
    original: Buffer.from(DOCKER, "latin1"),
    written: Buffer.from(WRITTEN, "latin1"),
  });
  assert.equal(node.text, WRITTEN);
  assert.deepEqual(node.saved, [{ original: DOCKER, written: WRITTEN, found: DOCKER }]);
  assert.equal(statSync(node.path).ino, ino);
  assert.equal(node.restore(), "restored");
  assert.equal(node.text, DOCKER);
  assert.equal(statSync(node.path).ino, ino);
});

test("if saving fails, nothing is written", (t) => {
  const node = new Node(t);
  const writer = new ResolvConfWriter({
    file: node.file,
    save: () => {
      throw new Error("no room");
    },
    onRewritten: () => {},
  });
  assert.throws(() => writer.advertise(CHANGE), /no room/);
  writer.close();
  assert.equal(node.text, DOCKER);
});

test("a text that is noticed only when addresses are advertised is reported like any other", (t) => {
  const node = new Node(t);
  node.writer.advertise(CHANGE);
  node.write("nameserver 192.0.2.200\n");
  node.writer.check();
  node.write("nameserver 192.0.2.201\n");
  assert.equal(node.writer.advertise(CHANGE).outcome, "accepted");
  node.writer.check();
  assert.deepEqual(node.reported, ["foreign: 192.0.2.200", "foreign: 192.0.2.201"]);
});

test("an address that is advertised already is not written again", (t) => {
  const node = new Node(t);
  const first = node.writer.advertise(CHANGE);
  const { mtimeMs } = statSync(node.path);
  assert.deepEqual(node.writer.advertise(CHANGE), first);
  assert.deepEqual(node.writer.advertise({ ...CHANGE, record: node.record }), first);
  assert.equal(statSync(node.path).mtimeMs, mtimeMs);
  assert.equal(node.saved.length, 1);
});

test("a change of addresses or search list starts from the original", (t) => {
  const node = new Node(t);
  node.writer.advertise(CHANGE);
  const { original } = node.saved[0] ?? {};
  node.writer.advertise({ addresses: ["10.0.0.1", "fd00::1"], search: "corp b\u00fccher" });
  assert.equal(original, DOCKER);
  assert.equal(
    Buffer.from(node.text, "latin1").toString("latin1"),
    `search corp ${Buffer.from("b\u00fccher").toString("latin1")}\n# \xfc by Docker\nnameserver 10.0.0.1\nnameserver fd00::1\noptions ndots:0\n`,
  );
  assert.equal(node.saved.at(-1)?.original, DOCKER);
  node.writer.advertise(CHANGE);
  assert.equal(node.text, WRITTEN);
  assert.equal(node.restore(), "restored");
  assert.equal(node.text, DOCKER);
});

test("a later process continues from the record of a killed one", (t) => {
  const node = new Node(t);
  const first = node.writer.advertise(CHANGE);
  node.writer.close();
  const later = node.another(t);
  assert.deepEqual(later.advertise({ ...CHANGE, record: node.record }), first);
  assert.equal(node.saved.length, 1);
  assert.equal(node.restore(), "restored");
  assert.equal(node.text, DOCKER);
});

for (const [what, textOf] of [
  ["before the first byte", () => DOCKER],
  ["with the file made longer", (from: string, to: string) => intermediateTexts(from, to)[0] ?? ""],
  ["with the text written over", (from: string, to: string) => intermediateTexts(from, to)[1] ?? ""],
  ["on the way back, with the file made longer", (from: string, to: string) => intermediateTexts(to, from)[0] ?? ""],
  ["on the way back, with the text written over", (from: string, to: string) => intermediateTexts(to, from)[1] ?? ""],
] as const) {
  for (const search of ["a.long.search.list.corp.example", undefined] as const) {
    test(`killed ${what}, ${search === undefined ? "as long" : "longer"}: the write is completed, and the file restored`, (t) => {
      const node = new Node(t);
      const change = { addresses: [OURS], search };
      node.writer.advertise(change);
      node.writer.close();
      const { written = "" } = node.saved[0] ?? {};
      node.write(textOf(DOCKER, written));
      assert.equal(node.another(t).advertise({ ...change, record: node.record }).outcome, "advertised");
      assert.equal(node.text, written);
      node.write(textOf(DOCKER, written));
      assert.equal(node.restore(), "restored");
      assert.equal(node.text, DOCKER);
    });
  }
}

test("nameservers of another program are accepted", (t) => {
  const node = new Node(t, "nameserver 10.89.0.1\nnameserver fd00::1\n");
  const { mtimeMs } = statSync(node.path);
  assert.deepEqual(node.writer.advertise(CHANGE), { outcome: "accepted", addresses: ["10.89.0.1", "fd00::1"] });
  assert.equal(statSync(node.path).mtimeMs, mtimeMs);
  assert.deepEqual(node.saved, []);
});

test(
  "a file on a read-only mount is reported with the reason, unless its nameservers are accepted",
  NEEDS_ROOT,
  async (t) => {
    const node = new Node(t);
    await using mount = await NodeMount.create(node.path, "ro");
    const writer = node.another(t, new ResolvConfFile((flags) => openInRoot(mount.root, "/etc/resolv.conf", flags)));
    const result = writer.advertise(CHANGE);
    assert.ok(result.outcome === "read-only");
    assert.match(result.reason, /cannot be written: EROFS/);
    assert.deepEqual(node.saved, []);
    assert.equal(node.text, DOCKER);
    node.write(WRITTEN);
    assert.deepEqual(writer.advertise(CHANGE), { outcome: "accepted", addresses: [OURS] });
  },
);

test("a missing file is neither created nor restored", (t) => {
  const node = new Node(t);
  node.writer.advertise(CHANGE);
  rmSync(node.path);
  const result = node.another(t).advertise(CHANGE);
  assert.ok(result.outcome === "read-only");
  assert.match(result.reason, /ENOENT/);
  assert.equal(node.restore(), "gone");
});

for (const [what, change, result] of [
  ["nothing", (text: string) => text, "restored"],
  ["an empty line at its end", (text: string) => `${text}\n`, "restored"],
  ["an option", (text: string) => `${text}options rotate\n`, "changed"],
  ["another server", (text: string) => text.replace(OURS, "8.8.8.8"), "changed"],
  ["a blank", (text: string) => text.replace("options", " options"), "changed"],
  ["everything, to an empty file", () => "", "changed"],
] as const) {
  test(`after another program changed ${what} the result is ${result}`, (t) => {
    const node = new Node(t);
    node.writer.advertise(CHANGE);
    const changed = change(WRITTEN);
    node.write(changed);
    assert.equal(node.restore(), result);
    assert.equal(node.text, result === "restored" ? DOCKER : changed);
  });
}

for (const [what, text, advertised, reaction] of [
  ["our address", WRITTEN, [OURS], "ours"],
  ["our address and another", `${WRITTEN}nameserver 8.8.8.8\n`, [OURS], "ours"],
  ["our address, written otherwise", "nameserver FD00:0::1\n", ["fd00::1"], "ours"],
  ["one of our two", WRITTEN, [OURS, "fd00::1"], "foreign"],
  ["another one", "nameserver 10.89.0.1\n", [OURS], "foreign"],
  ["another one, where we have advertised nothing", "nameserver 10.89.0.1\n", [], "foreign"],
  ["Docker's resolver", DOCKER, [OURS], "rewrite"],
  ["a stub resolver of the node", "nameserver 127.0.0.53\n", [OURS], "rewrite"],
  ["Docker's resolver before another one", "nameserver 127.0.0.11\nnameserver 8.8.8.8\n", [OURS], "rewrite"],
  ["Docker's resolver after the third", "nameserver 1.1.1.1\n".repeat(3) + DOCKER, [OURS], "foreign"],
  ["no server", "options ndots:0\n", [OURS], "rewrite"],
  ["nothing", "", [OURS], "rewrite"],
] as const) {
  test(`the reaction to a file with ${what} is ${reaction}`, () =>
    assert.equal(reactionTo(text, advertised), reaction));
}

test("our own writes are not reported", async (t) => {
  const node = new Node(t);
  node.writer.advertise(CHANGE);
  node.writer.advertise({ addresses: ["10.0.0.1"], search: "corp" });
  await pause(SETTLED_MS);
  assert.deepEqual(node.reported, []);
});

test("other programs' changes are reported once and accepted as long as pods have a usable nameserver", async (t) => {
  const node = new Node(t);
  node.writer.advertise(CHANGE);
  await node.entrypoint("10.89.0.1", "corp");
  await pause(SETTLED_MS);
  assert.deepEqual(node.reported, []);
  assert.match(node.text, /^search corp\n[^]*nameserver 172\.18\.0\.1\n/);
  appendFileSync(node.path, "options rotate\n");
  await pause(SETTLED_MS);
  assert.deepEqual(node.reported, []);
  await check("sh", ["-c", `echo nameserver 10.89.0.1 > ${node.path}`]);
  await node.waitForReport("foreign: 10.89.0.1");
  node.writer.check();
  await pause(SETTLED_MS);
  assert.deepEqual(node.reported, []);
  assert.deepEqual(node.writer.advertise(CHANGE), { outcome: "accepted", addresses: ["10.89.0.1"] });
});

test("a file without a usable nameserver is reported for a rewrite, but not over and over", async (t) => {
  const node = new Node(t);
  node.writer.advertise(CHANGE);
  await check("sh", ["-c", `echo nameserver 127.0.0.53 > ${node.path}`]);
  await node.waitForReport("rewrite: 127.0.0.53");
  assert.equal(node.writer.advertise(CHANGE).outcome, "advertised");
  assert.equal(node.text, "nameserver 172.18.0.1\n");
  // Restoring returns to the last text of another program.
  assert.equal(node.saved.at(-1)?.original, "nameserver 127.0.0.53\n");
  await check("sh", ["-c", `echo nameserver 127.0.0.53 > ${node.path}`]);
  await pause(SETTLED_MS);
  assert.deepEqual(node.reported, []);
});

test("a file that is truncated first is checked after it was written", async (t) => {
  const node = new Node(t);
  node.writer.advertise(CHANGE);
  await check("sh", ["-c", `: > "$1"; sleep 0.3; echo nameserver 10.89.0.1 >> "$1"`, "sh", node.path]);
  await node.waitForReport("foreign: 10.89.0.1");
});

test("a file that stays empty is rewritten after a while", async (t) => {
  const node = new Node(t, "nameserver 10.89.0.1\n");
  node.writer.advertise(CHANGE);
  truncateSync(node.path);
  assert.deepEqual(node.writer.advertise(CHANGE), { outcome: "busy" });
  assert.deepEqual(node.reported, []);
  await node.waitForReport("rewrite: ");
  assert.equal(node.writer.advertise(CHANGE).outcome, "advertised");
  assert.equal(node.text, "nameserver 172.18.0.1\n");
});

test("a file that another program is writing is not touched", async (t) => {
  const node = new Node(t);
  // Not by another process, whose end may be noticed after the time in which a file counts as being written.
  truncateSync(node.path);
  assert.deepEqual(node.writer.advertise(CHANGE), { outcome: "busy" });
  assert.equal(node.text, "");
  await check("sh", ["-c", `echo nameserver 10.89.0.1 > ${node.path}`]);
  await node.waitForReport("foreign: 10.89.0.1");
  assert.deepEqual(node.writer.advertise(CHANGE), { outcome: "accepted", addresses: ["10.89.0.1"] });
});

test("after close nothing is reported, and the file stays", async (t) => {
  const node = new Node(t);
  node.writer.advertise(CHANGE);
  node.writer.close();
  await check("sh", ["-c", `echo nameserver 127.0.0.53 > ${node.path}`]);
  await pause(SETTLED_MS);
  assert.deepEqual(node.reported, []);
});

test("KIND's entrypoint may run at any time: the nameservers are usable by pods, and our text is restored", async (t) => {
  const outcomes = new Map<string, number>();
  for (let round = 0; round < 60; round++) {
    const node = new Node(t);
    const search = round % 2 === 0 ? "" : "corp";
    const entrypoint = node.entrypoint("10.89.0.1", search);
    await pause(round / 6);
    node.writer.advertise(CHANGE);
    await entrypoint;
    const servers = await waitFor(JSON.stringify(node.text), () => {
      // As the caller of the writer does.
      if (node.reported.pop() !== undefined) node.writer.advertise(CHANGE);
      const named = nameserversIn(node.text);
      return named.length > 0 && named.every((server) => [OURS, "10.89.0.1"].includes(server)) ? named : undefined;
    });
    const isWritten = node.text === WRITTEN;
    const found = `${servers.join(" ")}${search === "" ? "" : " with a search list"}`;
    outcomes.set(found, (outcomes.get(found) ?? 0) + 1);
    node.writer.close();
    if (isWritten) {
      assert.equal(node.restore(), "restored");
      assert.equal(node.text, DOCKER);
    }
  }
  t.diagnostic(JSON.stringify([...outcomes]));
});

test("empty lines at the end make no other file, and any number of them elsewhere does", () => {
  const versions = { original: Buffer.from(DOCKER, "latin1"), written: Buffer.from(WRITTEN, "latin1") };
  assert.equal(isOurs(`${WRITTEN}${"\n".repeat(60_000)}`, versions), true);
  assert.equal(isOurs(`${WRITTEN}${"\n".repeat(60_000)}x`, versions), false);
});
