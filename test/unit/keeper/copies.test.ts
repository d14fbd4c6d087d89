/**
 * Copies of the descriptors of a namespace that the keeper refuses, where no descriptor is left for them: nothing stays open, and nothing is
 * lost.
 */
import assert from "node:assert/strict";
import { closeSync, openSync, readdirSync, readlinkSync } from "node:fs";
import { test } from "node:test";

import type { RunSettings } from "../../../src/config/settings.ts";
import { copyOf } from "../../../src/keeper/held-descriptors.ts";
import type { Predecessor } from "../../../src/keeper/predecessor.ts";
import { Channel, channelPair } from "../../../src/kernel/channel.ts";
import { RunKeeper } from "../../../src/run/run-keeper.ts";
import { heldOf } from "../../support/program/lone-keeper.ts";

function openOf(path: string): number[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === path ? Number(fd) : [];
    } catch {
      // The descriptor of the folder.
      return [];
    }
  });
}

const nothing = (): void => undefined;

test("copies that cannot all be made leave none open", async () => {
  const netlink = openSync("/dev/null", "r");
  const before = readdirSync("/proc/self/fd").length;
  const served = { ...heldOf("1:1"), netlink, programs: [netlink, -1] };
  assert.throws(() => copyOf(served), { code: "EBADF" });
  const run = new RunKeeper({ keeper: "on" } as RunSettings, {} as never, "/nowhere", {} as never);
  assert.equal(await run.refusing.begin({ ...served, openGate: () => undefined }, () => undefined), false);
  assert.equal(readdirSync("/proc/self/fd").length, before);
  closeSync(netlink);
});

test("a namespace whose copies cannot be made now is still refused, and can be resumed later", async () => {
  const [ours, theirs] = channelPair();
  const events = { onEvent: nothing, onHandoverRequested: nothing, onHandoverCancelled: nothing };
  const parts = { ...events, onKeeperLost: nothing, onHandoverCompleted: nothing };
  const run = new RunKeeper({ keeper: "on" } as RunSettings, {} as never, "/nowhere", parts);
  run.adopt({ channel: new Channel(ours), keeper: 0 } as Predecessor, new Map());
  run.start();
  const netlink = openSync("/dev/null", "r");
  const before = openOf("/dev/null");
  assert.equal(await run.refusing.begin({ ...heldOf("1:1"), netlink, openGate: () => undefined }, nothing), true);
  const own = openOf("/dev/null").find((fd) => !before.includes(fd)) ?? -1;
  closeSync(own);
  assert.throws(() => run.inherit("1:1"), { code: "EBADF" });
  assert.equal(openSync("/dev/null", "r"), own);
  const found = run.inherit("1:1") ?? assert.fail("it is lost");
  run.detach();
  for (const fd of [theirs, netlink, found.netlink, own]) closeSync(fd);
});
