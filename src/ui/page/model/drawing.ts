/**
 * Drawing: networks and containers as a map of lines. Each network is a line from its label down; containers on the same networks are one
 * row, which stops at the lines of these networks. Containers of one service are one chip, so that 200 containers take the room of
 * their services.
 */
import type { ContainerReport, ContainersReport } from "../../../api/containers.ts";
import type { NetworkReport, NetworksReport } from "../../../api/networks.ts";
import type { FailingEntry } from "./failing.ts";
import { type Scope, inScope, shortName } from "./scope.ts";

const LINE_EVERY = 16;
const LABEL_HEIGHT = 22;
const CHIP_HEIGHT = 24;
const CHIP_GAP = 6;
const ROW_GAP = 14;
const MARGIN = 10;
/** Of the monospaced font in which chips are written. */
const CHARACTER_WIDTH = 7.25;
const CHIP_PADDING = 24;
const CHIP_CHARACTERS_MAX = 28;
const GUTTER = 34;
const CHIPS_MAX = 400;
const ARROWS_MAX = 12;
const COLOURS = 8;

export type ChipState = "ok" | "fails" | "unserved" | "stopped";

export interface Chip {
  readonly key: string;
  readonly label: string;
  readonly containers: readonly ContainerReport[];
  readonly state: ChipState;
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

export interface Line {
  readonly network: NetworkReport;
  readonly colour: number;
  readonly x: number;
  readonly labelY: number;
  readonly endY: number;
}

export interface Row {
  readonly y: number;
  /** The lines at which it stops. */
  readonly stops: readonly Line[];
  readonly chipsX: number;
}

/** From the container whose query fails to the one that it needs. */
export interface Arrow {
  readonly path: string;
}

export interface Drawing {
  readonly width: number;
  readonly height: number;
  readonly lines: readonly Line[];
  readonly rows: readonly Row[];
  readonly chips: readonly Chip[];
  readonly arrows: readonly Arrow[];
  readonly omitted: number;
}

interface Group {
  readonly networks: readonly string[];
  readonly chips: Map<string, ContainerReport[]>;
}

export const CHIP = { height: CHIP_HEIGHT };

export function drawingOf(
  networks: NetworksReport | null,
  containers: ContainersReport | null,
  failing: readonly FailingEntry[],
  scope: Scope,
  width: number,
): Drawing {
  const shown = (containers?.containers ?? []).filter((each) => inScope(scope, each) && !isOldStopped(each));
  const used = new Set(shown.flatMap((each) => each.networks.map(({ network }) => network)));
  const drawn = (networks?.networks ?? []).filter(({ name }) => used.has(name)).toSorted(byProject);
  const order = new Map(drawn.map(({ name }, index) => [name, index]));
  const groups = groupsOf(shown, order);
  const [chipsX, top] = [MARGIN + drawn.length * LINE_EVERY + 12, MARGIN + drawn.length * LABEL_HEIGHT + ROW_GAP];
  const failingContainers = new Set(failing.flatMap(({ severity, pairs }) => (severity === "bad" ? pairs.map(({ container }) => container) : [])));
  const [chips, rows]: [Chip[], { y: number; group: Group }[]] = [[], []];
  let y = top;
  let omitted = 0;
  for (const group of groups) {
    rows.push({ y: y + CHIP_HEIGHT / 2, group });
    let x = chipsX;
    for (const [key, members] of group.chips) {
      if (chips.length >= CHIPS_MAX) {
        omitted += members.length;
        continue;
      }
      const label = labelOf(members, scope);
      const chipWidth = CHIP_PADDING + label.length * CHARACTER_WIDTH;
      if (x > chipsX && x + chipWidth > width - GUTTER) {
        x = chipsX;
        y += CHIP_HEIGHT + CHIP_GAP;
      }
      chips.push({ key, label, containers: members, state: stateOf(members, failingContainers), x, y, width: chipWidth });
      x += chipWidth + CHIP_GAP;
    }
    y += CHIP_HEIGHT + ROW_GAP;
  }
  const lines = drawn.map((network, index): Line => {
    const last = rows.findLast(({ group }) => group.networks.includes(network.name));
    const labelY = MARGIN + index * LABEL_HEIGHT + LABEL_HEIGHT / 2;
    return { network, colour: index % COLOURS, x: MARGIN + 6 + index * LINE_EVERY, labelY, endY: last?.y ?? labelY };
  });
  const needed = Math.max(width, ...chips.map((chip) => chip.x + chip.width + GUTTER));
  return {
    width: needed,
    height: y + MARGIN - ROW_GAP,
    lines,
    rows: rows.map((row) => ({
      y: row.y,
      chipsX,
      stops: lines.filter(({ network }) => row.group.networks.includes(network.name)),
    })),
    chips,
    arrows: arrowsOf(failing, chips, needed),
    omitted: omitted + (containers?.omitted ?? 0),
  };
}

/** One-off containers stay for weeks; those of services matter, because somebody looks them up. */
function isOldStopped({ dns, service, state }: ContainerReport): boolean {
  return dns === null && state !== "running" && service === null;
}

function groupsOf(shown: readonly ContainerReport[], order: ReadonlyMap<string, number>): Group[] {
  const groups = new Map<string, Group>();
  for (const container of shown) {
    const networks = container.networks
      .map(({ network }) => network)
      .filter((network) => order.has(network))
      .toSorted((a, b) => (order.get(a) ?? 0) - (order.get(b) ?? 0));
    const key = JSON.stringify(networks);
    const group = groups.get(key) ?? { networks, chips: new Map<string, ContainerReport[]>() };
    groups.set(key, group);
    const { service, project, id, dns } = container;
    // What does not run is drawn apart from what does.
    const chip = service === null ? id : JSON.stringify([key, project, service, dns === null]);
    group.chips.set(chip, [...(group.chips.get(chip) ?? []), container]);
  }
  const place = ({ networks }: Group): number => order.get(networks[0] ?? "") ?? Infinity;
  return [...groups.values()].toSorted((a, b) => place(a) - place(b) || a.networks.length - b.networks.length);
}

function labelOf(members: readonly ContainerReport[], scope: Scope): string {
  const [first] = members;
  const name = members.length > 1 ? (first?.service ?? "") : shortName(first?.name ?? "", scope);
  const short = name.length > CHIP_CHARACTERS_MAX ? `${name.slice(0, CHIP_CHARACTERS_MAX - 1)}…` : name;
  return members.length > 1 ? `${short} ×${members.length}` : short;
}

function stateOf(members: readonly ContainerReport[], failing: ReadonlySet<string>): ChipState {
  if (members.some(({ name }) => failing.has(name))) return "fails";
  if (members.some(({ dns }) => dns === "failed" || dns === "quarantined")) return "unserved";
  return members.every(({ dns }) => dns === null) ? "stopped" : "ok";
}

function arrowsOf(failing: readonly FailingEntry[], chips: readonly Chip[], width: number): Arrow[] {
  const chipOf = (matches: (each: ContainerReport) => boolean): Chip | undefined =>
    chips.find(({ containers }) => containers.some(matches));
  const paths = new Set<string>();
  for (const { pairs } of failing.filter(({ severity }) => severity === "bad")) {
    for (const { container, name } of pairs) {
      const from = chipOf((each) => each.name === container);
      const to = chipOf((each) => each.service === name || each.name === name);
      if (from === undefined || to === undefined || from === to || paths.size >= ARROWS_MAX) continue;
      paths.add(pathOf(from, to, width - 6 - (paths.size % 4) * 5));
    }
  }
  return [...paths].map((path) => ({ path }));
}

/** Around the right side, because chips are in between. */
function pathOf(from: Chip, to: Chip, right: number): string {
  const [x1, y1] = [from.x + from.width, from.y + CHIP_HEIGHT / 2];
  const [x2, y2] = [to.x + to.width, to.y + CHIP_HEIGHT / 2];
  if (y1 === y2) {
    const below = y1 + CHIP_HEIGHT * 0.95;
    return `M${from.x + from.width / 2},${y1 + CHIP_HEIGHT / 2} C${from.x + from.width / 2},${below + 6} ${to.x + to.width / 2},${below + 6} ${to.x + to.width / 2},${y2 + CHIP_HEIGHT / 2 + 2}`;
  }
  const bend = y2 > y1 ? 8 : -8;
  return `M${x1},${y1} H${right - 8} Q${right},${y1} ${right},${y1 + bend} V${y2 - bend} Q${right},${y2} ${right - 8},${y2} H${x2 + 3}`;
}

function byProject(a: NetworkReport, b: NetworkReport): number {
  return Number(!a.hasNames) - Number(!b.hasNames) || (a.project ?? "").localeCompare(b.project ?? "") || a.name.localeCompare(b.name);
}
