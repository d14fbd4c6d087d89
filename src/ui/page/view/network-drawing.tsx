/** NetworkDrawing: networks as lines, and the containers that stop at them. */
import type { JSX } from "preact";
import { useMemo, useRef } from "preact/hooks";

import { useCell } from "../data/cell.ts";
import { CHIP, type Chip, type Line, drawingOf } from "../model/drawing.ts";
import { plural } from "../model/format.ts";
import { usePage } from "./context.ts";
import { moveFocus, stop, useWidth } from "./hooks.ts";

const STATES: Readonly<Record<Chip["state"], string>> = {
  ok: "",
  fails: ", a lookup fails",
  unserved: ", not served by dns11",
  stopped: ", not running",
};

export function NetworkDrawing(): JSX.Element {
  const { board, scope, failing, open } = usePage();
  const [networks, containers] = [useCell(board.networks), useCell(board.containers)];
  const area = useRef<HTMLDivElement>(null);
  const width = useWidth(area);
  const drawing = useMemo(
    () => drawingOf(networks, containers, failing.now, scope, width),
    [networks, containers, failing, scope, width],
  );
  const { lines, rows, chips, arrows, omitted } = drawing;
  return (
    <div class="drawing" ref={area}>
      {width > 0 && (
        <svg
          width={drawing.width}
          height={drawing.height}
          viewBox={`0 0 ${drawing.width} ${drawing.height}`}
          role="group"
          aria-label={`${plural(chips.length, "container")} on ${plural(lines.length, "network")}`}
          onKeyDown={(event) => moveFocus(event)}
        >
          <defs>
            <marker id="arrow" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto">
              <path d="M0,0 L8,4 L0,8 Z" class="arrow-head" />
            </marker>
          </defs>
          {lines.map((line) => (
            <NetworkLine key={line.network.id} line={line} />
          ))}
          {rows.map(({ y, stops, chipsX }) => (
            <g key={y}>
              {stops[0] !== undefined && <path class="track" d={`M${stops[0].x},${y} H${chipsX}`} />}
              {stops.map(({ x, colour, network }) => (
                <circle key={network.id} class={`stop line-${colour}`} cx={x} cy={y} r="4.5" />
              ))}
            </g>
          ))}
          {arrows.map(({ path }) => (
            <path key={path} class="fail-arrow" d={path} marker-end="url(#arrow)" />
          ))}
          {chips.map((chip, index) => (
            <ChipShape key={chip.key} chip={chip} isFirst={index === 0} onOpen={() => open(chip.containers[0]?.id ?? "")} />
          ))}
        </svg>
      )}
      {omitted > 0 && <p class="note">{omitted} more containers: choose a project.</p>}
    </div>
  );
}

function NetworkLine({ line: { network, colour, x, labelY, endY } }: { readonly line: Line }): JSX.Element {
  const kind = network.hasNames ? network.driver : `${network.driver}, no names`;
  return (
    <g class={`line line-${colour} ${network.hasNames ? "" : "line-nameless"}`}>
      <path d={`M${x},${labelY} V${Math.max(endY, labelY)}`} />
      <circle class="stop" cx={x} cy={labelY} r="4.5" />
      <text x={x + 11} y={labelY + 4}>
        <tspan class="network-name">{network.name}</tspan>
        <tspan class="network-note" dx="8">
          {network.isInternal ? `${kind}, internal` : kind}
        </tspan>
      </text>
    </g>
  );
}

interface ChipProps {
  readonly chip: Chip;
  readonly isFirst: boolean;
  readonly onOpen: () => void;
}

function ChipShape({ chip: { label, state, x, y, width }, isFirst, onOpen }: ChipProps): JSX.Element {
  return (
    <g
      class={`chip chip-${state}`}
      role="button"
      aria-label={`${label}${STATES[state]}`}
      {...stop(isFirst)}
      transform={`translate(${x},${y})`}
      onClick={onOpen}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        onOpen();
      }}
    >
      <rect width={width} height={CHIP.height} rx="7" />
      <circle cx="11" cy={CHIP.height / 2} r="3.5" />
      <text x="19" y={CHIP.height / 2 + 4}>
        {label}
      </text>
    </g>
  );
}
