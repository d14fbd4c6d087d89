// Owns the measuring of what buffers are held, without those that only wait to be collected.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

export function bufferBytes(): number {
  collect();
  return process.memoryUsage().arrayBuffers;
}
