/**
 * Exit codes, and the error text of a command that fails. docs/cli.md lists them.
 */
import { BadSettings } from "../../src/config/bad-settings.ts";
import type { Finding } from "../../src/base/model/finding.ts";
import { Fault, reasonOf } from "../../src/base/lib/fault.ts";
import { printableText } from "../text/printable.ts";

export const EXIT = {
  ok: 0,
  /** The operation failed, or a check found a problem. */
  failure: 1,
  /** The command line, the environment or the settings file is invalid, or names a container that there is not. */
  usage: 2,
  /** dns11 cannot work here: capabilities, kernel, platform, or an engine whose namespaces are elsewhere. */
  cannotServe: 3,
  /** Another instance serves this engine. */
  locked: 4,
  /** A doctor found nothing wrong, and could not do all checks. */
  unchecked: 5,
  /** A lookup got no reply; the same code as dig's. */
  noReply: 9,
} as const;

const BY_CODE = new Map<string, number>([
  ["USAGE", EXIT.usage],
  ["BAD_QUESTION", EXIT.usage],
  ["BAD_QUERY", EXIT.usage],
  ["BAD_RCODE", EXIT.usage],
  ["BAD_BODY", EXIT.usage],
  ["BAD_RULE", EXIT.usage],
  ["BAD_POLICY", EXIT.usage],
  ["BAD_TAPE", EXIT.usage],
  ["BAD_SETTINGS", EXIT.usage],
  ["BAD_ENGINE", EXIT.usage],
  ["NO_SUCH_CONTAINER", EXIT.usage],
  ["NO_SUCH_NODE", EXIT.usage],
  ["NO_SUCH_PROJECT", EXIT.usage],
  ["AMBIGUOUS_CONTAINER", EXIT.usage],
  ["ENGINE_ELSEWHERE", EXIT.cannotServe],
  ["ENGINE_ROOTLESS", EXIT.cannotServe],
  ["ENGINE_TOO_OLD", EXIT.cannotServe],
  ["MISSING_CAPABILITY", EXIT.cannotServe],
  ["KERNEL", EXIT.cannotServe],
  ["PLATFORM", EXIT.cannotServe],
  ["LOCKED", EXIT.locked],
]);

export function exitCodeOf(thrown: unknown): number {
  return thrown instanceof Fault ? (BY_CODE.get(thrown.code) ?? EXIT.failure) : EXIT.failure;
}

/** For the doctor commands: a problem takes precedence over a check that could not be done. */
export function setExitCode(findings: readonly Finding[]): void {
  const states = new Set(findings.map(({ state }) => state));
  if (states.has("problem")) process.exitCode = EXIT.failure;
  else if (states.has("unknown")) process.exitCode = EXIT.unchecked;
}

/** A Fault as two lines, problem and remedy; an internal error with its stack; invalid settings as a line for each mistake. */
export function errorText(thrown: unknown): string {
  if (thrown instanceof BadSettings) return thrown.message;
  if (!(thrown instanceof Fault)) {
    return thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
  }
  const remedy = thrown.remedy === undefined ? "" : `\n  ${thrown.remedy}`;
  // A daemon's error may quote what a container wrote.
  return printableText(`dns11: ${reasonOf(thrown)}${remedy}`);
}
