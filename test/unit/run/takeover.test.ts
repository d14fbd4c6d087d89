// Proves that a process of another version which has just ended by itself is no reason for the next one to fail.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

import { createLog } from "../../../src/base/log/log.ts";
import type { Predecessor } from "../../../src/keeper/predecessor.ts";
import { Channel } from "../../../src/kernel/channel.ts";
import { endPredecessor } from "../../../src/run/takeover.ts";

test("a process that is to be stopped and has ended meanwhile counts as stopped", async () => {
  const { pid } = spawnSync("true");
  const predecessor = { main: pid, keeper: 0, refusing: 0, channel: new Channel(-1) } as Predecessor;
  await assert.doesNotReject(endPredecessor(predecessor, createLog("silent")));
});
