/**
 * CacheReport: statistics of the reply cache, in total and per container, and flushing it.
 */
import { parseQuestion } from "../../base/model/question-text.ts";
import { folded } from "../../base/dns/name.ts";
import { Fault, reasonOf } from "../../base/lib/fault.ts";
import type { ControlPorts } from "../situation/ports.ts";
import type { CacheOfContainer, CacheReport, FlushReport } from "../../api/cache.ts";

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
