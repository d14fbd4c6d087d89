/**
 * CacheReport: how much is kept of what servers said, for whom, and what use it was; and how it is forgotten.
 */
import { parseQuestion } from "../base/model/question-text.ts";
import { folded } from "../base/dns/name.ts";
import { Endpoint } from "../query/listen/endpoint.ts";
import { Fault, reasonOf } from "../base/lib/fault.ts";
import type { ControlPorts } from "./ports.ts";
import type { CacheOfContainer, CacheReport, FlushReport } from "../api/cache.ts";

export function cacheReport(ports: ControlPorts): CacheReport {
  const { upstreamState: known } = ports.resolver();
  if (known?.isCaching !== true) {
    const nothing = { hits: 0, misses: 0, stale: 0, failures: 0, prefetches: 0, evictions: 0 };
    return { isCaching: false, entries: 0, bytes: 0, bytesMax: 0, ...nothing, containers: [] };
  }
  const { cache } = known;
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

/** Whoever has most stands first. */
function byContainer({ resolver: answering, containers }: ControlPorts): CacheOfContainer[] {
  const forwarder = answering().upstreamState?.forwarder;
  const rows = [...containers.facts.values()].flatMap(({ id, name: container }): CacheOfContainer[] => {
    const endpoint = containers.attachmentOf(id)?.endpoint;
    if (!(endpoint instanceof Endpoint)) return [];
    const { client } = endpoint;
    const owner = forwarder?.ownerOf(client);
    const hits = client.counters.cached;
    if (owner === undefined && hits === 0) return [];
    return [{ container, entries: owner?.entries ?? 0, bytes: owner?.bytes ?? 0, hits }];
  });
  const heir = forwarder?.ownerOf(undefined);
  const gone = heir?.entries ?? 0;
  const left = gone === 0 ? [] : [{ container: null, entries: gone, bytes: heir?.bytes ?? 0, hits: 0 }];
  return [...rows, ...left].toSorted((a, b) => b.bytes - a.bytes);
}

/** One name with all its types, or everything. */
export function flushCache({ resolver: answering }: ControlPorts, name: string | undefined): FlushReport {
  const labels = name === undefined ? undefined : labelsOf(name);
  const { upstreamState: known } = answering();
  const gone = known?.isCaching === true ? known.forwarder.flush(labels) : { replies: 0, inFlight: 0 };
  return { isCaching: known?.isCaching === true, name: name ?? null, ...gone };
}

function labelsOf(name: string): string {
  try {
    return Buffer.from(folded(parseQuestion(name, undefined).labels)).toString("latin1");
  } catch (error) {
    throw new Fault("BAD_QUESTION", reasonOf(error));
  }
}
