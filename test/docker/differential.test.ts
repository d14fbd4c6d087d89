// Strict mode promises that no client can tell dns11 from Docker's own resolver. Here both run side by side in the same
// containers of a current engine, and every question goes to both: valid and malformed ones, about containers and about
// upstream names, in the initial state and after changes. The kernel answers, too: what was answered here goes to both
// once more, because it repeats what the process has answered. These questions then go to the mode default, with and
// without the kernel.

import assert from "node:assert/strict";
import { test } from "node:test";

import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { startEngine } from "../support/engine/engine.ts";
import { addAddress } from "../support/rig/netns.ts";
import { pause } from "../support/rig/wait.ts";
import { type Ports, portsAt } from "./differential/client.ts";
import { type Difference, type Resolvers, queryBoth, differences } from "./differential/run-both.ts";
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
// After a change Docker answers at once, and dns11 as soon as it has received the event.
const SETTLE_TRIES = 10;
const LATE_TRIES = 4;
const SETTLE_MS = 500;

await test(
  "with --strict, dns11 replies exactly as a current Docker engine does; the kernel as the process, in each mode",
  { timeout: 540_000 },
  async (context) => {
    // Throws if the suite is not available, with what was tried.
    await using engine = await startEngine({ suite: "forky", resolvConf: resolvConf(SERVERS.slice(0, 4)) });
    assert.ok(Number.parseInt(engine.version, 10) >= MAJOR_MIN, `the engine of forky is Docker ${engine.version}`);
    await addAddress(engine.netnsPath, CLOSED_SERVER);
    using upstreams = await TestUpstreams.start(engine.netnsPath, SERVERS);
    const project = await startProject(engine);
    using inside = await startInside(project);
    const docker = dockerPorts(project);
    await using dns11 = await startDns11(engine, { args: ["--strict", "--answers", "kernel"] });
    const resolvers = await resolversOf(project, docker, dns11);
    const received = async () => new Map([...(await inside.received()), ...(await upstreams.received())]);

    const questions = allQuestions(project);
    let firstId = 0;
    // Answered here by UDP, without an upstream server.
    let local: Question[] = [];
    const differencesOf = async (batch: readonly Question[]): Promise<Difference[]> => {
      const results = await queryBoth(project, resolvers, batch, firstId);
      firstId += batch.length * 2;
      const queries = await received();
      local = results
        .filter(({ ours, oursId }) => ours.ended === "answered" && !queries.has(oursId))
        .flatMap(({ question }) => (question.transport === "udp" ? [question] : []));
      return differences(results, queries);
    };
    let found = await differencesOf(questions);
    const answeredHere = local;
    const again = await differencesOf(local);
    found.push(...again.filter(({ question }) => found.every((one) => one.question !== question)));
    // A difference in timing that a busy machine causes does not occur each time.
    for (let tries = 0; tries < LATE_TRIES; tries++) {
      const late = found.filter((one) => one.isByTime && !isKnown(one));
      if (late.length === 0) break;
      const retried = await differencesOf(late.map(({ question }) => question));
      found = [...found.filter((one) => !late.includes(one)), ...retried];
    }
    const unknown = found.filter((difference) => !isKnown(difference));
    const known = found.length - unknown.length;
    const differing = new Set(found.map(({ question }) => question));
    const gone = questions.filter((question) => shouldDiffer(question) && !differing.has(question));
    let total = questions.length;

    for await (const round of roundsOfChanges(engine)) {
      const changed = changedQuestions(project);
      let left: Difference[] = [];
      for (let tries = 0; tries < SETTLE_TRIES; tries++) {
        await pause(SETTLE_MS);
        left = [...(await differencesOf(changed)), ...(await differencesOf(local))];
        if (left.length === 0) break;
      }
      total += changed.length;
      unknown.push(...left.map((one) => ({ ...one, report: `after round ${round + 1}: ${one.report}` })));
    }

    const summary = `${unknown.length} differences, and ${known} known ones for ${KNOWN_DIFFERENCES.length} reasons`;
    const byKernel = await answeredByKernel(dns11);
    context.diagnostic(`${total} questions, ${byKernel} answers by the kernel, ${summary}`);
    assert.ok(byKernel > questions.length / 20, `the kernel answered only ${byKernel} of them`);
    assert.equal(unknown.map(({ report }) => report).join("\n\n"), "", "differences");
    assert.deepEqual(
      gone.map(({ from, label }) => `${from}: ${label}`),
      [],
      "known differences that no longer occur",
    );

    const startMs = performance.now();
    assert.equal(await dns11.stop(), 0);
    const only = new Map([...docker.keys()].map((role) => [role, { docker: OURS, ours: OURS }]));
    const compared = await compareWithKernel(engine, project, only, answeredHere);
    const took = `${Math.round((performance.now() - startMs) / 1000)} s`;
    context.diagnostic(
      `mode default: ${compared.questions} questions, ${compared.byKernel} answers by the kernel, ${took}`,
    );
    assert.equal(compared.differences.join("\n\n"), "", "differences between the kernel and the process");
    assert.ok(compared.byKernel > compared.questions / 4, "each is asked four times, and many are plain");
  },
);

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
  const states = new Map((await dns11.status()).containers.map(({ id, state }) => [id, state]));
  for (const role of docker.keys()) assert.equal(states.get(get(project, role).Id), "attached", role);
  return new Map([...docker].map(([role, ports]) => [role, { docker: ports, ours: OURS }]));
}
