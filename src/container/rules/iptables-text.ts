/**
 * A plan in the words of iptables-restore: chains of our own in tables that others use, too, each entered from the head of
 * one of the kernel's chains. What stands there of ours is told apart by the chains' names, and nobody else's is touched.
 */
import { type Action, type ChainPlan, GUARD_CHAIN, type Match, type Protocol, type TablePlan } from "./plan.ts";

export const CHAIN_PREFIX = "DNS11-";

/** The guard drops in mangle: before the filters that others usually have, and after addresses were translated. */
type Table = "nat" | "raw" | "mangle";

/**
 * In which order tables change. A query in our zone that Docker's rules lead to its resolver gets no answer: the reply is
 * of another zone, where nobody knows of it. One that we get without a zone is answered, by our rules for replies. So
 * whoever begins to lead queries to us begins with leading, and whoever ends it ends with that.
 */
const BEGINNING: readonly Table[] = ["nat", "raw", "mangle"];
const ENDING: readonly Table[] = ["raw", "nat", "mangle"];

/** What stands of ours in a table. */
interface Standing {
  readonly chains: string[];
  /** Rules of the kernel's own chains that lead to ours. */
  readonly jumps: string[];
}

export interface TextOptions {
  readonly hasZones: boolean;
  readonly deviceName: (index: number) => string;
}

/** What makes the tables say `plan` and nothing else of ours; empty where they do already because there is nothing. */
export function restoreText(plan: TablePlan | undefined, saved: string, options: TextOptions): string {
  const standing = standingIn(saved);
  return (leadsEverybody(plan) ? BEGINNING : ENDING)
    .map((table) => {
      const chains = (plan?.chains ?? []).filter((chain) => tableOf(chain) === table);
      const wanted = options.hasZones ? chains : chains.filter(({ hook, type }) => type === "nat" || hook === "input");
      return tableText(table, wanted, standing.get(table) ?? { chains: [], jumps: [] }, options);
    })
    .join("");
}

/** Other than a plan for draining, which leads only conversations that go on. */
function leadsEverybody(plan: TablePlan | undefined): boolean {
  const rules = plan?.chains.flatMap((chain) => chain.rules) ?? [];
  return rules.some(({ match, action }) => action.kind === "dnat" && match.sourcePort === undefined);
}

function tableText(
  table: Table,
  wanted: readonly ChainPlan[],
  standing: Standing,
  { deviceName }: TextOptions,
): string {
  const names = wanted.map(nameOf);
  const all = [...new Set([...standing.chains, ...names])];
  if (all.length === 0) return "";
  const family = (address: string): string => (address.includes(":") ? `[${address}]` : address);
  const rules = wanted.flatMap((chain) =>
    chain.rules.map(({ match, action }) =>
      ["-A", nameOf(chain), ...matchWords(match, deviceName), ...actionWords(action, family)].join(" "),
    ),
  );
  return [
    `*${table}`,
    // Makes a chain, or empties the one that stands.
    ...all.map((name) => `:${name} - [0:0]`),
    ...standing.jumps.map((jump) => jump.replace(/^-A/, "-D")),
    ...wanted.map((chain) => `-I ${chain.hook.toUpperCase()} 1 -j ${nameOf(chain)}`),
    ...rules,
    ...all.filter((name) => !names.includes(name)).map((name) => `-X ${name}`),
    "COMMIT",
    "",
  ].join("\n");
}

/** What stands of ours, by table, in the text of iptables-save. */
function standingIn(saved: string): Map<string, Standing> {
  const found = new Map<string, Standing>();
  for (const { table, line } of linesIn(saved)) {
    const standing = found.get(table) ?? { chains: [], jumps: [] };
    found.set(table, standing);
    const [, chain] = /^:(\S+)/.exec(line) ?? [];
    if (chain?.startsWith(CHAIN_PREFIX) === true) standing.chains.push(chain);
    const [, from, to] = /^-A (\S+) .*-[jg] (\S+)$/.exec(line) ?? /^-A (\S+) -[jg] (\S+)$/.exec(line) ?? [];
    if (from?.startsWith(CHAIN_PREFIX) === false && to?.startsWith(CHAIN_PREFIX) === true) standing.jumps.push(line);
  }
  return found;
}

/** The sockets that our rules lead to, from those for replies. */
export function listenersIn(
  saved: string,
): { readonly protocol: Protocol; readonly address: string; readonly port: number }[] {
  const reply = `-A ${CHAIN_PREFIX}REPLY `;
  return linesIn(saved).flatMap(({ line }) => {
    const [, address] = / -s ([\da-f.:]+)\/\d+ /.exec(line) ?? [];
    const [, port] = / --sport (\d+) /.exec(line) ?? [];
    if (!line.startsWith(reply) || address === undefined || port === undefined) return [];
    return [{ protocol: line.includes(" -p tcp ") ? "tcp" : "udp", address, port: Number(port) }];
  });
}

/** Packets that the guards have dropped, as the kernel counted them. */
export function droppedIn(saved: string): number {
  const guard = `-A ${CHAIN_PREFIX}${GUARD_CHAIN.toUpperCase()} `;
  const counts = linesIn(saved).filter(({ line }) => line.startsWith(guard) && line.endsWith(" -j DROP"));
  return counts.reduce((sum, { packets }) => sum + packets, 0);
}

/** Tables in which somebody else has rules. */
export function foreignTablesIn(saved: string): string[] {
  const foreign = linesIn(saved).filter(({ line }) => line.startsWith("-A ") && !line.includes(` ${CHAIN_PREFIX}`));
  return [...new Set(foreign.map(({ table }) => table))];
}

function linesIn(saved: string): { table: string; line: string; packets: number }[] {
  let table = "";
  return saved.split("\n").flatMap((text) => {
    if (text.startsWith("*")) table = text.slice(1);
    const [, packets, line] = /^(?:\[(\d+):\d+\] )?([:-].*)$/.exec(text) ?? [];
    return line === undefined ? [] : [{ table, line, packets: Number(packets ?? 0) }];
  });
}

function tableOf({ type, hook }: ChainPlan): Table {
  if (type === "nat") return "nat";
  return hook === "input" ? "mangle" : "raw";
}

function nameOf({ name }: ChainPlan): string {
  return `${CHAIN_PREFIX}${name.toUpperCase()}`;
}

function matchWords(match: Match, deviceName: (index: number) => string): string[] {
  const { mark, device, protocol, source, destination, sourcePort, destinationPort } = match;
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
    ...(match.isUntranslated === true ? ["-m", "conntrack", "!", "--ctstate", "DNAT"] : []),
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
