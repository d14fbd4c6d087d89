/**
 * Outage: how many upstream servers are down, and since when, because stale and cached answers hide it.
 */
import type { UpstreamReport } from "../../src/api/upstreams.ts";

export interface Outage {
  readonly down: number;
  readonly all: number;
  /** When the last of them went down. */
  readonly since: string | null;
}

/** null if no server is known to be down. */
export function outageOf({ upstreams }: UpstreamReport): Outage | null {
  const servers = upstreams.filter(({ isBackup }) => !isBackup);
  const down = servers.filter(({ state }) => state === "down");
  if (down.length === 0) return null;
  const since = down.flatMap((server) => server.since ?? []).toSorted();
  return { down: down.length, all: servers.length, since: since.at(-1) ?? null };
}
