/**
 * Doctor: the machine and the engine, then one container or all that run, with or without a dns11 that runs. What is ours
 * it can repair; then everything is looked at once more.
 */
import { type Patient, type Tools } from "./checks/patient.ts";
import { examineContainer, examineNodeNamespace, examineUnserved } from "./checks/examine.ts";
import { libcFinding } from "./checks/libc-check.ts";
import { type Asker, askServer, loopFinding, noUpstreamFinding, upstreamFinding } from "./checks/upstream-check.ts";
import { examineNode } from "./kind/node-check.ts";
import { nodeFactOf } from "../container/kind/node-fact.ts";
import { isNode } from "../container/kind/selection.ts";
import { withRoot } from "../container/namespace/container-root.ts";
import { readEngineFile } from "../container/namespace/engine-host.ts";
import { proveNamespace } from "../container/namespace/proof.ts";
import type { Exchanged } from "../container/rules/exchange.ts";
import { closeQuietly } from "../kernel/libc.ts";
import { Fault, reasonOf } from "../base/lib/fault.ts";
import { inTurn } from "../base/lib/in-turn.ts";
import { type Finding, finding } from "../base/model/finding.ts";
import type { Server } from "../base/model/view.ts";
import { type Case, openCases } from "./case.ts";
import { type CleanUp, type Repair, fixContainers, fixMachine, untouched } from "./fix.ts";
import { type Clinic, type MachineOrder, openClinic } from "./machine-check.ts";
import { seeResolvConf } from "./seen-resolv-conf.ts";

export interface Report extends Repair {
  /** A container's name, or "the machine". */
  readonly subject: string;
  readonly findings: readonly Finding[];
}

export interface Diagnosis {
  readonly machine: Report;
  readonly containers: readonly Report[];
}

export interface DoctorOrder extends MachineOrder {
  /** A container's name or the beginning of its id; without it all that run. */
  readonly container: string | undefined;
  /** Where something is to be repaired: how what a killed instance left is removed. */
  readonly cleanUp?: CleanUp;
}

/** Containers looked at at the same time; most of it is waiting for answers. */
const AT_ONCE = 16;
const NOTHING: Repair = { did: [], left: [] };

/** Asks each server once, however many containers have it. */
type AskOnce = (key: string, ask: () => Promise<readonly Exchanged[]>) => Promise<readonly Exchanged[]>;

export async function diagnose({ cleanUp, ...order }: DoctorOrder): Promise<Diagnosis> {
  const first = await look(order);
  if (cleanUp === undefined) return first.diagnosis;
  const { machine, containers } = first.diagnosis;
  const cleaned = first.isRunning ? [] : await fixMachine(cleanUp, machine, containers, first.onlyId);
  const mended = await fixContainers(order, containers);
  const second = (await look(order)).diagnosis;
  const told = (report: Report, did: readonly string[] = []): Report => ({
    ...report,
    did,
    left: untouched(report.findings),
  });
  return {
    machine: told(second.machine, cleaned),
    containers: second.containers.map((each) => told(each, mended.get(each.subject))),
  };
}

interface Look {
  readonly diagnosis: Diagnosis;
  readonly isRunning: boolean;
  /** Of the container that was named. */
  readonly onlyId: string | undefined;
}

async function look({ container, ...order }: Omit<DoctorOrder, "cleanUp">): Promise<Look> {
  const { findings, clinic } = await openClinic(order);
  const machine = (more: readonly Finding[]): Report => ({
    subject: "the machine",
    findings: [...findings, ...more],
    ...NOTHING,
  });
  if (clinic === undefined) {
    return { diagnosis: { machine: machine([]), containers: [] }, isRunning: false, onlyId: undefined };
  }
  try {
    const asked = askOnce();
    const cases = await openCases(clinic);
    const chosen = container === undefined ? cases : [theCase(cases, container)];
    const hosts = await upstreamFindings(clinic.hostServers.servers, -1, clinic, asked);
    const containers = await inTurn(chosen, AT_ONCE, async (each) => await examineCase(each, cases, clinic, asked));
    return {
      diagnosis: { machine: machine(hosts), containers },
      isRunning: clinic.status !== undefined,
      onlyId: container === undefined ? undefined : chosen[0]?.fact.id,
    };
  } finally {
    clinic.close();
  }
}

function theCase(cases: readonly Case[], wanted: string): Case {
  const exact = cases.filter(({ fact }) => fact.name === wanted);
  const [found, ...others] = exact.length > 0 ? exact : cases.filter(({ fact }) => fact.id.startsWith(wanted));
  if (found !== undefined && others.length === 0) return found;
  const message =
    found === undefined
      ? `The engine has no running container "${wanted}"`
      : `The ids of several containers begin with "${wanted}"`;
  throw new Fault("NO_SUCH_CONTAINER", message, { remedy: "Name a running container as `docker ps` shows it." });
}

async function examineCase(each: Case, all: readonly Case[], clinic: Clinic, asked: AskOnce): Promise<Report> {
  const { fact, attachment, place } = each;
  const report = (findings: readonly Finding[]): Report => ({ subject: fact.name, findings, ...NOTHING });
  if (place === "elsewhere") return report([attachment]);
  let fd = -1;
  try {
    const claim = { containerId: fact.id, sandboxKey: fact.sandboxKey, pid: fact.pid };
    fd = proveNamespace(claim, clinic.host, clinic.bracket.homeId).fd;
    const { served, isAnswered, servers } = each;
    const patient = { fact, fd, resolvConf: seeResolvConf(fact, clinic), served, isAnswered, servers };
    const tools = { bracket: clinic.bracket, memory: clinic.memory, hostNetwork: clinic.host.network };
    const [here, upstream] = await Promise.all([
      examinePlace(each, patient, tools, clinic),
      upstreamFindings(servers, fd, clinic, asked),
    ]);
    return report([
      attachment,
      ...here,
      ...(upstream.length > 0 ? upstream : [noUpstreamFinding(each.isInside)]),
      loopFinding(each, all satisfies readonly Asker[]),
      ...libcFindings(patient, clinic),
    ]);
  } catch (error) {
    return report([attachment, finding("namespace", "unknown", reasonOf(error))]);
  } finally {
    closeQuietly(fd);
  }
}

async function examinePlace(
  { fact, place, networkOf, isServedNode }: Case,
  patient: Patient,
  tools: Tools,
  clinic: Clinic,
): Promise<Finding[]> {
  if (place === "default-bridge") return examineUnserved(patient, tools);
  if (!isServedNode && !isNode(fact, [{ kind: "auto" }])) return await examineContainer(patient, tools);
  const { resolvConfPath: path } = fact;
  const resolvConf = path === undefined ? undefined : readEngineFile(clinic.host, path);
  const node = { fact: nodeFactOf(fact, networkOf, undefined), fd: patient.fd, resolvConf };
  return [...(await examineNode(node, tools)), ...examineNodeNamespace(patient, tools)];
}

async function upstreamFindings(
  servers: readonly Server[],
  fd: number,
  { bracket, host }: Clinic,
  asked: AskOnce,
): Promise<Finding[]> {
  return await Promise.all(
    servers.map(async (server) => {
      const from = server.from === "host" ? host.network : fd;
      const key = `${server.from === "host" ? "host" : `${fd}${server.from}`} ${server.address} ${server.port}`;
      const within = <T>(work: () => T): T => bracket.within(from, work);
      try {
        return upstreamFinding(server, await asked(key, async () => await askServer(within, server)));
      } catch (error) {
        return finding("upstream", "unknown", `${server.address}: ${reasonOf(error)}`);
      }
    }),
  );
}

function libcFindings({ fact, resolvConf }: Patient, { host }: Clinic): Finding[] {
  try {
    return [withRoot(fact.pid, fact.id, host, (root) => libcFinding(root, resolvConf.text))];
  } catch {
    // Its files are not to be seen from here, and what they would tell is only a hint.
    return [];
  }
}

/** Descriptors are given anew once they are closed, so an answer is kept only for the host's servers. */
function askOnce(): AskOnce {
  const known = new Map<string, Promise<readonly Exchanged[]>>();
  return async (key, ask) => {
    if (!key.startsWith("host ")) return await ask();
    const answer = known.get(key) ?? ask();
    known.set(key, answer);
    return await answer;
  };
}
