/**
 * TableReader: what the policy's tables hold: what an earlier process left, and what was refused.
 */
import type { NetlinkWriter } from "../../kernel/netlink-message.ts";
import { attributeList, attributesIn, textOf } from "../../kernel/netlink-message.ts";
import type { NftSocket } from "../../kernel/nfnetlink.ts";
import * as nft from "../../kernel/nft-constants.ts";
import { TABLES, TABLE_NAME, type TableFamily } from "./layout.ts";

export interface FoundElement {
  readonly key: Buffer;
  /** How long it still stays; 0 for ever. */
  readonly leftMs: number;
  /** Where an element of a map leads. */
  readonly chain: string | undefined;
}

export class TableReader {
  readonly #nft: NftSocket;

  constructor(socket: NftSocket) {
    this.#nft = socket;
  }

  /** What identifies both tables: whoever removes one and makes it again has another. Undefined if one is missing. */
  identity(): string | undefined {
    const handles = Object.values(TABLES).map((table) => this.#handle(table.family));
    return handles.includes(undefined) ? undefined : handles.join(" ");
  }

  #handle(family: number): string | undefined {
    let handle: string | undefined;
    const select = (w: NetlinkWriter): void => w.text(nft.NFTA_TABLE_NAME, TABLE_NAME);
    this.#nft.find({ command: nft.NFT_MSG_GETTABLE, family, isOne: true, select }, (_family, bytes) => {
      handle = attributesIn(bytes).get(nft.NFTA_TABLE_HANDLE)?.toString("hex");
    });
    return handle;
  }

  /** The names of its sets. */
  sets(): string[] {
    return this.#names("inet", nft.NFT_MSG_GETSET, nft.NFTA_SET_TABLE, nft.NFTA_SET_NAME);
  }

  chains(family: TableFamily): string[] {
    return this.#names(family, nft.NFT_MSG_GETCHAIN, nft.NFTA_CHAIN_TABLE, nft.NFTA_CHAIN_NAME);
  }

  elements(set: string): FoundElement[] {
    const found: FoundElement[] = [];
    const select = (w: NetlinkWriter): void => {
      w.text(nft.NFTA_SET_ELEM_LIST_TABLE, TABLE_NAME);
      w.text(nft.NFTA_SET_ELEM_LIST_SET, set);
    };
    this.#nft.find({ command: nft.NFT_MSG_GETSETELEM, family: TABLES.inet.family, select }, (_family, bytes) => {
      const list = attributesIn(bytes).get(nft.NFTA_SET_ELEM_LIST_ELEMENTS);
      for (const [, element] of list === undefined ? [] : attributeList(list)) {
        const read = elementOf(element);
        if (read !== undefined) found.push(read);
      }
    });
    return found;
  }

  /** The kernel may list those of all tables. */
  #names(family: TableFamily, command: number, tableAttribute: number, nameAttribute: number): string[] {
    const names: string[] = [];
    const select = (w: NetlinkWriter): void => w.text(tableAttribute, TABLE_NAME);
    this.#nft.find({ command, family: TABLES[family].family, select }, (_family, bytes) => {
      const attributes = attributesIn(bytes);
      if (textOf(attributes.get(tableAttribute)) === TABLE_NAME) names.push(textOf(attributes.get(nameAttribute)));
    });
    return names;
  }
}

function elementOf(bytes: Buffer): FoundElement | undefined {
  const attributes = attributesIn(bytes);
  const keyData = attributes.get(nft.NFTA_SET_ELEM_KEY);
  const key = keyData && attributesIn(keyData).get(nft.NFTA_DATA_VALUE);
  if (key === undefined) return undefined;
  const data = attributes.get(nft.NFTA_SET_ELEM_DATA);
  const verdict = data && attributesIn(data).get(nft.NFTA_DATA_VERDICT);
  const chain = verdict && attributesIn(verdict).get(nft.NFTA_VERDICT_CHAIN);
  const left = attributes.get(nft.NFTA_SET_ELEM_EXPIRATION);
  return {
    // The memory that it was read into is used again.
    key: Buffer.from(key),
    leftMs: left === undefined ? 0 : Number(left.readBigUInt64BE(0)),
    chain: chain && textOf(chain),
  };
}
