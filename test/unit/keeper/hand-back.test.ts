/** What a keeper that goes on alone still has open of the namespaces that it has handed back: nothing. */
import assert from "node:assert/strict";
import { closeSync, openSync, readdirSync, readlinkSync } from "node:fs";
import { test } from "node:test";

import { NftSocket } from "../../../src/kernel/nfnetlink.ts";
import { NetlinkMemory } from "../../../src/kernel/netlink-socket.ts";
import { LoneKeeper, heldOf, hold, send } from "../../support/program/lone-keeper.ts";
import { waitFor } from "../../support/rig/wait.ts";

/** The files tell the descriptors of the namespaces from all others of this process. */
const HELD = "/dev/zero";
const OTHER = "/dev/full";
const OTHERS = 20;

/** A real socket stays open when the tables are removed. Anything else is closed, as is one that ends with its tables. */
const WAYS = [
  { isOwned: true, isLocked: false, hasGate: true, isReal: true },
  { isOwned: true, isLocked: false, hasGate: true, isReal: false },
  { isOwned: true, isLocked: true, hasGate: true, isReal: false },
  { isOwned: true, isLocked: false, hasGate: false, isReal: false },
  { isOwned: false, isLocked: false, hasGate: false, isReal: true },
] as const;
/** Two of a pair, and a program. */
const LATER_EACH = 3;

function openOf(path: string): number {
  return readdirSync("/proc/self/fd").filter((fd) => linkOf(fd) === path).length;
}

function linkOf(fd: number | string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return "";
  }
}

test("a keeper that goes on alone closes all descriptors of what it has handed back, and each once", async () => {
  const socket = new NftSocket(new NetlinkMemory());
  const socketLink = linkOf(socket.fd);
  await using keeper = await LoneKeeper.start((main) => {
    hold(main, 1, "1:1");
    const fd = openSync(HELD, "r");
    const pair = { udp: fd, tcp: fd, listening: { address: "127.0.0.11", udpPort: 53, tcpPort: 53 } };
    for (const [index, { hasGate, isReal, ...how }] of WAYS.entries()) {
      const opened = {
        netlink: isReal ? socket.fd : fd,
        gate: hasGate ? fd : undefined,
        pairs: [pair],
        programs: [fd],
      };
      const namespace = { ...heldOf(`2:${index}`), ...how, ...opened, alone: "hand-back" } as const;
      send(main, { is: "hold", key: 2 + index, namespace });
    }
    closeSync(fd);
    socket.close();
  });
  const later = WAYS.length * LATER_EACH;
  await waitFor("the namespaces to be handed back", () => (openOf(HELD) <= later ? true : undefined));
  // They get the numbers of those that are closed.
  const others = Array.from({ length: OTHERS }, () => openSync(OTHER, "r"));
  await waitFor("their descriptors to be closed", () => (openOf(HELD) + openOf(socketLink) === 0 ? true : undefined), {
    timeoutMs: 10_000,
  });
  assert.equal(openOf(OTHER), OTHERS);
  for (const other of others) closeSync(other);
  const found = await keeper.find();
  found.channel.close();
  assert.equal(found.refusing, 1);
});
