// Proves that a node that is detached while it is being verified stays detached: a probe's late result does not change its
// resolv.conf again; that its record is written only when it changes; and that in kind mode loopback the kernel lets queries of
// pods in before they learn our address.

import assert from "node:assert/strict";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import type { ServedNamespace } from "../../../src/container/attach/attach-mode.ts";
import type { NodeMode } from "../../../src/features/kind/node-mode.ts";
import { NamespaceRunner } from "../../../src/container/namespace/namespace-runner.ts";
import { KIND_DEFAULTS, type KindMode } from "../../../src/features/kind/feature.ts";
import { nodeModeIn } from "./mode-in-folder.ts";
import { Netns } from "../../support/rig/netns.ts";

const DOCKERS = "nameserver 127.0.0.11\noptions ndots:0\n";
const WORKS = { kind: "works" } as const;

const runner = new NamespaceRunner();
const folder = mkdtempSync(join(tmpdir(), "d11-node-mode-"));
const path = join(folder, "resolv.conf");
after(() => {
  runner.close();
  rmSync(folder, { recursive: true });
});

function nodeMode(mode: KindMode = "listener"): NodeMode {
  return nodeModeIn({ folder, policy: { ...KIND_DEFAULTS, mode }, runner });
}

/** A namespace whose probes succeed as soon as the test says so. */
function siteOf(fd: number): ServedNamespace & { readonly comesThrough: () => void } {
  const { promise, resolve } = deferred();
  const probe = async (): Promise<typeof WORKS> => {
    await promise;
    return WORKS;
  };
  return { fd, within: (work) => runner.within(fd, work), zone: 1, probe, comesThrough: resolve };
}

function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

test("a successful probe adds our address to resolv.conf, and one that succeeds too late does not", async () => {
  await using netns = await Netns.create();
  const fd = openSync(netns.netnsPath, "r");
  writeFileSync(path, DOCKERS);
  const mode = nodeMode();
  try {
    for (const isLate of [false, true]) {
      runner.within(fd, () => mode.capture());
      const site = siteOf(fd);
      const verified = mode.onVerified(site);
      if (isLate) await mode.withdraw(site.within);
      site.comesThrough();
      await verified;
      assert.equal(readFileSync(path, "utf8") === DOCKERS, isLate);
      await mode.withdraw(site.within);
      runner.within(fd, () => mode.undo());
      assert.equal(readFileSync(path, "utf8"), DOCKERS);
    }
  } finally {
    closeSync(fd);
  }
});

test("an open that fails after a crash does not lose the resolv.conf that the crashed process has replaced", async () => {
  await using netns = await Netns.create();
  const fd = openSync(netns.netnsPath, "r");
  const verify = async (mode: NodeMode): Promise<void> => {
    const site = siteOf(fd);
    site.comesThrough();
    runner.within(fd, () => mode.capture());
    await mode.onVerified(site);
  };
  writeFileSync(path, DOCKERS);
  try {
    await verify(nodeMode());
    assert.notEqual(readFileSync(path, "utf8"), DOCKERS);
    const next = nodeMode();
    runner.within(fd, () => {
      next.capture();
      next.undo();
    });
    await verify(next);
    await next.withdraw((work) => runner.within(fd, work));
    runner.within(fd, () => next.undo());
    assert.equal(readFileSync(path, "utf8"), DOCKERS);
  } finally {
    closeSync(fd);
  }
});

test("a change of the node's networks that changes nothing for us does not write its record again", async () => {
  await using netns = await Netns.create();
  const fd = openSync(netns.netnsPath, "r");
  writeFileSync(path, DOCKERS);
  const mode = nodeMode();
  const record = join(folder, "nodes", "abc.json");
  try {
    runner.within(fd, () => mode.capture());
    writeFileSync(record, "not written again");
    runner.within(fd, () => mode.capture());
    assert.equal(readFileSync(record, "utf8"), "not written again");
    runner.within(fd, () => mode.undo());
    runner.within(fd, () => mode.capture());
    assert.match(readFileSync(record, "utf8"), /"containerId":"abc"/, "it was removed");
    runner.within(fd, () => mode.undo());
  } finally {
    closeSync(fd);
  }
});

test("in kind mode loopback an address is advertised when the kernel lets its queries in, and used ones in the same step", async () => {
  await using netns = await Netns.create();
  const fd = openSync(netns.netnsPath, "r");
  writeFileSync(path, DOCKERS);
  const links = "link add v0 type veth peer name p0\nlink add v1 type veth peer name p1\n";
  assert.equal((await netns.enter("ip", ["-batch", "-"], { input: links })).code, 0);
  const mode = nodeMode("loopback");
  const values = (): string[] =>
    runner.within(fd, () =>
      ["v0", "p1", "default", "lo"].map((name) =>
        readFileSync(`/proc/sys/net/ipv4/conf/${name}/route_localnet`, "utf8").trim(),
      ),
    );
  try {
    for (const wasUsed of [false, true]) {
      runner.within(fd, () => mode.capture());
      assert.deepEqual(values(), wasUsed ? ["1", "1", "1", "0"] : ["0", "0", "0", "0"]);
      const site = siteOf(fd);
      site.comesThrough();
      await mode.onVerified(site);
      assert.deepEqual(values(), ["1", "1", "1", "0"]);
      assert.notEqual(readFileSync(path, "utf8"), DOCKERS);
      await mode.withdraw(site.within);
      if (wasUsed) {
        await mode.undoInSlices(site.within);
        assert.deepEqual(values(), ["0", "0", "0", "0"]);
        assert.match(
          readFileSync(join(folder, "nodes", "abc.json"), "utf8"),
          /"routeLocalnet":\{\}/,
          "nothing is left to undo",
        );
      }
      runner.within(fd, () => mode.undo());
      assert.deepEqual(values(), ["0", "0", "0", "0"]);
    }
  } finally {
    closeSync(fd);
  }
});
