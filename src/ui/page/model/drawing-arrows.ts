/** DrawingArrows: from the container whose lookup fails to the one that it needs, around the chips that are in between. */
import type { ContainerReport } from "../../../api/containers.ts";
import { CHIP_HEIGHT, type Chip, ROW_GAP } from "./chip.ts";
import type { FailingEntry } from "./failing.ts";

const ARROWS_MAX = 12;

export interface Arrow {
  readonly key: string;
  readonly path: string;
}

export function arrowsOf(failing: readonly FailingEntry[], chips: readonly Chip[], width: number): Arrow[] {
  const arrows = new Map<string, Arrow>();
  for (const { pairs } of failing.filter(({ severity }) => severity === "bad")) {
    for (const { container, name } of pairs) {
      const [from, to] = endsOf(chips, container, name);
      if (from === undefined || to === undefined || from === to || arrows.size >= ARROWS_MAX) continue;
      const key = `${from.key} ${to.key}`;
      const lane = arrows.size % 4;
      if (!arrows.has(key)) arrows.set(key, { key, path: pathOf(from, to, width - 8 - lane * 5, lane * 2 - 3) });
    }
  }
  return [...arrows.values()];
}

/** Of several containers with the name, one of the same project. */
function endsOf(chips: readonly Chip[], container: string, name: string): [Chip | undefined, Chip | undefined] {
  const find = (matches: (each: ContainerReport) => boolean): Chip | undefined =>
    chips.find(({ containers }) => containers.some(matches));
  const from = find((each) => each.name === container);
  const project = from?.containers[0]?.project;
  const isNamed = (each: ContainerReport): boolean => each.service === name || each.name === name;
  return [from, find((each) => isNamed(each) && each.project === project) ?? find(isNamed)];
}

/** Through the gaps between the rows, and from row to row along the right side, so that it crosses no chip. */
function pathOf(from: Chip, to: Chip, right: number, shift: number): string {
  const [x1, x2] = [from.x + from.width / 2 + shift, to.x + to.width / 2 + shift];
  const gap = ROW_GAP / 2 + shift;
  const [isDown, isUp] = [to.y > from.y, to.y < from.y];
  const [start, firstY] = isUp ? [from.y, from.y - gap] : [from.y + CHIP_HEIGHT, from.y + CHIP_HEIGHT + gap];
  const [end, lastY] = isDown ? [to.y - 3, to.y - gap] : [to.y + CHIP_HEIGHT + 3, to.y + CHIP_HEIGHT + gap];
  const isNext = Math.abs(lastY - firstY) <= ROW_GAP;
  const way = isNext ? `V${firstY} H${x2}` : `V${firstY} H${right} V${lastY} H${x2}`;
  return `M${x1},${start} ${way} V${end}`;
}
