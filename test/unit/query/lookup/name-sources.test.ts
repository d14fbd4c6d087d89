// Proves the precedence of name sources: the first that knows or denies a name wins, and the trace has its description.

import { LOCAL_SOURCE } from "../../../../src/base/model/local-source.ts";
import assert from "node:assert/strict";
import { test } from "node:test";

import { DEFAULT_BEHAVIOUR, STRICT_BEHAVIOUR } from "../../../../src/base/model/behaviour.ts";
import { DENIED, MISS, type VisibleNames } from "../../../../src/base/model/visible-names.ts";
import type { View } from "../../../../src/base/model/view.ts";
import { Answerer } from "../../../../src/query/answer.ts";
import { SLOT_BYTES } from "../../../../src/query/ports.ts";
import { Trace } from "../../../../src/query/trace.ts";
import { TYPE, aNetwork, aQuery, aView, aClient } from "../../../support/scripted/builders.ts";
import { type AnswerResult, answerOnce } from "../../support/reply.ts";

const ADDRESS = Uint8Array.of(10, 9, 9, 9);
const NONE = new Uint8Array(0);

// Knows names of one label, all with the same address.
const KNOWS: VisibleNames = {
  places: [],
  kind: LOCAL_SOURCE.network,
  find(name, search) {
    if (name.labelCount !== 1) return MISS;
    search.trace?.record("names", "known to the second source");
    return search.found({ v4: ADDRESS, v6: NONE }, false);
  },
  pointer: () => ({ target: Buffer.from("\x03nsx\0", "latin1") }),
};
// Is authoritative for a zone of two labels, which is empty.
const DENIES: VisibleNames = {
  places: [],
  kind: LOCAL_SOURCE.network,
  find(name, search) {
    if (name.labelCount !== 2) return MISS;
    search.trace?.record("names", "its zone holds no such name");
    return DENIED;
  },
  pointer: () => undefined,
};

const NETWORK = aView([aNetwork({ name: "one", members: [{ names: ["web"], ipv4: "172.20.0.2" }] })]);

function viewWith(...others: readonly VisibleNames[]): View {
  return { ...NETWORK, names: [...NETWORK.names, ...others] };
}

function answerTo(name: string, view: View, type: number = TYPE.A, behaviour = DEFAULT_BEHAVIOUR): AnswerResult {
  return answerOnce(aQuery({ name, type }), { behaviour, client: aClient(view) });
}

for (const [mode, behaviour] of Object.entries({ strict: STRICT_BEHAVIOUR, default: DEFAULT_BEHAVIOUR })) {
  test(`${mode}: a name that several sources know belongs to the first`, () => {
    assert.deepEqual(addresses(answerTo("web", viewWith(KNOWS), TYPE.A, behaviour)), ["172.20.0.2"]);
    assert.deepEqual(addresses(answerTo("other", viewWith(KNOWS), TYPE.A, behaviour)), ["10.9.9.9"]);
    assert.deepEqual(addresses(answerTo("web.one", viewWith(DENIES, KNOWS), TYPE.A, behaviour)), ["172.20.0.2"]);
  });

  test(`${mode}: a name that a source denies does not exist, whatever later sources know`, () => {
    const { names, upstreams } = viewWith(DENIES);
    for (const view of [
      { names, upstreams },
      { names: [...names, KNOWS], upstreams },
    ]) {
      const answer = answerTo("nobody.zone", view, TYPE.A, behaviour);
      assert.equal(answer.kind === "reply" && answer.reply.rcode, 3);
    }
    assert.equal(answerTo("nobody.zone", viewWith(KNOWS), TYPE.A, behaviour).kind, "deferred");
  });
}

test("an address belongs to the first source that knows it", () => {
  const other = answerTo("3.0.20.172.in-addr.arpa", viewWith(DENIES, KNOWS), TYPE.PTR);
  assert.equal(other.kind === "reply" && other.reply.counts[0], 1);
  assert.equal(answerTo("3.0.20.172.in-addr.arpa", viewWith(DENIES), TYPE.PTR).kind, "deferred");
});

test("the trace has the source's description of a name, and ends with the result", () => {
  assert.deepEqual(stepsOf("other", viewWith(KNOWS)).slice(-1), [
    "names! known to the second source; answered with its addresses",
  ]);
  assert.deepEqual(stepsOf("nobody.zone", viewWith(DENIES)).slice(-1), [
    "names! its zone holds no such name; no such name, and no other source may have it",
  ]);
});

function stepsOf(name: string, view: View): string[] {
  const trace = new Trace();
  const block = Buffer.alloc(SLOT_BYTES);
  const query = aQuery({ name });
  query.copy(block);
  new Answerer(DEFAULT_BEHAVIOUR, { seed: 1 }).explain(aClient(view), block, query.length, false, trace);
  return trace.steps.map(({ layer, isAnswer, why }) => `${layer}${isAnswer ? "!" : ""} ${why}`);
}

function addresses(answer: AnswerResult): string[] {
  return answer.kind === "reply" ? answer.reply.answers.map(({ data }) => data.join(".")) : [];
}
