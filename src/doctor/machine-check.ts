/**
 * Machine check: what the host and its engine must provide before any container matters. It also opens the DoctorContext that
 * all other checks need.
 */
import { counted } from "../base/lib/text.ts";
import { openSync, closeSync } from "node:fs";
import { join } from "node:path";
import { ControlClient } from "../api/control-client.ts";
import { loadReports } from "../features/load.ts";
import { conntrackFinding } from "./checks/namespace-check.ts";
import { NamespaceRunner, warmThreadPool } from "../container/namespace/namespace-runner.ts";
import { type EngineHost, closeEngineHost, readEngineFile, socketPeerPid } from "../container/namespace/engine-host.ts";
import { openOwnEngineHost } from "../container/namespace/engine-owner.ts";
import { Engine, type EngineInfo } from "../container/watch/engine.ts";
import { engineAddress } from "../api/engine-address.ts";
import { DaemonDns } from "../container/watch/daemon-dns.ts";
import { type HostServers, listedServers, readHostServers } from "../container/watch/host-file.ts";
import type { ListedServer } from "../container/watch/resolv-conf.ts";
import { tryLock } from "../kernel/libc.ts";
import { outerUser } from "../kernel/process.ts";
import { NetlinkMemory } from "../kernel/netlink-socket.ts";
import { Fault, codeOf, reasonOf } from "../base/lib/fault.ts";
import { type CheckCode, type Finding, finding } from "../base/model/finding.ts";
import { locateControl } from "../api/locate.ts";
import { controlPath, instanceFolder, startRemedy } from "../api/state-paths.ts";
import { checkCapabilities, checkEngine } from "../container/preflight.ts";
import { chooseRuleBackend } from "../container/attach/rule-backend-choice.ts";
import { TlsTrust } from "../query/upstream/tls-trust.ts";
import type { Status } from "../api/status.ts";
import type { CheckedMachine } from "../features/contract.ts";
import { legacyRules } from "../kernel/legacy-rules.ts";
import { attributesIn, textOf } from "../kernel/netlink-message.ts";
import { visitFirst } from "../kernel/nfnetlink.ts";
import * as nft from "../kernel/nft-constants.ts";
import type { Within } from "../kernel/net-namespace.ts";
import { readXtables } from "../kernel/xtables.ts";

/** What the checks of containers need. */
export interface DoctorContext {
  readonly engine: Engine;
  readonly info: EngineInfo;
  readonly host: EngineHost;
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
  /** The status of a running dns11; undefined if none replies. */
  readonly status: Status | undefined;
  readonly client: ControlClient;
  readonly hostServers: HostServers;
  /** The nameservers that the host's files list, and where. */
  readonly listedServers: readonly ListedServer[];
  /** The servers that the engine's own settings give every container; undefined if they are not known. */
  readonly daemonDns: readonly string[] | undefined;
  readonly readHostFile: CheckedMachine["readHostFile"];
  /** The authorities that count for the running dns11. */
  readonly tlsTrust: TlsTrust;
  close(): void;
}

export interface MachineOptions {
  readonly hostFlag: string | undefined;
  readonly stateDir: string;
  /** Why the user's rootless engine cannot be entered. */
  readonly notEntered?: Fault;
}

/** More than a busy machine takes for what dockerd answers at once. */
const ENGINE_SILENT_MS = 5_000;
const START_OWN = "Start it with: dns11 run";
const RUN_AGAIN = "Run `dns11 doctor` again in a moment.";
const CLEAN_UP = "Run `dns11 doctor --fix` or `dns11 cleanup` to remove it.";

/** The context is undefined if something that it needs is missing; the findings say what. */
export async function checkMachine(
  options: MachineOptions,
): Promise<{ readonly findings: readonly Finding[]; readonly context: DoctorContext | undefined }> {
  const findings: Finding[] = [];
  const step = async <T>(code: CheckCode, work: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      findings.push(faultFinding(code, error));
      return undefined;
    }
  };
  if (options.notEntered !== undefined) {
    const code = options.notEntered.code === "ENGINE_ROOTLESS" ? "rootless" : "engine";
    return { findings: [faultFinding(code, options.notEntered)], context: undefined };
  }
  const isCapable = await step("capabilities", () => {
    checkCapabilities();
    return true;
  });
  const engine = await step("engine", () => new Engine(engineAddress(options.hostFlag, process.env).socketPath));
  const silentMs = await engine?.silentMs(ENGINE_SILENT_MS);
  if (silentMs !== undefined) return { findings: [...findings, ...(await hungFindings(options))], context: undefined };
  const info = engine && (await step("engine", async () => await engine.describe()));
  if (info !== undefined) findings.push(engineFinding(info));
  const instance = info && (await readInstanceStatus(options.stateDir, info));
  findings.push(...(instance?.findings ?? []));
  if (isCapable !== true || engine === undefined || info === undefined || instance === undefined) {
    return { findings, context: undefined };
  }
  findings.push(finding("capabilities", "ok", "all required capabilities are available"));
  await warmThreadPool();
  const [runner, memory] = [new NamespaceRunner(), new NetlinkMemory()];
  findings.push(await kernelFinding(runner, memory));
  const host = await step(info.isRootless ? "rootless" : "engine", () =>
    openOwnEngineHost(info, socketPeerPid(engineAddress(options.hostFlag, process.env).socketPath)),
  );
  if (host === undefined) return { findings, context: undefined };
  if (info.isRootless) findings.push(rootlessFinding());
  const path = hostResolvConfPath(instance.status);
  const hostServers = readHostServers(host, path);
  const daemonDns = new DaemonDns(() => host).readServers();
  const readHostFile = (file: string): string | undefined => readEngineFile(host, file);
  findings.push(
    ...hostFileFindings(hostServers),
    ...(await loadReports()).flatMap((each) => each.findings?.({ ...instance, daemonDns, readHostFile }) ?? []),
    runner.within(host.network, () => conntrackFinding()),
    ...(await forwardingFindings((work) => runner.within(host.network, work), memory)),
  );
  const close = (): void => {
    runner.close();
    closeEngineHost(host);
  };
  const listed = listedServers(host, path);
  const tlsFile = instance.status?.settings["forward.tls-ca"]?.value;
  const tlsTrust = new TlsTrust(typeof tlsFile === "string" ? tlsFile : undefined, () => performance.now());
  const servers = { hostServers, listedServers: listed, daemonDns, readHostFile, tlsTrust };
  const context = { ...instance, engine, info, host, runner, memory, ...servers, close };
  return { findings, context };
}

/** The host's resolv.conf as set for the running dns11, a path as the engine sees it. */
function hostResolvConfPath(status: Status | undefined): string | undefined {
  const path = status?.settings["resolv-conf"]?.value;
  return typeof path === "string" ? path : undefined;
}

/** Of dockerd nothing can be learned, and of dns11 what it knows. */
async function hungFindings({ stateDir, hostFlag }: MachineOptions): Promise<Finding[]> {
  const { socketPath } = engineAddress(hostFlag, process.env);
  const detail = `dockerd at ${socketPath} hangs: it accepts connections and has answered nothing for ${ENGINE_SILENT_MS / 1_000} s`;
  const remedy =
    "See its log: journalctl -u docker. If it does not recover: systemctl restart docker, which stops containers unless live-restore is set.";
  const hung = finding("engine", "problem", detail, remedy);
  try {
    const client = new ControlClient(await locateControl(stateDir, hostFlag));
    return [hung, runningFinding(await client.status())];
  } catch (error) {
    return [hung, faultFinding("dns11", error)];
  }
}

/** The finding of a check that could not run. */
function faultFinding(code: CheckCode, error: unknown): Finding {
  const remedy = error instanceof Fault ? error.remedy : undefined;
  return finding(code, codeOf(error) === "ENGINE_ROOTLESS" ? "problem" : "unknown", reasonOf(error), remedy);
}

/** For users of the engine without dns11: it asks servers itself. */
const FAILS_OUTSIDE = /^29\.1\.0(?!\d)/;

export function engineFinding(info: Pick<EngineInfo, "majorVersion" | "version" | "name">): Finding {
  try {
    checkEngine(info);
    const detail = `Docker ${info.version}, ${info.name}`;
    if (!FAILS_OUTSIDE.test(info.version)) return finding("engine", "ok", detail);
    const why = "whose own resolver answers SERVFAIL for every name outside";
    return finding("engine", "warning", `${detail}, ${why}`, "Use Docker 29.1.1 or later.");
  } catch (error) {
    return { ...faultFinding("engine", error), state: "problem" };
  }
}

function rootlessFinding(): Finding {
  const user = outerUser();
  const who = user === undefined ? "" : `, with the rights of the user with the ID ${user}`;
  return finding("rootless", "ok", `its user and network namespaces can be entered${who}`);
}

async function kernelFinding(runner: NamespaceRunner, memory: NetlinkMemory): Promise<Finding> {
  try {
    const { backend } = await chooseRuleBackend(runner, memory, "auto");
    if (backend === "nft-owner") return finding("kernel", "ok", "supports process-owned nftables tables");
    return finding(
      "kernel",
      "warning",
      `supports only the rule backend ${backend}, whose rules stay when dns11 is killed without a keeper`,
      "Use Linux 5.12 or later with nf_tables, whose rules disappear with their process.",
    );
  } catch (error) {
    return { ...faultFinding("kernel", error), state: "problem" };
  }
}

const CORRECT_FILE = "Correct the file, or set upstream servers with dns11 run --dns.";

/** That there is no nameserver is judged when the containers are known. */
function hostFileFindings({ nameservers, invalid, uplinks }: HostServers): Finding[] {
  if (invalid.length > 0) {
    return [finding("host-resolv-conf", "warning", `invalid nameserver ${invalid.join(", ")}`, CORRECT_FILE)];
  }
  if (nameservers.length === 0) return [];
  const forwards = uplinks.length === 0 ? "" : `, which forwards to ${uplinks.join(", ")}`;
  return [finding("host-resolv-conf", "ok", `nameserver ${nameservers.join(", ")}${forwards}`)];
}

/** `missed`: how many containers have no upstream server for that reason. */
export function noNameserverFindings({ nameservers, invalid }: HostServers, missed: number): Finding[] {
  if (nameservers.length > 0 || invalid.length > 0) return [];
  if (missed === 0) return [finding("host-resolv-conf", "ok", "no nameserver, and no container needs one")];
  const have = missed === 1 ? "has" : "have";
  const detail = `no nameserver, so ${counted(missed, "container")} without --dns ${have} no upstream server`;
  return [finding("host-resolv-conf", "warning", detail, CORRECT_FILE)];
}

async function readInstanceStatus(
  stateDir: string,
  { id, isRootless }: EngineInfo,
): Promise<Pick<DoctorContext, "client" | "status"> & { readonly findings: readonly Finding[] }> {
  const folder = instanceFolder(stateDir, id);
  const client = new ControlClient(controlPath(folder));
  try {
    const status = await client.status();
    return { client, status, findings: [runningFinding(status)] };
  } catch (error) {
    return {
      client,
      status: undefined,
      findings: noReplyFindings(error, folder, isRootless ? START_OWN : startRemedy("sudo dns11 run")),
    };
  }
}

function runningFinding({ version, pid, since, isReady, engine, containers, keeper }: Status): Finding {
  const detail = `${version}, process ${pid}, since ${since}, ${keeperText(keeper)}`;
  if (engine?.isConnected === false || engine?.silentMs !== undefined) {
    const what = engine.isConnected ? "the engine does not answer it" : "disconnected from the engine";
    return finding("dns11", "warning", `${detail}; ${what}, so it answers with the last known container names`);
  }
  if (isReady && keeper.state === "away") {
    const remedy =
      "See the log of dns11 for the cause. Without a keeper, containers are handed back one by one if dns11 is killed.";
    return finding("dns11", "warning", detail, remedy);
  }
  if (isReady) return finding("dns11", "ok", `${detail}, ready`);
  const pending = containers.filter(({ state }) => state === "opening" || state === "verifying");
  const names = pending.map(({ name }) => name).join(", ") || "the container list";
  return finding("dns11", "warning", `${detail}, not ready: waiting for ${names}`, RUN_AGAIN);
}

function keeperText({ state, pid }: Status["keeper"]): string {
  if (state === "off") return "no keeper";
  return pid === null ? "keeper not running" : `keeper process ${pid}`;
}

function noReplyFindings(error: unknown, folder: string, start: string): Finding[] {
  if (codeOf(error) === "CONTROL_PERMISSION") return [faultFinding("dns11", error)];
  const holder = lockHolder(folder);
  if (holder === "held") {
    const detail = `a process holds the lock in ${folder} but does not respond: ${reasonOf(error)}`;
    const remedy =
      "It is starting, stopping or hung. If this persists, kill the process; the kernel then removes its rules.";
    return [finding("dns11", "problem", detail, remedy)];
  }
  const notRunning = finding(
    "dns11",
    "warning",
    "not running for this engine; containers use Docker's resolver",
    start,
  );
  if (holder === "none") return [notRunning];
  return [notRunning, ...leftovers(folder)];
}

function leftovers(folder: string): Finding[] {
  const socket = controlPath(folder);
  try {
    closeSync(openSync(socket, "r"));
    return [];
  } catch (error) {
    // ENXIO: the path is a socket, which cannot be opened as a file.
    if (codeOf(error) !== "ENXIO") return [];
    return [finding("leftovers", "warning", `stale control socket ${socket}`, CLEAN_UP)];
  }
}

/** Whether a process holds the lock of an instance. */
function lockHolder(folder: string): "held" | "free" | "none" {
  let lock;
  try {
    lock = openSync(join(folder, "lock"), "r");
  } catch {
    return "none";
  }
  try {
    return tryLock(lock) ? "free" : "held";
  } finally {
    closeSync(lock);
  }
}

/** Docker's table of each family on the host. */
const DOCKER_BRIDGES = "docker-bridges";
const FORWARD = nft.NF_HOOKS.indexOf("forward");
const [INET, IPV4, IPV6] = [1, 2, 10];
const FAMILIES: ReadonlyMap<number, { readonly name: string; readonly tool?: string }> = new Map([
  [INET, { name: "inet" }],
  [IPV4, { name: "ip", tool: "iptables" }],
  [IPV6, { name: "ip6", tool: "ip6tables" }],
]);

interface DroppingChain {
  readonly what: string;
  /** Changes its policy; undefined where that is another program's. */
  readonly command?: string | undefined;
}

/**
 * Forwarding check: whether the host drops what Docker forwards for containers. With its nftables backend, Docker accepts packets in
 * tables of its own, and no rule there overrides a chain of another table that drops them: a dockerd with the iptables backend sets
 * the policy of FORWARD to DROP, and that stays when it is replaced. Finds nothing where Docker does not use nftables on the host.
 */
async function forwardingFindings(within: Within, memory: NetlinkMemory): Promise<Finding[]> {
  const isDockers = new Set<number>();
  const chains: { readonly family: number; readonly table: string; readonly name: string }[] = [];
  within(() =>
    visitFirst(memory, { command: nft.NFT_MSG_GETCHAIN, family: 0 }, (family, bytes) => {
      const attributes = attributesIn(bytes);
      const table = textOf(attributes.get(nft.NFTA_CHAIN_TABLE));
      if (table === DOCKER_BRIDGES) isDockers.add(family);
      else if (dropsForwarded(attributes)) {
        chains.push({ family, table, name: textOf(attributes.get(nft.NFTA_CHAIN_NAME)) });
      }
    }),
  );
  if (isDockers.size === 0) return [];
  const found: DroppingChain[] = chains
    .filter(({ family }) => family === INET || isDockers.has(family))
    .map(({ family, table, name }) => {
      const { name: familyName = "", tool } = FAMILIES.get(family) ?? {};
      const isOfIptables = tool !== undefined && table === "filter" && name === "FORWARD";
      const command = isOfIptables ? `${tool} -P FORWARD ACCEPT` : undefined;
      return { what: `chain ${name} of table ${familyName} ${table}`, command };
    });
  const legacy = legacyRules(await readXtables(within), "filter") ?? [];
  if (legacy.some(({ chain, isPolicy, target }) => chain === "FORWARD" && isPolicy && target === "DROP")) {
    found.push({ what: "chain FORWARD of iptables-legacy", command: "iptables-legacy -P FORWARD ACCEPT" });
  }
  if (found.length === 0) return [finding("forwarding", "ok", "Docker's nftables rules decide alone")];
  const commands = found.flatMap(({ command }) => command ?? []);
  const detail = `${found.map(({ what }) => what).join(" and ")} drops by its policy what containers send to other networks, unless its own rules accept it; that Docker's nftables rules accept it is not enough`;
  const remedy =
    commands.length > 0
      ? `If a dockerd that used iptables has left it so, run on the Docker host: ${commands.join(" && ")}`
      : "Have that chain accept what comes from and goes to Docker's bridges.";
  return [finding("forwarding", "warning", detail, remedy)];
}

function dropsForwarded(chain: ReadonlyMap<number, Buffer>): boolean {
  const hook = attributesIn(chain.get(nft.NFTA_CHAIN_HOOK) ?? Buffer.alloc(0));
  const isForward = hook.get(nft.NFTA_HOOK_HOOKNUM)?.readUInt32BE(0) === FORWARD;
  return isForward && chain.get(nft.NFTA_CHAIN_POLICY)?.readUInt32BE(0) === nft.NF_DROP;
}
