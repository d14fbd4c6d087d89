/**
 * WrittenResolvConf with a real file, as NodeMode uses it. The files of a container that is just starting are not visible yet, and
 * look like another program's.
 */
import assert from "node:assert/strict";
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import type { ResolvConfRecord } from "../../../../src/container/files/journal.ts";
import { WrittenResolvConf } from "../../../../src/container/files/written-resolv-conf.ts";
import { waitFor } from "../../../support/rig/wait.ts";

const DOCKERS = "nameserver 127.0.0.11\noptions ndots:0\n";
const GATEWAY = "10.6.0.1";
const folder = mkdtempSync(join(tmpdir(), "d11-node-resolv-conf-"));
const path = join(folder, "resolv.conf");
after(() => rmSync(folder, { recursive: true }));

interface Families {
  readonly addresses: readonly string[];
  readonly ours: readonly string[];
}

class Rig {
  readonly resolvConf: WrittenResolvConf;
  record: ResolvConfRecord | undefined;
  /** How often `onRewritten` was called. */
  rewritten = 0;

  /** `words`: whether the file is the container's, one per call; the last one repeats. */
  constructor(...words: readonly [boolean, ...boolean[]]) {
    const left = [...words];
    const open = (flags: number): number => openSync(path, flags);
    const isSame = (): boolean => (left.length > 1 ? left.shift() : left[0]) === true;
    const openOriginal = (): never => {
      throw new Error("there is no copy of an entrypoint");
    };
    this.resolvConf = new WrittenResolvConf({
      path,
      openWritten: open,
      openRead: open,
      openOriginal,
      isContainerFile: isSame,
    });
  }

  advertise(families: Families = { addresses: [GATEWAY], ours: [GATEWAY] }): string | undefined {
    return this.resolvConf.advertise({
      ...families,
      search: undefined,
      record: this.record,
      save: (record) => (this.record = record),
      onRewritten: () => (this.rewritten += 1),
    });
  }
}

test("a file that is not the container's is checked again before that is reported", async () => {
  writeFileSync(path, DOCKERS);
  const rig = new Rig(false, true);
  assert.deepEqual([rig.advertise(), rig.resolvConf.state], [undefined, "unchanged"]);
  assert.equal(readFileSync(path, "utf8"), DOCKERS);
  await waitFor("the call of onRewritten", () => (rig.rewritten === 1 ? true : undefined));
  assert.equal(rig.advertise(), `${GATEWAY}, written by dns11`);
  rig.resolvConf.close();
});

test("a file that is still not the container's is not written, which is reported once", () => {
  writeFileSync(path, DOCKERS);
  const rig = new Rig(false);
  const results = [rig.advertise(), rig.advertise(), rig.advertise()].map((result) => result?.replace(/:.*/, ""));
  assert.deepEqual(results, [undefined, "not written", undefined]);
  assert.equal(readFileSync(path, "utf8"), DOCKERS);
  rig.resolvConf.close();
});

test("a file with an address of ours of the wrong family is rewritten", () => {
  for (const [named, addresses, isWritten] of [
    ["10.6.0.1", ["fd00::1"], true],
    ["10.6.0.1", ["10.6.0.1", "fd00::1"], true],
    ["fd00::1", ["10.6.0.1"], true],
    // Any address of ours of the right family will do: pods may use it already.
    ["10.6.0.1", ["10.6.0.9"], false],
    // Another program's address is not replaced.
    ["192.0.2.1", ["fd00::1"], false],
  ] as const) {
    const text = `nameserver ${named}\noptions ndots:0\n`;
    writeFileSync(path, text);
    const rig = new Rig(true);
    const news = rig.advertise({ addresses, ours: ["10.6.0.1", "fd00::1", "10.6.0.9"] });
    const written = readFileSync(path, "utf8");
    const expected = isWritten ? `${addresses.map((one) => `nameserver ${one}\n`).join("")}options ndots:0\n` : text;
    assert.equal(written, expected, `${named} ${addresses.join()}`);
    assert.match(news ?? "", isWritten ? /written by dns11/ : /written by another program/);
    if (rig.record !== undefined) assert.equal(rig.resolvConf.restore(rig.record, undefined, [GATEWAY]), "restored");
    assert.equal(readFileSync(path, "utf8"), text);
    rig.resolvConf.close();
  }
});

test("of any number of servers in the file the first ones count, without those that dns11 replaces", () => {
  const servers = Array.from({ length: 2_500 }, (_, n) => `10.7.${n >> 8}.${n & 255}`);
  writeFileSync(path, ["127.0.0.11", ...servers].map((server) => `nameserver ${server}\n`).join(""));
  const { resolvConf } = new Rig(true);
  assert.deepEqual(resolvConf.nameservers(), servers.slice(0, 3));
  resolvConf.close();
});
