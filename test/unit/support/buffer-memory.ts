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

/** The memory of buffers once it no longer changes: V8 frees what it has collected in a thread of its own, some time later. */
export async function settledBufferBytes(): Promise<number> {
  let bytes = bufferBytes();
  for (let same = 0; same < 5;) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    const now = bufferBytes();
    same = now === bytes ? same + 1 : 0;
    bytes = now;
  }
  return bytes;
}
