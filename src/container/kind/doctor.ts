/**
 * Doctor: what a pod of a node finds when it asks for a name, tried from a pod that is made for it. It looks at the node
 * as it is, whoever serves it: dns11, KIND's own rules, or nobody.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import { reasonOf } from "../../lib/fault.ts";
import { isSameAddress } from "../../model/address.ts";
import { type Finding, finding } from "../../model/finding.ts";
import { DOCKER_RESOLVER } from "../capture/capture.ts";
import { type Question, askOwnName } from "../doctor/own-name.ts";
import type { Bracket } from "../namespace/bracket.ts";
import { listenersAt } from "../namespace/listeners.ts";
import { standingRules } from "../rules/standing.ts";
import type { NodeFact } from "./node-fact.ts";
import { openPodNamespace } from "./pod-namespace.ts";
import { lackingRouteLocalnet } from "./route-localnet.ts";
import { isLoopback, nameserversIn } from "./resolv-text.ts";

export interface NodePatient {
  readonly fact: NodeFact;
  /** The node's network namespace. */
  readonly fd: number;
  /** Its resolv.conf; undefined where it cannot be read. */
  readonly resolvConf: string | undefined;
}

export interface DoctorTools {
  readonly bracket: Bracket;
  readonly memory: NetlinkMemory;
}

const DNS_PORT = 53;
const START = "Start dns11 with --kind auto, or look at `dns11 kind status`.";

export async function examineNode(patient: NodePatient, tools: DoctorTools): Promise<Finding[]> {
  const { fact, fd, resolvConf } = patient;
  const servers = nameserversIn(resolvConf ?? "");
  const reachable = servers.filter((server) => !isLoopback(server));
  return [
    resolvConfFinding(resolvConf, servers, reachable),
    ...tools.bracket.within(fd, () => [holderFinding(tools.memory), ...listenerFindings(fact, reachable)]),
    ...(await asked("the node itself", fact, [...new Set([DOCKER_RESOLVER, ...reachable])], (work) =>
      tools.bracket.within(fd, work),
    )),
    ...(await fromPod(patient, reachable, tools)),
  ];
}

function resolvConfFinding(
  text: string | undefined,
  servers: readonly string[],
  reachable: readonly string[],
): Finding {
  if (text === undefined) return finding("kind-resolv-conf", "unknown", "it cannot be read");
  if (reachable.length > 0) return finding("kind-resolv-conf", "ok", `names ${servers.join(", ")}`);
  const named = servers.length === 0 ? "nobody" : servers.join(", ");
  return finding("kind-resolv-conf", "problem", `names ${named}, which in a pod is the pod itself`, START);
}

function holderFinding(memory: NetlinkMemory): Finding {
  const [standing] = standingRules(memory);
  if (standing === undefined) return finding("kind-rules", "ok", "no rules of dns11");
  const words = {
    instance: "owned by a running process",
    nobody: "owned by nobody",
    stays: "made in the node, to stay",
  };
  return finding("kind-rules", "ok", `rules of dns11, ${words[standing.holder]}`);
}

function listenerFindings(fact: NodeFact, reachable: readonly string[]): Finding[] {
  const own = reachable.filter((server) => fact.addresses.some((address) => isSameAddress(address, server)));
  return own.flatMap((address): Finding[] => {
    const protocols = listenersAt(address, DNS_PORT);
    if (protocols.length === 0) return [];
    const detail = `somebody in the node listens at ${address} by ${protocols.join(" and ")}, and gets no query as long as it is captured`;
    return [finding("kind-port-53", "problem", detail, "Choose another kind.ip.")];
  });
}

async function fromPod({ fact, fd }: NodePatient, servers: readonly string[], tools: DoctorTools): Promise<Finding[]> {
  if (servers.length === 0) return [];
  let pod;
  try {
    pod = openPodNamespace(tools.bracket, tools.memory, fd);
  } catch (error) {
    return [finding("kind-pod", "unknown", `no pod could be made to ask from: ${reasonOf(error)}`)];
  }
  try {
    const possible = servers.filter((server) => !server.includes(":") || pod.addresses.ipv6 !== undefined);
    const podFd = pod.fd;
    const findings = await asked("a pod", fact, possible, (work) => tools.bracket.within(podFd, work));
    if (findings.every(({ state }) => state === "ok")) return findings;
    return [...findings, ...tools.bracket.within(fd, () => localnetFindings(tools.memory))];
  } finally {
    pod.close();
  }
}

/** KIND's own way, and ours by the way `loopback`, need it; where pods are served all the same nobody has to know. */
function localnetFindings(memory: NetlinkMemory): Finding[] {
  const route = new RouteSocket(memory);
  try {
    const names = route.links().filter(({ isLoopback: isLo }) => !isLo);
    const closed = Object.keys(lackingRouteLocalnet(names.map(({ name }) => name)));
    if (closed.length === 0) return [];
    const detail = `off on ${closed.join(", ")}: rules that lead pods to 127.0.0.11 need it, those of kind.way listener do not`;
    return [finding("route-localnet", "problem", detail, START)];
  } finally {
    route.close();
  }
}

async function asked(
  who: string,
  { name, addresses }: NodeFact,
  servers: readonly string[],
  within: Question["within"],
): Promise<Finding[]> {
  return await askOwnName({ name, addresses }, { code: "kind-answers", who, servers, within, remedy: START });
}
