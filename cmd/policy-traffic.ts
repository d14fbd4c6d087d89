/**
 * PolicyTraffic: what a running dns11 has recorded of containers, for commands about policies.
 */
import type { ContainersRequest, ControlClient } from "../src/api/control-client.ts";
import { Traffic } from "../src/policy/traffic/traffic.ts";
import { note } from "./options/container-argument.ts";

/** A response has no more. */
const QUERIES_MAX = 10_000;

/** What is in the histories now. */
export async function recordedTraffic(client: ControlClient, chosen: ContainersRequest): Promise<Traffic> {
  const traffic = new Traffic();
  const { queries, missed } = await client.queries({ ...chosen, last: QUERIES_MAX });
  for (const query of queries) traffic.addQuery(query);
  if (missed > 0) note(`${missed} queries are no longer in the history: use --for to watch for a while`);
  traffic.addConnections(await client.egress(chosen), 0);
  return traffic;
}
