/**
 * Doctor: what a pod of a node finds when it asks for a name, tried from a pod that is made for it. It looks at the node
 * as it is, whoever serves it: dns11, KIND's own rules, or nobody.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import { reasonOf } from "../../lib/fault.ts";
import { isSameAddress } from "../../model/address.ts";
import { type AddressType, nameAnswer, nameQuery } from "../../model/name-question.ts";
import { DOCKER_RESOLVER } from "../capture/capture.ts";
import type { Bracket } from "../namespace/bracket.ts";
import { type Exchanged, exchange } from "../rules/exchange.ts";
import { standingRules } from "../rules/standing.ts";
import { listenersAt } from "./listeners.ts";
import type { NodeFact } from "./node-fact.ts";
import { openPodNamespace } from "./pod-namespace.ts";
import { lackingRouteLocalnet } from "./route-localnet.ts";
import { isLoopback, nameserversIn } from "./resolv-text.ts";

export interface Finding {
  readonly what: string;
  readonly state: "well" | "problem" | "unknown";
  readonly detail: string;
  /** What to do about a problem. */
  readonly remedy?: string;
}

export interface Patient {
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
/** Whoever asks a resolver outside waits about so long. */
const WAIT_MS = 3_000;
const START = "Start dns11 with --kind auto, or look at `dns11 kind status`.";

export async function examine(patient: Patient, tools: DoctorTools): Promise<Finding[]> {
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
  const what = "resolv.conf";
  if (text === undefined) return { what, state: "unknown", detail: "it cannot be read" };
  if (reachable.length > 0) return { what, state: "well", detail: `names ${servers.join(", ")}` };
  const named = servers.length === 0 ? "nobody" : servers.join(", ");
  return { what, state: "problem", detail: `names ${named}, which in a pod is the pod itself`, remedy: START };
}

function holderFinding(memory: NetlinkMemory): Finding {
  const [standing] = standingRules(memory);
  if (standing === undefined) return { what: "rules", state: "well", detail: "no rules of dns11" };
  const words = {
    instance: "owned by a running process",
    nobody: "owned by nobody",
    stays: "made in the node, to stay",
  };
  return { what: "rules", state: "well", detail: `rules of dns11, ${words[standing.holder]}` };
}

function listenerFindings(fact: NodeFact, reachable: readonly string[]): Finding[] {
  const own = reachable.filter((server) => fact.addresses.some((address) => isSameAddress(address, server)));
  return own.flatMap((address): Finding[] => {
    const protocols = listenersAt(address, DNS_PORT);
    if (protocols.length === 0) return [];
    const detail = `somebody in the node listens there by ${protocols.join(" and ")}, and gets no query as long as it is captured`;
    return [{ what: `port 53 of ${address}`, state: "problem", detail, remedy: "Choose another kind.ip." }];
  });
}

async function fromPod({ fact, fd }: Patient, servers: readonly string[], tools: DoctorTools): Promise<Finding[]> {
  if (servers.length === 0) return [];
  let pod;
  try {
    pod = openPodNamespace(tools.bracket, tools.memory, fd);
  } catch (error) {
    return [{ what: "a pod", state: "unknown", detail: `no pod could be made to ask from: ${reasonOf(error)}` }];
  }
  try {
    const possible = servers.filter((server) => !server.includes(":") || pod.addresses.ipv6 !== undefined);
    const podFd = pod.fd;
    const findings = await asked("a pod", fact, possible, (work) => tools.bracket.within(podFd, work));
    if (findings.every(({ state }) => state === "well")) return findings;
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
    return [{ what: "route_localnet", state: "problem", detail, remedy: START }];
  } finally {
    route.close();
  }
}

/** The node's own name: whoever serves the node knows it, and nobody else does. */
async function asked(
  who: string,
  fact: NodeFact,
  servers: readonly string[],
  within: <T>(work: () => T) => T,
): Promise<Finding[]> {
  const type: AddressType = fact.own.ipv4 === undefined ? "AAAA" : "A";
  const findings: Finding[] = [];
  for (const destination of servers) {
    const message = (id: number): Buffer => nameQuery(fact.name, type, id);
    const legs = await exchange(within, { destination, message, waitMs: WAIT_MS });
    findings.push(...legs.map((leg) => findingOf(`${who} asks ${destination}`, leg, fact)));
  }
  return findings;
}

function findingOf(who: string, { protocol, id, reply, failure }: Exchanged, fact: NodeFact): Finding {
  const what = `${who} by ${protocol}`;
  const problem = (detail: string): Finding => ({ what, state: "problem", detail, remedy: START });
  if (failure !== undefined) return problem(failure === "ECONNREFUSED" ? "nobody listens there (refused)" : failure);
  if (reply === undefined) return problem("no answer");
  const answer = nameAnswer(reply, id);
  if (answer === undefined) return problem("what came back is no DNS reply");
  if (typeof answer === "string")
    return problem(`${answer} for "${fact.name}", its own name: this is not Docker's names`);
  const isRight = answer.some((address) => fact.addresses.some((own) => isSameAddress(own, address)));
  if (!isRight) return problem(`"${fact.name}" is ${answer.join(", ") || "nothing"}, not the node`);
  return { what, state: "well", detail: `"${fact.name}" is ${answer.join(", ")}` };
}
