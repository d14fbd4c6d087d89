/**
 * Exit codes, and what a person is told when a command ends badly. They are documented in README.
 */
import { BadSettings } from "../src/config/bad-settings.ts";
import { Fault, reasonOf } from "../src/base/lib/fault.ts";
import { printableText } from "./printable.ts";

export const EXIT = {
  ok: 0,
  /** Something went wrong on the way, or is wrong where somebody asked. */
  failure: 1,
  /** The command line, the environment or the settings file cannot be understood. */
  usage: 2,
  /** dns11 cannot work here: capabilities, kernel, platform, or an engine whose namespaces are elsewhere. */
  cannotServe: 3,
  /** Another instance serves this engine. */
  locked: 4,
  /** A lookup got no reply, as dig has it. */
  noReply: 9,
} as const;

/** What the doctors end with: monitors know these three. */
export const DOCTOR_EXIT = {
  healthy: EXIT.ok,
  problems: EXIT.failure,
  /** Nothing wrong was found, but not everything could be looked at. */
  unchecked: EXIT.usage,
} as const;

const BY_CODE = new Map<string, number>([
  ["USAGE", EXIT.usage],
  ["BAD_QUESTION", EXIT.usage],
  ["BAD_QUERY", EXIT.usage],
  ["BAD_RCODE", EXIT.usage],
  ["BAD_BODY", EXIT.usage],
  ["BAD_SETTINGS", EXIT.usage],
  ["BAD_ENGINE", EXIT.usage],
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

/** A Fault in two lines, what and what to do; a defect with its stack. Wrong settings begin with their place each. */
export function errorText(thrown: unknown): string {
  if (thrown instanceof BadSettings) return thrown.message;
  if (!(thrown instanceof Fault)) {
    return thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
  }
  const remedy = thrown.remedy === undefined ? "" : `\n  ${thrown.remedy}`;
  // Also what a daemon said, which may quote a container.
  return printableText(`dns11: ${reasonOf(thrown)}${remedy}`);
}
