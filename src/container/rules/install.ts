/**
 * Install: tables that outlive whoever makes them, and the way back from rules that nobody holds, of any tier.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { NftSocket } from "../../kernel/nfnetlink.ts";
import { deleteCommands, lastingCommands } from "./encode.ts";
import { removeChains } from "./iptables-chains.ts";
import { type Family, TABLE_NAME, type TablePlan } from "./plan.ts";
import { STAYING_COMMENT, type Standing, standingRules } from "./standing.ts";

/** Tables that stay when we are gone, instead of those that stay already. */
export function makeLasting(memory: NetlinkMemory, plans: readonly TablePlan[]): void {
  removeLasting(memory);
  withSocket(memory, (nft) => nft.transact(lastingCommands(plans, STAYING_COMMENT)));
}

/** Removes what nobody holds any more, or was meant to stay; returns what that was. */
export function removeLasting(memory: NetlinkMemory): string[] {
  return standingRules(memory)
    .filter(({ holder }) => holder !== "instance")
    .map((standing) => {
      removeStanding(memory, standing);
      return standing.title;
    });
}

/** From the namespace that the thread is in. */
export function removeStanding(memory: NetlinkMemory, { kind, family }: Standing): void {
  if (kind === "table") removeTable(memory, family);
  else removeChains(family, undefined);
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
