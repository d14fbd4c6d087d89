/** When an answer is expected: every exclusion has a reason, and nothing else is excluded. */
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import type { ProbeMode } from "./prober.ts";
import { type ProbedContainer, World } from "./world.ts";

type Changeable = { -readonly [Key in keyof ProbedContainer]: ProbedContainer[Key] };

let world: World;
let container: Changeable;

beforeEach(() => {
  world = new World();
  container = {
    unsteady: undefined,
    bornMs: 0,
    hasDockerResolver: true,
    hasDockerRules: true,
    servedInLife: undefined,
  };
  world.add(container);
  world.setDns11("runs", true);
});

function excuse(mode: ProbeMode = "fresh"): string | undefined {
  world.changed();
  return world.answerSpansOf(container)[mode].at(-1)?.excuse;
}

test("an answer is expected while Docker's resolver is up, whatever dns11 does except being stopped", () => {
  assert.equal(excuse(), undefined);
  container.servedInLife = 1;
  world.setDns11("down");
  assert.equal(excuse(), undefined);
  world.setDns11("runs", true);
  assert.equal(excuse(), undefined);
});

test("while dockerd is down, dns11 owes answers to the containers it serves; a new process owes none until it serves them", () => {
  world.setDockerd(false);
  assert.equal(excuse(), "dockerd was down, and dns11 had started since and did not serve it yet");
  container.servedInLife = 1;
  assert.equal(excuse(), undefined);
  world.setDns11("down");
  assert.equal(excuse(), "dockerd was down, and dns11 too");
  world.setDns11("runs", true);
  assert.equal(excuse(), "dockerd was down, and dns11 had started since and did not serve it yet");
});

test("flushed rules and a missing resolver count like a dockerd that is down", () => {
  container.servedInLife = 1;
  container.hasDockerRules = false;
  assert.equal(excuse(), undefined);
  world.setDns11("down");
  assert.equal(excuse(), "the rules that redirect to Docker's resolver were flushed, and dns11 too");
  container.hasDockerRules = true;
  container.hasDockerResolver = false;
  assert.equal(excuse(), "dockerd had made no resolver for it, and dns11 too");
});

test("a stopped dns11 excuses the containers that existed before, until it continues", () => {
  container.servedInLife = 1;
  world.setDns11("stopped");
  assert.equal(excuse(), "dns11 was stopped (SIGSTOP)");
  container.bornMs = Infinity;
  assert.equal(excuse(), undefined, "a container that came later was never redirected to it");
  container.bornMs = 0;
  world.setDns11("runs");
  assert.equal(excuse(), undefined);
});

test("without descriptors or memory TCP is excused, but UDP is not", () => {
  world.setShortage("descriptors");
  assert.deepEqual([excuse("tcp"), excuse("fresh")], ["by TCP, and dns11 had no descriptors", undefined]);
  world.setShortage(undefined);
  assert.equal(excuse("tcp"), undefined);
});

test("changes are recorded with their times", () => {
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
