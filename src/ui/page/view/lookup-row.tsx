/** LookupRow: one lookup as a row of a table: who looked up what, and what came of it. */
import type { JSX } from "preact";

import { milliseconds, preciseClock } from "../model/format.ts";
import { type Lookup, lookupText } from "../model/lookup.ts";
import { stop } from "./hooks.ts";
import { Cut } from "./parts.tsx";

interface LookupRowProps {
  readonly lookup: Lookup;
  readonly container: string;
  readonly isFirst: boolean;
  readonly isExplained: boolean;
  readonly onExplain: (type: string) => void;
}

export function LookupRow({ lookup, container, isFirst, isExplained, onExplain }: LookupRowProps): JSX.Element {
  const { types, result, how, ms, isBad, why, type } = lookupText(lookup);
  return (
    <tr
      class={`query ${isBad ? "query-bad" : ""} ${isExplained ? "is-explained" : ""}`}
      {...stop(isFirst)}
      title={why}
      onClick={() => onExplain(type)}
      onKeyDown={(event) => event.key === "Enter" && onExplain(type)}
    >
      <td class="time">{preciseClock(lookup.time)}</td>
      <td class="who">
        <Cut text={container} />
      </td>
      <td class="type">{types}</td>
      <td class="what">
        <Cut text={lookup.name ?? "(hidden)"} />
      </td>
      <td class="result">
        <Cut text={result} />
      </td>
      <td class="how">
        <Cut text={how} />
      </td>
      <td class="number">{ms === 0 ? "" : milliseconds(ms)}</td>
    </tr>
  );
}
