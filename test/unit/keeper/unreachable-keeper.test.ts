/**
 * Something listens at the keeper's socket and cannot be asked: it may be a keeper that refuses queries, so nobody starts in its place.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";

import { closeQuietly } from "../../../src/kernel/libc.ts";
import { type Channel, connectAt, listenAt } from "../../../src/kernel/channel.ts";
import { KeeperLink } from "../../../src/keeper/keeper-link.ts";
import { Predecessor } from "../../../src/keeper/predecessor.ts";
import type { RunSettings } from "../../../src/config/settings.ts";
import { keeperPath } from "../../../src/api/state-paths.ts";
import { RunKeeper } from "../../../src/run/run-keeper.ts";
import { waitFor } from "../../support/rig/wait.ts";

/** A listener with as many connections as may wait: one more is an error at once. */
function stuckListener(): { readonly socketPath: string; readonly [Symbol.dispose]: () => void } {
  const folder = mkdtempSync(join(tmpdir(), "d11-stuck-"));
  const socketPath = keeperPath(folder);
  mkdirSync(dirname(socketPath));
  const listener = listenAt(socketPath);
  const waiting: Channel[] = [];
  assert.throws(() => {
    for (;;) waiting.push(connectAt(socketPath));
  }, /EAGAIN/);
  const close = (): void => {
    for (const channel of waiting) channel.close();
    closeQuietly(listener);
    rmSync(folder, { recursive: true, force: true });
  };
  return { socketPath, [Symbol.dispose]: close };
}

test("a keeper that cannot be asked counts as one", async () => {
  using stuck = stuckListener();
  await assert.rejects(Predecessor.findAlone(stuck.socketPath), { code: "KEEPER_UNREACHABLE" });
  const run = new RunKeeper({ keeper: "off" } as RunSettings, {} as never, "", {} as never);
  await assert.rejects(run.findPredecessor(dirname(dirname(stuck.socketPath)), false), { code: "KEEPER_UNREACHABLE" });
});

test("a link starts no keeper where another one listens, and leaves it its socket", async () => {
  using stuck = stuckListener();
  const before = statSync(stuck.socketPath).ino;
  const events: object[] = [];
  const nothing = (): void => undefined;
  const callbacks = { onHandoverRequested: nothing, onHandoverCancelled: nothing, onHandoverCompleted: nothing };
  const onEvent = (about: object): void => void events.push(about);
  const link = new KeeperLink({ socketPath: stuck.socketPath, onEvent, onKeeperLost: nothing, ...callbacks });
  link.start();
  await waitFor("its second attempt", () => (events.length > 1 ? true : undefined));
  assert.equal(statSync(stuck.socketPath).ino, before);
  assert.equal(link.report.state, "away");
  link.detach();
});
