/**
 * Culprit: why a probe may have failed. Reads the rules that stand in a namespace and names those that can keep a query
 * from us: address translation before ours, and drops. A notrack rule is not among them: the zone that our first chain
 * sets has the packet tracked, whether the rule comes before or after.
 */
import { LIMITS } from "../../base/limits.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { visitFirst } from "../../kernel/nfnetlink.ts";
import { attributeList, attributesIn, textOf } from "../../kernel/netlink-message.ts";
import * as nft from "../../kernel/nft-constants.ts";
import { chainsIn, xtablesIn } from "../../kernel/xtables.ts";
import { hasOurChains } from "./iptables-chains.ts";
import { foreignTablesIn } from "./iptables-text.ts";
import { iptablesTool } from "./iptables-tool.ts";
import { TABLE_NAME } from "./plan.ts";

const FAMILY_NAMES = new Map([
  [1, "inet"],
  [2, "ip"],
]);
const PRIORITY_CONNTRACK = -200;
const OUR_PRIORITY_NAT = -101;

interface Chain {
  readonly family: string;
  readonly table: string;
  readonly name: string;
  /** Where the kernel calls it; undefined for a chain that only others jump to. */
  readonly hook: { readonly name: string; readonly priority: number } | undefined;
  readonly type: string;
  readonly isDropPolicy: boolean;
  /** What its rules do, in order: the names of their expressions, with "drop" for a verdict. */
  readonly rules: readonly (readonly string[])[];
}

/** Sentences, the most telling first; to be called inside the namespace. */
export function findCulprits(memory: NetlinkMemory): string[] {
  const patience = new ReadBudget();
  const chains = readChains(memory, patience).filter(({ family, table }) => !(family === "ip" && table === TABLE_NAME));
  return [
    ...chains.filter(translatesEarlier).map((chain) => `${describe(chain)} translates addresses before dns11 does`),
    ...chains.filter(drops).map((chain) => `${describe(chain)} drops packets`),
    ...(patience.isExhausted ? ["there are more rules than are looked at"] : []),
    ...legacyTables(),
  ];
}

/** How much is looked at, of all kinds together. */
class ReadBudget {
  readonly #endMs = performance.now() + LIMITS.culpritMs;
  #objects = 0;
  isExhausted = false;

  /** Whether there is time for another one. A few are looked at on the busiest machine. */
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
  return `chain "${name}" of table ${family} "${table}"${where}${early}`;
}

/** Chains first: of whoever has made very many rules, some are known then all the same. */
function readChains(memory: NetlinkMemory, patience: ReadBudget): Chain[] {
  const chains: Omit<Chain, "rules">[] = [];
  visitFirst(memory, { command: nft.NFT_MSG_GETCHAIN, family: 0 }, (familyNumber, bytes) => {
    if (!patience.take()) return false;
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
  const rules = readRules(memory, patience);
  return chains.map((chain) => ({ ...chain, rules: rules.get(`${chain.family} ${chain.table} ${chain.name}`) ?? [] }));
}

/** Of a namespace with very many rules the first ones, which is where a person would begin to look, too. */
function readRules(memory: NetlinkMemory, patience: ReadBudget): Map<string, string[][]> {
  const rules = new Map<string, string[][]>();
  visitFirst(memory, { command: nft.NFT_MSG_GETRULE, family: 0 }, (familyNumber, bytes) => {
    if (!patience.take()) return false;
    const attributes = attributesIn(bytes);
    const table = textOf(attributes.get(nft.NFTA_RULE_TABLE));
    const chain = textOf(attributes.get(nft.NFTA_RULE_CHAIN));
    const key = `${FAMILY_NAMES.get(familyNumber) ?? ""} ${table} ${chain}`;
    const expressions = attributeList(attributes.get(nft.NFTA_RULE_EXPRESSIONS) ?? Buffer.alloc(0));
    const words = expressions.map(([, expression]) => expressionName(expression));
    const others = rules.get(key);
    if (others === undefined) rules.set(key, [words]);
    else others.push(words);
    return undefined;
  });
  return rules;
}

/** An expression's name; "drop" for the verdict that ends a packet. */
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

function hookOf(value: Buffer | undefined): Chain["hook"] {
  if (value === undefined) return undefined;
  const attributes = attributesIn(value);
  const number = attributes.get(nft.NFTA_HOOK_HOOKNUM)?.readUInt32BE(0) ?? 0;
  const priority = attributes.get(nft.NFTA_HOOK_PRIORITY)?.readInt32BE(0) ?? 0;
  return { name: nft.NF_HOOKS[number] ?? "unknown", priority };
}

/** The older iptables keeps its rules where nf_tables does not see them; nat is Docker's, the others are somebody's. */
function legacyTables(): string[] {
  const tables = xtablesIn("ip");
  const unread = tables.filter((table) => chainsIn("ip", table) === undefined);
  const names = hasOurChains("ip") ? foreignTablesIn(iptablesTool().save("ip", undefined)) : tables;
  const others = names.filter((name) => name !== "nat");
  return [
    ...unread.map((table) => `iptables-legacy's table ${table} is too large, or changes too often, to be looked at`),
    ...(others.length === 0 ? [] : [`iptables-legacy has rules in: ${others.join(", ")}`]),
  ];
}
