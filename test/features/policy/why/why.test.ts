/**
 * What a program in a container learns of its policy by a TXT query, and nothing of anybody else's: asked from inside with dig and
 * busybox, while the log of the server outside shows that no such question leaves.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import * as fc from "fast-check";

import { MISS, NameSearch } from "../../../../src/base/model/visible-names.ts";
import { DEFAULT_BEHAVIOUR } from "../../../../src/base/model/behaviour.ts";
import { StoredName } from "../../../../src/base/model/label-table.ts";
import { TYPE } from "../../../../src/base/dns/record-type.ts";
import { Reasons } from "../../../../src/features/policy/why/why.ts";
import { dataOf, dig } from "../../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../../support/engine/container.ts";
import { type Engine, startEngine } from "../../../support/engine/engine.ts";
import { type Dns11, startDns11 } from "../../../support/program/dns11.ts";
import { runs } from "../../../support/rig/runs.ts";
import { waitFor } from "../../../support/rig/wait.ts";
import { aName } from "../../../support/scripted/builders.ts";
import { type Upstream, startUpstream } from "../../../support/servers/upstream.ts";

const ZONE = "why.dns11.alt";
const SETTINGS = `version: 1
policies:
  agents:
    for: [network=agents]
    mode: enforce
    allow: [exact.ok.test, "*.wild.ok.test"]
    deny: [no.wild.ok.test]
  watch:
    for: [network=watched]
    mode: audit
    allow: [exact.ok.test]
`;

const folder = mkdtempSync(join(tmpdir(), "d11-why-"));
const file = join(folder, "dns11.yaml");
let engine: Engine;
let upstream: Upstream;
let instance: Dns11;
let agent: Container;
let watched: Container;
let free: Container;

before(async () => {
  writeFileSync(file, SETTINGS);
  engine = await startEngine();
  upstream = await startUpstream(engine);
  for (const network of ["agents", "watched", "open"]) await createNetwork(engine, network);
  agent = await runContainer(engine, { name: "agent", networks: ["agents"] });
  await runContainer(engine, { name: "tool", networks: ["agents"] });
  watched = await runContainer(engine, { name: "watched", networks: ["watched"] });
  free = await runContainer(engine, { name: "free", networks: ["open"] });
  instance = await startDns11(engine, { args: ["--config", file] });
  for (const { name } of [agent, watched, free]) await instance.waitFor(name, "attached");
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const why = async (container: Container, name: string): Promise<string> =>
  dataOf(await dig(container, `${name}.${ZONE}`, "TXT"))
    .map((text) => text.replaceAll(/^"|"$|\\/g, ""))
    .toSorted()
    .join("\n");

test("a container learns what its policy says of a name, by which line, and what to ask for", async () => {
  const line = (number: number): string => `(${file}:${number})`;
  assert.equal(await why(agent, "exact.ok.test"), `allowed: policy agents: allow exact.ok.test ${line(6)}`);
  assert.equal(await why(agent, "a.wild.ok.test"), `allowed: policy agents: allow *.wild.ok.test ${line(6)}`);
  assert.equal(await why(agent, "no.wild.ok.test"), `refused: policy agents: deny no.wild.ok.test ${line(7)}`);
  assert.match(
    await why(agent, "Secret.Exfil.test"),
    /^refused: policy agents: no rule allows it \(.*\)\nto have it allowed, ask for "secret\.exfil\.test" in "allow" of policy agents$/,
  );
  assert.equal(await why(agent, "tool"), "allowed: it is a name of this machine");
  assert.match(await why(watched, "secret.exfil.test"), /^allowed, and recorded: policy watch: no rule allows it/);
  assert.match((await agent.exec("nslookup", ["-type=txt", `x.test.${ZONE}`])).stdout, /refused: policy agents/);
});

test("what it says is what happens", async () => {
  for (const name of ["exact.ok.test", "a.wild.ok.test", "no.wild.ok.test", "secret.exfil.test", "tool"]) {
    const isAllowed = (await dig(agent, name)).status === "NOERROR";
    assert.equal((await why(agent, name)).startsWith("allowed"), isAllowed, name);
  }
});

test("no such question leaves the machine, with a policy or without one", async () => {
  const name = `leak.test.${ZONE}`;
  for (const container of [agent, watched]) {
    await dig(container, name, "TXT");
    await dig(container, name, "A");
  }
  assert.equal(await why(free, "leak.test"), "no policy: nothing is refused here");
  assert.deepEqual(await upstream.queriesFor(name), []);
});

test("a reload changes what is said, in the same step as what is refused", async () => {
  writeFileSync(file, SETTINGS.replace("[exact.ok.test, ", "[secret.exfil.test, exact.ok.test, "));
  await instance.reload();
  await waitFor("the rule", async () =>
    (await why(agent, "secret.exfil.test")).startsWith("allowed: policy agents: allow secret.exfil.test")
      ? true
      : undefined,
  );
  writeFileSync(file, SETTINGS);
  await instance.reload();
  assert.match(await why(agent, "secret.exfil.test"), /^refused/);
});

test("questions about questions, and too many of them, cost nothing more", () => {
  let looked = 0;
  const sourceOf = (): undefined => void looked++;
  const policy = { grantFor: () => undefined, name: () => undefined, forward: () => undefined, leave: () => undefined };
  const hidden = { ...policy, ruleFor: () => undefined, policies: [] } as never;
  const reasons = new Reasons(
    () => hidden,
    sourceOf,
    () => 0,
  );
  const search = new NameSearch(DEFAULT_BEHAVIOUR);
  const ask = (text: string): number => reasons.find(new StoredName(aName(text).subarray(0, -1)), search);
  ask(`a.${ZONE}.${ZONE}`);
  assert.deepEqual([search.records?.sets.size, looked], [0, 0]);
  for (let count = 0; count < 200; count++) ask(`n${count}.${ZONE}`);
  assert.deepEqual([search.records?.isUnavailable, looked], [true, 50]);
  assert.equal(ask("why.dns11.test"), MISS);
});

test("whatever the name is, each text fits", () => {
  const reasons = new Reasons(
    () => undefined,
    () => undefined,
    () => performance.now() * 1_000,
  );
  const label = fc.uint8Array({ minLength: 1, maxLength: 63 });
  fc.assert(
    fc.property(fc.array(label, { maxLength: 3 }), (labels) => {
      const name = Buffer.concat([...labels.map((each) => Buffer.concat([Buffer.of(each.length), each])), aName(ZONE)]);
      const search = new NameSearch(DEFAULT_BEHAVIOUR);
      reasons.find(new StoredName(name.subarray(0, -1)), search);
      for (const text of search.records?.sets.get(TYPE.TXT) ?? []) assert.equal(text.length, 1 + (text[0] ?? 0));
    }),
    { numRuns: runs(100) },
  );
});
