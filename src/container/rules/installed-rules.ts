/**
 * Standing: what is there of our rules in a namespace, of any tier, and who holds it. Rules that no process owns may be a
 * running instance's all the same: then somebody still has the ports to which they lead.
 */
import {
  SystemFault,
  AF_INET,
  AF_INET6,
  SOCK_DGRAM,
  SOCK_STREAM,
  bindTo,
  closeQuietly,
  socket,
} from "../../kernel/libc.ts";
import { type NetlinkWriter, attributeList, attributesIn, textOf } from "../../kernel/netlink-message.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { visitTables } from "../../kernel/nfnetlink.ts";
import * as nft from "../../kernel/nft-constants.ts";
import { Fault } from "../../base/lib/fault.ts";
import { addressBytes, socketAddress } from "../../base/model/address.ts";
import type { FailureCode } from "../../base/model/not-served.ts";
import { FAMILY_NUMBER } from "./nft-commands.ts";
import { hasOurChains } from "./iptables-chains.ts";
import { CHAIN_PREFIX, listenersIn } from "./iptables-text.ts";
import { iptablesTool } from "./iptables-tool.ts";
import { type ChainName, IP_FAMILIES, type IpFamily, type Protocol, TABLE_NAME } from "./plan.ts";

/** What tables say that `dns11 kind --in-node --once` makes. */
export const PERMANENT_COMMENT = "dns11 in the node, once";

export interface InstalledRules {
  /** A table of nf_tables, or chains of the older iptables. */
  readonly kind: "table" | "chains";
  readonly family: IpFamily;
  /** What it is called when somebody is told. */
  readonly title: string;
  /** A process that runs; nobody, where it was left behind; or it is meant to stay without anybody. */
  readonly owner: "instance" | "nobody" | "stays";
}

const OWNED_ELSEWHERE = "OWNED_ELSEWHERE" satisfies FailureCode;

/** To be called inside the namespace. */
export function installedRules(memory: NetlinkMemory): InstalledRules[] {
  return [...installedTables(memory), ...IP_FAMILIES.flatMap(installedChains)];
}

/** Throws where somebody serves the namespace already, before anything is changed in it; returns what was left behind. */
export function requireUnserved(memory: NetlinkMemory): readonly InstalledRules[] {
  const standing = installedRules(memory);
  const held = standing.find(({ owner: holder }) => holder !== "nobody");
  if (held === undefined) return standing;
  if (held.owner === "instance") throw ownedElsewhere(held.title);
  throw new Fault(OWNED_ELSEWHERE, `The table "${TABLE_NAME}" was made by dns11 in the node, to stay`, {
    remedy: "Its pods are served by it. To have them served from outside: dns11 kind --in-node --undo, in the node.",
  });
}

export function ownedElsewhere(title: string, cause?: unknown): Fault {
  return new Fault(OWNED_ELSEWHERE, `The ${title} of this namespace belongs to another running instance`, {
    cause,
    remedy: "An instance inside the container serves it already, or another one serves the same engine.",
  });
}

export function tableTitle(family: IpFamily): string {
  return `table ${family} "${TABLE_NAME}"`;
}

function installedTables(memory: NetlinkMemory): InstalledRules[] {
  const found: { readonly family: IpFamily; readonly owner: InstalledRules["owner"] | undefined }[] = [];
  for (const family of IP_FAMILIES) {
    // Asked for by its name: others may have made any number.
    const select = (w: NetlinkWriter): void => w.text(nft.NFTA_TABLE_NAME, TABLE_NAME);
    const wanted = { command: nft.NFT_MSG_GETTABLE, family: FAMILY_NUMBER[family], isOne: true, select };
    visitTables(memory, wanted, (_, bytes) => {
      const attributes = attributesIn(bytes);
      const comment = textOf(attributes.get(nft.NFTA_TABLE_USERDATA)?.subarray(2));
      if (attributes.has(nft.NFTA_TABLE_OWNER)) found.push({ family, owner: "instance" });
      else found.push({ family, owner: comment === PERMANENT_COMMENT ? "stays" : undefined });
    });
  }
  return found.map(({ family, owner }) => ({
    kind: "table",
    family,
    title: tableTitle(family),
    owner: owner ?? ownerOf(listenersOf(memory, family)),
  }));
}

/** The rules of one chain of our table, whoever made it. */
export function visitRulesOf(
  memory: NetlinkMemory,
  family: IpFamily,
  chain: ChainName,
  visit: (attributes: ReadonlyMap<number, Buffer>) => void,
): void {
  const select = (w: NetlinkWriter): void => {
    w.text(nft.NFTA_RULE_TABLE, TABLE_NAME);
    w.text(nft.NFTA_RULE_CHAIN, chain);
  };
  const wanted = { command: nft.NFT_MSG_GETRULE, family: FAMILY_NUMBER[family], select };
  visitTables(memory, wanted, (_, bytes) => {
    const attributes = attributesIn(bytes);
    if (textOf(attributes.get(nft.NFTA_RULE_TABLE)) !== TABLE_NAME) return;
    if (textOf(attributes.get(nft.NFTA_RULE_CHAIN)) === chain) visit(attributes);
  });
}

/** From the rules for replies, which stand as long as anybody is answered: each compares protocol, address and port. */
function listenersOf(memory: NetlinkMemory, family: IpFamily): Listener[] {
  const listeners: Listener[] = [];
  visitRulesOf(memory, family, "reply", (attributes) => {
    const values = attributeList(attributes.get(nft.NFTA_RULE_EXPRESSIONS) ?? Buffer.alloc(0)).flatMap(([, each]) =>
      comparedValues(attributesIn(each)),
    );
    const protocol = values.find(({ length }) => length === 1);
    const address = values.find(({ length }) => length >= 4);
    const port = values.find(({ length }) => length === 2);
    if (protocol === undefined || address === undefined || port === undefined) return;
    const isTcp = protocol[0] === IPPROTO_TCP;
    listeners.push({ protocol: isTcp ? "tcp" : "udp", address: Buffer.from(address), port: port.readUInt16BE(0) });
  });
  return listeners;
}

const IPPROTO_TCP = 6;

function comparedValues(expression: ReadonlyMap<number, Buffer>): Buffer[] {
  if (textOf(expression.get(nft.NFTA_EXPR_NAME)) !== "cmp") return [];
  const data = attributesIn(expression.get(nft.NFTA_EXPR_DATA) ?? Buffer.alloc(0)).get(nft.NFTA_CMP_DATA);
  const value = attributesIn(data ?? Buffer.alloc(0)).get(nft.NFTA_DATA_VALUE);
  return value === undefined ? [] : [value];
}

function installedChains(family: IpFamily): InstalledRules[] {
  if (!hasOurChains(family)) return [];
  const listeners = listenersIn(iptablesTool().save(family, undefined)).flatMap(({ protocol, address, port }) => {
    const bytes = addressBytes(address);
    return bytes === undefined ? [] : [{ protocol, address: bytes, port }];
  });
  const title = `chains ${CHAIN_PREFIX}* of ${family === "ip" ? "iptables" : "ip6tables"}-legacy`;
  return [{ kind: "chains", family, title, owner: ownerOf(listeners) }];
}

interface Listener {
  readonly protocol: Protocol;
  readonly address: Uint8Array;
  readonly port: number;
}

/** Whoever runs has all of its ports; one of them alone may have become somebody else's. */
function ownerOf(listeners: readonly Listener[]): InstalledRules["owner"] {
  return listeners.length > 0 && listeners.every(isTaken) ? "instance" : "nobody";
}

function isTaken({ protocol, address, port }: Listener): boolean {
  const domain = address.length === 4 ? AF_INET : AF_INET6;
  const fd = socket(domain, protocol === "udp" ? SOCK_DGRAM : SOCK_STREAM);
  try {
    bindTo(fd, socketAddress(address, port), protocol);
    return false;
  } catch (error) {
    return error instanceof SystemFault && error.code === "EADDRINUSE";
  } finally {
    closeQuietly(fd);
  }
}
