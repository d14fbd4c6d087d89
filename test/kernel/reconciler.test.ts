// Proves that however many namespaces are detached at once, each step has a round of the event loop to itself: queries are
// answered in between, and the watchdog sees that the loop is alive.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { CONTAINER_MODE } from "../../src/container/attach/attach-mode.ts";
import { Reconciler } from "../../src/container/attach/reconciler.ts";
import type { OpenEndpoint } from "../../src/container/attach/attachment-parts.ts";
import { guard } from "../../src/base/lib/guard.ts";
import { Attachments, VIEW, answering } from "../support/program/attachments.ts";
import { Netns } from "../support/rig/netns.ts";
import { waitFor } from "../support/rig/wait.ts";

const COUNT = 6;

const attaching = new Attachments();
after(() => attaching[Symbol.dispose]());

test("namespaces are detached one step a round, and nothing of ours stays in any of them", async () => {
  const places = await Promise.all(Array.from({ length: COUNT }, async () => await Netns.create()));
  const reconciler = new Reconciler(
    {
      ...attaching.parts({ ruleBackend: { backend: "nft" } }),
      openEndpointFor: () => answering,
    },
    () => {},
  );
  let round = 0;
  let timer: NodeJS.Immediate;
  const count = (): void => {
    round++;
    timer = setImmediate(count);
  };
  timer = setImmediate(count);
  /** The rounds in which an attachment started draining or was closed. */
  const steps: number[] = [];
  const mode = { ...CONTAINER_MODE, withdraw: () => void steps.push(round) };
  try {
    for (const [index, { netnsPath }] of places.entries()) {
      const containerId = String(index);
      reconciler.setDesired(containerId, { claim: { containerId, sandboxKey: netnsPath, pid: 0 }, view: VIEW, mode });
    }
    await waitFor(
      "all to be attached",
      () =>
        [...reconciler.attachments()].filter(([, { state }]) => state.kind === "attached").length === COUNT ||
        undefined,
    );
    await reconciler.stop();
    assert.equal(steps.length, 2 * COUNT);
    assert.deepEqual(
      steps.filter((each, index) => each === steps[index - 1]),
      [],
    );
    for (const netns of places) {
      const { stdout } = await netns.enter("nft", ["list", "ruleset"]);
      assert.doesNotMatch(stdout, /dns11/);
    }
  } finally {
    clearImmediate(timer);
    await Promise.all(places.map(async (netns) => await netns[Symbol.asyncDispose]()));
  }
});

test("a namespace that is desired again while it is being detached is attached afterwards, without a failure", async () => {
  await using place = await Netns.create();
  const states: string[] = [];
  const reconciler = new Reconciler({ ...attaching.parts(), openEndpointFor: () => answering }, (_, { kind }) => {
    states.push(kind);
  });
  const want = (containerId: string): void => {
    const claim = { containerId, sandboxKey: place.netnsPath, pid: 0 };
    reconciler.setDesired(containerId, { claim, view: VIEW, mode: CONTAINER_MODE });
  };
  const attached = async (): Promise<void> => {
    await waitFor("it to be attached", () => (states.at(-1) === "attached" ? true : undefined));
  };
  want("first");
  await attached();
  reconciler.clearDesired("first");
  // Until attaching starts: another container with the same namespace.
  await waitFor("it to be left", () => ([...reconciler.attachments()].length === 0 ? true : undefined), { everyMs: 0 });
  want("second");
  await waitFor("it to have been left", () => (states.includes("closed") ? true : undefined));
  await attached();
  assert.equal(states.includes("failed"), false, states.join());
  await reconciler.stop();
});

test("a container that starts in another namespace is not attached before it is attached there", async () => {
  await using before = await Netns.create();
  await using now = await Netns.create();
  const reconciler = new Reconciler({ ...attaching.parts(), openEndpointFor: () => answering }, () => {});
  const isAttachedIn = ({ netnsPath }: Netns): boolean => {
    const { claim, state } = reconciler.attachmentOf("a") ?? {};
    return claim?.sandboxKey === netnsPath && state?.kind === "attached";
  };
  for (const place of [before, now]) {
    const claim = { containerId: "a", sandboxKey: place.netnsPath, pid: 0 };
    reconciler.setDesired("a", { claim, view: VIEW, mode: CONTAINER_MODE });
    assert.equal(reconciler.attachmentOf("a"), undefined);
    await waitFor("it to be attached there", () => isAttachedIn(place) || undefined);
  }
  await reconciler.stop();
});

test("a change while a namespace is being verified is followed by another verification", async () => {
  await using place = await Netns.create();
  const reconciler = new Reconciler({ ...attaching.parts(), openEndpointFor: () => answering }, () => {});
  let verified = 0;
  let release = (): void => {};
  const first = new Promise<void>((resolve) => (release = resolve));
  const onVerified = async (): Promise<void> => {
    verified++;
    await first;
  };
  const claim = { containerId: "a", sandboxKey: place.netnsPath, pid: 0 };
  reconciler.setDesired("a", { claim, view: VIEW, mode: { ...CONTAINER_MODE, onVerified } });
  await waitFor("the first verification", () => (verified === 1 ? true : undefined));
  reconciler.updateCapture("a");
  reconciler.updateCapture("a");
  release();
  await waitFor("the second one", () => (verified >= 2 ? true : undefined));
  await waitFor("it to be attached", () => reconciler.attachmentOf("a")?.state.kind === "attached" || undefined);
  await reconciler.stop();
});

test("an internal error while attaching one container leaves that one to Docker, and all others are attached", async () => {
  await using bad = await Netns.create();
  await using good = await Netns.create();
  const errors: string[] = [];
  guard.install((error, entrance) => errors.push(`${entrance}: ${(error as Error).message}`));
  const openEndpointFor = (id: string): OpenEndpoint => {
    if (id !== "bad") return answering;
    return () => {
      throw new TypeError("a defect");
    };
  };
  const reconciler = new Reconciler({ ...attaching.parts(), openEndpointFor }, () => {});
  try {
    for (const [containerId, { netnsPath: sandboxKey }] of [
      ["bad", bad],
      ["good", good],
    ] as const) {
      const claim = { containerId, sandboxKey, pid: 0 };
      reconciler.setDesired(containerId, { claim, view: VIEW, mode: CONTAINER_MODE });
    }
    const states = await waitFor("the good one to be attached", () => {
      const all = new Map([...reconciler.attachments()].map(([id, { state }]) => [id, state]));
      return all.get("good")?.kind === "attached" ? all : undefined;
    });
    assert.equal(states.get("bad")?.kind, "failed");
    assert.equal(errors[0], "attach: a defect");
    const { stdout } = await bad.enter("nft", ["list", "ruleset"]);
    assert.doesNotMatch(stdout, /dns11/);
  } finally {
    await reconciler.stop();
    guard.uninstall();
  }
});

test("suspects are attached after all other containers, and one at a time", async () => {
  const places = await Promise.all(Array.from({ length: COUNT }, async () => await Netns.create()));
  const attached: string[] = [];
  const working = new Set<string>();
  const together: number[] = [];
  const reconciler = new Reconciler(
    {
      ...attaching.parts(),
      openEndpointFor: () => answering,
      isSuspect: (id) => Number(id) < 2,
      runAttach: async (id, work) => {
        if (Number(id) < 2) together.push(working.size);
        working.add(id);
        await work();
      },
    },
    (id, { kind }) => {
      if (kind !== "attached") return;
      attached.push(id);
      working.delete(id);
    },
  );
  try {
    for (const [index, { netnsPath }] of places.entries()) {
      const containerId = String(index);
      reconciler.setDesired(containerId, {
        claim: { containerId, sandboxKey: netnsPath, pid: 0 },
        view: VIEW,
        mode: CONTAINER_MODE,
      });
    }
    await waitFor("all to be attached", () => (attached.length === COUNT ? true : undefined));
    assert.deepEqual(
      [attached.slice(-2).toSorted(), together],
      [
        ["0", "1"],
        [0, 0],
      ],
    );
  } finally {
    await reconciler.stop();
    await Promise.all(places.map(async (netns) => await netns[Symbol.asyncDispose]()));
  }
});
