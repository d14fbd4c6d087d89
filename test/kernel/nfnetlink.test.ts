// Transactions of nf_tables that are longer than a socket usually has room for, and that fail in more places than there is
// room for answers.

import assert from "node:assert/strict";
import { openSync } from "node:fs";
import { test } from "node:test";

import { NamespaceRunner } from "../../src/container/namespace/namespace-runner.ts";
import { untilClosed } from "../../src/kernel/in-pool.ts";
import { closeQuietly } from "../../src/kernel/libc.ts";
import { NetlinkMemory } from "../../src/kernel/netlink-socket.ts";
import { NFPROTO_IPV4, type NftCommand, NftSocket } from "../../src/kernel/nfnetlink.ts";
import { NftTable } from "../../src/kernel/nft-table.ts";
import { Netns } from "../support/rig/netns.ts";

/** As bytes more than a socket usually has room for, and as errors, too. The kernel looks a table up in a list of all. */
const COMMANDS = 2_000;

async function inNamespace(work: (nft: NftSocket, tables: () => Promise<string>) => Promise<void>): Promise<void> {
  await using netns = await Netns.create();
  const runner = new NamespaceRunner();
  const fd = openSync(netns.netnsPath, "r");
  const nft = runner.within(fd, () => new NftSocket(new NetlinkMemory()));
  try {
    await work(nft, async () => (await netns.enter("nft", ["list", "tables"])).stdout);
  } finally {
    await untilClosed(() => nft.close());
    closeQuietly(fd);
    runner.close();
  }
}

function each(command: (table: NftTable) => NftCommand): NftCommand[] {
  return Array.from({ length: COMMANDS }, (_, index) => command(new NftTable(NFPROTO_IPV4, `t${index}`)));
}

test("a transaction may be longer than a socket usually has room for", async () => {
  await inNamespace(async (nft, tables) => {
    await nft.transact(each((table) => table.create(0)));
    assert.equal((await tables()).split("\n").filter(Boolean).length, COMMANDS);
    await nft.transact(each((table) => table.delete()));
    assert.equal(await tables(), "");
  });
});

test("the first error is told, however many there are, and the next transaction has its own answer", async () => {
  await inNamespace(async (nft, tables) => {
    const [exists = assert.fail()] = each((table) => table.create(0));
    for (let attempt = 0; attempt < 3; attempt++) {
      // The first one succeeds.
      const failing = nft.transact([exists, ...each((table) => table.delete()).slice(1)]);
      await assert.rejects(failing, { code: "ENOENT", message: /"t1"/ });
      assert.equal(await tables(), "", "nothing is applied");
      await nft.transact([exists]);
      assert.equal(await tables(), "table ip t0\n");
      await nft.transact([new NftTable(NFPROTO_IPV4, "t0").delete()]);
    }
  });
});
