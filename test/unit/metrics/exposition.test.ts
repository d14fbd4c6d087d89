// A page of many samples is written in parts, between which queries are answered; the text is the same.

import assert from "node:assert/strict";
import { test } from "node:test";

import { exposition, counter, gauge, sample } from "../../../src/metrics/exposition.ts";

const MANY = 3_000;

test("a page has each family's help and type once, then its samples in their order", async () => {
  const text = await exposition([
    gauge("first", "One sample.", [sample(7)]),
    counter("many_total", "A backslash \\ and\na second line.", manySamples()),
    gauge("none", "Left out.", []),
    gauge("last", "After it.", [sample(1, { name: 'a "quoted" one' })]),
  ]);
  const samples = Array.from({ length: MANY }, (_, at) => `many_total{container="c${at}"} ${at}\n`);
  assert.equal(
    text,
    `# HELP first One sample.\n# TYPE first gauge\nfirst 7\n\n` +
      `# HELP many_total A backslash \\\\ and\\na second line.\n# TYPE many_total counter\n${samples.join("")}\n` +
      `# HELP last After it.\n# TYPE last gauge\nlast{name="a \\"quoted\\" one"} 1\n`,
  );
});

test("other work runs between the parts of a long page, and none is made ahead", async () => {
  let made = 0;
  const madeByRound: number[] = [];
  let isOver = false;
  function* counted(): Generator<ReturnType<typeof sample>> {
    for (const each of manySamples()) {
      made++;
      yield each;
    }
  }
  const watch = (): void => {
    madeByRound.push(made);
    if (!isOver) setImmediate(watch);
  };
  setImmediate(watch);
  await exposition([counter("many_total", "Many.", counted())]);
  isOver = true;
  const most = Math.max(...madeByRound.map((count, at) => count - (madeByRound[at - 1] ?? 0)));
  assert.ok(most <= 300, `${most} in one round`);
});

function* manySamples(): Generator<ReturnType<typeof sample>> {
  for (let at = 0; at < MANY; at++) yield sample(at, { container: `c${at}` });
}
