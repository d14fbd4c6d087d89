/** NetworkDrawing: networks as lines, and the containers that stop at them. */
import type { JSX } from "preact";
import { useMemo, useRef } from "preact/hooks";

import { useCell } from "../data/cell.ts";
import { CHIP_HEIGHT, type Chip } from "../model/chip.ts";
import { type Line, drawingOf } from "../model/drawing.ts";
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
    () => drawingOf({ networks, containers, failing: failing.now, scope }, width),
    [networks, containers, failing, scope, width],
  );
  const { lines, rows, chips, arrows, labels, omitted, textX } = drawing;
  return (
    <div class="drawing" ref={area} tabIndex={-1}>
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
            <path key={line.network.id} class={lineClass(line)} d={`M${line.x},${line.startY} V${line.endY}`} />
          ))}
          {rows.map(({ y, stops }) => (
            <g key={y}>
              {stops[0] !== undefined && <path class="track" d={`M${stops[0].x},${y} H${textX}`} />}
              {stops.map(({ x, colour, network }) => (
                <circle key={network.id} class={`stop line-${colour}`} cx={x} cy={y} r="4.5" />
              ))}
            </g>
          ))}
          {lines.map((line) => (
            <LineLabel key={line.network.id} line={line} textX={textX} />
          ))}
          {arrows.map(({ key, path, title }) => (
            <path key={key} class="fail-arrow" d={path} marker-end="url(#arrow)" role="img" aria-label={title}>
              <title>{title}</title>
            </path>
          ))}
          {labels.map(({ key, text, x, y }) => (
            <text key={key} class="fail-label" x={x} y={y}>
              {text}
            </text>
          ))}
          {chips.map((chip, index) => (
            <ChipShape
              key={chip.key}
              chip={chip}
              isFirst={index === 0}
              onOpen={() => open(chip.containers[0]?.id ?? "")}
            />
          ))}
        </svg>
      )}
      {arrows.length > 0 && <p class="note">A dashed arrow: this name is looked up, and it fails.</p>}
      {omitted > 0 && <p class="note">{omitted} more containers: choose a project.</p>}
    </div>
  );
}

function lineClass({ colour, network }: Line): string {
  return `line line-${colour} ${network.hasNames ? "" : "line-nameless"}`;
}

function LineLabel({ line, textX }: { readonly line: Line; readonly textX: number }): JSX.Element {
  const { network, label, note, colour, x, startY } = line;
  return (
    <g class={`label line-${colour}`}>
      <path class="lead" d={`M${x},${startY} H${textX}`} />
      <circle class="stop is-start" cx={x} cy={startY} r="5.5" />
      <text x={textX + 4} y={startY + 4}>
        <title>{network.name}</title>
        <tspan class="network-name">{label}</tspan>
        <tspan class="network-note" dx="8">
          {note}
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

function ChipShape({ chip: { label, containers, state, x, y, width }, isFirst, onOpen }: ChipProps): JSX.Element {
  const names = containers.map(({ name }) => name).join(", ");
  return (
    <g
      class={`chip chip-${state}`}
      role="button"
      aria-label={`${names}${STATES[state]}`}
      {...stop(isFirst)}
      transform={`translate(${x},${y})`}
      onClick={onOpen}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        onOpen();
      }}
    >
      <title>{names}</title>
      <rect width={width} height={CHIP_HEIGHT} rx="7" />
      <circle cx="11" cy={CHIP_HEIGHT / 2} r="3.5" />
      <text x="19" y={CHIP_HEIGHT / 2 + 4}>
        {label}
      </text>
    </g>
  );
}
