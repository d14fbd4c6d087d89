/**
 * Doctor: checks the host and the engine, then one or all running containers, whether or not dns11 is running. With a repair
 * it fixes what belongs to dns11 and runs all checks again.
 */
import { Socket } from "node:net";

import { withContainerRoot } from "../container/namespace/container-root.ts";
import { composeServiceOf } from "../container/facts/compose.ts";
import type { NetworkFact } from "../container/facts/fact.ts";
import type { KnownContainer } from "../control/causes/known-container.ts";
import { proveNamespace } from "../container/namespace/proof.ts";
import { closeQuietly } from "../kernel/libc.ts";
import type { Within } from "../kernel/net-namespace.ts";
import { codeOf, reasonOf } from "../base/lib/fault.ts";
import { mapConcurrent } from "../base/lib/async.ts";
import { containerCalled, containersCalled, inProject } from "../base/model/container-choice.ts";
import { type Finding, finding } from "../base/model/finding.ts";
import { serverText } from "../base/model/server-text.ts";
import type { Server } from "../base/model/view.ts";
import type { CheckedContainer, CheckedContainers, InsideContainer } from "../features/contract.ts";
import { dialIn } from "../container/namespace/dial.ts";
import type { ContainerTarget, CheckTools } from "./checks/container-target.ts";
import {
  checkCapturedContainer,
  checkContainer,
  checkBesides,
  checkUnservedContainer,
  libcFinding,
  ContainerStates,
  chosenEnded,
  endedContainers,
} from "./checks/container-check.ts";
import { staleCopyFindings } from "./checks/resolv-conf-check.ts";
import {
  type ContainerServers,
  type TlsAnswer,
  knowsDomain,
  queryByTls,
  queryServer,
  tlsFinding,
  loopFinding,
  noUpstreamFinding,
  upstreamFinding,
  withDockerBroken,
} from "./checks/upstream-check.ts";
import { injectedFindings, misleadingFindings, failureFindings, readFailures } from "./checks/failing-names.ts";
import { serverRemedy } from "./checks/upstream-remedy.ts";
import { networkFindings } from "./checks/networks-check.ts";
import type { Announce } from "../container/rules/own-name.ts";
import { loadChecks, loadReports } from "../features/load.ts";
import { type InspectedContainer, inspectContainers } from "./inspected-container.ts";
import { type CleanUp, fixContainers, fixMachine, notRepairable } from "./fix.ts";
import { type DoctorContext, type MachineOptions, checkMachine, noNameserverFindings } from "./machine-check.ts";
import { type Diagnosis, type Repair, type Report, HOST, problemsIn } from "./problems.ts";
import { readContainerResolvConf } from "./container-resolv-conf.ts";

const LIMIT_MS = 3_000;
const POLL_MS = 20;

interface DiagnosisOptions extends MachineOptions {
  /** A container's name, Compose service or ID; undefined for all running containers. */
  readonly container: string | undefined;
  /** Only containers of this Compose project are checked. */
  readonly project?: string | undefined;
  /** Called as soon as findings are known; with a repair, for both rounds. */
  readonly onFindings?: (subject: string, findings: readonly Finding[]) => void;
  /** Set to repair: removes the leftovers of a killed instance. */
  readonly cleanUp?: CleanUp;
}

/** Containers checked at the same time; most of the time is spent waiting for replies. */
const AT_ONCE = 16;
const NOTHING: Repair = { did: [], left: [] };

/** Queries each host server once, however many containers use it. */
type QueryOnce = <T>(key: string, query: () => Promise<T>) => Promise<T>;

export async function diagnose({ cleanUp, ...options }: DiagnosisOptions): Promise<Diagnosis> {
  const first = await examineAll(options, cleanUp !== undefined);
  if (cleanUp === undefined) return first.diagnosis;
  const { machine, containers } = first.diagnosis;
  // Leftovers of the whole machine are no matter of one project.
  const isOneProject = options.project !== undefined && first.onlyId === undefined;
  const hostActions =
    first.isRunning || isOneProject ? [] : await fixMachine(cleanUp, machine, containers, first.onlyId);
  const checks = await loadChecks();
  const repaired = await fixContainers(options, containers, checks);
  const second = (await examineAll(options, true)).diagnosis;
  const withActions = (report: Report, did: readonly string[] = []): Report => ({
    ...report,
    did,
    left: notRepairable(report.findings, checks),
  });
  return await diagnosisOf(
    withActions(second.machine, hostActions),
    second.containers.map((each) => withActions(each, repaired.get(each.subject))),
  );
}

async function diagnosisOf(machine: Report, containers: readonly Report[]): Promise<Diagnosis> {
  return { machine, containers, problems: problemsIn([machine, ...containers], await loadChecks()) };
}

interface Examination {
  readonly diagnosis: Diagnosis;
  readonly isRunning: boolean;
  /** The id of the requested container. */
  readonly onlyId: string | undefined;
}

const OF_HOST = "the Docker host has no nameserver";

/** A host without a nameserver, such as a machine that is offline, is one cause, which the checks of the host report. */
function whyNoUpstream({ fact, isInternal }: InspectedContainer, { hostServers }: DoctorContext): string | undefined {
  if (fact.endpoints.length === 0 && fact.onDefaultBridge === undefined) return "it is on no network";
  if (isInternal) return "all its networks are internal";
  return hostServers.nameservers.length === 0 ? OF_HOST : undefined;
}

function isWithoutUpstream(each: InspectedContainer, context: DoctorContext): boolean {
  const isInspected = each.namespaceKind !== "elsewhere";
  return isInspected && each.servers.length === 0 && whyNoUpstream(each, context) === OF_HOST;
}

async function examineAll(
  { container, project, onFindings, ...options }: Omit<DiagnosisOptions, "cleanUp">,
  isFixing: boolean,
): Promise<Examination> {
  const { findings, context } = await checkMachine(options);
  onFindings?.(HOST, findings);
  const machine = (more: readonly Finding[]): Report => ({
    subject: HOST,
    findings: [...findings, ...more],
    ...NOTHING,
  });
  if (context === undefined) {
    return { diagnosis: await diagnosisOf(machine([]), []), isRunning: false, onlyId: undefined };
  }
  try {
    const queryOnce = queryHostServersOnce();
    const inspected = await inspectContainers(context);
    const ended = await endedContainers(context.engine);
    const { chosen, notRunning } = chooseAll(inspected, ended, { container, project, isFixing });
    const facts = inspected.map(({ fact }) => fact);
    const states = new ContainerStates(facts, ended);
    const only = container !== undefined && chosen.length === 1 ? chosen[0]?.fact.id : undefined;
    // They are read before any check queries something.
    const failures =
      context.status === undefined
        ? undefined
        : await readFailures(
            context.client,
            only === undefined ? (project === undefined ? {} : { project }) : { container: only },
          );
    const hostFindings = await upstreamFindings(context.hostServers.servers, undefined, context, queryOnce);
    const networkOf = (id: string): NetworkFact | undefined => inspected[0]?.networkOf(id);
    const isWhole = only === undefined && project === undefined;
    const checked = isWhole ? new Set(chosen.map(({ fact }) => fact.id)) : undefined;
    const ofFeatures = await featureFindingsOf({ facts, networkOf, checked }, context);
    const networks = networkFindings(facts, networkOf);
    const missed = inspected.filter((each) => isWithoutUpstream(each, context)).length;
    const moreFindings = [
      ...noNameserverFindings(context.hostServers, missed),
      ...hostFindings,
      ...misleadingFindings(failures),
      ...injectedFindings(failures),
      ...ofFeatures,
      ...networks,
    ];
    onFindings?.(HOST, moreFindings);
    const containers = await mapConcurrent(chosen, AT_ONCE, async (each) => {
      const report = await diagnoseContainer(each, inspected, context, queryOnce);
      const own = failureFindings(failures, each.fact.id);
      const all = [...states.findings(each.fact.id), ...report.findings, ...own];
      onFindings?.(report.subject, all);
      return { ...report, findings: all };
    });
    const reports = notRunning.map(({ id, name }) => {
      const report = { subject: name, findings: states.findings(id), ...NOTHING };
      onFindings?.(name, report.findings);
      return report;
    });
    return {
      diagnosis: await diagnosisOf(machine(moreFindings), [...containers, ...reports]),
      isRunning: context.status !== undefined,
      onlyId: only,
    };
  } finally {
    context.close();
  }
}

/** The running ones, and those that do not run: where none is meant, the ones that should. */
function chooseAll(
  inspected: readonly InspectedContainer[],
  ended: readonly KnownContainer[],
  choice: Pick<DiagnosisOptions, "container" | "project"> & { readonly isFixing: boolean },
): { readonly chosen: readonly InspectedContainer[]; readonly notRunning: readonly KnownContainer[] } {
  const { container, project } = choice;
  try {
    const chosen = chooseContainers(inspected, choice);
    return { chosen, notRunning: container === undefined ? chosenEnded(ended, undefined, project) : [] };
  } catch (error) {
    if (container === undefined || codeOf(error) !== "NO_SUCH_CONTAINER") throw error;
    try {
      return { chosen: [], notRunning: chosenEnded(ended, container, project) };
    } catch {
      throw error;
    }
  }
}

/** Several only for a service. What changes something may not be ambiguous. */
function chooseContainers(
  inspected: readonly InspectedContainer[],
  { container, project, isFixing }: Pick<DiagnosisOptions, "container" | "project"> & { readonly isFixing: boolean },
): InspectedContainer[] {
  const named = inspected.map((each) => {
    const { project: own = null, service = null } = composeServiceOf(each.fact) ?? {};
    return { id: each.fact.id, name: each.fact.name, project: own, service, each };
  });
  const chosen =
    container === undefined
      ? inProject(named, project)
      : isFixing
        ? [containerCalled(named, container, project)]
        : containersCalled(named, container, project);
  return chosen.map(({ each }) => each);
}

async function diagnoseContainer(
  each: InspectedContainer,
  all: readonly InspectedContainer[],
  context: DoctorContext,
  queryOnce: QueryOnce,
): Promise<Report> {
  const { fact, namespaceKind, copied } = each;
  const stale = copied === undefined ? [] : staleCopyFindings(copied, context.hostServers, fact);
  const attachment = [each.attachment, ...stale];
  const report = (findings: readonly Finding[]): Report => ({ subject: fact.name, findings, ...NOTHING });
  const checked = (inside?: InsideContainer): CheckedContainer => ({
    fact,
    status: context.status?.containers.find(({ id }) => id === fact.id),
    inside,
    networkOf: each.networkOf,
  });
  if (namespaceKind === "elsewhere") return report([...attachment, ...(await featureFindings(checked(), context))]);
  let fd = -1;
  try {
    const claim = { containerId: fact.id, sandboxKey: fact.sandboxKey, pid: fact.pid };
    fd = proveNamespace(claim, context.host, context.runner.homeId).fd;
    const { served, isAnswered, isNamed, servers } = each;
    const resolvConf = readContainerResolvConf(fact, context);
    const target = {
      fact,
      fd,
      resolvConf,
      served,
      isAnswered,
      isNamed,
      servers,
      announce: announcing(fact.id, context),
    };
    const tools = { runner: context.runner, memory: context.memory, hostNetwork: context.host.network };
    const { runner, memory } = context;
    const container = checked({
      ...{ runner, memory, fd },
      within: (work) => runner.within(fd, work),
      announce: target.announce,
    });
    const [findings, ofFeatures, upstream] = await Promise.all([
      checkNamespace(each, target, tools, container, context),
      featureFindings(container, context),
      upstreamFindings(servers, { fd, fact }, context, queryOnce),
    ]);
    return report([
      ...attachment,
      ...findings,
      ...ofFeatures,
      ...(upstream.length > 0 ? upstream : [noUpstreamFinding(whyNoUpstream(each, context))]),
      loopFinding(each, all satisfies readonly ContainerServers[]),
      ...libcFindings(target, context),
    ]);
  } catch (error) {
    const unknown = finding("namespace", "unknown", reasonOf(error));
    return report([...attachment, unknown, ...(await featureFindings(checked(), context))]);
  } finally {
    closeQuietly(fd);
  }
}

async function featureFindingsOf(
  containers: Pick<CheckedContainers, "facts" | "networkOf" | "checked">,
  context: DoctorContext,
): Promise<Finding[]> {
  const { hostServers, runner, host } = context;
  const within: Within = (work) => runner.within(host.network, work);
  const isKnownDomain = async (domain: string): Promise<boolean> =>
    await knowsDomain(within, hostServers.servers, domain);
  const isReached = async (address: string, port: number): Promise<boolean> => await reaches(context, address, port);
  const checked = { ...containers, api: context.engine, isKnownDomain, isReached };
  const all = (await loadReports()).map(async (each) => (await each.containersFindings?.(checked, context)) ?? []);
  return (await Promise.all(all)).flat();
}

async function featureFindings(container: CheckedContainer, context: DoctorContext): Promise<Finding[]> {
  const all = (await loadReports()).map(async (each) => (await each.containerFindings?.(container, context)) ?? []);
  return (await Promise.all(all)).flat();
}

async function checkNamespace(
  { namespaceKind }: InspectedContainer,
  target: ContainerTarget,
  tools: CheckTools,
  container: CheckedContainer,
  context: DoctorContext,
): Promise<Finding[]> {
  if (namespaceKind === "captured") return await checkCapturedContainer(target, tools);
  if (namespaceKind === "default-bridge") return checkUnservedContainer(target, tools);
  for (const each of await loadReports()) {
    const own = await each.ownChecks?.(container, context);
    if (own !== undefined) return [...own, ...checkBesides(target, tools)];
  }
  return await checkContainer(target, tools);
}

/** An older dns11 counts the test queries as the container's. */
function announcing(container: string, { client, status }: DoctorContext): Announce {
  return async (ports) => {
    if (status !== undefined) await client.announceProbes({ container, ...ports }).catch(() => undefined);
  };
}

async function upstreamFindings(
  servers: readonly Server[],
  container: Pick<ContainerTarget, "fd" | "fact"> | undefined,
  { runner, memory, host, status, listedServers: listed, tlsTrust }: DoctorContext,
  queryOnce: QueryOnce,
): Promise<Finding[]> {
  const { fd = -1, fact } = container ?? {};
  const places = { fact, listed, settingsFile: status?.config ?? undefined };
  const findings = await Promise.all(
    servers.map(async (server) => {
      const from = server.from === "host" ? host.network : fd;
      const key = `${server.from === "host" ? "host" : `${fd}${server.from}`} ${serverText(server)}`;
      const remedy = serverRemedy(server, places);
      try {
        if (server.tls !== undefined) {
          const ask = async (): Promise<TlsAnswer> =>
            await queryByTls(dialIn(runner, from, server, "tcp", false), server, tlsTrust);
          return tlsFinding(server, await queryOnce(key, ask), remedy);
        }
        const legs = await queryOnce(key, async () => await queryServer(runner.namespaceOf(from, memory), server));
        return upstreamFinding(server, legs, remedy);
      } catch (error) {
        return finding("upstream", "unknown", `${serverText(server)}: ${reasonOf(error)}`);
      }
    }),
  );
  return withDockerBroken(servers, findings);
}

function libcFindings({ fact, resolvConf }: ContainerTarget, { host }: DoctorContext): Finding[] {
  try {
    return [withContainerRoot(fact.pid, fact.id, host, (root) => libcFinding(root, resolvConf.text))];
  } catch {
    // The container's files cannot be read from here; the check is only a hint.
    return [];
  }
}

/** The kernel reuses closed descriptors, so only results for the host's servers can be cached. */
function queryHostServersOnce(): QueryOnce {
  const results = new Map<string, Promise<unknown>>();
  return async <T>(key: string, query: () => Promise<T>): Promise<T> => {
    if (!key.startsWith("host ")) return await query();
    const answer = (results.get(key) as Promise<T> | undefined) ?? query();
    results.set(key, answer);
    return await answer;
  };
}

/** Whether a TCP port of another machine can be reached from the engine's host. Nothing is sent. */
async function reaches(
  { runner, host }: Pick<DoctorContext, "runner" | "host">,
  address: string,
  port: number,
): Promise<boolean> {
  let socket: Socket;
  try {
    const fd = dialIn(runner, host.network, { from: "host", address, port }, "tcp", false);
    socket = new Socket({ fd, readable: true, writable: true });
  } catch {
    return false;
  }
  socket.on("error", () => undefined);
  try {
    // The socket was connecting before Node had it, so there is no event: it is connected when it has a peer.
    for (const endMs = performance.now() + LIMIT_MS; performance.now() < endMs; await pause()) {
      if (socket.remoteAddress !== undefined) return true;
      if (socket.destroyed) return false;
    }
    return false;
  } finally {
    socket.destroy();
  }
}

async function pause(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, POLL_MS));
}
