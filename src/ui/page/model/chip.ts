/** Chip: a container in the drawing, or several of one service. */
import type { ContainerReport } from "../../../api/containers.ts";

export const CHIP_HEIGHT = 24;
/** The space between the rows of chips. */
export const ROW_GAP = 20;

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
