/**
 * KIND doctor: finds the nodes of an engine and checks each, whether or not dns11 is running.
 */
import { readNetworks } from "../networks.ts";
import { checkNode } from "./node-check.ts";
import { servicesFindings } from "./services-check.ts";
import { clusterAddressesOf } from "../../container/kind/cluster-dns.ts";
import { nodeFactOf } from "../../container/kind/node-fact.ts";
import { isNode } from "../../container/kind/selection.ts";
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
import type { NodeFilter } from "../../base/model/kind-policy.ts";
import { checkCapabilities } from "../../container/preflight.ts";

export interface NodeDiagnosis {
  readonly node: string;
  readonly findings: readonly Finding[];
}

interface NodeDiagnosisOptions {
  readonly hostFlag: string | undefined;
  /** A container's name or id; undefined for all nodes. */
  readonly node: string | undefined;
  readonly filters: readonly NodeFilter[];
}

export async function diagnoseNodes({ hostFlag, node, filters }: NodeDiagnosisOptions): Promise<NodeDiagnosis[]> {
  checkCapabilities();
  await warmThreadPool();
  const { socketPath } = engineAddress(hostFlag, process.env);
  const engine = new Engine(socketPath);
  const host = openEngineHost(engineProcess(socketPath));
  const runner = new NamespaceRunner();
  try {
    const facts = node === undefined ? await allNodes(engine, filters) : [await nodeNamed(engine, node)];
    const diagnoses: NodeDiagnosis[] = [];
    for (const fact of facts) {
      diagnoses.push({ node: fact.name, findings: await diagnose(fact, engine, host, runner) });
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

async function diagnose(
  fact: ContainerFact,
  engine: Engine,
  host: EngineHost,
  runner: NamespaceRunner,
): Promise<readonly Finding[]> {
  let fd = -1;
  try {
    const networks = await readNetworks([fact], engine);
    fd = proveNamespace({ containerId: fact.id, ...fact }, host, runner.homeId).fd;
    const { resolvConfPath: path } = fact;
    const resolvConf = path === undefined ? undefined : readEngineFile(host, path);
    const node = nodeFactOf(fact, (id) => networks.get(id), undefined);
    const memory = new NetlinkMemory();
    const findings = await checkNode({ fact: node, fd, resolvConf }, { runner, memory });
    const onMachine: Within = (work) => runner.within(host.network, work);
    return [...findings, ...servicesFindings(clusterAddressesOf(fact, host), node.own, onMachine, memory)];
  } catch (error) {
    return [finding("namespace", "unknown", reasonOf(error))];
  } finally {
    closeQuietly(fd);
  }
}
