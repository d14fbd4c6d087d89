/**
 * Ended: a container that does not run. One that has ended with an error ends again if it is started again, so its log comes first.
 */
import type { Cause } from "../../api/causes.ts";
import { ageText } from "../../base/lib/age.ts";
import { commandOf } from "../../base/lib/command-line.ts";
import type { EndedState, KnownContainer } from "./known-container.ts";
import { cause } from "./situation.ts";

const LOG_LINES = 20;
/** Exit codes of SIGINT, SIGKILL and SIGTERM: it was stopped. */
const STOPPED_CODES = new Set([130, 137, 143]);

export function endedCause({ name }: KnownContainer, { state, exitCode = 0 }: EndedState, sentence: string): Cause {
  const start = commandOf("docker", "start", name);
  const parts = { about: name, isBreaking: true };
  if (state !== "exited" || exitCode === 0 || STOPPED_CODES.has(exitCode))
    return cause("not-running", sentence, { ...parts, fix: start });
  const advice = `its log says why it ended with code ${exitCode}; when that is mended, start it: ${start}`;
  return cause("not-running", sentence, { ...parts, fix: logCommand(name), advice });
}

export function logCommand(name: string): string {
  return commandOf("docker", "logs", "--tail", String(LOG_LINES), name);
}

export function endedText({ state, exitCode, atMs }: EndedState, nowMs: number): string {
  if (state === "created") return "was created but never started";
  const code = exitCode === undefined || state !== "exited" ? "" : ` with code ${exitCode}`;
  const ago = atMs === undefined ? "" : `, ${ageText(nowMs - atMs)} ago`;
  return state === "exited"
    ? `exited${code}${ago}`
    : `is not running (${state})${atMs === undefined ? "" : `; it ended${ago.slice(1)}`}`;
}
