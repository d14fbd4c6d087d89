/**
 * The routes by which what containers asked is read: `GET /v1/queries` with `container`, `name` (a pattern), `rcode` (several
 * with commas), `last` (how many), `since` (a number), and `follow=true` for all that come; and `GET /v1/counters`.
 */
import { LIMITS } from "../base/limits.ts";
import { Fault } from "../base/lib/fault.ts";
import { RCODE_NAMES, rcodeNumber } from "../base/dns/rcode.ts";
import type { QueryHistories } from "../query/history/query-histories.ts";
import type { ApiRequest, Routes } from "./http.ts";
import type { QueryFilter, QueryReader } from "./query-reader.ts";
import type { CountersReport } from "../api/queries.ts";

interface QueryRouteParts {
  readonly histories: QueryHistories;
  readonly reader: QueryReader;
  /** The id of a container by its name or the beginning of its id; throws a Fault where there is none that is served. */
  readonly find: (wanted: string) => string;
  readonly counters: () => CountersReport;
}

const KEYS: readonly string[] = ["container", "name", "rcode", "last", "since", "follow"];
/** How many are told to who does not say. */
const DEFAULT_LAST = 1_000;

export function queryRoutes({ histories, reader, find, counters }: QueryRouteParts): Routes {
  return {
    "GET /v1/queries": ({ query, signal }) => {
      const wrong = [...query.keys()].find((key) => !KEYS.includes(key));
      if (wrong !== undefined) throw new Fault("BAD_QUERY", `"${wrong}" is none of ${KEYS.join(", ")}`);
      if (!histories.isKept) {
        throw new Fault("QUERIES_OFF", "This dns11 keeps no queries: its setting queries.names is off");
      }
      const filter = filterOf(query, (wanted) => find(wanted));
      const since = numberOf(query, "since", Number.MAX_SAFE_INTEGER);
      const last = numberOf(query, "last", LIMITS.queriesReturned);
      if (since !== undefined && filter.containerId === undefined) {
        throw new Fault("BAD_QUERY", '"since" is a number of one container: say which container');
      }
      if (!isFollowing(query)) return reader.read(filter, last ?? DEFAULT_LAST, since);
      if (since !== undefined) throw new Fault("BAD_QUERY", 'Who follows says "last", not "since"');
      return reader.follow(filter, last ?? 0, signal);
    },
    "GET /v1/counters": counters,
  };
}

/** Of a container that is gone, but whose queries are still there. */
export function findEndedContainer(histories: QueryHistories, wanted: string): string | undefined {
  for (const { containerId, containerName } of histories.histories()) {
    if (containerName !== undefined && (containerName === wanted || containerId.startsWith(wanted))) return containerId;
  }
  return undefined;
}

function filterOf(query: ApiRequest["query"], find: (wanted: string) => string): QueryFilter {
  const container = query.get("container");
  const rcode = query.get("rcode");
  return {
    containerId: container === null || container === "" ? undefined : find(container),
    name: query.get("name") ?? undefined,
    rcodes: rcode === null ? undefined : new Set(rcode.split(",").map((word) => readRcode(word.trim()))),
  };
}

function readRcode(word: string): number {
  const rcode = rcodeNumber(word);
  if (rcode !== undefined) return rcode;
  throw new Fault("BAD_RCODE", `"${word}" is no response code: there are ${RCODE_NAMES.join(", ")}`);
}

function isFollowing(query: ApiRequest["query"]): boolean {
  const text = query.get("follow") ?? "false";
  if (text === "true" || text === "false") return text === "true";
  throw new Fault("BAD_QUERY", `follow is true or false, not "${text}"`);
}

function numberOf(query: ApiRequest["query"], key: string, most: number): number | undefined {
  const text = query.get(key);
  if (text === null) return undefined;
  const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (number <= most) return number;
  throw new Fault("BAD_QUERY", `${key} is a whole number from 0 to ${most}, not "${text}"`);
}
