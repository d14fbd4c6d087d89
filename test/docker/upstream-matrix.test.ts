// --strict: nameservers are queried exactly as Docker does. Docker's resolver and dns11 get the query of every row in the same
// container, with servers that play the same scenario for both. The replies, the servers that were queried and their order
// must be the same, and as in the row. So the rows are verified for the engine, too.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { ContainerInspectInfo } from "dockerode";

import { type Container, type ContainerOptions, createNetwork, runContainer } from "../support/engine/container.ts";
import { startDns11, WITHOUT_KEEPER } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type ScriptedQuestion, startScripted } from "../support/scripted/scripted.ts";
import { pause } from "../support/rig/wait.ts";
import { type Ports, portsAt } from "./differential/client.ts";
import {
  type QuestionResult,
  ResolverClients,
  type Resolvers,
  differences,
  queryBothFrom,
} from "./differential/run-both.ts";
import { countRefused, TOO_MANY } from "./upstream-matrix/flood.ts";
import { CONNECTED, DISCONNECTED, ROWS, type Row } from "./upstream-matrix/rows.ts";
import { summaryOf } from "./upstream-matrix/summary.ts";

const OURS: Ports = { udp: 53, tcp: 53 };
const LOOPBACKS = ["127.1.0.1", "127.1.0.2", "127.1.0.3", "127.1.0.4"];
const HOST_SERVER = "10.53.0.1";
// The number of the host's server in the rows.
const HOST_PLACE = 9;
// A busy machine delays replies, but not by the four seconds of another server.
const EARLY_MS = 50;
const SETTLE_TRIES = 200;
// All rows take a quarter of a minute.
const ROWS_TRIES = 5;
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
  await test(
    `${suite}: with --strict, nameservers are queried exactly as Docker does`,
    { timeout: 600_000 },
    async (context) => {
      const isRecent = suite === "forky";
      await using engine = await startEngine({ suite, resolvConf: `nameserver ${HOST_SERVER}\n` });
      const containers = await startContainers(engine, isRecent);
      await using four = await startScripted(get(containers, "four"), "matrix.scn", { addresses: LOOPBACKS });
      await using own = await startScripted(get(containers, "itselfToo"), "matrix.scn", { addresses: ["127.1.0.1"] });
      const server = get(containers, "server");
      const addresses = [server.address("dark")];
      await using inner = await startScripted(server, "matrix.scn", { addresses, hasAddresses: true });
      await using host = await startScripted(engine, "name nothing\nok", { addresses: [HOST_SERVER] });
      // Before dns11 attaches: until then there is only one resolver in each namespace.
      const docker = new Map([...containers].map(([role, { pid }]) => [role, portsAt(pid)]));
      await using _dns11 = await startDns11(engine, { args: ["--strict"], env: WITHOUT_KEEPER });
      const project = new Map<string, ContainerInspectInfo>();
      for (const [role, container] of containers) project.set(role, await container.inspect());
      const resolvers: Resolvers = new Map([...docker].map(([role, ports]) => [role, { docker: ports, ours: OURS }]));

      using clients = new ResolverClients(project);
      let nextId = 1;
      const failures = async (rows: readonly Row[]): Promise<string> => {
        const questions = rows.map(({ question }) => question);
        const results = await queryBothFrom(clients, resolvers, questions, nextId);
        nextId += rows.length * 2;
        const received = byId([...(await four.queries()), ...(await own.queries()), ...(await inner.queries())]);
        for (const [id, byHost] of byId(await host.queries())) received.set(id, byHost.map(atHostPlace));
        const differing = differences(results, received).map(({ report }) => report);
        return [...differing, ...rows.flatMap((row) => unexpected(row, results, received))].join("\n\n");
      };

      const rows = ROWS.filter((row) => isRecent || row.isRecent !== true);
      await assertNoneEventually(async () => await failures(rows), ROWS_TRIES);
      if (isRecent) {
        for (const [verb, row] of [
          ["connect", CONNECTED],
          ["disconnect", DISCONNECTED],
        ] as const) {
          await engine.docker("network", verb, "n1", "dark");
          await assertNoneEventually(async () => await failures([row]));
        }
        const flooding = get(containers, "four");
        const floods = [docker.get("four") ?? OURS, OURS].map(async ({ udp }) => await countRefused(flooding, udp));
        for (const [index, refused] of (await Promise.all(floods)).entries()) {
          const resolver = index === 0 ? "Docker" : "dns11";
          assert.ok(refused > 0, `B52 ${resolver} refuses no query`);
          assert.ok(refused < TOO_MANY, `B52 ${resolver} refuses ${refused} queries, and not fewer than ${TOO_MANY}`);
        }
      }
      context.diagnostic(`Docker ${engine.version}: ${rows.length} rows`);
    },
  );
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
  if (container === undefined) throw new Error(`no container has the role "${role}"`);
  return container;
}

type QuestionsById = Map<number, ScriptedQuestion[]>;

function byId(questions: readonly ScriptedQuestion[]): QuestionsById {
  const found: QuestionsById = new Map();
  for (const question of questions) found.set(question.id, [...(found.get(question.id) ?? []), question]);
  return found;
}

function atHostPlace(question: ScriptedQuestion): ScriptedQuestion {
  return { ...question, server: HOST_PLACE };
}

// Where a resolver deviates from the row.
function unexpected(row: Row, results: readonly QuestionResult[], received: QuestionsById): string[] {
  const { label, messages } = row.question;
  const found = results.find(({ question }) => question === row.question);
  assert.ok(found, label);
  return (["docker", "ours"] as const).flatMap((resolver) => {
    const { replies, ended, elapsedMs } = found[resolver];
    const sent = received.get(resolver === "docker" ? found.dockerId : found.oursId) ?? [];
    const reply = replies[0] === undefined ? ended : summaryOf(Buffer.from(replies[0], "hex"));
    const order = sent.map(({ server, transport }) => `${server} ${transport}`).join(", ");
    const waitsS = row.waitsS ?? 0;
    // No upper bound, which a busy machine would break: `queried` says how often it waited.
    const isInTime = elapsedMs >= waitsS * 1_000 - EARLY_MS;
    const isVerbatim = sent.every(({ message }) => message.slice(4) === messages[0]?.toString("hex").slice(4));
    return [
      ...(reply === row.reply ? [] : [`${label}: ${resolver} replies "${reply}" instead of "${row.reply}"`]),
      ...(order === row.queried ? [] : [`${label}: ${resolver} queries "${order}" instead of "${row.queried}"`]),
      ...(isInTime ? [] : [`${label}: ${resolver} answers after ${elapsedMs} ms instead of ${waitsS} s`]),
      ...(row.isVerbatim === true && !isVerbatim ? [`${label}: ${resolver} changes the client's message`] : []),
    ];
  });
}

// Both resolvers need a moment to notice a change, and a busy machine delays a server until the next one is queried.
async function assertNoneEventually(failures: () => Promise<string>, most = SETTLE_TRIES): Promise<void> {
  let last = "";
  for (let tries = 0; tries < most; tries++) {
    last = await failures();
    if (last === "") return;
    await pause(SETTLE_MS);
  }
  assert.equal(last, "");
}
