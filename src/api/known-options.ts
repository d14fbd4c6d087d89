/** KnownOptions: refuses options that there are not. JavaScript would ignore them, and a suite would wait for something else than it says. */
import { Fault } from "../base/lib/fault.ts";
import { nearest } from "../base/lib/nearest.ts";

export function refuseUnknownOptions(of: string, options: object | undefined, known: readonly string[]): void {
  for (const key of Object.keys(options ?? {})) {
    if (known.includes(key)) continue;
    const suggestion = nearest(key, known);
    const hint = suggestion === undefined ? `use ${known.join(", ")}` : `did you mean "${suggestion}"?`;
    throw new Fault("BAD_OPTION", `Unknown option "${key}" of ${of}: ${hint}`);
  }
}

/** A number of milliseconds that a timer can have. */
export function readTimeout(of: string, value: unknown): number {
  if (typeof value === "number" && value >= 0 && value <= TIMEOUT_MS_MAX) return value;
  throw new Fault("BAD_OPTION", `Invalid option timeoutMs of ${of}: use a number from 0 to ${TIMEOUT_MS_MAX}`);
}

const TIMEOUT_MS_MAX = 2 ** 31 - 1;
