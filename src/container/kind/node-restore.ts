/**
 * Node restore: undoes the changes in a node's journal record without the NodeMode that made them: after a SIGKILL, or when the
 * container is no longer a node.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { closeQuietly, openInRoot } from "../../kernel/libc.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import type { NamespaceRunner } from "../namespace/namespace-runner.ts";
import type { EngineHost } from "../namespace/engine-host.ts";
import { proveNamespace } from "../namespace/proof.ts";
import type { NodeRecord } from "./journal.ts";
import { findDockerResolver } from "./docker-resolver.ts";
import { removeLoAddresses } from "./lo-addresses.ts";
import { restoreRecord } from "./node-resolv-conf.ts";
import type { OpenFile } from "./resolv-conf-file.ts";
import { restoreRouteLocalnet } from "./route-localnet.ts";

export interface RestoreTools {
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
  readonly host: EngineHost;
}

export interface RestoreOutcome {
  /** The actions removed and the failures, a sentence each. */
  readonly did: readonly string[];
  /** If false, the record is still needed. */
  readonly isComplete: boolean;
}

/** The outcome for a container that has restarted since, which reset everything. */
export const NOTHING_TO_RESTORE: RestoreOutcome = { did: [], isComplete: true };

/** Tries every step even if others fail. */
export async function restoreNode(record: NodeRecord, { runner, memory, host }: RestoreTools): Promise<RestoreOutcome> {
  let reachableAt: readonly string[] = [];
  const inside = await attempt(async () => {
    const { fd } = proveNamespace(record, host, runner.homeId);
    try {
      const netns = runner.namespaceOf(fd, memory);
      ({ reachableAt } = await findDockerResolver(netns));
      return netns.within(() => restoreNamespace(record, memory));
    } finally {
      closeQuietly(fd);
    }
  });
  const { resolvConf: { path = "" } = {} } = record;
  const file = await attempt(() =>
    restoreResolvConf(record, (flags) => openInRoot(host.root, path, flags), reachableAt),
  );
  return { did: [...file.did, ...inside.did], isComplete: file.isComplete && inside.isComplete };
}

/** Restores lo and route_localnet. Call inside the namespace. */
export function restoreNamespace(record: NodeRecord, memory: NetlinkMemory): string[] {
  const route = new RouteSocket(memory);
  try {
    const did = [...restoreRouteLocalnet(record, () => route.links())];
    const removed = removeLoAddresses(route, record.addresses);
    return [...(removed.length === 0 ? [] : [`removed ${removed.join(", ")} from lo`]), ...did];
  } finally {
    route.close();
  }
}

/** `reachableAt`: the addresses of Docker's resolver. */
export function restoreResolvConf(
  { resolvConf }: NodeRecord,
  open: OpenFile,
  reachableAt: readonly string[],
): string[] {
  if (resolvConf === undefined) return [];
  switch (restoreRecord(open, resolvConf, reachableAt)) {
    case "restored":
      return ["restored resolv.conf"];
    case "changed":
      return ["left resolv.conf unchanged: another program has edited it"];
    case "gone":
      return ["found no resolv.conf to restore"];
  }
}

async function attempt(act: () => Promise<string[]> | string[]): Promise<RestoreOutcome> {
  try {
    return { did: await act(), isComplete: true };
  } catch (error) {
    return { did: [`failed: ${reasonOf(error)}`], isComplete: false };
  }
}
