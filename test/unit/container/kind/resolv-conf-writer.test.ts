// Proves that the address for pods gets into a node's resolv.conf and out of it again, and that nobody else who writes
// that file is fought: with a real file, real shells that write it, KIND's entrypoint among them, and the kernel's watch.

import assert from "node:assert/strict";
import { appendFileSync, readFileSync, rmSync, statSync, utimesSync } from "node:fs";
import { type TestContext, test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import type { ResolvConfRecord } from "../../../../src/container/kind/journal.ts";
import { ResolvConfWriter, reactionTo, restoreFile } from "../../../../src/container/kind/resolv-conf-writer.ts";
import { ResolvConfFile, intermediateTexts } from "../../../../src/container/kind/resolv-conf-file.ts";
import { nameserversIn } from "../../../../src/container/kind/resolv-conf-text.ts";
import { openInRoot } from "../../../../src/kernel/libc.ts";
import { check } from "../../../support/program/command.ts";
import { pause, waitFor } from "../../../support/rig/wait.ts";
import { MachineRoot } from "../../support/machine-root.ts";
import { NodeMount } from "../../support/node-mount.ts";

const PATH = "/containers/c/resolv.conf";
const OURS = "172.18.0.1";
const CHANGE = { addresses: [OURS], search: undefined };
const DOCKER = "# \xfc by Docker\nnameserver 127.0.0.11\noptions ndots:0\n";
const PUBLISHED = "# \xfc by Docker\nnameserver 172.18.0.1\noptions ndots:0\n";
// Longer than whatever the file is given before it is believed.
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
  readonly publication: ResolvConfWriter;
  readonly kept: { original: string; written: string; found: string }[] = [];
  readonly told: string[] = [];

  constructor(t: TestContext, text = DOCKER, machine = new MachineRoot()) {
    this.machine = machine;
    t.after(() => machine[Symbol.dispose]());
    this.write(text);
    this.file = new ResolvConfFile((flags) => openInRoot(machine.root, PATH, flags));
    this.publication = this.another(t);
  }

  // As a later process of ours has it.
  another(t: TestContext, file = this.file): ResolvConfWriter {
    const publication = new ResolvConfWriter({
      file,
      save: ({ original, written }) =>
        this.kept.push({
          original: original.toString("latin1"),
          written: written.toString("latin1"),
          found: this.text,
        }),
      onRewritten: (reaction, nameservers) => this.told.push(`${reaction}: ${nameservers.join(" ")}`),
    });
    t.after(() => publication.close());
    return publication;
  }

  get path(): string {
    return this.machine.at(PATH);
  }

  get text(): string {
    return readFileSync(this.path, "latin1");
  }

  get record(): ResolvConfRecord {
    const { original = "", written = "" } = this.kept.at(-1) ?? {};
    return {
      path: PATH,
      original: Buffer.from(original, "latin1").toString("base64"),
      written: Buffer.from(written, "latin1").toString("base64"),
    };
  }

  // In place, and long enough ago for nobody to be at it still.
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

  async isTold(what: string): Promise<void> {
    await waitFor(`"${what}"; told was ${JSON.stringify(this.told)}`, () =>
      this.told.includes(what) ? true : undefined,
    );
    this.told.length = 0;
  }

  async entrypoint(address: string, search = ""): Promise<void> {
    await check("sh", ["-c", ENTRYPOINT, "entrypoint", this.path, `${this.path}.original`, address, search]);
  }
}

test("Docker's file is published, and what was before is kept before", (t) => {
  const node = new Node(t);
  const { ino } = statSync(node.path);
  assert.deepEqual(node.publication.advertise(CHANGE), {
    outcome: "published",
    addresses: [OURS],
    original: Buffer.from(DOCKER, "latin1"),
    written: Buffer.from(PUBLISHED, "latin1"),
  });
  assert.equal(node.text, PUBLISHED);
  assert.deepEqual(node.kept, [{ original: DOCKER, written: PUBLISHED, found: DOCKER }]);
  assert.equal(statSync(node.path).ino, ino);
  assert.equal(node.restore(), "restored");
  assert.equal(node.text, DOCKER);
  assert.equal(statSync(node.path).ino, ino);
});

test("what cannot be kept is not done", (t) => {
  const node = new Node(t);
  const publication = new ResolvConfWriter({
    file: node.file,
    save: () => {
      throw new Error("no room");
    },
    onRewritten: () => {},
  });
  assert.throws(() => publication.advertise(CHANGE), /no room/);
  publication.close();
  assert.equal(node.text, DOCKER);
});

test("what is published already is not written again", (t) => {
  const node = new Node(t);
  const first = node.publication.advertise(CHANGE);
  const { mtimeMs } = statSync(node.path);
  assert.deepEqual(node.publication.advertise(CHANGE), first);
  assert.deepEqual(node.publication.advertise({ ...CHANGE, record: node.record }), first);
  assert.equal(statSync(node.path).mtimeMs, mtimeMs);
  assert.equal(node.kept.length, 1);
});

test("other addresses, or another search list, are made out of the original", (t) => {
  const node = new Node(t);
  node.publication.advertise(CHANGE);
  const { original } = node.kept[0] ?? {};
  node.publication.advertise({ addresses: ["10.0.0.1", "fd00::1"], search: "corp b\u00fccher" });
  assert.equal(original, DOCKER);
  assert.equal(
    Buffer.from(node.text, "latin1").toString("latin1"),
    `search corp ${Buffer.from("b\u00fccher").toString("latin1")}\n# \xfc by Docker\nnameserver 10.0.0.1\nnameserver fd00::1\noptions ndots:0\n`,
  );
  assert.equal(node.kept.at(-1)?.original, DOCKER);
  node.publication.advertise(CHANGE);
  assert.equal(node.text, PUBLISHED);
  assert.equal(node.restore(), "restored");
  assert.equal(node.text, DOCKER);
});

test("a later process goes on where an earlier one was killed", (t) => {
  const node = new Node(t);
  const first = node.publication.advertise(CHANGE);
  node.publication.close();
  const later = node.another(t);
  assert.deepEqual(later.advertise({ ...CHANGE, record: node.record }), first);
  assert.equal(node.kept.length, 1);
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
    test(`killed ${what}, ${search === undefined ? "as long" : "longer"}: goes on, and is restored`, (t) => {
      const node = new Node(t);
      const change = { addresses: [OURS], search };
      node.publication.advertise(change);
      node.publication.close();
      const { written = "" } = node.kept[0] ?? {};
      node.write(textOf(DOCKER, written));
      assert.equal(node.another(t).advertise({ ...change, record: node.record }).outcome, "published");
      assert.equal(node.text, written);
      node.write(textOf(DOCKER, written));
      assert.equal(node.restore(), "restored");
      assert.equal(node.text, DOCKER);
    });
  }
}

test("servers that somebody else named are taken as published", (t) => {
  const node = new Node(t, "nameserver 10.89.0.1\nnameserver fd00::1\n");
  const { mtimeMs } = statSync(node.path);
  assert.deepEqual(node.publication.advertise(CHANGE), { outcome: "already", addresses: ["10.89.0.1", "fd00::1"] });
  assert.equal(statSync(node.path).mtimeMs, mtimeMs);
  assert.deepEqual(node.kept, []);
});

test("a file on a read-only mount is left, with the reason; one that names servers needs no writing", async (t) => {
  const node = new Node(t);
  await using mount = await NodeMount.create(node.path, "ro");
  const publication = node.another(t, new ResolvConfFile((flags) => openInRoot(mount.root, "/etc/resolv.conf", flags)));
  const result = publication.advertise(CHANGE);
  assert.ok(result.outcome === "read-only");
  assert.match(result.reason, /cannot be written: EROFS/);
  assert.deepEqual(node.kept, []);
  assert.equal(node.text, DOCKER);
  node.write(PUBLISHED);
  assert.deepEqual(publication.advertise(CHANGE), { outcome: "already", addresses: [OURS] });
});

test("no file: nothing is made, and nothing restored", (t) => {
  const node = new Node(t);
  node.publication.advertise(CHANGE);
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
  ["everything, it is empty", () => "", "changed"],
] as const) {
  test(`when somebody has changed ${what} it is ${result}`, (t) => {
    const node = new Node(t);
    node.publication.advertise(CHANGE);
    const changed = change(PUBLISHED);
    node.write(changed);
    assert.equal(node.restore(), result);
    assert.equal(node.text, result === "restored" ? DOCKER : changed);
  });
}

for (const [what, text, published, reaction] of [
  ["our address", PUBLISHED, [OURS], "ours"],
  ["our address and another", `${PUBLISHED}nameserver 8.8.8.8\n`, [OURS], "ours"],
  ["our address, written otherwise", "nameserver FD00:0::1\n", ["fd00::1"], "ours"],
  ["one of our two", PUBLISHED, [OURS, "fd00::1"], "foreign"],
  ["another one", "nameserver 10.89.0.1\n", [OURS], "foreign"],
  ["another one, where we have published nothing", "nameserver 10.89.0.1\n", [], "foreign"],
  ["Docker's resolver", DOCKER, [OURS], "republish"],
  ["a stub of the node's own", "nameserver 127.0.0.53\n", [OURS], "republish"],
  ["Docker's resolver before another one", "nameserver 127.0.0.11\nnameserver 8.8.8.8\n", [OURS], "republish"],
  ["Docker's resolver where nobody reads it", "nameserver 1.1.1.1\n".repeat(3) + DOCKER, [OURS], "foreign"],
  ["nobody", "options ndots:0\n", [OURS], "republish"],
  ["nothing", "", [OURS], "republish"],
] as const) {
  test(`a file that names ${what} is ${reaction}`, () => assert.equal(reactionTo(text, published), reaction));
}

test("our own writes are told to nobody", async (t) => {
  const node = new Node(t);
  node.publication.advertise(CHANGE);
  node.publication.advertise({ addresses: ["10.0.0.1"], search: "corp" });
  await pause(SETTLED_MS);
  assert.deepEqual(node.told, []);
});

test("others are told of once, and left alone: as long as a pod can ask somebody", async (t) => {
  const node = new Node(t);
  node.publication.advertise(CHANGE);
  await node.entrypoint("10.89.0.1", "corp");
  await pause(SETTLED_MS);
  assert.deepEqual(node.told, []);
  assert.match(node.text, /^search corp\n[^]*nameserver 172\.18\.0\.1\n/);
  appendFileSync(node.path, "options rotate\n");
  await pause(SETTLED_MS);
  assert.deepEqual(node.told, []);
  await check("sh", ["-c", `echo nameserver 10.89.0.1 > ${node.path}`]);
  await node.isTold("foreign: 10.89.0.1");
  node.publication.check();
  await pause(SETTLED_MS);
  assert.deepEqual(node.told, []);
  assert.deepEqual(node.publication.advertise(CHANGE), { outcome: "already", addresses: ["10.89.0.1"] });
});

test("a file that leaves pods alone is published again, but not over and over", async (t) => {
  const node = new Node(t);
  node.publication.advertise(CHANGE);
  await check("sh", ["-c", `echo nameserver 127.0.0.53 > ${node.path}`]);
  await node.isTold("republish: 127.0.0.53");
  assert.equal(node.publication.advertise(CHANGE).outcome, "published");
  assert.equal(node.text, "nameserver 172.18.0.1\n");
  // Restoring means the newest words of somebody else's.
  assert.equal(node.kept.at(-1)?.original, "nameserver 127.0.0.53\n");
  await check("sh", ["-c", `echo nameserver 127.0.0.53 > ${node.path}`]);
  await pause(SETTLED_MS);
  assert.deepEqual(node.told, []);
});

test("a file that is emptied first is looked at when it has been written", async (t) => {
  const node = new Node(t);
  node.publication.advertise(CHANGE);
  await check("sh", ["-c", `: > "$1"; sleep 0.3; echo nameserver 10.89.0.1 >> "$1"`, "sh", node.path]);
  await node.isTold("foreign: 10.89.0.1");
});

test("a file that stays empty is published after a while", async (t) => {
  const node = new Node(t, "nameserver 10.89.0.1\n");
  node.publication.advertise(CHANGE);
  await check("sh", ["-c", `: > ${node.path}`]);
  await pause(LIMITS.hostFileMissingMs / 2);
  assert.deepEqual(node.told, []);
  assert.deepEqual(node.publication.advertise(CHANGE), { outcome: "unsettled" });
  await node.isTold("republish: ");
  assert.equal(node.publication.advertise(CHANGE).outcome, "published");
  assert.equal(node.text, "nameserver 172.18.0.1\n");
});

test("a file that somebody is writing when we come is left to them", async (t) => {
  const node = new Node(t);
  await check("sh", ["-c", `: > ${node.path}`]);
  assert.deepEqual(node.publication.advertise(CHANGE), { outcome: "unsettled" });
  assert.equal(node.text, "");
  await check("sh", ["-c", `echo nameserver 10.89.0.1 > ${node.path}`]);
  await node.isTold("foreign: 10.89.0.1");
  assert.deepEqual(node.publication.advertise(CHANGE), { outcome: "already", addresses: ["10.89.0.1"] });
});

test("after close nobody is told, and the file stays", async (t) => {
  const node = new Node(t);
  node.publication.advertise(CHANGE);
  node.publication.close();
  await check("sh", ["-c", `echo nameserver 127.0.0.53 > ${node.path}`]);
  await pause(SETTLED_MS);
  assert.deepEqual(node.told, []);
});

test("KIND's entrypoint may come at any time: a pod can ask whom the file names, and it goes back where it is ours", async (t) => {
  const outcomes = new Map<string, number>();
  for (let round = 0; round < 60; round++) {
    const node = new Node(t);
    const search = round % 2 === 0 ? "" : "corp";
    const entrypoint = node.entrypoint("10.89.0.1", search);
    await pause(round / 6);
    node.publication.advertise(CHANGE);
    await entrypoint;
    const servers = await waitFor(JSON.stringify(node.text), () => {
      // As whoever is told does.
      if (node.told.pop() !== undefined) node.publication.advertise(CHANGE);
      const named = nameserversIn(node.text);
      return named.length > 0 && named.every((server) => [OURS, "10.89.0.1"].includes(server)) ? named : undefined;
    });
    const isOurs = node.text === PUBLISHED;
    const found = `${servers.join(" ")}${search === "" ? "" : " with a search list"}`;
    outcomes.set(found, (outcomes.get(found) ?? 0) + 1);
    node.publication.close();
    if (isOurs) {
      assert.equal(node.restore(), "restored");
      assert.equal(node.text, DOCKER);
    }
  }
  t.diagnostic(JSON.stringify([...outcomes]));
});
