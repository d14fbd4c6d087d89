// Strict mode promises that no client can tell dns11 from Docker's own resolver. Here both run side by side in the same
// containers of a current engine, and every question goes to both: valid and malformed ones, about containers and about
// upstream names, in the initial state and after changes. The kernel answers, too: what was answered here is asked once more,
// because it repeats what the process has answered, and compared with Docker's reply as well. These questions then go to
// the mode default, with and without the kernel.

import assert from "node:assert/strict";
import { test } from "node:test";

import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { startEngine } from "../support/engine/engine.ts";
import { addAddress } from "../support/rig/netns.ts";
import { WAIT_TIMEOUT_MS, pause, waitFor } from "../support/rig/wait.ts";
import { type Ports, portsAt } from "./differential/client.ts";
import {
  type Difference,
  type QuestionResult,
  type Resolvers,
  ResolverClients,
  differences,
  queryBothFrom,
  repeatOurs,
} from "./differential/run-both.ts";
import { CLOSED_SERVER, NETWORKS, SERVERS } from "./differential/topology.ts";
import { changedQuestions, roundsOfChanges } from "./differential/changes.ts";
import { KNOWN_DIFFERENCES, isKnown, shouldDiffer } from "./differential/known-differences.ts";
import { type Project, get, startProject } from "./differential/project.ts";
import type { Question } from "./differential/question.ts";
import { answeredByKernel } from "./differential/answered-by-kernel.ts";
import { compareWithKernel } from "./differential/by-kernel.ts";
import { allQuestions } from "./differential/questions/all.ts";
import { TestUpstreams } from "./differential/upstreams.ts";

// The ports before the redirect rules: dns11 is queried only through them.
const OURS: Ports = { udp: 53, tcp: 53 };
const MAJOR_MIN = 28;
const LATE_TRIES = 6;
const SETTLE_MS = 500;
// Questions after a change that are repeated until all events have arrived, before all are asked.
const FIRST_LOOKS = 100;

interface Answers {
  readonly found: Difference[];
  // Answered here by UDP, without an upstream server.
  readonly local: readonly QuestionResult[];
}

await test(
  "with --strict, dns11 replies exactly as a current Docker engine does; the kernel as the process, in each mode",
  { timeout: 900_000 },
  async (context) => {
    // Throws if the suite is not available, with what was tried.
    await using engine = await startEngine({ suite: "forky", resolvConf: resolvConf(SERVERS.slice(0, 4)) });
    assert.ok(Number.parseInt(engine.version, 10) >= MAJOR_MIN, `the engine of forky is Docker ${engine.version}`);
    await addAddress(engine.netnsPath, CLOSED_SERVER);
    using upstreams = await TestUpstreams.start(engine.netnsPath, SERVERS);
    const project = await startProject(engine);
    using inside = await startInside(project);
    const docker = dockerPorts(project);
    await using dns11 = await startDns11(engine, { args: ["--strict"], env: { DNS11_ANSWERS: "kernel" } });
    await dns11.waitForKernel();
    // Undefined where the process answers everything.
    const { answers } = await dns11.status();
    const resolvers = await resolversOf(project, docker, dns11);
    const received = async () => new Map([...(await inside.received()), ...(await upstreams.received())]);

    const questions = allQuestions(project);
    using clients = new ResolverClients(project);
    let firstId = 0;
    const ask = async (batch: readonly Question[]): Promise<Answers> => {
      const results = await queryBothFrom(clients, resolvers, batch, firstId);
      firstId += batch.length * 2;
      const queries = await received();
      const local = results.filter(
        ({ question, ours, oursId }) =>
          question.transport === "udp" && ours.ended === "answered" && !queries.has(oursId),
      );
      return { found: differences(results, queries), local };
    };
    const askAgain = async (results: readonly QuestionResult[]): Promise<Difference[]> => {
      const repeated = await repeatOurs(clients, resolvers, results, firstId);
      firstId += results.length;
      return differences(repeated, await received());
    };
    let { found, local } = await ask(questions);
    const answeredHere = local.map(({ question }) => question);
    const again = await askAgain(local);
    found.push(...again.filter(({ question }) => found.every((one) => one.question !== question)));
    // A difference that a busy machine causes does not occur each time.
    for (let tries = 0; tries < LATE_TRIES; tries++) {
      const late = found.filter((one) => one.isByTime && !isKnown(one));
      const left = [...late.map(({ question }) => question), ...equalOf(questions, found)];
      if (left.length === 0) break;
      const retried = await ask(left);
      found = [...found.filter((one) => !late.includes(one)), ...retried.found];
    }
    const unknown = found.filter((difference) => !isKnown(difference));
    const known = found.length - unknown.length;
    const gone = equalOf(questions, found);
    let total = questions.length;

    for await (const round of roundsOfChanges(engine)) {
      const changed = changedQuestions(project);
      firstId = 0;
      for (const each of [inside, upstreams]) each.forget();
      // After a change Docker answers at once, and dns11 as soon as it has received the event.
      const settled = async (batch: readonly Question[]): Promise<Difference[]> => {
        const endMs = performance.now() + WAIT_TIMEOUT_MS;
        for (let left = (await ask(batch)).found; ; left = (await ask(left.map(({ question }) => question))).found) {
          if (left.length === 0 || performance.now() > endMs) return left;
          await pause(SETTLE_MS);
        }
      };
      await settled(changed.filter(({ transport }) => transport === "udp").slice(0, FIRST_LOOKS));
      ({ found, local } = await ask(changed));
      found.push(...(await askAgain(local)));
      const left = await settled(found.map(({ question }) => question));
      total += changed.length;
      unknown.push(...left.map((one) => ({ ...one, report: `after round ${round + 1}: ${one.report}` })));
    }

    const summary = `${unknown.length} differences, and ${known} known ones for ${KNOWN_DIFFERENCES.length} reasons`;
    const byKernel = await answeredByKernel(dns11);
    context.diagnostic(`${total} questions, ${byKernel} answers by the kernel, ${summary}`);
    assert.ok(
      answers === undefined || byKernel > questions.length / 40,
      `the kernel answered only ${byKernel} of them`,
    );
    assert.equal(unknown.map(({ report }) => report).join("\n\n"), "", "differences");
    assert.deepEqual(
      gone.map(({ from, label }) => `${from}: ${label}`),
      [],
      "known differences that no longer occur",
    );

    assert.equal(await dns11.stop(), 0);
    if (answers === undefined) return;
    const only = new Map([...docker.keys()].map((role) => [role, { docker: OURS, ours: OURS }]));
    const compared = await compareWithKernel(engine, clients, only, answeredHere);
    context.diagnostic(`mode default: ${compared.questions} questions, ${compared.byKernel} answers by the kernel`);
    assert.equal(compared.differences.join("\n\n"), "", "differences between the kernel and the process");
    assert.ok(compared.byKernel > compared.questions / 4, "each is asked four times, and many are plain");
  },
);

// Those that should differ and do not: on a busy machine both resolvers may give up.
function equalOf(questions: readonly Question[], found: readonly Difference[]): Question[] {
  const differing = new Set(found.map(({ question }) => question));
  return questions.filter((question) => shouldDiffer(question) && !differing.has(question));
}

function resolvConf(servers: readonly string[]): string {
  return servers.map((address) => `nameserver ${address}\n`).join("");
}

// A nameserver in a container on an internal network.
async function startInside(project: Project): Promise<TestUpstreams> {
  const { State, NetworkSettings } = get(project, "server");
  const address = NetworkSettings.Networks[NETWORKS.inner]?.IPAddress ?? "";
  return await TestUpstreams.start(`/proc/${State.Pid}/ns/net`, [address], true);
}

// Must run before dns11 attaches: until then there is only one resolver in each namespace.
function dockerPorts(project: Project): ReadonlyMap<string, Ports> {
  const served = [...project].filter(([, { State, NetworkSettings }]) => {
    return State.Running && Object.keys(NetworkSettings.Networks).some((name) => name !== "bridge");
  });
  return new Map(served.map(([role, { State }]) => [role, portsAt(State.Pid)]));
}

async function resolversOf(project: Project, docker: ReadonlyMap<string, Ports>, dns11: Dns11): Promise<Resolvers> {
  await waitFor("all containers with Docker's resolver to be attached", async () => {
    const states = new Map((await dns11.status()).containers.map(({ id, state }) => [id, state]));
    return [...docker.keys()].every((role) => states.get(get(project, role).Id) === "attached") ? true : undefined;
  });
  return new Map([...docker].map(([role, ports]) => [role, { docker: ports, ours: OURS }]));
}
