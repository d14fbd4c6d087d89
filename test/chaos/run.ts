// Run of the chaos test: a separate engine, some containers with a prober each, dns11 under a supervisor, and the
// faults of a plan until the time is over. Then all faults are healed, and the run checks that everything recovers and
// nothing is left.

import { existsSync } from "node:fs";
import { join } from "node:path";

import { type Engine, startEngine } from "../support/engine/engine.ts";
import { createNetwork } from "../support/engine/container.ts";
import { cgroupsNamed, processesOf } from "../support/rig/leftovers.ts";
import { startScripted } from "../support/scripted/scripted.ts";
import type { Suite } from "../support/engine/suite.ts";
import { pause, waitFor } from "../support/rig/wait.ts";
import { ControlGroup } from "./control-group.ts";
import { FAULT_ACTIONS } from "./faults/actions.ts";
import { type Recording, type Violation, judge } from "./judge.ts";
import { Member, type NetworkName, SUBNETS } from "./member.ts";
import { monotonicMs } from "./monotonic.ts";
import { type Fault, type Kind, type Plan, type Track, UPSTREAMS, planOf } from "./plan.ts";
import type { Result } from "./report.ts";
import type { FaultContext } from "./fault-context.ts";
import { StateFolder } from "./state-folder.ts";
import { SteppedClock } from "../support/program/stepped-clock.ts";
import { Supervisor } from "./supervisor.ts";
import type { SettingTexts } from "../support/program/dns11.ts";
import { Mutex } from "./mutex.ts";
import { Witness } from "./witness.ts";
import { World } from "./world.ts";

export type RunOptions = {
  readonly seed: number;
  readonly lengthMs: number;
  // How long a container may be without a correct answer.
  readonly toleranceMs: number;
  readonly containers: number;
  readonly suite?: Suite;
  // Restricts the faults to these kinds.
  readonly only?: readonly Kind[];
  // Of dns11.
  readonly settings?: SettingTexts;
  // Records a history, too, and checks it.
  readonly hasWitness?: boolean;
  readonly print?: (line: string) => void;
};

// A fault that was applied.
export type AppliedFault = {
  readonly fault: Fault;
  readonly beganMs: number;
  endedMs: number;
  note: string;
  hasFailed: boolean;
};

const UPSTREAM_ADDRESSES = Array.from({ length: UPSTREAMS }, (_, index) => `10.53.0.${index + 1}`);
// Time beside the plan: start, recovery, checks.
const MARGIN_MS = 10 * 60_000;
const WARM_MS = 1_000;
// The longest retry interval is a minute.
const SETTLE_MS = 100_000;
const HEALED_MS = 2_000;
const HANDED_BACK_MS = 1_500;
// Descriptors that are open only temporarily.
const DESCRIPTORS_GROWTH_MAX = 40;
const PROGRESS_EVERY_MS = 10_000;
const RESTART_CHECK_EVERY_MS = 100;

export async function runChaos(options: RunOptions): Promise<Result> {
  const { seed, lengthMs, containers, toleranceMs, only = [], print = () => undefined } = options;
  const plan = planOf(seed, lengthMs, containers, only);
  const engine = await startEngine({
    suite: options.suite,
    liveRestore: true,
    resolvConf: UPSTREAM_ADDRESSES.map((address) => `nameserver ${address}\n`).join(""),
  });
  const { id, folder } = engine;
  let result: Omit<Result, "leftovers">;
  try {
    result = await runOnEngine(engine, plan, options, print);
  } finally {
    await engine[Symbol.asyncDispose]();
  }
  const leftovers = [
    ...processesOf({ id }).map((pid) => `process ${pid}`),
    ...cgroupsNamed(id).map((path) => `control group ${path}`),
    ...[folder, engine.netnsPath].filter((path) => existsSync(path)),
  ];
  print(`done; ${result.violations.length} violations at a tolerance of ${toleranceMs} ms`);
  return { ...result, leftovers };
}

async function runOnEngine(
  engine: Engine,
  plan: Plan,
  options: RunOptions,
  print: (line: string) => void,
): Promise<Omit<Result, "leftovers">> {
  const { lengthMs, toleranceMs, containers, settings = {} } = options;
  const engineId = ((await engine.api("/info")) as { ID: string }).ID;
  for (const name of Object.keys(SUBNETS) as NetworkName[]) {
    await createNetwork(engine, name, { subnet: SUBNETS[name] });
  }
  await using _upstreams = await startScripted(engine, plan.upstreams, { addresses: UPSTREAM_ADDRESSES });
  const world = new World();
  const names = Array.from({ length: containers }, (_, index) => `c${index}`);
  const prober = { neighbours: names, giveUpMs: toleranceMs, forMs: lengthMs + MARGIN_MS };
  const members = names.map((_, index) => new Member({ engine, world, index, prober }));
  for (const member of members) await member.create();
  await using state = await StateFolder.make(join(engine.folder, "s"));
  const group = new ControlGroup(engine.id);
  const clock = new SteppedClock(join(engine.folder, "clock"));
  const witness = options.hasWitness === true ? new Witness(engine, world, members) : undefined;
  const supervisor = new Supervisor({
    host: engine.host,
    stateDir: state.path,
    controlPath: state.control(engineId),
    prefix: [...group.prefix, ...state.prefix],
    env: clock.env,
    settings: { ...settings, ...(witness !== undefined && Witness.settings) },
    world,
    members,
  });
  supervisor.start();
  const appliedFaults: AppliedFault[] = [];
  const problems: Violation[] = [];
  const died: string[] = [];
  const beganMs = monotonicMs();
  try {
    await supervisor.ready();
    await pause(WARM_MS);
    await witness?.start(supervisor);
    print(`dns11 serves ${containers} containers of dockerd ${engine.version}; faults start`);
    const context: FaultContext = { engine, world, members, supervisor, state, group, clock, networks: new Mutex() };
    const untilMs = monotonicMs() + lengthMs;
    const progress = setInterval(() => {
      const { violations, expected } = judge(
        members.map((member) => member.record()),
        toleranceMs,
        supervisor.starved,
      );
      const seconds = Math.round((monotonicMs() - beganMs) / 1_000);
      print(`${seconds} s: ${appliedFaults.length} faults, ${expected.probes} probes, ${violations.length} violations`);
    }, PROGRESS_EVERY_MS);
    const restarting = setInterval(() => {
      for (const member of members) {
        const note = (error: Error): boolean => died.push(`${member.name}: ${error.message}`) > 0;
        void member.restartIfExited().then((did) => did && died.push(member.name), note);
      }
    }, RESTART_CHECK_EVERY_MS);
    const tracks = Object.keys(plan.tracks) as Track[];
    await Promise.all(tracks.map(async (track) => await play(context, plan.tracks[track], untilMs, appliedFaults)));
    clearInterval(progress);
    clearInterval(restarting);
    const lost = appliedFaults.find(isEngineLost);
    if (lost === undefined) problems.push(...(await healed(supervisor, members)));
    else problems.push(problem(`the run ended early: the engine did not restart: ${lost.note}`));
  } finally {
    problems.push(...((await witness?.end(supervisor.log, toleranceMs)) ?? []));
    const code = await supervisor.stop();
    if (code !== 0) problems.push(problem(`dns11's last exit was ${code ?? "before its stop"}, not 0`));
  }
  // Only Docker answers now.
  await pause(HANDED_BACK_MS);
  for (const member of members) {
    const tables = await member.enter("nft", ["list", "tables"]);
    if (tables.includes("dns11")) problems.push(problem(`left in ${member.name}: ${tables.trim()}`));
    await member.end("the run had ended");
  }
  for (const { atMs, exit, log } of supervisor.unexpectedExits) {
    problems.push({
      ...problem(`dns11 exited unexpectedly: ${exit}; last log lines:\n${log}`),
      fromMs: atMs,
      toMs: atMs,
    });
  }
  const records: Recording[] = members.map((member) => member.record());
  const judgement = judge(records, toleranceMs, supervisor.starved);
  return {
    plan,
    beganMs,
    appliedFaults,
    records,
    judgement,
    violations: [...judgement.violations, ...problems],
    died,
    load: loadOf(members),
    history: witness?.counts,
    ends: supervisor.ends,
    costs: supervisor.costs,
    starvedMs: supervisor.starved.reduce((sum, { ms }) => sum + ms, 0),
    log: supervisor.log,
    engineLog: engine.logs(),
  };
}

async function play(
  context: FaultContext,
  faults: readonly Fault[],
  untilMs: number,
  appliedFaults: AppliedFault[],
): Promise<void> {
  for (const fault of faults) {
    await pause(Math.min(fault.waitMs, Math.max(0, untilMs - monotonicMs())));
    if (monotonicMs() >= untilMs || appliedFaults.some(isEngineLost)) return;
    const applied: AppliedFault = { fault, beganMs: monotonicMs(), endedMs: Infinity, note: "", hasFailed: false };
    appliedFaults.push(applied);
    try {
      applied.note = await FAULT_ACTIONS[fault.kind](context, fault);
    } catch (error) {
      applied.hasFailed = true;
      applied.note = (error as Error).message;
    }
    applied.endedMs = monotonicMs();
  }
}

// Without an engine the run cannot continue.
function isEngineLost({ fault, hasFailed }: AppliedFault): boolean {
  return fault.track === "engine" && hasFailed;
}

// Checks the recovery: every container is served, and dns11 has not grown.
async function healed(supervisor: Supervisor, members: readonly Member[]): Promise<Violation[]> {
  const problems: Violation[] = [];
  // A container that happened to be involved in repeated kills of dns11 is quarantined, so Docker serves it.
  const isServed = ({ name, namespace }: Member): boolean =>
    supervisor.statuses.some(
      (one) =>
        one.name === name && (one.state === "quarantined" || (one.namespace === namespace && one.state === "attached")),
    );
  // A container that the engine could not restart was reported with its fault.
  const running = members.filter(({ unsteady }) => unsteady === undefined);
  try {
    await supervisor.ready();
    await waitFor("all containers to be served", () => (running.every(isServed) ? true : undefined), {
      timeoutMs: SETTLE_MS,
    });
  } catch {
    const missing = running.filter((member) => !isServed(member)).map(({ name }) => name);
    const states = supervisor.statuses
      .filter(({ name }) => missing.includes(name))
      .map(({ name, state, code, reason }) => `${name} is ${state} ${code ?? ""}: ${reason ?? ""}`);
    problems.push(problem(`not served after recovery: ${missing.join(", ")}; ${states.join("; ")}`));
  }
  await pause(HEALED_MS);
  const { first, last } = supervisor.costs;
  const grown = (last?.descriptors ?? 0) - (first?.descriptors ?? 0);
  if (grown > DESCRIPTORS_GROWTH_MAX) problems.push(problem(`dns11 has ${grown} more descriptors than at its start`));
  return problems;
}

function problem(what: string): Violation {
  const now = monotonicMs();
  return { container: "all", fromMs: now, toMs: now, what };
}

function loadOf(members: readonly Member[]): Map<string, number> {
  const sums = new Map<string, number>();
  for (const member of members) {
    for (const [what, count] of member.load) sums.set(what, (sums.get(what) ?? 0) + count);
  }
  return sums;
}
