/** CauseView: why something fails, what fixes it now, and what fixes it for good. */
import type { JSX } from "preact";

import type { Cause } from "../../../api/causes.ts";
import { Command, Wire } from "./parts.tsx";

/** Others are sentences, such as which name to use instead. */
const COMMAND = /^(?:docker|dns11|sudo) /;
const FIXES_MAX = 8;

interface CauseViewProps {
  readonly cause: Cause;
  /** Of several containers. */
  readonly fixes?: readonly string[];
}

export function CauseView({ cause, fixes = cause.fix === null ? [] : [cause.fix] }: CauseViewProps): JSX.Element {
  const { sentence, advice, lastingFix } = cause;
  const commands = fixes.filter((fix) => COMMAND.test(fix)).slice(0, FIXES_MAX);
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
      {commands.length > 0 && <Command lines={commands} />}
      {advice !== undefined && (
        <p>
          {fixes.length === 0 ? "Fix" : "And"}: <Wire text={advice} />
        </p>
      )}
      {lastingFix !== null && (
        <p class="lasting">
          For good: <Wire text={lastingFix.file ?? "the Compose file"} />, <code>{lastingFix.key}</code>:{" "}
          <Wire text={lastingFix.change} />
        </p>
      )}
      {lastingFix?.command !== undefined && <Command lines={[lastingFix.command]} />}
    </div>
  );
}
