/**
 * Drawing: networks and containers as a map of lines. Each network is a line; containers on the same networks are one row, which stops at
 * the lines of these networks. A line begins where it is first needed and ends where it is last needed, and then leaves its place to
 * another one; containers of one service are one chip. So 200 containers take the room of their services.
 */
import { cutMiddle } from "../../../base/lib/text.ts";
import type { ContainerReport, ContainersReport, NetworkReport, NetworksReport } from "../../../api/containers.ts";
import { CHIP_HEIGHT, type Chip, type ChipState, ROW_GAP } from "./chip.ts";
import type { FailingEntry } from "./failing.ts";
import { type Scope, inScope, shortName } from "./scope.ts";
import { type Sharing, sharingOf } from "./visibility.ts";

const LINE_EVERY = 16;
const LABEL_HEIGHT = 26;
const CHIP_GAP = 8;
const MARGIN = 10;
/** The width in the monospaced font in which chips are written. */
const CHARACTER_WIDTH = 7.25;
const CHIP_PADDING = 30;
const CHIP_CHARACTERS_MAX = 28;
/** The least, for a screen that is too narrow for anything. */
const CHARACTERS_MIN = 8;
/** The space between the lines of chips of one row: wide enough for arrows. */
const LANE = 16;
/** The space for arrows, on the right. */
const GUTTER = 34;
const CHIPS_MAX = 400;
const COLOURS = 8;
export interface Line {
  readonly network: NetworkReport;
  readonly label: string;
  /** What kind of network it is; "" where there is no room for it. */
  readonly note: string;
  readonly colour: number;
  readonly x: number;
  readonly startY: number;
  endY: number;
}

interface Row {
  readonly y: number;
  /** The lines at which it stops, from the left. */
  readonly stops: readonly Line[];
}

interface Drawing {
  readonly width: number;
  readonly height: number;
  /** Where chips and the labels of lines begin. */
  readonly textX: number;
  readonly lines: readonly Line[];
  readonly rows: readonly Row[];
  readonly chips: readonly Chip[];
  readonly arrows: readonly Arrow[];
  readonly labels: readonly ArrowLabel[];
  readonly omitted: number;
}

interface Known {
  readonly networks: NetworksReport | null;
  readonly containers: ContainersReport | null;
  readonly failing: readonly FailingEntry[];
  readonly scope: Scope;
}

/** Containers on the same networks. */
interface Group {
  readonly networks: readonly NetworkReport[];
  readonly chips: Map<string, ContainerReport[]>;
}

export function drawingOf({ networks, containers, failing, scope }: Known, width: number): Drawing {
  const shown = (containers?.containers ?? []).filter((each) => inScope(scope, each) && !isLeftOver(each));
  const sharing = sharingOf(containers);
  const groups = groupsOf(shown, (networks?.networks ?? []).toSorted(byProject), sharing);
  const slots = slotsOf(groups);
  const textX = MARGIN + 6 + (Math.max(-1, ...slots.values()) + 1) * LINE_EVERY + 8;
  const failed = new Set(
    failing.flatMap((each) => (each.severity === "bad" ? each.symptoms.map(({ container }) => container) : [])),
  );
  const characters = Math.max(CHARACTERS_MIN, Math.floor((width - GUTTER - textX) / CHARACTER_WIDTH));
  const lines = new Map<string, Line>();
  const [chips, rows]: [Chip[], Row[]] = [[], []];
  let y = MARGIN;
  let omitted = containers?.omitted ?? 0;
  for (const group of groups) {
    for (const network of group.networks.filter(({ id }) => !lines.has(id))) {
      const startY = y + LABEL_HEIGHT / 2;
      const x = MARGIN + 6 + (slots.get(network.id) ?? 0) * LINE_EVERY;
      const place = { colour: lines.size % COLOURS, x, startY, endY: startY };
      lines.set(network.id, { network, ...lineTexts(network, characters), ...place });
      y += LABEL_HEIGHT;
    }
    const row = { y: y + CHIP_HEIGHT / 2, stops: group.networks.flatMap(({ id }) => lines.get(id) ?? []) };
    for (const line of row.stops) line.endY = row.y;
    rows.push({ ...row, stops: row.stops.toSorted((a, b) => a.x - b.x) });
    let x = textX;
    for (const [key, members] of group.chips) {
      if (chips.length >= CHIPS_MAX) {
        omitted += members.length;
        continue;
      }
      const label = labelOf(members, group.networks, scope, characters - CHIP_PADDING / CHARACTER_WIDTH);
      const chipWidth = CHIP_PADDING + label.length * CHARACTER_WIDTH;
      if (x > textX && x + chipWidth > width - GUTTER) {
        x = textX;
        y += CHIP_HEIGHT + LANE;
      }
      const state = stateOf(members, failed, sharing);
      chips.push({ key, label, containers: members, state, x, y, width: chipWidth });
      x += chipWidth + CHIP_GAP;
    }
    y += CHIP_HEIGHT + ROW_GAP;
  }
  const needed = Math.max(width, ...chips.map((chip) => chip.x + chip.width + GUTTER));
  return {
    width: needed,
    height: y + MARGIN - ROW_GAP / 2,
    textX,
    lines: [...lines.values()],
    rows,
    chips,
    ...arrowsOf(failing, chips, needed),
    omitted,
  };
}

/** One-off containers stay for weeks; those of services matter, because they are looked up. */
function isLeftOver({ dns, service, state }: ContainerReport): boolean {
  return dns === null && state !== "running" && service === null;
}

function groupsOf(shown: readonly ContainerReport[], networks: readonly NetworkReport[], sharing: Sharing): Group[] {
  const groups = new Map<string, Group>();
  for (const container of shown) {
    const joined = (sharing.get(container.name) ?? container).networks;
    const own = networks.filter(({ name }) => joined.some(({ network }) => network === name));
    const key = own.map(({ id }) => id).join(" ");
    const group = groups.get(key) ?? { networks: own, chips: new Map<string, ContainerReport[]>() };
    groups.set(key, group);
    const { service, project, id, dns } = container;
    // What does not run is drawn apart from what does.
    const chip = service === null ? id : JSON.stringify([key, project, service, dns === null]);
    group.chips.set(chip, [...(group.chips.get(chip) ?? []), container]);
  }
  const place = ({ networks: [first] }: Group): number => (first === undefined ? Infinity : networks.indexOf(first));
  return [...groups.values()].toSorted((a, b) => place(a) - place(b) || a.networks.length - b.networks.length);
}

/** The place of each line from the left: the first one that is free from its first to its last row. */
function slotsOf(groups: readonly Group[]): ReadonlyMap<string, number> {
  const last = new Map<string, number>();
  for (const [index, { networks }] of groups.entries()) for (const { id } of networks) last.set(id, index);
  const slots = new Map<string, number>();
  const takenUntil: number[] = [];
  for (const [index, { networks }] of groups.entries()) {
    for (const { id } of networks) {
      if (slots.has(id)) continue;
      const free = takenUntil.findIndex((until) => until < index);
      const slot = free === -1 ? takenUntil.length : free;
      slots.set(id, slot);
      takenUntil[slot] = last.get(id) ?? index;
    }
  }
  return slots;
}

/** Leaves out the project where that of its networks says it. */
function labelOf(
  members: readonly ContainerReport[],
  networks: readonly NetworkReport[],
  scope: Scope,
  room: number,
): string {
  const [first] = members;
  const project = first?.project ?? null;
  const isClear = scope.project !== null || (networks.length > 0 && networks.every((each) => isOf(each, project)));
  const one = shortName(first?.name ?? "", { project: isClear ? project : null });
  const name = members.length > 1 ? (first?.service ?? "") : one;
  const times = members.length > 1 ? ` ×${members.length}` : "";
  const max = Math.min(CHIP_CHARACTERS_MAX, Math.floor(room) - times.length);
  return cutMiddle(name, Math.max(CHARACTERS_MIN, max)) + times;
}

/** A network that was made by hand has a name like one of Compose. */
function isOf({ project, name }: NetworkReport, wanted: string | null): boolean {
  return wanted !== null && (project === wanted || (project === null && name.startsWith(`${wanted}_`)));
}

/** The kind of network is left out first, then the middle of its name. */
function lineTexts(network: NetworkReport, characters: number): Pick<Line, "label" | "note"> {
  const { name, driver, isInternal, hasNames } = network;
  const note = [driver, ...(isInternal ? ["internal"] : []), ...(hasNames ? [] : ["no names"])].join(", ");
  return { label: cutMiddle(name, characters), note: name.length + 2 + note.length <= characters ? note : "" };
}

function stateOf(members: readonly ContainerReport[], failed: ReadonlySet<string>, sharing: Sharing): ChipState {
  if (members.some(({ name }) => failed.has(sharing.get(name)?.name ?? name))) return "fails";
  if (members.some(({ dns }) => dns === "failed" || dns === "quarantined")) return "unserved";
  return members.every(({ dns }) => dns === null) ? "stopped" : "ok";
}

function byProject(a: NetworkReport, b: NetworkReport): number {
  return (
    Number(!a.hasNames) - Number(!b.hasNames) ||
    (a.project ?? "").localeCompare(b.project ?? "") ||
    a.name.localeCompare(b.name)
  );
}

const ARROWS_MAX = 12;
/** So many arrows are beside each other. */
const LANES = 4;
/** The way from a chip down to the middle of the lanes below it. */
const BELOW = 8;
/** Arrows end at the right of a chip: to the left of their heads is the room for a label. */
const HEAD_ROOM = 14;
const LABEL_LEFT = 2;
const LABEL_BASELINE = 12;
/** The width in the monospaced font in which labels are written. */
const LABEL_CHARACTER_WIDTH = 6.4;
const LABEL_CHARACTERS_MIN = 4;

/** From the container whose lookup fails to the one that it needs, around the chips and labels that are in between. */
interface Arrow {
  readonly key: string;
  readonly path: string;
  /** What it says, as a sentence. */
  readonly title: string;
}

/** Which name is looked up by the arrows that end at a chip. */
interface ArrowLabel {
  readonly key: string;
  readonly text: string;
  readonly x: number;
  readonly y: number;
}

interface Arrows {
  readonly arrows: readonly Arrow[];
  readonly labels: readonly ArrowLabel[];
}

/** From one chip to another one, for the names that are looked up in vain. */
interface Lookups {
  readonly from: Chip;
  readonly to: Chip;
  readonly container: string;
  readonly names: Set<string>;
}

function arrowsOf(failing: readonly FailingEntry[], chips: readonly Chip[], width: number): Arrows {
  const all = [...lookupsOf(failing, chips)];
  const namesOf = new Map<Chip, Set<string>>();
  for (const { to, names } of all) namesOf.set(to, new Set([...(namesOf.get(to) ?? []), ...names]));
  return {
    arrows: all.map(({ from, to, container, names }, index) => {
      const lane = index % LANES;
      return {
        key: `${from.key} ${to.key}`,
        path: pathOf(from, to, width - 8 - lane * 5, (lane - (LANES - 1) / 2) * 3),
        title: `${container} looks up ${[...names].join(", ")}, and it fails`,
      };
    }),
    labels: [...namesOf].map(([to, names]) => arrowLabelOf(to, [...names])),
  };
}

function lookupsOf(failing: readonly FailingEntry[], chips: readonly Chip[]): Iterable<Lookups> {
  const found = new Map<string, Lookups>();
  const bad = failing.filter(({ severity }) => severity === "bad");
  const longest = Math.max(0, ...bad.map(({ symptoms }) => symptoms.length));
  // Each cause has one before any has a second.
  for (let index = 0; index < longest && found.size < ARROWS_MAX; index++) {
    for (const { container, name } of bad.flatMap(({ symptoms }) => symptoms[index] ?? [])) {
      const [from, to] = endsOf(chips, container, name);
      if (from === undefined || to === undefined || from === to) continue;
      const key = `${from.key} ${to.key}`;
      const known = found.get(key);
      if (known !== undefined) known.names.add(name);
      else if (found.size < ARROWS_MAX) found.set(key, { from, to, container, names: new Set([name]) });
    }
  }
  return found.values();
}

function arrowLabelOf({ key, x, y, width }: Chip, [first = "", ...others]: readonly string[]): ArrowLabel {
  const more = others.length === 0 ? "" : ` +${others.length}`;
  const room = Math.floor((width - HEAD_ROOM - LANES - LABEL_LEFT) / LABEL_CHARACTER_WIDTH) - more.length;
  const text = cutMiddle(first, Math.max(LABEL_CHARACTERS_MIN, room)) + more;
  return { key, text, x: x + LABEL_LEFT, y: y + CHIP_HEIGHT + LABEL_BASELINE };
}

/** Of several containers with the name it takes one of the same project. */
function endsOf(chips: readonly Chip[], container: string, name: string): [Chip | undefined, Chip | undefined] {
  const find = (matches: (each: ContainerReport) => boolean): Chip | undefined =>
    chips.find(({ containers }) => containers.some(matches));
  const from = find((each) => each.name === container);
  const project = from?.containers[0]?.project;
  const isNamed = (each: ContainerReport): boolean => each.service === name || each.name === name;
  return [from, find((each) => isNamed(each) && each.project === project) ?? find(isNamed)];
}

/**
 * Each end is below its chip, where there is never a label; from row to row it goes along the right side. So it crosses neither chips nor
 * texts.
 */
function pathOf(from: Chip, to: Chip, right: number, shift: number): string {
  const [x1, x2] = [from.x + from.width / 2 + shift, to.x + to.width - HEAD_ROOM / 2 + shift];
  const [start, end] = [from.y + CHIP_HEIGHT, to.y + CHIP_HEIGHT];
  const [lane, last] = [start + BELOW + shift, end + BELOW + shift];
  const way = from.y === to.y ? `H${x2}` : `H${right} V${last} H${x2}`;
  return `M${x1},${start} V${lane} ${way} V${end + 3}`;
}
