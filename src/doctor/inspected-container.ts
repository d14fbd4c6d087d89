/**
 * InspectedContainer: one running container with what is known before entering its namespace: which resolver should answer
 * there, and its upstream servers. A running dns11 reports both; without one, they follow from the engine's facts.
 */
import { byName, commandOf } from "../base/lib/text.ts";
import { type Decision, decide } from "../container/attach/decision.ts";
import type { ContainerServers } from "./checks/upstream-check.ts";
import type { ContainerTarget } from "./checks/container-target.ts";
import { DOCKER_RESOLVER } from "../container/capture/capture.ts";
import { composeServiceOf } from "../container/facts/compose.ts";
import { type ContainerFact, type NetworkFact, isUserDefined, sharedWith } from "../container/facts/fact.ts";
import { ImageConfigs } from "../container/watch/image-configs.ts";
import { parseResolvConf } from "../container/watch/resolv-conf.ts";
import { ContainerFilesReader } from "../container/watch/container-files.ts";
import { containerFact, isUp } from "../container/watch/translate.ts";
import { RULES_LOCKED } from "../container/namespace/rules-locked.ts";
import { LIMITS } from "../base/limits.ts";
import { mapConcurrent } from "../base/lib/async.ts";
import { DEFAULT_BEHAVIOUR } from "../base/model/behaviour.ts";
import { LABEL_DEFAULTS } from "../base/model/name-choices.ts";
import { type Finding, finding } from "../base/model/finding.ts";
import { serversIn } from "../base/model/server-text.ts";
import type { Server } from "../base/model/view.ts";
import { HostUpstreams } from "../container/watch/host-upstreams.ts";
import type { DoctorContext } from "./machine-check.ts";
import { readNetworks } from "../container/watch/networks.ts";
import { readContainerResolvConf } from "./container-resolv-conf.ts";
import type { ContainerStatus } from "../api/status.ts";

/** What the doctor can check in the container's network namespace. */
type NamespaceKind = "with-resolver" | "captured" | "default-bridge" | "elsewhere";

export interface InspectedContainer
  extends ContainerServers, Pick<ContainerTarget, "served" | "isAnswered" | "isNamed"> {
  readonly fact: ContainerFact;
  readonly namespaceKind: NamespaceKind;
  readonly attachment: Finding;
  /** Its resolv.conf, if that is a copy of the host's, and dns11 does not serve it. */
  readonly copied: string | undefined;
  readonly networkOf: (id: string) => NetworkFact | undefined;
  readonly isInternal: boolean;
}

const DNS_PORT = 53;
/** The namespace belongs to the host or another container, or has no network; it is not checked under this name. */
const NOT_INSPECTED: ReadonlySet<string> = new Set(["host-network", "shares-namespace", "no-network"]);
/** A container is only on the default bridge, where Docker has no DNS for container names. */
const DEFAULT_BRIDGE_ONLY = "default-network-only";
/** What its namespace shows has nothing to do with its queries. */
const OWN_STACK = "own-stack";
/** A container with one of these codes is on the default bridge, and not served. */
const DEFAULT_BRIDGE: ReadonlySet<string> = new Set([DEFAULT_BRIDGE_ONLY, "no-nameserver"]);
/** Containers that dns11 does not serve, and that is no fault. */
const NEVER_SERVED: ReadonlySet<string> = new Set([...NOT_INSPECTED, ...DEFAULT_BRIDGE]);
const LEAVE_DEFAULT_BRIDGE =
  "In Compose, remove network_mode: bridge, so that it is on the network of its project; or run dns11 with --default-bridge names.";
const RUN_AGAIN = "Run `dns11 doctor` again in a moment.";
const RELEASE = "Fix the cause, then run `dns11 doctor --fix` to release the container.";
const RETRIES = "Fix the cause. dns11 then retries on its own; `dns11 doctor --fix` retries at once.";

/** All running containers, sorted by name. */
export async function inspectContainers(context: DoctorContext): Promise<readonly InspectedContainer[]> {
  const { engine, host, info, status } = context;
  const noop = (): void => undefined;
  const parts = { host: () => host, engineVersion: () => info.majorVersion };
  const upstreams = new HostUpstreams(
    { ...parts, onEvent: noop, onChange: noop, reinspect: noop },
    { behaviour: DEFAULT_BEHAVIOUR, resolvConf: undefined },
  );
  const files = new ContainerFilesReader({ host: parts.host, upstreams, reinspect: noop });
  try {
    const listed = await engine.containers();
    const images = new ImageConfigs(engine);
    const inspected = await mapConcurrent(listed, LIMITS.inspectsAtOnce, async ({ Id: id }) => {
      const json = await engine.container(id);
      return json === undefined || !isUp(json) ? undefined : { json, split: await images.split(json) };
    });
    const facts = inspected
      .filter((each) => each !== undefined)
      .map(({ json, split }) => containerFact(json, files.read(json), split))
      .toSorted(byName);
    const copies = new Map(inspected.map((each) => [each?.json.Id, each && upstreams.copyOfHost(each.json)]));
    const networks = await readNetworks(facts, engine);
    const byId = new Map(facts.map((fact) => [fact.id, fact]));
    const reported = new Map(status?.containers.map((container) => [container.id, container]));
    return facts.map((fact) =>
      inspectedContainer(
        fact,
        (id) => networks.get(id),
        reported.get(fact.id),
        context,
        byId.get(sharedWith(fact.networkMode) ?? ""),
        copies.get(fact.id),
      ),
    );
  } finally {
    upstreams.close();
    files.close();
  }
}

function inspectedContainer(
  fact: ContainerFact,
  networkOf: InspectedContainer["networkOf"],
  status: ContainerStatus | undefined,
  context: DoctorContext,
  owner: ContainerFact | undefined,
  copied: string | undefined,
): InspectedContainer {
  // What a running dns11 serves there is a setting of its own.
  const isSkipped = status === undefined || status.state === "skipped";
  const decision = decide(fact, [], LABEL_DEFAULTS, isSkipped ? "off" : "names");
  const isAnswered = status?.state === "attached" || status?.state === "verifying";
  // Whoever looks at the rules waits for their lock, at the latest when it ends.
  const isLocked = status?.code === RULES_LOCKED;
  const namespaceKind = isLocked ? "elsewhere" : namespaceKindOf(decision, fact);
  const isOnHostFile = namespaceKind === "default-bridge" || fact.networkMode === "host";
  return {
    fact,
    namespaceKind,
    copied: isOnHostFile ? copied : undefined,
    networkOf,
    isAnswered,
    isNamed: isNamed(fact, networkOf),
    isInternal: isInternal(fact, networkOf),
    served: isAnswered ? status.ports : undefined,
    attachment: withNote(
      attachmentFinding(decision, fact, status, context.status !== undefined, owner),
      isAnswered ? status : undefined,
    ),
    servers: serversOf(fact, namespaceKind, status, networkOf, context),
  };
}

function namespaceKindOf(decision: Decision, { nameservers }: ContainerFact): NamespaceKind {
  if (decision.kind === "serve") return nameservers.kind === "captured" ? "captured" : "with-resolver";
  if (NOT_INSPECTED.has(decision.code) || decision.code === OWN_STACK) return "elsewhere";
  return DEFAULT_BRIDGE.has(decision.code) ? "default-bridge" : "with-resolver";
}

/** It has left its last network, and its resolv.conf still names Docker's resolver. The one that it was created on is known. */
function noNetworkFinding({ name, networkMode, ...labels }: ContainerFact): Finding {
  const detail = "on no network, so no name resolves there, and none leads to it";
  if (!isUserDefined(networkMode) || networkMode.includes(":")) return finding("attachment", "warning", detail);
  const { service } = composeServiceOf(labels) ?? {};
  const alias = service === undefined ? [] : ["--alias", service];
  const fixNow = commandOf("docker", "network", "connect", ...alias, networkMode, name);
  return {
    ...finding("attachment", "problem", `${detail}; it was created on ${networkMode}`, `Run: ${fixNow}`),
    fixNow,
  };
}

/** A service is meant to be found by its name; other containers there may well not need one. */
function defaultBridgeFinding(fact: ContainerFact): Finding {
  if (fact.onDefaultBridge === undefined) return noNetworkFinding(fact);
  const why = "Docker has no DNS for container names there, so it finds no container by name, and none finds it";
  const detail = `on the default bridge (${DEFAULT_BRIDGE_ONLY}): ${why}`;
  if (composeServiceOf(fact) === undefined) {
    return finding("attachment", "ok", `${detail}; dns11 gives them names with default-bridge: names`);
  }
  return {
    ...finding("attachment", "warning", detail, LEAVE_DEFAULT_BRIDGE),
    shared: {
      key: DEFAULT_BRIDGE_ONLY,
      title: "on the default bridge, where Docker has no DNS for container names{}",
      about: "",
    },
  };
}

/** With what the doctor says first of a container that was asked about. */
function withNote(attachment: Finding, served: ContainerStatus | undefined): Finding {
  const { detail } = attachment;
  if (served === undefined) {
    const text = detail.startsWith(NOT_SERVED) ? detail : `${NOT_SERVED}: ${detail}`;
    return { ...attachment, note: { isServed: false, text } };
  }
  const since = served.since === undefined ? "" : ` since ${served.since.replace(/\.\d+Z$/, "Z")}`;
  return { ...attachment, note: { isServed: true, text: `served by dns11${since}` } };
}

const NOT_SERVED = "not served by dns11";

function attachmentFinding(
  decision: Decision,
  fact: ContainerFact,
  status: ContainerStatus | undefined,
  isRunning: boolean,
  owner: ContainerFact | undefined,
): Finding {
  if (decision.kind === "skip" && decision.code === DEFAULT_BRIDGE_ONLY) return defaultBridgeFinding(fact);
  if (decision.kind === "skip" && NEVER_SERVED.has(decision.code)) {
    return finding("attachment", "ok", `${NOT_SERVED} (${decision.code}): ${namedReason(decision, owner)}`);
  }
  if (decision.kind === "skip" && decision.code === OWN_STACK) return ownStackFinding(decision, status);
  if (!isRunning) return finding("attachment", "ok", "Docker's resolver answers, because dns11 is not running");
  if (status === undefined) {
    return finding(
      "attachment",
      "warning",
      "Docker's resolver answers, because dns11 has not seen the container yet",
      RUN_AGAIN,
    );
  }
  const since = status.since === undefined ? "" : `, since ${status.since}`;
  switch (status.state) {
    case "attached": {
      const detail = `dns11${since}, verified ${status.verified ?? ""}`;
      const { warning } = status;
      return warning === undefined
        ? finding("attachment", "ok", detail)
        : finding("attachment", "warning", `${detail}; ${warning}`);
    }
    case "skipped": {
      const detail = `${NOT_SERVED} (${status.code ?? ""}): ${status.reason ?? ""}`;
      return finding("attachment", "ok", status.warning === undefined ? detail : `${detail}; ${status.warning}`);
    }
    case "quarantined":
      return finding(
        "attachment",
        "problem",
        `Docker's resolver answers, because dns11 quarantined the container: ${status.reason ?? ""}`,
        RELEASE,
      );
    case "failed":
      return finding("attachment", "problem", failedText(status), RETRIES);
    case "opening":
    case "verifying":
      return finding("attachment", "warning", `dns11 is attaching (${status.state})`, RUN_AGAIN);
  }
}

/** Nobody else answers it: Docker's resolver is at 127.0.0.11, too. */
function ownStackFinding(
  { reason }: Extract<Decision, { readonly kind: "skip" }>,
  status: ContainerStatus | undefined,
): Finding {
  const detail = `not served in its namespace (${OWN_STACK}): ${status?.reason ?? reason}`;
  if (status?.asksListener === true) return finding("attachment", "ok", `${detail}; it asks the listener`);
  const remedy =
    "Run dns11 with listener: true. If it does: query a name from the container, then run `dns11 doctor` again.";
  return finding("attachment", "warning", `${detail}; it has not asked the listener`, remedy);
}

/** Whose namespace it shares, by name: an id is not what a command takes. */
function namedReason(
  { code, reason }: Extract<Decision, { readonly kind: "skip" }>,
  owner: ContainerFact | undefined,
): string {
  if (code !== "shares-namespace" || owner === undefined) return reason;
  return `it shares the network namespace of ${owner.name}, and its names resolve as there: dns11 doctor ${owner.name}`;
}

function failedText({ code, since, reason, isHeld, culprits = [] }: ContainerStatus): string {
  const then = isHeld === true ? "and a policy is enforced, so nobody else answers" : "so Docker's resolver answers";
  const what = `dns11 could not attach${code === undefined ? "" : ` (${code})`}, ${then}`;
  const why = [reason, ...culprits].filter((text) => text !== undefined).join(": ");
  return `${what}${since === undefined ? "" : ` since ${since}`}: ${why}`;
}

function serversOf(
  fact: ContainerFact,
  namespaceKind: NamespaceKind,
  status: ContainerStatus | undefined,
  networkOf: InspectedContainer["networkOf"],
  context: DoctorContext,
): readonly Server[] {
  if (namespaceKind === "elsewhere" || isWithoutNetwork(fact)) return [];
  if (namespaceKind === "default-bridge" && status?.upstreams === undefined) {
    const { nameservers } = parseResolvConf(readContainerResolvConf(fact, context).text ?? "");
    return nameservers.map((address) => ({ from: "container", address, port: DNS_PORT }));
  }
  if (status?.upstreams !== undefined) return status.upstreams.flatMap((text) => serversIn(text));
  return serversOfDocker(fact, isInternal(fact, networkOf), context);
}

function isWithoutNetwork({ endpoints, onDefaultBridge, nameservers }: ContainerFact): boolean {
  return endpoints.length === 0 && onDefaultBridge === undefined && nameservers.kind !== "captured";
}

function serversOfDocker(
  { nameservers }: ContainerFact,
  isInternalOnly: boolean,
  { hostServers }: DoctorContext,
): readonly Server[] {
  switch (nameservers.kind) {
    case "listed":
      return nameservers.servers
        .filter(({ from }) => from === "container" || !isInternalOnly)
        .map(({ from, address }) => ({ from, address, port: DNS_PORT }));
    case "host":
      return isInternalOnly ? [] : hostServers.servers;
    case "captured":
      return nameservers.servers.map((address) => ({ from: "container", address, port: DNS_PORT }));
    case "unknown":
      return [{ from: "docker", address: DOCKER_RESOLVER, port: DNS_PORT }];
  }
}

/** The ingress network of a swarm has no names, and none of its networks has that of a task which is not healthy. */
function isNamed({ endpoints, health }: ContainerFact, networkOf: InspectedContainer["networkOf"]): boolean {
  const isHealthy = health === undefined || health === "healthy";
  return endpoints.some(({ networkId }) => {
    const swarm = networkOf(networkId)?.swarm;
    return swarm === undefined || (!swarm.isIngress && isHealthy);
  });
}

/** Docker forwards nothing to the host's servers for a container whose networks are all internal. */
function isInternal({ endpoints }: ContainerFact, networkOf: InspectedContainer["networkOf"]): boolean {
  const networks = endpoints.filter(({ networkName }) => isUserDefined(networkName));
  return networks.every(({ networkId }) => networkOf(networkId)?.isInternal === true);
}
