/**
 * CacheEntries: `GET /v1/cache/entries`: cached replies as text, by name. Rows are read in short turns; what changes in between is
 * seen as it is then.
 */
import { setImmediate as turn } from "node:timers/promises";
import { byName } from "../../base/lib/text.ts";
import type {
  CacheEntriesReport,
  CacheEntryReport,
  CacheOfContainer,
  CacheReport,
  FlushReport,
} from "../../api/cache.ts";
import { setU16 } from "../../base/dns/bytes.ts";
import { FLAGS_AT, HEADER_BYTES, QR, QUESTIONS_AT, writeCounts } from "../../base/dns/header.ts";
import { presentation, folded } from "../../base/dns/name.ts";
import { rcodeName } from "../../base/dns/rcode.ts";
import { CLASS, CLASS_AT } from "../../base/dns/record.ts";
import { typeName } from "../../base/dns/record-type.ts";
import { Fault, reasonOf } from "../../base/lib/fault.ts";
import { LIMITS } from "../../base/limits.ts";
import { replyText } from "../../base/model/reply-text.ts";
import type { CacheEntry } from "../../query/cache/entry.ts";
import { findContainer } from "../situation/find-container.ts";
import type { ApiRequest } from "../server/http.ts";
import { numberOf, refuseUnknown, globMatches } from "../server/parameters.ts";
import type { ControlPorts } from "../situation/ports.ts";
import { parseQuestion } from "../../base/model/name-query.ts";

/** Rows that are looked at before pending queries run. */
const ROWS_A_TURN = 256;
const ANSWERS_MAX = 8;
/** Larger replies are shown without their records: decoding 64 KB takes too long between two queries. */
const DECODED_BYTES_MAX = 4_096;
const DEFAULT_LAST = 100;
const MS = 1_000;

type CacheState = NonNullable<ReturnType<ControlPorts["resolver"]>["upstreamState"]>;

/** The parameters are `name` (a pattern), `container` (whose queries they are charged to) and `last` (how many). */
export async function cacheEntries(
  ports: ControlPorts,
  { query }: Pick<ApiRequest, "query">,
): Promise<CacheEntriesReport> {
  refuseUnknown(query, ["name", "container", "last"]);
  if (!ports.histories.hasNames) {
    throw new Fault("NAMES_HIDDEN", "Cached names are not shown, because queries.names hides names", {
      remedy: "Set queries.names to full.",
    });
  }
  const pattern = query.get("name") ?? "";
  const last = numberOf(query, "last", LIMITS.cacheEntriesListed) ?? DEFAULT_LAST;
  const word = query.get("container") ?? "";
  const container = word === "" ? undefined : findContainer(ports.containers.facts.values(), word).name;
  const { upstreamState } = ports.resolver();
  if (upstreamState?.isCaching !== true) return { isCaching: false, entries: [], omitted: 0 };
  const names = namesOfOwners(ports, upstreamState);
  const { cache, now } = upstreamState;
  const entries: CacheEntryReport[] = [];
  let omitted = 0;
  for (let row = 1; row <= cache.rows; row++) {
    if (row % ROWS_A_TURN === 0) await turn();
    const stored = cache.stored(row);
    if (stored === undefined || !stored.entry.hasReply) continue;
    const owner = names.get(stored.owner) ?? null;
    const name = nameOf(stored.entry);
    if (container !== undefined && owner !== container) continue;
    if (pattern !== "" && !globMatches(pattern, name)) continue;
    if (entries.length >= last) {
      omitted++;
      continue;
    }
    entries.push(reportOf(stored.entry, { name, container: owner, bytes: stored.bytes, nowMs: now() }));
    await turn();
  }
  return { isCaching: true, entries: entries.toSorted(byName), omitted };
}

function namesOfOwners({ containers }: ControlPorts, { forwarder }: CacheState): Map<object, string> {
  const names = new Map<object, string>();
  for (const { id, name } of containers.facts.values()) {
    const client = containers.clients.of(id);
    const owner = client && forwarder.ownerOf(client);
    if (owner !== undefined) names.set(owner, name);
  }
  return names;
}

function nameOf({ key: { name } }: CacheEntry): string {
  const labels = Buffer.from(name, "latin1");
  return presentation(labels, 0, labels.length);
}

function reportOf(
  entry: CacheEntry,
  { nowMs, ...about }: Pick<CacheEntryReport, "name" | "container" | "bytes"> & { readonly nowMs: number },
): CacheEntryReport {
  const { type } = entry.key;
  const answers = replyText(messageOf(entry))?.answers ?? [];
  return {
    ...about,
    type: typeName(type),
    rcode: rcodeName(entry.rcode),
    answers: answers.slice(0, ANSWERS_MAX).map((record) => `${record.type} ${record.data}`),
    expiresInS: Math.round((entry.expiresMs - nowMs) / MS),
  };
}

/** The reply with its question, as one message. */
function messageOf(entry: CacheEntry): Buffer {
  const { name, type } = entry.key;
  const reply = entry.readReply();
  if (reply === undefined || reply.length > DECODED_BYTES_MAX) return Buffer.alloc(0);
  const { bytes, start, length, questionEnd, answers, authorities, additionals } = reply;
  const message = Buffer.alloc(questionEnd + length);
  message[FLAGS_AT] = QR;
  setU16(message, QUESTIONS_AT, 1);
  writeCounts(message, 0, answers, authorities, additionals);
  const end = HEADER_BYTES + message.write(name, HEADER_BYTES, "latin1") + 1;
  setU16(message, end, type);
  setU16(message, end + CLASS_AT, CLASS.IN);
  bytes.copy(message, questionEnd, start, start + length);
  return message;
}

/** Statistics of the reply cache, in total and per container, and flushing it. */
export function cacheReport(ports: ControlPorts): CacheReport {
  const { upstreamState } = ports.resolver();
  if (upstreamState?.isCaching !== true) {
    const zeros = { hits: 0, misses: 0, stale: 0, failures: 0, prefetches: 0, evictions: 0 };
    return { isCaching: false, entries: 0, bytes: 0, bytesMax: 0, ...zeros, containers: [] };
  }
  upstreamState.collect();
  ports.containers.clients.collect();
  const { cache } = upstreamState;
  const { bytes, bytesMax, counts, size: entries } = cache;
  const { hits, denials, ...others } = counts;
  return {
    isCaching: true,
    entries,
    bytes,
    bytesMax,
    hits: hits + denials,
    ...others,
    containers: byContainer(ports),
  };
}

/** The largest share first. */
function byContainer({ resolver, containers }: ControlPorts): CacheOfContainer[] {
  const forwarder = resolver().upstreamState?.forwarder;
  const rows = [...containers.facts.values()].flatMap(({ id, name: container }): CacheOfContainer[] => {
    const client = containers.clients.of(id);
    if (client === undefined) return [];
    const owner = forwarder?.ownerOf(client);
    const hits = client.counters.cached;
    if (owner === undefined && hits === 0) return [];
    return [{ container, entries: owner?.entries ?? 0, bytes: owner?.bytes ?? 0, hits }];
  });
  const removed = forwarder?.ownerOf(undefined);
  const entries = removed?.entries ?? 0;
  const rest = entries === 0 ? [] : [{ container: null, entries, bytes: removed?.bytes ?? 0, hits: 0 }];
  return [...rows, ...rest].toSorted((a, b) => b.bytes - a.bytes);
}

/** Flushes one name (all types), or everything. */
export function flushCache({ resolver }: ControlPorts, name: string | undefined): FlushReport {
  const labels = name === undefined ? undefined : labelsOf(name);
  const { upstreamState } = resolver();
  const removed =
    upstreamState?.isCaching === true ? upstreamState.forwarder.flush(labels) : { replies: 0, inFlight: 0 };
  return { isCaching: upstreamState?.isCaching === true, name: name ?? null, ...removed };
}

function labelsOf(name: string): string {
  try {
    return Buffer.from(folded(parseQuestion(name, undefined).labels)).toString("latin1");
  } catch (error) {
    throw new Fault("BAD_QUESTION", reasonOf(error));
  }
}
