/**
 * Docker rules: whether the rules that redirect 127.0.0.11 to Docker's resolver still exist, in whichever of the three forms the
 * engine wrote them; and which iptables-legacy rules redirect or drop packets to port 53.
 */
import { type LegacyRule, legacyRules } from "../../kernel/legacy-rules.ts";
import type { Xtables } from "../../kernel/xtables.ts";
import { attributesIn, textOf } from "../../kernel/netlink-message.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { visitFirst } from "../../kernel/nfnetlink.ts";
import * as nft from "../../kernel/nft-constants.ts";
import { DOCKER_CHAIN, DOCKER_TABLE } from "../../container/rules/port-redirects.ts";

export type DockerRules = "iptables (nft)" | "iptables-legacy" | "nftables";

const DNS_PORT = 53;
const TRANSLATING = new Set(["DNAT", "REDIRECT"]);
const DROPPING = new Set(["DROP", "REJECT"]);

/**
 * Call inside the namespace; `tables` are its IPv4 tables of iptables-legacy. undefined if there are too many rules to read.
 */
export function dockerRules(memory: NetlinkMemory, tables: Xtables | undefined): readonly DockerRules[] | undefined {
  const found = new Set<DockerRules>();
  const isComplete = visitFirst(memory, { command: nft.NFT_MSG_GETRULE, family: 0 }, (_, bytes) => {
    const attributes = attributesIn(bytes);
    if (textOf(attributes.get(nft.NFTA_RULE_TABLE)) === DOCKER_TABLE) found.add("nftables");
    if (textOf(attributes.get(nft.NFTA_RULE_CHAIN)) === DOCKER_CHAIN) found.add("iptables (nft)");
  });
  const legacy = legacyRules(tables, "nat");
  if (legacy?.some(({ chain, target }) => chain === DOCKER_CHAIN && target === "DNAT") === true) {
    found.add("iptables-legacy");
  }
  return found.size === 0 && (legacy === undefined || !isComplete) ? undefined : [...found];
}

/** Sentences about iptables-legacy. */
export function legacyRuleCulprits(tables: Xtables | undefined): readonly string[] {
  const rulesOf = (table: string): readonly LegacyRule[] => legacyRules(tables, table) ?? [];
  const redirected = rulesOf("nat").filter(
    (rule) => TRANSLATING.has(rule.target) && isForeign(rule) && isAboutDns(rule),
  );
  const dropped = [...(tables?.keys() ?? [])]
    .flatMap((table) => rulesOf(table).map((rule) => ({ ...rule, table })))
    .filter((rule) => DROPPING.has(rule.target) && rule.chain !== "FORWARD" && isForeign(rule) && isAboutDns(rule));
  return [
    ...unique(redirected.map(({ chain }) => `chain "${chain}" of iptables-legacy table nat redirects port 53`)),
    ...unique(dropped.map(({ chain, table }) => `chain "${chain}" of iptables-legacy table ${table} drops packets`)),
  ];
}

function isForeign({ chain }: LegacyRule): boolean {
  return chain !== DOCKER_CHAIN;
}

function isAboutDns({ portFrom, portTo }: LegacyRule): boolean {
  return portFrom <= DNS_PORT && DNS_PORT <= portTo;
}

function unique(sentences: readonly string[]): string[] {
  return [...new Set(sentences)];
}
