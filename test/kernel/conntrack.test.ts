/**
 * Deleting conntrack entries on the real kernel, checked with `conntrack`: only those of one client are deleted, for both
 * protocols and families and in every zone.
 */
import assert from "node:assert/strict";
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { NamespaceRunner } from "../../src/container/namespace/namespace-runner.ts";
import { deleteEntriesFrom, deleteTracked, trackedConversationsTo } from "../../src/kernel/conntrack.ts";
import { NetlinkMemory } from "../../src/kernel/netlink-socket.ts";
import { stdoutOf } from "../support/program/command.ts";
import { Netns } from "../support/rig/netns.ts";

async function conversations(netns: Netns, family: "ipv4" | "ipv6"): Promise<string[]> {
  const listed = stdoutOf(await netns.enter("conntrack", ["-L", "-f", family]), "conntrack");
  return listed.split("\n").filter((line) => line !== "");
}

interface Conversation {
  readonly source: string;
  readonly destination: string;
  readonly protocol: "udp" | "tcp";
  readonly port: number;
  readonly zone: number;
}

async function begin(netns: Netns, conversation: Conversation): Promise<void> {
  const { source, destination, protocol, port, zone } = conversation;
  const tuple = ["-s", source, "-d", destination, "-p", protocol, "--sport", String(port), "--dport", "53"];
  const state = protocol === "tcp" ? ["--state", "ESTABLISHED"] : [];
  const args = ["-I", ...tuple, ...state, "--timeout", "300", "--zone", String(zone)];
  stdoutOf(await netns.enter("conntrack", args), "conntrack");
}

async function forget(netns: Netns, ...addresses: string[]): Promise<number[]> {
  const runner = new NamespaceRunner();
  const fd = openSync(netns.netnsPath, "r");
  const memory = new NetlinkMemory();
  try {
    return runner.within(fd, () => addresses.map((address) => deleteEntriesFrom(memory, address)));
  } finally {
    closeSync(fd);
    runner.close();
  }
}

test("only the entries of connections that one client started are deleted, in every zone", async () => {
  await using netns = await Netns.create();
  const clients = {
    ipv4: { gone: "10.1.0.5", other: "10.1.0.6", server: "10.1.0.1" },
    ipv6: { gone: "fd00:1::5", other: "fd00:1::6", server: "fd00:1::1" },
  } as const;
  for (const { gone, other, server } of Object.values(clients)) {
    // The same addresses and ports in two zones are two entries; other clients of the same server stay.
    for (const zone of [0, 53, 0xfffe]) {
      for (const protocol of ["udp", "tcp"] as const) {
        await begin(netns, { source: gone, destination: server, protocol, port: 4000, zone });
        await begin(netns, { source: other, destination: gone, protocol, port: 4001, zone });
      }
    }
  }
  for (const [family, { gone, other }] of Object.entries(clients) as [keyof typeof clients, typeof clients.ipv4][]) {
    assert.equal((await conversations(netns, family)).length, 12, family);
    assert.deepEqual(await forget(netns, gone), [6], family);
    const left = await conversations(netns, family);
    assert.equal(left.length, 6, left.join("\n"));
    assert.ok(
      left.every((line) => new RegExp(`^[^=]*src=${other} `).test(line)),
      left.join("\n"),
    );
    assert.deepEqual(await forget(netns, gone, other), [0, 6], family);
    assert.deepEqual(await conversations(netns, family), []);
  }
});

test("of conversations with one server, those in the default zone are found and deleted", async () => {
  await using netns = await Netns.create();
  const runner = new NamespaceRunner();
  const fd = openSync(netns.netnsPath, "r");
  const memory = new NetlinkMemory();
  try {
    for (const [family, source, server, other] of [
      ["ipv4", "10.1.0.5", "10.1.0.1", "10.1.0.2"],
      ["ipv6", "fd00:1::5", "fd00:1::1", "fd00:1::2"],
    ] as const) {
      for (const destination of [server, other])
        for (const protocol of ["udp", "tcp"] as const)
          for (const zone of [0, 53]) await begin(netns, { source, destination, protocol, port: 4000, zone });
      const deleted = runner.within(fd, () => {
        const found = trackedConversationsTo(memory, server, 53);
        assert.deepEqual(
          found.map(({ address, port }) => [address, port]),
          [[server, 53]],
        );
        return deleteTracked(memory, found);
      });
      assert.equal(deleted, 1);
      const left = await conversations(netns, family);
      assert.equal(left.length, 7, left.join("\n"));
      assert.ok(
        !left.some((line) => line.includes("udp") && line.includes(`dst=${server}`) && !line.includes("zone=53")),
      );
    }
  } finally {
    closeSync(fd);
    runner.close();
  }
});

test("without entries there is nothing to delete", async () => {
  await using netns = await Netns.create();
  assert.deepEqual(await forget(netns, "10.1.0.5", "fd00:1::5"), [0, 0]);
});

test("of very many entries the kernel lists only those with one address", async () => {
  await using netns = await Netns.create();
  const lines = Array.from({ length: 30_000 }, (_, index) => {
    const source = `10.9.${index >> 8}.${index & 255}`;
    return `-I -s ${source} -d 10.8.0.1 -p udp --sport 1000 --dport 53 --timeout 300`;
  });
  const entry = { source: "127.0.0.1", destination: "127.0.0.11", protocol: "udp", port: 4000, zone: 0 } as const;
  const folder = mkdtempSync(join(tmpdir(), "d11-conntrack-"));
  try {
    writeFileSync(join(folder, "entries"), `${lines.join("\n")}\n`);
    stdoutOf(await netns.enter("conntrack", ["-R", join(folder, "entries")]), "conntrack");
  } finally {
    rmSync(folder, { recursive: true });
  }
  await begin(netns, entry);
  const runner = new NamespaceRunner();
  const fd = openSync(netns.netnsPath, "r");
  try {
    const found = runner.within(fd, () => trackedConversationsTo(new NetlinkMemory(), "127.0.0.11", 53));
    assert.deepEqual(
      found.map(({ address, port }) => [address, port]),
      [["127.0.0.11", 53]],
    );
  } finally {
    closeSync(fd);
    runner.close();
  }
});
