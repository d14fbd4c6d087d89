/** CauseView: why something fails, what fixes it now, and what fixes it for good. */
import type { JSX } from "preact";

import { type Cause, type LastingFix, fixesOf } from "../../../api/causes.ts";
import { type FailingEntry, sentenceOf } from "../model/failing.ts";
import { Command, Wire } from "./parts.tsx";

const FIXES_MAX = 8;

interface CauseViewProps {
  readonly cause: Cause;
  /** All that it hits. */
  readonly entry?: FailingEntry;
}

export function CauseView({ cause, entry }: CauseViewProps): JSX.Element {
  const { fixes, lastingFixes } = entry ?? fixesOf(cause);
  const { advice } = cause;
  const applied = [...new Set(lastingFixes.flatMap(({ command }) => command ?? []))];
  return (
    <div class="cause">
      <p>
        <Wire text={entry === undefined ? cause.sentence : sentenceOf(cause, entry)} />
      </p>
      {fixes.length > 0 && <Command lines={fixes.slice(0, FIXES_MAX)} />}
      {fixes.length > FIXES_MAX && <p class="note">{fixes.length - FIXES_MAX} more: dns11 failures</p>}
      {advice !== undefined && (
        <p>
          {fixes.length === 0 ? "Fix" : "And"}: <Wire text={advice} />
        </p>
      )}
      {byChange(lastingFixes).map(([{ file, change }, keys]) => (
        <p class="lasting" key={`${file} ${change}`}>
          For good: <Wire text={file ?? "the Compose file"} />,{" "}
          {keys.slice(0, FIXES_MAX).map((key) => (
            <span key={key}>
              <code>{key}</code>
              {key === keys.at(-1) ? ": " : ", "}
            </span>
          ))}
          {keys.length > FIXES_MAX && `and ${keys.length - FIXES_MAX} more: `}
          <Wire text={change} />
        </p>
      ))}
      {applied.length > 0 && <Command lines={applied.slice(0, FIXES_MAX)} />}
    </div>
  );
}

/** One change of one file, with all the keys that need it. */
function byChange(fixes: readonly LastingFix[]): readonly (readonly [LastingFix, readonly string[]])[] {
  const found = new Map<string, readonly [LastingFix, string[]]>();
  for (const fix of fixes) {
    const key = JSON.stringify([fix.file, fix.change]);
    const known = found.get(key);
    if (known === undefined) found.set(key, [fix, [fix.key]]);
    else known[1].push(fix.key);
  }
  return [...found.values()];
}
