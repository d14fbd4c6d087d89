/**
 * Doctor: the machine and the engine, then one container or all that run, with or without a dns11 that runs. What is ours
 * it can repair; then everything is looked at once more.
 */
import { type ContainerTarget, type CheckTools } from "./checks/container-target.ts";
import { checkContainer, checkNodeNamespace, checkUnservedContainer } from "./checks/container-check.ts";
import { libcFinding } from "./checks/libc-check.ts";
import {
  type ContainerServers,
  queryServer,
  loopFinding,
  noUpstreamFinding,
  upstreamFinding,
} from "./checks/upstream-check.ts";
import { checkNode } from "./kind/node-check.ts";
import { nodeFactOf } from "../container/kind/node-fact.ts";
import { isNode } from "../container/kind/selection.ts";
import { withContainerRoot } from "../container/namespace/container-root.ts";
import { readEngineFile } from "../container/namespace/engine-host.ts";
import { proveNamespace } from "../container/namespace/proof.ts";
import type { ExchangeResult } from "../container/rules/exchange.ts";
import { closeQuietly } from "../kernel/libc.ts";
import { Fault, reasonOf } from "../base/lib/fault.ts";
import { mapConcurrent } from "../base/lib/map-concurrent.ts";
import { type Finding, finding } from "../base/model/finding.ts";
import type { Server } from "../base/model/view.ts";
import { type InspectedContainer, inspectContainers } from "./inspected-container.ts";
import { type CleanUp, type Repair, fixContainers, fixMachine, notRepairable } from "./fix.ts";
import { type DoctorContext, type MachineOptions, checkMachine } from "./machine-check.ts";
import { readContainerResolvConf } from "./container-resolv-conf.ts";

export interface Report extends Repair {
  /** A container's name, or "the machine". */
  readonly subject: string;
  readonly findings: readonly Finding[];
}

export interface Diagnosis {
  readonly machine: Report;
  readonly containers: readonly Report[];
}

export interface DiagnosisOptions extends MachineOptions {
  /** A container's name or the beginning of its id; without it all that run. */
  readonly container: string | undefined;
  /** Where something is to be repaired: how what a killed instance left is removed. */
  readonly cleanUp?: CleanUp;
}

/** Containers looked at at the same time; most of it is waiting for answers. */
const AT_ONCE = 16;
const NOTHING: Repair = { did: [], left: [] };

/** Asks each server once, however many containers have it. */
type QueryOnce = (key: string, ask: () => Promise<readonly ExchangeResult[]>) => Promise<readonly ExchangeResult[]>;

export async function diagnose({ cleanUp, ...order }: DiagnosisOptions): Promise<Diagnosis> {
  const first = await examineAll(order);
  if (cleanUp === undefined) return first.diagnosis;
  const { machine, containers } = first.diagnosis;
  const cleaned = first.isRunning ? [] : await fixMachine(cleanUp, machine, containers, first.onlyId);
  const mended = await fixContainers(order, containers);
  const second = (await examineAll(order)).diagnosis;
  const told = (report: Report, did: readonly string[] = []): Report => ({
    ...report,
    did,
    left: notRepairable(report.findings),
  });
  return {
    machine: told(second.machine, cleaned),
    containers: second.containers.map((each) => told(each, mended.get(each.subject))),
  };
}

interface Examination {
  readonly diagnosis: Diagnosis;
  readonly isRunning: boolean;
  /** Of the container that was named. */
  readonly onlyId: string | undefined;
}

async function examineAll({ container, ...order }: Omit<DiagnosisOptions, "cleanUp">): Promise<Examination> {
  const { findings, clinic } = await checkMachine(order);
  const machine = (more: readonly Finding[]): Report => ({
    subject: "the machine",
    findings: [...findings, ...more],
    ...NOTHING,
  });
  if (clinic === undefined) {
    return { diagnosis: { machine: machine([]), containers: [] }, isRunning: false, onlyId: undefined };
  }
  try {
    const asked = queryHostServersOnce();
    const cases = await inspectContainers(clinic);
    const chosen = container === undefined ? cases : [chooseContainer(cases, container)];
    const hosts = await upstreamFindings(clinic.hostServers.servers, -1, clinic, asked);
    const containers = await mapConcurrent(
      chosen,
      AT_ONCE,
      async (each) => await diagnoseContainer(each, cases, clinic, asked),
    );
    return {
      diagnosis: { machine: machine(hosts), containers },
      isRunning: clinic.status !== undefined,
      onlyId: container === undefined ? undefined : chosen[0]?.fact.id,
    };
  } finally {
    clinic.close();
  }
}

function chooseContainer(cases: readonly InspectedContainer[], wanted: string): InspectedContainer {
  const exact = cases.filter(({ fact }) => fact.name === wanted);
  const [found, ...others] = exact.length > 0 ? exact : cases.filter(({ fact }) => fact.id.startsWith(wanted));
  if (found !== undefined && others.length === 0) return found;
  const message =
    found === undefined
      ? `The engine has no running container "${wanted}"`
      : `The ids of several containers begin with "${wanted}"`;
  throw new Fault("NO_SUCH_CONTAINER", message, { remedy: "Name a running container as `docker ps` shows it." });
}

async function diagnoseContainer(
  each: InspectedContainer,
  all: readonly InspectedContainer[],
  clinic: DoctorContext,
  asked: QueryOnce,
): Promise<Report> {
  const { fact, attachment, namespaceKind: place } = each;
  const report = (findings: readonly Finding[]): Report => ({ subject: fact.name, findings, ...NOTHING });
  if (place === "elsewhere") return report([attachment]);
  let fd = -1;
  try {
    const claim = { containerId: fact.id, sandboxKey: fact.sandboxKey, pid: fact.pid };
    fd = proveNamespace(claim, clinic.host, clinic.runner.homeId).fd;
    const { served, isAnswered, servers } = each;
    const patient = { fact, fd, resolvConf: readContainerResolvConf(fact, clinic), served, isAnswered, servers };
    const tools = { runner: clinic.runner, memory: clinic.memory, hostNetwork: clinic.host.network };
    const [here, upstream] = await Promise.all([
      checkNamespace(each, patient, tools, clinic),
      upstreamFindings(servers, fd, clinic, asked),
    ]);
    return report([
      attachment,
      ...here,
      ...(upstream.length > 0 ? upstream : [noUpstreamFinding(each.isInternal)]),
      loopFinding(each, all satisfies readonly ContainerServers[]),
      ...libcFindings(patient, clinic),
    ]);
  } catch (error) {
    return report([attachment, finding("namespace", "unknown", reasonOf(error))]);
  } finally {
    closeQuietly(fd);
  }
}

async function checkNamespace(
  { fact, namespaceKind: place, networkOf, isServedNode }: InspectedContainer,
  patient: ContainerTarget,
  tools: CheckTools,
  clinic: DoctorContext,
): Promise<Finding[]> {
  if (place === "default-bridge") return checkUnservedContainer(patient, tools);
  if (!isServedNode && !isNode(fact, [{ kind: "auto" }])) return await checkContainer(patient, tools);
  const { resolvConfPath: path } = fact;
  const resolvConf = path === undefined ? undefined : readEngineFile(clinic.host, path);
  const node = { fact: nodeFactOf(fact, networkOf, undefined), fd: patient.fd, resolvConf };
  return [...(await checkNode(node, tools)), ...checkNodeNamespace(patient, tools)];
}

async function upstreamFindings(
  servers: readonly Server[],
  fd: number,
  { runner, host }: DoctorContext,
  asked: QueryOnce,
): Promise<Finding[]> {
  return await Promise.all(
    servers.map(async (server) => {
      const from = server.from === "host" ? host.network : fd;
      const key = `${server.from === "host" ? "host" : `${fd}${server.from}`} ${server.address} ${server.port}`;
      const within = <T>(work: () => T): T => runner.within(from, work);
      try {
        return upstreamFinding(server, await asked(key, async () => await queryServer(within, server)));
      } catch (error) {
        return finding("upstream", "unknown", `${server.address}: ${reasonOf(error)}`);
      }
    }),
  );
}

function libcFindings({ fact, resolvConf }: ContainerTarget, { host }: DoctorContext): Finding[] {
  try {
    return [withContainerRoot(fact.pid, fact.id, host, (root) => libcFinding(root, resolvConf.text))];
  } catch {
    // Its files are not to be seen from here, and what they would tell is only a hint.
    return [];
  }
}

/** Descriptors are given anew once they are closed, so an answer is kept only for the host's servers. */
function queryHostServersOnce(): QueryOnce {
  const known = new Map<string, Promise<readonly ExchangeResult[]>>();
  return async (key, ask) => {
    if (!key.startsWith("host ")) return await ask();
    const answer = known.get(key) ?? ask();
    known.set(key, answer);
    return await answer;
  };
}
