/**
 * A namespace in which somebody holds the lock of nf_tables: what dns11 has begun there waits, and nothing else does. Neither
 * other namespaces, nor the main process, nor the keeper, nor other programs that change rules elsewhere.
 */
import assert from "node:assert/strict";
import { closeSync, openSync } from "node:fs";
import { after, test } from "node:test";

import { LIMITS } from "../../src/base/limits.ts";
import { CONTAINER_MODE } from "../../src/container/attach/attach-mode.ts";
import type { LockWait } from "../../src/container/attach/attachment-parts.ts";
import { Reconciler } from "../../src/container/attach/reconciler.ts";
import { KEEPER_LIMITS } from "../../src/keeper/limits.ts";
import type { NftSocket } from "../../src/kernel/nfnetlink.ts";
import { Attachments, VIEW, answering } from "../support/program/attachments.ts";
import { LockHolder } from "../support/program/lock-holder.ts";
import { MainWithKeeper, isAlive } from "../support/program/main-with-keeper.ts";
import { stdoutOf } from "../support/program/command.ts";
import { makeFolder } from "../support/rig/folder.ts";
import { Netns } from "../support/rig/netns.ts";
import { inTime, pause, waitFor } from "../support/rig/wait.ts";

const OTHERS = 3;

const attaching = new Attachments();
const folder = makeFolder("locked");
after(() => attaching[Symbol.dispose]());

/** Not in a locked namespace: listing takes no lock, but nft waits for it when it ends. */
async function hasTable(netns: Netns): Promise<boolean> {
  return stdoutOf(await netns.enter("nft", ["list", "tables"]), "nft").includes("dns11");
}

async function tablesIn(all: readonly Netns[]): Promise<number> {
  const has = await Promise.all(all.map(hasTable));
  return has.filter(Boolean).length;
}

class Namespaces implements AsyncDisposable {
  readonly all: readonly Netns[];

  private constructor(all: readonly Netns[]) {
    this.all = all;
  }

  static async create(count: number): Promise<Namespaces> {
    return new Namespaces(await Promise.all(Array.from({ length: count }, async () => await Netns.create())));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const netns of this.all) await netns[Symbol.asyncDispose]();
  }
}

class Served implements AsyncDisposable {
  readonly waits: (LockWait & { readonly id: string })[] = [];
  readonly reconciler = new Reconciler(
    {
      ...attaching.parts({ onLocked: (id, wait) => this.waits.push({ id, ...wait }) }),
      openEndpointFor: () => answering,
    },
    () => {},
  );

  want({ name, netnsPath }: Netns): void {
    const claim = { containerId: name, sandboxKey: netnsPath, pid: 0 };
    this.reconciler.setDesired(name, { claim, view: VIEW, mode: CONTAINER_MODE });
  }

  stateOf({ name }: Netns): { readonly kind: string; readonly code?: string; readonly reason?: string } {
    return this.reconciler.attachmentOf(name)?.state ?? { kind: "none" };
  }

  async until(netns: Netns, kind: string): Promise<void> {
    await waitFor(`${netns.name} to be ${kind}`, () => (this.stateOf(netns).kind === kind ? true : undefined));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.reconciler.stop();
  }
}

test("a namespace whose lock is held is left alone; others attach and detach, and are attached when it is free", async () => {
  await using some = await Namespaces.create(1 + OTHERS);
  const [locked = assert.fail(), gone = assert.fail(), ...others] = some.all;
  await using served = new Served();
  {
    await using _ = await LockHolder.in(locked.netnsPath);
    for (const each of some.all.slice(0, -1)) served.want(each);
    for (const each of others.slice(0, -1)) await served.until(each, "attached");
    await served.until(locked, "failed");
    const { code, reason } = served.stateOf(locked);
    assert.equal(code, "RULES_LOCKED");
    assert.match(reason ?? "", /^a process in the container holds the lock of its rules/);
    served.want(others.at(-1) ?? assert.fail());
    await served.until(others.at(-1) ?? assert.fail(), "attached");
    served.reconciler.clearDesired(gone.name);
    await waitFor("its table to be gone", async () => ((await hasTable(gone)) ? undefined : true));
    // A transaction that waits for one namespace's lock makes those of all others wait.
    for (const each of others) stdoutOf(await each.enter("nft", ["add", "table", "ip", "other"]), "nft");
    assert.deepEqual(
      served.waits.map(({ id, isWaiting, isOwn }) => [id, isWaiting, isOwn]),
      [[locked.name, true, true]],
    );
  }
  await served.until(locked, "attached");
  assert.equal(served.waits.at(-1)?.isWaiting, false);
});

test("a namespace that is served goes on being served, with a warning, while a change of its rules waits for the lock", async () => {
  await using some = await Namespaces.create(1);
  const [locked = assert.fail()] = some.all;
  await using served = new Served();
  served.want(locked);
  await served.until(locked, "attached");
  const { reconciler } = served;
  const attachment = reconciler.attachmentOf(locked.name) ?? assert.fail();
  assert.equal(attachment.warning, undefined);
  {
    await using _ = await LockHolder.in(locked.netnsPath);
    reconciler.updateCapture(locked.name);
    const warning = await waitFor("the warning", () => attachment.warning);
    assert.match(warning, /^a process in the container holds the lock of its rules.*goes on when it is free$/);
    assert.equal(attachment.state.kind, "attached");
  }
  await waitFor("the warning to go", () => (attachment.warning === undefined ? true : undefined));
  assert.equal(attachment.state.kind, "attached");
});

test("what waits for the namespace's own lock is told from what waits for others", async () => {
  await using some = await Namespaces.create(1);
  const [locked = assert.fail()] = some.all;
  const fd = openSync(locked.netnsPath, "r");
  const netns = attaching.runner.namespaceOf(fd, attaching.memory);
  let release = (): void => undefined;
  let isSent = false;
  // In the place of one that waits for what the transactions of all namespaces take.
  const waiting = {
    transact: async () => {
      isSent = true;
      await new Promise<void>((resolve) => (release = resolve));
    },
  } as unknown as NftSocket;
  try {
    const holder = await LockHolder.in(locked.netnsPath);
    const transaction = netns.transact(waiting, []);
    await pause(LIMITS.jobSlowMs);
    assert.deepEqual([netns.isAtLock, isSent], [true, false]);
    await holder[Symbol.asyncDispose]();
    await waitFor("the transaction", () => (isSent ? true : undefined));
    assert.equal(netns.isAtLock, false);
    release();
    await transaction;
  } finally {
    closeSync(fd);
  }
});

test("a stop does not wait for a lock, and the table is removed when it is free", async () => {
  await using some = await Namespaces.create(1 + OTHERS);
  const [locked = assert.fail(), ...others] = some.all;
  const served = new Served();
  for (const each of some.all) served.want(each);
  for (const each of some.all) await served.until(each, "attached");
  {
    await using _ = await LockHolder.in(locked.netnsPath);
    await inTime(served.reconciler.stop(), "the stop");
    assert.equal(await tablesIn(others), 0);
  }
  await waitFor("the last table to be gone", async () => ((await hasTable(locked)) ? undefined : true));
});

for (const [when, isDetaching, unknown] of [
  ["while a lock is held", false, 0],
  ["while one of its threads waits for a lock", true, 0],
  ["while one of its threads waits for a lock, and others are held that it knows nothing of", true, 2],
] as const) {
  test(`the main process is killed ${when}: the keeper hands all other namespaces back`, async () => {
    await using some = await Namespaces.create(1 + unknown + OTHERS);
    const [locked = assert.fail()] = some.all;
    const [held, others] = [some.all.slice(0, 1 + unknown), some.all.slice(1 + unknown)];
    await using kept = await MainWithKeeper.start({ folder, paths: some.all.map(({ netnsPath }) => netnsPath) });
    const keeper = await kept.keeperWith(some.all.length);
    const holders = await Promise.all(held.map(async ({ netnsPath }) => await LockHolder.in(netnsPath)));
    try {
      if (isDetaching) {
        kept.toggle(locked.netnsPath);
        // Longer than it may be silent: the main process does not hang.
        await pause(2 * KEEPER_LIMITS.silentMs);
        assert.equal(isAlive(kept.pid), true);
      }
      kept.kill("SIGKILL");
      await waitFor("the other tables to be gone", async () => ((await tablesIn(others)) === 0 ? true : undefined));
      // No transaction waits in a locked namespace: it would make those of all others wait.
      for (const each of others) stdoutOf(await each.enter("nft", ["add", "table", "ip", "other"]), "nft");
    } finally {
      for (const holder of holders) await holder[Symbol.asyncDispose]();
    }
    for (const each of held)
      await waitFor("the last tables to be gone", async () => ((await hasTable(each)) ? undefined : true));
    await waitFor("the keeper to end", () => (isAlive(keeper) ? undefined : true));
  });
}
