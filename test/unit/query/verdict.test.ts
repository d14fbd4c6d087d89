// Whoever judges the queries of a client: each verdict is carried out, and the client is answered as always without one.

import assert from "node:assert/strict";
import { test } from "node:test";

import { wireLabels } from "../../../src/base/dns/name.ts";
import { RCODE } from "../../../src/base/dns/rcode.ts";
import { DEFAULT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import { Answerer } from "../../../src/query/answer.ts";
import type { Client } from "../../../src/query/client/client.ts";
import { DEFERRED, DROPPED, SLOT_BYTES } from "../../../src/query/ports.ts";
import { type Outcome, STAGE } from "../../../src/query/record/outcome.ts";
import type { FixedReply, QueryJudge, Verdict } from "../../../src/query/verdict.ts";
import { TYPE, aClient, aNetwork, aQuery, aView } from "../../support/scripted/builders.ts";
import { readReply } from "../support/reply.ts";

const NETWORK = aNetwork({ members: [{ names: ["web"], ipv4: "172.20.0.2" }] });
const ALIAS = wireLabels("other.test") ?? assert.fail();

class ScriptedJudge implements QueryJudge {
  readonly isCovered = true;
  readonly noted: string[] = [];
  readonly #action: Verdict["action"] | undefined;

  constructor(action: Verdict["action"] | undefined) {
    this.#action = action;
  }

  judge(): Verdict | undefined {
    return this.#action && { action: this.#action, text: "as the test wants" };
  }

  note({ stage, rule }: Outcome): void {
    this.noted.push(`${stage} ${rule ?? ""}`.trim());
  }
}

function judged(action: Verdict["action"] | undefined): { client: Client; judge: ScriptedJudge } {
  const client = aClient(aView([NETWORK]));
  const judge = new ScriptedJudge(action);
  client.judge = judge;
  return { client, judge };
}

/** The result if it is no reply, or the response code with what else there is. */
function answered(client: Client, { isOwn = false } = {}): string | number {
  const block = Buffer.alloc(SLOT_BYTES);
  const query = aQuery({ name: "web", type: TYPE.A });
  query.copy(block);
  const length = new Answerer(DEFAULT_BEHAVIOUR, { seed: 1 }).answer(client, block, 0, query.length, false, isOwn);
  if (length <= 0) return length;
  const { rcode, flags, answers } = readReply(Buffer.from(block.subarray(0, length)));
  const data = answers.map((each) => (each.type === TYPE.A ? each.data.join(".") : "CNAME"));
  return [rcode, ...(flags.includes("tc") ? ["tc"] : []), ...data].join(" ");
}

const fixed: FixedReply = {
  rcode: RCODE.NOERROR,
  links: [{ ttlSeconds: 5, target: ALIAS }],
  records: {
    ttlSeconds: 5,
    sets: new Map([[TYPE.A, [Buffer.of(192, 0, 2, 9)]]]),
    alias: undefined,
    containers: [],
  },
};

for (const [action, result] of [
  [undefined, "0 172.20.0.2"],
  [{ kind: "rcode", rcode: RCODE.NXDOMAIN }, "3"],
  [{ kind: "rcode", rcode: RCODE.NOERROR }, "0"],
  [{ kind: "rcode", rcode: RCODE.SERVFAIL }, "2"],
  [{ kind: "drop" }, DROPPED],
  [{ kind: "truncate" }, "0 tc"],
  [{ kind: "reply", reply: fixed }, "0 CNAME 192.0.2.9"],
  [{ kind: "delay", ms: 5 }, DEFERRED],
] as const) {
  test(`the verdict ${action?.kind ?? "that there is none"} is carried out: ${result}`, () => {
    const { client, judge } = judged(action);
    assert.equal(answered(client), result);
    const isAtOnce = action !== undefined && action.kind !== "delay";
    assert.equal(client.counters.ruled, Number(isAtOnce));
    // One that is delayed is noted when it is answered.
    if (action === undefined) assert.deepEqual(judge.noted, [String(STAGE.local)]);
    else assert.deepEqual(judge.noted, isAtOnce ? [`${STAGE.ruled} as the test wants`] : []);
  });
}

test("what a judge wanted is no failure of the client", () => {
  const { client } = judged({ kind: "rcode", rcode: RCODE.SERVFAIL });
  answered(client);
  assert.deepEqual([client.counters.errors, client.failures.hasEntries], [0, false]);
});

test("dns11's own queries count nowhere, and those about itself are not judged", () => {
  const { client, judge } = judged({ kind: "drop" });
  assert.equal(answered(client, { isOwn: true }), DROPPED);
  client.ownQueries.isExempt = true;
  assert.equal(answered(client, { isOwn: true }), "0 172.20.0.2");
  assert.deepEqual([judge.noted, client.counters.queries], [[], 0]);
});
