/**
 * Undo: puts a node back as its record in the journal says it was, without there being a mode that changed it: after a
 * SIGKILL, or where a container is no node any more.
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
  /** What was done, and what could not be, a sentence each. */
  readonly did: readonly string[];
  /** Otherwise the record is still needed. */
  readonly isComplete: boolean;
}

/** Of a container that was started anew since, which made everything as it was. */
export const NOTHING_TO_RESTORE: RestoreOutcome = { did: [], isComplete: true };

/** Every step is tried, whatever became of the others. */
export function restoreNode(record: NodeRecord, { runner, memory, host }: RestoreTools): RestoreOutcome {
  let answering: readonly string[] = [];
  const inside = tried(() => {
    const { fd } = proveNamespace(record, host, runner.homeId);
    try {
      return runner.within(fd, () => {
        ({ reachableAt: answering } = findDockerResolver(memory));
        return restoreNamespace(record, memory);
      });
    } finally {
      closeQuietly(fd);
    }
  });
  const { resolvConf: { path = "" } = {} } = record;
  const file = tried(() => restoreResolvConf(record, (flags) => openInRoot(host.root, path, flags), answering));
  return { did: [...file.did, ...inside.did], isComplete: file.isComplete && inside.isComplete };
}

/** Takes back what a record says of lo and of the kernel's switches; to be called inside the namespace. */
export function restoreNamespace(record: NodeRecord, memory: NetlinkMemory): string[] {
  const route = new RouteSocket(memory);
  try {
    const did = restoreRouteLocalnet(record, () => route.links());
    const taken = removeLoAddresses(route, record.addresses);
    return [...(taken.length === 0 ? [] : [`took ${taken.join(", ")} from lo`]), ...did];
  } finally {
    route.close();
  }
}

/** Docker's resolver answers at these. */
export function restoreResolvConf({ resolvConf }: NodeRecord, open: OpenFile, answering: readonly string[]): string[] {
  if (resolvConf === undefined) return [];
  switch (restoreRecord(open, resolvConf, answering)) {
    case "restored":
      return ["restored resolv.conf"];
    case "changed":
      return ["left resolv.conf as it is: somebody has changed it since"];
    case "gone":
      return ["found no resolv.conf to restore"];
  }
}

function tried(act: () => string[]): RestoreOutcome {
  try {
    return { did: act(), isComplete: true };
  } catch (error) {
    return { did: [`failed: ${reasonOf(error)}`], isComplete: false };
  }
}
