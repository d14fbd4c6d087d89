/**
 * A plan in the words of iptables-restore: chains of our own in tables that others use, too, each entered from the head of
 * one of the kernel's chains. What stands there of ours is told apart by the chains' names, and nobody else's is touched.
 *
 * Whoever is root in a container writes what stands there, with line ends in comments and names as they please, and what
 * we say is done by the machine's root. So nothing that was read is ever said again: only words of our own are.
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

/** The guard drops in mangle: before the filters that others usually have, and after addresses were translated. */
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
/** Where the guards drop. */
export const GUARD_LOCATION = { table: TABLE_OF[GUARD_CHAIN], chain: chainNameOf(GUARD_CHAIN) };
/** The kernel's own chains, from which ours are entered. */
const HOOKS = new Set(["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"]);

/**
 * In which order tables change. A query in our zone that Docker's rules lead to its resolver gets no answer: the reply is
 * of another zone, where nobody knows of it. One that we get without a zone is answered, by our rules for replies. So
 * whoever begins to lead queries to us begins with leading, and whoever ends it ends with that.
 */
const ATTACH_ORDER: readonly Table[] = ["nat", "raw", "mangle"];
const DETACH_ORDER: readonly Table[] = ["raw", "nat", "mangle"];

/** What stands of ours in a table. */
interface InstalledChains {
  readonly chains: Set<string>;
  /** Rules of the kernel's own chains that do nothing but lead to ours. */
  readonly jumps: { readonly from: string; readonly to: string }[];
  /** Chains of ours to which somebody else's rules lead, too: the kernel keeps them as long as they do. */
  readonly inUse: Set<string>;
}

export interface TextOptions {
  readonly hasZones: boolean;
  readonly deviceName: (index: number) => string;
}

/** Whether a chain of that name in that table is one that we make. */
export function isOurChain(table: string, chain: string): boolean {
  return OUR_CHAINS.some((our) => our.name === chain && our.table === table);
}

interface RestoreText {
  /** What makes the tables say the plan and nothing else of ours; empty where they do already because there is nothing. */
  readonly text: string;
  /** Chains that nobody needs any more but somebody else's rules: emptied, and left. */
  readonly left: readonly string[];
}

export function restoreText(plan: TablePlan | undefined, saved: string, options: TextOptions): RestoreText {
  const standing = installedIn(saved);
  const tables = (redirectsNewQueries(plan) ? ATTACH_ORDER : DETACH_ORDER).map((table) => {
    const chains = (plan?.chains ?? []).filter(({ name }) => TABLE_OF[name] === table);
    const wanted = options.hasZones ? chains : chains.filter(({ hook, type }) => type === "nat" || hook === "input");
    return tableText(table, wanted, standing[table], options);
  });
  return { text: tables.map(({ text }) => text).join(""), left: tables.flatMap(({ left }) => left) };
}

/** Other than a plan for draining, which leads only conversations that go on. */
function redirectsNewQueries(plan: TablePlan | undefined): boolean {
  const rules = plan?.chains.flatMap((chain) => chain.rules) ?? [];
  return rules.some(({ match, action }) => action.kind === "dnat" && match.sourcePort === undefined);
}

function tableText(
  table: Table,
  wanted: readonly ChainPlan[],
  { chains, jumps, inUse }: InstalledChains,
  { deviceName }: TextOptions,
): RestoreText {
  const names = wanted.map(nameOf);
  const all = [...new Set([...chains, ...names])];
  const unwanted = all.filter((name) => !names.includes(name));
  const left = unwanted.filter((name) => inUse.has(name));
  if (all.length === 0) return { text: "", left };
  const family = (address: string): string => (address.includes(":") ? `[${address}]` : address);
  const rules = wanted.flatMap((chain) =>
    chain.rules.map(({ match, action }) =>
      ["-A", nameOf(chain), ...matchWords(match, deviceName), ...actionWords(action, family)].join(" "),
    ),
  );
  const lines = [
    `*${table}`,
    // Makes a chain, or empties the one that stands.
    ...all.map((name) => `:${name} - [0:0]`),
    ...jumps.map(({ from, to }) => `-D ${from} -j ${to}`),
    ...wanted.map((chain) => `-I ${chain.hook.toUpperCase()} 1 -j ${nameOf(chain)}`),
    ...rules,
    ...unwanted.filter((name) => !inUse.has(name)).map((name) => `-X ${name}`),
    "COMMIT",
    "",
  ];
  return { text: lines.join("\n"), left };
}

/** What stands of ours, by table, in the text of iptables-save. */
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

/** A rule that does nothing but lead from one of the kernel's chains to another one. */
function jumpIn(line: string): { readonly from: string; readonly to: string } | undefined {
  const [, from = "", to = ""] = /^-A ([A-Z]+) -j ([A-Z\d-]+)$/.exec(line) ?? [];
  return HOOKS.has(from) ? { from, to } : undefined;
}

/** The sockets that our rules lead to, from those for replies. */
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

/** Tables in which somebody else has rules. */
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

/** What is between quotes may have line ends in it, and belongs to one line all the same. */
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

function matchWords(match: Match, deviceName: (index: number) => string): string[] {
  const { mark, interface: device, protocol, source, destination, sourcePort, destinationPort } = match;
  return [
    ...(device === undefined ? [] : ["-i", deviceName(device)]),
    ...(match.isFromOutside === true ? ["!", "-i", "lo"] : []),
    ...(source === undefined ? [] : ["-s", source]),
    ...(destination === undefined ? [] : ["-d", destination]),
    ...(match.isToLoopback === true ? ["-d", "127.0.0.0/8"] : []),
    ...(protocol === undefined ? [] : ["-p", protocol]),
    ...(sourcePort === undefined ? [] : ["--sport", String(sourcePort)]),
    ...(destinationPort === undefined ? [] : ["--dport", String(destinationPort)]),
    ...(mark === undefined ? [] : ["-m", "mark", "--mark", `0x${mark.toString(16)}`]),
    ...(match.isNotDnat === true ? ["-m", "conntrack", "!", "--ctstate", "DNAT"] : []),
  ];
}

/** To accept is to leave our chain: what others have to say comes after, as it does with a table of our own. */
function actionWords(action: Action, bracketed: (address: string) => string): string[] {
  switch (action.kind) {
    case "accept":
      return ["-j", "RETURN"];
    case "drop":
      return ["-j", "DROP"];
    case "zone":
      return ["-j", "CT", "--zone", String(action.zone)];
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
