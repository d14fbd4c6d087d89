/**
 * Doctor: what a pod of a node finds when it asks for a name, tried from a pod that is made for it. It looks at the node
 * as it is, whoever serves it: dns11, KIND's own rules, or nobody.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import { isSameAddress } from "../../base/model/address.ts";
import { type Finding, finding } from "../../base/model/finding.ts";
import { DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import { type OwnNameQuery, queryOwnName } from "../checks/own-name.ts";
import type { NamespaceRunner } from "../../container/namespace/namespace-runner.ts";
import { listenersAt } from "../../container/namespace/listeners.ts";
import { type InstalledRules, installedRules } from "../../container/rules/installed-rules.ts";
import { findDockerResolver, restartRemedy, problemWith } from "../../container/kind/docker-resolver.ts";
import type { NodeFact } from "../../container/kind/node-fact.ts";
import { openPodNamespace } from "../../container/kind/pod-namespace.ts";
import { disableRouteLocalnet, disabledRouteLocalnet } from "../../container/kind/route-localnet.ts";
import { isLoopback, nameserversIn } from "../../container/kind/resolv-conf-text.ts";

export interface NodeTarget {
  readonly fact: NodeFact;
  /** The node's network namespace. */
  readonly fd: number;
  /** Its resolv.conf; undefined where it cannot be read. */
  readonly resolvConf: string | undefined;
}

export interface NodeCheckTools {
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
}

const DNS_PORT = 53;
const START = "Start dns11 with --kind auto, or look at `dns11 kind status`.";

export async function checkNode(patient: NodeTarget, tools: NodeCheckTools): Promise<Finding[]> {
  const { fact, fd, resolvConf } = patient;
  const servers = nameserversIn(resolvConf ?? "");
  const reachable = servers.filter((server) => !isLoopback(server));
  return [
    resolvConfFinding(resolvConf, servers, reachable),
    ...tools.runner.within(fd, () => {
      const [standing] = installedRules(tools.memory);
      const isServed = standing?.owner === "instance";
      return [
        holderFinding(standing),
        dockerFinding(fact, isServed, tools.memory),
        ...listenerFindings(fact, reachable),
      ];
    }),
    ...(await answerFindings("the node itself", fact, [...new Set([DOCKER_RESOLVER, ...reachable])], (work) =>
      tools.runner.within(fd, work),
    )),
    ...(await podFindings(patient, reachable, tools)),
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

function holderFinding(standing: InstalledRules | undefined): Finding {
  if (standing === undefined) return finding("kind-rules", "ok", "no rules of dns11");
  const words = {
    instance: "owned by a running process",
    nobody: "owned by nobody",
    stays: "made in the node, to stay",
  };
  return finding("kind-rules", "ok", `rules of dns11, ${words[standing.owner]}`);
}

/** Who answers when dns11 ends. */
function dockerFinding({ name }: NodeFact, isServed: boolean, memory: NetlinkMemory): Finding {
  const docker = findDockerResolver(memory);
  const trouble = problemWith(docker);
  if (trouble === undefined) return finding("kind-docker", "ok", `answers at ${docker.reachableAt.join(", ")}`);
  const detail = isServed ? `when dns11 ends nobody answers pods: ${trouble}` : trouble;
  const remedy = `Start the node anew when it suits: ${restartRemedy(name)}.`;
  return finding("kind-docker", isServed ? "warning" : "problem", detail, remedy);
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

async function podFindings(
  { fact, fd }: NodeTarget,
  servers: readonly string[],
  tools: NodeCheckTools,
): Promise<Finding[]> {
  if (servers.length === 0) return [];
  let pod;
  try {
    pod = await openPodNamespace(tools.runner, tools.memory, fd);
  } catch (error) {
    return [finding("kind-pod", "unknown", `no pod could be made to ask from: ${reasonOf(error)}`)];
  }
  try {
    const possible = servers.filter((server) => !server.includes(":") || pod.addresses.ipv6 !== undefined);
    const podFd = pod.fd;
    const ask = async (): Promise<Finding[]> =>
      await answerFindings("a pod", fact, possible, (work) => tools.runner.within(podFd, work));
    const findings = await ask();
    const { name: ownLink } = pod.link;
    const shut = tools.runner.within(fd, () => interfacesWithoutLocalnet(fact, tools.memory));
    const others = shut.filter((name) => name !== ownLink);
    if (findings.every(({ state }) => state === "ok")) {
      if (others.length === 0) return findings;
      // Whether that matters is seen by asking as a pod does whose interface has it off.
      tools.runner.within(fd, () => disableRouteLocalnet(ownLink));
      if ((await ask()).every(({ state }) => state === "ok")) return findings;
    }
    if (shut.length === 0) return findings;
    // The pod that was made began with what all begin with.
    return [...findings, localnetFinding(others.length === 0 ? ["default"] : others)];
  } finally {
    pod.close();
  }
}

/** Interfaces by which pods come in, on which packets for 127.0.0.0/8 are dropped. */
function interfacesWithoutLocalnet({ addresses }: NodeFact, memory: NetlinkMemory): string[] {
  const route = new RouteSocket(memory);
  try {
    const held = route.addresses().filter(({ address }) => addresses.some((own) => isSameAddress(own, address)));
    const dockers = new Set(held.map(({ index }) => index));
    // Of a bridge's ports the bridge counts.
    const links = route
      .links()
      .filter((link) => link.isUp && !link.isLoopback && link.master === undefined && !dockers.has(link.index));
    return Object.keys(disabledRouteLocalnet(links.map(({ name }) => name)));
  } finally {
    route.close();
  }
}

/** KIND's own way, and ours by the way `loopback`, need it; where pods are served all the same nobody has to know. */
function localnetFinding(shut: readonly string[]): Finding {
  const detail = `off on ${shut.join(", ")}: rules that lead pods to 127.0.0.11 need it, those of kind.mode listener do not`;
  const remedy =
    "Find who switches it off; dns11 with kind.mode loopback switches it on, and the way listener does without.";
  return finding("route-localnet", "problem", detail, remedy);
}

async function answerFindings(
  who: string,
  { name, addresses }: NodeFact,
  servers: readonly string[],
  within: OwnNameQuery["within"],
): Promise<Finding[]> {
  return await queryOwnName({ name, addresses }, { code: "kind-answers", client: who, servers, within, remedy: START });
}
