/**
 * Record: the process between the halves of the GitHub Action. It follows the queries, the failures and the refusals of all containers, so that those
 * of containers that are gone at the end of the job are in the summary. SIGTERM makes it write what it has, and end. Argument: the
 * folder of the step.
 */
import { renameSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

import type { ControlClient } from "../api/control-client.ts";
import { FILES, clientOf } from "./place.ts";
import { type Environment, readInputs } from "./runner.ts";
import { Tally } from "./tally.ts";

/** A recorder that takes a core from the job is not wanted; what is left out is counted. */
const QUERIES_PER_SECOND = 1000;
/** As many as dns11 keeps. */
const LAST_REFUSALS = 2000;
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
  await Promise.all([followQueries(client), followFailures(client), followRefusals(client)]);
  if (stopped.signal.aborted) await readRest(client);
  else endedEarly = STOPPED;
} catch (error) {
  const { code, message } = error as Error & { readonly code?: string };
  // A connection that breaks while it is made is the same as none.
  endedEarly = code === "NOT_RUNNING" || code === "CONTROL" ? STOPPED : message;
}
writeWhole(FILES.record, withPathOf(process.env, JSON.stringify(tally.record(endedEarly))));
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

async function followRefusals(client: ControlClient): Promise<void> {
  for await (const each of client.followPolicyLog({ last: LAST_REFUSALS }, stopped.signal)) tally.addRefusal(each);
}

/** Places of rules, with the path that the workflow has for the policies, wherever dns11 has read them. */
function withPathOf(env: Environment, text: string): string {
  const { policy } = readInputs(env);
  if (policy === "") return text;
  const inText = (path: string): string => JSON.stringify(path).slice(1, -1);
  const paths = [join(folder, FILES.policy), resolve(env["GITHUB_WORKSPACE"] ?? "", policy)];
  return paths.reduce((each, path) => each.replaceAll(`${inText(path)}:`, `${inText(policy)}:`), text);
}

/** What was on its way when the streams ended, and which names have resolved since. */
async function readRest(client: ControlClient): Promise<void> {
  const { queries } = await client.queries({ last: LAST_QUERIES });
  for (const each of queries) tally.addRecorded(each);
  const { failures } = await client.failures();
  for (const each of failures) tally.addFailure(each);
  const { refusals } = await client.policyLog({ last: LAST_REFUSALS });
  for (const each of refusals) tally.addRefusal(each);
  const { policies, containers } = await client.policies();
  if (policies.length > 0) tally.addPolicies(containers);
}

/** A reader finds all of it or nothing. */
function writeWhole(name: string, text: string): void {
  const path = join(folder, name);
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}
