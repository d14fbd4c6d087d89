// Proves how a program gets to lo of a namespace: in a thread of its own, which ends when it is idle; or in the place of its
// predecessor's, which can have it back.

import assert from "node:assert/strict";
import { closeSync, openSync, readdirSync } from "node:fs";
import { after, test } from "node:test";

import { KERNEL_ANSWER_LIMITS } from "../../../src/features/kernel-answers/limits.ts";
import { NamespaceRunner } from "../../../src/container/namespace/namespace-runner.ts";
import { KernelAnswers } from "../../../src/features/kernel-answers/kernel/kernel-answers.ts";
import type { KernelSpace } from "../../../src/features/kernel-answers/kernel/kernel-space.ts";
import { LinkThread } from "../../../src/features/kernel-answers/kernel/link-thread.ts";
import { LOOPBACK_INDEX } from "../../../src/kernel/rtnetlink-constants.ts";
import { firstAtIngress } from "../../../src/kernel/bpf.ts";
import { Netns } from "../../support/rig/netns.ts";
import { untilSame } from "../../support/rig/wait.ts";
import { Clock } from "../../unit/support/clock.ts";

const NONE = 0;
const runner = new NamespaceRunner();
const kernel = new KernelAnswers(KERNEL_ANSWER_LIMITS);

after(() => {
  kernel.close();
  runner.close();
});

function openSpace(): KernelSpace {
  return kernel.open() ?? assert.fail();
}

class Place implements AsyncDisposable {
  readonly fd: number;
  readonly #netns: Netns;

  private constructor(netns: Netns) {
    this.#netns = netns;
    this.fd = openSync(netns.netnsPath, "r");
  }

  static async create(): Promise<Place> {
    return new Place(await Netns.create());
  }

  get path(): string {
    return this.#netns.netnsPath;
  }

  // The number of the program at its lo.
  get program(): number | undefined {
    return runner.within(this.fd, () => firstAtIngress(LOOPBACK_INDEX));
  }

  async untilNone(): Promise<void> {
    await untilSame("no program at lo", async () => await Promise.resolve(this.program), NONE);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    closeSync(this.fd);
    await this.#netns[Symbol.asyncDispose]();
  }
}

// The first one, because it counts threads, and those of the others end some seconds later.
test("a program that cannot be passed to the thread leaves no descriptor open", async () => {
  const namespace = openSync("/proc/thread-self/ns/net", "r");
  const before = readdirSync("/proc/self/fd").length;
  await assert.rejects(new LinkThread().attach({ namespace, program: -1 }), { code: "EBADF" });
  assert.equal(readdirSync("/proc/self/fd").length, before);
  closeSync(namespace);
});

test("the thread ends when there has been nothing to attach for a while, which is twice as long each time", async () => {
  await using place = await Place.create();
  const space = openSpace();
  const links = new LinkThread();
  const threads = async (): Promise<number> => await Promise.resolve(readdirSync("/proc/self/task").length);
  const attach = async (): Promise<void> =>
    closeSync(await links.attach({ namespace: place.fd, program: space.program }));
  const before = await threads();
  for (const times of [1, 2, 4]) {
    const idleMs = times * KERNEL_ANSWER_LIMITS.threadIdleFirstMs;
    {
      using clock = new Clock();
      await attach();
      assert.ok((await threads()) > before);
      clock.advance(idleMs - 1);
      await attach();
      clock.advance(idleMs - 1);
      assert.ok((await threads()) > before);
      clock.advance(1);
    }
    await untilSame("the thread to end", threads, before);
  }
  space.close();
});

test("each program is attached in its namespace, and ends with its space", async () => {
  await using first = await Place.create();
  await using second = await Place.create();
  const here = firstAtIngress(LOOPBACK_INDEX);
  const spaces = [openSpace(), openSpace()];
  await Promise.all([spaces[0]?.attachIn(first.fd), spaces[1]?.attachIn(second.fd)]);
  const programs = [first.program, second.program];
  assert.equal(new Set([...programs, NONE, undefined]).size, 4, String(programs));
  assert.equal(firstAtIngress(LOOPBACK_INDEX), here, "none in the namespace of this process");
  spaces[0]?.close();
  await first.untilNone();
  assert.equal(second.program, programs[1]);
  spaces[1]?.close();
  await second.untilNone();
});

test("a descriptor that is closed meanwhile, and its number used again, leads to no other namespace", async () => {
  await using place = await Place.create();
  await using other = await Place.create();
  const space = openSpace();
  const fd = openSync(place.path, "r");
  const attached = space.attachIn(fd);
  closeSync(fd);
  assert.equal(openSync(other.path, "r"), fd);
  await attached;
  closeSync(fd);
  assert.notEqual(place.program, NONE);
  assert.equal(other.program, NONE);
  space.close();
});

test("a space that is closed meanwhile leaves no program", async () => {
  await using place = await Place.create();
  const space = openSpace();
  const attached = space.attachIn(place.fd);
  space.close();
  await attached;
  await place.untilNone();
});

test("an error has a reason, and the next one is attached", async () => {
  await using place = await Place.create();
  const file = openSync("/dev/null", "r");
  const space = openSpace();
  await assert.rejects(space.attachIn(file), /setns.*EINVAL/);
  closeSync(file);
  await space.attachIn(place.fd);
  assert.notEqual(place.program, NONE);
  space.close();
});

test("where the thread ends meanwhile, that is an error, and the next one is attached", async () => {
  await using place = await Place.create();
  const space = openSpace();
  const links = new LinkThread();
  const request = { namespace: place.fd, program: space.program };
  const attached = links.attach(request);
  setImmediate(() => links.close());
  await assert.rejects(attached, /the thread that attaches programs has ended/);
  closeSync(await links.attach(request));
  links.close();
  space.close();
});

test("a successor's program takes the place of the one before, which can have it back", async () => {
  await using place = await Place.create();
  const [space, successor] = [openSpace(), openSpace()];
  await space.attachIn(place.fd);
  const own = place.program;
  successor.adopt(space.held[0] ?? assert.fail());
  assert.equal(place.program, own, "until it serves");
  await kernel.takePlaces();
  const its = place.program;
  assert.notEqual(its, own);
  assert.notEqual(its, NONE);
  // The successor ends before it serves.
  successor.close();
  assert.equal(place.program, its, "the link is both processes'");
  space.takePlace();
  assert.equal(place.program, own);
  space.close();
  await place.untilNone();
});
