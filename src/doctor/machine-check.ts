/**
 * Machine check: what has to be as it is on the machine and in its engine before any container matters. It also opens what
 * everything else is looked at with, as far as that can be had.
 */
import { openSync, closeSync } from "node:fs";
import { join } from "node:path";

import { ControlClient } from "../api/control-client.ts";
import { conntrackFinding } from "./checks/namespace-check.ts";
import { NamespaceRunner, warmThreadPool } from "../container/namespace/namespace-runner.ts";
import { type EngineHost, closeEngineHost, openEngineHost, socketPeerPid } from "../container/namespace/engine-host.ts";
import { Engine, type EngineInfo } from "../container/watch/engine.ts";
import { engineAddress } from "../api/engine-address.ts";
import { type HostServers, readHostServers } from "../container/watch/host-file.ts";
import { tryLock } from "../kernel/libc.ts";
import { NetlinkMemory } from "../kernel/netlink-socket.ts";
import { Fault, codeOf, reasonOf } from "../base/lib/fault.ts";
import { type CheckCode, type Finding, finding } from "../base/model/finding.ts";
import { controlPath, instanceFolder } from "../api/state-paths.ts";
import { checkCapabilities, checkEngine } from "../container/preflight.ts";
import { chooseRuleBackend } from "../container/attach/rule-backend-choice.ts";
import type { Status } from "../api/status.ts";

/** What containers are looked at with. */
export interface DoctorContext {
  readonly engine: Engine;
  readonly info: EngineInfo;
  readonly host: EngineHost;
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
  /** What a running dns11 says; undefined where none answers. */
  readonly status: Status | undefined;
  readonly client: ControlClient;
  readonly hostServers: HostServers;
  close(): void;
}

export interface MachineOptions {
  readonly hostFlag: string | undefined;
  readonly stateDir: string;
}

const START = "Start it with: dns11 run";
const CLEAN_UP = "`dns11 doctor --fix` or `dns11 cleanup` removes it.";

/** What was found, and the clinic where there can be one. */
export async function checkMachine(
  order: MachineOptions,
): Promise<{ readonly findings: readonly Finding[]; readonly clinic: DoctorContext | undefined }> {
  const findings: Finding[] = [];
  const step = async <T>(code: CheckCode, work: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      findings.push(faultFinding(code, error));
      return undefined;
    }
  };
  const isCapable = await step("capabilities", () => {
    checkCapabilities();
    return true;
  });
  const engine = await step("engine", () => new Engine(engineAddress(order.hostFlag, process.env).socketPath));
  const info = engine && (await step("engine", async () => await engine.describe()));
  if (info !== undefined) findings.push(engineFinding(info));
  const told = info && (await readInstanceStatus(order.stateDir, info));
  findings.push(...(told?.findings ?? []));
  if (isCapable !== true || engine === undefined || info === undefined || told === undefined) {
    return { findings, clinic: undefined };
  }
  findings.push(finding("capabilities", "ok", "all that are needed"));
  await warmThreadPool();
  const [runner, memory] = [new NamespaceRunner(), new NetlinkMemory()];
  findings.push(kernelFinding(runner, memory));
  const host = await step("engine", () =>
    openEngineHost(socketPeerPid(engineAddress(order.hostFlag, process.env).socketPath)),
  );
  if (host === undefined) return { findings, clinic: undefined };
  const hostServers = readHostServers(host, hostPath(told.status));
  findings.push(
    hostFileFinding(hostServers),
    runner.within(host.network, () => conntrackFinding()),
  );
  const close = (): void => {
    runner.close();
    closeEngineHost(host);
  };
  return { findings, clinic: { ...told, engine, info, host, runner, memory, hostServers, close } };
}

/** Where dns11 was told that the host's file is, as the engine sees paths. */
function hostPath(status: Status | undefined): string | undefined {
  const path = status?.settings["resolv-conf"]?.value;
  return typeof path === "string" ? path : undefined;
}

/** What could not be looked at, and why. */
function faultFinding(code: CheckCode, error: unknown): Finding {
  const remedy = error instanceof Fault ? error.remedy : undefined;
  return finding(code, "unknown", reasonOf(error), remedy);
}

function engineFinding(info: EngineInfo): Finding {
  try {
    checkEngine(info);
    return finding("engine", "ok", `Docker ${info.version}, ${info.name}`);
  } catch (error) {
    return { ...faultFinding("engine", error), state: "problem" };
  }
}

function kernelFinding(runner: NamespaceRunner, memory: NetlinkMemory): Finding {
  try {
    const { backend: tier, hasZones } = chooseRuleBackend(runner, memory, "auto");
    if (tier === "nft-owner") return finding("kernel", "ok", "it takes rules that go with their process");
    const zones = hasZones ? "" : ", without connection tracking zones";
    const detail = `it takes rules of the tier ${tier} alone${zones}: they stay when dns11 is killed${tier === "nft" ? " and has no keeper" : ""}`;
    return finding(
      "kernel",
      "warning",
      detail,
      "Linux 5.12 or later with nf_tables has rules that go with their process.",
    );
  } catch (error) {
    return { ...faultFinding("kernel", error), state: "problem" };
  }
}

function hostFileFinding({ nameservers: named, invalid, uplinks }: HostServers): Finding {
  const remedy = "Correct it, or give dns11 servers with --dns.";
  if (invalid.length > 0) {
    return finding("host-resolv-conf", "warning", `it names what is no address: ${invalid.join(", ")}`, remedy);
  }
  if (named.length === 0) {
    return finding("host-resolv-conf", "warning", "it names no server, so containers have none but their own", remedy);
  }
  const behind = uplinks.length === 0 ? "" : `, behind which are ${uplinks.join(", ")}`;
  return finding("host-resolv-conf", "ok", `names ${named.join(", ")}${behind}`);
}

async function readInstanceStatus(
  stateDir: string,
  { id }: EngineInfo,
): Promise<Pick<DoctorContext, "client" | "status"> & { readonly findings: readonly Finding[] }> {
  const folder = instanceFolder(stateDir, id);
  const client = new ControlClient(controlPath(folder));
  try {
    const status = await client.status();
    return { client, status, findings: [runningFinding(status)] };
  } catch (error) {
    return { client, status: undefined, findings: noReplyFindings(error, folder) };
  }
}

function runningFinding({ version, pid, since, isReady, engine, containers, keeper }: Status): Finding {
  const detail = `${version}, process ${pid}, since ${since}, ${keeperText(keeper)}`;
  if (engine?.isConnected === false) {
    return finding("dns11", "warning", `${detail}; the engine is away from it, and last-known names answer`);
  }
  if (isReady && keeper.state === "away") {
    const remedy = "Its log says why. Until there is one, a kill hands containers back one after the other.";
    return finding("dns11", "warning", detail, remedy);
  }
  if (isReady) return finding("dns11", "ok", `${detail}, ready`);
  const missing = containers.filter(({ state }) => state === "opening" || state === "verifying");
  const names = missing.map(({ name }) => name).join(", ") || "the list of containers";
  return finding("dns11", "warning", `${detail}, not ready yet: missing is ${names}`, "Wait a moment, and ask again.");
}

function keeperText({ state, pid }: Status["keeper"]): string {
  if (state === "off") return "without a keeper";
  return pid === null ? "its keeper is away" : `its keeper process ${pid}`;
}

function noReplyFindings(error: unknown, folder: string): Finding[] {
  if (codeOf(error) === "CONTROL_PERMISSION") return [faultFinding("dns11", error)];
  const holder = lockHolder(folder);
  if (holder === "held") {
    const detail = `a process holds its lock in ${folder}, but does not answer: ${reasonOf(error)}`;
    const remedy = "It is starting, stopping or hung. If it stays so, end it: the kernel then removes its rules.";
    return [finding("dns11", "problem", detail, remedy)];
  }
  const silent = finding("dns11", "warning", "none is running for this engine; Docker's own resolver answers", START);
  if (holder === "none") return [silent];
  return [silent, ...leftovers(folder)];
}

function leftovers(folder: string): Finding[] {
  const socket = controlPath(folder);
  try {
    closeSync(openSync(socket, "r"));
    return [];
  } catch (error) {
    // A socket cannot be opened, which says that it is there.
    if (codeOf(error) !== "ENXIO") return [];
    return [finding("leftovers", "warning", `the socket ${socket}, with nobody behind it`, CLEAN_UP)];
  }
}

/** Whether somebody holds the lock of an instance, nobody does, or there never was one. */
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
