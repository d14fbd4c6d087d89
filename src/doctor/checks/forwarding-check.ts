/**
 * Forwarding check: whether the host drops what Docker forwards for containers. With its nftables backend, Docker accepts packets in
 * tables of its own, and no rule there overrides a chain of another table that drops them: a dockerd with the iptables backend sets
 * the policy of FORWARD to DROP, and that stays when it is replaced.
 */
import { type Finding, finding } from "../../base/model/finding.ts";
import { legacyRules } from "../../kernel/legacy-rules.ts";
import { attributesIn, textOf } from "../../kernel/netlink-message.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { visitFirst } from "../../kernel/nfnetlink.ts";
import * as nft from "../../kernel/nft-constants.ts";
import type { Within } from "../../kernel/net-namespace.ts";
import { readXtables } from "../../kernel/xtables.ts";

/** Docker's table of each family on the host. */
const DOCKER_BRIDGES = "docker-bridges";
const FORWARD = nft.NF_HOOKS.indexOf("forward");
const [INET, IPV4, IPV6] = [1, 2, 10];
const FAMILIES: ReadonlyMap<number, { readonly name: string; readonly tool?: string }> = new Map([
  [INET, { name: "inet" }],
  [IPV4, { name: "ip", tool: "iptables" }],
  [IPV6, { name: "ip6", tool: "ip6tables" }],
]);

interface DroppingChain {
  readonly what: string;
  /** Changes its policy; undefined where that is another program's. */
  readonly command?: string | undefined;
}

/** Nothing where Docker does not use nftables on the host. */
export async function forwardingFindings(within: Within, memory: NetlinkMemory): Promise<Finding[]> {
  const isDockers = new Set<number>();
  const chains: { readonly family: number; readonly table: string; readonly name: string }[] = [];
  within(() =>
    visitFirst(memory, { command: nft.NFT_MSG_GETCHAIN, family: 0 }, (family, bytes) => {
      const attributes = attributesIn(bytes);
      const table = textOf(attributes.get(nft.NFTA_CHAIN_TABLE));
      if (table === DOCKER_BRIDGES) isDockers.add(family);
      else if (dropsForwarded(attributes)) {
        chains.push({ family, table, name: textOf(attributes.get(nft.NFTA_CHAIN_NAME)) });
      }
    }),
  );
  if (isDockers.size === 0) return [];
  const found: DroppingChain[] = chains
    .filter(({ family }) => family === INET || isDockers.has(family))
    .map(({ family, table, name }) => {
      const { name: familyName = "", tool } = FAMILIES.get(family) ?? {};
      const isOfIptables = tool !== undefined && table === "filter" && name === "FORWARD";
      const command = isOfIptables ? `${tool} -P FORWARD ACCEPT` : undefined;
      return { what: `chain ${name} of table ${familyName} ${table}`, command };
    });
  const legacy = legacyRules(await readXtables(within), "filter") ?? [];
  if (legacy.some(({ chain, isPolicy, target }) => chain === "FORWARD" && isPolicy && target === "DROP")) {
    found.push({ what: "chain FORWARD of iptables-legacy", command: "iptables-legacy -P FORWARD ACCEPT" });
  }
  if (found.length === 0) return [finding("forwarding", "ok", "Docker's nftables rules decide alone")];
  const commands = found.flatMap(({ command }) => command ?? []);
  const detail = `${found.map(({ what }) => what).join(" and ")} drops by its policy what containers send to other networks, unless its own rules accept it; that Docker's nftables rules accept it is not enough`;
  const remedy =
    commands.length > 0
      ? `If a dockerd that used iptables has left it so, run on the Docker host: ${commands.join(" && ")}`
      : "Have that chain accept what comes from and goes to Docker's bridges.";
  return [finding("forwarding", "warning", detail, remedy)];
}

function dropsForwarded(chain: ReadonlyMap<number, Buffer>): boolean {
  const hook = attributesIn(chain.get(nft.NFTA_CHAIN_HOOK) ?? Buffer.alloc(0));
  const isForward = hook.get(nft.NFTA_HOOK_HOOKNUM)?.readUInt32BE(0) === FORWARD;
  return isForward && chain.get(nft.NFTA_CHAIN_POLICY)?.readUInt32BE(0) === nft.NF_DROP;
}
