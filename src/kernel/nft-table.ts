/**
 * NftTable: one table of nf_tables, and the commands that create and change it, its sets, its chains and their rules. Errors name the
 * command as the methods are called.
 */
import { NLM_F_APPEND, NLM_F_CREATE, type NetlinkWriter } from "./netlink-message.ts";
import { type NftCommand, deleteTable } from "./nfnetlink.ts";
import * as nft from "./nft-constants.ts";
import { type Expression, type Rule, writeExpression, writeRule, writeVerdict } from "./nft-expressions.ts";

export interface SetPlan {
  readonly name: string;
  readonly keyLength: number;
  /** The type as which nft(8) shows keys. */
  readonly shownAs: number;
  readonly flags?: number;
  /** The most elements that it may have. */
  readonly size?: number;
  readonly isVerdictMap?: boolean;
  /** Each element has this expression, such as a limit of its own. */
  readonly each?: Expression;
}

export interface SetElement {
  readonly key: Uint8Array;
  readonly timeoutMs?: number;
  /** For an element of a map: the code, and the chain of a goto. */
  readonly verdict?: { readonly code: number; readonly chain?: string };
}

/** A hook of the kernel that runs a chain. */
interface ChainHook {
  readonly number: number;
  readonly priority: number;
  readonly device?: string;
  /** By default `filter`. */
  readonly type?: string;
}

/** An attribute has a length of sixteen bits, so a command cannot have more. */
const ELEMENTS_OF_A_COMMAND = 500;

export class NftTable {
  readonly family: number;
  readonly name: string;

  constructor(family: number, name: string) {
    this.family = family;
    this.name = name;
  }

  /** `comment` is shown by nft(8). */
  create(flags: number, comment?: string): NftCommand {
    return this.#command(nft.NFT_MSG_NEWTABLE, NLM_F_CREATE, "", (w) => {
      w.text(nft.NFTA_TABLE_NAME, this.name);
      if (flags !== 0) w.u32(nft.NFTA_TABLE_FLAGS, flags);
      if (comment === undefined) return;
      const text = Buffer.from(`${comment}\0`, "latin1");
      w.attribute(nft.NFTA_TABLE_USERDATA, Buffer.concat([Buffer.of(nft.UDATA_COMMENT, text.length), text]));
    });
  }

  delete(): NftCommand {
    return deleteTable(this.family, this.name);
  }

  /**
   * Creates a set, or leaves an existing one as it is. The kernel needs its id only for references within one transaction, and there are
   * none.
   */
  set({ name, keyLength, shownAs, flags = 0, size, isVerdictMap, each }: SetPlan): NftCommand {
    return this.#command(nft.NFT_MSG_NEWSET, NLM_F_CREATE, `set ${name} of `, (w) => {
      w.text(nft.NFTA_SET_TABLE, this.name);
      w.text(nft.NFTA_SET_NAME, name);
      w.u32(nft.NFTA_SET_FLAGS, flags);
      w.u32(nft.NFTA_SET_KEY_TYPE, shownAs);
      w.u32(nft.NFTA_SET_KEY_LEN, keyLength);
      if (isVerdictMap === true) w.u32(nft.NFTA_SET_DATA_TYPE, nft.NFT_DATA_VERDICT);
      if (size !== undefined) w.nested(nft.NFTA_SET_DESC, () => w.u32(nft.NFTA_SET_DESC_SIZE, size));
      w.u32(nft.NFTA_SET_ID, 1);
      if (each !== undefined) w.nested(nft.NFTA_SET_EXPR, () => writeExpression(w, each));
    });
  }

  deleteSet(name: string): NftCommand {
    return this.#command(nft.NFT_MSG_DELSET, 0, `set ${name} of `, (w) => {
      w.text(nft.NFTA_SET_TABLE, this.name);
      w.text(nft.NFTA_SET_NAME, name);
    });
  }

  /** Adds elements to a set, or removes them, in as many commands as needed. */
  elements(change: "add" | "remove", set: string, elements: readonly SetElement[]): NftCommand[] {
    const [command, flags] = change === "add" ? [nft.NFT_MSG_NEWSETELEM, NLM_F_CREATE] : [nft.NFT_MSG_DELSETELEM, 0];
    const count = Math.ceil(elements.length / ELEMENTS_OF_A_COMMAND);
    return Array.from({ length: count }, (_, index) => {
      const piece = elements.slice(index * ELEMENTS_OF_A_COMMAND, (index + 1) * ELEMENTS_OF_A_COMMAND);
      return this.#command(command, flags, `elements of ${set} of `, (w) => {
        w.text(nft.NFTA_SET_ELEM_LIST_TABLE, this.name);
        w.text(nft.NFTA_SET_ELEM_LIST_SET, set);
        w.nested(nft.NFTA_SET_ELEM_LIST_ELEMENTS, () => {
          for (const element of piece) w.nested(nft.NFTA_LIST_ELEM, () => writeElement(w, element, change));
        });
      });
    });
  }

  /** Removes all elements of a set. */
  flushSet(name: string): NftCommand {
    return this.#command(nft.NFT_MSG_DELSETELEM, 0, `elements of ${name} of `, (w) => {
      w.text(nft.NFTA_SET_ELEM_LIST_TABLE, this.name);
      w.text(nft.NFTA_SET_ELEM_LIST_SET, name);
    });
  }

  /** Creates a chain, or leaves an existing one as it is. */
  chain(name: string, hook?: ChainHook): NftCommand {
    return this.#command(nft.NFT_MSG_NEWCHAIN, NLM_F_CREATE, `chain ${name} of `, (w) => {
      w.text(nft.NFTA_CHAIN_TABLE, this.name);
      w.text(nft.NFTA_CHAIN_NAME, name);
      if (hook === undefined) return;
      w.nested(nft.NFTA_CHAIN_HOOK, () => {
        w.u32(nft.NFTA_HOOK_HOOKNUM, hook.number);
        w.u32(nft.NFTA_HOOK_PRIORITY, hook.priority);
        if (hook.device !== undefined) w.text(nft.NFTA_HOOK_DEV, hook.device);
      });
      w.u32(nft.NFTA_CHAIN_POLICY, nft.NF_ACCEPT);
      w.text(nft.NFTA_CHAIN_TYPE, hook.type ?? "filter");
    });
  }

  deleteChain(name: string): NftCommand {
    return this.#command(nft.NFT_MSG_DELCHAIN, 0, `chain ${name} of `, (w) => {
      w.text(nft.NFTA_CHAIN_TABLE, this.name);
      w.text(nft.NFTA_CHAIN_NAME, name);
    });
  }

  /** Adds rules at the end of a chain. */
  rules(chain: string, rules: readonly Rule[]): NftCommand[] {
    return rules.map((rule, index) =>
      this.#command(nft.NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, `rule ${index + 1} of ${chain} of `, (w) => {
        w.text(nft.NFTA_RULE_TABLE, this.name);
        w.text(nft.NFTA_RULE_CHAIN, chain);
        w.nested(nft.NFTA_RULE_EXPRESSIONS, () => writeRule(w, rule));
      }),
    );
  }

  /** Replaces all rules of a chain. */
  replaceRules(chain: string, rules: readonly Rule[]): NftCommand[] {
    return [this.deleteRules(chain), ...this.rules(chain, rules)];
  }

  /** Deletes the rules of a chain; without one, those of all chains. */
  deleteRules(chain?: string): NftCommand {
    return this.#command(nft.NFT_MSG_DELRULE, 0, `rules of ${chain === undefined ? "" : `${chain} of `}`, (w) => {
      w.text(nft.NFTA_RULE_TABLE, this.name);
      if (chain !== undefined) w.text(nft.NFTA_RULE_CHAIN, chain);
    });
  }

  #command(command: number, flags: number, about: string, write: NftCommand["write"]): NftCommand {
    return { family: this.family, command, flags, about: `${about}table ${this.name}`, write };
  }
}

function writeElement(w: NetlinkWriter, { key, timeoutMs, verdict }: SetElement, change: "add" | "remove"): void {
  w.nested(nft.NFTA_SET_ELEM_KEY, () => w.attribute(nft.NFTA_DATA_VALUE, key));
  if (change === "remove") return;
  if (timeoutMs !== undefined) w.u64(nft.NFTA_SET_ELEM_TIMEOUT, timeoutMs);
  if (verdict !== undefined) w.nested(nft.NFTA_SET_ELEM_DATA, () => writeVerdict(w, verdict.code, verdict.chain));
}

/**
 * The key of sets that hold addresses with a protocol and a port: ADDRESS . PROTOCOL . PORT, each field in whole words.
 */
export const WORD_BYTES = 4;
/** The bytes of the fields after the address. */
export const PORT_FIELDS_BYTES = 2 * WORD_BYTES;

interface PortKey {
  readonly address: Buffer;
  readonly protocol: number;
  readonly port: number;
}

export function portKey(address: Uint8Array, protocol: number, port: number): Buffer {
  const key = Buffer.alloc(address.length + PORT_FIELDS_BYTES);
  key.set(address);
  key[address.length] = protocol;
  key.writeUInt16BE(port, address.length + WORD_BYTES);
  return key;
}

export function readPortKey(key: Buffer): PortKey {
  const at = key.length - PORT_FIELDS_BYTES;
  return { address: key.subarray(0, at), protocol: key[at] ?? 0, port: key.readUInt16BE(at + WORD_BYTES) };
}
