/** EventsPanel: what happened lately, the last one first. */
import type { JSX } from "preact";

import { useCell } from "../data/cell.ts";
import { eventText } from "../model/event-text.ts";
import { clock } from "../model/format.ts";
import { sinceMs } from "../model/past.ts";
import { inScope } from "../model/scope.ts";
import { usePage } from "./context.ts";
import { useNow } from "./hooks.ts";
import { Empty, Panel, Wire } from "./parts.tsx";

const SHOWN_MAX = 60;

export function EventsPanel(): JSX.Element {
  const { board, range, scope } = usePage();
  const nowMs = useNow(60_000);
  const since = sinceMs(useCell(board.history), range);
  const all = useCell(board.events);
  const events = all
    .filter(({ time }) => Date.parse(time) >= since)
    .filter((event) => event.project === null || inScope(scope, event))
    .slice(0, SHOWN_MAX);
  return (
    <Panel id="events" title="Events">
      {events.length === 0 && <Empty>Nothing has happened {all.length === 0 ? "yet" : "in this time"}.</Empty>}
      <ol class="events" tabIndex={events.length > 0 ? 0 : -1} aria-label="Events, the last one first">
        {events.map((event) => {
          const { tone, text } = eventText(event);
          return (
            <li key={event.number} class={`event event-${tone}`}>
              <time dateTime={event.time}>{clock(event.time, nowMs)}</time>
              <Wire text={text} />
            </li>
          );
        })}
      </ol>
    </Panel>
  );
}
