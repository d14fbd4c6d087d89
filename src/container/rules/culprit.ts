/**
 * Culprits: foreign rules that may explain a failed probe: address translation before ours, and drops. A notrack rule
 * is not a culprit: our first chain sets a zone, and so the packet is tracked whether notrack comes before or after it.
 */
import { LIMITS } from "../../base/limits.ts";
import { cutMiddle } from "../../base/lib/text.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { visitFirst } from "../../kernel/nfnetlink.ts";
import { attributeList, attributesIn, textOf } from "../../kernel/netlink-message.ts";
import * as nft from "../../kernel/nft-constants.ts";
import { readXtables } from "../../kernel/xtables.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import { TABLE_NAME } from "./plan.ts";

const FAMILY_NAMES = new Map([
  [1, "inet"],
  [2, "ip"],
]);
const PRIORITY_CONNTRACK = -200;
const OUR_PRIORITY_NAT = -101;
/** Where an IPv4 header has its two addresses. */
const ADDRESSES_AT: ReadonlySet<number> = new Set([12, 16]);
const IPV4_BYTES = 4;
/** Of what is named; a container may write 255 characters. */
const NAME_LENGTH = 64;
/** The first octet of the loopback network. */
const LOOPBACK = 127;

interface Chain {
  readonly family: string;
  readonly table: string;
  readonly name: string;
  /** The hook of a base chain; undefined for a chain that is only jumped to. */
  readonly hook: { readonly name: string; readonly priority: number } | undefined;
  readonly type: string;
  readonly isDropPolicy: boolean;
  /** Its rules in order: the names of their expressions, and "drop" for that verdict. */
  readonly rules: readonly (readonly string[])[];
}

/** The same, where a failure is one more sentence. */
export async function culpritsIn(netns: NetNamespace): Promise<readonly string[]> {
  try {
    return await findCulprits(netns);
  } catch (error) {
    return [`cannot read the rules of the namespace: ${reasonOf(error)}`];
  }
}

/** Returns sentences, the most likely culprit first. */
export async function findCulprits(netns: NetNamespace): Promise<string[]> {
  const budget = new ReadBudget();
  const all = await netns.read(() => readChains(netns.memory, budget));
  const chains = all.filter(({ family, table }) => !(family === "ip" && table === TABLE_NAME));
  const found = [
    ...chains.filter(translatesEarlier).map((chain) => `${describe(chain)} translates addresses before dns11's rules`),
    ...chains.filter(drops).map((chain) => `${describe(chain)} drops packets`),
  ];
  const more = found.length - LIMITS.culpritsNamed;
  return [
    ...found.slice(0, LIMITS.culpritsNamed),
    ...(more > 0 ? [`and ${more} more`] : []),
    ...(budget.isExhausted ? ["there are too many rules to check all of them"] : []),
    ...(await legacyCulprits(netns)),
  ];
}

/** The limit of objects and time for reading, over chains and rules together. */
class ReadBudget {
  readonly #endMs = performance.now() + LIMITS.culpritMs;
  #objects = 0;
  isExhausted = false;

  /** Takes one object from the budget; false if none is left. A minimum is read however slow the machine is. */
  take(): boolean {
    this.#objects++;
    this.isExhausted ||=
      this.#objects > LIMITS.culpritRules ||
      (this.#objects > LIMITS.culpritRulesAtLeast && performance.now() > this.#endMs);
    return !this.isExhausted;
  }
}

function translatesEarlier({ hook, type, rules }: Chain): boolean {
  return type === "nat" && hook?.name === "output" && hook.priority <= OUR_PRIORITY_NAT && rules.length > 0;
}

function drops({ hook, isDropPolicy, rules }: Chain): boolean {
  if (hook?.name === "forward") return false;
  return isDropPolicy || rules.some((rule) => rule.includes("drop") || rule.includes("reject"));
}

function describe({ family, table, name, hook }: Chain): string {
  const where = hook === undefined ? "" : ` (hook ${hook.name}, priority ${hook.priority})`;
  const early = hook !== undefined && hook.priority < PRIORITY_CONNTRACK ? ", before connection tracking" : "";
  const [chain, owner] = [name, table].map((each) => cutMiddle(each, NAME_LENGTH));
  return `chain "${chain}" of table ${family} "${owner}"${where}${early}`;
}

/** Reads chains first, so that they are known even where there are too many rules to read. */
function readChains(memory: NetlinkMemory, budget: ReadBudget): Chain[] {
  const chains: Omit<Chain, "rules">[] = [];
  visitFirst(memory, { command: nft.NFT_MSG_GETCHAIN, family: 0, isBeginning: true }, (familyNumber, bytes) => {
    if (!budget.take()) return false;
    const family = FAMILY_NAMES.get(familyNumber);
    if (family === undefined) return undefined;
    const attributes = attributesIn(bytes);
    const table = textOf(attributes.get(nft.NFTA_CHAIN_TABLE));
    const name = textOf(attributes.get(nft.NFTA_CHAIN_NAME));
    chains.push({
      family,
      table,
      name,
      hook: hookOf(attributes.get(nft.NFTA_CHAIN_HOOK)),
      type: textOf(attributes.get(nft.NFTA_CHAIN_TYPE)),
      isDropPolicy: attributes.get(nft.NFTA_CHAIN_POLICY)?.readUInt32BE(0) === nft.NF_DROP,
    });
    return undefined;
  });
  const rules = readRules(memory, budget);
  return chains.map((chain) => ({ ...chain, rules: rules.get(`${chain.family} ${chain.table} ${chain.name}`) ?? [] }));
}

/** Reads the first rules only if there are too many. */
function readRules(memory: NetlinkMemory, budget: ReadBudget): Map<string, string[][]> {
  const rules = new Map<string, string[][]>();
  visitFirst(memory, { command: nft.NFT_MSG_GETRULE, family: 0, isBeginning: true }, (familyNumber, bytes) => {
    if (!budget.take()) return false;
    const attributes = attributesIn(bytes);
    const table = textOf(attributes.get(nft.NFTA_RULE_TABLE));
    const chain = textOf(attributes.get(nft.NFTA_RULE_CHAIN));
    const key = `${FAMILY_NAMES.get(familyNumber) ?? ""} ${table} ${chain}`;
    const expressions = attributeList(attributes.get(nft.NFTA_RULE_EXPRESSIONS) ?? Buffer.alloc(0));
    // The ingress rules of a swarm, for example, drop what is not for a published port at one address.
    const names = isOfOtherAddress(expressions.map(([, expression]) => expression))
      ? []
      : expressions.map(([, expression]) => expressionName(expression));
    const known = rules.get(key);
    if (known === undefined) rules.set(key, [names]);
    else known.push(names);
    return undefined;
  });
  return rules;
}

/** An expression's name, or "drop" for that verdict. */
function expressionName(expression: Buffer): string {
  const attributes = attributesIn(expression);
  const name = textOf(attributes.get(nft.NFTA_EXPR_NAME));
  if (name !== "immediate") return name;
  const data = attributesIn(attributes.get(nft.NFTA_EXPR_DATA) ?? Buffer.alloc(0));
  const verdict = attributesIn(data.get(nft.NFTA_IMMEDIATE_DATA) ?? Buffer.alloc(0)).get(nft.NFTA_DATA_VERDICT);
  if (verdict === undefined) return name;
  const code = attributesIn(verdict).get(nft.NFTA_VERDICT_CODE)?.readInt32BE(0);
  return code === nft.NF_DROP ? "drop" : name;
}

/** Whether a rule is about one IPv4 address that is not on the loopback interface, where queries are. */
function isOfOtherAddress(expressions: readonly Buffer[]): boolean {
  return expressions.some((expression, at) => {
    if (!isAddress(expression)) return false;
    const compared = dataOf(expressions[at + 1], "cmp");
    if (compared?.get(nft.NFTA_CMP_OP)?.readUInt32BE(0) !== nft.NFT_CMP_EQ) return false;
    const address = attributesIn(compared.get(nft.NFTA_CMP_DATA) ?? Buffer.alloc(0)).get(nft.NFTA_DATA_VALUE);
    return address?.length === IPV4_BYTES && address[0] !== LOOPBACK;
  });
}

/** It loads the source or the destination of an IPv4 packet. */
function isAddress(expression: Buffer): boolean {
  const data = dataOf(expression, "payload");
  const number = (attribute: number): number | undefined => data?.get(attribute)?.readUInt32BE(0);
  return (
    number(nft.NFTA_PAYLOAD_BASE) === nft.NETWORK_HEADER &&
    ADDRESSES_AT.has(number(nft.NFTA_PAYLOAD_OFFSET) ?? -1) &&
    number(nft.NFTA_PAYLOAD_LEN) === IPV4_BYTES
  );
}

/** The attributes of an expression with this name. */
function dataOf(expression: Buffer | undefined, name: string): ReadonlyMap<number, Buffer> | undefined {
  const attributes = attributesIn(expression ?? Buffer.alloc(0));
  if (textOf(attributes.get(nft.NFTA_EXPR_NAME)) !== name) return undefined;
  return attributesIn(attributes.get(nft.NFTA_EXPR_DATA) ?? Buffer.alloc(0));
}

function hookOf(value: Buffer | undefined): Chain["hook"] {
  if (value === undefined) return undefined;
  const attributes = attributesIn(value);
  const number = attributes.get(nft.NFTA_HOOK_HOOKNUM)?.readUInt32BE(0) ?? 0;
  const priority = attributes.get(nft.NFTA_HOOK_PRIORITY)?.readInt32BE(0) ?? 0;
  return { name: nft.NF_HOOKS[number] ?? "unknown", priority };
}

/** Tables of iptables-legacy, which nf_tables does not list. Docker has its own rules in nat, so nat is no culprit. */
async function legacyCulprits({ within }: NetNamespace): Promise<string[]> {
  const tables = await readXtables(within);
  if (tables === undefined) return ["tables of iptables-legacy cannot be read, because another program changes them"];
  const unread = [...tables].filter(([, table]) => table === undefined).map(([name]) => name);
  const culprits = [...tables.keys()].filter((name) => name !== "nat");
  return [
    ...unread.map((table) => `table ${table} of iptables-legacy is too large, or changes too often, to be read`),
    ...(culprits.length === 0 ? [] : [`iptables-legacy has rules in these tables: ${culprits.join(", ")}`]),
  ];
}
