/**
 * RequestBody: the body of an HTTP request, up to a limit. What is beyond it is not read.
 */
import { Fault } from "./fault.ts";

/** Throws a Fault if there is more than `bytesMax`. */
export async function readBody(pieces: AsyncIterable<Buffer>, bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of pieces) {
    length += chunk.length;
    if (length > bytesMax) throw new Fault("TOO_LONG", `Request body too large: the limit is ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
