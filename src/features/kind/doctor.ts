/**
 * KIND doctor: finds the nodes of an engine and checks each, whether or not dns11 is running.
 */
import { clusterAddressesOf, type ClusterAddresses } from "../../container/watch/cluster-dns.ts";
import { nodeFactOf, type AddressPair } from "./node-fact.ts";
import { labelKeysOf } from "../../container/facts/label-keys.ts";
import { isNode } from "./selection.ts";
import { NamespaceRunner, warmThreadPool } from "../../container/namespace/namespace-runner.ts";
import {
  type EngineHost,
  closeEngineHost,
  openEngineHost,
  socketPeerPid,
  readEngineFile,
} from "../../container/namespace/engine-host.ts";
import { proveNamespace } from "../../container/namespace/proof.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { Engine } from "../../container/watch/engine.ts";
import { engineAddress } from "../../api/engine-address.ts";
import { ImageConfigs } from "../../container/watch/image-configs.ts";
import { apiFiles } from "../../container/watch/container-files.ts";
import { containerFact, isUp } from "../../container/watch/translate.ts";
import { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import type { Within } from "../../kernel/net-namespace.ts";
import { closeQuietly } from "../../kernel/libc.ts";
import { Fault, reasonOf } from "../../base/lib/fault.ts";
import { type Finding, finding } from "../../base/model/finding.ts";
import { finding as nodeFinding } from "./checks.ts";
import { type NodeFilter, type ServedKind, startText } from "./feature.ts";
import { checkCapabilities } from "../../container/preflight.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import { readNetworks } from "../../container/watch/networks.ts";
import { checkNode } from "./node-check.ts";

export interface NodeDiagnosis {
  readonly node: string;
  readonly findings: readonly Finding[];
}

interface NodeDiagnosisOptions {
  readonly hostFlag: string | undefined;
  /** A container's name or id; undefined for all nodes. */
  readonly node: string | undefined;
  readonly filters: readonly NodeFilter[];
  /** Of the dns11 that runs; undefined if none does. */
  readonly status: ServedKind | undefined;
}

export async function diagnoseNodes({
  hostFlag,
  node,
  filters,
  status,
}: NodeDiagnosisOptions): Promise<NodeDiagnosis[]> {
  checkCapabilities();
  await warmThreadPool();
  const { socketPath } = engineAddress(hostFlag, process.env);
  const engine = new Engine(socketPath);
  engine.labels.add(labelKeysOf(filters));
  const host = openEngineHost(engineProcess(socketPath));
  const runner = new NamespaceRunner();
  try {
    const facts = node === undefined ? await allNodes(engine, filters) : [await nodeNamed(engine, node)];
    const diagnoses: NodeDiagnosis[] = [];
    for (const fact of facts) {
      diagnoses.push({
        node: fact.name,
        findings: await diagnose(fact, { engine, host, runner, start: startText(status) }),
      });
    }
    return diagnoses;
  } finally {
    runner.close();
    closeEngineHost(host);
  }
}

function engineProcess(socketPath: string): ReturnType<typeof socketPeerPid> {
  try {
    return socketPeerPid(socketPath);
  } catch (error) {
    throw new Fault("ENGINE_AWAY", `No process listens on the engine socket "${socketPath}"`, {
      cause: error,
      remedy: "Start Docker. Inside a node, where there is no engine, use: dns11 kind doctor --in-node",
    });
  }
}

async function allNodes(engine: Engine, filters: readonly NodeFilter[]): Promise<ContainerFact[]> {
  const facts: ContainerFact[] = [];
  const images = new ImageConfigs(engine);
  for (const { Id: id } of await engine.containers()) {
    const json = await engine.container(id);
    if (json === undefined || !isUp(json)) continue;
    const fact = containerFact(json, apiFiles(json), await images.split(json));
    if (isNode(fact, filters)) facts.push(fact);
  }
  return facts;
}

async function nodeNamed(engine: Engine, node: string): Promise<ContainerFact> {
  const json = await engine.container(encodeURIComponent(node));
  if (json !== undefined && isUp(json)) return containerFact(json, apiFiles(json));
  throw new Fault("NO_SUCH_NODE", `No running container named "${node}"`, {
    remedy: "Use a node name from `docker ps`.",
  });
}

interface NodeContext {
  readonly engine: Engine;
  readonly host: EngineHost;
  readonly runner: NamespaceRunner;
  readonly start: string;
}

async function diagnose(
  fact: ContainerFact,
  { engine, host, runner, start }: NodeContext,
): Promise<readonly Finding[]> {
  let fd = -1;
  try {
    const networks = await readNetworks([fact], engine);
    fd = proveNamespace({ containerId: fact.id, ...fact }, host, runner.homeId).fd;
    const { resolvConfPath: path } = fact;
    const resolvConf = path === undefined ? undefined : readEngineFile(host, path);
    const node = nodeFactOf(fact, (id) => networks.get(id), undefined);
    const memory = new NetlinkMemory();
    const findings = await checkNode({ fact: node, fd, resolvConf, start }, { runner, memory });
    const onMachine: Within = (work) => runner.within(host.network, work);
    return [...findings, ...servicesFindings(clusterAddressesOf(fact, host), node.own, onMachine, memory)];
  } catch (error) {
    return [finding("namespace", "unknown", reasonOf(error))];
  } finally {
    closeQuietly(fd);
  }
}

/**
 * Whether the machine has a route to the Services of a node's cluster. Without one it resolves their names and
 * does not reach them.
 *
 * `within`: enters the machine's namespace. Nothing for a node that does not know the ranges of Services.
 */
function servicesFindings(
  { services }: ClusterAddresses,
  node: AddressPair,
  within: Within,
  memory: NetlinkMemory,
): Finding[] {
  return services.flatMap((range) => {
    const [address = ""] = range.split("/");
    const gateway = address.includes(":") ? node.ipv6 : node.ipv4;
    if (gateway === undefined) return [];
    if (within(() => isRouted(address, memory))) return [nodeFinding("kind-services", "ok", `${range} has a route`)];
    const command = `sudo ip route add ${range} via ${gateway}`;
    const detail = `no route to ${range}: names of Services lead to addresses that this machine does not reach`;
    return [nodeFinding("kind-services", "warning", detail, `If programs on this machine use them: ${command}`)];
  });
}

/** By another way than everything else. */
function isRouted(address: string, memory: NetlinkMemory): boolean {
  const route = new RouteSocket(memory);
  try {
    if (!route.hasRouteTo(address)) return false;
    const gateway = route.gatewayTo(address);
    return gateway === undefined || route.defaultGateways().every((each) => each.gateway !== gateway);
  } finally {
    route.close();
  }
}
