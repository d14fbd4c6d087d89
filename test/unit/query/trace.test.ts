// Proves that an explained query gets the same answer as any other, byte for byte, that its steps are recorded in
// order, and that nothing is recorded of the next query.

import assert from "node:assert/strict";
import { test } from "node:test";

import { DEFAULT_BEHAVIOUR, type Behaviour, STRICT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import { Answerer } from "../../../src/query/answer.ts";
import { DEFERRED, SLOT_BYTES } from "../../../src/query/ports.ts";
import { Trace } from "../../../src/query/trace.ts";
import { TYPE, aNetwork, aQuery, aRoute, aView, aClient, upstreams } from "../../support/scripted/builders.ts";

const MEMBER = { names: ["web"], ipv4: "172.20.0.2" };
const VIEW = aView(
  [aNetwork({ name: "one" }), aNetwork({ name: "two", members: [MEMBER], links: ["web:back", "nobody:web"] })],
  upstreams({ routes: [aRoute("lan", "local")] }),
);

function answered(behaviour: Behaviour, query: Buffer, trace?: Trace): string {
  const answerer = new Answerer(behaviour, { seed: 1 });
  const block = Buffer.alloc(SLOT_BYTES);
  query.copy(block);
  const client = aClient(VIEW);
  const length =
    trace === undefined
      ? answerer.answer(client, block, 0, query.length, false)
      : answerer.explain(client, block, query.length, false, trace);
  if (typeof length !== "number") return `deferred ${length.query.toString("hex")}`;
  return length === DEFERRED
    ? `deferred ${answerer.takeDeferred(block).query.toString("hex")}`
    : block.toString("hex", 0, length);
}

for (const [mode, behaviour] of Object.entries({ default: DEFAULT_BEHAVIOUR, strict: STRICT_BEHAVIOUR })) {
  test(`explained or not, ${mode} answers the same`, () => {
    for (const name of ["web", "WEB", "back", "web.two", "web.one", "nobody", "x.lan", "localhost", "a.onion", "."]) {
      for (const type of [TYPE.A, TYPE.AAAA, TYPE.TXT, TYPE.PTR, TYPE.MX]) {
        const query = aQuery({ name, type, opt: {} });
        assert.equal(answered(behaviour, query, new Trace()), answered(behaviour, query), `${name} ${type}`);
      }
    }
  });
}

function stepsOf(name: string, type: number = TYPE.A, behaviour: Behaviour = DEFAULT_BEHAVIOUR): string[] {
  const trace = new Trace();
  answered(behaviour, aQuery({ name, type }), trace);
  return trace.steps.map(({ layer, isAnswer, why }) => `${layer}${isAnswer ? "!" : ""} ${why}`);
}

test("the trace of a name begins with the networks that do not know it", () => {
  assert.deepEqual(stepsOf("web"), [
    'links "web" is a link on "two" to "nobody", which does not exist there',
    'names! "web" is a name on "two" (not found on "one", which is searched first); answered with its addresses',
  ]);
  assert.deepEqual(stepsOf("back"), ['links! "back" is a link on "two" to "web"; answered with its addresses']);
});

test("NAME.NETWORK is recorded as both, and all splits without a match in one line", () => {
  assert.equal(stepsOf("web.two").at(-1), 'names! "web" is a name on "two"; answered with its addresses');
  const cut = stepsOf("a.b.c.d.e").find((line) => line.includes("NAME.NETWORK"));
  assert.match(
    cut ?? "",
    /^names not NAME\.NETWORK either: .* \("a\.b\.c\.d" on "e", "a\.b\.c" on "d\.e", "a\.b" on "c\.d\.e" and 1 more\)/,
  );
});

test("a dangling link that hides a name, as in Docker, is recorded", () => {
  assert.ok(
    stepsOf("web", TYPE.A, STRICT_BEHAVIOUR).includes(
      'names "web" on "two" is hidden by a link whose target does not exist',
    ),
  );
});

test("a name without an address of the family, and a query for another type, are recorded with the answer", () => {
  assert.match(stepsOf("web", TYPE.AAAA).at(-1) ?? "", /^names! .*no address of this family/);
  assert.match(stepsOf("web", TYPE.TXT).at(-1) ?? "", /^names! .*answer for another type is empty/);
});

test("an address that Docker's resolver has no name for is not said to have a name that is too long", () => {
  const ask = { labels: new Uint8Array(0), kind: "address", hasIPv6: false, isGuarded: true } as const;
  const trace = new Trace();
  trace.recordReverse({
    target: undefined,
    dockerQuestion: { ...ask, isOnlyHere: true, isDenied: true, whose: "the swarm" },
  });
  trace.recordReverse({ target: undefined });
  assert.match(trace.steps[0]?.why ?? "", /Docker's resolver has no name/);
  assert.match(trace.steps[1]?.why ?? "", /too long/);
});

test("routes and special names are recorded", () => {
  assert.match(stepsOf("x.lan").at(-1) ?? "", /^route! route for "lan".*never forwarded$/);
  assert.match(stepsOf("localhost").at(-1) ?? "", /^special! localhost/);
  assert.match(stepsOf("other.test").join("\n"), /route no domain-specific route[^\n]*no upstream servers\nspecial /);
});

test("after an explained query nothing more is recorded", () => {
  const answerer = new Answerer(DEFAULT_BEHAVIOUR);
  const block = Buffer.alloc(SLOT_BYTES);
  const trace = new Trace();
  const length = aQuery({ name: "web" }).copy(block);
  answerer.explain(aClient(VIEW), block, length, false, trace);
  const before = trace.steps.length;
  aQuery({ name: "localhost" }).copy(block);
  answerer.answer(aClient(VIEW), block, 0, aQuery({ name: "localhost" }).length, false);
  assert.equal(trace.steps.length, before);
});
