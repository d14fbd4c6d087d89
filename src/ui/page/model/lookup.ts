/**
 * Lookup: the queries of one lookup as one line. Programs ask for A and AAAA at the same time, and whoever reads two lines takes them
 * for two lookups, and the empty one of them for a failure.
 */
import type { QueryReport } from "../../../api/queries.ts";

const TYPES: ReadonlySet<string | null> = new Set(["A", "AAAA"]);
/** The two arrive together, or one after the reply to the other. */
const TOGETHER_MS = 250;
/** How many lines back the other query may be, where many containers query at the same time. */
const BACK_MAX = 50;
const EMPTY = "NODATA";

export interface Lookup {
  /** Of this page: two lines never have the same one. */
  readonly key: number;
  readonly container: string;
  /** null where names are not recorded. */
  readonly name: string | null;
  /** Of its first query. */
  readonly time: string;
  /** One, or A and AAAA. */
  readonly queries: readonly [QueryReport, ...QueryReport[]];
}

/** What a line says. */
interface LookupText {
  readonly types: string;
  readonly result: string;
  readonly how: string;
  readonly ms: number;
  readonly isBad: boolean;
  /** Why it fails, in one sentence. */
  readonly why: string | undefined;
  /** The type that is worth explaining. */
  readonly type: string;
}

/** Adds a query to a list whose latest line is the first. */
export function addQuery(lines: Lookup[], query: QueryReport, key: number): void {
  const at = lines.slice(0, BACK_MAX).findIndex((line) => isOther(line, query));
  const line = lines[at];
  if (line === undefined) {
    const { container, name, time } = query;
    lines.unshift({ key, container, name, time, queries: [query] });
    return;
  }
  const [known] = line.queries;
  lines[at] = { ...line, queries: query.type === "A" ? [query, known] : [known, query] };
}

/** Whether the line lacks this query: it has the other type of the same lookup. */
function isOther({ container, name, time, queries }: Lookup, query: QueryReport): boolean {
  const [known] = queries;
  return (
    queries.length === 1 &&
    name !== null &&
    name === query.name &&
    container === query.container &&
    known.type !== query.type &&
    TYPES.has(known.type) &&
    TYPES.has(query.type) &&
    Math.abs(Date.parse(query.time) - Date.parse(time)) <= TOGETHER_MS
  );
}

export function lookupText({ queries }: Lookup): LookupText {
  const failing = queries.find(({ rcode }) => rcode !== "NOERROR");
  const results = once(queries.map(resultText));
  const some = results.filter((each) => each !== EMPTY);
  return {
    types: queries.map(({ type }) => type ?? "").join(", "),
    result: (some.length === 0 ? results : some).join(", "),
    how: once(queries.map(howText)).join(", "),
    ms: Math.max(...queries.map(({ ms }) => ms)),
    isBad: failing !== undefined,
    why: queries.find(({ cause }) => cause != null)?.cause?.sentence,
    type: (failing ?? queries[0]).type ?? "A",
  };
}

function howText({ rule, upstream, result }: QueryReport): string {
  return rule ?? (upstream === null ? result : `${result} ${upstream}`);
}

function resultText({ rcode, addresses, owners = [], answers }: QueryReport): string {
  if (rcode !== "NOERROR") return rcode;
  const [address] = addresses;
  if (address === undefined) return answers === 0 ? EMPTY : `${answers} records`;
  const owner = owners.find((each) => each.address === address);
  const more = answers > 1 ? ` +${answers - 1}` : "";
  return owner === undefined ? `${address}${more}` : `${address} ${owner.container}${more}`;
}

function once(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}
