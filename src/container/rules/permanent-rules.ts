/**
 * Install: tables that outlive whoever makes them, and the way back from rules that nobody holds, of any tier.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { NftSocket } from "../../kernel/nfnetlink.ts";
import { deleteCommands, permanentCommands } from "./nft-commands.ts";
import { removeChains } from "./iptables-chains.ts";
import { type IpFamily, TABLE_NAME, type TablePlan } from "./plan.ts";
import { PERMANENT_COMMENT, type InstalledRules, installedRules } from "./installed-rules.ts";

/** Tables that stay when we are gone, instead of those that stay already. */
export function installPermanentRules(memory: NetlinkMemory, plans: readonly TablePlan[]): void {
  removeUnownedRules(memory);
  withSocket(memory, (nft) => nft.transact(permanentCommands(plans, PERMANENT_COMMENT)));
}

/** Removes what nobody holds any more, or was meant to stay; returns what that was. */
export function removeUnownedRules(memory: NetlinkMemory): string[] {
  return installedRules(memory)
    .filter(({ owner: holder }) => holder !== "instance")
    .map((standing) => {
      removeInstalledRules(memory, standing);
      return standing.title;
    });
}

/** From the namespace that the thread is in. */
export function removeInstalledRules(memory: NetlinkMemory, { kind, family }: InstalledRules): void {
  if (kind === "table") removeTable(memory, family);
  else removeChains(family, undefined);
}

/** Removes our table of one family, which nobody owns, from the namespace that the thread is in. */
export function removeTable(memory: NetlinkMemory, family: IpFamily): void {
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
