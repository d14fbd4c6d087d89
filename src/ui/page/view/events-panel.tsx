/** EventsPanel: what happened lately, the last one first. */
import type { JSX } from "preact";

import { useCell } from "../data/cell.ts";
import { eventText } from "../model/event-text.ts";
import { clock } from "../model/format.ts";
import { inScope } from "../model/scope.ts";
import { usePage } from "./context.ts";
import { useNow } from "./hooks.ts";
import { Empty, Panel, Wire } from "./parts.tsx";

const SHOWN_MAX = 60;

export function EventsPanel(): JSX.Element {
  const { board, scope } = usePage();
  const nowMs = useNow(60_000);
  const events = useCell(board.events)
    .filter((event) => event.project === null || inScope(scope, event))
    .slice(0, SHOWN_MAX);
  return (
    <Panel id="events" title="Events">
      {events.length === 0 && <Empty>Nothing has happened yet.</Empty>}
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
