/**
 * InstalledRules: our tables that exist in a namespace, and their owner. Rules that no process owns
 * may still belong to a running instance: then the ports that they redirect to are in use.
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
import { Fault, codeOf } from "../../base/lib/fault.ts";
import { socketAddress } from "../../base/model/address.ts";
import type { FailureCode } from "../../base/model/finding.ts";
import { FAMILY_NUMBER } from "./nft-commands.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import { type ChainName, IP_FAMILIES, type IpFamily, type Protocol, TABLE_NAME } from "./plan.ts";
import { spawnSync } from "node:child_process";
import { LIMITS } from "../../base/limits.ts";

/** The comment of tables that `dns11 run --in-node --once` installs. */
export const PERMANENT_COMMENT = "dns11 in the node, once";

export interface InstalledRules {
  readonly family: IpFamily;
  /** Messages have it. */
  readonly title: string;
  /** A running process; none, because it died; or none on purpose, for permanent rules. */
  readonly owner: "instance" | "orphaned" | "permanent";
}

/** An instance has a few in a namespace. Whoever may write rules there can name any number. */
const LISTENERS_TRIED = 64;
const OWNED_ELSEWHERE = "OWNED_ELSEWHERE" satisfies FailureCode;

export async function installedRules(netns: NetNamespace): Promise<InstalledRules[]> {
  return await netns.read(() => installedTables(netns.memory));
}

/** Throws if the namespace is served already, before anything is changed; otherwise returns the orphaned rules. */
export async function requireUnserved(netns: NetNamespace): Promise<readonly InstalledRules[]> {
  const rules = await installedRules(netns);
  const owned = rules.find(({ owner }) => owner !== "orphaned");
  if (owned === undefined) return rules;
  if (owned.owner === "instance") throw ownedElsewhere(owned.title);
  throw new Fault(OWNED_ELSEWHERE, `Table "${TABLE_NAME}" was installed permanently from inside the node`, {
    remedy:
      "It already serves the pods of this node. To serve them from outside, run in the node: dns11 run --in-node --undo",
  });
}

export function ownedElsewhere(title: string, cause?: unknown): Fault {
  return new Fault(OWNED_ELSEWHERE, `The ${title} of this namespace belongs to another running instance`, {
    cause,
    remedy: "Stop the other instance: it runs inside the container, or beside the same engine.",
  });
}

export function tableTitle(family: IpFamily): string {
  return `table ${family} "${TABLE_NAME}"`;
}

function installedTables(memory: NetlinkMemory): InstalledRules[] {
  const found: { readonly family: IpFamily; readonly owner: InstalledRules["owner"] | undefined }[] = [];
  // Selected by name: there may be any number of foreign tables.
  const select = (w: NetlinkWriter): void => w.text(nft.NFTA_TABLE_NAME, TABLE_NAME);
  const isOne = true;
  const queries = IP_FAMILIES.map((family) => ({
    command: nft.NFT_MSG_GETTABLE,
    family: FAMILY_NUMBER[family],
    isOne,
    select,
  }));
  visitTables(memory, queries, (number, bytes) => {
    const family = number === FAMILY_NUMBER.ip ? "ip" : "ip6";
    const attributes = attributesIn(bytes);
    const comment = textOf(attributes.get(nft.NFTA_TABLE_USERDATA)?.subarray(2));
    if (attributes.has(nft.NFTA_TABLE_OWNER)) found.push({ family, owner: "instance" });
    else found.push({ family, owner: comment === PERMANENT_COMMENT ? "permanent" : undefined });
  });
  return found.map(({ family, owner }) => ({
    family,
    title: tableTitle(family),
    owner: owner ?? ownerOf(listenersOf(memory, family)),
  }));
}

/** Visits the rules of one chain of our table, whichever process installed it. */
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
  const request = { command: nft.NFT_MSG_GETRULE, family: FAMILY_NUMBER[family], select };
  visitTables(memory, request, (_, bytes) => {
    const attributes = attributesIn(bytes);
    if (textOf(attributes.get(nft.NFTA_RULE_TABLE)) !== TABLE_NAME) return;
    if (textOf(attributes.get(nft.NFTA_RULE_CHAIN)) === chain) visit(attributes);
  });
}

/** Read from the reply rules, which exist as long as anything is answered: each compares protocol, address and port. */
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

interface Listener {
  readonly protocol: Protocol;
  readonly address: Uint8Array;
  readonly port: number;
}

/** A running instance has all of its ports open; a single open port may belong to another program by now. */
function ownerOf(listeners: readonly Listener[]): InstalledRules["owner"] {
  return listeners.length > 0 && listeners.slice(0, LISTENERS_TRIED).every(isTaken) ? "instance" : "orphaned";
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

/** Searched after PATH, which often lacks the sbin folders. */
const SYSTEM_FOLDERS = "/usr/sbin:/sbin:/usr/bin:/bin";
const NO_SUCH_TABLE = /No such file or directory/;

/**
 * Our nf_tables tables in a namespace as nft prints them, for a bug report. dns11 itself does not need nft.
 * `namespace` is a descriptor. An error is part of the text.
 */
export function tableListing(namespace: number): string {
  return IP_FAMILIES.map((family) => {
    const { error, status, stdout, stderr } = spawnSync(
      "nsenter",
      ["--net=/proc/self/fd/3", "--", "nft", "list", "table", family, TABLE_NAME],
      {
        encoding: "utf8",
        timeout: LIMITS.nftListMs,
        killSignal: "SIGKILL",
        env: { PATH: [process.env["PATH"], SYSTEM_FOLDERS].filter(Boolean).join(":"), LC_ALL: "C" },
        stdio: ["ignore", "pipe", "pipe", namespace],
      },
    );
    if (status === 0) return stdout;
    if (error !== undefined) return `nsenter and nft: ${codeOf(error) ?? error.message}\n`;
    return NO_SUCH_TABLE.test(stderr) ? "" : stderr;
  }).join("");
}

const MARK_BYTES = 4;

/**
 * The mark by which packets pass our rules in a namespace to Docker's resolver, read from these rules, for a program that
 * is not the one that made them.
 * Call inside the namespace. Undefined if no mark alone passes: without rules, and where a policy is enforced.
 */
export function installedMark(memory: NetlinkMemory): number | undefined {
  let mark: number | undefined;
  let isFirst = true;
  visitRulesOf(memory, "ip", "query", (attributes) => {
    if (isFirst) mark = markIn(attributeList(attributes.get(nft.NFTA_RULE_EXPRESSIONS) ?? Buffer.alloc(0)));
    isFirst = false;
  });
  return mark;
}

/** It loads the mark, compares it, and has its verdict. */
function markIn(expressions: ReturnType<typeof attributeList>): number | undefined {
  const [load, compare, verdict, ...more] = expressions.map(([, each]) => attributesIn(each));
  if (load === undefined || compare === undefined || verdict === undefined || more.length > 0) return undefined;
  if (textOf(load.get(nft.NFTA_EXPR_NAME)) !== "meta") return undefined;
  const key = dataOf(load).get(nft.NFTA_META_KEY);
  if (key?.readUInt32BE(0) !== nft.NFT_META_MARK) return undefined;
  const value = attributesIn(dataOf(compare).get(nft.NFTA_CMP_DATA) ?? Buffer.alloc(0)).get(nft.NFTA_DATA_VALUE);
  return value?.length === MARK_BYTES ? value.readUInt32LE(0) : undefined;
}

function dataOf(expression: ReadonlyMap<number, Buffer>): ReadonlyMap<number, Buffer> {
  return attributesIn(expression.get(nft.NFTA_EXPR_DATA) ?? Buffer.alloc(0));
}
