// The strict character promises that no client can tell dns11 from Docker's own resolver. Here the two stand side by side
// in the same containers of a current engine, and every question goes to both: well-formed and broken ones, about
// containers and about the rest of the world, while nothing happens and after it did.

import assert from "node:assert/strict";
import { test } from "node:test";

import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { startEngine } from "../support/engine/engine.ts";
import { addAddress } from "../support/rig/netns.ts";
import { pause } from "../support/rig/wait.ts";
import { type Ports, portsAt } from "./differential/asker.ts";
import { type Difference, type Resolvers, askBoth, differences } from "./differential/both.ts";
import { CLOSED_SERVER, NETWORKS, SERVERS } from "./differential/cast.ts";
import { changedQuestions, roundsOfChanges } from "./differential/changes.ts";
import { KNOWN, isKnown, shouldDiffer } from "./differential/known.ts";
import { type Project, get, startProject } from "./differential/project.ts";
import type { Question } from "./differential/question.ts";
import { allQuestions } from "./differential/questions/all.ts";
import { World } from "./differential/world.ts";

// A namespace has one of each, and nobody asks dns11 but by the rules that lead there.
const OURS: Ports = { udp: 53, tcp: 53 };
const MAJOR_MIN = 28;
// After a change Docker answers at once, and dns11 when it has heard of it.
const SETTLE_TRIES = 10;
const LATE_TRIES = 4;
const SETTLE_MS = 500;

await test("--strict answers as a current Docker engine does", { timeout: 420_000 }, async (context) => {
  // Where the suite cannot be had this throws, and tells what was tried.
  await using engine = await startEngine({ suite: "forky", resolvConf: resolvConf(SERVERS.slice(0, 4)) });
  assert.ok(Number.parseInt(engine.version, 10) >= MAJOR_MIN, `the engine of forky is Docker ${engine.version}`);
  await addAddress(engine.netnsPath, CLOSED_SERVER);
  using world = await World.start(engine.netnsPath, SERVERS);
  const project = await startProject(engine);
  using inside = await startInside(project);
  const docker = dockerPorts(project);
  await using dns11 = await startDns11(engine, { args: ["--strict"] });
  const resolvers = await resolversOf(project, docker, dns11);
  const asked = async () => new Map([...(await inside.asked()), ...(await world.asked())]);

  const questions = allQuestions(project);
  let firstId = 0;
  const differencesOf = async (asking: readonly Question[]): Promise<Difference[]> => {
    const answered = await askBoth(project, resolvers, asking, firstId);
    firstId += asking.length * 2;
    return differences(answered, await asked());
  };
  let found = await differencesOf(questions);
  // What a busy machine has done to one of the two is not done to the same one each time.
  for (let tries = 0; tries < LATE_TRIES; tries++) {
    const late = found.filter((one) => one.isByTime && !isKnown(one));
    if (late.length === 0) break;
    const again = await differencesOf(late.map(({ question }) => question));
    found = [...found.filter((one) => !late.includes(one)), ...again];
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
      left = await differencesOf(changed);
      if (left.length === 0) break;
    }
    total += changed.length;
    unknown.push(...left.map((one) => ({ ...one, report: `after round ${round + 1}: ${one.report}` })));
  }

  const summary = `${unknown.length} differences, and ${known} known ones for ${KNOWN.length} reasons`;
  context.diagnostic(`${total} questions, ${summary}`);
  assert.equal(unknown.map(({ report }) => report).join("\n\n"), "", "differences");
  assert.deepEqual(
    gone.map(({ from, label }) => `${from}: ${label}`),
    [],
    "known differences that are none",
  );
});

function resolvConf(servers: readonly string[]): string {
  return servers.map((address) => `nameserver ${address}\n`).join("");
}

// A nameserver that is a container on a network that leads nowhere else.
async function startInside(project: Project): Promise<World> {
  const { State, NetworkSettings } = get(project, "server");
  const address = NetworkSettings.Networks[NETWORKS.inner]?.IPAddress ?? "";
  return await World.start(`/proc/${State.Pid}/ns/net`, [address], true);
}

// To be called before dns11 comes: there is one resolver in each namespace then.
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
