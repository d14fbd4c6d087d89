// Memory of buffers after garbage collection.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

export function bufferBytes(): number {
  collect();
  return process.memoryUsage().arrayBuffers;
}

/** Resolves when what this process has printed was taken: until then the test runner's output is in buffers, too. */
export async function outputTaken(): Promise<void> {
  await new Promise<void>((resolve) => process.stdout.write("", () => resolve()));
}
