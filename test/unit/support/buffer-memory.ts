// Memory of buffers after garbage collection.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

export function bufferBytes(): number {
  collect();
  return process.memoryUsage().arrayBuffers;
}
