// An answer of Docker's resolver is repeated for a second, stands in while that resolver is away, and then ends. That a
// name is unknown is not kept, but for a second
// where no more names may be asked for.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { type DockerAnswer, type DockerQuestion, dockerQuestionKey } from "../../../../src/base/model/visible-names.ts";
import { DockerAnswerMemory } from "../../../../src/query/client/docker-answer-memory.ts";

const KNOWN: DockerAnswer = { kind: "known", v4: Uint8Array.of(10, 0, 0, 1), v6: new Uint8Array(0), target: undefined };
const AWAY: DockerAnswer = { kind: "away", reason: "timed out" };

function askFor(name: string): DockerQuestion {
  const labels = Buffer.from(name);
  return {
    labels,
    kind: "name",
    hasIPv6: false,
    isGuarded: true,
    isOnlyHere: false,
    isDenied: false,
    whose: "the swarm",
  };
}

function setUp(): { answers: DockerAnswerMemory; clock: { ms: number } } {
  const clock = { ms: 0 };
  return { answers: new DockerAnswerMemory(() => clock.ms), clock };
}

test("an answer is repeated for a second, and then asked for again", () => {
  const { answers, clock } = setUp();
  const ask = askFor("web");
  answers.take(dockerQuestionKey(ask), KNOWN);
  clock.ms = LIMITS.askedFreshMs - 1;
  assert.equal(answers.find(ask), KNOWN);
  clock.ms++;
  assert.equal(answers.find(ask), undefined);
});

test("while Docker's resolver is away, the last answer stands in, up to its limit; nothing else is known", () => {
  const { answers, clock } = setUp();
  const ask = askFor("web");
  const key = dockerQuestionKey(ask);
  answers.take(key, KNOWN);
  clock.ms = LIMITS.askedLastKnownMs;
  assert.deepEqual(answers.take(key, AWAY), { ...KNOWN, isLast: true });
  assert.deepEqual(answers.find(ask), { ...KNOWN, isLast: true }, "for the next second nobody asks");
  assert.deepEqual(answers.find(askFor("other")), AWAY);
  clock.ms += LIMITS.askedAwayMs;
  assert.equal(answers.find(ask), undefined);
  assert.deepEqual(answers.take(key, AWAY), AWAY, "the limit is over");
});

test("silence about a name that may have been forwarded does not count for other names, unless it was known", () => {
  const { answers } = setUp();
  const silent: DockerAnswer = { ...AWAY, isOfName: true };
  const [known, other] = [askFor("web"), askFor("other")];
  answers.take(dockerQuestionKey(known), KNOWN);
  assert.deepEqual(answers.take(dockerQuestionKey(other), silent), AWAY);
  assert.equal(answers.find(askFor("next")), undefined, "it is asked for");
  answers.take(dockerQuestionKey(known), silent);
  assert.deepEqual(answers.find(askFor("next")), AWAY);
});

test("that a name is unknown is not kept, and ends what was known; it holds for the query being answered", () => {
  const { answers } = setUp();
  const ask = askFor("web");
  const key = dockerQuestionKey(ask);
  answers.take(key, KNOWN);
  const unknown = answers.take(key, { kind: "unknown" });
  assert.equal(answers.find(ask), undefined);
  assert.equal(
    answers.during(new Map([[key, unknown]]), () => answers.find(ask)),
    unknown,
  );
  assert.equal(answers.find(ask), undefined);
  assert.deepEqual(answers.take(key, AWAY), AWAY);
});

test("names that Docker's resolver does not know are limited, and names kept as well", () => {
  const { answers, clock } = setUp();
  const { burst, perSecond } = LIMITS.askedUnknown;
  for (let count = 0; count < burst; count++) {
    assert.equal(answers.refused("new"), undefined);
    assert.equal(answers.unknownLeft, burst - count);
    answers.take(`n${count}`, { kind: "unknown" });
  }
  assert.equal(answers.refused("new")?.kind, "away");
  assert.equal(answers.unknownLeft, 0);
  clock.ms = 1_000 / perSecond;
  assert.equal(answers.refused("new"), undefined);
  for (let count = 0; count <= LIMITS.askedNamesKept; count++) answers.take(`nname${count}`, KNOWN);
  clock.ms += LIMITS.askedFreshMs;
  assert.deepEqual(answers.take("nname0", AWAY), AWAY, "the oldest gave way");
  assert.equal(answers.take("nname1", AWAY).kind, "known");
  assert.deepEqual([answers.isKept("nname0"), answers.isKept("nname1")], [false, true]);
});

test("of a name that was unknown within the last second nobody needs to ask again, where no more may be asked for", () => {
  const { answers, clock } = setUp();
  for (let count = 0; count < LIMITS.askedUnknown.burst; count++) answers.take(`n${count}`, { kind: "unknown" });
  assert.deepEqual([answers.refused("n7")?.kind, answers.refused("new")?.kind], ["unknown", "away"]);
  clock.ms = 1_000 / LIMITS.askedUnknown.perSecond;
  assert.equal(answers.refused("n7"), undefined, "it is asked for as soon as one may be");
  answers.take("new", { kind: "unknown" });
  clock.ms = LIMITS.askedFreshMs;
  for (let count = 0; count < LIMITS.askedUnknown.perSecond; count++) answers.take(`x${count}`, { kind: "unknown" });
  assert.equal(answers.refused("n7")?.kind, "away", "a second ago");
});
