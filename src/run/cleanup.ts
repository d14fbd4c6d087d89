/**
 * Cleanup: removes what a killed instance may have left. The kernel removes owned tables with their process, so this
 * looks for rules without an owner (of another rule backend, or of an experiment) and for the socket and lock of the
 * state directory.
 */

import { NamespaceRunner, warmThreadPool } from "../container/namespace/namespace-runner.ts";
import { type EngineHost, closeEngineHost, socketPeerPid } from "../container/namespace/engine-host.ts";
import { openOwnEngineHost } from "../container/namespace/engine-owner.ts";
import { proveNamespace } from "../container/namespace/proof.ts";
import { Journal } from "../container/files/journal.ts";
import { NOTHING_TO_RESTORE, restoreContainer } from "../container/files/restore.ts";
import { unlessLocked } from "../container/namespace/rules-locked.ts";
import { type CleanupResult, removeOrphanedRules } from "../container/rules/orphaned-rules.ts";
import { Engine } from "../container/watch/engine.ts";
import { engineAddress } from "../api/engine-address.ts";
import { keeperPath } from "../api/state-paths.ts";
import type { ContainerJson } from "../container/watch/engine-json.ts";
import { bareName, isUp } from "../container/watch/translate.ts";
import { closeQuietly } from "../kernel/libc.ts";
import { NetlinkMemory } from "../kernel/netlink-socket.ts";
import { Predecessor } from "../keeper/predecessor.ts";
import { Fault, codeOf, reasonOf } from "../base/lib/fault.ts";
import type { CleanedMachine } from "../features/contract.ts";
import { loadCleanups } from "../features/load.ts";
import { takeInstance } from "./instance.ts";
import { checkCapabilities } from "../container/preflight.ts";

/** Throws while an instance is running. */
export async function cleanup(
  stateDir: string,
  hostFlag: string | undefined,
  { only, removesPolicies = false }: CleanupOptions = {},
): Promise<CleanupResult> {
  checkCapabilities();
  await warmThreadPool();
  const { socketPath } = engineAddress(hostFlag, process.env);
  const engine = new Engine(socketPath);
  const info = await engine.describe();
  const host = openOwnEngineHost(info, socketPeerPid(socketPath));
  const instance = takeInstance(stateDir, info.id);
  const runner = new NamespaceRunner();
  const memory = new NetlinkMemory();
  const did: string[] = [];
  const failed: string[] = [];
  const journal = new Journal(instance.folder);
  let isWhole = false;
  try {
    const cleanups = await loadCleanups();
    const running = await engine.containers();
    const machine: CleanedMachine = {
      ...{ runner, memory },
      host: () => host,
      nameOf: (start) => nameOf(running.find(({ Id: id }) => id.startsWith(start))?.Names),
    };
    if (only === undefined) {
      // Before anything is removed: what cannot be asked may refuse queries.
      const keeper = await Predecessor.findAlone(keeperPath(instance.folder));
      try {
        for (const each of cleanups) did.push(...((await each.removeHeld?.(machine, removesPolicies)) ?? []));
        did.push(...(await endRefusing(keeper, removesPolicies)));
      } finally {
        keeper?.channel.close();
      }
    }
    const { records, damaged } = journal.all();
    if (only === undefined) failed.push(...damaged);
    for (const record of records) {
      if (only !== undefined && record.containerId !== only) continue;
      // A restart of the container has replaced its namespace and files.
      const json = await engine.container(record.containerId);
      const isSameStart = json?.State?.StartedAt === record.startedAt && isUp(json);
      const undone = isSameStart ? await restoreContainer(record, { runner, memory, host }) : NOTHING_TO_RESTORE;
      if (undone.isComplete) journal.remove(record.containerId);
      (undone.isComplete ? did : failed).push(...undone.did.map((line) => `${record.name}: ${line}`));
    }
    for (const { Id: containerId } of await engine.containers()) {
      if (only !== undefined && containerId !== only) continue;
      const json = await engine.container(containerId);
      if (json === undefined || !isUp(json)) continue;
      const cleaned = await cleanContainer(json, { host, runner, memory });
      did.push(...cleaned.did);
      failed.push(...cleaned.failed);
    }
    if (only === undefined) for (const each of cleanups) did.push(...(each.cleanUp?.(machine) ?? []));
    isWhole = failed.length === 0;
  } finally {
    runner.close();
    closeEngineHost(host);
    if (only === undefined && isWhole) instance.remove();
    else instance.release();
  }
  return { did: only === undefined && isWhole ? [...did, `removed ${instance.folder}`] : did, failed };
}

/** Where no dns11 runs, its keeper may refuse the queries of containers with an enforced policy. */
async function endRefusing(found: Predecessor | undefined, ends: boolean): Promise<string[]> {
  if (found === undefined || found.refusing === 0) return [];
  const containers = found.refusing === 1 ? "1 container" : `${found.refusing} containers`;
  if (!ends) {
    throw new Fault("POLICIES_HOLD", `The keeper refuses the queries of ${containers}, and would not any more`, {
      remedy: "With --policies it ends: then Docker's resolver answers these containers every name.",
    });
  }
  await found.endKeeper();
  return [`ended the keeper: Docker's resolver answers ${containers} every name now`];
}

function nameOf(names: readonly string[] | undefined): string | undefined {
  return names?.find((name) => name.lastIndexOf("/") === 0)?.slice(1);
}

interface CleanupOptions {
  /** The id of a container: nothing else is touched. */
  readonly only?: string | undefined;
  /** What holds containers to policies is removed, too. */
  readonly removesPolicies?: boolean;
}

interface Tools {
  readonly host: EngineHost;
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
}

async function cleanContainer(json: ContainerJson, { host, runner, memory }: Tools): Promise<CleanupResult> {
  const name = bareName(json.Name);
  const claim = {
    containerId: json.Id,
    sandboxKey: json.NetworkSettings?.SandboxKey ?? "",
    pid: json.State?.Pid ?? 0,
  };
  let fd = -1;
  try {
    const proven = proveNamespace(claim, host, runner.homeId);
    fd = proven.fd;
    const { did, failed } = await unlessLocked(runner, { fd, memory }, removeOrphanedRules);
    return { did: did.map((line) => `${name}: ${line}`), failed: failed.map((line) => `${name}: ${line}`) };
  } catch (error) {
    // A container on the host's network, or one that has stopped meanwhile, has nothing of ours.
    const isElsewhere = codeOf(error)?.startsWith("NAMESPACE_") === true;
    return { did: [], failed: isElsewhere ? [] : [`${name}: ${reasonOf(error)}`] };
  } finally {
    closeQuietly(fd);
  }
}
