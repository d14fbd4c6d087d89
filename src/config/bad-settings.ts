/**
 * BadSettings: what is wrong with what people said, a line each, all of it at once: whoever mends one mistake should not
 * find the next one only then.
 */
import { Fault } from "../base/lib/fault.ts";

/** So many are told; whoever has more knows where to begin. */
export const MISTAKES_SHOWN_MAX = 50;

export class BadSettings extends Fault {
  readonly lines: readonly string[];
  /** Of all mistakes, where there are more than lines. */
  readonly count: number;

  constructor(lines: readonly string[], count = lines.length) {
    const told = lines.slice(0, MISTAKES_SHOWN_MAX);
    const more = count > told.length ? [`... and ${count - told.length} more`] : [];
    super("BAD_SETTINGS", [...told, ...more].join("\n"), { isFinal: true });
    this.lines = told;
    this.count = count;
  }
}
