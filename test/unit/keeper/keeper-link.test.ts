/**
 * The main process's side of the channel, with a keeper that does not read for a while: what it must know arrives, and last.
 */
import assert from "node:assert/strict";
import { closeSync, openSync } from "node:fs";
import { test } from "node:test";

import { closeQuietly } from "../../../src/kernel/libc.ts";
import { Channel, channelPair } from "../../../src/kernel/channel.ts";
import { KeeperLink } from "../../../src/keeper/keeper-link.ts";
import { type ToKeeper, decodeToKeeper } from "../../../src/keeper/protocol.ts";
import { heldOf } from "../../support/program/lone-keeper.ts";
import { waitFor } from "../../support/rig/wait.ts";

/** Nothing can listen there: a link whose keeper is lost starts no other one, which would outlive the test. */
const SOCKET = "/dev/null/keeper.sock";
/** More than the channel takes at once. */
const NAMESPACES = 1_000;

const nothing = (): void => undefined;

interface Linked {
  readonly link: KeeperLink;
  readonly keeper: Channel;
  readonly netlink: number;
}

/** A link that has more to tell than fits into its channel. */
function fullLink(alone: "hand-back" | "refuse" = "refuse"): Linked {
  const [ours, theirs] = channelPair();
  const callbacks = { onHandoverRequested: nothing, onHandoverCancelled: nothing, onHandoverCompleted: nothing };
  const parts = { socketPath: SOCKET, onEvent: nothing, onKeeperLost: nothing, ...callbacks };
  const link = new KeeperLink(parts);
  link.adopt(new Channel(ours), 0);
  const netlink = openSync("/dev/null", "r");
  for (let index = 0; index < NAMESPACES; index++)
    link.hold({ ...heldOf(`1:${index}`), alone, netlink, openGate: () => undefined });
  return { link, keeper: new Channel(theirs), netlink };
}

/** What has arrived without heartbeats. */
function received(keeper: Channel): ToKeeper["is"][] {
  const found: ToKeeper["is"][] = [];
  for (let packet = keeper.receive(); typeof packet === "object"; packet = keeper.receive()) {
    const message = decodeToKeeper(packet);
    for (const fd of packet.descriptors) closeQuietly(fd);
    if (message !== undefined && message.is !== "beat" && message.is !== "hello") found.push(message.is);
  }
  return found;
}

for (const [step, tell] of [
  ["taken", (link: KeeperLink) => link.confirmTakeover()],
  ["yield", (link: KeeperLink) => link.yield()],
] as const) {
  test(`a full channel: "${step}" is sent after everything that is held`, async () => {
    const { link, keeper, netlink } = fullLink();
    tell(link);
    const found: string[] = [];
    await waitFor(step, () => {
      found.push(...received(keeper));
      return found.includes(step) ? true : undefined;
    });
    assert.deepEqual(found, [...Array.from({ length: NAMESPACES }, () => "hold"), step]);
    link.detach();
    keeper.close();
    closeSync(netlink);
  });
}

test(`a takeover that failed meanwhile: "yield" is not sent`, async () => {
  const { link, keeper, netlink } = fullLink();
  link.yield();
  keeper.send(Buffer.from(JSON.stringify({ is: "back" })));
  await link.isTold();
  const found: string[] = [];
  await waitFor("everything else", () => {
    found.push(...received(keeper));
    return found.length >= NAMESPACES ? true : undefined;
  });
  assert.equal(await link.isTold(), true);
  assert.deepEqual(received(keeper), []);
  assert.equal(found.includes("yield"), false);
  link.detach();
  keeper.close();
  closeSync(netlink);
});
