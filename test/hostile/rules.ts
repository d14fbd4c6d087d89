// Attacks with rules, by a container that may change those of its namespace, and with very many sockets, which any may open.

import assert from "node:assert/strict";

import { LIMITS } from "../../src/base/limits.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { LockHolder } from "../support/program/lock-holder.ts";
import { pause, waitFor } from "../support/rig/wait.ts";
import { ENOUGH } from "./inside/sockets.ts";
import type { Attack, Rig } from "./rig.ts";

const RULES = 20_000;
/** With more, tests beside this one would wait for seconds: the kernel has all changes of rules wait for each other. */
const SETS = 2;
const SET_ELEMENTS = 100_000;
const SOCKETS = 40_000;
const SOCKETS_EACH = 19_000;
/** Rules that drop or redirect the container's queries, before or after our rules. */
const IN_THE_WAY: readonly string[] = [
  "table ip a { chain c { type filter hook output priority -400; udp dport 53 drop; tcp dport 53 drop; }; }",
  "table ip a { chain c { type nat hook output priority -150; udp dport 53 dnat to 127.0.0.1:5354; }; }",
  "table ip a { chain c { type filter hook input priority 0; iif lo drop; }; }",
  'table ip dns11-a { chain dns11 { type filter hook output priority -400; udp dport 53 drop comment "dns11"; }; }',
  "table ip raw { chain c { type filter hook output priority -300; notrack; }; }",
];

async function withManyRules(rig: Rig): Promise<void> {
  const many = Array.from({ length: RULES }, (_, index) => `ip daddr 10.0.${index >> 8}.${index & 0xff} counter`);
  await rig.administer(
    "nft",
    ["-f", "-"],
    `table ip many { chain c { type filter hook output priority 10; ${many.join("; ")}; }; }`,
  );
  // With these rules present the container is handed back, diagnosed and attached again.
  await handedBack(rig);
  await rig.administer("nft", ["delete", "table", "ip", "many"]);
}

// Each of them holds the lock of the container's rules for a good part of a second, while dns11 has to change something there.
async function loadSets(rig: Rig): Promise<void> {
  await rig.administer("nft", ["-f", "-"], IN_THE_WAY[0]);
  const elements = Array.from(
    { length: SET_ELEMENTS },
    (_, each) => `10.${each >> 16}.${(each >> 8) & 255}.${each & 255}`,
  ).join(",");
  await Promise.all(
    Array.from({ length: SETS }, async (_, index) => {
      const set = `set s { type ipv4_addr; elements = { ${elements} }; }`;
      await rig.administer("nft", ["-f", "-"], `table ip large${index} { ${set}; }`);
    }),
  );
  await rig.administer("nft", ["delete", "table", "ip", "a"]);
  for (let index = 0; index < SETS; index++) await rig.administer("nft", ["delete", "table", "ip", `large${index}`]);
  await rig.instance.waitFor("admin", "attached");
}

// The strongest form: the lock is held for as long as the attacker likes. Another container is attached meanwhile.
async function holdLock(rig: Rig): Promise<void> {
  await using _ = await LockHolder.in(rig.admin.netnsPath);
  await rig.addAttacker({ name: "beside" });
}

async function obstructed(rig: Rig, rules: string): Promise<void> {
  await rig.administer("nft", ["-f", "-"], rules);
  const name = /^table ip (\S+)/.exec(rules)?.[1] ?? "";
  // Longer than dns11 waits for a burst of rule changes to end.
  await pause(4 * LIMITS.verifyQuietMs);
  await rig.administer("nft", ["delete", "table", "ip", name]);
  await rig.instance.waitFor("admin", "attached");
}

async function handedBack(rig: Rig): Promise<void> {
  await rig.administer("nft", ["-f", "-"], IN_THE_WAY[0]);
  await rig.instance.waitFor("admin", "failed");
  await rig.administer("nft", ["delete", "table", "ip", "a"]);
  await rig.instance.waitFor("admin", "attached");
}

async function obstruct(rig: Rig): Promise<void> {
  for (const rules of IN_THE_WAY) await obstructed(rig, rules);
  assert.deepEqual(dataOf(await dig(rig.admin, "admin")), [rig.admin.address("attackers")]);
}

// As fast as possible; the kernel notifies dns11 of every change.
async function flush(rig: Rig): Promise<void> {
  const changes = Array.from({ length: 300 }, (_, index) =>
    index % 2 === 0 ? "add table ip flapping\n" : "delete table ip flapping\n",
  );
  for (let round = 0; round < 5; round++) {
    await rig.administer("conntrack", ["-F"]);
    await rig.administer("nft", ["flush", "ruleset"]);
    for (const change of changes.slice(0, 20)) await rig.administer("nft", ["-f", "-"], change);
  }
  await rig.instance.waitFor("admin", "attached");
  assert.deepEqual(dataOf(await dig(rig.admin, "admin")), [rig.admin.address("attackers")]);
}

// They must not affect other containers, and the namespace itself must attach again with all of them open.
async function withManySockets(rig: Rig): Promise<void> {
  const count = Math.ceil(SOCKETS / SOCKETS_EACH);
  const made = Promise.all(
    Array.from({ length: count }, async (_, index) => await rig.run(rig.admin, "manySockets", SOCKETS_EACH, index)),
  );
  made.catch(() => undefined);
  try {
    await waitFor("the sockets", async () => ((await socketsOf(rig)) >= SOCKETS ? true : undefined));
    await handedBack(rig);
  } finally {
    await rig.admin.exec("touch", [ENOUGH]);
  }
  const all = await made;
  assert.ok(all.reduce((sum, { made: each = 0 }) => sum + each, 0) >= SOCKETS * 0.9, JSON.stringify(all));
}

async function socketsOf(rig: Rig): Promise<number> {
  const { stdout } = await rig.admin.enter("cat", ["/proc/thread-self/net/sockstat"]);
  const inUse = [...stdout.matchAll(/^(?:TCP|UDP): inuse (\d+)/gm)].map(([, number]) => Number(number));
  return inUse.reduce((sum, number) => sum + number, 0);
}

async function grab(rig: Rig): Promise<void> {
  const { ports } = await rig.instance.waitFor("plain", "attached");
  assert.deepEqual(await rig.run(rig.plain, "grabbedPorts", ports?.udp ?? 0), { udp: 0, tcp: 1 });
  assert.deepEqual(await rig.run(rig.plain, "grabbedPorts", ports?.tcp ?? 0), { udp: 1, tcp: 0 });
  assert.deepEqual(dataOf(await dig(rig.plain, "plain")), [rig.plain.address("attackers")]);
}

export const RULES_AND_SOCKETS: readonly Attack[] = [
  { title: "rules that block the container's own queries", act: obstruct },
  { title: `${RULES} rules, which dns11 reads to diagnose a blocked query`, act: withManyRules },
  { title: `${SETS} sets of ${SET_ELEMENTS} elements at once, behind a rule that blocks its queries`, act: loadSets },
  { title: "the lock of its rules held for as long as it likes", act: holdLock },
  { title: "rules and conntrack entries flushed again and again", act: flush },
  { title: `${SOCKETS} sockets`, act: withManySockets },
  { title: "sockets bound to the ports of dns11", act: grab },
];
