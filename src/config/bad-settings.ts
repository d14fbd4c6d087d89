/**
 * BadSettings: all mistakes in the settings, one a line, so that one run shows everything there is to fix.
 */
import { Fault } from "../base/lib/fault.ts";

/** Only the first mistakes are listed. */
export const MISTAKES_SHOWN_MAX = 50;

export class BadSettings extends Fault {
  readonly lines: readonly string[];
  /** Of all mistakes; there may be more than `lines`. */
  readonly count: number;

  /** Throws them, where there are any. */
  static throwAny(lines: readonly string[]): void {
    if (lines.length > 0) throw new BadSettings(lines);
  }

  constructor(lines: readonly string[], count = lines.length) {
    const shown = lines.slice(0, MISTAKES_SHOWN_MAX);
    const more = count > shown.length ? [`... and ${count - shown.length} more`] : [];
    super("BAD_SETTINGS", [...shown, ...more].join("\n"), { isFinal: true });
    this.lines = shown;
    this.count = count;
  }
}
