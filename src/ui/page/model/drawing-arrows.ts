/** DrawingArrows: from the container whose lookup fails to the one that it needs, around the chips and labels that are in between. */
import type { ContainerReport } from "../../../api/containers.ts";
import { CHIP_HEIGHT, type Chip } from "./chip.ts";
import type { FailingEntry } from "./failing.ts";

const ARROWS_MAX = 12;
/** So many arrows are beside each other. */
const LANES = 4;
/** The way from a chip down to the middle of the lanes below it. */
const BELOW = 8;

export interface Arrow {
  readonly key: string;
  readonly path: string;
}

export function arrowsOf(failing: readonly FailingEntry[], chips: readonly Chip[], width: number): Arrow[] {
  const arrows = new Map<string, Arrow>();
  const bad = failing.filter(({ severity }) => severity === "bad");
  const longest = Math.max(0, ...bad.map(({ pairs }) => pairs.length));
  // Each cause has one before any has a second.
  for (let index = 0; index < longest && arrows.size < ARROWS_MAX; index++) {
    for (const { container, name } of bad.flatMap(({ pairs }) => pairs[index] ?? [])) {
      const [from, to] = endsOf(chips, container, name);
      if (from === undefined || to === undefined || from === to || arrows.size >= ARROWS_MAX) continue;
      const key = `${from.key} ${to.key}`;
      const lane = arrows.size % LANES;
      if (!arrows.has(key))
        arrows.set(key, { key, path: pathOf(from, to, width - 8 - lane * 5, (lane - (LANES - 1) / 2) * 3) });
    }
  }
  return [...arrows.values()];
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
  const [x1, x2] = [from.x + from.width / 2 + shift, to.x + to.width / 2 + shift];
  const [start, end] = [from.y + CHIP_HEIGHT, to.y + CHIP_HEIGHT];
  const [lane, last] = [start + BELOW + shift, end + BELOW + shift];
  const way = from.y === to.y ? `H${x2}` : `H${right} V${last} H${x2}`;
  return `M${x1},${start} V${lane} ${way} V${end + 3}`;
}
