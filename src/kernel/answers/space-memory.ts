/**
 * SpaceMemory: the map of the spaces as memory of this process. The kernel makes every page of a mapping resident at once,
 * and all of the map is 2.3 MB; so only its beginning is mapped, which is enough for as many spaces as were ever open at
 * the same time, and twice as much when that is too little. What was mapped before stays: views point into it.
 */
import { mapShared } from "../libc.ts";
import { SPACE, SPACE_BYTES } from "./layout.ts";

/** 36 KiB. */
const SPACES_FIRST = 64;

export class SpaceMemory {
  readonly #map: number;
  readonly #spaces: number;
  #memory: ArrayBuffer;

  /** `map` is its descriptor, for so many spaces. Throws a SystemFault if the kernel refuses. */
  constructor(map: number, spaces: number) {
    this.#map = map;
    this.#spaces = spaces;
    this.#memory = this.#mapped(SPACES_FIRST);
  }

  /** Throws a SystemFault where there is no memory for it. */
  viewOf(index: number): DataView {
    this.#reach(index);
    return new DataView(this.#memory, index * SPACE_BYTES, SPACE_BYTES);
  }

  generationOf(index: number): Int32Array {
    this.#reach(index);
    return new Int32Array(this.#memory, index * SPACE_BYTES + SPACE.generation, 1);
  }

  #reach(index: number): void {
    let spaces = this.#memory.byteLength / SPACE_BYTES;
    if (index < spaces) return;
    while (index >= spaces) spaces *= 2;
    this.#memory = this.#mapped(spaces);
  }

  #mapped(spaces: number): ArrayBuffer {
    return mapShared(this.#map, Math.min(spaces, this.#spaces) * SPACE_BYTES);
  }
}
