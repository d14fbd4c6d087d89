/**
 * Install: our tables into a namespace and out of it, by the socket that owns them; whatever stands there under our name
 * already is nobody's, or another instance's.
 */
import { SystemFault } from "../../kernel/libc.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { NftSocket } from "../../kernel/nfnetlink.ts";
import type { Lead } from "../capture/capture.ts";
import { createCommands, deleteCommands, exchangeCommands, lastingCommands } from "./encode.ts";
import { FAMILIES, type Family, TABLE_NAME, type TablePlan, familyOf } from "./plan.ts";
import { STAYING_COMMENT, ownedElsewhere, tableOwner } from "./table-owner.ts";

/** Makes the tables; one that a dead instance of another tier left behind is replaced, one that somebody owns is not. */
export function installTables(nft: NftSocket, plans: readonly TablePlan[]): void {
  const commands = createCommands(plans);
  try {
    nft.transact(commands);
  } catch (error) {
    if (!(error instanceof SystemFault)) throw error;
    if (error.code === "EPERM") throw ownedElsewhere(error);
    if (!plans.some((plan) => wasRemoved(nft, plan))) throw error;
    nft.transact(commands);
  }
}

function wasRemoved(nft: NftSocket, plan: TablePlan): boolean {
  try {
    nft.transact(deleteCommands(plan));
    return true;
  } catch {
    // Then there was no such table, and the first refusal is the one to tell.
    return false;
  }
}

/** Other tables in one step; where that is refused, those that stood still do. */
export function exchangeTables(
  nft: NftSocket,
  leads: readonly Pick<Lead, "bind">[],
  plans: readonly TablePlan[],
): void {
  nft.transact(exchangeCommands(familiesOf(leads), plans));
}

/** Of the families in which these leads are. What the kernel does not let go of goes with the socket. */
export function removeTables(nft: NftSocket, leads: readonly Pick<Lead, "bind">[]): void {
  for (const family of familiesOf(leads)) {
    try {
      nft.transact(deleteCommands({ family, name: TABLE_NAME }));
    } catch {
      // Closing the socket takes it away.
    }
  }
}

function familiesOf(leads: readonly Pick<Lead, "bind">[]): Set<Family> {
  return new Set(leads.map(({ bind }) => familyOf(bind)));
}

/** Tables that stay when we are gone, instead of those that stay already. */
export function makeLasting(memory: NetlinkMemory, plans: readonly TablePlan[]): void {
  removeLasting(memory);
  withSocket(memory, (nft) => nft.transact(lastingCommands(plans, STAYING_COMMENT)));
}

/** Removes what nobody owns any more, or was meant to stay; returns which tables those were. */
export function removeLasting(memory: NetlinkMemory): string[] {
  return FAMILIES.flatMap((family) => {
    const owner = tableOwner(memory, family);
    if (owner === undefined || typeof owner === "number") return [];
    removeTable(memory, family);
    return [`table ${family} ${TABLE_NAME}`];
  });
}

/** Removes our table of one family, which nobody owns, from the namespace that the thread is in. */
export function removeTable(memory: NetlinkMemory, family: Family): void {
  withSocket(memory, (nft) => nft.transact(deleteCommands({ family, name: TABLE_NAME })));
}

function withSocket(memory: NetlinkMemory, use: (nft: NftSocket) => void): void {
  const nft = new NftSocket(memory);
  try {
    use(nft);
  } finally {
    nft.close();
  }
}
