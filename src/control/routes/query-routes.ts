/**
 * QueryRoutes: `GET /v1/queries` with `container`, `name` (a pattern), `rcode` (a comma-separated list), `last` (how many),
 * `since` (a sequence number), `project` and `service` (Compose), `follow=true` (new queries as they arrive) and `causes=true`
 * (why they failed), `perSecond` (at most so many while following), and `GET /v1/counters`.
 */
import { LIMITS } from "../../base/limits.ts";
import { Fault } from "../../base/lib/fault.ts";
import { RCODE_NAMES, rcodeNumber } from "../../base/dns/rcode.ts";
import type { QueryHistories } from "../../query/history/query-histories.ts";
import { followedContainer } from "../situation/ports.ts";
import { COMPOSE_KEYS, type ComposeFilter } from "../situation/address-owners.ts";
import type { ApiRequest, Routes } from "../server/http.ts";
import { isTrue, numberOf, refuseUnknown } from "../server/parameters.ts";
import type { QueryDetails } from "../reports/query-details.ts";
import type { QueryFilter, QueryReader } from "../history/query-reader.ts";
import type { CountersReport, MissedReport, QueryReport, SkippedReport } from "../../api/queries.ts";

interface QueryRouteParts {
  readonly histories: QueryHistories;
  readonly reader: QueryReader;
  readonly details: QueryDetails;
  /** The ID of a container by its name or the beginning of its ID; throws a Fault if no served container matches. */
  readonly find: (nameOrId: string) => string;
  readonly nameOf: (containerId: string) => string | undefined;
  readonly composeFilterOf: (query: ApiRequest["query"]) => Promise<ComposeFilter | undefined>;
  readonly counters: (filter: ComposeFilter | undefined) => CountersReport;
}

const KEYS: readonly string[] = [
  "container",
  ...COMPOSE_KEYS,
  "name",
  "rcode",
  "last",
  "since",
  "follow",
  "causes",
  "perSecond",
];
/** The interval of a stream that is limited: what a batch needs to know costs more than its queries. */
const LIMITED_EVERY_MS = 250;
/** The default of `last`. */
const DEFAULT_LAST = 1_000;

export function queryRoutes(parts: QueryRouteParts): Routes {
  const { histories, reader, details, find, nameOf, composeFilterOf, counters } = parts;
  return {
    "GET /v1/queries": async ({ query, signal }) => {
      refuseUnknown(query, KEYS);
      if (!histories.isEnabled) {
        throw new Fault("QUERIES_OFF", "There is no query history, because queries.names is off", {
          remedy: "Set queries.names to full or hidden.",
        });
      }
      const accepts = (await composeFilterOf(query))?.acceptsId;
      const filter = { ...filterOf(query, (nameOrId) => find(nameOrId)), accepts };
      const since = numberOf(query, "since", Number.MAX_SAFE_INTEGER);
      const last = numberOf(query, "last", LIMITS.queriesReturned);
      if (since !== undefined && filter.containerId === undefined) {
        throw new Fault("BAD_QUERY", "The parameter since requires the parameter container");
      }
      const perSecond = numberOf(query, "perSecond", LIMITS.queriesReturned);
      const wantsCauses = isTrue(query, "causes");
      if (!isTrue(query, "follow")) {
        const report = await reader.read(filter, last ?? DEFAULT_LAST, since);
        return { ...report, queries: await details.add(report.queries, wantsCauses) };
      }
      if (since !== undefined)
        throw new Fault("BAD_QUERY", "The parameter since cannot be combined with follow: use last");
      const batches = reader.follow(
        following(filter, query.get("container") ?? "", nameOf),
        last ?? 0,
        signal,
        perSecond === undefined ? undefined : LIMITED_EVERY_MS,
      );
      return details.follow(perSecond === undefined ? batches : limitedRate(batches, perSecond), wantsCauses);
    },
    "GET /v1/counters": async ({ query }) => {
      refuseUnknown(query, COMPOSE_KEYS);
      return counters(await composeFilterOf(query));
    },
  };
}

/** The ID of a stopped container whose queries are still in the history. */
export function findEndedContainer(histories: QueryHistories, nameOrId: string): string | undefined {
  for (const { containerId, containerName } of histories.histories()) {
    if (containerName !== undefined && (containerName === nameOrId || containerId.startsWith(nameOrId)))
      return containerId;
  }
  return undefined;
}

function filterOf(query: ApiRequest["query"], find: (nameOrId: string) => string): QueryFilter {
  const container = query.get("container");
  const rcode = query.get("rcode");
  return {
    containerId: container === null || container === "" ? undefined : find(container),
    name: query.get("name") ?? undefined,
    rcodes: rcode === null ? undefined : new Set(rcode.split(",").map((word) => readRcode(word.trim()))),
  };
}

function following(filter: QueryFilter, nameOrId: string, nameOf: QueryRouteParts["nameOf"]): QueryFilter {
  const { containerId, accepts } = filter;
  if (containerId === undefined) return filter;
  const isFollowed = followedContainer(nameOrId, containerId, nameOf);
  return { ...filter, containerId: undefined, accepts: (id) => isFollowed(id) && accepts?.(id) !== false };
}

function readRcode(word: string): number {
  const rcode = rcodeNumber(word);
  if (rcode !== undefined) return rcode;
  throw new Fault("BAD_RCODE", `Invalid response code "${word}": use one of ${RCODE_NAMES.join(", ")}`);
}

const SECOND_MS = 1_000;

type Batch = readonly (QueryReport | MissedReport)[];

/**
 * Limits a stream of queries for a reader that shows only some of them, such as a page: so many a second, the others
 * are counted once a second. What a busy container sends then costs no more than what is shown.
 */
export async function* limitedRate(
  batches: AsyncIterable<Batch>,
  perSecond: number,
  now: () => number = () => performance.now(),
): AsyncGenerator<readonly (QueryReport | SkippedReport)[], void> {
  let secondMs = now();
  let left = perSecond;
  let skipped = 0;
  let isPast = true;
  for await (const batch of batches) {
    const queries = batch.filter((each): each is QueryReport => !("missed" in each));
    // The past queries of the first batch were requested by number.
    if (isPast) {
      isPast = false;
      yield queries;
      continue;
    }
    const lines: (QueryReport | SkippedReport)[] = [];
    if (now() - secondMs >= SECOND_MS) {
      if (skipped > 0) lines.push({ skipped });
      [secondMs, left, skipped] = [now(), perSecond, 0];
    }
    const shown = queries.slice(0, left);
    left -= shown.length;
    skipped += queries.length - shown.length;
    for (const each of batch) if ("missed" in each) skipped += each.missed;
    yield [...lines, ...shown];
  }
}
