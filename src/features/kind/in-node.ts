/**
 * InNode: dns11 inside of a node, for node images that contain it. What an engine says elsewhere is read from the kernel: the node's
 * addresses and networks, its files, and the sockets of Docker's resolver.
 */
import { randomInt } from "node:crypto";
import { openSync } from "node:fs";
import { isIPv6 } from "node:net";
import { hostname } from "node:os";

import { Fault, reasonOf } from "../../base/lib/fault.ts";
import type { Finding } from "../../base/model/finding.ts";
import type { NodeReport } from "../../base/model/node-report.ts";
import type { Settings } from "../../config/settings.ts";
import { DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { splitLabels } from "../../container/facts/labels.ts";
import { restoreNamespace, restoreResolvConf } from "../../container/files/restore.ts";
import { type ResolvConfFiles, WrittenResolvConf } from "../../container/files/written-resolv-conf.ts";
import type { NodeContext } from "../../container/names/source/name-source.ts";
import { findDockerResolver } from "../../container/namespace/docker-resolver.ts";
import { boundPorts } from "../../container/namespace/listeners.ts";
import { NamespaceRunner, warmThreadPool } from "../../container/namespace/namespace-runner.ts";
import { randomMark } from "../../container/namespace/passages.ts";
import { checkCapabilities } from "../../container/preflight.ts";
import { requireUnserved } from "../../container/rules/installed-rules.ts";
import { installPermanentRules, removeUnownedRules } from "../../container/rules/orphaned-rules.ts";
import { type ListenAddress, type PlanInput, servingPlan } from "../../container/rules/plan.ts";
import { TRIAL_MARK } from "../../container/rules/probe.ts";
import { type ResolvConf, parseResolvConf } from "../../container/watch/resolv-conf.ts";
import { closeQuietly } from "../../kernel/libc.ts";
import { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { procText } from "../../kernel/process.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import type { InNode, NodeCore, OwnNode } from "../contract.ts";
import type { NodeDiagnosis } from "./doctor.ts";
import { type KindPolicy, kindOf } from "./feature.ts";
import { checkNode } from "./node-check.ts";
import type { NodeFact } from "./node-fact.ts";
import { NodeMode } from "./node-mode.ts";
import { nodePlaceOf } from "./nodes.ts";

/** There is only one node, so any id will do; the journal requires the form of a container id. */
const IN_NODE_ID = "0";

/** The names of Docker's interfaces in a container; CNI plugins use others. */
const DOCKER_INTERFACE = /^eth\d+$/;
const START_TIME_FIELD = 21;

const IN_NODE_FILES: ResolvConfFiles = {
  path: "/etc/resolv.conf",
  openWritten: (flags) => openSync("/etc/resolv.conf", flags),
  openRead: (flags) => openSync("/etc/resolv.conf", flags),
  openOriginal: (flags) => openSync("/etc/resolv.conf.original", flags),
  isContainerFile: () => true,
};
const START = "Run `dns11 run --in-node` in the node's image. If it runs, its log says why it does not serve.";

export function open(settings: Settings, core: NodeCore): OwnNode {
  return new ThisNode(settings, core);
}

class ThisNode implements OwnNode {
  readonly fact: ContainerFact;
  readonly #core: NodeCore;
  #policy: KindPolicy;
  #mode: NodeMode;
  #isUnreadable = false;

  constructor(settings: Settings, core: NodeCore) {
    this.#core = core;
    this.#policy = kindOf(settings);
    this.#mode = openMode(this.#policy, core);
    this.fact = containerOfNode(this.#mode);
  }

  get mode(): NodeMode {
    return this.#mode;
  }

  get context(): NodeContext {
    return nodePlaceOf(this.#policy, this.#mode.fact);
  }

  report(): NodeReport {
    return this.#mode.report();
  }

  resolvConf(): ResolvConf {
    return parseResolvConf(new WrittenResolvConf(IN_NODE_FILES).text() ?? "");
  }

  reread(): boolean {
    return this.#mode.update(this.#factNow(), this.#policy);
  }

  prepare(settings: Settings): () => void {
    const policy = kindOf(settings);
    const mode = policy.mode === this.#policy.mode ? this.#mode : openMode(policy, this.#core);
    return () => {
      this.#policy = policy;
      this.#mode = mode;
    };
  }

  /** As it was last where it cannot be read: dns11 may be out of descriptors, or addresses may change faster than they are read. */
  #factNow(): NodeFact {
    const { memory, onEvent } = this.#core;
    try {
      const fact = readInNodeFact(memory);
      this.#isUnreadable = false;
      return fact;
    } catch (error) {
      if (!this.#isUnreadable)
        onEvent({ reason: reasonOf(error) }, "cannot read the node's addresses, retrying", "warn");
      this.#isUnreadable = true;
      return this.#mode.fact;
    }
  }
}

function openMode(policy: KindPolicy, core: NodeCore): NodeMode {
  return new NodeMode(readInNodeFact(core.memory), policy, {
    ...core,
    resolvConf: new WrittenResolvConf(IN_NODE_FILES),
  });
}

/** The node as a container on no known network: Docker answers everything. */
function containerOfNode({ fact }: NodeMode): ContainerFact {
  return {
    id: IN_NODE_ID,
    name: fact.name,
    startedAt: fact.startedAt,
    isPaused: false,
    health: undefined,
    pid: process.pid,
    sandboxKey: "",
    networkMode: "",
    hostname: "",
    domainName: "",
    ports: { published: [], exposed: [], ofImage: [] },
    ...splitLabels({}, {}),
    resolvConfPath: fact.resolvConfPath,
    kindSearch: fact.search,
    extraHosts: [],
    nameservers: { kind: "unknown" },
    endpoints: [],
    onDefaultBridge: undefined,
  };
}

/** Rules that remain after the program exits. They redirect the queries of pods to Docker's own resolver. */
export async function serveOnce(settings: Settings, core: Omit<NodeCore, "onChange">): ReturnType<InNode["serveOnce"]> {
  const netns = core.runner.homeNamespace(core.memory);
  try {
    await requireUnserved(netns);
  } catch (error) {
    return { lines: [`nothing done: ${reasonOf(error)}`], isServed: false };
  }
  const docker = dockerResolverSockets();
  // dns11 does not listen after it exits, so queries of pods are redirected to where Docker's resolver listens: 127.0.0.11, IPv4 only.
  const policy: KindPolicy = { ...kindOf(settings), mode: "loopback", families: "ipv4" };
  const mode = openMode(policy, { ...core, onChange: () => undefined });
  mode.capture();
  // Where there are very many rules, only now is it known whether one of them is in the way.
  await mode.conflicts.read();
  const capture = mode.capture();
  const redirects = capture.redirects.filter(({ bind }) => bind === docker.address);
  const input: PlanInput = {
    capture: { ...capture, redirects },
    listening: redirects.map(() => docker),
    zone: randomInt(1, 0xffff),
    sparedPorts: [],
    passthroughMark: randomMark(),
    trialMark: TRIAL_MARK,
  };
  await installPermanentRules(netns, servingPlan(input));
  mode.advertise();
  const { advertised, reasons } = mode.report();
  const addresses = advertised.join(", ") || "no address";
  const target = `Docker's resolver (udp ${docker.udpPort}, tcp ${docker.tcpPort})`;
  return { lines: [`pods query ${addresses}, redirected to ${target}`, ...reasons], isServed: true };
}

export async function undo({ runner, memory, journal }: Parameters<InNode["undo"]>[0]): Promise<readonly string[]> {
  const { record, damaged } = journal.read(IN_NODE_ID);
  if (damaged !== undefined) {
    throw new Fault("JOURNAL", `What dns11 has changed in this node is not known: ${damaged}`, {
      remedy:
        "Restart the node, which undoes most of it, and remove that file; or undo it with the version that wrote it.",
    });
  }
  const netns = runner.homeNamespace(memory);
  const lines = (await removeUnownedRules(netns)).map((title) => `removed ${title}`);
  if (record !== undefined) {
    const { reachableAt } = await findDockerResolver(netns);
    lines.push(
      ...restoreResolvConf(record, IN_NODE_FILES.openWritten, reachableAt),
      ...restoreNamespace(record, memory),
    );
    journal.remove(IN_NODE_ID);
  }
  return lines;
}

export async function diagnose(): Promise<readonly Finding[]> {
  return (await diagnoseInNode()).findings;
}

export async function diagnoseInNode(): Promise<NodeDiagnosis> {
  checkCapabilities();
  await warmThreadPool();
  const runner = new NamespaceRunner();
  const memory = new NetlinkMemory();
  const fact = readInNodeFact(memory);
  const fd = openSync("/proc/thread-self/ns/net", "r");
  try {
    const resolvConf = new WrittenResolvConf(IN_NODE_FILES).text();
    return { node: fact.name, findings: await checkNode({ fact, fd, resolvConf, start: START }, { runner, memory }) };
  } finally {
    closeQuietly(fd);
    runner.close();
  }
}

function readInNodeFact(memory: NetlinkMemory): NodeFact {
  const route = new RouteSocket(memory);
  try {
    const gateways = route.defaultGateways();
    const links = new Map(route.links().map(({ index, name }) => [index, name]));
    const uplinks = new Set(gateways.map(({ index }) => index));
    const own = route
      .addresses()
      .filter(({ index, address }) => isDockerInterface(links.get(index), uplinks.has(index)) && !isLinkLocal(address));
    const addresses = own.map(({ address }) => address);
    const gatewayOf = (family: 4 | 6): string | undefined =>
      gateways.find((each) => each.family === family && !isLinkLocal(each.gateway))?.gateway;
    return {
      containerId: IN_NODE_ID,
      name: hostname(),
      startedAt: nodeStartTime(),
      sandboxKey: "",
      pid: 1,
      resolvConfPath: IN_NODE_FILES.path,
      search: process.env["KIND_DNS_SEARCH"],
      gateway: { ipv4: gatewayOf(4), ipv6: gatewayOf(6) },
      own: {
        ipv4: addresses.find((address) => !isIPv6(address)),
        ipv6: addresses.find((address) => isIPv6(address)),
      },
      addresses,
      joins: own.map(({ index }) => `${index}`),
      hostGateway: undefined,
    };
  } finally {
    route.close();
  }
}

/** The ports of Docker's resolver, from the kernel's socket lists, so that rules need not be read. */
function dockerResolverSockets(): ListenAddress {
  const [[udpPort], [tcpPort]] = (["udp", "tcp"] as const).map((protocol) => boundPorts(DOCKER_RESOLVER, protocol)) as [
    number[],
    number[],
  ];
  if (udpPort === undefined || tcpPort === undefined) {
    throw new Fault("NO_DOCKER_RESOLVER", `Docker's resolver does not listen on ${DOCKER_RESOLVER} over UDP and TCP`, {
      remedy: "Connect the node to a user-defined network; Docker provides no resolver on its default bridge.",
    });
  }
  return { address: DOCKER_RESOLVER, udpPort, tcpPort };
}

function isDockerInterface(name: string | undefined, isUplink: boolean): boolean {
  return name !== undefined && (isUplink || DOCKER_INTERFACE.test(name));
}

function isLinkLocal(address: string): boolean {
  return /^fe[89ab]/i.test(address) || address.startsWith("169.254.");
}

/** The start time of the container's first process in clock ticks, different for each start of the container. */
function nodeStartTime(): string {
  const stat = procText("/proc/1/stat") ?? "";
  // The command name is in parentheses and may itself contain blanks and parentheses.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[START_TIME_FIELD - 2] ?? "";
}
