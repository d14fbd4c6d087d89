/**
 * Table owner: whose our table is in a namespace, if it is there. A table that a process owns goes with it; one that
 * nobody owns was left behind.
 */
import { attributesIn, textOf } from "../../kernel/netlink-message.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { NftSocket } from "../../kernel/nfnetlink.ts";
import {
  NFTA_TABLE_NAME,
  NFTA_TABLE_OWNER,
  NFTA_TABLE_USERDATA,
  NFT_MSG_GETTABLE,
} from "../../kernel/nft-vocabulary.ts";
import { Fault } from "../../lib/fault.ts";
import { FAMILY_NUMBER } from "./encode.ts";
import { type Family, TABLE_NAME } from "./plan.ts";

/** A process by the port of its netlink socket; "nobody" where it was left behind, "stays" where it is meant to. */
export type TableOwner = number | "nobody" | "stays";

/** What tables say that `dns11 kind --in-node --once` makes. */
export const STAYING_COMMENT = "dns11 in the node, once";

/** To be called inside the namespace; undefined where there is no such table. */
export function tableOwner(memory: NetlinkMemory, family: Family): TableOwner | undefined {
  const nft = new NftSocket(memory);
  let owner: TableOwner | undefined;
  try {
    nft.dump(NFT_MSG_GETTABLE, FAMILY_NUMBER[family], (_, bytes) => {
      const attributes = attributesIn(bytes);
      if (textOf(attributes.get(NFTA_TABLE_NAME)) !== TABLE_NAME) return;
      const comment = attributes.get(NFTA_TABLE_USERDATA)?.subarray(2);
      const unowned = textOf(comment) === STAYING_COMMENT ? "stays" : "nobody";
      owner = attributes.get(NFTA_TABLE_OWNER)?.readUInt32BE(0) ?? unowned;
    });
  } finally {
    nft.close();
  }
  return owner;
}

/** Throws where somebody serves the namespace already, before anything is changed in it. */
export function refuseOwned(memory: NetlinkMemory): void {
  const owner = tableOwner(memory, "ip");
  if (typeof owner === "number") throw ownedElsewhere();
  if (owner !== "stays") return;
  throw new Fault("OWNED_ELSEWHERE", `The table "${TABLE_NAME}" was made by dns11 in the node, to stay`, {
    remedy: "Its pods are served by it. To have them served from outside: dns11 kind --in-node --undo, in the node.",
  });
}

export function ownedElsewhere(cause?: unknown): Fault {
  return new Fault(
    "OWNED_ELSEWHERE",
    `The table "${TABLE_NAME}" of this namespace belongs to another running instance`,
    {
      cause,
      remedy: "An instance inside the container serves it already, or another one serves the same engine.",
    },
  );
}
