/**
 * BrokenClients: containers whose programs resolve nothing, whatever they look up: they do not run for long, or they are in the network
 * namespace of a container that is no longer there.
 */
import type { Cause } from "../../api/causes.ts";
import { commandOf } from "../../base/lib/text.ts";
import { sharedWith } from "../../container/facts/fact.ts";
import { recreateCommand } from "./fixes.ts";
import type { KnownContainer, EndedState, KnownContainers } from "./known-container.ts";
import { cause } from "./situation.ts";
import { ageText } from "../../base/lib/quantity.ts";

const SHORT_ID_LENGTH = 12;

/** Why programs in a container get no answer at all; undefined if nothing is known to be in their way. */
export function clientCause(
  container: KnownContainer,
  known: Pick<KnownContainers, "byId" | "all">,
  nowMs: number,
): Cause | undefined {
  const crashing = crashCause(undefined, container, nowMs);
  if (crashing !== undefined) return crashing;
  const { ended, name } = container;
  if (ended !== undefined) return endedCause(container, ended, `container ${name} ${endedText(ended, nowMs)}`);
  return sharingCause(container, known);
}

/**
 * A container shares the namespace that another one had when this one was started. If that one is made again or started again, it gets
 * a new one, and this one stays in the old one, in which Docker has removed everything.
 */
function sharingCause(container: KnownContainer, known: Pick<KnownContainers, "byId" | "all">): Cause | undefined {
  const { name, networkMode = "", startedMs = 0 } = container;
  const word = sharedWith(networkMode);
  if (word === undefined) return undefined;
  const other = known.byId(word) ?? known.all.find((each) => each.name === word || each.id.startsWith(word));
  const what = `container ${name} uses the network namespace of `;
  const then = "so nothing resolves there, and it has no network";
  const parts = { about: name, isBreaking: true };
  if (other === undefined) {
    const fix = recreateCommand(container) ?? null;
    const id = word.slice(0, SHORT_ID_LENGTH);
    const sentence = `${what}container ${id}, which is gone: it was removed or made again, and ${name} was not; ${then}`;
    if (fix !== null) return cause("namespace-gone", sentence, { ...parts, fix });
    return cause("namespace-gone", sentence, {
      ...parts,
      advice: `create ${name} again, with the container that is there now`,
    });
  }
  const restart = commandOf("docker", "restart", name);
  if (other.ended !== undefined) {
    const fix = `${commandOf("docker", "start", other.name)} && ${restart}`;
    return cause("namespace-gone", `${what}${other.name}, which does not run; ${then}`, { ...parts, fix });
  }
  if (startedMs === 0 || other.startedMs === undefined || startedMs >= other.startedMs) return undefined;
  const sentence = `${what}${other.name} as it was before that was started again; ${then}`;
  return cause("namespace-gone", sentence, { ...parts, fix: restart });
}

/** One end may be an accident. */
const RESTARTS_MIN = 2;
/** Docker waits up to a minute between two starts; one that stays up for longer has recovered. */
const UP_MS = 60_000;

/**
 * A container that ends and is started again, over and over. Between two ends its name resolves, and nothing
 * listens there, so the cause is the same in both states.
 * Undefined for a container that is not in such a loop. `name` is what was looked up, if something was.
 */
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

const LOG_LINES = 20;
/** Exit codes of SIGINT, SIGKILL and SIGTERM: it was stopped. */
const STOPPED_CODES = new Set([130, 137, 143]);

/** A container that does not run. One that has ended with an error ends again if it is started again, so its log comes first. */
export function endedCause({ name }: KnownContainer, { state, exitCode = 0 }: EndedState, sentence: string): Cause {
  const start = commandOf("docker", "start", name);
  const parts = { about: name, isBreaking: true };
  if (state !== "exited" || exitCode === 0 || STOPPED_CODES.has(exitCode))
    return cause("not-running", sentence, { ...parts, fix: start });
  const advice = `its log says why it ended with code ${exitCode}; when that is mended, start it: ${start}`;
  return cause("not-running", sentence, { ...parts, fix: logCommand(name), advice });
}

function logCommand(name: string): string {
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
