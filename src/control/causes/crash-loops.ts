/**
 * CrashLoops: a container that ends and is started again, over and over. Between two ends its name resolves, and nothing
 * listens there, so the cause is the same in both states.
 */
import type { Cause } from "../../api/causes.ts";
import { ageText } from "../../base/lib/age.ts";
import { commandOf } from "../../base/lib/command-line.ts";
import type { KnownContainer } from "./known-container.ts";
import { cause } from "./situation.ts";

/** One end may be an accident. */
const RESTARTS_MIN = 2;
/** Docker waits up to a minute between two starts; one that stays up for longer has recovered. */
const UP_MS = 60_000;
const LOG_LINES = 20;

/** Undefined for a container that is not in such a loop. */
export function crashCause(name: string, container: KnownContainer, nowMs: number): Cause | undefined {
  const how = container.ended === undefined ? upText(container, nowMs) : waitingText(container.ended, nowMs);
  if (how === undefined) return undefined;
  const sentence = `"${name}" is container ${container.name}, which ends and is started again, over and over: ${how}`;
  return cause("crash-loop", sentence, {
    fix: commandOf("docker", "logs", "--tail", String(LOG_LINES), container.name),
    advice: "its log says why it ends; the name resolves while it runs",
    isBreaking: true,
  });
}

function upText({ restarts = 0, startedMs = 0 }: KnownContainer, nowMs: number): string | undefined {
  if (restarts < RESTARTS_MIN || startedMs === 0 || nowMs - startedMs > UP_MS) return undefined;
  return `${restarts} times so far, the last time ${ageText(nowMs - startedMs)} ago`;
}

function waitingText(
  { state, exitCode, atMs }: NonNullable<KnownContainer["ended"]>,
  nowMs: number,
): string | undefined {
  if (state !== "restarting") return undefined;
  const code = exitCode === undefined ? "" : ` with code ${exitCode}`;
  return `it has ended${code}${atMs === undefined ? "" : `, ${ageText(nowMs - atMs)} ago`}, and Docker waits to start it`;
}
