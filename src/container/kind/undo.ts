/**
 * Undo: puts a node back as its record in the journal says it was, without there being a mode that changed it: after a
 * SIGKILL, or where a container is no node any more.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { closeQuietly, openInRoot } from "../../kernel/libc.ts";
import { reasonOf } from "../../lib/fault.ts";
import type { Bracket } from "../namespace/bracket.ts";
import type { EngineHost } from "../namespace/engine-host.ts";
import { proveNamespace } from "../namespace/proof.ts";
import type { NodeRecord } from "./journal.ts";
import { undoIn } from "./node-mode.ts";
import { restoreRecord } from "./node-resolver.ts";

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
  const steps = [
    tried(() => restoreFile(record, host)),
    tried(() => {
      const { fd } = proveNamespace(record, host, bracket.homeId);
      try {
        bracket.within(fd, () => undoIn(record, memory));
      } finally {
        closeQuietly(fd);
      }
      const { addresses, routeLocalnet } = record;
      return [
        ...(addresses.length === 0 ? [] : [`took ${addresses.map(({ address }) => address).join(", ")} from lo`]),
        ...Object.entries(routeLocalnet).map(([name, value]) => `set route_localnet of ${name} to ${value} again`),
      ];
    }),
  ];
  return { did: steps.flatMap(({ did }) => did), isWhole: steps.every(({ isWhole }) => isWhole) };
}

function restoreFile({ resolvConf }: NodeRecord, { root }: EngineHost): string[] {
  if (resolvConf === undefined) return [];
  switch (restoreRecord((flags) => openInRoot(root, resolvConf.path, flags), resolvConf)) {
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
