/** DrawingArrows: from the container whose lookup fails to the one that it needs, around the chips and labels that are in between. */
import { cutMiddle } from "../../../base/lib/cut-middle.ts";
import type { ContainerReport } from "../../../api/containers.ts";
import { CHIP_HEIGHT, type Chip } from "./chip.ts";
import type { FailingEntry } from "./failing.ts";

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

export interface Arrow {
  readonly key: string;
  readonly path: string;
  /** What it says, as a sentence. */
  readonly title: string;
}

/** Which name is looked up by the arrows that end at a chip. */
export interface ArrowLabel {
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

export function arrowsOf(failing: readonly FailingEntry[], chips: readonly Chip[], width: number): Arrows {
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
    labels: [...namesOf].map(([to, names]) => labelOf(to, [...names])),
  };
}

function lookupsOf(failing: readonly FailingEntry[], chips: readonly Chip[]): Iterable<Lookups> {
  const found = new Map<string, Lookups>();
  const bad = failing.filter(({ severity }) => severity === "bad");
  const longest = Math.max(0, ...bad.map(({ pairs }) => pairs.length));
  // Each cause has one before any has a second.
  for (let index = 0; index < longest && found.size < ARROWS_MAX; index++) {
    for (const { container, name } of bad.flatMap(({ pairs }) => pairs[index] ?? [])) {
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

function labelOf({ key, x, y, width }: Chip, [first = "", ...others]: readonly string[]): ArrowLabel {
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
