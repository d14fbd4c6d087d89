/**
 * IptablesText: a rule plan as input of iptables-restore. Our chains are in shared tables, each entered from the head
 * of a built-in chain, and are identified by their names; nothing else is touched.
 *
 * Root in a container controls the existing rules, with line ends in comments and any names, while our text is executed
 * by the machine's root. So text that was read is never written back: the output consists of our own words only.
 */
import { type InstalledChains, type Saved, installedIn } from "./iptables-saved.ts";
import { TABLE_OF, type Table, chainNameOf } from "./our-chains.ts";
import type { Action, ChainPlan, Match, TablePlan } from "./plan.ts";

/**
 * The order in which tables change. A query in our zone that Docker's rules redirect to its resolver gets no answer:
 * the reply is in another zone, which has no entry for it. A query that reaches us without a zone is answered, by our
 * reply rules. So attaching starts with the redirect and detaching ends with it.
 */
const ATTACH_ORDER: readonly Table[] = ["nat", "raw", "mangle"];
const DETACH_ORDER: readonly Table[] = ["raw", "nat", "mangle"];

export interface TextOptions {
  readonly hasZones: boolean;
  readonly interfaceName: (index: number) => string;
}

interface RestoreText {
  /** Makes our chains match the plan; empty if there is nothing to add or remove. */
  readonly text: string;
  /** Chains that are only emptied, because foreign rules jump to them. */
  readonly emptied: readonly string[];
}

export function restoreText(plan: TablePlan | undefined, saved: Saved, options: TextOptions): RestoreText {
  const installed = installedIn(saved);
  const tables = (redirectsNewQueries(plan) ? ATTACH_ORDER : DETACH_ORDER).map((table) => {
    const chains = (plan?.chains ?? []).filter(({ name }) => TABLE_OF[name] === table);
    const planned = options.hasZones ? chains : chains.filter(({ hook, type }) => type === "nat" || hook === "input");
    return tableText(table, planned, installed[table], options);
  });
  return { text: tables.map(({ text }) => text).join(""), emptied: tables.flatMap(({ emptied }) => emptied) };
}

/** False for a draining plan, which redirects only connections that are open. */
function redirectsNewQueries(plan: TablePlan | undefined): boolean {
  const rules = plan?.chains.flatMap((chain) => chain.rules) ?? [];
  return rules.some(({ match, action }) => action.kind === "dnat" && match.sourcePort === undefined);
}

function tableText(
  table: Table,
  planned: readonly ChainPlan[],
  { chains, jumps, inUse }: InstalledChains,
  { interfaceName }: TextOptions,
): RestoreText {
  const names = planned.map(nameOf);
  const all = [...new Set([...chains, ...names])];
  const obsolete = all.filter((name) => !names.includes(name));
  const emptied = obsolete.filter((name) => inUse.has(name));
  if (all.length === 0) return { text: "", emptied };
  const family = (address: string): string => (address.includes(":") ? `[${address}]` : address);
  const rules = planned.flatMap((chain) =>
    chain.rules.map(({ match, action }) =>
      ["-A", nameOf(chain), ...matchWords(match, interfaceName), ...actionWords(action, family)].join(" "),
    ),
  );
  const lines = [
    `*${table}`,
    // Creates the chain, or empties an existing one.
    ...all.map((name) => `:${name} - [0:0]`),
    ...jumps.map(({ from, to }) => `-D ${from} -j ${to}`),
    ...planned.map((chain) => `-I ${chain.hook.toUpperCase()} 1 -j ${nameOf(chain)}`),
    ...rules,
    ...obsolete.filter((name) => !inUse.has(name)).map((name) => `-X ${name}`),
    "COMMIT",
    "",
  ];
  return { text: lines.join("\n"), emptied };
}

function nameOf({ name }: ChainPlan): string {
  return chainNameOf(name);
}

function matchWords(match: Match, interfaceName: (index: number) => string): string[] {
  const { mark, interface: interfaceIndex, protocol, source, destination, sourcePort, destinationPort } = match;
  return [
    ...(interfaceIndex === undefined ? [] : ["-i", interfaceName(interfaceIndex)]),
    ...(match.isFromOutside === true ? ["!", "-i", "lo"] : []),
    ...(source === undefined ? [] : ["-s", source]),
    ...(destination === undefined ? [] : ["-d", destination]),
    ...(match.isToLoopback === true ? ["-d", "127.0.0.0/8"] : []),
    ...(protocol === undefined ? [] : ["-p", protocol]),
    ...(sourcePort === undefined ? [] : ["--sport", String(sourcePort)]),
    ...(destinationPort === undefined ? [] : ["--dport", String(destinationPort)]),
    ...(mark === undefined ? [] : ["-m", "mark", "--mark", `0x${mark.toString(16)}`]),
    ...(match.isNotDnat === true ? ["-m", "conntrack", "!", "--ctstate", "DNAT"] : []),
    ...(match.isDnat === true ? ["-m", "conntrack", "--ctstate", "DNAT"] : []),
  ];
}

/** Accept returns from our chain, so that later rules still apply, as they do with a table of our own. */
function actionWords(action: Action, bracketed: (address: string) => string): string[] {
  switch (action.kind) {
    case "accept":
      return ["-j", "RETURN"];
    case "drop":
      return ["-j", "DROP"];
    case "zone":
      return ["-j", "CT", "--zone", String(action.zone)];
    case "notrack":
      // Such a rule is made only where a program at lo does the rest, which is never beside iptables.
      throw new TypeError("iptables rules are always tracked");
    case "dnat":
      return ["-j", "DNAT", "--to-destination", `${bracketed(action.address)}:${action.port}`];
    case "snat":
      return [
        "-j",
        "SNAT",
        "--to-source",
        `${action.address === undefined ? "" : bracketed(action.address)}:${action.port}`,
      ];
  }
}
