/**
 * A node's resolver with a real file, as its mode uses it: a container that is just starting does not show its files yet,
 * and then they look like somebody else's.
 */
import assert from "node:assert/strict";
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import type { ResolvConfRecord } from "../../../../src/container/kind/journal.ts";
import { NodeResolvConf } from "../../../../src/container/kind/node-resolv-conf.ts";
import { waitFor } from "../../../support/rig/wait.ts";

const DOCKERS = "nameserver 127.0.0.11\noptions ndots:0\n";
const GATEWAY = "10.6.0.1";
const folder = mkdtempSync(join(tmpdir(), "d11-node-resolver-"));
const path = join(folder, "resolv.conf");
after(() => rmSync(folder, { recursive: true }));

interface Families {
  readonly addresses: readonly string[];
  readonly ours: readonly string[];
}

class Rig {
  readonly resolver: NodeResolvConf;
  record: ResolvConfRecord | undefined;
  /** How often somebody was asked to publish again. */
  asked = 0;

  /** The words say in turn whether the file is the container's; the last one stays. */
  constructor(...words: readonly [boolean, ...boolean[]]) {
    const left = [...words];
    const open = (flags: number): number => openSync(path, flags);
    const isSame = (): boolean => (left.length > 1 ? left.shift() : left[0]) === true;
    const openOriginal = (): never => {
      throw new Error("no entrypoint was here");
    };
    this.resolver = new NodeResolvConf({
      path,
      openWritten: open,
      openRead: open,
      openOriginal,
      isContainerFile: isSame,
    });
  }

  publish(families: Families = { addresses: [GATEWAY], ours: [GATEWAY] }): string | undefined {
    return this.resolver.advertise({
      ...families,
      search: undefined,
      record: this.record,
      save: (record) => (this.record = record),
      onRewritten: () => (this.asked += 1),
    });
  }
}

test("a file that is not the container's at first sight is looked at again before anybody is told", async () => {
  writeFileSync(path, DOCKERS);
  const rig = new Rig(false, true);
  assert.deepEqual([rig.publish(), rig.resolver.state], [undefined, "as it was"]);
  assert.equal(readFileSync(path, "utf8"), DOCKERS);
  await waitFor("somebody to be asked to publish again", () => (rig.asked === 1 ? true : undefined));
  assert.equal(rig.publish(), `names ${GATEWAY}, written by dns11`);
  rig.resolver.close();
});

test("a file that still is not the container's is somebody else's, and that is told once", () => {
  writeFileSync(path, DOCKERS);
  const rig = new Rig(false);
  const told = [rig.publish(), rig.publish(), rig.publish()].map((news) => news?.replace(/:.*/, ""));
  assert.deepEqual(told, [undefined, "not written", undefined]);
  assert.equal(readFileSync(path, "utf8"), DOCKERS);
  rig.resolver.close();
});

test("a file that names an address of ours, of a family that pods are not to be told, is written", () => {
  for (const [named, addresses, isWritten] of [
    ["10.6.0.1", ["fd00::1"], true],
    ["10.6.0.1", ["10.6.0.1", "fd00::1"], true],
    ["fd00::1", ["10.6.0.1"], true],
    // Of the right family any address of ours will do: pods may have it already.
    ["10.6.0.1", ["10.6.0.9"], false],
    // Somebody else's is not for us to replace.
    ["192.0.2.1", ["fd00::1"], false],
  ] as const) {
    const text = `nameserver ${named}\noptions ndots:0\n`;
    writeFileSync(path, text);
    const rig = new Rig(true);
    const news = rig.publish({ addresses, ours: ["10.6.0.1", "fd00::1", "10.6.0.9"] });
    const written = readFileSync(path, "utf8");
    const expected = isWritten ? `${addresses.map((one) => `nameserver ${one}\n`).join("")}options ndots:0\n` : text;
    assert.equal(written, expected, `${named} ${addresses.join()}`);
    assert.match(news ?? "", isWritten ? /written by dns11/ : /written by somebody else/);
    if (rig.record !== undefined) assert.equal(rig.resolver.restore(rig.record, undefined, [GATEWAY]), "restored");
    assert.equal(readFileSync(path, "utf8"), text);
    rig.resolver.close();
  }
});
