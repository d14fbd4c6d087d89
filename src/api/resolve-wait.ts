/**
 * ResolveWait: waits until a name resolves in a container, or in each container of a service, and says at the end of its time what dns11 knows
 * about the failure.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Fault, codeOf, reasonOf } from "../base/lib/fault.ts";
import { containersCalled } from "../base/model/container-choice.ts";
import type { Cause, NotResolved } from "./causes.ts";
import type { ControlClient } from "./control-client.ts";
import { recordsFor } from "./names.ts";
import type { RecordText } from "../base/model/reply-text.ts";

interface Wanted {
  readonly container: string;
  readonly name: string;
  readonly type: string;
}

const RETRY_INTERVAL_MS = 100;
/** For the explanation at the end: its own query may go to servers that do not reply. */
const EXPLAIN_TIMEOUT_MS = 5_000;
/** Error codes that waiting does not resolve. */
const PERMANENT_CODES = new Set(["CLOSED", "CONTROL_PERMISSION", "BAD_QUESTION", "BAD_BODY"]);

/** What the last try found, in one container. */
interface Outcome {
  readonly container: string;
  readonly records: readonly RecordText[];
  readonly result: string;
  /** dns11 replied; a result that came too late says less than an earlier one. */
  readonly isReply: boolean;
  /** It may be a Compose service with several containers. */
  readonly isSeveral?: boolean;
}

export async function waitUntilResolves(
  client: ControlClient,
  wanted: Wanted,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<readonly RecordText[]> {
  const endMs = performance.now() + timeoutMs;
  let last: Outcome | undefined;
  for (;;) {
    const outcomes = await tryEach(client, wanted, endMs);
    const failed = outcomes.find(({ records }) => records.length === 0);
    if (failed === undefined) return withoutDuplicates(outcomes.flatMap(({ records }) => records));
    if (failed.isReply || last === undefined) last = failed;
    if (performance.now() + RETRY_INTERVAL_MS > endMs) throw await faultOf(client, wanted, last, timeoutMs);
    await sleep(RETRY_INTERVAL_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** Tries the container, or at once all of the service's: which these are may change from try to try. */
async function tryEach(client: ControlClient, wanted: Wanted, endMs: number): Promise<readonly Outcome[]> {
  const outcome = await tryOne(client, wanted, endMs);
  if (outcome.isSeveral !== true) return [outcome];
  try {
    const { containers } = await client.status();
    const members = containersCalled(containers, wanted.container);
    return await Promise.all(
      members.map(async ({ name }) => await tryOne(client, { ...wanted, container: name }, endMs)),
    );
  } catch (error) {
    const code = codeOf(error) ?? "";
    // The beginning of several IDs stays that.
    if (code === "AMBIGUOUS_CONTAINER" || PERMANENT_CODES.has(code)) throw error;
    return [outcome];
  }
}

async function tryOne(client: ControlClient, wanted: Wanted, endMs: number): Promise<Outcome> {
  const { container } = wanted;
  try {
    // A server that does not reply takes longer than the remaining time.
    const restMs = Math.max(RETRY_INTERVAL_MS, Math.ceil(endMs - performance.now()));
    const found = await client.lookup(wanted, restMs);
    const { rcode, answers, question } = found;
    const isFound = recordsFor(found, question.type).length > 0;
    const result = rcode === "NOERROR" && !isFound ? "no records" : (rcode ?? "no reply");
    return { container, records: isFound ? answers : [], result, isReply: true };
  } catch (error) {
    const code = codeOf(error) ?? "";
    if (PERMANENT_CODES.has(code)) throw error;
    const isSeveral = code === "AMBIGUOUS_CONTAINER";
    return { container, records: [], result: reasonOf(error), isReply: code !== "CONTROL", isSeveral };
  }
}

function withoutDuplicates(records: readonly RecordText[]): readonly RecordText[] {
  const byText = new Map(records.map((each) => [JSON.stringify([each.name, each.type, each.data]), each]));
  return [...byText.values()];
}

async function faultOf(
  client: ControlClient,
  { name, type, container: word }: Wanted,
  { container, result }: Outcome,
  timeoutMs: number,
): Promise<NotResolved> {
  const where = container === word ? `"${word}"` : `"${container}" of "${word}"`;
  const what = `"${name}" (${type}) did not resolve in ${where} within ${timeoutMs} ms`;
  const causes = await causesOf(client, { container, name, type });
  const [first] = causes;
  const why = first === undefined ? "" : `; ${first.sentence}`;
  const options = first?.fix == null ? {} : { remedy: first.fix };
  return Object.assign(new Fault("NOT_RESOLVED", `${what}; last result: ${result}${why}`, options), { causes });
}

async function causesOf(client: ControlClient, wanted: Wanted): Promise<readonly Cause[]> {
  try {
    return (await client.explain(wanted, EXPLAIN_TIMEOUT_MS)).causes;
  } catch {
    // The container does not run, or dns11 has stopped: the last result says so.
    return [];
  }
}
