/**
 * Record: the process between the halves of the GitHub Action. It follows the queries and the failures of all containers, so that those
 * of containers that are gone at the end of the job are in the summary. SIGTERM makes it write what it has, and end. Argument: the
 * folder of the step.
 */
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { ControlClient } from "../api/control-client.ts";
import { FILES, clientOf } from "./place.ts";
import { Tally } from "./tally.ts";

/** A recorder that takes a core from the job is not wanted; what is left out is counted. */
const QUERIES_PER_SECOND = 1000;
/** The recorder asks for as many queries: those before it followed, and those that it had not seen at its end. */
const LAST_QUERIES = 1000;
const STOPPED = "dns11 stopped";

const [folder = ""] = process.argv.slice(2);
const tally = new Tally();
const stopped = new AbortController();
process.on("SIGTERM", () => stopped.abort());
// From now on it can be ended.
writeWhole(FILES.recorder, String(process.pid));

let endedEarly: string | null = null;
try {
  const client = await clientOf(process.env);
  await Promise.all([followQueries(client), followFailures(client)]);
  if (stopped.signal.aborted) await readRest(client);
  else endedEarly = STOPPED;
} catch (error) {
  const { code, message } = error as Error & { readonly code?: string };
  // A connection that breaks while it is made is the same as none.
  endedEarly = code === "NOT_RUNNING" || code === "CONTROL" ? STOPPED : message;
}
writeWhole(FILES.record, JSON.stringify(tally.record(endedEarly)));
process.exit(0);

async function followQueries(client: ControlClient): Promise<void> {
  for await (const each of client.followSome({ perSecond: QUERIES_PER_SECOND, last: LAST_QUERIES }, stopped.signal)) {
    if ("skipped" in each) tally.addMissed(each.skipped);
    else if ("missed" in each) tally.addMissed(each.missed);
    else tally.addQuery(each);
  }
}

async function followFailures(client: ControlClient): Promise<void> {
  for await (const each of client.followFailures({}, stopped.signal)) tally.addFailure(each);
}

/** What was on its way when the streams ended, and which names have resolved since. */
async function readRest(client: ControlClient): Promise<void> {
  const { queries } = await client.queries({ last: LAST_QUERIES });
  for (const each of queries) tally.addRecorded(each);
  const { failures } = await client.failures();
  for (const each of failures) tally.addFailure(each);
}

/** A reader finds all of it or nothing. */
function writeWhole(name: string, text: string): void {
  const path = join(folder, name);
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}
