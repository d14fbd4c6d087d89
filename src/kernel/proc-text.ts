/**
 * procText: the text of a file under /proc. A kernel built without a feature has no file for it, which is an answer and
 * not a failure. Some files grow with what a container does, so the size is limited.
 */
import { closeSync, constants, openSync, readSync } from "node:fs";

import { LIMITS } from "../base/limits.ts";
import { Fault, codeOf } from "../base/lib/fault.ts";

const CHUNK_BYTES = 64 * 1024;
/** Shared, because every read is one synchronous call. */
const chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);

/** Throws if it is longer than the limit. */
export function procText(path: string): string | undefined {
  const fd = opened(path);
  if (fd === undefined) return undefined;
  try {
    const chunks: Buffer[] = [];
    let length = 0;
    for (;;) {
      const count = readSync(fd, chunk, 0, CHUNK_BYTES, null);
      if (count === 0) return Buffer.concat(chunks).toString("utf8");
      chunks.push(Buffer.from(chunk.subarray(0, count)));
      length += count;
      if (length > LIMITS.procBytes) throw new Fault("TOO_LONG", `"${path}" is longer than ${LIMITS.procBytes} bytes`);
    }
  } finally {
    closeSync(fd);
  }
}

function opened(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
