/**
 * IptablesSaved: what iptables-save says of our chains. Root in a container may have written all of it, so it is read a
 * slice at a time.
 */
import { LIMITS } from "../../base/limits.ts";
import { Fault } from "../../base/lib/fault.ts";
import { inSlices } from "../../base/lib/slices.ts";
import { CHAIN_PREFIX, TABLE_OF, type Table, chainNameOf, isOurChain } from "./our-chains.ts";
import type { Protocol } from "./plan.ts";

interface SavedLine {
  readonly table: string;
  readonly line: string;
}

export interface Saved {
  /** Those that mention a chain that may be ours. */
  readonly ours: readonly SavedLine[];
  /** With foreign rules. */
  readonly foreignTables: ReadonlySet<string>;
}

/** Our chains that exist in a table. */
export interface InstalledChains {
  readonly chains: Set<string>;
  /** Rules of built-in chains that only jump to ours. */
  readonly jumps: { readonly from: string; readonly to: string }[];
  /** Chains of ours to which foreign rules jump, too: the kernel does not delete these. */
  readonly inUse: Set<string>;
}

/** The built-in chains from which ours are entered. */
const HOOKS = new Set(["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"]);
const PIECE_LINES = 64;

export async function readSaved(text: string): Promise<Saved> {
  const ours: SavedLine[] = [];
  const foreignTables = new Set<string>();
  await inSlices(reading(text, ours, foreignTables));
  return { ours, foreignTables };
}

/** One piece is many lines. */
function* reading(text: string, ours: SavedLine[], foreignTables: Set<string>): Generator<void> {
  let table = "";
  let count = 0;
  for (const whole of wholeLines(text)) {
    if (++count % PIECE_LINES === 0) yield;
    if (whole === undefined) continue;
    if (whole.startsWith("*")) table = whole.slice(1);
    const [, line] = /^(?:\[\d+:\d+\] )?([:-].*)$/s.exec(whole) ?? [];
    if (line === undefined) continue;
    if (!foreignTables.has(table) && isForeign(table, line)) foreignTables.add(table);
    if (!line.includes(CHAIN_PREFIX)) continue;
    ours.push({ table, line });
    if (ours.length > LIMITS.iptablesRulesOfOurs)
      throw new Fault(
        "IPTABLES",
        `More than ${LIMITS.iptablesRulesOfOurs} rules mention chains called ${CHAIN_PREFIX}*`,
        { remedy: "Remove those that are not dns11's: iptables-legacy-save lists them." },
      );
  }
}

function isForeign(table: string, line: string): boolean {
  const [, chain] = /^-A (\S+) /.exec(line) ?? [];
  return chain !== undefined && !isOurChain(table, chain) && !isOurChain(table, jumpIn(line)?.to ?? "");
}

/** Our chains by table. */
export function installedIn({ ours }: Saved): Readonly<Record<Table, InstalledChains>> {
  const nothing = (): InstalledChains => ({ chains: new Set(), jumps: [], inUse: new Set() });
  const found = { nat: nothing(), raw: nothing(), mangle: nothing() };
  for (const { table, line } of ours) {
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
export function listenersIn({
  ours,
}: Saved): { readonly protocol: Protocol; readonly address: string; readonly port: number }[] {
  const reply = `-A ${chainNameOf("reply")} `;
  return ours.flatMap(({ table, line }) => {
    const [, address] = / -s ([\da-f.:]+)\/\d+ /.exec(line) ?? [];
    const [, port] = / --sport (\d+) /.exec(line) ?? [];
    if (table !== TABLE_OF.reply || !line.startsWith(reply) || address === undefined || port === undefined) return [];
    return [{ protocol: line.includes(" -p tcp ") ? "tcp" : "udp", address, port: Number(port) }];
  });
}

/** Splits into rules: quoted text may contain line ends, at which nothing is yielded yet. */
function* wholeLines(text: string): Generator<string | undefined> {
  let from = 0;
  let isOpen = false;
  for (let at = 0; at <= text.length;) {
    const newline = text.indexOf("\n", at);
    const end = newline < 0 ? text.length : newline;
    isOpen = endsInQuotes(text, { from: at, to: end, isQuoted: isOpen });
    at = end + 1;
    yield isOpen ? undefined : text.slice(from, end);
    if (!isOpen) from = at;
  }
}

function endsInQuotes(
  text: string,
  { from, to, isQuoted: wasQuoted }: { readonly from: number; readonly to: number; readonly isQuoted: boolean },
): boolean {
  let isQuoted = wasQuoted;
  for (let at = from; at < to; at++) {
    if (text[at] === '"') isQuoted = !isQuoted;
    else if (isQuoted && text[at] === "\\") at++;
  }
  return isQuoted;
}
