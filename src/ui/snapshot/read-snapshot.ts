/**
 * ReadSnapshot: what the page shows, read once from a running dns11. What cannot be read is left out, and the page says so.
 */
import type { ControlClient } from "../../api/control-client.ts";
import type { Snapshot } from "../../api/snapshot.ts";
import { reasonOf } from "../../base/lib/fault.ts";

const QUERIES = 500;
const EVENTS = 500;

export async function readSnapshot(client: ControlClient): Promise<Snapshot> {
  const errors: string[] = [];
  const read = async <T>(what: string, call: () => Promise<T>): Promise<T | null> => {
    try {
      return await call();
    } catch (error) {
      errors.push(`${what}: ${reasonOf(error)}`);
      return null;
    }
  };
  return {
    format: 1,
    takenAt: new Date().toISOString(),
    isRedacted: false,
    // The first error is the reason of all others: without a run there is nothing to show.
    status: await client.status(),
    containers: await read("containers", async () => await client.containers()),
    networks: await read("networks", async () => await client.networks()),
    matrix: await read("matrix", async () => await client.matrix()),
    failures: await read("failures", async () => await client.failures()),
    upstreams: await read("upstreams", async () => await client.upstreams()),
    history: await read("history", async () => await client.history()),
    cache: await read("cache", async () => await client.cache()),
    events: await read("events", async () => await client.events(EVENTS)),
    queries: await read("queries", async () => await client.queries({ last: QUERIES, causes: true })),
    errors,
  };
}
