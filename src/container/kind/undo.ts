/**
 * Undo: puts a node back as its record in the journal says it was, without there being a mode that changed it: after a
 * SIGKILL, or where a container is no node any more.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { closeQuietly, openInRoot } from "../../kernel/libc.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import type { Bracket } from "../namespace/bracket.ts";
import type { EngineHost } from "../namespace/engine-host.ts";
import { proveNamespace } from "../namespace/proof.ts";
import type { NodeRecord } from "./journal.ts";
import { dockerResolver } from "./docker-resolver.ts";
import { releaseAddresses } from "./lo-addresses.ts";
import { restoreRecord } from "./node-resolver.ts";
import type { OpenFile } from "./resolver-file.ts";
import { restoreRouteLocalnet } from "./route-localnet.ts";

export interface UndoTools {
  readonly bracket: Bracket;
  readonly memory: NetlinkMemory;
  readonly host: EngineHost;
}

export interface Undone {
  /** What was done, and what could not be, a sentence each. */
  readonly did: readonly string[];
  /** Otherwise the record is still needed. */
  readonly isWhole: boolean;
}

/** Of a container that was started anew since, which made everything as it was. */
export const NOTHING_TO_UNDO: Undone = { did: [], isWhole: true };

/** Every step is tried, whatever became of the others. */
export function undoNode(record: NodeRecord, { bracket, memory, host }: UndoTools): Undone {
  let answering: readonly string[] = [];
  const inside = tried(() => {
    const { fd } = proveNamespace(record, host, bracket.homeId);
    try {
      return bracket.within(fd, () => {
        ({ answering } = dockerResolver(memory));
        return undoIn(record, memory);
      });
    } finally {
      closeQuietly(fd);
    }
  });
  const { resolvConf: { path = "" } = {} } = record;
  const file = tried(() => undoResolvConf(record, (flags) => openInRoot(host.root, path, flags), answering));
  return { did: [...file.did, ...inside.did], isWhole: file.isWhole && inside.isWhole };
}

/** Takes back what a record says of lo and of the kernel's switches; to be called inside the namespace. */
export function undoIn(record: NodeRecord, memory: NetlinkMemory): string[] {
  const route = new RouteSocket(memory);
  try {
    const did = restoreRouteLocalnet(record, () => route.links());
    const taken = releaseAddresses(route, record.addresses);
    return [...(taken.length === 0 ? [] : [`took ${taken.join(", ")} from lo`]), ...did];
  } finally {
    route.close();
  }
}

/** Docker's resolver answers at these. */
export function undoResolvConf({ resolvConf }: NodeRecord, open: OpenFile, answering: readonly string[]): string[] {
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

function tried(act: () => string[]): Undone {
  try {
    return { did: act(), isWhole: true };
  } catch (error) {
    return { did: [`failed: ${reasonOf(error)}`], isWhole: false };
  }
}
