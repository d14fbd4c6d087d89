/** CauseView: why something fails, what fixes it now, and what fixes it for good. */
import type { JSX } from "preact";

import type { Cause, LastingFix } from "../../../api/causes.ts";
import { Command, Wire } from "./parts.tsx";

/** Others are sentences, such as which name to use instead. */
const COMMAND = /^(?:docker|dns11|sudo) /;
const FIXES_MAX = 8;

interface CauseViewProps {
  readonly cause: Cause;
  /** That of the cause, unless it concerns several names. */
  readonly sentence?: string;
  /** The fixes for several containers. */
  readonly fixes?: readonly string[];
  readonly lastingFixes?: readonly LastingFix[];
}

export function CauseView({
  cause,
  sentence = cause.sentence,
  fixes = cause.fix === null ? [] : [cause.fix],
  lastingFixes = cause.lastingFix === null ? [] : [cause.lastingFix],
}: CauseViewProps): JSX.Element {
  const commands = fixes.filter((fix) => COMMAND.test(fix));
  const { advice } = cause;
  const applied = [...new Set(lastingFixes.flatMap(({ command }) => command ?? []))];
  const others = fixes.filter((fix) => !COMMAND.test(fix)).slice(0, FIXES_MAX);
  return (
    <div class="cause">
      <p>
        <Wire text={sentence} />
      </p>
      {others.map((fix) => (
        <p key={fix}>
          Fix: <Wire text={fix} />
        </p>
      ))}
      {commands.length > 0 && <Command lines={commands.slice(0, FIXES_MAX)} />}
      {commands.length > FIXES_MAX && <p class="note">{commands.length - FIXES_MAX} more: dns11 failures</p>}
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
