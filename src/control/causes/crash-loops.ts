/**
 * CrashLoops: a container that ends and is started again, over and over. Between two ends its name resolves, and nothing
 * listens there, so the cause is the same in both states.
 */
import type { Cause } from "../../api/causes.ts";
import { ageText } from "../../base/lib/age.ts";
import { logCommand } from "./ended.ts";
import type { KnownContainer } from "./known-container.ts";
import { cause } from "./situation.ts";

/** One end may be an accident. */
const RESTARTS_MIN = 2;
/** Docker waits up to a minute between two starts; one that stays up for longer has recovered. */
const UP_MS = 60_000;

/** Undefined for a container that is not in such a loop. `name` is what was looked up, if something was. */
export function crashCause(name: string | undefined, container: KnownContainer, nowMs: number): Cause | undefined {
  const how = container.ended === undefined ? upText(container, nowMs) : waitingText(container, nowMs);
  if (how === undefined) return undefined;
  const who = name === undefined ? `container ${container.name}` : `"${name}" is container ${container.name}, which`;
  const rest = name === undefined ? "" : "; the name resolves while it runs";
  return cause("crash-loop", `${who} ends and is started again, over and over: ${how}`, {
    fix: logCommand(container.name),
    advice: `its log says why it ends${rest}`,
    isBreaking: true,
  });
}

function upText({ restarts = 0, startedMs = 0 }: KnownContainer, nowMs: number): string | undefined {
  if (restarts < RESTARTS_MIN || startedMs === 0 || nowMs - startedMs > UP_MS) return undefined;
  return `${restarts} times so far, the last time ${ageText(nowMs - startedMs)} ago`;
}

function waitingText({ ended, restarts }: KnownContainer, nowMs: number): string | undefined {
  if (ended?.state !== "restarting") return undefined;
  const { exitCode, atMs } = ended;
  const times = restarts === undefined ? "" : `${restarts} times so far, `;
  const code = exitCode === undefined ? "" : ` with code ${exitCode}`;
  return `${times}it has ended${code}${atMs === undefined ? "" : `, ${ageText(nowMs - atMs)} ago`}, and Docker waits to start it`;
}
