// Proves that --strict asks name servers as Docker does. Every row is asked of Docker's resolver and of dns11 in the same
// container, of servers that play the same scenario for both; what comes back, who was asked, and in which order, has to
// be the same, and what the row says. So the rows are known to be true of the engine, too.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { ContainerInspectInfo } from "dockerode";

import { type Container, type ContainerOptions, createNetwork, runContainer } from "../support/engine/container.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type ScriptedQuestion, startScripted } from "../support/scripted/scripted.ts";
import { pause } from "../support/rig/wait.ts";
import { Asker, type Ports, portsAt } from "./differential/asker.ts";
import { type Answered, type Resolvers, askBoth, differences } from "./differential/both.ts";
import { refusedOf, TOO_MANY } from "./upstream-matrix/crowd.ts";
import { CONNECTED, DISCONNECTED, ROWS, type Row } from "./upstream-matrix/rows.ts";
import { summaryOf } from "./upstream-matrix/summary.ts";

const OURS: Ports = { udp: 53, tcp: 53 };
const LOOPBACKS = ["127.1.0.1", "127.1.0.2", "127.1.0.3", "127.1.0.4"];
const HOST_SERVER = "10.53.0.1";
// The place under which the host's server stands in the rows.
const HOST_PLACE = 9;
// A machine that is busy is late, but not by another server's four seconds.
const LATE_S = 3;
const EARLY_MS = 50;
const FIRST_CROWD_ID = 10_000;
const SECOND_CROWD_ID = 20_000;
const SETTLE_TRIES = 20;
const SETTLE_MS = 250;

const CONTAINERS: Readonly<Record<string, ContainerOptions>> = {
  four: { networks: ["n1"], dns: LOOPBACKS },
  closed: { networks: ["n1"], dns: LOOPBACKS.slice(0, 3) },
  itself: { networks: ["n1"], dns: ["127.0.0.11"] },
  itselfToo: { networks: ["n1"], dns: ["127.0.0.11", "127.1.0.1"] },
  ndots0: { networks: ["n1"], args: ["--dns-option", "ndots:0"] },
  plain: { networks: ["n1"] },
  server: { networks: ["dark"] },
  dark: { name: "dark", networks: ["dark"] },
};
const RECENT_CONTAINERS: Readonly<Record<string, ContainerOptions>> = {
  sixOnly: { name: "six-only", networks: [{ name: "six", ip6: "fd16::a" }] },
};

for (const suite of ["forky", "bookworm"] as const) {
  await test(`${suite}: --strict asks name servers as Docker does`, { timeout: 120_000 }, async (context) => {
    const isRecent = suite === "forky";
    await using engine = await startEngine({ suite, resolvConf: `nameserver ${HOST_SERVER}\n` });
    const containers = await startContainers(engine, isRecent);
    await using four = await startScripted(get(containers, "four"), "matrix.scn", { addresses: LOOPBACKS });
    await using own = await startScripted(get(containers, "itselfToo"), "matrix.scn", { addresses: ["127.1.0.1"] });
    const server = get(containers, "server");
    const addresses = [server.address("dark")];
    await using inner = await startScripted(server, "matrix.scn", { addresses, hasAddresses: true });
    await using host = await startScripted(engine, "name nothing\nok", { addresses: [HOST_SERVER] });
    // Before dns11 comes: there is one resolver in each namespace then.
    const docker = new Map([...containers].map(([role, { pid }]) => [role, portsAt(pid)]));
    await using _dns11 = await startDns11(engine, { args: ["--strict"] });
    const project = new Map<string, ContainerInspectInfo>();
    for (const [role, container] of containers) project.set(role, await container.inspect());
    const resolvers: Resolvers = new Map([...docker].map(([role, ports]) => [role, { docker: ports, ours: OURS }]));

    let nextId = 1;
    const failures = async (rows: readonly Row[]): Promise<string> => {
      const questions = rows.map(({ question }) => question);
      const answered = await askBoth(project, resolvers, questions, nextId);
      nextId += rows.length * 2;
      const asked = byId([...(await four.asked()), ...(await own.asked()), ...(await inner.asked())]);
      for (const [id, byHost] of byId(await host.asked())) asked.set(id, byHost.map(atHostPlace));
      const differing = differences(answered, asked).map(({ report }) => report);
      return [...differing, ...rows.flatMap((row) => unexpected(row, answered, asked))].join("\n\n");
    };

    const rows = ROWS.filter((row) => isRecent || row.isRecent !== true);
    assert.equal(await failures(rows), "");
    if (isRecent) {
      for (const [verb, row] of [
        ["connect", CONNECTED],
        ["disconnect", DISCONNECTED],
      ] as const) {
        await engine.docker("network", verb, "n1", "dark");
        await eventuallyNone(async () => await failures([row]));
      }
      using asker = new Asker(get(containers, "four").netnsPath);
      const ports = docker.get("four") ?? OURS;
      const crowds = [refusedOf(asker, ports, FIRST_CROWD_ID), refusedOf(asker, OURS, SECOND_CROWD_ID)];
      for (const [index, refused] of (await Promise.all(crowds)).entries()) {
        const who = index === 0 ? "Docker" : "dns11";
        assert.ok(refused > 0, `B52 ${who} refuses nobody`);
        assert.ok(refused <= TOO_MANY, `B52 ${who} refuses ${refused}, who are more than are too many`);
      }
    }
    context.diagnostic(`Docker ${engine.version}: ${rows.length} rows`);
  });
}

async function startContainers(engine: Engine, isRecent: boolean): Promise<ReadonlyMap<string, Container>> {
  await createNetwork(engine, "n1");
  await createNetwork(engine, "dark", { internal: true });
  const containers = new Map<string, Container>();
  const start = async (all: Readonly<Record<string, ContainerOptions>>): Promise<void> => {
    for (const [role, options] of Object.entries(all)) containers.set(role, await runContainer(engine, options));
  };
  await start(CONTAINERS);
  const dns = [get(containers, "server").address("dark")];
  await start({ darkGiven: { networks: ["dark"], dns } });
  if (isRecent) {
    await createNetwork(engine, "six", { args: ["--ipv4=false", "--ipv6", "--subnet", "fd16::/64"] });
    await start(RECENT_CONTAINERS);
  }
  return containers;
}

function get(containers: ReadonlyMap<string, Container>, role: string): Container {
  const container = containers.get(role);
  if (container === undefined) throw new Error(`no container plays "${role}"`);
  return container;
}

type AskedById = Map<number, ScriptedQuestion[]>;

function byId(questions: readonly ScriptedQuestion[]): AskedById {
  const found: AskedById = new Map();
  for (const question of questions) found.set(question.id, [...(found.get(question.id) ?? []), question]);
  return found;
}

function atHostPlace(question: ScriptedQuestion): ScriptedQuestion {
  return { ...question, server: HOST_PLACE };
}

// What neither resolver, or only Docker's, does as the row says.
function unexpected(row: Row, answered: readonly Answered[], asked: AskedById): string[] {
  const { label, messages } = row.question;
  const found = answered.find(({ question }) => question === row.question);
  assert.ok(found, label);
  return (["docker", "ours"] as const).flatMap((who) => {
    const { replies, ended, elapsedMs } = found[who];
    const byIt = asked.get(who === "docker" ? found.dockerId : found.oursId) ?? [];
    const reply = replies[0] === undefined ? ended : summaryOf(Buffer.from(replies[0], "hex"));
    const order = byIt.map(({ server, transport }) => `${server} ${transport}`).join(", ");
    const waitsS = row.waitsS ?? 0;
    const isInTime = elapsedMs >= waitsS * 1_000 - EARLY_MS && elapsedMs < (waitsS + LATE_S) * 1_000;
    const isVerbatim = byIt.every(({ message }) => message.slice(4) === messages[0]?.toString("hex").slice(4));
    return [
      ...(reply === row.reply ? [] : [`${label}: ${who} says "${reply}" instead of "${row.reply}"`]),
      ...(order === row.asked ? [] : [`${label}: ${who} asks "${order}" instead of "${row.asked}"`]),
      ...(isInTime ? [] : [`${label}: ${who} answers after ${elapsedMs} ms instead of ${waitsS} s`]),
      ...(row.isVerbatim === true && !isVerbatim ? [`${label}: ${who} changes what the client sent`] : []),
    ];
  });
}

// Both need a moment to hear of a change.
async function eventuallyNone(failures: () => Promise<string>): Promise<void> {
  let last = "";
  for (let tries = 0; tries < SETTLE_TRIES; tries++) {
    last = await failures();
    if (last === "") return;
    await pause(SETTLE_MS);
  }
  assert.equal(last, "");
}
