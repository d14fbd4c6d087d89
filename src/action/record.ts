/**
 * Record: the process between the halves of the GitHub Action. It follows the queries, the failures and the refusals of all containers, so that those
 * of containers that are gone at the end of the job are in the summary. SIGTERM makes it write what it has, and end.
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

/** `folder`: that of the step. */
export async function record(folder: string): Promise<void> {
  const tally = new Tally();
  const stopped = new AbortController();
  process.on("SIGTERM", () => stopped.abort());
  // From now on it can be ended.
  writeWhole(folder, FILES.recorder, String(process.pid));
  const endedEarly = await follow(tally, stopped.signal);
  writeWhole(folder, FILES.record, withPathOf(folder, process.env, JSON.stringify(tally.record(endedEarly))));
  process.exit(0);
}

/** Until it is stopped; or returns why it ended before. */
async function follow(tally: Tally, signal: AbortSignal): Promise<string | null> {
  try {
    const client = await clientOf(process.env);
    await Promise.all([
      followQueries(client, tally, signal),
      followFailures(client, tally, signal),
      followRefusals(client, tally, signal),
    ]);
    if (!signal.aborted) return STOPPED;
    await readRest(client, tally);
    return null;
  } catch (error) {
    const { code, message } = error as Error & { readonly code?: string };
    // A connection that breaks while it is made is the same as none.
    return code === "NOT_RUNNING" || code === "CONTROL" ? STOPPED : message;
  }
}

async function followQueries(client: ControlClient, tally: Tally, signal: AbortSignal): Promise<void> {
  for await (const each of client.followSome({ perSecond: QUERIES_PER_SECOND, last: LAST_QUERIES }, signal)) {
    if ("skipped" in each) tally.addMissed(each.skipped);
    else if ("missed" in each) tally.addMissed(each.missed);
    else tally.addQuery(each);
  }
}

async function followFailures(client: ControlClient, tally: Tally, signal: AbortSignal): Promise<void> {
  for await (const each of client.followFailures({}, signal)) tally.addFailure(each);
}

async function followRefusals(client: ControlClient, tally: Tally, signal: AbortSignal): Promise<void> {
  for await (const each of client.followPolicyLog({ last: LAST_REFUSALS }, signal)) tally.addRefusal(each);
}

/** Places of rules, with the path that the workflow has for the policies, wherever dns11 has read them. */
function withPathOf(folder: string, env: Environment, text: string): string {
  const { policy } = readInputs(env);
  if (policy === "") return text;
  const inText = (path: string): string => JSON.stringify(path).slice(1, -1);
  const paths = [join(folder, FILES.policy), resolve(env["GITHUB_WORKSPACE"] ?? "", policy)];
  return paths.reduce((each, path) => each.replaceAll(`${inText(path)}:`, `${inText(policy)}:`), text);
}

/** What was on its way when the streams ended, and which names have resolved since. */
async function readRest(client: ControlClient, tally: Tally): Promise<void> {
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
function writeWhole(folder: string, name: string, text: string): void {
  const path = join(folder, name);
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}
