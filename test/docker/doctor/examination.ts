/**
 * What the files of the doctor share: an engine with a network, a doctor that examines it, and what it finds. Each has an engine of its own.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before } from "node:test";

import type { Diagnosis, Report } from "../../../src/doctor/problems.ts";
import type { CheckCode, Finding } from "../../../src/base/model/finding.ts";
import { type Container, type ContainerOptions, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Dns11, dns11 } from "../../support/program/dns11.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import type { NetworkContext } from "../../support/rig/netns.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

export const NETWORK = "n1";
export const UPSTREAM = "10.53.0.1";

export let engine: Engine;
export const folder = makeFolder("doctor");

before(async () => {
  engine = await startEngine({ resolvConf: `nameserver ${UPSTREAM}\n` });
  await startUpstream(engine, { address: UPSTREAM });
  await createNetwork(engine, NETWORK, { subnet: "10.88.0.0/24" });
  await createNetwork(engine, "closed", { internal: true });
});
after(async () => {
  await engine[Symbol.asyncDispose]();
});

export interface Result extends Diagnosis {
  readonly code: number;
  /** The findings of one check for a container. */
  of(name: string, code: CheckCode): readonly Finding[];
}

export async function doctor(instance: Dns11 | undefined, ...args: string[]): Promise<Result> {
  return await doctorOf(engine, instance?.stateDir ?? join(folder, "no-instance"), ...args);
}

export async function doctorOf(target: Engine, stateDir: string, ...args: string[]): Promise<Result> {
  const { code, stdout, stderr } = await dns11([
    "doctor",
    "--json",
    "-H",
    target.host,
    "--state-dir",
    stateDir,
    ...args,
  ]);
  assert.equal(stderr, "");
  const diagnosis = JSON.parse(stdout) as Diagnosis;
  return { ...diagnosis, code, of: (name, checkCode) => findingsOf(reportOf(diagnosis, name), checkCode) };
}

export function reportOf({ machine, containers }: Diagnosis, name: string): Report {
  if (name === machine.subject) return machine;
  return containers.find(({ subject }) => subject === name) ?? assert.fail(`no report for ${name}`);
}

export function findingsOf({ findings }: Report, checkCode: CheckCode): Finding[] {
  return findings.filter(({ code }) => code === checkCode);
}

/** One check has a finding with this state and a detail like this. */
export function assertFinding(
  result: Result,
  name: string,
  code: CheckCode,
  state: Finding["state"],
  detail: RegExp,
): void {
  const findings = result.of(name, code);
  const text = JSON.stringify(findings, undefined, 1);
  const match = findings.find((each) => each.state === state && detail.test(each.detail));
  assert.ok(match !== undefined, `${name}, ${code}, ${state} ${detail}: ${text}`);
  if (state === "problem") assert.ok(match.remedy !== undefined, `${code} has a remedy`);
}

// Beside twenty busy programs the lock of iptables-legacy may be another's for longer than the doctor waits.
const IS_LOCKED = /^tables of iptables-legacy cannot be read, because another program changes them/;

export function notOkIn({ findings }: Report): Finding[] {
  return findings.filter(({ state, detail }) => state !== "ok" && !IS_LOCKED.test(detail));
}

type Containers = Readonly<Record<string, Container>> & AsyncDisposable;

export async function runMany(options: Readonly<Record<string, ContainerOptions>>): Promise<Containers> {
  const started = await Promise.all(
    Object.entries(options).map(
      async ([name, option]) => [name, await runContainer(engine, { name, networks: [NETWORK], ...option })] as const,
    ),
  );
  const remove = async (): Promise<void> => {
    await Promise.all(started.map(async ([, container]) => await container[Symbol.asyncDispose]()));
  };
  return Object.assign(Object.fromEntries(started), { [Symbol.asyncDispose]: remove });
}

export async function nft(place: NetworkContext | undefined, rules: string): Promise<void> {
  const { code, stderr } = (await place?.enter("nft", ["-f", "-"], { input: rules })) ?? { code: 1, stderr: "" };
  assert.equal(code, 0, stderr);
}
