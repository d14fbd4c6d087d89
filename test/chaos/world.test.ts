/** Who owes a container an answer: what is excluded is excluded for a reason, and nothing else is. */
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import type { ProbeMode } from "./prober.ts";
import { type ProbedContainer, World } from "./world.ts";

type Changeable = { -readonly [Key in keyof ProbedContainer]: ProbedContainer[Key] };

let world: World;
let container: Changeable;

beforeEach(() => {
  world = new World();
  container = { unsteady: undefined, bornMs: 0, hasDockerResolver: true, hasDockerRules: true, servedInLife: undefined };
  world.add(container);
  world.setDns11("runs", true);
});

function excuse(mode: ProbeMode = "fresh"): string | undefined {
  world.changed();
  return world.answerSpansOf(container)[mode].at(-1)?.excuse;
}

test("while Docker's resolver is there an answer is owed, whatever dns11 does but stand still", () => {
  assert.equal(excuse(), undefined);
  container.servedInLife = 1;
  world.setDns11("down");
  assert.equal(excuse(), undefined);
  world.setDns11("runs", true);
  assert.equal(excuse(), undefined);
});

test("while it is not, dns11 owes it to whom it serves, and to nobody in its next life", () => {
  world.setDockerd(false);
  assert.equal(excuse(), "dockerd was down, and dns11 had started since and did not serve it yet");
  container.servedInLife = 1;
  assert.equal(excuse(), undefined);
  world.setDns11("down");
  assert.equal(excuse(), "dockerd was down, and dns11 too");
  world.setDns11("runs", true);
  assert.equal(excuse(), "dockerd was down, and dns11 had started since and did not serve it yet");
});

test("rules that were flushed and a resolver that was not made are as good as no dockerd", () => {
  container.servedInLife = 1;
  container.hasDockerRules = false;
  assert.equal(excuse(), undefined);
  world.setDns11("down");
  assert.equal(excuse(), "the rules that lead to Docker's resolver were flushed, and dns11 too");
  container.hasDockerRules = true;
  container.hasDockerResolver = false;
  assert.equal(excuse(), "dockerd had made no resolver for it, and dns11 too");
});

test("a stopped dns11 silences who was there before, and counts again once it goes on", () => {
  container.servedInLife = 1;
  world.setDns11("stopped");
  assert.equal(excuse(), "dns11 was stopped (SIGSTOP)");
  container.bornMs = Infinity;
  assert.equal(excuse(), undefined, "who came after that was never led to it");
  container.bornMs = 0;
  world.setDns11("runs");
  assert.equal(excuse(), undefined);
});

test("for want of descriptors or memory no connection is owed, but an answer by UDP is", () => {
  world.setShortage("descriptors");
  assert.deepEqual([excuse("tcp"), excuse("fresh")], ["by TCP, and dns11 had no descriptors", undefined]);
  world.setShortage(undefined);
  assert.equal(excuse("tcp"), undefined);
});

test("what happened when is kept", () => {
  world.setDockerd(false);
  world.setDockerd(true);
  const answerSpans = world.answerSpansOf(container).reused;
  assert.deepEqual(
    answerSpans.map(({ excuse: why }) => why === undefined),
    [true, false, true],
  );
  assert.deepEqual(
    answerSpans.slice(1).map(({ fromMs }) => fromMs),
    answerSpans.slice(0, -1).map(({ toMs }) => toMs),
  );
});
