// What leaves the machine for a container whose policy is enforced, on a live engine, by the log of the upstream server, whose answers
// are good for no time: in which form, how often, and how much in all. And what programs that only resolve their names notice of that.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { dataOf, dig, digMany } from "../../support/client/dig.ts";
import { createNetwork, runContainer } from "../../support/engine/container.ts";
import { ControlGroup } from "../../support/engine/control-group.ts";
import { startEngine } from "../../support/engine/engine.ts";
import { dns11, startDns11 } from "../../support/program/dns11.ts";
import { startUpstream } from "../../support/servers/upstream.ts";
import { POLICY_LIMITS } from "../../../src/features/policy/model/limits.ts";

const POLICIES = `version: 1
policies:
  agents:
    for: [network=agents]
    mode: enforce
    allow: [exact.zero.test, other.zero.test, big.big.test]
`;
const BURST = 2 * POLICY_LIMITS.questionsPerMinute;
const TRIES = 2 * BURST;

for (const mode of [[], ["--strict"]]) {
  test(`what leaves the machine is the same for all, once in a while, and counted ${mode.join("")}`, async (t) => {
    await using engine = await startEngine({ suite: "bookworm" });
    await using upstream = await startUpstream(engine);
    await createNetwork(engine, "agents");
    const [agent, other] = [
      await runContainer(engine, { name: "agent", networks: ["agents"] }),
      await runContainer(engine, { name: "other", networks: ["agents"] }),
    ];
    const file = join(engine.folder, "dns11.yaml");
    writeFileSync(file, POLICIES);
    // With an old engine and --strict, servers are asked by Docker's resolver, which a policy allows dns11's own group alone.
    using group = new ControlGroup(`${engine.id}-dns11`, { isLeft: true });
    const { prefix } = group;
    await using instance = await startDns11(engine, { args: ["--config", file, ...mode], prefix });
    const left = async (): Promise<readonly string[]> => {
      const all = await upstream.queries();
      await upstream.forget();
      return all.map(({ name, type }) => `${name} ${type}`);
    };

    await t.test("in lower case, and once, whatever its TTL", async () => {
      await left();
      for (const name of ["exact.zero.test", "ExAcT.ZeRo.tEsT", "EXACT.ZERO.TEST"]) {
        const reply = await dig(agent, name);
        assert.deepEqual([reply.status, reply.question?.name], ["NOERROR", `${name}.`]);
        assert.equal(dataOf(reply).length, 40);
      }
      assert.deepEqual(await left(), ["exact.zero.test 1"]);
      const replies = await digMany(
        agent,
        "127.0.0.11",
        Array.from({ length: TRIES }, () => ["other.zero.test"]),
      );
      assert.ok(replies.every(({ status }) => status === "NOERROR"));
      assert.deepEqual(await left(), ["other.zero.test 1"]);
    });

    await t.test("TCP after a truncated answer works, and is not asked again and again", async () => {
      for (let times = 0; times < 20; times++) assert.equal(dataOf(await dig(agent, "big.big.test")).length, 40);
      assert.ok((await left()).length <= 4);
    });

    await t.test("reverse names and types of a listed name, until too many have left", async () => {
      const reverse = Array.from({ length: 30 }, (_, index) => ["-x", `198.51.100.${index + 1}`]);
      await digMany(agent, "127.0.0.11", reverse);
      assert.equal((await left()).length, 30);
      const types = Array.from({ length: TRIES }, (_, index) => ["exact.zero.test", `TYPE${1_000 + index}`]);
      const startMs = performance.now();
      const replies = await digMany(agent, "127.0.0.11", types);
      const earned = Math.ceil(((performance.now() - startMs) / 60_000) * POLICY_LIMITS.questionsPerMinute);
      const count = (await left()).length;
      assert.ok(count <= BURST + earned, `${count} of ${TRIES}, ${earned} earned meanwhile`);
      const refused = replies.filter(({ status }) => status === "NXDOMAIN");
      assert.equal(refused.length + count, TRIES);
      if (mode.length === 0)
        assert.match(refused[0]?.raw ?? "", /more than 30 questions in a minute leave the machine/);
      // What it was answered lately it is answered still, and others that have the policy are others.
      assert.equal((await dig(agent, "exact.zero.test")).status, "NOERROR");
      assert.equal((await dig(other, "exact.zero.test", "TYPE1000")).status, "NOERROR");
    });

    await t.test("commands and metrics say so", async () => {
      const place = ["--state-dir", instance.stateDir, "-H", engine.host];
      const log = await dns11(["policy", "log", "agent", ...place]);
      assert.match(
        log.stdout,
        /agent refused exact\.zero\.test TYPE\d+.*: policy agents: more than 30 questions in a minute/,
      );
      const failures = await dns11(["failures", "agent", ...place]);
      assert.match(failures.stdout, /more than 30 questions in a minute leave the machine/, failures.stdout);
      assert.doesNotMatch(failures.stdout, /policy allow/);
      const list = await dns11(["policy", ...place]);
      assert.match(list.stdout, /agent +agents +enforce +[1-9]\d+/);
    });
  });
}
