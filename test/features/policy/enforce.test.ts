// Proves what Enforcement does while the kernel is slow, refuses, or is not asked: no answer is given before its addresses are open. And
// what rules open: ports, blocks, several policies.

import assert from "node:assert/strict";
import { test } from "node:test";

import { wireLabels } from "../../../src/base/dns/name.ts";
import { StoredName } from "../../../src/base/model/label-table.ts";
import { CompiledPolicy } from "../../../src/features/policy/judge/compiled-policy.ts";
import { NamespacePolicy } from "../../../src/features/policy/judge/namespace-policy.ts";
import {
  Enforcement,
  type EnforcementParts,
  type EnforcementState,
  type EnforcedContainer,
  policedBy,
} from "../../../src/features/policy/enforce/enforcement.ts";
import { fixedRules } from "../../../src/features/policy/enforce/fixed-rules.ts";
import { blockText } from "../../../src/base/model/address.ts";
import { readPattern } from "../../../src/base/model/name-pattern.ts";
import { readRule } from "../../../src/features/policy/model/policy-rule.ts";
import { type Policy, POLICY_DEFAULTS } from "../../../src/features/policy/model/policy.ts";
import type { Opening, RefusedAddress } from "../../../src/features/policy/table/policy-table.ts";
import { waitFor } from "../../support/rig/wait.ts";

const ID = "a".repeat(64);

function policyOf(allow: readonly string[], deny: readonly string[] = [], more: Partial<Policy> = {}): Policy {
  const rules = (texts: readonly string[]): Policy["allow"] => texts.map((text) => ({ ...readRule(text), line: 1 }));
  return {
    ...POLICY_DEFAULTS,
    name: "agents",
    where: "f:2:3",
    file: "f",
    scopes: [],
    mode: "enforce",
    addresses: "enforce",
    ...more,
    allow: rules(allow),
    deny: rules(deny),
  };
}

function judgeOf(...policies: readonly Policy[]): NamespacePolicy {
  // A clock that is between two milliseconds, as clocks are.
  const observer = { now: () => 0.5, onRefusal: () => undefined };
  return new NamespacePolicy(
    ID,
    policies.map((each) => new CompiledPolicy(each)),
    observer,
  );
}

function nameOf(text: string): StoredName {
  return new StoredName(wireLabels(text) ?? assert.fail());
}

function containerWith(more: Partial<EnforcedContainer> = {}): EnforcedContainer {
  const base = { id: ID, startedAt: "now", policies: [policyOf(["x.test:443"])], links: [], subnets: [] };
  return { ...base, isComplete: true, hindrance: undefined, ...more };
}

class World {
  wanted: EnforcedContainer | undefined = containerWith();
  policy = judgeOf(policyOf(["x.test:443"]));
  readonly opened: Opening[][] = [];
  readonly livesMs: number[] = [];
  readonly states: EnforcementState[] = [];
  apply = async (): Promise<void> => undefined;
  open = async (): Promise<void> => undefined;
  refused = (): RefusedAddress[] => [];
  lose = (): void => undefined;
  removed = 0;
  keptLinks: number[] | undefined;
  readonly enforcement: Enforcement;

  constructor(parts: Partial<EnforcementParts> = {}) {
    this.enforcement = new Enforcement({
      openTable: async (onLost) => {
        this.lose = onLost;
        return await Promise.resolve({
          containers: [],
          apply: async () => await this.apply(),
          remove: async () => await Promise.resolve(void this.removed++),
          open: (_id: string, openings: readonly Opening[], lifeMs: number) => {
            this.opened.push([...openings]);
            this.livesMs.push(lifeMs);
            return this.open();
          },
          refused: () => this.refused(),
          openCount: () => 0,
          removeLinksBut: async (kept) => await Promise.resolve(void (this.keptLinks = [...kept])),
        });
      },
      containerOf: () => this.wanted,
      policyOf: () => this.policy,
      onState: (_id, state) => void this.states.push(state),
      ...parts,
    });
  }

  async answered(ttlSeconds = 60): Promise<boolean> {
    return await new Promise((resolve) => {
      const answer = {
        policy: this.policy,
        addresses: [Uint8Array.of(192, 0, 2, 1)],
        names: [nameOf("x.test")],
        ttlSeconds,
      };
      if (this.enforcement.open(answer, resolve)) resolve(true);
    });
  }
}

for (const [what, prepare] of [
  ["a container that cannot be held", (world: World) => (world.wanted = containerWith({ hindrance: "privileged" }))],
  [
    "a kernel that refuses its rules",
    (world: World) => (world.apply = async () => await Promise.reject(new Error("no"))),
  ],
  ["a kernel that opens nothing", (world: World) => (world.open = async () => await Promise.reject(new Error("no")))],
  ["a kernel that takes too long", (world: World) => (world.apply = async () => await new Promise(() => undefined))],
] as const) {
  test(`${what} costs an enforced container its answer, and an audited one nothing`, async () => {
    for (const mode of ["enforce", "audit"] as const) {
      const world = new World({ waitMs: 10, retryMs: 60_000 });
      world.policy = judgeOf(policyOf(["x.test:443"], [], { mode }));
      prepare(world);
      assert.equal(await world.answered(), mode === "audit", mode);
      world.enforcement.close();
    }
  });
}

test("where packets were refused is known of a container that is gone, and not where the tables are", async () => {
  for (const [refused, expected] of [
    [() => [{ address: Uint8Array.of(192, 0, 2, 9), protocol: 6, port: 80 }], 1],
    [() => assert.fail("another program has removed the set"), 0],
  ] as const) {
    const world = new World();
    assert.equal(await world.answered(), true);
    world.refused = refused;
    world.wanted = undefined;
    world.enforcement.update(ID);
    assert.equal(world.enforcement.ended.get(ID)?.length ?? 0, expected);
    await waitFor("its removal", () => (world.removed === 1 ? true : undefined));
    world.enforcement.close();
  }
});

test("what an operator allows for a while is open for no longer, beside what rules open", async () => {
  const address = Uint8Array.of(192, 0, 2, 1);
  const grant = { pattern: readPattern("x.test"), untilMs: 900_000, text: "by root" };
  for (const [allow, opened, livesMs] of [
    [["x.test:443"], [[{ address, port: 443, protocol: "tcp" }], [{ address }]], [POLICY_DEFAULTS.keepMs, 900_000]],
    [["y.test"], [[{ address }]], [900_000]],
    [["x.test"], [[{ address }]], [POLICY_DEFAULTS.keepMs]],
  ] as const) {
    const world = new World();
    world.policy = judgeOf(policyOf(allow));
    world.policy.setGrants([grant]);
    assert.equal(await world.answered(), true);
    assert.deepEqual([world.opened, world.livesMs], [opened, livesMs]);
  }
});

test("a policy that only audits opens nothing and closes nothing beside one that is enforced", () => {
  const enforced = policyOf(["x.test:443"]);
  const audited = policyOf(["y.test"], [], { mode: "audit" });
  const alone = judgeOf(enforced).portsOf([nameOf("x.test")]);
  assert.deepEqual(judgeOf(enforced, audited).portsOf([nameOf("x.test")]), alone);
  assert.deepEqual(judgeOf(enforced, audited).portsOf([nameOf("y.test")]), []);
  assert.equal(judgeOf(audited).portsOf([nameOf("y.test")]), "all");
});

test("an answer waits for its container to be known, then for its addresses", async () => {
  const world = new World();
  let finish: () => void = () => undefined;
  world.apply = async () => await new Promise((resolve) => (finish = resolve));
  world.enforcement.update(ID);
  let isGiven: boolean | undefined;
  const given = world.answered().then((isOpen) => (isGiven = isOpen));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(isGiven, undefined);
  assert.deepEqual(world.opened, []);
  finish();
  assert.equal(await given, true);
  assert.deepEqual(world.opened, [[{ address: Uint8Array.of(192, 0, 2, 1), port: 443, protocol: "tcp" }]]);
});

test("an answer that waits while its container gets another policy opens nothing, and is given if nothing is enforced", async () => {
  for (const [before, now] of [
    ["enforce", "enforce"],
    ["enforce", "audit"],
    ["audit", "enforce"],
    ["audit", "audit"],
  ] as const) {
    const world = new World();
    world.policy = judgeOf(policyOf(["x.test"], [], { mode: before }));
    let finish: () => void = () => undefined;
    world.apply = async () => await new Promise((resolve) => (finish = resolve));
    world.enforcement.update(ID);
    const given = world.answered();
    await new Promise((resolve) => setImmediate(resolve));
    world.policy = judgeOf(policyOf(["y.test"], [], { mode: now }));
    finish();
    const isGiven = before === "audit" && now === "audit";
    assert.deepEqual([await given, world.opened], [isGiven, []], `${before} ${now}`);
  }
});

test("an answer to a container that was started again waits until the kernel has closed what was open before", async () => {
  const world = new World();
  world.enforcement.update(ID);
  assert.equal(await world.answered(), true);
  let finish: () => void = () => undefined;
  world.apply = async () => await new Promise((resolve) => (finish = resolve));
  world.wanted = containerWith({ startedAt: "later" });
  world.enforcement.update(ID);
  let isGiven: boolean | undefined;
  const given = world.answered().then((isOpen) => (isGiven = isOpen));
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([isGiven, world.opened.length], [undefined, 1]);
  finish();
  assert.deepEqual([await given, world.opened.length], [true, 2]);
});

test("after others have removed the tables, an answer waits until its container is applied again", async () => {
  const world = new World();
  assert.equal(await world.answered(), true);
  const applying: (() => void)[] = [];
  world.apply = async () => await new Promise((resolve) => void applying.push(resolve));
  world.lose();
  let isAnswered = false;
  const answered = world.answered().then((isOpen) => (isAnswered = isOpen));
  assert.equal(world.enforcement.stateOf(ID)?.kind, "pending");
  const apply = await waitFor("the container to be applied", () => applying[0]);
  assert.equal(isAnswered, false);
  assert.equal(world.opened.length, 1);
  apply();
  assert.equal(await answered, true);
  assert.equal(world.opened.length, 2);
  world.enforcement.close();
});

test("a kernel that refuses to open an address fails the answer", async () => {
  const world = new World();
  world.open = async () => await Promise.reject(new Error("no"));
  world.enforcement.update(ID);
  assert.equal(await world.answered(), false);
});

test("a kernel that refuses a container fails its answers, and is asked again", async () => {
  const world = new World({ retryMs: 1 });
  world.apply = async () => await Promise.reject(new Error("no"));
  world.enforcement.update(ID);
  assert.equal(await world.answered(), false);
  assert.equal(world.states.at(-1)?.kind, "failed");
  world.apply = async () => await Promise.resolve();
  await waitFor("another attempt", () => (world.enforcement.stateOf(ID)?.kind === "enforced" ? true : undefined));
  assert.equal(await world.answered(), true);
});

test("a container whose links are not all known stays pending, and its answers fail in the end", async () => {
  const world = new World({ waitMs: 5 });
  world.wanted = containerWith({ isComplete: false });
  world.enforcement.update(ID);
  assert.equal(await world.answered(), false);
  assert.equal(world.enforcement.stateOf(ID)?.kind, "pending");
  world.wanted = containerWith();
  world.enforcement.update(ID);
  assert.equal(await world.answered(), true);
});

test("what cannot be enforced is refused by name, and says why", async () => {
  const world = new World();
  world.wanted = containerWith({ hindrance: "it uses the host's network" });
  world.enforcement.assigned(world.policy);
  const refusal = world.policy.name(nameOf("x.test"));
  assert.equal(refusal?.isEnforced, true);
  assert.match(refusal.text, /policy agents: not enforceable: it uses the host's network \(f:2:3\)/);
  assert.equal(await world.answered(), false);
  world.wanted = containerWith();
  world.enforcement.update(ID);
  await waitFor("the kernel", () => (world.enforcement.stateOf(ID)?.kind === "enforced" ? true : undefined));
  assert.equal(world.policy.name(nameOf("x.test")), undefined);
});

test("a container that is gone is removed, and nobody waits for it", async () => {
  const world = new World();
  world.apply = async () => await new Promise(() => undefined);
  world.enforcement.update(ID);
  const given = world.answered();
  world.wanted = undefined;
  world.enforcement.updateAll([]);
  assert.equal(await given, false);
  assert.equal(world.enforcement.stateOf(ID), undefined);
});

test("a container that comes back while it is still being policed stays policed", async () => {
  const world = new World();
  const ends: (() => void)[] = [];
  world.apply = async () => await new Promise((resolve) => ends.push(resolve));
  const { wanted } = world;
  world.enforcement.update(ID);
  await waitFor("the first one", () => ends.length === 1 || undefined);
  world.wanted = undefined;
  world.enforcement.update(ID);
  const { removed } = world;
  world.wanted = wanted;
  world.enforcement.update(ID);
  await waitFor("the second one", () => ends.length === 2 || undefined);
  for (const end of ends) end();
  await waitFor("the kernel", () => (world.enforcement.stateOf(ID)?.kind === "enforced" ? true : undefined));
  assert.equal(world.removed, removed, "what came later was not removed");
});

test("rules of links that nobody has any more go once all links are known", async () => {
  const world = new World();
  world.wanted = containerWith({ isComplete: false });
  world.enforcement.update(ID);
  assert.equal(await world.enforcement.removeOthers(), false);
  assert.equal(world.keptLinks, undefined);
  world.wanted = containerWith();
  world.enforcement.update(ID);
  assert.equal(await world.enforcement.removeOthers(), true);
  assert.deepEqual(
    world.keptLinks,
    world.wanted.links.map(({ index }) => index),
  );
});

test("ports are those that the rules name; a denied one closes what names none", () => {
  const cases: [Policy[], string][] = [
    [[policyOf(["x.test"])], "all"],
    [[policyOf(["x.test:443"])], "443/tcp"],
    [[policyOf(["x.test:443", "*.test:53/udp"])], "443/tcp 53/udp"],
    [[policyOf(["x.test"], ["x.test:22"])], ""],
    [[policyOf(["x.test", "x.test:443", "x.test:22"], ["x.test:22"])], "443/tcp"],
    [[policyOf(["x.test"]), policyOf(["x.test:443"])], "443/tcp"],
    [[policyOf(["x.test:22"]), policyOf(["x.test:443"])], ""],
    [[policyOf(["x.test:22"]), policyOf([], [], { addresses: "names" })], "22/tcp"],
    [[policyOf(["y.test"])], ""],
  ];
  for (const [policies, expected] of cases) {
    const ports = judgeOf(...policies).portsOf([nameOf("x.test")]);
    const text = ports === "all" ? ports : ports.map(({ port, protocol }) => `${port}/${protocol}`).join(" ");
    assert.equal(text, expected);
  }
});

test("blocks must be allowed by each policy, and are denied by any", () => {
  const rules = fixedRules([
    policyOf(["10.0.0.0/8", "192.0.2.1:443"], ["10.6.6.6:22"]),
    policyOf(["10.1.0.0/16:443", "192.0.2.0/24"], ["203.0.113.0/24"]),
  ]);
  assert.deepEqual(
    rules.map(({ isAllowed, block, port, protocol }) =>
      [isAllowed ? "allow" : "deny", blockText(block), port ?? "*", protocol ?? "*"].join(" "),
    ),
    ["deny 10.6.6.6 22 *", "deny 203.0.113.0/24 * *", "allow 192.0.2.1 443 tcp", "allow 10.1.0.0/16 443 tcp"],
  );
});

test("the strictest policy decides about peers and the machine, and one that only records about nothing beside it", () => {
  const open = policyOf([], [], { host: "allow", peers: "allow" });
  const strict = policyOf([], [], { host: "deny", peers: "names" });
  const audited = policyOf([], [], { mode: "audit", host: "deny", peers: "deny" });
  const of = (...policies: Policy[]): [boolean, boolean, boolean] => {
    const { container } = policedBy(containerWith({ policies }));
    return [container.reachesPeers, container.reachesHost, container.isEnforced];
  };
  assert.deepEqual(of(open), [true, true, true]);
  assert.deepEqual(of(open, strict), [false, false, true]);
  assert.deepEqual(of(open, audited), [true, true, true]);
  assert.deepEqual(of(audited), [true, false, false]);
});
