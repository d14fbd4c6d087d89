/**
 * IptablesText: a rule plan as input of iptables-restore. Our chains are in shared tables, each entered from the head
 * of a built-in chain, and are identified by their names; nothing else is touched.
 *
 * Root in a container controls the existing rules, with line ends in comments and any names, while our text is executed
 * by the machine's root. So text that was read is never written back: the output consists of our own words only.
 */
import {
  type Action,
  type ChainName,
  type ChainPlan,
  GUARD_CHAIN,
  type Match,
  type Protocol,
  type TablePlan,
} from "./plan.ts";

export const CHAIN_PREFIX = "DNS11-";

/** The guard drops in mangle: before the usual filter rules, and after address translation. */
type Table = "nat" | "raw" | "mangle";

const TABLE_OF: Readonly<Record<ChainName, Table>> = {
  zone: "raw",
  query: "nat",
  reply: "nat",
  "pod-zone": "raw",
  "pod-query": "nat",
  guard: "mangle",
};

const OUR_CHAINS = Object.entries(TABLE_OF).map(([name, table]) => ({ name: chainNameOf(name), table }));
/** The table and chain in which the guards drop. */
export const GUARD_LOCATION = { table: TABLE_OF[GUARD_CHAIN], chain: chainNameOf(GUARD_CHAIN) };
/** The built-in chains from which ours are entered. */
const HOOKS = new Set(["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"]);

/**
 * The order in which tables change. A query in our zone that Docker's rules redirect to its resolver gets no answer:
 * the reply is in another zone, which has no entry for it. A query that reaches us without a zone is answered, by our
 * reply rules. So attaching starts with the redirect and detaching ends with it.
 */
const ATTACH_ORDER: readonly Table[] = ["nat", "raw", "mangle"];
const DETACH_ORDER: readonly Table[] = ["raw", "nat", "mangle"];

/** Our chains that exist in a table. */
interface InstalledChains {
  readonly chains: Set<string>;
  /** Rules of built-in chains that only jump to ours. */
  readonly jumps: { readonly from: string; readonly to: string }[];
  /** Chains of ours to which foreign rules jump, too: the kernel does not delete these. */
  readonly inUse: Set<string>;
}

export interface TextOptions {
  readonly hasZones: boolean;
  readonly interfaceName: (index: number) => string;
}

/** Whether this table and name are one of our chains. */
export function isOurChain(table: string, chain: string): boolean {
  return OUR_CHAINS.some((our) => our.name === chain && our.table === table);
}

interface RestoreText {
  /** Makes our chains match the plan; empty if there is nothing to add or remove. */
  readonly text: string;
  /** Chains that are only emptied, because foreign rules jump to them. */
  readonly emptied: readonly string[];
}

export function restoreText(plan: TablePlan | undefined, saved: string, options: TextOptions): RestoreText {
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

/** Our chains by table, from the output of iptables-save. */
function installedIn(saved: string): Readonly<Record<Table, InstalledChains>> {
  const nothing = (): InstalledChains => ({ chains: new Set(), jumps: [], inUse: new Set() });
  const found = { nat: nothing(), raw: nothing(), mangle: nothing() };
  for (const { table, line } of linesIn(saved)) {
    if (table !== "nat" && table !== "raw" && table !== "mangle") continue;
    const { chains, jumps, inUse } = found[table];
    const [, chain] = /^:(\S+) - \[\d+:\d+\]$/.exec(line) ?? [];
    if (chain !== undefined && isOurChain(table, chain)) chains.add(chain);
    const jump = jumpIn(line);
    const target = / -[jg] (\S+)$/.exec(line)?.[1] ?? "";
    if (!isOurChain(table, target)) continue;
    if (jump !== undefined) jumps.push(jump);
    else if (!isOurChain(table, /^-A (\S+) /.exec(line)?.[1] ?? "")) inUse.add(target);
  }
  return found;
}

/** A rule that only jumps from a built-in chain to another chain. */
function jumpIn(line: string): { readonly from: string; readonly to: string } | undefined {
  const [, from = "", to = ""] = /^-A ([A-Z]+) -j ([A-Z\d-]+)$/.exec(line) ?? [];
  return HOOKS.has(from) ? { from, to } : undefined;
}

/** The sockets that our rules redirect to, as found in the reply rules. */
export function listenersIn(
  saved: string,
): { readonly protocol: Protocol; readonly address: string; readonly port: number }[] {
  const reply = `-A ${chainNameOf("reply")} `;
  return linesIn(saved).flatMap(({ table, line }) => {
    const [, address] = / -s ([\da-f.:]+)\/\d+ /.exec(line) ?? [];
    const [, port] = / --sport (\d+) /.exec(line) ?? [];
    if (table !== TABLE_OF.reply || !line.startsWith(reply) || address === undefined || port === undefined) return [];
    return [{ protocol: line.includes(" -p tcp ") ? "tcp" : "udp", address, port: Number(port) }];
  });
}

/** Tables with foreign rules. */
export function foreignTablesIn(saved: string): string[] {
  const foreign = linesIn(saved).filter(({ table, line }) => {
    const [, chain] = /^-A (\S+) /.exec(line) ?? [];
    return chain !== undefined && !isOurChain(table, chain) && !isOurChain(table, jumpIn(line)?.to ?? "");
  });
  return [...new Set(foreign.map(({ table }) => table))];
}

function linesIn(saved: string): { table: string; line: string }[] {
  let table = "";
  return wholeLines(saved).flatMap((text) => {
    if (text.startsWith("*")) table = text.slice(1);
    const [, line] = /^(?:\[\d+:\d+\] )?([:-].*)$/s.exec(text) ?? [];
    return line === undefined ? [] : [{ table, line }];
  });
}

/** Splits into rules: quoted text may contain line ends. */
function wholeLines(saved: string): string[] {
  const lines: string[] = [];
  let open: string[] = [];
  for (const piece of saved.split("\n")) {
    const wasOpen = open.length > 0;
    open.push(piece);
    if (endsInQuotes(piece, wasOpen)) continue;
    lines.push(open.join("\n"));
    open = [];
  }
  return lines;
}

function endsInQuotes(piece: string, beginsInQuotes: boolean): boolean {
  let isQuoted = beginsInQuotes;
  for (let at = 0; at < piece.length; at++) {
    if (piece[at] === '"') isQuoted = !isQuoted;
    else if (isQuoted && piece[at] === "\\") at++;
  }
  return isQuoted;
}

function nameOf({ name }: ChainPlan): string {
  return chainNameOf(name);
}

function chainNameOf(name: string): string {
  return `${CHAIN_PREFIX}${name.toUpperCase()}`;
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
