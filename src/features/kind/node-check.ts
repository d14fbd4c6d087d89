/**
 * Node check: whether the pods of a node can resolve names, tried from a test pod. It checks the node as it is, whether dns11,
 * KIND's own rules or nothing serves it.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import { isLoopback, isSameAddress } from "../../base/model/address.ts";
import type { Finding } from "../../base/model/finding.ts";
import { DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import { type Announce, type OwnNameQuery, queryOwnName } from "../../container/rules/own-name.ts";
import type { NamespaceRunner } from "../../container/namespace/namespace-runner.ts";
import { listenersAt } from "../../container/namespace/listeners.ts";
import { unlessLocked } from "../../container/namespace/rules-locked.ts";
import { type InstalledRules, installedRules } from "../../container/rules/installed-rules.ts";
import {
  type DockerResolver,
  findDockerResolver,
  restartCommand,
  problemWith,
} from "../../container/namespace/docker-resolver.ts";
import { finding } from "./checks.ts";
import type { NodeFact } from "./node-fact.ts";
import { openPodNamespace } from "./pod-namespace.ts";
import { disableRouteLocalnet, disabledRouteLocalnet } from "./route-localnet-guard.ts";
import { nameserversIn } from "../../container/files/resolv-conf-text.ts";

interface NodeTarget {
  readonly fact: NodeFact;
  /** The node's network namespace. */
  readonly fd: number;
  /** Its resolv.conf; undefined if it cannot be read. */
  readonly resolvConf: string | undefined;
  /** How dns11 comes to serve this node. */
  readonly start: string;
  /** Announces test queries to a running dns11. */
  readonly announce?: Announce;
}

interface NodeCheckTools {
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
}

const DNS_PORT = 53;

export async function checkNode(target: NodeTarget, tools: NodeCheckTools): Promise<Finding[]> {
  const { fact, fd, resolvConf, start } = target;
  const servers = nameserversIn(resolvConf ?? "");
  const reachable = servers.filter((server) => !isLoopback(server));
  const [installed] = await unlessLocked(tools.runner, { fd, memory: tools.memory }, installedRules);
  const docker = await findDockerResolver(tools.runner.namespaceOf(fd, tools.memory));
  return [
    resolvConfFinding(resolvConf, servers, reachable, start),
    ...tools.runner.within(fd, () => {
      const isServed = installed?.owner === "instance";
      const isRedirected = isServed || installed?.owner === "permanent";
      return [
        ownerFinding(installed),
        dockerFinding(target, { isServed, isRedirected, reachable, docker }),
        ...listenerFindings(fact, reachable),
      ];
    }),
    ...(await answerFindings("the node", target, [...new Set([DOCKER_RESOLVER, ...reachable])], (work) =>
      tools.runner.within(fd, work),
    )),
    ...(await podFindings(target, reachable, tools)),
  ];
}

function resolvConfFinding(
  text: string | undefined,
  servers: readonly string[],
  reachable: readonly string[],
  start: string,
): Finding {
  if (text === undefined) return finding("kind-resolv-conf", "unknown", "the file cannot be read");
  if (reachable.length > 0) return finding("kind-resolv-conf", "ok", `nameserver ${servers.join(", ")}`);
  const detail =
    servers.length === 0
      ? "no nameserver, so a pod queries itself at 127.0.0.1"
      : `only loopback nameservers (${servers.join(", ")}), so a pod queries itself`;
  return finding("kind-resolv-conf", "problem", detail, start);
}

function ownerFinding(installed: InstalledRules | undefined): Finding {
  if (installed === undefined) return finding("kind-rules", "ok", "none");
  const owners = {
    instance: "owned by a running process",
    orphaned: "without an owner",
    permanent: "permanent, made in the node",
  };
  return finding("kind-rules", "ok", `installed, ${owners[installed.owner]}`);
}

interface DockerSituation {
  /** By dns11. */
  readonly isServed: boolean;
  /** By rules of dns11, to itself or to Docker's resolver. */
  readonly isRedirected: boolean;
  /** The servers of its resolv.conf that pods could reach. */
  readonly reachable: readonly string[];
  readonly docker: DockerResolver;
}

/** Docker's resolver, which serves the pods when dns11 stops. */
function dockerFinding(
  { fact, start }: NodeTarget,
  { isServed, isRedirected, reachable, docker }: DockerSituation,
): Finding {
  const problem = problemWith(docker);
  const answers = `answers at ${docker.reachableAt.join(", ")}`;
  if (problem !== undefined) {
    const detail = isServed ? `pods will have no DNS when dns11 stops: ${problem}` : problem;
    const remedy = `Restart the node when convenient: ${restartCommand(fact.name)}`;
    return finding("kind-docker", isServed ? "warning" : "problem", detail, remedy);
  }
  const abandoned = isRedirected ? undefined : abandonedGateway(fact, reachable, docker);
  if (abandoned === undefined) return finding("kind-docker", "ok", answers);
  const detail =
    `${answers}, and nobody at ${abandoned}, which resolv.conf names: the node's entrypoint has put that address in place of 127.0.0.11, ` +
    "but changed no rule, as it is where dockerd writes its rules with nftables. So neither the node nor its pods have DNS";
  return finding("kind-docker", "problem", detail, start);
}

/** The gateway, if it is the node's server and nothing redirects queries for it. */
function abandonedGateway(
  { gateway }: NodeFact,
  reachable: readonly string[],
  { reachableAt }: DockerResolver,
): string | undefined {
  const own = [gateway.ipv4, gateway.ipv6].filter((address) => address !== undefined);
  if (reachable.some((server) => reachableAt.includes(server))) return undefined;
  return reachable.find((server) => own.some((address) => isSameAddress(server, address)));
}

function listenerFindings(fact: NodeFact, reachable: readonly string[]): Finding[] {
  const own = reachable.filter((server) => fact.addresses.some((address) => isSameAddress(address, server)));
  return own.flatMap((address): Finding[] => {
    const protocols = listenersAt(address, DNS_PORT);
    if (protocols.length === 0) return [];
    const detail = `a process in the node listens on port 53 of ${address} over ${protocols.join(" and ")}, but dns11 receives the queries sent there`;
    return [finding("kind-port-53", "problem", detail, "Choose another address with kind.ip, or stop that process.")];
  });
}

async function podFindings(target: NodeTarget, servers: readonly string[], tools: NodeCheckTools): Promise<Finding[]> {
  if (servers.length === 0) return [];
  const { fact, fd } = target;
  let pod;
  try {
    pod = await openPodNamespace(tools.runner, tools.memory, fd);
  } catch (error) {
    return [finding("kind-pod", "unknown", `no test pod could be created: ${reasonOf(error)}`)];
  }
  try {
    const testable = servers.filter((server) => !server.includes(":") || pod.addresses.ipv6 !== undefined);
    const podFd = pod.fd;
    const queryFromPod = async (): Promise<Finding[]> =>
      await answerFindings("a pod", target, testable, (work) => tools.runner.within(podFd, work));
    const findings = await queryFromPod();
    const { name: ownLink } = pod.link;
    const disabled = tools.runner.within(fd, () => interfacesWithoutLocalnet(fact, tools.memory));
    const others = disabled.filter((name) => name !== ownLink);
    if (findings.every(({ state }) => state === "ok")) {
      if (others.length === 0) return findings;
      // To see whether that matters, query from a pod whose interface has it off.
      tools.runner.within(fd, () => disableRouteLocalnet(ownLink));
      if ((await queryFromPod()).every(({ state }) => state === "ok")) return findings;
    }
    if (disabled.length === 0) return findings;
    // The test pod's interface started with the value of `default`, as every new interface does.
    return [...findings, localnetFinding(others.length === 0 ? ["default"] : others)];
  } finally {
    pod.close();
  }
}

/** Interfaces that face pods and drop packets for 127.0.0.0/8. */
function interfacesWithoutLocalnet({ addresses }: NodeFact, memory: NetlinkMemory): string[] {
  const route = new RouteSocket(memory);
  try {
    const own = route.addresses().filter(({ address }) => addresses.some((each) => isSameAddress(each, address)));
    const dockerInterfaces = new Set(own.map(({ index }) => index));
    // For the ports of a bridge, the bridge's own setting applies.
    const links = route
      .links()
      .filter(
        (link) => link.isUp && !link.isLoopback && link.master === undefined && !dockerInterfaces.has(link.index),
      );
    return Object.keys(disabledRouteLocalnet(links));
  } finally {
    route.close();
  }
}

/** KIND's own rules and our kind mode `loopback` need it. It is reported only if pods are not served. */
function localnetFinding(disabled: readonly string[]): Finding {
  const detail = `off on ${disabled.join(", ")}: rules that redirect pods to 127.0.0.11 need it`;
  const remedy =
    "Set kind.mode: listener, which does not need it. Kind mode loopback switches it on; if it is off again, find the program that switches it off.";
  return finding("route-localnet", "problem", detail, remedy);
}

async function answerFindings(
  client: string,
  { fact: { name, addresses }, announce, start }: NodeTarget,
  servers: readonly string[],
  within: OwnNameQuery["within"],
): Promise<Finding[]> {
  const query = { code: "kind-answers", client, servers, within, announce, remedy: start } as const;
  return await queryOwnName({ name, addresses }, query);
}
