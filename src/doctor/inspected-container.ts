/**
 * Case: one running container, with what is known of it before anybody goes in: who is to answer there, and which servers
 * are asked for everything else. A running dns11 is believed about both; without one the engine tells.
 */
import { type Decision, decide } from "../container/attach/decision.ts";
import type { ContainerServers } from "./checks/upstream-check.ts";
import type { ContainerTarget } from "./checks/container-target.ts";
import { DOCKER_RESOLVER } from "../container/capture/capture.ts";
import { type ContainerFact, type NetworkFact, isUserDefined } from "../container/registry/fact.ts";
import { ImageLabels } from "../container/watch/image-labels.ts";
import { parseResolvConf } from "../container/watch/resolv-conf.ts";
import { containerFact, isUp } from "../container/watch/translate.ts";
import { LIMITS } from "../base/limits.ts";
import { mapConcurrent } from "../base/lib/map-concurrent.ts";
import { DEFAULT_BEHAVIOUR } from "../base/model/behaviour.ts";
import { type Finding, finding } from "../base/model/finding.ts";
import { serversIn } from "../base/model/server-text.ts";
import type { Server } from "../base/model/view.ts";
import { HostUpstreams } from "../container/watch/host-upstreams.ts";
import type { DoctorContext } from "./machine-check.ts";
import { readNetworks } from "./networks.ts";
import { readContainerResolvConf } from "./container-resolv-conf.ts";
import type { ContainerStatus } from "../api/status.ts";

/** What the namespace of a container is to the doctor. */
type NamespaceKind = "with-resolver" | "default-bridge" | "elsewhere";

export interface InspectedContainer extends ContainerServers, Pick<ContainerTarget, "served" | "isAnswered"> {
  readonly fact: ContainerFact;
  readonly namespaceKind: NamespaceKind;
  readonly attachment: Finding;
  readonly networkOf: (id: string) => NetworkFact | undefined;
  readonly isServedNode: boolean;
  /** All its networks are internal. */
  readonly isInternal: boolean;
}

const DNS_PORT = 53;
/** Whose namespace is somebody else's, or nobody's, and is not looked into under this name. */
const NOT_INSPECTED: ReadonlySet<string> = new Set(["host-network", "shares-namespace", "no-network"]);
const DEFAULT_BRIDGE = "default-network-only";
/** Where dns11 has no say, whoever runs it. */
const NEVER_SERVED: ReadonlySet<string> = new Set([...NOT_INSPECTED, DEFAULT_BRIDGE, "swarm-network"]);
const RELEASE = "After what it did was mended, `dns11 doctor --fix` releases it.";
const BY_ITSELF = "It tries again by itself; `dns11 doctor --fix` has it try at once.";

/** Every container that runs, by name. */
export async function inspectContainers(clinic: DoctorContext): Promise<readonly InspectedContainer[]> {
  const { engine, host, info, status } = clinic;
  const nothing = (): void => undefined;
  const parts = { host: () => host, engineVersion: () => info.majorVersion };
  const upstreams = new HostUpstreams(
    { ...parts, onEvent: nothing, onChange: nothing, reinspect: nothing },
    { behaviour: DEFAULT_BEHAVIOUR, resolvConf: undefined },
  );
  try {
    const listed = await engine.containers();
    const images = new ImageLabels(engine);
    const inspected = await mapConcurrent(listed, LIMITS.inspectsAtOnce, async ({ Id: id }) => {
      const json = await engine.container(id);
      return json === undefined || !isUp(json) ? undefined : { json, labels: await images.split(json) };
    });
    const facts = inspected
      .filter((each) => each !== undefined)
      .map(({ json, labels }) => containerFact(json, upstreams.nameserversOf(json), labels))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
    const networks = await readNetworks(facts, engine);
    const told = new Map(status?.containers.map((container) => [container.id, container]));
    return facts.map((fact) => inspectedContainer(fact, (id) => networks.get(id), told.get(fact.id), clinic));
  } finally {
    upstreams.close();
  }
}

function inspectedContainer(
  fact: ContainerFact,
  networkOf: InspectedContainer["networkOf"],
  told: ContainerStatus | undefined,
  clinic: DoctorContext,
): InspectedContainer {
  const decision = decide(fact, networkOf, []);
  const isAnswered = told?.state === "attached" || told?.state === "verifying";
  const place = namespaceKindOf(decision);
  return {
    fact,
    namespaceKind: place,
    networkOf,
    isAnswered,
    isServedNode: told?.node !== undefined,
    isInternal: isInternal(fact, networkOf),
    served: isAnswered ? told.ports : undefined,
    attachment: attachmentFinding(decision, told, clinic.status !== undefined),
    servers: serversOf(fact, place, told, networkOf, clinic),
  };
}

function namespaceKindOf(decision: Decision): NamespaceKind {
  if (decision.kind === "serve") return "with-resolver";
  if (NOT_INSPECTED.has(decision.code)) return "elsewhere";
  return decision.code === DEFAULT_BRIDGE ? "default-bridge" : "with-resolver";
}

function attachmentFinding(decision: Decision, told: ContainerStatus | undefined, isRunning: boolean): Finding {
  if (decision.kind === "leave" && NEVER_SERVED.has(decision.code)) {
    return finding("attachment", "ok", `not dns11 (${decision.code}): ${decision.reason}`);
  }
  if (!isRunning) return finding("attachment", "ok", "Docker's own resolver, because no dns11 answers");
  if (told === undefined) {
    return finding("attachment", "warning", "Docker's own resolver: dns11 does not know it yet", "Ask again.");
  }
  const since = told.since === undefined ? "" : `, since ${told.since}`;
  const why = [told.code, told.reason, ...(told.culprits ?? [])].filter((text) => text !== undefined).join(": ");
  switch (told.state) {
    case "attached": {
      const detail = `dns11${since}, verified ${told.verified ?? ""}`;
      const { warning } = told;
      return warning === undefined
        ? finding("attachment", "ok", detail)
        : finding("attachment", "warning", `${detail}; ${warning}`);
    }
    case "skipped": {
      const detail = `Docker's own resolver (${told.code ?? ""}): ${told.reason ?? ""}`;
      return finding("attachment", "ok", told.warning === undefined ? detail : `${detail}; ${told.warning}`);
    }
    case "quarantined":
      return finding("attachment", "problem", `Docker's own resolver: ${told.reason ?? ""}`, RELEASE);
    case "failed":
      return finding("attachment", "problem", `Docker's own resolver${since}: ${why}`, BY_ITSELF);
    case "opening":
    case "verifying":
      return finding("attachment", "warning", `dns11 is on its way in (${told.state})`, "Ask again in a moment.");
  }
}

function serversOf(
  fact: ContainerFact,
  place: NamespaceKind,
  told: ContainerStatus | undefined,
  networkOf: InspectedContainer["networkOf"],
  clinic: DoctorContext,
): readonly Server[] {
  if (place === "elsewhere") return [];
  if (place === "default-bridge") {
    const { nameservers } = parseResolvConf(readContainerResolvConf(fact, clinic).text ?? "");
    return nameservers.map((address) => ({ from: "container", address, port: DNS_PORT }));
  }
  if (told?.upstreams !== undefined) return told.upstreams.flatMap((text) => serversIn(text));
  return serversOfDocker(fact, isInternal(fact, networkOf), clinic);
}

function serversOfDocker(
  { nameservers }: ContainerFact,
  isInside: boolean,
  { hostServers }: DoctorContext,
): readonly Server[] {
  switch (nameservers.kind) {
    case "listed":
      return nameservers.servers
        .filter(({ from }) => from === "container" || !isInside)
        .map(({ from, address }) => ({ from, address, port: DNS_PORT }));
    case "host":
      return isInside ? [] : hostServers.servers;
    case "unknown":
      return [{ from: "docker", address: DOCKER_RESOLVER, port: DNS_PORT }];
  }
}

/** Whoever has no way out does not ask the host's servers either. */
function isInternal({ endpoints }: ContainerFact, networkOf: InspectedContainer["networkOf"]): boolean {
  const networks = endpoints.filter(({ networkName }) => isUserDefined(networkName));
  return networks.every(({ networkId }) => networkOf(networkId)?.isInternal === true);
}
