/**
 * Table owner: whose our table is in a namespace, if it is there. A table that a process owns goes with it; one that
 * nobody owns was left behind.
 */
import { attributesIn, textOf } from "../../kernel/netlink-message.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { NFPROTO_IPV4, NFPROTO_IPV6, NftSocket } from "../../kernel/nfnetlink.ts";
import { NFTA_TABLE_NAME, NFTA_TABLE_OWNER, NFT_MSG_GETTABLE } from "../../kernel/nft-vocabulary.ts";
import { type Family, TABLE_NAME } from "./plan.ts";

const FAMILY_NUMBER: Record<Family, number> = { ip: NFPROTO_IPV4, ip6: NFPROTO_IPV6 };

/** To be called inside the namespace. The owner is the port of the netlink socket that made the table. */
export function tableOwner(memory: NetlinkMemory, family: Family): number | "nobody" | undefined {
  const nft = new NftSocket(memory);
  let owner: number | "nobody" | undefined;
  try {
    nft.dump(NFT_MSG_GETTABLE, FAMILY_NUMBER[family], (_, bytes) => {
      const attributes = attributesIn(bytes);
      if (textOf(attributes.get(NFTA_TABLE_NAME)) !== TABLE_NAME) return;
      owner = attributes.get(NFTA_TABLE_OWNER)?.readUInt32BE(0) ?? "nobody";
    });
  } finally {
    nft.close();
  }
  return owner;
}
